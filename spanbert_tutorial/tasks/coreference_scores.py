"""Scores of coreference: MUC, B³, CEAF-φ4 and their average; GAP's F1. Chapter:
`book/tasks/coreference`. No torch.

The key is the annotators' clusters, the response a system's (CoNLL's terms for gold and
predictions). A cluster is a collection of mentions, which may be anything hashable, such as (first
word, last word). Sources: MUC (Vilain and others, 1995), B³ (Bagga and Baldwin, 1998), CEAF (Luo,
2005), and the rules of the official scorer of CoNLL-2012 (Pradhan and others, 2014), written anew.
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

    0 where a denominator is 0, as in the official scorer. MUC ignores clusters of one mention, B³
    and CEAF do not (`without_singletons` drops them). Raises InputError for a mention that occurs
    twice on one side, and for an empty cluster.
    """
    return score_documents([(key_clusters, response_clusters)])


def score_documents(documents: Iterable[tuple[Clusters, Clusters]]) -> dict[str, Triple | float]:
    """`score` over many documents, (key, response) of each: numerators and denominators are summed
    before dividing, as in the official scorer. So a long document weighs more than a short one."""
    pairs = checked_pairs(documents)
    triples = {name: triple(pairs, recall) for name, recall in METRICS.items()}
    average = sum(f1 for _, _, f1 in triples.values()) / len(triples)
    return {**triples, "average": average}


def mention_score(documents: Iterable[tuple[Clusters, Clusters]]) -> Triple:
    """Precision, recall and F1 of the mentions alone, in percent, whatever cluster they are in."""
    return triple(checked_pairs(documents), mentions)


def without_singletons(clusters: Clusters) -> list[Collection[Mention]]:
    """The clusters of two mentions or more. OntoNotes, on which the papers report, annotates no
    others."""
    return [cluster for cluster in clusters if len(cluster) > 1]


def checked_pairs(
    documents: Iterable[tuple[Clusters, Clusters]],
) -> list[tuple[list[set[Mention]], list[set[Mention]]]]:
    """Key and response of each document as sets, checked."""
    return [(checked(key, "key"), checked(response, "response")) for key, response in documents]


def checked(clusters: Clusters, side: str) -> list[set[Mention]]:
    """The clusters as sets. Raises InputError for an empty one and for a mention that occurs
    twice."""
    sets = [set(cluster) for cluster in clusters]
    seen: set[Mention] = set()
    for cluster in map(list, clusters):
        if not cluster:
            raise InputError(
                f"a cluster of the {side} is empty: leave it out, or name its mentions."
            )
        for mention in cluster:
            if mention in seen:
                raise InputError(
                    f"the mention {mention} stands twice in the {side}: give each mention one "
                    "cluster."
                )
            seen.add(mention)
    return sets


# --- the three metrics --------------------------------------------------------------
# Each function gives recall as numerator and denominator; precision is recall with the sides
# exchanged.


def muc(key: Sequence[set], response: Sequence[set]) -> Share:
    """Links. A key cluster of n mentions has n - 1 links; if the response splits it into p parts,
    p - 1 of them are missing. A mention that is not in the response is a part by itself."""
    cluster_of = {mention: number for number, cluster in enumerate(response) for mention in cluster}
    found = 0
    total = 0
    for cluster in key:
        shared = [mention for mention in cluster if mention in cluster_of]
        parts = len({cluster_of[mention] for mention in shared}) + len(cluster) - len(shared)
        found += len(cluster) - parts
        total += len(cluster) - 1
    return found, total


def b_cubed(key: Sequence[set], response: Sequence[set]) -> Share:
    """Mentions. Each scores the share of its key cluster that is in its response cluster, or 0 if
    it has no response cluster."""
    overlap = overlaps(key, response)
    sizes = np.array([len(cluster) for cluster in key])
    return float((overlap**2 / sizes[:, None]).sum()), int(sizes.sum())


def ceaf_phi4(key: Sequence[set], response: Sequence[set]) -> Share:
    """Entities. A one-to-one alignment of key and response clusters that maximizes the sum of
    φ4(K, R) = 2 · size(K ∩ R) / (size(K) + size(R)); clusters that are left over score 0."""
    sizes = [np.array([len(cluster) for cluster in side], dtype=float) for side in (key, response)]
    phi4 = 2 * overlaps(key, response) / np.add.outer(*sizes)
    return float(phi4[linear_sum_assignment(phi4, maximize=True)].sum()), len(key)


def mentions(key: Sequence[set], response: Sequence[set]) -> Share:
    """Mentions of the key that are also in the response."""
    in_key = set().union(*key)
    in_response = set().union(*response)
    return len(in_key & in_response), len(in_key)


def overlaps(key: Sequence[set], response: Sequence[set]) -> np.ndarray:
    """How many mentions each pair of clusters shares, [key clusters, response clusters]."""
    counts = np.zeros((len(key), len(response)))
    cluster_of = {mention: number for number, cluster in enumerate(response) for mention in cluster}
    for row, cluster in enumerate(key):
        for mention in cluster & cluster_of.keys():
            counts[row, cluster_of[mention]] += 1
    return counts


METRICS: dict[str, Callable[[Sequence[set], Sequence[set]], Share]] = {
    "muc": muc,
    "b_cubed": b_cubed,
    "ceaf_phi4": ceaf_phi4,
}


def triple(
    pairs: Sequence[tuple[list[set], list[set]]],
    recall: Callable[[Sequence[set], Sequence[set]], Share],
) -> Triple:
    """Precision, recall and F1 of a metric over documents."""
    in_response = np.sum([(0, 0), *(recall(key, response) for key, response in pairs)], axis=0)
    in_key = np.sum([(0, 0), *(recall(response, key) for key, response in pairs)], axis=0)
    return precision_recall_f1(*in_key, *in_response)


def precision_recall_f1(correct: float, predicted: float, found: float, gold: float) -> Triple:
    """In percent: precision = correct / predicted, recall = found / gold, and F1; 0 where a
    denominator is 0."""
    precision = float(100 * correct / predicted) if predicted else 0.0
    recall = float(100 * found / gold) if gold else 0.0
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0
