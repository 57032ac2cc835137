"""Names in blocks of labeled documents, as positions of tokens.
Chapter: `book/spanbert/name_ranks`."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.text.sentences import split_sentences


class Name(NamedTuple):
    """A name in a block: its first and last token (positions in the
    block), its label, such as PERSON, and the id of what it names."""

    first: int
    last: int
    label: str
    entity: str = ""


class Block(NamedTuple):
    """Whole sentences of one document. ids: int [n], without [CLS] and [SEP]."""

    ids: np.ndarray
    names: list[Name]


def named_blocks(
    documents: Iterable[dict], wordpiece: WordPiece, room: int = 62
) -> Iterator[Block]:
    """Blocks of at most `room` tokens with their names. documents: as
    `almanac.read` gives them."""
    for document in documents:
        ids = np.zeros(0, dtype=np.int64)
        names: list[Name] = []
        for sentence, found in named_sentences(document, wordpiece):
            if len(ids) and len(ids) + len(sentence) > room:
                yield Block(ids, names)
                ids = ids[:0]
                names = []
            names = names + [
                one._replace(first=one.first + len(ids), last=one.last + len(ids)) for one in found
            ]
            ids = np.concatenate([ids, sentence])
        yield Block(ids, names)


def named_sentences(
    document: dict, wordpiece: WordPiece
) -> Iterator[tuple[np.ndarray, list[Name]]]:
    """Tokens of each sentence and the names in it. A name begins and
    ends with a word, so the tokens before it can be counted by
    themselves."""
    text = document["text"]
    at = 0
    for sentence in split_sentences(text):
        start = text.index(sentence, at)
        at = start + len(sentence)
        found = []
        for a, b, label, entity in document["entities"]:
            if start <= a and b <= at:
                first = len(wordpiece.encode(text[start:a]))
                found.append(
                    Name(first, first + len(wordpiece.encode(text[a:b])) - 1, label, entity)
                )
        yield wordpiece.encode(sentence), found


def with_specials(rows: list[np.ndarray], wordpiece: WordPiece) -> tuple[np.ndarray, np.ndarray]:
    """[CLS] row [SEP] and padding: input_ids int64 [B,n] and
    attention_mask bool [B,n]."""
    width = max(map(len, rows)) + 2
    ids = np.full((len(rows), width), wordpiece.pad_id, dtype=np.int64)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row) + 2] = [wordpiece.cls_id, *row, wordpiece.sep_id]
    return ids, ids != wordpiece.pad_id
