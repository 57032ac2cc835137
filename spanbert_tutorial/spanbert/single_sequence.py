"""One segment of whole sentences from one document (DOC-SENTENCES). Chapter:
`book/spanbert/single_sequence`.

Source: SpanBERT §3.3; the released code packs the same way (and drops over-long sentences, which
are split here).
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.text.encoding import EncodedCorpus


@dataclass(frozen=True)
class Blocks:
    """Blocks as ranges of `EncodedCorpus.ids`. ranges: int64 [B, 2] (start, end). Nothing of the
    corpus is left out.

    split_sentences: how many sentences were longer than a block and had to be divided.
    """

    ranges: np.ndarray
    split_sentences: int

    @property
    def report(self) -> str:
        lengths = np.diff(self.ranges, axis=1)
        return (
            f"{len(self.ranges):,} blocks, {lengths.sum():,} tokens, mean length "
            f"{lengths.mean():.1f}; "
            f"{self.split_sentences:,} over-long sentences divided, 0 tokens dropped"
        )


def single_sequence_blocks(
    corpus: EncodedCorpus, word_starts: np.ndarray, max_tokens: int
) -> Blocks:
    """Whole sentences of one document, as many as fit in a block.

    At most `max_tokens` in each, without [CLS] and [SEP]. word_starts: bool [V], whether a token
    begins a word (`WordPiece.starts`): a sentence longer than a block is divided at the last word
    start that fits. Blocks never cross documents; the last one of a document may be short.
    """
    check_room(max_tokens)
    # start, end, start, …: eight bytes a number, however long the text
    ranges = array("q")
    split = document = start = end = 0
    for sentence_end in in_parts(corpus.sentence_ends):
        if sentence_end - start > max_tokens and end > start:
            ranges.extend(
                (start, end)
            )  # the sentence opens a new block
            start = end
        if sentence_end - start > max_tokens:  # too long for any block
            ids = corpus.ids[start:sentence_end]
            *cuts, last = cut_sentence(ids, word_starts, max_tokens)
            ranges.extend(
                start + place for cut in cuts for place in cut
            )
            start += last[0]
            split += 1
        end = sentence_end
        if end == corpus.document_ends[document]:
            ranges.extend((start, end))
            start = end
            document += 1
    return Blocks(
        np.array(ranges, dtype=np.int64).reshape(-1, 2), split
    )


def check_room(max_tokens: int) -> None:
    """Raises InputError for blocks that hold nothing."""
    if max_tokens < 1:
        raise InputError(
            f"blocks of {max_tokens} tokens hold nothing: give at least 1 (3 with [CLS] and [SEP])."
        )


def in_parts(sentence_ends: np.ndarray) -> Iterator[int]:
    """The numbers as Python's, some at a time, so that a long memory-mapped array stays on the
    disk."""
    for start in range(0, len(sentence_ends), 2**16):
        yield from sentence_ends[start : start + 2**16].tolist()


def cut_sentence(
    ids: np.ndarray, word_starts: np.ndarray, max_tokens: int
) -> list[tuple[int, int]]:
    """Ranges of at most `max_tokens` that cover the sentence and begin at word starts wherever a
    word fits."""
    starts = np.append(0, np.flatnonzero(word_starts[ids]))
    bounds = [0]
    while len(ids) - bounds[-1] > max_tokens:
        most = bounds[-1] + max_tokens
        last = int(starts[np.searchsorted(starts, most, "right") - 1])
        bounds.append(last if last > bounds[-1] else most)
    return [*pairwise([*bounds, len(ids)])]
