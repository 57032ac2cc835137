"""Check for the exercise of `book/tasks/released_spanbert`."""

from spanbert_tutorial.exercises.diagnosis import Check, plain
from spanbert_tutorial.relatives.splinter import disjoint, runs_of

Clusters = list[list[tuple[int, int]]]
STOP = {"a", "in", "is", "of", "the", "to"}

# The Dead Sea, a word whose copies are taken, copies that overlap, stop words, capitals, a long run
TEXTS = (
    "The Dead Sea is a salt lake . Is the Dead Sea a sea of salt ?",
    "big red fox , big red fox , fox",
    "go go go go , go",
    "to the sea , to the sea , to the lake",
    "Sea , sea , sea",
    "1 2 3 4 5 6 7 8 9 10 , 1 2 3 4 5 6 7 8 9 10",
    "",
)


def clusters(words: list[str], stop: set[str], longest_first: bool = True) -> Clusters:
    """The exercise's answer, or with short runs choosing first."""
    runs = runs_of(words, stop)
    return disjoint(runs, sorted(runs, key=len, reverse=longest_first))


ALONE = "you let a cluster have stop words alone. At least one word must be no stop word"

#: Prints whether `attempt(words, stop)` gives the clusters, lists of (first, last), in any order.
check_clusters = Check(
    [(text.split(), STOP) for text in TEXTS],
    clusters,
    {
        f"{ALONE}.": lambda words, stop: clusters(words, set()),
        f"{ALONE}; and you count copies that differ in a capital letter. Compare letter by letter.": (
            lambda words, stop: clusters([word.lower() for word in words], set())
        ),
        "you let short spans choose first, so names come apart. Let "
        "the longest choose first.": lambda words, stop: clusters(words, stop, longest_first=False),
    },
    "the longest choose first, no word is in two spans, and each cluster has two or more.",
    returns="a list of clusters, each a list of (first, last), like [[(1, 2), (10, 11)]]",
    read=lambda value: sorted(sorted(plain(span) for span in cluster) for cluster in value),
)
