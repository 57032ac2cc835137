"""Scores of coreference: MUC, B³, CEAF-φ4 and their average; GAP's F1. Chapter:
`book/tasks/coreference`. No torch.

The key is what annotators say, the response what a system says. Both are clusters: collections of
mentions, which may be anything hashable, such as (first word, last word). Sources: MUC (Vilain and
others, 1995), B³ (Bagga and Baldwin, 1998), CEAF (Luo, 2005), and the rules of the official scorer
of CoNLL-2012 (Pradhan and others, 2014), written anew.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from spanbert_tutorial.errors import InputError

Mention = Hashable
Clusters = Collection[Collection[Mention]]
Share = tuple[float, float]  # numerator and denominator
Triple = tuple[float, float, float]  # precision, recall, F1, in percent


def score(key_clusters: Clusters, response_clusters: Clusters) -> dict[str, Triple | float]:
    """{"muc", "b_cubed", "ceaf_phi4": (precision, recall, F1), "average": the mean of the three
    F1}, in percent.

    A share of nothing is 0, as in the official scorer. Clusters of one mention count as they are
    given: MUC passes over them, B³ and CEAF do not (`without_singletons` drops them). Raises
    InputError for a mention that stands twice on one side, and for an empty cluster.
    """
    return score_documents([(key_clusters, response_clusters)])


def score_documents(documents: Iterable[tuple[Clusters, Clusters]]) -> dict[str, Triple | float]:
    """The same over many documents, (key, response) of each: numerators and denominators are added
    up before anything is divided, as in the official scorer. So a long document weighs more than a
    short one."""
    pairs = [(checked(key, "key"), checked(response, "response")) for key, response in documents]
    found: dict[str, Triple | float] = {
        name: triple(pairs, recall) for name, recall in METRICS.items()
    }
    return found | {"average": sum(found[name][2] for name in METRICS) / len(METRICS)}


def mention_score(documents: Iterable[tuple[Clusters, Clusters]]) -> Triple:
    """Precision, recall and F1 of the mentions alone, in percent, whatever cluster they are in."""
    return triple(
        [(checked(key, "key"), checked(response, "response")) for key, response in documents],
        mentions,
    )


def without_singletons(clusters: Clusters) -> list[Collection[Mention]]:
    """The clusters of two mentions or more. OntoNotes, on which the papers report, annotates no
    others."""
    return [cluster for cluster in clusters if len(cluster) > 1]


def checked(clusters: Clusters, side: str) -> list[set[Mention]]:
    """The clusters as sets. Raises InputError for an empty one and for a mention that stands
    twice."""
    sets = [set(cluster) for cluster in clusters]
    seen = set()
    for cluster in map(list, clusters):
        if not cluster:
            raise InputError(
                f"a cluster of the {side} is empty: leave it out, or name its mentions."
            )
        for mention in cluster:
            if mention in seen:
                raise InputError(
                    f"the mention {mention} stands twice in the {side}: give each mention one "
                    f"cluster."
                )
            seen.add(mention)
    return sets


# --- the three metrics: recall, as numerator and denominator; precision is recall with the sides exchanged ---


def muc(key: Sequence[set], response: Sequence[set]) -> Share:
    """Links. A key cluster of n mentions needs n - 1; one is missing for each further part into
    which the response cuts it. A mention that the response lacks is a part of its own."""
    where = {mention: number for number, cluster in enumerate(response) for mention in cluster}
    parts = [
        len({where.get(mention, mention_alone(mention)) for mention in cluster}) for cluster in key
    ]
    return (
        sum(len(cluster) - count for cluster, count in zip(key, parts, strict=True)),
        sum(len(cluster) - 1 for cluster in key),
    )


def mention_alone(mention: Mention) -> tuple[str, Mention]:
    """A name for the part that holds this mention alone; no cluster's number is equal to it."""
    return "alone", mention


def b_cubed(key: Sequence[set], response: Sequence[set]) -> Share:
    """Mentions. Each scores the part of its key cluster that stands in its response cluster; 0 if
    it has none."""
    overlap = overlaps(key, response)
    sizes = np.array([len(cluster) for cluster in key])
    return float((overlap**2 / sizes[:, None]).sum()), int(sizes.sum())


def ceaf_phi4(key: Sequence[set], response: Sequence[set]) -> Share:
    """Entities. Each key cluster gets at most one response cluster and the other way round, so that
    the sum of φ4 = 2 · (mentions that both share) / (mentions of K + mentions of R) is largest;
    what is left over scores 0."""
    sizes = [np.array([len(cluster) for cluster in side], dtype=float) for side in (key, response)]
    phi4 = 2 * overlaps(key, response) / np.add.outer(*sizes)
    return float(phi4[linear_sum_assignment(phi4, maximize=True)].sum()), len(key)


def mentions(key: Sequence[set], response: Sequence[set]) -> Share:
    """Mentions of the key that the response has, too."""
    wanted = set().union(*key)
    said = set().union(*response)
    return len(wanted & said), len(wanted)


def overlaps(key: Sequence[set], response: Sequence[set]) -> np.ndarray:
    """How many mentions each two clusters share, [key clusters, response clusters]."""
    table = np.zeros((len(key), len(response)))
    where = {mention: number for number, cluster in enumerate(response) for mention in cluster}
    for row, cluster in enumerate(key):
        for mention in cluster & where.keys():
            table[row, where[mention]] += 1
    return table


METRICS: dict[str, Callable[[Sequence[set], Sequence[set]], Share]] = {
    "muc": muc,
    "b_cubed": b_cubed,
    "ceaf_phi4": ceaf_phi4,
}


def triple(
    pairs: Sequence[tuple[list[set], list[set]]], recall: Callable[[list, list], Share]
) -> Triple:
    """Precision, recall and F1 of a metric over documents."""
    found, wanted = np.sum([(0, 0), *(recall(key, response) for key, response in pairs)], axis=0)
    right, said = np.sum([(0, 0), *(recall(response, key) for key, response in pairs)], axis=0)
    return precision_recall_f1(right, said, found, wanted)


def precision_recall_f1(right: float, said: float, found: float, wanted: float) -> Triple:
    """right of said, found of wanted, in percent; a share of nothing is 0."""
    shares = ((right, said), (found, wanted))
    precision, recall = (float(100 * part / whole) if whole else 0.0 for part, whole in shares)
    return (
        precision,
        recall,
        2 * precision * recall / (precision + recall) if precision + recall else 0.0,
    )
