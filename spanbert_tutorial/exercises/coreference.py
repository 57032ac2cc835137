"""Checks for the exercises of `book/tasks/coreference`."""

from collections.abc import Callable

from spanbert_tutorial.exercises.diagnosis import Diagnosis, array, say
from spanbert_tutorial.tasks import coreference_scores

Clusters = list[list[str]]
Measure = Callable[[Clusters, Clusters], tuple[float, float]]

CASES = [
    (list(map(list, key)), list(map(list, response)))
    for key, response in [
        (["12345", "67", "89ABC"], ["12345", "6789ABC"]),
        (["12345", "67", "89ABC"], ["1234589ABC", "67"]),
        (["abcd"], ["ab", "cd"]),
        (["abc", "defg"], ["ab", "cd", "fghi"]),
        (["ab", "c"], ["ab"]),
        (["ab"], ["ab", "c"]),
        (["ab", "cd"], ["ab", "cd"]),
        (["ab"], ["cd"]),
        (["ab"], []),
        ([], ["ab"]),
        ([], []),
    ]
]


def b_cubed(key: Clusters, response: Clusters) -> tuple[float, float]:
    """Precision and recall of B³, from 0 to 1."""
    pairs = coreference_scores.checked_pairs([(key, response)])
    precision, recall, _ = coreference_scores.triple(pairs, coreference_scores.b_cubed)
    return precision / 100, recall / 100


def _two_numbers(value: object, *case: object) -> tuple[float, float]:
    return tuple(array(value, (2,)).tolist())


def _case_in_words(key: Clusters, response: Clusters) -> str:
    sides = (
        " ".join("{" + "".join(cluster) + "}" for cluster in side) or "nothing"
        for side in (key, response)
    )
    return "for the key {} and the response {}".format(*sides)


def _how_to_go_on(error: Exception, *case: Clusters) -> str:
    if isinstance(error, ZeroDivisionError):
        return "A side may be empty; its score is 0."
    if isinstance(error, StopIteration | IndexError | KeyError):
        return "A mention may occur on one side only; then the two clusters share nothing."
    return ""


# --- the likely mistakes, as measures -----------------------------------------------


def home(mention: str, clusters: Clusters) -> set[str]:
    """The cluster of a mention, empty if it has none."""
    return next((set(cluster) for cluster in clusters if mention in cluster), set())


def share(mention: str, one: Clusters, other: Clusters) -> float:
    """The part of a mention's cluster that is in its other cluster."""
    return len(home(mention, one) & home(mention, other)) / len(home(mention, one))


def over_mentions(one: Clusters, other: Clusters) -> float:
    """The recall of `other` on `one`, as it should be."""
    shares = [share(mention, one, other) for cluster in one for mention in cluster]
    return sum(shares) / len(shares) if shares else 0.0


def over_clusters(one: Clusters, other: Clusters) -> float:
    """The mean of the clusters' means."""
    means = [
        sum(share(mention, one, other) for mention in cluster) / len(cluster) for cluster in one
    ]
    return sum(means) / len(means) if means else 0.0


def over_shared(one: Clusters, other: Clusters) -> float:
    """Only over mentions that stand on both sides."""
    shares = [
        share(mention, one, other) for cluster in one for mention in cluster if home(mention, other)
    ]
    return sum(shares) / len(shares) if shares else 0.0


def missing_is_alone(one: Clusters, other: Clusters) -> float:
    """A mention that the other side lacks counts as a cluster of its own there."""
    return over_mentions(
        one, [*other, *([m] for cluster in one for m in cluster if not home(m, other))]
    )


def not_squared(one: Clusters, other: Clusters) -> float:
    """How many mentions the other side has at all."""
    mentions = [mention for cluster in one for mention in cluster]
    return (
        sum(bool(home(mention, other)) for mention in mentions) / len(mentions) if mentions else 0.0
    )


def links(one: Clusters, other: Clusters) -> float:
    """MUC."""
    found, wanted = coreference_scores.muc(list(map(set, one)), list(map(set, other)))
    return found / wanted if wanted else 0.0


def entities(one: Clusters, other: Clusters) -> float:
    """CEAF-φ4."""
    found, wanted = coreference_scores.ceaf_phi4(list(map(set, one)), list(map(set, other)))
    return found / wanted if wanted else 0.0


def both_sides(recall: Callable[[Clusters, Clusters], float]) -> Measure:
    """Precision and recall of a way to count."""
    return lambda key, response: (recall(response, key), recall(key, response))


def in_percent(key: Clusters, response: Clusters) -> tuple[float, float]:
    """From 0 to 100."""
    precision, recall = b_cubed(key, response)
    return 100 * precision, 100 * recall


def empty_is_right(key: Clusters, response: Clusters) -> tuple[float, float]:
    """Two empty sides agree."""
    return (1.0, 1.0) if not key and not response else b_cubed(key, response)


MISTAKES: list[tuple[Measure, str]] = [
    (
        lambda key, response: b_cubed(response, key),
        "you swapped precision and recall. The recall is a mean over the mentions of the key.",
    ),
    (
        both_sides(over_clusters),
        "you take the mean of the clusters' means. Each mention counts the same, so large "
        "clusters weigh more.",
    ),
    (
        both_sides(over_shared),
        "you skip mentions that only one side has. They stay in the mean, with 0.",
    ),
    (
        both_sides(missing_is_alone),
        "you give credit to a mention that the other side lacks, as if it were a cluster by "
        "itself. It gets 0.",
    ),
    (
        both_sides(not_squared),
        "you count which mentions are found. Each counts only with the fraction of its cluster "
        "that is found with it.",
    ),
    (both_sides(links), "this is MUC, which counts links. B³ counts mentions."),
    (
        both_sides(entities),
        "this is CEAF-φ4, which pairs clusters. In B³ a cluster may count for several.",
    ),
    (
        empty_is_right,
        "you give 1 to two empty sides. They get 0 here, as in the official scorer.",
    ),
    (
        in_percent,
        "this is in percent. Give numbers from 0 to 1.",
    ),
]


diagnose_b_cubed = Diagnosis(
    cases=CASES,
    where=_case_in_words,
    read=_two_numbers,
    returns="two numbers, precision and recall, each from 0 to 1",
    hint=_how_to_go_on,
    right=b_cubed,
    mistakes=MISTAKES,
    correct="each mention of the key counts once in the recall, each of the response once in the "
    "precision.",
)


def check_b_cubed(attempt: Measure) -> None:
    """Prints whether `attempt(key, response)` gives precision and recall of B³, each from 0 to
    1."""
    say(diagnose_b_cubed(attempt))
