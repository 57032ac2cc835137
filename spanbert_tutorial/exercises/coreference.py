"""Check for the exercise of `book/tasks/coreference`: B³."""

from spanbert_tutorial.exercises.diagnosis import Check
from spanbert_tutorial.tasks import coreference_scores

Clusters = list[list[str]]

CASES = [
    (list(map(list, key)), list(map(list, response)))
    for key, response in [
        (["12345", "67", "89ABC"], ["12345", "6789ABC"]),
        (["12345", "67", "89ABC"], ["1234589ABC", "67"]),
        (["abcd"], ["ab", "cd"]),
        (["abc", "defg"], ["ab", "cd", "fghi"]),
        (["ab", "c"], ["ab"]),
        (["ab"], ["ab", "c"]),
        (["ab"], ["cd"]),
        (["ab"], []),
        ([], ["ab"]),
        ([], []),
    ]
]


def b_cubed(key: Clusters, response: Clusters) -> tuple[float, float]:
    precision, recall, _ = coreference_scores.score(key, response)["b_cubed"]
    return precision / 100, recall / 100


def of_clusters(one: Clusters, other: Clusters) -> float:
    means = [
        sum(len(set(cluster) & set(found)) ** 2 for found in other) / len(cluster) ** 2
        for cluster in one
    ]
    return sum(means) / len(means) if means else 0.0


#: Prints whether `attempt(key, response)` gives precision and recall of B³, each from 0 to 1.
check_b_cubed = Check(
    CASES,
    b_cubed,
    {
        "you swapped precision and recall. The recall "
        "is a mean over the mentions of the key.": lambda key, response: b_cubed(response, key),
        "you take the mean of the clusters' means. Each mention counts the same, so large "
        "clusters weigh more.": lambda key, response: (
            of_clusters(response, key),
            of_clusters(key, response),
        ),
        "you give 1 to two empty sides. They get 0 here, as "
        "in the official scorer.": lambda *case: (1.0, 1.0) if case == ([], []) else b_cubed(*case),
    },
    "each mention of the key counts once in the recall, each of the response once in the "
    "precision.",
    returns="two numbers, precision and recall",
)
