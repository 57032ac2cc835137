"""What a model reads: a block of one segment beside a pair of BERT, both from the same place in the
same document. Chapter: `book/spanbert/single_sequence`."""

from collections.abc import Sequence
from html import escape

import numpy as np

from spanbert_tutorial.bert.sentence_pairs import NOT_NEXT, sentence_pairs
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.figures.tokens import STRIP, STYLES, mark_style
from spanbert_tutorial.spanbert.single_sequence import single_sequence_blocks
from spanbert_tutorial.text.encoding import EncodedCorpus

N = 64
BOX = f"{STRIP};line-height:1.6;flex:1 1 17em;border:1px solid currentColor;border-radius:.4em"
BORROWED = f'<span style="{mark_style(STYLES["boundary"][1])}">'


class BlockAndPair:
    """The first block of a document beside its first pair whose second part comes from another
    document, in inputs of `N` tokens; `print` shows the same, the borrowed text in braces."""

    def __init__(self, corpus: EncodedCorpus, wordpiece: WordPiece) -> None:
        pairs = sentence_pairs(corpus, N - 3, np.random.default_rng(0))
        blocks = single_sequence_blocks(corpus, wordpiece.starts, N - 2).ranges
        begins = np.isin(pairs.first[:, 0], [0, *corpus.document_ends])
        # halves of some length: a borrowed word or two would show little
        long = np.diff(pairs.second)[:, 0] > N / 3
        row = np.flatnonzero(begins & long & (pairs.labels == NOT_NEXT))[0]
        (at,) = np.flatnonzero(blocks[:, 0] == pairs.first[row, 0])
        ranges = [blocks[at], pairs.first[row], pairs.second[row]]
        self.texts = [wordpiece.decode(corpus.ids[start:end]) for start, end in ranges]
        self.tokens = [int(end - start) for start, end in ranges]

    def _inputs(self, texts: Sequence[str], left: str, right: str) -> list[tuple[str, str]]:
        """Two captions, each with its input; left, right: what stands around the borrowed text."""
        (block, first, second), (whole, here, there) = texts, self.tokens
        return [
            (f"a block: {whole} tokens of one document", f"[CLS] {block} [SEP]"),
            (
                f"a pair: {here} tokens of this document, {there} of another",
                f"[CLS] {first} [SEP] {left}{second}{right} [SEP]",
            ),
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{name}\n{text}" for name, text in self._inputs(self.texts, "{", "}"))

    def _repr_html_(self) -> str:
        inputs = self._inputs([*map(escape, self.texts)], BORROWED, "</span>")
        boxes = (f'<div style="{BOX}"><b>{name}</b><br>{text}</div>' for name, text in inputs)
        return f'<div style="display:flex;flex-wrap:wrap;gap:.8em">{"".join(boxes)}</div>'
