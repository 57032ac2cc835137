"""Training steps that a graphics card repeats by itself, for several models side by side. Page:
`book/workshop/engine`.

A card that waits for Python computes a small model at a fraction of its speed. So everything that a
step reads lies at a fixed place in the card's memory, the learning rate and the number of the step
included, and the step is recorded once as a CUDA graph. To train another model, its weights are
copied to the same place. Each learner has a stream of its own, so that the small kernels of several
run at the same time. On a CPU the same steps run one after the other, without a graph.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from spanbert_tutorial.engine.loop import parameter_groups
from spanbert_tutorial.engine.processes import precision

Batch = dict[str, Tensor]
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float32, "no": torch.float32}  # a graph has no scaler
WARM_UP = 3  # steps before one is recorded, which set up what a step keeps


def device() -> torch.device:
    """The card, or the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def rates(steps: int, peak: float, warm_up: float = 0.1) -> Tensor:
    """The learning rate of each step, float [steps]: it rises linearly for a share of the steps, and
    falls linearly to nearly 0."""
    rising = max(1, int(warm_up * steps))
    number = torch.arange(steps, dtype=torch.float64)
    up = (number + 1) / rising
    down = (steps - number) / max(steps - rising, 1)
    return (peak * torch.minimum(up, down)).float()


class Learner:
    """A model with its optimizer. most: of steps that it will ever take in one go."""

    def __init__(
        self,
        model: nn.Module,
        most: int,
        betas: tuple[float, float],
        epsilon: float,
        compiling: bool = True,
    ):
        self.here = device()
        on_card = self.here.type == "cuda"
        self.model = model.to(self.here).train()
        self.compiling = compiling and on_card
        self.rate = torch.zeros((), device=self.here)
        self.rates = torch.zeros(most, device=self.here)
        self.at = torch.zeros(1, dtype=torch.long, device=self.here)
        self.optimizer = torch.optim.AdamW(
            parameter_groups(model, 0.01),
            lr=self.rate if on_card else 0.0,
            betas=betas,
            eps=epsilon,
            fused=on_card,
            capturable=on_card,
        )
        self.stream = torch.cuda.Stream() if on_card else None
        self.graphs: dict[str, tuple[torch.cuda.CUDAGraph, Batch]] = {}
        self.loss = torch.zeros((), device=self.here)  # of the steps since it was last taken

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

    def compute(self, batch: Batch) -> None:
        """One step."""
        dtype = TYPES[precision()]
        # a graph cannot keep the casts of weights from one step to the next
        with torch.autocast(
            self.here.type, dtype, enabled=dtype != torch.float32, cache_enabled=False
        ):
            loss = self.model(batch)["loss"]
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if self.stream is None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.rates[self.at].item()
        else:
            self.rate.copy_(self.rates.index_select(0, self.at)[0])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.at += 1
        self.loss += loss.detach()

    def record(self, kind: str, batch: Batch, made: Callable[[Batch], Batch] | None = None) -> None:
        """Records a step on batches of one shape. Changes the weights: `begin` comes after it.
        made: what the model takes, computed on the card from what lies there."""
        made = made or (lambda held: held)
        held = {name: value.to(self.here) for name, value in batch.items()}
        if self.stream is None:
            self.compute(made(held))
            return
        self.stream.wait_stream(torch.cuda.current_stream())
        with self.compiled_encoder():
            with torch.cuda.stream(self.stream):
                for _ in range(WARM_UP):
                    self.compute(made(held))
            self.wait()
            graph = torch.cuda.CUDAGraph()
            # other threads may pin memory meanwhile
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                self.compute(made(held))
        self.graphs[kind] = (graph, held)

    @contextmanager
    def compiled_encoder(self) -> Iterator[None]:
        """While this is open, the encoder is compiled, the larger part of a step; the heads, which
        differ from model to model, are not."""
        encoder = self.model.encoder
        if self.compiling:
            torch._dynamo.config.recompile_limit = 64  # each learner has an encoder of its own
            encoder.forward = torch.compile(encoder.forward, dynamic=False)
        try:
            yield
        finally:
            vars(encoder).pop("forward", None)

    def step(self, kind: str, batch: Batch, made: Callable[[Batch], Batch] | None = None) -> None:
        """A step on a batch of a kind that was recorded; it is queued, and not waited for."""
        if self.stream is None:
            self.compute(made(batch) if made else batch)
            return
        graph, held = self.graphs[kind]
        with torch.cuda.stream(self.stream):
            for name, value in batch.items():
                held[name].copy_(value, non_blocking=True)
            graph.replay()

    def repeat(self, kind: str, made: Callable[[Batch], Batch], held: Batch) -> None:
        """A step that finds its batch by the number of the step."""
        self.step(kind, {} if self.stream else held, made)

    def wait(self) -> None:
        """Until its steps are done."""
        if self.stream is not None:
            self.stream.synchronize()
            torch.cuda.current_stream().synchronize()

    def taken_loss(self, steps: int) -> float:
        """The mean loss of the last steps; waits for them."""
        self.wait()
        mean = self.loss.item() / max(steps, 1)
        self.loss.zero_()
        self.wait()
        return mean

    @torch.no_grad()
    def weights(self) -> dict[str, Tensor]:
        """A copy, where the model is."""
        self.wait()
        copies = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.wait()
        return copies
