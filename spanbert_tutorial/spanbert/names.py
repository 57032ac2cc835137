"""Names in blocks of labeled documents, as positions of tokens.
Chapter: `book/spanbert/name_ranks`."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.text.sentences import named_sentences


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
    """Blocks of at most `room` tokens with their names; a longer sentence is a
    block of its own. documents: as `almanac.read` gives them."""
    for document in documents:
        ids = np.zeros(0, dtype=np.int64)
        names: list[Name] = []
        for text, found in named_sentences(document):
            sentence = wordpiece.encode(text)
            if len(ids) and len(ids) + len(sentence) > room:
                yield Block(ids, names)
                ids = ids[:0]
                names = []
            for start, stop, label, entity in found:
                # a name begins and ends with a word: what is before it can be encoded by itself
                first = len(ids) + len(wordpiece.encode(text[:start]))
                size = len(wordpiece.encode(text[start:stop]))
                names.append(Name(first, first + size - 1, label, entity))
            ids = np.concatenate([ids, sentence])
        yield Block(ids, names)


def with_specials(rows: list[np.ndarray], wordpiece: WordPiece) -> tuple[Tensor, Tensor]:
    """[CLS] row [SEP] and padding: input_ids int64 [B,n] and
    attention_mask bool [B,n]."""
    width = max(map(len, rows)) + 2
    ids = np.full((len(rows), width), wordpiece.pad_id, dtype=np.int64)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row) + 2] = [wordpiece.cls_id, *row, wordpiece.sep_id]
    return torch.from_numpy(ids), torch.from_numpy(ids != wordpiece.pad_id)
