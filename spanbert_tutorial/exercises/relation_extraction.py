"""Checks for the exercise of `book/tasks/relation_extraction`: F1 of one relation when directions
count."""

from collections.abc import Callable, Sequence

from spanbert_tutorial.exercises.diagnosis import Diagnosis, number, say

Labels = Sequence[str]
Directed = Callable[[Labels, Labels, str], float]


def labels(text: str) -> list[str]:
    """Labels of a short text: c and C are Cause-Effect in its two directions, m and M
    Message-Topic, o is Other."""
    names = {"c": "Cause-Effect(e1,e2)", "m": "Message-Topic(e1,e2)", "o": "Other"}
    turned = {name.upper(): label.replace("(e1,e2)", "(e2,e1)") for name, label in names.items()}
    return [(names | turned)[letter] for letter in text]


CASES = [
    (labels(gold), labels(said), relation)
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


def counts(gold: Labels, said: Labels, relation: str) -> tuple[int, int, int, int]:
    """How often the relation is right, in the wrong direction, said, and wanted; the last two in
    either direction."""
    pairs = list(zip(gold, said, strict=True))
    both = [(one, other) for one, other in pairs if relation in one and relation in other]
    right = sum(one == other for one, other in both)
    return (
        right,
        len(both) - right,
        sum(relation in each for each in said),
        sum(relation in each for each in gold),
    )


def percent(right: float, said: float, wanted: float) -> float:
    """F1 of counts; 0 where nothing is right."""
    return 200 * right / (said + wanted) if right else 0.0


def directed_f1(gold: Labels, said: Labels, relation: str) -> float:
    """The official F1 of one relation."""
    right, _, told, wanted = counts(gold, said, relation)
    return percent(right, told, wanted)


def of_two_classes(gold: Labels, said: Labels, relation: str) -> float:
    """The mean of the F1 of each direction, as if they were two classes."""
    return sum(directed_f1(gold, said, f"{relation}({order})") for order in ("e1,e2", "e2,e1")) / 2


def with_counts(formula: Callable[[int, int, int, int], float]) -> Directed:
    """A mistake as a formula of right, wrong direction, said and wanted."""
    return lambda gold, said, relation: formula(*counts(gold, said, relation))


def share(part: float, whole: float) -> float:
    """In percent; a share of nothing is 0."""
    return 100 * part / whole if whole else 0.0


def no_false_alarms(gold: Labels, said: Labels, relation: str) -> float:
    """Counts what was said only where the relation is wanted."""
    right, wrong, _, wanted = counts(gold, said, relation)
    return percent(right, right + wrong, wanted)


# --- the likely mistakes ------------------------------------------------------------

MISTAKES: list[tuple[Directed, str]] = [
    (
        with_counts(lambda right, wrong, said, wanted: percent(right + wrong, said, wanted)),
        "you count an answer with the wrong direction as right. Compare the whole labels.",
    ),
    (
        of_two_classes,
        "you score each direction as a class of its own and take the mean. The official scorer "
        "has one score per relation, which counts both directions together.",
    ),
    (
        with_counts(lambda right, wrong, said, wanted: percent(right, said - wrong, wanted)),
        "answers with the wrong direction count only once in your sum of predicted and gold. They "
        "count in both.",
    ),
    (
        with_counts(
            lambda right, wrong, said, wanted: percent(right, said - wrong, wanted - wrong)
        ),
        "you leave out the answers with the wrong direction. They count as predicted and as gold.",
    ),
    (
        no_false_alarms,
        "you count predictions only where gold has the relation. A prediction where gold has "
        "another label costs precision.",
    ),
    (
        lambda gold, said, relation: directed_f1(gold, said, f"{relation}(e1,e2)"),
        "you count only the direction (e1,e2). Take both directions together.",
    ),
    (
        with_counts(lambda right, wrong, said, wanted: share(right, said)),
        "this is the precision. F1 is 2 · right / (predicted + gold).",
    ),
    (
        with_counts(lambda right, wrong, said, wanted: share(right, wanted)),
        "this is the recall. F1 is 2 · right / (predicted + gold).",
    ),
    (
        with_counts(
            lambda right, wrong, said, wanted: (share(right, said) + share(right, wanted)) / 2
        ),
        "this is the plain mean of precision and recall. F1 is 2 · right / (predicted + gold).",
    ),
    (
        with_counts(lambda right, wrong, said, wanted: percent(right, said, wanted) / 100),
        "this is a fraction between 0 and 1. Give it in percent.",
    ),
]


diagnose_directed = Diagnosis(
    cases=CASES,
    where=lambda gold, predicted, relation: f"for the gold labels {' '.join(gold)} and {relation}",
    read=number,
    returns="one number, the F1 in percent",
    hint=lambda error, *case: (
        "If nothing is right, F1 is 0." if isinstance(error, ZeroDivisionError) else ""
    ),
    right=directed_f1,
    mistakes=MISTAKES,
    correct="a wrong direction counts as predicted, but not as right.",
)


def check_directed(attempt: Directed) -> None:
    """Prints whether `attempt(gold, predicted, relation)` gives the F1 of the relation in percent,
    directions counted."""
    say(diagnose_directed(attempt))
