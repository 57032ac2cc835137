"""Scores of coreference: MUC, B³, CEAF-φ4 and their average. Chapter:
`book/tasks/coreference`. No torch.

The key is the annotators' clusters, the response a system's (CoNLL's terms for gold and
predictions). A cluster is a collection of mentions, which may be anything hashable, such as (first
word, last word). Sources: MUC (Vilain and others, 1995), B³ (Bagga and Baldwin, 1998), CEAF (Luo,
2005), and the rules of the official scorer of CoNLL-2012 (Pradhan and others, 2014), written anew.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from spanbert_tutorial.errors import require

Mention = Hashable
Clusters = Collection[Collection[Mention]]
Share = tuple[float, float]  # numerator and denominator


def score(key_clusters: Clusters, response_clusters: Clusters) -> dict[str, Any]:
    """{"muc", "b_cubed", "ceaf_phi4": (precision, recall, F1), "average": the mean of the three F1,
    "mentions": the same three of the mentions alone}, in percent.

    0 where a denominator is 0, as in the official scorer. MUC ignores clusters of one mention, B³
    and CEAF do not (`without_singletons` drops them). Raises InputError for a mention that occurs
    twice on one side, and for an empty cluster.
    """
    return score_documents([(key_clusters, response_clusters)])


def score_documents(documents: Iterable[tuple[Clusters, Clusters]]) -> dict[str, Any]:
    """`score` over many documents, (key, response) of each: numerators and denominators are summed
    before dividing, as in the official scorer. So a long document weighs more than a short one."""
    pairs = [(checked(key, "key"), checked(response, "response")) for key, response in documents]
    found = {}
    for name, metric in METRICS.items():
        both = [(metric(said, key), metric(key, said)) for key, said in pairs]
        sums = np.reshape(both, (-1, 2, 2)).sum(0).tolist()  # correct and predicted, found and gold
        precision, recall = (100 * part / whole if whole else 0.0 for part, whole in sums)
        total = precision + recall
        found[name] = precision, recall, 2 * precision * recall / total if total else 0.0
    average = sum(found[name][2] for name in ("muc", "b_cubed", "ceaf_phi4")) / 3
    return {**found, "average": average}


def without_singletons(clusters: Clusters) -> list[Collection[Mention]]:
    """The clusters of two mentions or more; OntoNotes annotates no others."""
    return [cluster for cluster in clusters if len(cluster) > 1]


def checked(clusters: Clusters, side: str) -> list[set[Mention]]:
    """The clusters as sets, none empty, no mention twice; a list, as JSON writes a pair, as a
    tuple."""
    found = [[tuple(m) if isinstance(m, list) else m for m in cluster] for cluster in clusters]
    mend = "leave it out, or name its mentions"
    require(all(found), f"a cluster of the {side} is empty: {mend}.")
    for mention, count in Counter(chain(*found)).most_common(1):
        mend = "give each mention one cluster"
        require(count == 1, f"the mention {mention} occurs twice in the {side}: {mend}.")
    return [*map(set, found)]


# --- the metrics --------------------------------------------------------------------
# Each function gives recall as numerator and denominator; precision is recall with the sides
# exchanged.


def muc(key: Sequence[set], response: Sequence[set]) -> Share:
    """Links: a cluster of n mentions has n - 1 of them.

    A response cluster that shares n of its mentions finds n - 1.
    """
    shared = overlaps(key, response)
    found = (shared[shared > 0] - 1).sum()
    return float(found), sum(len(cluster) - 1 for cluster in key)


def by_mention(clusters: Sequence[set]) -> dict[Mention, int]:
    """Mention → number of its cluster."""
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}


def b_cubed(key: Sequence[set], response: Sequence[set]) -> Share:
    """Mentions: the share of each one's key cluster that is found.

    Found is what is in the mention's response cluster; 0 if it has none.
    """
    overlap = overlaps(key, response)
    sizes = np.array([len(cluster) for cluster in key])
    found = (overlap**2 / sizes[:, None]).sum()
    return float(found), int(sizes.sum())


def ceaf_phi4(key: Sequence[set], response: Sequence[set]) -> Share:
    """Entities: φ4(K, R) = 2 · size(K ∩ R) / (size(K) + size(R)).

    Summed over the one-to-one alignment of key and response clusters
    with the largest sum; clusters that are left over score 0.
    """
    sizes = [len(cluster) for cluster in key]
    said = [len(cluster) for cluster in response]
    phi4 = 2 * overlaps(key, response) / np.add.outer(sizes, said)
    best = linear_sum_assignment(phi4, maximize=True)
    return float(phi4[best].sum()), len(key)


def mentions(key: Sequence[set], response: Sequence[set]) -> Share:
    """Mentions of the key that are also in the response."""
    in_key = set().union(*key)
    in_response = set().union(*response)
    return len(in_key & in_response), len(in_key)


def overlaps(
    key: Sequence[set],
    response: Sequence[set],
) -> np.ndarray:
    """Shared mentions, [key clusters, response clusters]."""
    counts = np.zeros((len(key), len(response)))
    cluster_of = by_mention(response)
    for row, cluster in enumerate(key):
        for mention in cluster & cluster_of.keys():
            counts[row, cluster_of[mention]] += 1
    return counts


METRICS: dict[str, Callable[[Sequence[set], Sequence[set]], Share]] = {
    "muc": muc,
    "b_cubed": b_cubed,
    "ceaf_phi4": ceaf_phi4,
    "mentions": mentions,
}
