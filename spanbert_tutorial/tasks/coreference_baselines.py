"""Coreference without training: names and pronouns by rule, joined by their strings or by nearness.
Chapter: `book/tasks/coreference`. No torch.

What a trained model is compared with. Each rule joins mentions; `rule_mentions` finds mentions
without labels, and `gold_mentions` gives those of the labels, which asks for the joining alone.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, groupby

from spanbert_tutorial.tasks.conll import Document, Span

KINDS = {
    kind: set(words.split())
    for kind, words in {
        "masculine": "he him his himself",
        "feminine": "she her hers herself",
        "thing": "it its itself",
        "many": "they them their theirs themselves",
        "speaker": "i me my mine myself",
        "speakers": "we us our ours ourselves",
        "hearer": "you your yours yourself thou thee thy thine",
    }.items()
}
PRONOUNS = {word: kind for kind, words in KINDS.items() for word in words}
POINTING = ("masculine", "feminine", "thing", "many")
NO_NAME = {
    "the",
    "a",
    "an",
    "and",
    "but",
    "or",
    "if",
    "in",
    "on",
    "at",
    "of",
    "to",
    "for",
    "by",
    "with",
    "from",
    "as",
    "so",
    "that",
    "this",
    "these",
    "those",
    "there",
    "then",
    "when",
    "what",
    "who",
    "how",
    "why",
    "not",
    "no",
    "yes",
    "oh",
}
Joining = Callable[[Document, Sequence[Span]], list[list[Span]]]


def gold_mentions(document: Document) -> list[Span]:
    """The labeled mentions, in order."""
    return sorted(mention for cluster in document.clusters for mention in cluster)


def rule_mentions(document: Document) -> list[Span]:
    """Pronouns, and runs of words with capitals; at the beginning of a sentence only words that are
    elsewhere written with a capital, too."""
    words = document.words
    first = {0, *accumulate(map(len, document.sentences))}
    named = {word for at, word in enumerate(words) if at not in first and is_capital(word)}
    found = [(at, at) for at, word in enumerate(words) if word.lower() in PRONOUNS]
    names = (
        at
        for at, word in enumerate(words)
        if is_capital(word) and (at not in first or word in named)
    )
    for _, run in groupby(enumerate(names), key=lambda pair: pair[1] - pair[0]):
        places = [at for _, at in run]
        found.append((places[0], places[-1]))
    return sorted(found)


def is_capital(word: str) -> bool:
    """A word that may belong to a name."""
    return word[0].isupper() and word.lower() not in PRONOUNS.keys() | NO_NAME


def same_string(document: Document, mentions: Sequence[Span]) -> list[list[Span]]:
    """One cluster for each wording, upper and lower case alike; pronouns of one kind are one
    cluster."""
    return grouped(
        mentions, lambda mention: kind(document, mention) or document.text(mention).lower()
    )


def same_head(document: Document, mentions: Sequence[Span]) -> list[list[Span]]:
    """One cluster for each last word ("Ella Hale" and "Hale"); pronouns of one kind are one
    cluster."""
    return grouped(
        mentions, lambda mention: kind(document, mention) or document.words[mention[1]].lower()
    )


def nearest(document: Document, mentions: Sequence[Span]) -> list[list[Span]]:
    """Names by their last words; a pronoun goes to the nearest mention before it that is a name or
    a pronoun of the same kind. "I", "we" and "you" stay with their own kind."""
    clusters: list[list[Span]] = []
    homes: dict[str, list[Span]] = {}  # last word of a name, or kind of pronoun → its cluster
    for number, mention in enumerate(mentions):
        own = kind(document, mention)
        key = own or document.words[mention[1]].lower()
        if own in POINTING:
            fitting = [one for one in mentions[:number] if kind(document, one) in ("", own)]
            home = next(
                (cluster for cluster in clusters if fitting and fitting[-1] in cluster), None
            )
        else:
            home = homes.get(key)
        if home is None:
            clusters.append(home := [])
        homes.setdefault(key, home)
        home.append(mention)
    return clusters


def alone(document: Document, mentions: Sequence[Span]) -> list[list[Span]]:
    """Each mention a cluster of its own: what the scores give for finding mentions and joining
    none."""
    return [[mention] for mention in mentions]


def kind(document: Document, mention: Span) -> str:
    """Which pronouns it is one of; "" for a mention that is none."""
    first, last = mention
    return PRONOUNS.get(document.words[first].lower(), "") if first == last else ""


def grouped(mentions: Iterable[Span], key: Callable[[Span], str]) -> list[list[Span]]:
    """Clusters of the mentions that share a key, in the order of their first mentions."""
    found: dict[str, list[Span]] = {}
    for mention in mentions:
        found.setdefault(key(mention), []).append(mention)
    return list(found.values())


RULES: dict[str, Joining] = {
    "each alone": alone,
    "same string": same_string,
    "same last word": same_head,
    "nearest": nearest,
}
