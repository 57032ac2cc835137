"""Checks for the exercises of `book/tasks/classification`."""

from collections.abc import Callable, Iterable, Sequence

from spanbert_tutorial.exercises.diagnosis import Diagnosis, say

Vector = Sequence[float]
Mean = Callable[[Sequence[Vector], Sequence[str]], Vector]

INPUTS = [
    ([[9.0, 1.0], [2.0, 4.0], [4.0, 0.0], [7.0, 7.0]], ["[CLS]", "it", "rained", "[SEP]"]),
    ([[1.0, 0.0], [3.0, 3.0], [5.0, 2.0]], ["[CLS]", "rain", "[SEP]"]),
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
    (
        [[3.0, 8.0], [6.0, 2.0], [1.0, 1.0], [5.0, 9.0], [5.0, 0.0]],
        ["[CLS]", "rain", "and", "rain", "[SEP]"],
    ),
    (
        [[8.0, 8.0], [2.0, 5.0], [8.0, 2.0], [2.0, 5.0], [1.0, 6.0]],
        ["[CLS]", "very", "very", "late", "[SEP]"],
    ),
]
SPECIAL = "[CLS]", "[SEP]", "[PAD]"


def mean_over(
    states: Sequence[Vector], chosen: Sequence[bool], divisor: float | None = None
) -> Vector:
    """The sum of the chosen states, divided by their number or by `divisor`."""
    rows = [state for state, wanted in zip(states, chosen, strict=True) if wanted]
    return [sum(values) / (divisor or len(rows)) for values in zip(*rows, strict=True)]


def mean_state(states: Sequence[Vector], tokens: Sequence[str]) -> Vector:
    """The mean over the text's own tokens."""
    return mean_over(states, [token not in SPECIAL for token in tokens])


def between(tokens: Sequence[str], end: int) -> list[bool]:
    """True at the positions after [CLS] and before `end`."""
    return [0 < place < end for place in range(len(tokens))]


def first_of_each(values: Iterable, tokens: Sequence[str]) -> list[bool]:
    """True where a text's own token has a value that none before it has."""
    seen = set()
    chosen = []
    for value, token in zip(values, tokens, strict=True):
        chosen.append(token not in SPECIAL and value not in seen)
        seen |= {value} if chosen[-1] else set()
    return chosen


# --- the likely mistakes ------------------------------------------------------------

MISTAKES: list[tuple[Mean, str]] = [
    (
        lambda states, tokens: mean_over(states, [True] * len(tokens)),
        "you take all positions. [CLS], [SEP] and [PAD] are not tokens of the text.",
    ),
    (
        lambda states, tokens: mean_over(states, [token != "[PAD]" for token in tokens]),
        "[CLS] and [SEP] are in your mean. They are not tokens of the text.",
    ),
    (
        lambda states, tokens: mean_over(
            states, [token not in ("[CLS]", "[SEP]") for token in tokens]
        ),
        "[PAD] is in your mean. So the same sentence would get another vector in another batch.",
    ),
    (
        lambda states, tokens: mean_over(
            states, [token not in ("[SEP]", "[PAD]") for token in tokens]
        ),
        "[CLS] is in your mean. It is not a token of the text.",
    ),
    (
        lambda states, tokens: mean_over(
            states, [token not in ("[CLS]", "[PAD]") for token in tokens]
        ),
        "[SEP] is in your mean. It is not a token of the text.",
    ),
    (
        lambda states, tokens: mean_over(
            states, [token not in SPECIAL for token in tokens], len(tokens)
        ),
        "you divide by the number of positions. Divide by the number of tokens that you added.",
    ),
    (
        lambda states, tokens: mean_over(states, [token not in SPECIAL for token in tokens], 1.0),
        "this is the sum. Divide it by the number of tokens.",
    ),
    (
        lambda states, tokens: mean_over(states, between(tokens, tokens.index("[SEP]"))),
        "you stop at the first [SEP]. A pair has a second sentence after it.",
    ),
    (
        lambda states, tokens: mean_over(
            states, between(tokens, len(tokens) - 1 - tokens[::-1].index("[SEP]"))
        ),
        "the [SEP] between two sentences is in your mean. It is not a token of the text.",
    ),
    (
        lambda states, tokens: mean_over(states, between(tokens, len(tokens) - 1)),
        "you leave out only the first and the last position. [SEP] may also be in the middle, "
        "and [PAD] at the end.",
    ),
    (
        lambda states, tokens: mean_over(states, [token.isalpha() for token in tokens]),
        "you keep only tokens made of letters. A full stop, ##s and [UNK] are tokens of the "
        "text, too.",
    ),
    (
        lambda states, tokens: mean_over(
            states, [token.removeprefix("##").isalpha() for token in tokens]
        ),
        "you keep only tokens made of letters and ##. A full stop and [UNK] are tokens of the "
        "text, too.",
    ),
    (
        lambda states, tokens: mean_over(states, [token[0] not in "[#" for token in tokens]),
        "you leave out all tokens that begin with [ or #. Only [CLS], [SEP] and [PAD] are not "
        "tokens of the text.",
    ),
    (
        lambda states, tokens: mean_over(states, [not token.startswith("[") for token in tokens]),
        "you leave out [UNK]. It represents a word of the text, so it counts.",
    ),
    (
        lambda states, tokens: mean_over(
            states, [token not in SPECIAL and token[:2] != "##" for token in tokens]
        ),
        "you leave out tokens that begin with ##. They are tokens of the text, too.",
    ),
    (
        lambda states, tokens: mean_over(states, first_of_each(map(tuple, states), tokens)),
        "equal states count only once in your mean. Let each position count.",
    ),
    (
        lambda states, tokens: mean_over(states, first_of_each(tokens, tokens)),
        "a token that occurs twice counts only once in your mean. Let each position count.",
    ),
    (
        lambda states, tokens: mean_over(states, first_of_each(tokens[::-1], tokens[::-1])[::-1]),
        "a token that occurs twice counts only once in your mean (its last state). Let each "
        "position count.",
    ),
    (
        lambda states, tokens: states[0],
        "this is C, the state of [CLS]. Take the mean of the tokens' states.",
    ),
]


diagnose_mean = Diagnosis(
    cases=INPUTS,
    where=lambda states, tokens: f"for the tokens {' '.join(tokens)}",
    read=lambda value, *case: [float(each) for each in value],
    returns="a list of numbers, as long as a state",
    right=mean_state,
    mistakes=MISTAKES,
    correct="only the tokens of the text count, each once.",
)


def check_mean(attempt: Mean) -> None:
    """Prints whether `attempt(states, tokens)` gives the mean of the states of the text's own
    tokens."""
    say(diagnose_mean(attempt))
