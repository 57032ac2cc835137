"""Check for the exercise of `book/tasks/real_questions`."""

from collections.abc import Sequence

from spanbert_tutorial.exercises.diagnosis import Check, plain

WORD = [7, 8, 9]


def rest_of_word(word: Sequence[int], i: int) -> list[int]:
    return [position for position in word if position >= i]


#: Prints whether `attempt(word, i)` gives the positions to mask.
check_rule = Check(
    [(WORD, i) for i in WORD] + [([4], 4)],
    rest_of_word,
    {
        "the token that is scored stays visible, and the model "
        "only has to copy it.": lambda word, i: [position for position in word if position > i],
        "you mask what comes before the token. This rule leaves the beginning "
        "of the word in view.": lambda word, i: [position for position in word if position <= i],
        "this is the third rule. "
        "The second leaves the beginning of the word in view.": lambda word, i: word,
    },
    "the token and what follows it in its word are masked.",
    returns="a list of positions",
    read=lambda value: sorted(plain(list(value))),
)
