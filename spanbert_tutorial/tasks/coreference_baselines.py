"""A rule-based coreference baseline: names and pronouns, found by their letters, clustered by their
last words. Chapter: `book/tasks/coreference`. No torch.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, groupby

from spanbert_tutorial.tasks.conll import Document, Span

KINDS = {
    "masculine": "he him his himself",
    "feminine": "she her hers herself",
    "thing": "it its itself",
    "many": "they them their theirs themselves",
    "speaker": "i me my mine myself",
    "speakers": "we us our ours ourselves",
    "hearer": "you your yours yourself thou thee thy thine",
}
PRONOUNS = {word: kind for kind, words in KINDS.items() for word in words.split()}
NO_NAME = PRONOUNS.keys() | set(
    "the a an and but or if in on at of to for by with from as so that this these those there "
    "then when what who how why not no yes oh".split()
)


def rule_mentions(document: Document) -> list[Span]:
    """Pronouns, and runs of capitalized words; at the start of a sentence only words that are
    capitalized elsewhere, too."""
    words = document.words
    starts = {0, *accumulate(map(len, document.sentences))}
    names = {
        word
        for index, word in enumerate(words)
        if index not in starts and word[0].isupper() and word.lower() not in NO_NAME
    }
    in_names = [index for index, word in enumerate(words) if word in names]
    mentions = [(index, index) for index, word in enumerate(words) if word.lower() in PRONOUNS]
    # in a run of neighbors, index − rank is the same
    for _, run in groupby(enumerate(in_names), key=lambda pair: pair[1] - pair[0]):
        indices = [index for _, index in run]
        mentions.append((indices[0], indices[-1]))
    return sorted(mentions)


def same_head(document: Document, mentions: Sequence[Span]) -> list[list[Span]]:
    """One cluster per last word ("Ella Hale" and "Hale"); pronouns of one kind share a cluster."""
    return grouped(
        mentions, lambda mention: kind(document, mention) or document.words[mention[1]].lower()
    )


def kind(document: Document, mention: Span) -> str:
    """The kind of pronoun that a mention is; "" for other mentions."""
    first, last = mention
    return PRONOUNS.get(document.words[first].lower(), "") if first == last else ""


def grouped(mentions: Iterable[Span], key: Callable[[Span], str]) -> list[list[Span]]:
    """Clusters of the mentions that share a key, in the order of their first mentions."""
    clusters: dict[str, list[Span]] = {}
    for mention in mentions:
        clusters.setdefault(key(mention), []).append(mention)
    return list(clusters.values())
