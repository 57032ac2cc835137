"""Check for the exercise of `book/spanbert/pretraining_spanbert`."""

from spanbert_tutorial.exercises.diagnosis import Check

Parts = list[float | None]
# −log P of each masked token by the masked language model head, and by the boundary head where the
# token has a row.
CASES = [
    ([1.0, 2.0, 3.0, 4.0], [0.5, 1.5, None, None]),
    ([2.0, 2.0], [None, None]),
    ([0.7, 1.9, 2.3], [1.1, 0.4, 3.6]),
]


def real(sbo: Parts) -> list[float]:
    return [part for part in sbo if part is not None]


def paper_loss(mlm: list[float], sbo: Parts) -> float:
    """The mean over chosen tokens of both parts; a token without a boundary row has only the first
    (SpanBERT §3.2)."""
    return (sum(mlm) + sum(real(sbo))) / len(mlm)


#: Prints whether `attempt(mlm, sbo)` is SpanBERT's loss of a block.
check_loss = Check(
    CASES,
    paper_loss,
    {
        "you divide the boundary part by the number of its own tokens. The paper divides both by "
        "the number of masked tokens.": lambda mlm, sbo: (
            sum(mlm) / len(mlm) + sum(real(sbo)) / max(1, len(real(sbo)))
        ),
        "you leave out the boundary part. SpanBERT adds it to the first part.": lambda mlm, sbo: (
            sum(mlm) / len(mlm)
        ),
        "this is the sum. Divide by the number of masked tokens.": lambda mlm, sbo: (
            sum(mlm) + sum(real(sbo))
        ),
    },
    "each masked token adds both of its parts.",
    returns="one number",
    read=float,
)
