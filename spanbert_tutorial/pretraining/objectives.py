"""What a run predicts: one row of a table for each objective. Chapter:
`book/spanbert/pretraining_spanbert`.

A row names the masking scheme, the unit and shares of the 80/10/10 rule, and the tasks beside the
masked language model. A mixture takes such rows in turn. Sources: BERT §3.1; whole words: SpanBERT
§6.1; spans and their boundaries: SpanBERT §3; order: ALBERT §3.1; mixtures: UL2 §3.1, which takes
its denoisers in turn, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from spanbert_tutorial.bert.auxiliary import AuxiliaryObjective
from spanbert_tutorial.bert.masking import CORRUPTION, MaskingScheme, TokenMasking, WholeWordMasking
from spanbert_tutorial.bert.sentence_pairs import NextSentence, SentenceOrder
from spanbert_tutorial.errors import is_number, require, shown
from spanbert_tutorial.spanbert.boundary_task import Boundary
from spanbert_tutorial.spanbert.span_masking import SpanMasking


@dataclass(frozen=True)
class Objective:
    """What a run predicts. unit: the 80/10/10 rule is applied once a "token" or once a "span".
    probs: of [MASK] and of random tokens; None replaces every chosen token by [MASK], without a
    draw. tasks: beside the masked language model.
    """

    masking: MaskingScheme
    unit: str
    tasks: tuple[AuxiliaryObjective, ...] = ()
    probs: tuple[float, float] | None = CORRUPTION

    @classmethod
    def named(cls, name: str) -> "Objective":
        """A row of `OBJECTIVES`. Raises InputError for an unknown name, and for a mixture."""
        rows = ", ".join(OBJECTIVES)
        require(name in OBJECTIVES, f'the objective "{name}" is unknown: use one of {rows}.')
        return OBJECTIVES[name]

    @property
    def mask_only(self) -> Self:
        """The same with every chosen token replaced by [MASK], as one measures (80/10/10 is a habit
        for training)."""
        return replace(self, probs=None)

    @property
    def paired(self) -> AuxiliaryObjective | None:
        """The task that reads pairs of segments, if there is one."""
        return next((task for task in self.tasks if task.paired), None)


@dataclass(frozen=True)
class Mixture:
    """Objectives that are taken in turn, a batch each. weights: row of `OBJECTIVES` → its share of
    the batches, in any unit. Raises InputError for fewer than two rows, or a weight that is not a
    number above 0."""

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        right = all(is_number(weight) and weight > 0 for weight in self.weights.values())
        told = f"a mixture is {shown(self.weights)}: give two objectives or more, weights above 0."
        require(len(self.weights) > 1 and right, told)

    @property
    def parts(self) -> dict[str, Objective]:
        return {name: Objective.named(name) for name in self.weights}

    @property
    def tasks(self) -> tuple[AuxiliaryObjective, ...]:
        """All tasks of its parts, each once."""
        tasks = {task.name: task for part in self.parts.values() for task in part.tasks}
        return tuple(tasks.values())

    @property
    def unit(self) -> str:
        """ "span" where a part hides spans: it decides the recipe of the papers' sizes."""
        return "span" if any(part.unit == "span" for part in self.parts.values()) else "token"


OBJECTIVES = {
    "mlm": Objective(TokenMasking(), "token"),
    "mlm-wholeword": Objective(WholeWordMasking(), "token"),  # BERT's later masking
    "mlm+nsp": Objective(TokenMasking(), "token", (NextSentence(),)),
    "mlm+sop": Objective(TokenMasking(), "token", (SentenceOrder(),)),
    "span": Objective(SpanMasking(), "span"),
    "span-subword": Objective(SpanMasking(complete_words=False), "span"),  # may break words
    "span+nsp": Objective(SpanMasking(), "span", (NextSentence(),)),  # a row of SpanBERT's Table 7
    "span+sbo": Objective(SpanMasking(), "span", (Boundary(),)),
    "span+sbo+nsp": Objective(SpanMasking(), "span", (Boundary(), NextSentence())),
}

MIXTURES = {"mix": Mixture({"mlm": 1, "span+sbo": 1})}


def objective_or_mixture(name: str) -> Objective | Mixture:
    """A row of `OBJECTIVES` or of `MIXTURES`. Raises InputError for an unknown name."""
    table: dict[str, Objective | Mixture] = {**OBJECTIVES, **MIXTURES}
    told = f'the objective "{name}" is unknown: use one of {", ".join(table)}.'
    require(name in table, told)
    return table[name]
