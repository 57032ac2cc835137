"""Byte-level BPE: tokens of bytes, so that no text is unknown. Chapter: `book/relatives/roberta`.

Every text is a sequence of bytes, and there are only 256. Each byte is written as one printable
character; frequent neighbors are merged; encoding repeats the merges in the order in which they
were learned. Nothing is lost: what was encoded can be decoded, byte for byte. Source: RoBERTa §4.4,
after GPT-2.
"""

import functools
import json
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import regex
from tokenizers import ByteLevelBPETokenizer

from spanbert_tutorial.errors import check_text, require

Pair = tuple[str, str]

# GPT-2's chunks; merges never cross their borders: some English endings; letters, digits, or other
# signs, each with at most one space in front; and white space. `regex` knows \p{L} (letters) and
# \p{N} (numbers) of all scripts.
CHUNKS = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


@functools.cache
def byte_characters() -> dict[int, str]:
    """A printable character for each byte: its own, or from 256 on.

    So a space (byte 32) is written `Ġ`, and `é`, two bytes in UTF-8, is written `Ã©`."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    own = {byte: chr(byte) for byte in printable}
    return own | {byte: chr(256 + i) for i, byte in enumerate(others)}


def written(text: str) -> str:
    """The bytes of a text (UTF-8), each as its character.

    Raises InputError for half a character."""
    check_text("the text", text)
    return "".join(byte_characters()[byte] for byte in text.encode())


def chunks(text: str) -> list[str]:
    """The text as words with the space before them, numbers, signs and white space."""
    return CHUNKS.findall(text)


def merge_pair(tokens: Sequence[str], pair: Pair) -> tuple[str, ...]:
    """The tokens with each occurrence of the pair as one token."""
    merged: list[str] = []
    for token in tokens:
        if merged and (merged[-1], token) == pair:
            merged[-1] += token
        else:
            merged.append(token)
    return tuple(merged)


def learn_merges(texts: Iterable[str], merges: int) -> list[Pair]:
    """The merges: each time the most frequent neighbors in a chunk.

    Of equally frequent pairs the one whose parts are older comes first, as in the `tokenizers`
    library; single bytes are as old as their characters' codes. Fewer when nothing is left to
    merge. For small texts."""
    words = Counter(
        tuple(written(chunk))
        for text in texts
        for chunk in chunks(text)
    )
    age = {
        char: i
        for i, char in enumerate(sorted(byte_characters().values()))
    }
    learned: list[Pair] = []
    while len(learned) < merges:
        pairs: Counter[Pair] = Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += times
        if not pairs:
            break
        best = min(
            pairs, key=lambda p: (-pairs[p], age[p[0]], age[p[1]])
        )
        after: Counter[tuple[str, ...]] = Counter()
        for word, times in words.items():
            after[merge_pair(word, best)] += times
        words = after
        age.setdefault("".join(best), len(age))
        learned.append(best)
    return learned


class ByteBPE:
    """A vocabulary of byte tokens and its encoder. `vocabulary[i]` is the token with id i, written
    in characters; `ids` the way back; `merges` are in the order in which they were learned."""

    def __init__(
        self, vocabulary: dict[str, int], merges: Sequence[Pair]
    ) -> None:
        """vocabulary: token → id."""
        self.ids = vocabulary
        self.merges = list(merges)
        self.vocabulary = sorted(vocabulary, key=vocabulary.__getitem__)
        self.rank = {pair: i for i, pair in enumerate(self.merges)}

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "ByteBPE":
        """A vocabulary of at most `vocab_size` tokens by the library's trainer; its merges are
        those of `learn_merges`. The bytes have the first 256 ids."""
        wrong = f"{vocab_size} tokens cannot hold the 256 bytes"
        require(
            vocab_size >= 256, f"{wrong}: give a larger vocabulary."
        )
        library = ByteLevelBPETokenizer()
        how = {"min_frequency": 1, "show_progress": False}
        library.train_from_iterator(texts, vocab_size, **how)
        model = json.loads(library.to_str())["model"]
        return cls(model["vocab"], [*map(tuple, model["merges"])])

    def __len__(self) -> int:
        return len(self.vocabulary)

    def split_chunk(self, chunk: str) -> tuple[str, ...]:
        """The tokens of one chunk: its bytes, then the oldest merge that fits, until none does."""
        tokens = tuple(written(chunk))
        while known := self.rank.keys() & zip(
            tokens, tokens[1:], strict=False
        ):
            oldest = min(known, key=self.rank.__getitem__)
            tokens = merge_pair(tokens, oldest)
        return tokens

    def split(self, text: str) -> list[str]:
        """The tokens of a text. Raises InputError for half a character."""
        pieces = map(self.split_chunk, chunks(text))
        return [token for piece in pieces for token in piece]

    def encode(self, text: str) -> np.ndarray:
        """Ids of a text, int64 [n]. Raises InputError for half a character."""
        ids = [self.ids[token] for token in self.split(text)]
        return np.array(ids, dtype=np.int64)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the tokens; bytes that are no UTF-8, such as half of a character, become
        `�`. Raises InputError for an id that the vocabulary does not have."""
        ids = list(ids)
        fits = all(0 <= i < len(self) for i in ids)
        mend = "decode with the vocabulary that encoded"
        require(fits, f"an id is outside 0 to {len(self) - 1}: {mend}.")
        byte_of = {char: i for i, char in byte_characters().items()}
        written = "".join(self.vocabulary[i] for i in ids)
        text = bytes(byte_of[char] for char in written)
        return text.decode("utf-8", errors="replace")
