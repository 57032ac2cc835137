"""Check for the exercise of `book/tasks/relation_extraction`: F1 of one relation when directions
count."""

from collections.abc import Sequence

from spanbert_tutorial.exercises.diagnosis import Check

Labels = Sequence[str]
NAMES = {
    "c": "Cause-Effect(e1,e2)",
    "C": "Cause-Effect(e2,e1)",
    "m": "Message-Topic(e1,e2)",
    "M": "Message-Topic(e2,e1)",
    "o": "Other",
}
CASES = [
    ([NAMES[letter] for letter in gold], [NAMES[letter] for letter in said], relation)
    for gold, said, relation in (
        ("ccCo", "cCCc", "Cause-Effect"),
        ("cccC", "ccCo", "Cause-Effect"),
        ("cmmMo", "cmMMm", "Message-Topic"),
        ("mmoc", "oocc", "Message-Topic"),
        ("CCcmo", "CCmCo", "Cause-Effect"),
        ("cC", "Cc", "Cause-Effect"),
        ("oomM", "mMoM", "Message-Topic"),
    )
]


def directed_f1(gold: Labels, said: Labels, relation: str, *, way: str = "") -> float:
    """The official F1 of one relation. way: how its direction begins, where only one counts."""
    relation += way
    right = sum(one == other and relation in one for one, other in zip(gold, said, strict=True))
    both = sum(relation in label for label in [*gold, *said])
    return 200 * right / both if right else 0.0


def bare(labels: Labels) -> list[str]:
    return [label.split("(")[0] for label in labels]


#: Prints whether `attempt(gold, predicted, relation)` gives its F1 in percent, directions counted.
check_directed = Check(
    CASES,
    directed_f1,
    {
        "you count an answer with the wrong direction as right. Compare the "
        "whole labels.": lambda gold, said, relation: directed_f1(bare(gold), bare(said), relation),
        "you score each direction as a class of its own and take the mean. The official scorer "
        "has one score per relation, which counts both directions together.": lambda *case: (
            (directed_f1(*case, way="(e1") + directed_f1(*case, way="(e2")) / 2
        ),
        "this is a fraction between 0 and 1. Give it in percent.": lambda *case: (
            directed_f1(*case) / 100
        ),
    },
    "a wrong direction counts as predicted, but not as right.",
    returns="one number, the F1 in percent",
    read=float,
)
