"""Checks for the exercise of `book/spanbert/pretraining_spanbert`."""

from collections.abc import Callable

from spanbert_tutorial.exercises.diagnosis import Diagnosis, number, say

Loss = Callable[[list[float], list[float | None]], float]

# −log P of each masked token by the masked language model head, and by the boundary head where the
# token has a row.
CASES = [
    ([1.0, 2.0, 3.0, 4.0], [0.5, 1.5, None, None]),
    ([2.0, 2.0], [None, None]),
    ([0.7, 1.9, 2.3], [1.1, 0.4, 3.6]),
]


def paper_loss(mlm: list[float], sbo: list[float | None]) -> float:
    """The mean over chosen tokens of both parts; a token without a boundary row has only the first
    (SpanBERT §3.2)."""
    return (sum(mlm) + sum(part for part in sbo if part is not None)) / len(mlm)


def parts(sbo: list[float | None]) -> list[float]:
    return [part for part in sbo if part is not None]


MISTAKES = [
    (
        lambda mlm, sbo: sum(mlm) / len(mlm),
        "you leave out the boundary part. SpanBERT adds it to the first part.",
    ),
    (
        lambda mlm, sbo: sum(parts(sbo)) / len(mlm),
        "you leave out the first part. The boundary objective is added to the MLM loss and does not "
        "replace it.",
    ),
    (
        lambda mlm, sbo: (
            sum(mlm) / len(mlm) + (sum(parts(sbo)) / len(parts(sbo)) if parts(sbo) else 0)
        ),
        "you divide the boundary part by the number of its own tokens. The paper divides both by "
        "the number of masked tokens.",
    ),
    (
        lambda mlm, sbo: sum(mlm) / len(mlm) + sum(parts(sbo)) / (len(parts(sbo)) + 1),
        "you divide the boundary part by its own tokens plus one. The released code does that, "
        "the paper does not.",
    ),
    (
        lambda mlm, sbo: sum(mlm) + sum(parts(sbo)),
        "this is the sum. Divide by the number of masked tokens.",
    ),
    (
        lambda mlm, sbo: (sum(mlm) + sum(parts(sbo))) / (len(mlm) + len(parts(sbo))),
        "you count the two parts of a token as two tokens. Divide by the number of masked tokens.",
    ),
]


diagnose_loss = Diagnosis(
    cases=CASES,
    where=lambda mlm, sbo: f"for mlm = {mlm} and sbo = {sbo}",
    read=number,
    returns="one number",
    right=paper_loss,
    mistakes=MISTAKES,
    correct="each masked token adds both of its parts.",
)


def check_loss(attempt: Loss) -> None:
    """Prints whether `attempt(mlm, sbo)` is SpanBERT's loss of a block."""
    say(diagnose_loss(attempt))
