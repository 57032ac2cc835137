"""What a model reads: a block of one segment beside a pair of BERT, both from the same place in the
same document. Chapter: `book/spanbert/single_sequence`."""

from html import escape

import numpy as np

from spanbert_tutorial.bert.sentence_pairs import NOT_NEXT, sentence_pairs
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.figures.tokens import STRIP
from spanbert_tutorial.spanbert.single_sequence import single_sequence_blocks
from spanbert_tutorial.text.encoding import EncodedCorpus

N = 64
BOX = f"{STRIP};line-height:1.6;flex:1 1 17em;border:1px solid currentColor;border-radius:.4em"
BORROWED = "background:rgba(200,120,0,.25);border-bottom:3px solid rgb(200,120,0)"


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
        self.block, self.first, self.second = (
            wordpiece.decode(corpus.ids[start:end]) for start, end in ranges
        )
        self.tokens = [int(end - start) for start, end in ranges]

    @property
    def captions(self) -> list[str]:
        block, first, second = self.tokens
        return [
            f"a block: {block} tokens of one document",
            f"a pair: {first} tokens of this document, {second} of another",
        ]

    def __repr__(self) -> str:
        block, pair = self.captions
        return (
            f"{block}\n[CLS] {self.block} [SEP]\n"
            f"{pair}\n[CLS] {self.first} [SEP] {{{self.second}}} [SEP]"
        )

    def _repr_html_(self) -> str:
        borrowed = f'<span style="{BORROWED}">{escape(self.second)}</span>'
        inputs = (
            f"[CLS] {escape(self.block)} [SEP]",
            f"[CLS] {escape(self.first)} [SEP] {borrowed} [SEP]",
        )
        boxes = "".join(
            f'<div style="{BOX}"><b>{caption}</b><br>{text}</div>'
            for caption, text in zip(self.captions, inputs, strict=True)
        )
        return f'<div style="display:flex;flex-wrap:wrap;gap:.8em">{boxes}</div>'
