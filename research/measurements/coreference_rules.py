"""Rules that cluster mentions, beside the chapter's own (`tasks.coreference_baselines`). Chapter:
`book/tasks/coreference`. With `gold_mentions` only the clustering is scored.
"""

from collections.abc import Callable, Sequence

from spanbert_tutorial.tasks.conll import Document, Span
from spanbert_tutorial.tasks.coreference_baselines import grouped, kind, same_head

THIRD_PERSON = ("masculine", "feminine", "thing", "many")
Clustering = Callable[[Document, Sequence[Span]], list[list[Span]]]


def gold_mentions(document: Document) -> list[Span]:
    """The labeled mentions, in order."""
    return sorted(mention for cluster in document.clusters for mention in cluster)


def same_string(document: Document, mentions: Sequence[Span]) -> list[list[Span]]:
    """One cluster per string, ignoring case; pronouns of one kind share a cluster."""
    return grouped(
        mentions, lambda mention: kind(document, mention) or document.text(mention).lower()
    )


def nearest(document: Document, mentions: Sequence[Span]) -> list[list[Span]]:
    """Names by their last words; a third-person pronoun joins the nearest mention before it that
    is a name or a pronoun of the same kind. "I", "we" and "you" form one cluster per kind."""
    clusters: list[list[Span]] = []
    by_key: dict[str, list[Span]] = {}  # last word of a name, or kind of pronoun → its cluster
    for number, mention in enumerate(mentions):
        own = kind(document, mention)
        key = own or document.words[mention[1]].lower()
        cluster = by_key.get(key)
        if own in THIRD_PERSON:
            earlier = [one for one in mentions[:number] if kind(document, one) in ("", own)]
            cluster = next((one for one in clusters if earlier and earlier[-1] in one), None)
        if cluster is None:
            cluster = []
            clusters.append(cluster)
        by_key.setdefault(key, cluster)
        cluster.append(mention)
    return clusters


def alone(document: Document, mentions: Sequence[Span]) -> list[list[Span]]:
    """Each mention in a cluster by itself: the scores for finding mentions without linking any."""
    return [[mention] for mention in mentions]


RULES: dict[str, Clustering] = {
    "each alone": alone,
    "same string": same_string,
    "same last word": same_head,
    "nearest": nearest,
}
