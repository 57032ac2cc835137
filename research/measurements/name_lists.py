"""Two lists that tag names without a model: of names, and of their words."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import groupby

from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.tasks.tagging import LabeledText


class NameList:
    """Baseline: looks up the names of labeled texts from left to right; of several that match, the
    longest."""

    def __init__(self, texts: Iterable[LabeledText]) -> None:
        self.labels = {
            tuple(split_words(text[start:end])): label
            for text, entities in texts
            for start, end, label in entities
        }

    def tags(self, text: str) -> list[str]:
        """A tag for each word of a text."""
        words = split_words(text)
        tags: list[str] = []
        while len(tags) < len(words):
            names = (tuple(words[len(tags) : end]) for end in range(len(words), len(tags), -1))
            name = next((name for name in names if name in self.labels), None)
            tags += ["O"] if name is None else tags_of_name(self.labels[name], len(name))
        return tags


class WordList:
    """Baseline: looks up the words of the names in labeled texts. It predicts one name for a run of
    such words, with the label of the names that most often end with its last word (or contain it,
    if no name ends with it).

    Only words that occur in names at least as often as outside are looked up, so not the "and" of a
    company's name.
    """

    def __init__(self, texts: Iterable[LabeledText]) -> None:
        counts: Counter[str] = Counter()
        inside: defaultdict[str, Counter[str]] = defaultdict(Counter)
        ending: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for text, entities in texts:
            counts.update(split_words(text))
            for start, end, label in entities:
                name = split_words(text[start:end])
                ending[name[-1]][label] += 1
                for word in name:
                    inside[word][label] += 1
        self.labels = {
            word: ending.get(word, labels).most_common(1)[0][0]
            for word, labels in inside.items()
            if 2 * labels.total() >= counts[word]
        }

    def tags(self, text: str) -> list[str]:
        """A tag for each word of a text."""
        tags: list[str] = []
        for known, run in groupby(split_words(text), self.labels.__contains__):
            words = list(run)
            tags += (
                tags_of_name(self.labels[words[-1]], len(words)) if known else ["O"] * len(words)
            )
        return tags


def tags_of_name(label: str, words: int) -> list[str]:
    """The tags of one name of `words` words."""
    return [f"{'I' if number else 'B'}-{label}" for number in range(words)]
