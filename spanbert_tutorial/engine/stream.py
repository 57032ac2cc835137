"""The batches of a long run: counted, and for a graphics card drawn ahead. Chapter:
`book/workshop/engine`.

A source of batches draws them one after the other from one random generator, so one worker process
draws for it: more of them would draw other batches for the same seed than a CPU does.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch
from accelerate.utils import reduce
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from spanbert_tutorial.engine.processes import processes

DEPTH = 8  # batches that wait to be taken


class Source(IterableDataset):
    """Batches with their state after each; at last the error that ended them, if one did."""

    def __init__(self, batches: Any):
        self.batches = batches

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        try:
            for batch in self.batches:
                yield batch, self.batches.state_dict()
        except Exception as error:  # raised again where the batch is taken
            yield error, None


class Stream(Iterator[dict[str, Tensor]]):
    """The same batches in the same order as `batches`, which have `state_dict` and
    `load_state_dict`. `state_dict` here is of the batches that were taken, however many are drawn
    already, with the tokens and seconds of the run so far.

    ahead: whether a worker process draws them; by default for a graphics card. On a CPU it would
    only take time from the training, and where a process is not forked, as on Windows and a Mac, it
    would need a copy of the text.
    """

    def __init__(self, batches: Any, ahead: bool | None = None):
        self.batches = batches
        self.ahead = (
            sys.platform == "linux" and processes().device.type != "cpu" if ahead is None else ahead
        )
        self.drawn: Iterator[Any] | None = None
        self.state: Any = batches.state_dict()
        self.before: tuple[Any, float] = (0, 0.0)  # tokens, seconds of earlier parts of the run
        self.tokens: Tensor = torch.tensor(0)  # in this process, since then
        self.began = time.monotonic()

    def __next__(self) -> dict[str, Tensor]:
        if self.drawn is None:
            source = Source(self.batches)
            self.drawn = iter(by_worker(source) if self.ahead else source)
        batch, state = next(self.drawn)
        if isinstance(batch, Exception):
            raise batch
        self.state = state
        self.tokens = self.tokens + batch["attention_mask"].sum()
        return batch

    @property
    def tokens_per_second(self) -> float:
        """Of all processes, which take about as many."""
        return processes().num_processes * int(self.tokens) / (time.monotonic() - self.began)

    def taken(self) -> tuple[int, float]:
        """Tokens and seconds of the run so far. All processes have to call this together."""
        tokens = int(reduce(self.tokens.to(processes().device), "sum"))
        return self.before[0] + tokens, self.before[1] + time.monotonic() - self.began

    def state_dict(self) -> dict[str, Any]:
        return {"batches": self.state, "taken": self.taken()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state["batches"]
        self.before = tuple(state["taken"])
        self.close()

    def close(self) -> None:
        """Ends the drawing. The batches go on here where they were taken."""
        self.drawn = None  # whose end is that of its worker
        self.batches.load_state_dict(self.state)


def by_worker(source: Source) -> DataLoader:
    """The same from a process that draws it, and that ends with the iterator."""
    # said before the process is copied, or the tokenizers in the copy print a warning
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    return DataLoader(
        source,
        batch_size=None,  # they are batches already
        num_workers=1,
        multiprocessing_context="fork",
        prefetch_factor=DEPTH,
        pin_memory=torch.cuda.is_available(),
        worker_init_fn=leave_signals,
        generator=torch.Generator(),  # or it would draw from that of the dropout
    )


def leave_signals(number: int) -> None:
    """Ctrl-C reaches all processes; what to do about it decides the one that trains."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
