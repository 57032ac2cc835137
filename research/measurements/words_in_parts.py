"""Can a masked language model finish a word whose beginning it sees, begin one whose end it sees,
and give a whole one? Chapter: `book/evidence/spans_and_boundaries`.

A word of several tokens is masked three times, with everything else of its block in view: its first
token, its last token, all its tokens. The MLM head predicts each masked token alone. Names are
capitalized words that begin no sentence; the block says them again, or here only. Controls that
read no block: a uniform guess, and a bigram model of the tokens inside words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.spanbert.names import with_specials
from spanbert_tutorial.text.sentences import Document

KINDS = ("name, again", "name, once", "common word, again", "common word, once")
WAYS = ("begin", "finish", "whole")
WORDS = 150  # of a block, at least
LONGEST = 254  # tokens of a block, at most
SHORTEST = 4  # letters of a word, at least
ROWS = 16  # blocks at a time
TRUST = 5.0  # counts' worth of the frequencies that each row of the bigram table begins with


class Word(NamedTuple):
    """A word in its block. ids: int [n], without [CLS] and [SEP]; first, last:
    positions of its tokens there; kind: one of `KINDS`."""

    ids: np.ndarray
    first: int
    last: int
    kind: str

    def masked(self, way: str) -> slice:
        """Which of its positions are masked."""
        return {
            "begin": slice(self.first, self.first + 1),
            "finish": slice(self.last, self.last + 1),
            "whole": slice(self.first, self.last + 1),
        }[way]


def blocks(document: Document) -> Iterator[tuple[list[str], set[int]]]:
    """Blocks of whole sentences, of at least `WORDS` words, and where in them a sentence begins.
    What is left at the end is no block."""
    words: list[str] = []
    starts = set()
    for sentence in document:
        starts.add(len(words))
        words += split_words(sentence)
        if len(words) >= WORDS:
            yield words, starts
            words = []
            starts = set()


def drawn(
    texts: Iterable[Document], wordpiece: WordPiece, most: int, seed: int = 0, several: bool = True
) -> list[Word]:
    """The words to ask for, of several tokens or of one, at most one of each kind from a block, and
    at most `most` of each."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[Word]] = {kind: [] for kind in KINDS}
    for words, starts in (block for document in texts for block in blocks(document)):
        tokens = wordpiece.encode_many(words)
        if sum(map(len, tokens)) > LONGEST:
            continue
        ids = np.concatenate([np.array(one, dtype=np.int64) for one in tokens])
        first = np.cumsum([0, *map(len, tokens)])
        counts = Counter(words)
        places: dict[str, list[int]] = {kind: [] for kind in KINDS}
        for place, word in enumerate(words):
            if (len(tokens[place]) > 1) == several and (what := what_it_is(word, place in starts)):
                places[f"{what}, {'again' if counts[word] > 1 else 'once'}"].append(place)
        for kind, some in places.items():
            if some:
                place = int(rng.choice(some))
                found[kind].append(Word(ids, int(first[place]), int(first[place + 1]) - 1, kind))
    return [word for some in found.values() for word in some[:most]]


def what_it_is(word: str, begins: bool) -> str:
    """A "name", a "common word", or "" for what is neither. begins: whether it begins a sentence."""
    if len(word) < SHORTEST:
        return ""
    if word.isalpha() and word.islower():
        return "common word"
    return "name" if word[0].isupper() and not begins else ""


def some_of_each(words: Sequence[Word], most: int) -> list[Word]:
    """The first `most` words of each kind."""
    return [word for kind in KINDS for word in [one for one in words if one.kind == kind][:most]]


@torch.no_grad()
def log_probabilities(
    model: PretrainingModel, wordpiece: WordPiece, words: Sequence[Word], way: str
) -> list[np.ndarray]:
    """Of each word the log-probabilities at its masked positions, float [masked, V]."""
    found = []
    for start in range(0, len(words), ROWS):
        part = words[start : start + ROWS]
        rows = []
        for word in part:
            rows.append(word.ids.copy())
            rows[-1][word.masked(way)] = wordpiece.mask_id
        ids, real = with_specials(rows, wordpiece)
        states = model.encoder(ids, attention_mask=real)[:, 1:]
        for word, row in zip(part, states, strict=True):
            logits = model.masked_language_model(row[word.masked(way)])
            found.append(logits.float().log_softmax(-1).numpy())
    return found


def measured(model: PretrainingModel, wordpiece: WordPiece, words: Sequence[Word]) -> dict:
    """Kind → way → how many were asked, the share in percent of which all masked tokens are the
    likeliest, and the mean loss of a word's masked tokens in nats."""
    training = model.training
    model.eval()
    found: dict = {kind: {} for kind in KINDS}
    for way in WAYS:
        logs = log_probabilities(model, wordpiece, words, way)
        gold = [word.ids[word.masked(way)] for word in words]
        right = [(log.argmax(-1) == ids).all() for log, ids in zip(logs, gold, strict=True)]
        nats = [-log[np.arange(len(ids)), ids].mean() for log, ids in zip(logs, gold, strict=True)]
        for kind, figures in by_kind(words, right, nats).items():
            found[kind][way] = figures
    model.train(training)
    return found


def by_kind(
    words: Sequence[Word], right: Sequence[bool], nats: Sequence[float]
) -> dict[str, dict[str, float]]:
    """Means over the words of each kind that has some."""
    found = {}
    for kind in KINDS:
        inside = [at for at, word in enumerate(words) if word.kind == kind]
        if inside:
            found[kind] = {
                "words": len(inside),
                "right": 100 * float(np.mean([right[at] for at in inside])),
                "nats": float(np.mean([nats[at] for at in inside])),
            }
    return found


def without_a_block(ids: np.ndarray, wordpiece: WordPiece, words: Sequence[Word]) -> dict:
    """What a uniform guess costs in nats, and what counts of neighbors inside a word reach: the last
    token by the one before it, the first by the one behind it. ids: int, the training text."""
    ids = ids.astype(np.int64)
    size = len(wordpiece)
    inside = ~wordpiece.word_starts(ids[1:])
    left, right = ids[:-1][inside], ids[1:][inside]
    ways = {
        "finish": (left, right, [word.ids[word.last - 1 : word.last + 1] for word in words]),
        "begin": (right, left, [word.ids[[word.first + 1, word.first]] for word in words]),
    }
    found: dict = {"uniform": float(np.log(size)), "bigram": {kind: {} for kind in KINDS}}
    for way, (seen, masked, asked) in ways.items():
        frequency = np.bincount(masked, minlength=size) + 0.5
        frequency /= frequency.sum()
        order = np.argsort(seen, kind="stable")
        seen, masked = seen[order], masked[order]
        hits, nats = [], []
        for neighbor, gold in asked:
            start, end = np.searchsorted(seen, [neighbor, neighbor + 1])
            counts = np.bincount(masked[start:end], minlength=size) + TRUST * frequency
            hits.append(counts.argmax() == gold)
            nats.append(-np.log(counts[gold] / counts.sum()))
        for kind, figures in by_kind(words, hits, nats).items():
            found["bigram"][kind][way] = figures
    return found
