"""Check for the first exercise of `book/tasks/classification`."""

from collections.abc import Sequence
from functools import partial

from spanbert_tutorial.exercises.diagnosis import Check

Vector = Sequence[float]
SPECIAL = "[CLS]", "[SEP]", "[PAD]"
CASES = [
    ([[9.0, 1.0], [2.0, 4.0], [4.0, 0.0], [7.0, 7.0]], ["[CLS]", "it", "rained", "[SEP]"]),
    (
        [[0.0, 8.0], [1.0, 2.0], [3.0, 6.0], [2.0, 1.0], [6.0, 6.0], [4.0, 4.0], [4.0, 4.0]],
        ["[CLS]", "the", "river", "rose", "[SEP]", "[PAD]", "[PAD]"],
    ),
    (
        [[5.0, 5.0], [2.0, 0.0], [4.0, 6.0], [8.0, 3.0], [1.0, 7.0], [7.0, 2.0], [6.0, 9.0]],
        ["[CLS]", "it", "rained", "[SEP]", "we", "slept", "[SEP]"],
    ),
    (
        [[2.0, 9.0], [3.0, 1.0], [8.0, 4.0], [0.0, 6.0], [5.0, 7.0], [9.0, 0.0]],
        ["[CLS]", "[UNK]", "garden", "##s", ".", "[SEP]"],
    ),
    ([[8.0, 8.0], [2.0, 5.0], [8.0, 2.0], [2.0, 5.0]], ["[CLS]", "very", "very", "[SEP]"]),
]


def mean(
    states: Sequence[Vector], tokens: Sequence[str], *, left_out: tuple[str, ...] = SPECIAL
) -> Vector:
    """The mean over the text's own tokens, or with other tokens left out."""
    rows = [state for state, token in zip(states, tokens, strict=True) if token not in left_out]
    return [sum(values) / len(rows) for values in zip(*rows, strict=True)]


MISTAKES = {
    "you take all positions. [CLS], [SEP] and [PAD] are not tokens of the text.": partial(
        mean, left_out=()
    ),
    "[CLS] and [SEP] are in your mean. They are not tokens of the text.": partial(
        mean, left_out=("[PAD]",)
    ),
    "[PAD] is in your mean. So the same sentence would "
    "get another vector in another batch.": partial(mean, left_out=("[CLS]", "[SEP]")),
}

#: Prints whether `attempt(states, tokens)` gives the mean of the states of the text's own tokens.
check_mean = Check(
    CASES, mean, MISTAKES, "only the tokens of the text count, each once.", "a list of numbers"
)
