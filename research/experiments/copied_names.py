"""Do the twins give back a name that stands elsewhere in the same block, hidden whole or in part?
Chapter: `book/evidence/masking_and_copying`.

`--valid` is a `.jsonl` file of Wikipedia that no model was trained on; this project does not ship
it. A block has whole sentences, at least 150 words and at most 254 tokens. A name is a capitalized
word of several tokens that begins no sentence; one that stands in the block again and one that does
not are drawn from each block, where there are such. Each is hidden twice: all its tokens, or the
last token alone. The MLM head guesses each hidden token alone, and is right when it gives all. Two
rules that learn nothing do the same: the last token is copied from where the tokens before it stand
again; for a whole name the commonest other name of the block with as many tokens is said.
Intervals: 95 %, over documents.

`data/results/first_pair_copying.json` has what this command gave with the mini models that the book
shipped first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from research.experiments.twins import TWINS
from research.results import rounded
from spanbert_tutorial.bert.inputs import frame
from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.tasks.real_questions import over_articles
from spanbert_tutorial.text.corpora import documents
from spanbert_tutorial.text.sentences import Document

# words of a block, letters of a name, tokens of a block
WORDS = 150
SHORTEST = 4
LONGEST = 254
HIDDEN = {"all its tokens": 0, "its last token": -1}  # → the first hidden one
STANDS = {"it stands in the block again": True, "it stands there only": False}


class Name(NamedTuple):
    """words: the tokens of each word of the block. place: that of the hidden word. again: whether
    it stands in the block once more. names: the places of all words that could have been hidden."""

    words: Sequence[Sequence[int]]
    place: int
    again: bool = True
    names: Sequence[int] = ()
    document: int = 0


def blocks(document: Document) -> Iterator[tuple[list[str], set[int]]]:
    """Blocks of whole sentences, of at least `WORDS` words, and the places at which a sentence
    begins. What is left at the end is no block."""
    words: list[str] = []
    starts = set()
    for sentence in document:
        starts.add(len(words))
        words += split_words(sentence)
        if len(words) >= WORDS:
            yield words, starts
            words = []
            starts = set()


def drawn(texts: Iterable[Document], wordpiece: WordPiece, seed: int = 0) -> list[Name]:
    """The names to hide; at most one of each kind from a block."""
    rng = np.random.default_rng(seed)
    found = []
    for number, document in enumerate(texts):
        for words, starts in blocks(document):
            tokens = wordpiece.encode_many(words)
            if sum(map(len, tokens)) > LONGEST:
                continue
            names = [
                place
                for place, word in enumerate(words)
                if place not in starts
                and word[0].isupper()
                and len(word) >= SHORTEST
                and len(tokens[place]) > 1
            ]
            counts = Counter(words)
            for again in (True, False):
                places = [place for place in names if (counts[words[place]] > 1) == again]
                if places:
                    found.append(Name(tokens, int(rng.choice(places)), again, names, number))
    return found


def hide(name: Name, how: str, wordpiece: WordPiece) -> tuple[list[int], list[int]]:
    """The tokens of the block with [MASK] in the hidden places, [CLS] and [SEP] around them, and
    those places."""
    first = 1 + sum(map(len, name.words[: name.place]))
    places = list(range(first, first + len(name.words[name.place])))[HIDDEN[how] :]
    ids, _ = frame(list(chain(*name.words)), cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
    ids[places] = wordpiece.mask_id
    return ids.tolist(), places


@torch.no_grad()
def fill(model: PretrainingModel, ids: Sequence[int], places: Sequence[int]) -> list[int]:
    """The likeliest token of the MLM head for each hidden place."""
    hidden = model.encoder(torch.tensor([ids]))[0, list(places)]
    return model.masked_language_model(hidden).argmax(-1).tolist()


def copied(name: Name, how: str) -> list[int]:
    """What the two rules predict; empty where they find nothing."""
    own = name.words[name.place]
    others = [word for place, word in enumerate(name.words) if place != name.place]
    if HIDDEN[how] == -1:
        return next(
            (list(word[-1:]) for word in others if len(word) == len(own) and word[:-1] == own[:-1]),
            [],
        )
    names: Counter[tuple[int, ...]] = Counter(
        tuple(name.words[place])
        for place in name.names
        if place != name.place and len(name.words[place]) == len(own)
    )
    return list(names.most_common(1)[0][0]) if names else []


def right(
    names: Sequence[Name], how: str, model: PretrainingModel | None, wordpiece: WordPiece
) -> np.ndarray:
    """100 for each name whose hidden tokens are all given, 0 for the others. model: None for the
    rules."""
    wanted = [name.words[name.place][HIDDEN[how] :] for name in names]
    said = [
        copied(name, how) if model is None else fill(model, *hide(name, how, wordpiece))
        for name in names
    ]
    return np.array([100.0 * (one == other) for one, other in zip(said, wanted, strict=True)])


def content(folder: Path, valid: Path) -> dict:
    """Both models and the rules on the same names."""
    models = {name: load_checkpoint(data_path("checkpoints", name)) for name in TWINS}
    wordpiece = models[TWINS[0]][1]  # that of both
    names = drawn(documents(valid), wordpiece)
    askers = {name: model.eval() for name, (model, _) in models.items()} | {"copying by rule": None}
    found: dict = {
        "documents": len({name.document for name in names}),
        "names": {},
        "right": {},
        "differences": {},
    }
    for told, again in STANDS.items():
        some = [name for name in names if name.again == again]
        numbers = [str(name.document) for name in some]
        found["names"][told] = len(some)
        for how in HIDDEN:
            values = {asker: right(some, how, model, wordpiece) for asker, model in askers.items()}
            gap = values[TWINS[1]] - values[TWINS[0]]
            shares = {asker: float(value.mean()) for asker, value in values.items()}
            print(told, how, rounded(shares), flush=True)
            found["right"][f"{how}, {told}"] = shares
            found["differences"][f"{how}, {told}"] = {
                "mean": gap.mean(),
                "interval": over_articles(gap, numbers),
            }
    return rounded(found)
