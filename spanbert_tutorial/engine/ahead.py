"""Batches drawn ahead: while a graphics card computes, another process draws what comes next.
Chapter: `book/workshop/engine`.

A source of batches draws them one after the other from one random generator, so one worker draws
for it. More of them would need a generator for each batch, and so other batches for the same seed
than a CPU draws. Only sources that take turns, each with its own generator, have a worker each.
"""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

DEPTH = 8  # batches that wait to be taken


class Source(IterableDataset):
    """Batches with their state and place after each, as a worker draws them; at last the error that
    ended them, if one did."""

    def __init__(self, batches: Any):
        self.batches = batches

    def __iter__(self) -> Iterator[tuple[Any, Any, str]]:
        try:
            for batch in self.batches:
                yield batch, self.batches.state_dict(), getattr(self.batches, "place", "")
        except Exception as error:  # raised again where the batch is taken
            yield error, None, ""


class Ahead:
    """The same batches in the same order as `batches`, drawn by a worker process. `place`,
    `state_dict` and `load_state_dict` are those of the batches that were taken, however many are
    drawn already."""

    def __init__(self, batches: Any):
        self.batches = batches
        self.drawn: Iterator[Any] | None = None
        self.state = batches.state_dict()
        self.place = getattr(batches, "place", "")

    def __iter__(self) -> "Ahead":
        return self

    def __next__(self) -> dict[str, Tensor]:
        if self.drawn is None:
            # said before the process is copied, or the tokenizers in the copy print a warning
            os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
            self.drawn = iter(
                DataLoader(
                    Source(self.batches),
                    batch_size=None,  # they are batches already
                    num_workers=1,
                    prefetch_factor=DEPTH,
                    pin_memory=torch.cuda.is_available(),
                    worker_init_fn=leave_signals,
                    generator=torch.Generator(),  # or it would draw from that of the dropout
                )
            )
        batch, state, place = next(self.drawn)
        if isinstance(batch, Exception):
            raise batch
        self.state = state
        self.place = place
        return batch

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Any) -> None:
        self.state = state
        self.close()
        self.place = getattr(self.batches, "place", "")

    def close(self) -> None:
        """Ends the worker. The batches go on here where they were taken."""
        self.drawn = None  # whose end is that of its worker
        self.batches.load_state_dict(self.state)


def leave_signals(worker: int) -> None:
    """Ctrl-C reaches all processes; what to do about it decides the one that trains."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def drawn_ahead(batches: Any, device: torch.device) -> Iterator[Any]:
    """Gives the batches, drawn ahead for a graphics card where they know their place. Elsewhere as
    they are: on a CPU a worker would only take time from the training, and without `fork`
    (Windows) it would need a copy of the text."""
    possible = hasattr(batches, "state_dict") and "fork" in multiprocessing.get_all_start_methods()
    if device.type == "cpu" or not possible:
        yield batches
        return
    with ExitStack() as workers:
        sources = getattr(batches, "parts", None)  # those that take turns
        if sources is None:
            yield workers.enter_context(closing(Ahead(batches)))
            return
        alone = dict(sources)
        workers.callback(sources.update, alone)
        for name, source in alone.items():
            sources[name] = workers.enter_context(closing(Ahead(source)))
        yield batches
