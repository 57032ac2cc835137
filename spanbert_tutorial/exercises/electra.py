"""Checks for the exercise of `book/relatives/electra`."""

from collections.abc import Callable
from itertools import product
from textwrap import fill

import numpy as np

Answer = tuple[np.ndarray, np.ndarray, np.ndarray]

# original, selected, sampled, real: a lucky sample, one that is not asked for, padding at the end.
CASES = [
    ([11, 12, 13, 11, 14, 0], [1, 0, 1, 0, 0, 0], [11, 15, 16, 17, 14, 18], [1, 1, 1, 1, 1, 0]),
    ([21, 22, 23, 24], [0, 1, 0, 1], [30, 22, 31, 25], [1, 1, 1, 1]),
    ([5, 6, 7, 0, 0], [0, 0, 0, 0, 0], [8, 9, 7, 0, 4], [1, 1, 1, 0, 0]),
    ([5, 6, 7, 8, 9], [1, 1, 1, 1, 1], [9, 8, 7, 6, 5], [1, 1, 1, 1, 1]),
]

RIGHT = {"lucky": "original", "sense": "replaced", "where": "selected", "scored": "real"}
# A setting of `replace_with` that is wrong, and what to say.
MISTAKES = {
    ("lucky", "replaced"): "a sample that equals the original counts as replaced. It counts as original: compare ids, "
    "do not ask which token was chosen",
    ("sense", "original"): "the labels are the wrong way round. True stands for replaced",
    ("where", "everywhere"): "samples went to tokens that were not chosen. Use a sample only where `selected` is True",
    ("scored", "selected"): "only the chosen tokens are scored. That is the masked language model's loss; "
    "the discriminator is asked about every real token",
    ("scored", "all"): "padding is scored, too. Leave out what is not `real`",
    ("scored", "replaced"): "only the replaced tokens are scored. The discriminator is asked about every real token",
}


def check_replace(attempt: Callable[..., Answer]) -> None:
    """Prints whether `attempt(original, selected, sampled, real)` gives the discriminator's ids, labels and scored
    tokens."""
    print(fill(diagnose_replace(attempt), width=68))


def diagnose_replace(attempt: Callable[..., Answer]) -> str:
    """One sentence: correct, or the likely mistakes."""
    answers = []
    for case in CASES:
        given = arrays(case)
        answer = attempt(*given)
        if answer is None:
            return "Not yet: the function returns nothing. End it with `return ids, replaced, scored`."
        if not isinstance(answer, tuple | list) or len(answer) != 3:
            return "Not yet: three arrays are wanted: ids, replaced, scored."
        if any((now != then).any() for now, then in zip(given, arrays(case), strict=True)):
            return "Not yet: an input was changed in place, and the labels need the originals. Work on a copy."
        answer = [np.asarray(part) for part in answer]
        if any(part.shape != given[0].shape for part in answer):
            return "Not yet: ids, replaced and scored need one entry for each token of the input, chosen or not."
        answers.append([part.astype(int).tolist() for part in answer])
    wrong = _fewest_mistakes(answers)
    if wrong:
        return f"Not yet: {'; and '.join(MISTAKES[mistake] for mistake in wrong)}."
    for case, answer in zip(CASES, answers, strict=True):
        wanted = replace_with(*arrays(case), **RIGHT)
        if answer != wanted:
            return (f"Not yet: for original {case[0]}, selected {case[1]}, sampled {case[2]}, real {case[3]}, wanted "
                    f"is {wanted}, and you say {answer}.")  # fmt: skip
    return "Correct: samples at chosen places, a lucky one counts as original, and every real token is scored."


def arrays(case: tuple) -> list[np.ndarray]:
    """New arrays of one case: original, selected, sampled, real."""
    original, selected, sampled, real = case
    return [np.array(original), np.array(selected, dtype=bool), np.array(sampled), np.array(real, dtype=bool)]


def _fewest_mistakes(answers: list) -> tuple:
    """The smallest set of mistakes that explains all answers; empty when none does or all are right."""
    choices = [[RIGHT[name], *(value for key, value in MISTAKES if key == name)] for name in RIGHT]
    combinations = [tuple(zip(RIGHT, values, strict=True)) for values in product(*choices)]
    for settings in sorted(combinations, key=lambda settings: len(set(settings) - set(RIGHT.items()))):
        if [replace_with(*arrays(case), **dict(settings)) for case in CASES] == answers:
            return tuple(setting for setting in settings if setting in MISTAKES)
    return ()


def replace_with(
    original: np.ndarray, selected: np.ndarray, sampled: np.ndarray, real: np.ndarray,
    *, lucky: str, sense: str, where: str, scored: str,
) -> list[list[int]]:  # fmt: skip
    """The exercise's answer, right or with mistakes, as lists of numbers."""
    ids = np.where(selected if where == "selected" else np.ones_like(selected), sampled, original)
    replaced = ids != original if lucky == "original" else selected.copy()
    asked = {"real": real, "selected": selected, "all": np.ones_like(real), "replaced": replaced}[scored]
    labels = replaced if sense == "replaced" else ~replaced
    return [ids.tolist(), labels.astype(int).tolist(), asked.astype(int).tolist()]
