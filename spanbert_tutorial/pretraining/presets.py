"""Settings of pre-training runs, one preset a size, with settings that leave the plateau. Chapter:
`book/spanbert/pretraining_spanbert`."""

from dataclasses import dataclass, replace
from typing import Any

from spanbert_tutorial.engine.device import steps_between_readings
from spanbert_tutorial.errors import is_number, require, shown
from spanbert_tutorial.pretraining.objectives import objective_or_mixture
from spanbert_tutorial.pretraining.train import TrainingConfig


@dataclass(frozen=True)
class Run:
    """Settings of a run. max_length: n with [CLS] and [SEP]; batch_size in blocks; accumulate: batches
    of a step.

    initializer_range: deviation of the first weights; BERT's 0.02 suits a width of 768, narrow
    layers start too flat with it and stay on the plateau for longer. sinusoidal_positions: whether
    the position table starts from sinusoids. Both are measured in the chapter
    `book/bert/pretraining`. by_length: batches of equally long blocks, see `batches`. warmup: share
    of the steps in which the learning rate rises, at least one step. dropout, beta2, epsilon,
    weight_decay: no dropout, and RoBERTa's second Adam beta, suit short runs in which a block is
    rarely seen twice.
    """

    objective: str = "span+sbo"
    size: str = "tiny"
    steps: int = 1_000
    max_length: int = 64
    batch_size: int = 32
    peak_learning_rate: float = 3e-3
    seed: int = 0
    initializer_range: float = 0.06
    sinusoidal_positions: bool = True
    by_length: bool = False
    accumulate: int = 1
    warmup: float = 0.1
    dropout: float = 0.0
    beta2: float = 0.98
    epsilon: float = 1e-6
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        for name in ("steps", "max_length", "batch_size", "accumulate", "seed"):
            value, least = getattr(self, name), int(name != "seed")
            told = f"{name} is {shown(value)}: give a whole number of at least {least}."
            require(hasattr(value, "__index__") and value >= least, told)
        told = f"peak_learning_rate is {shown(self.peak_learning_rate)}: give a number above 0."
        require(is_number(self.peak_learning_rate) and self.peak_learning_rate > 0, told)
        told = f"warmup is {shown(self.warmup)}: give a share of the steps, such as 0.1."
        require(is_number(self.warmup) and 0 <= self.warmup <= 1, told)

    def recipe(self) -> TrainingConfig:
        return TrainingConfig(
            self.steps,
            self.peak_learning_rate,
            warmup_steps=max(1, int(self.warmup * self.steps)),
            accumulate=self.accumulate,
            betas=(0.9, self.beta2),
            epsilon=self.epsilon,
            weight_decay=self.weight_decay,
            log_every=steps_between_readings(),
        )


Settings = dict[str, Any]  # of fields of `Run`

AS_BERT: Settings = {"initializer_range": 0.02, "sinusoidal_positions": False, "by_length": True}
# The initializer range is a little above BERT's 0.02: the model is narrower than base.
MINI: Settings = {"initializer_range": 0.03, "by_length": True}
MIDDLE: Settings = {"max_length": 128, "batch_size": 64}
# BERT §A.2 and SpanBERT §4.2: 256 inputs of at most 512 tokens a step, in parts that a graphics
# card holds (here as many tokens, in inputs of about equal length), and a warm-up of 10,000 steps.
AS_PAPERS: Settings = AS_BERT | {
    "peak_learning_rate": 1e-4,
    "max_length": 512,
    "dropout": 0.1,
    "beta2": 0.999,
}

BERT: Settings = {"steps": 1_000_000, "warmup": 1 / 100, "epsilon": 1e-6, "weight_decay": 0.01}
SPANBERT: Settings = {"steps": 2_400_000, "warmup": 1 / 240, "epsilon": 1e-8, "weight_decay": 0.1}

PAPERS = {"token": BERT, "span": SPANBERT}  # by the unit of the objective, for the papers' sizes


# What each size starts from; see `preset`.
RUNS = {
    "tiny": Run(),
    "mini": Run(size="mini", steps=5_000, peak_learning_rate=1.5e-3, **MIDDLE, **MINI),
    "small": Run(size="small", steps=50_000, peak_learning_rate=5e-4, **MIDDLE, **AS_BERT),
    "base": Run(size="base", batch_size=32, accumulate=8, **AS_PAPERS),
    "large": Run(size="large", batch_size=16, accumulate=16, **AS_PAPERS),
}


def preset(size: str, objective: str) -> Run:
    """What a run of this size and objective starts from; the command's options change single
    values. base and large have SpanBERT's recipe where spans are hidden, else BERT's. Raises
    InputError for an unknown size or objective."""
    unit = objective_or_mixture(objective).unit
    require(size in RUNS, f'the config "{size}" is unknown: use one of {", ".join(RUNS)}.')
    recipe: Settings = PAPERS[unit] if size in ("base", "large") else {}
    return replace(RUNS[size], objective=objective, **recipe)
