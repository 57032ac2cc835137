"""What a run predicts: one row of a table for each objective. Chapter:
`book/spanbert/pretraining_spanbert`.

A row names the masking scheme, the unit and shares of the 80/10/10 rule, and the tasks beside the
masked language model. Sources: BERT §3.1; whole words: SpanBERT §6.1; spans and their boundaries:
SpanBERT §3; order: ALBERT §3.1.
"""

from dataclasses import dataclass, replace
from typing import Self

from spanbert_tutorial.bert.auxiliary import AuxiliaryObjective
from spanbert_tutorial.bert.masking import SHARES, MaskingScheme, TokenMasking, WholeWordMasking
from spanbert_tutorial.bert.sentence_pairs import NextSentence, SentenceOrder
from spanbert_tutorial.errors import InputError, shown
from spanbert_tutorial.spanbert.boundary import Boundary, Placebo
from spanbert_tutorial.spanbert.span_masking import SpanMasking


@dataclass(frozen=True)
class Objective:
    """What a run predicts. unit: the 80/10/10 rule is applied once a "token" or once a "span".
    shares: of [MASK] and of random tokens; None replaces every chosen token by [MASK], without a
    draw. tasks: beside the masked language model.
    """

    masking: MaskingScheme
    unit: str
    tasks: tuple[AuxiliaryObjective, ...] = ()
    shares: tuple[float, float] | None = SHARES

    @classmethod
    def named(cls, name: str) -> "Objective":
        """A row of `OBJECTIVES`. Raises InputError for an unknown name."""
        if not isinstance(name, str) or name not in OBJECTIVES:
            told = name if isinstance(name, str) else shown(name)
            raise InputError(
                f'the objective "{told}" is unknown: use one of {", ".join(OBJECTIVES)}.'
            )
        return OBJECTIVES[name]

    @property
    def mask_only(self) -> Self:
        """The same with every chosen token replaced by [MASK], as one measures (80/10/10 is a habit
        for training)."""
        return replace(self, shares=None)

    @property
    def paired(self) -> AuxiliaryObjective | None:
        """The task that reads pairs of segments, if there is one."""
        return next((task for task in self.tasks if task.paired), None)


OBJECTIVES = {
    "mlm": Objective(TokenMasking(), "token"),
    "mlm-wholeword": Objective(WholeWordMasking(), "token"),  # BERT's later masking
    "mlm+nsp": Objective(TokenMasking(), "token", (NextSentence(),)),
    "mlm+sop": Objective(TokenMasking(), "token", (SentenceOrder(),)),
    "span": Objective(SpanMasking(), "span"),
    "span+nsp": Objective(SpanMasking(), "span", (NextSentence(),)),  # a row of SpanBERT's Table 7
    "span+sbo": Objective(SpanMasking(), "span", (Boundary(),)),
    "span+placebo": Objective(SpanMasking(), "span", (Placebo(),)),  # a control of experiments
}
