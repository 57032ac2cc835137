"""Checks for the exercise of `book/tasks/released_spanbert`."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from spanbert_tutorial.exercises.diagnosis import Diagnosis, combined, say

Clusters = list[list[tuple[int, int]]]

STOP = {"a", "in", "is", "of", "the", "to"}
MAX_WORDS = 10

# The Dead Sea, a word whose copies are taken, copies that overlap, stop words, capitals, a long run
CASES = [
    (text.split(), STOP)
    for text in (
        "The Dead Sea is a salt lake . Is the Dead Sea a sea of salt ?",
        "big red fox , big red fox , fox",
        "go go go go , go",
        "to the sea , to the sea , to the lake",
        "Sea , sea , sea",
        "one two three four five six seven eight nine ten , "
        "one two three four five six seven eight nine ten",
        "",
    )
]

# A setting of `clusters_with` that is wrong, and what to say.
MISTAKES = {
    (
        "overlap",
        True,
    ): "you put a word into two spans. Remember which words are taken, also by copies of the same run",
    (
        "shortest",
        True,
    ): "you let short spans choose first, so names come apart. Let the longest choose first",
    (
        "single",
        True,
    ): "you keep a cluster with one span only, so no copy is left to point at. Count the spans "
    "after you have left out those with taken words",
    (
        "punctuation",
        True,
    ): "you let a span hold punctuation. Take runs of words for which `word.isalnum()` is true",
    (
        "stop_words",
        True,
    ): "you let a cluster have stop words alone. At least one word must be no stop word",
    ("lower", True): "you count copies that differ in a capital letter. Compare letter by letter",
}
RIGHT = dict.fromkeys((name for name, _ in MISTAKES), False)


def _clusters(answer: Any, *case: object) -> Clusters:
    return sorted(sorted((int(first), int(last)) for first, last in cluster) for cluster in answer)


def clusters_with(words: list[str], stop: set[str], **changed: bool) -> Clusters:
    """The exercise's answer. changed: settings that differ from `RIGHT`."""
    settings = RIGHT | changed
    found = defaultdict(list)  # a run of words -> where it begins
    for first in range(len(words)):
        for end in range(first + 1, min(first + MAX_WORDS, len(words)) + 1):
            run = tuple(words[first:end])
            plain = settings["punctuation"] or all(word.isalnum() for word in run)
            asks = settings["stop_words"] or not stop.issuperset(map(str.lower, run))
            if plain and asks:
                found[tuple(map(str.lower, run)) if settings["lower"] else run].append(first)
    clusters = []
    taken: set[int] = set()
    for run in sorted(found, key=len, reverse=not settings["shortest"]):
        spans: list[tuple[int, int]] = []
        used: set[int] = set()
        for first in found[run]:
            places = range(first, first + len(run))
            if settings["overlap"] or not (taken | used).intersection(places):
                spans.append((first, places[-1]))
                used.update(places)
        if len(found[run]) > 1 and len(spans) > (0 if settings["single"] else 1):
            clusters.append(spans)
            taken |= used
    return sorted(map(sorted, clusters))


diagnose_clusters = Diagnosis(
    cases=CASES,
    where=lambda words, stop: f'for "{" ".join(words)}"',
    read=_clusters,
    returns="a list of clusters, each a list of (first, last), like [[(1, 2), (10, 11)]]",
    right=clusters_with,
    mistakes=list(combined(clusters_with, MISTAKES, max_count=3)),
    correct="the longest choose first, no word is in two spans, and each cluster has two or more.",
)


def check_clusters(attempt: Callable[[list[str], set[str]], Clusters]) -> None:
    """Prints whether `attempt(words, stop)` gives the clusters, each a list of (first, last), in
    any order."""
    say(diagnose_clusters(attempt))
