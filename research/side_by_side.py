"""Training steps that a graphics card repeats by itself, for several models side by side. Page:
`book/workshop/engine`.

A card that waits for Python computes a small model at a fraction of its speed. So all that a step
reads lies at a fixed place in the card's memory, the learning rate and the number of the step
included, and the step is recorded once as a CUDA graph. To train another model, its weights are
copied to the same place. Each learner has its own stream, so that the small kernels of several run
at the same time. On a CPU the same steps run one after the other, without a graph.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from spanbert_tutorial.engine.processes import precision
from spanbert_tutorial.pretraining.train import TrainingConfig, adamw

Model = TypeVar("Model", bound=nn.Module)
Batch = dict[str, Tensor]
Made = Callable[[Batch], Batch]  # what the model takes, from what lies at the fixed place
WARM_UP = 3  # steps before one is recorded, which set up what a step keeps


def device() -> torch.device:
    """The card, or the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def arithmetic() -> torch.autocast:
    """bfloat16 where the hardware has it, else float32: a graph has no place for fp16's scaler. A
    graph cannot keep the casts of weights from one step to the next, so there is no cache."""
    half = precision() == "bf16"
    return torch.autocast(device().type, torch.bfloat16, enabled=half, cache_enabled=False)


def rates(steps: int, peak: float, warm_up: float = 0.1) -> Tensor:
    """The learning rate of each step, float [steps]: it rises linearly for a share of the steps,
    then falls linearly to nearly 0."""
    rising = max(1, int(warm_up * steps))
    number = torch.arange(steps, dtype=torch.float64)
    up = (number + 1) / rising
    down = (steps - number) / max(steps - rising, 1)
    return (peak * torch.minimum(up, down)).float()


def unchanged(batch: Batch) -> Batch:
    """The batch itself."""
    return batch


class Learner(Generic[Model]):
    """A model with its optimizer, which takes at most `most` steps in one go. The model has an
    `encoder`, and returns a dict with its `loss`."""

    def __init__(self, model: Model, most: int, betas: tuple[float, float], epsilon: float):
        self.here = device()
        on_card = self.here.type == "cuda"
        self.model: Model = model.to(self.here).train()
        self.rate = torch.zeros((), device=self.here)
        self.rates = torch.zeros(most, device=self.here)
        self.at = torch.zeros(1, dtype=torch.long, device=self.here)  # steps taken
        self.loss = torch.zeros((), device=self.here)  # sum over steps, until it is taken
        groups = adamw(model, TrainingConfig(most, 0.0, 1)).param_groups
        self.optimizer = torch.optim.AdamW(
            [{name: group[name] for name in ("params", "weight_decay")} for group in groups],
            lr=self.rate if on_card else 0.0,
            betas=betas,
            eps=epsilon,
            fused=on_card,
            capturable=on_card,
        )
        self.stream = torch.cuda.Stream() if on_card else None
        self.made: dict[str, Made] = {}
        self.graphs: dict[str, tuple[torch.cuda.CUDAGraph, Batch]] = {}

    @torch.no_grad()
    def begin(self, weights: Mapping[str, Tensor], learning_rates: Tensor) -> None:
        """Other weights, and a fresh optimizer, where the old ones are."""
        self.wait()
        self.model.load_state_dict(weights)
        for state in self.optimizer.state.values():
            for value in state.values():
                value.zero_()
        self.rates.zero_()
        self.rates[: len(learning_rates)] = learning_rates.to(self.here)
        self.at.zero_()
        self.loss.zero_()
        self.wait()

    def record(
        self, kind: str, batch: Batch, made: Made = unchanged, compiling: bool = True
    ) -> str:
        """Makes a step on batches of one kind ready, all of the same shapes, and says how: compiled
        in a graph, in a graph, or as it is where a graph fails. Changes the weights: `begin` comes
        after it."""
        self.made[kind] = made
        held = {name: value.to(self.here) for name, value in batch.items()}
        if self.stream is None:
            self.compute(made(held))
            return "as it is"
        why = ""
        for way in ("compiled in a graph", "in a graph") if compiling else ("in a graph",):
            try:
                with self.encoder_compiled(way.startswith("compiled")):
                    self.graphs[kind] = (self.captured(made, held), held)
                return way + why
            except Exception as error:  # a compiler that is missing, memory: training goes on
                self.wait()
                self.optimizer.zero_grad()
                why = f" ({type(error).__name__}: {str(error).strip()[:200]})"
        return "as it is" + why

    def captured(self, made: Made, held: Batch) -> torch.cuda.CUDAGraph:
        """The graph of a step."""
        assert self.stream is not None
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(WARM_UP):
                self.compute(made(held))
        self.wait()
        graph = torch.cuda.CUDAGraph()
        # other threads may pin memory meanwhile
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self.compute(made(held))
        return graph

    @contextmanager
    def encoder_compiled(self, wanted: bool) -> Iterator[None]:
        """While this is open, the encoder is compiled, if that is wanted. It is the larger part of a
        step, and the heads differ from model to model."""
        encoder: Any = self.model.encoder
        if wanted:
            torch._dynamo.config.recompile_limit = 64  # each learner has its own encoder
            encoder.forward = torch.compile(encoder.forward, dynamic=False)
        try:
            yield
        finally:
            vars(encoder).pop("forward", None)

    def compute(self, batch: Batch) -> None:
        """One step."""
        with arithmetic():
            loss = self.model(batch)["loss"]
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if self.stream is None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.rates[self.at].item()
        else:
            self.rate.copy_(self.rates.index_select(0, self.at)[0])
        self.optimizer.step()
        # in place: a graph finds the gradients where it recorded them
        self.optimizer.zero_grad(set_to_none=False)
        self.at += 1
        self.loss += loss.detach()

    def step(self, kind: str, batch: Batch) -> None:
        """A step on a batch of a kind that is ready; it is queued, and not waited for. A batch
        without tensors leaves what lies there."""
        if self.stream is None:
            self.compute(self.made[kind](batch))
            return
        with torch.cuda.stream(self.stream):
            if kind not in self.graphs:
                moved = {name: v.to(self.here, non_blocking=True) for name, v in batch.items()}
                self.compute(self.made[kind](moved))
                return
            graph, held = self.graphs[kind]
            for name, value in batch.items():
                held[name].copy_(value, non_blocking=True)
            graph.replay()

    def wait(self) -> None:
        """Until all that was queued is done."""
        if self.stream is not None:
            self.stream.synchronize()
            torch.cuda.current_stream().synchronize()

    def mean_loss(self, steps: int) -> float:
        """The mean loss of the last steps; waits for them."""
        self.wait()
        mean = self.loss.item() / steps
        self.loss.zero_()
        self.wait()
        return mean

    @torch.no_grad()
    def weights(self) -> dict[str, Tensor]:
        """A copy, on the device of the model."""
        self.wait()
        copies = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.wait()
        return copies
