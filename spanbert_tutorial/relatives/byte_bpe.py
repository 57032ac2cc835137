"""Byte-level BPE: tokens of bytes, so that no text is unknown. Chapter: `book/relatives/roberta`.

Every text is a sequence of bytes, and there are only 256. Each byte is written as one printable
character; frequent neighbors are merged; encoding repeats the merges in the order in which they
were learned. Nothing is lost: what was encoded can be decoded, byte for byte. Source: RoBERTa §4.4,
after GPT-2, whose two files this module reads.
"""

import functools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import regex
from tokenizers import ByteLevelBPETokenizer

from spanbert_tutorial.errors import (
    InputError,
    check_text,
    parse_json,
    regular_file,
    require,
)
from spanbert_tutorial.text.lines import lines_of

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
    try:
        return "".join(
            byte_characters()[byte] for byte in text.encode("utf-8")
        )
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        raise InputError(
            f"the text has half a character ({half}), which has no bytes: take it out."
        ) from None


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
        for word, count in words.items():
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += count
        if not pairs:
            break
        best = min(
            pairs, key=lambda p: (-pairs[p], age[p[0]], age[p[1]])
        )
        after: Counter[tuple[str, ...]] = Counter()
        for word, count in words.items():
            after[merge_pair(word, best)] += count
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
        """vocabulary: token → id. Raises InputError when a byte or a merged token is missing from
        it, or its ids have gaps."""
        tokens = [*byte_characters().values(), *map("".join, merges)]
        missing = next(
            (token for token in tokens if token not in vocabulary), None
        )
        require(
            missing is None,
            f"the vocabulary lacks {missing!r}: take the files of one and the same model.",
        )
        check_text("a token of the vocabulary", *vocabulary)
        whole = all(
            type(number) is int for number in vocabulary.values()
        )
        require(
            whole
            and sorted(vocabulary.values())
            == list(range(len(vocabulary))),
            "the ids of the vocabulary are not 0, 1, 2, … without a gap: take a whole file.",
        )
        self.ids = dict(vocabulary)
        self.merges = list(merges)
        self.vocabulary = sorted(
            vocabulary, key=lambda token: vocabulary[token]
        )
        self.rank = {
            pair: rank for rank, pair in enumerate(self.merges)
        }
        self.cached = functools.lru_cache(maxsize=100_000)(
            self.split_chunk
        )

    @classmethod
    def from_files(
        cls, vocabulary: str | Path, merges: str | Path
    ) -> "ByteBPE":
        """Reads GPT-2's files, `encoder.json` (or `vocab.json`) and `vocab.bpe` (or `merges.txt`).
        Raises InputError for files that are missing or not of this form."""
        try:
            tokens, text = (
                regular_file(path).read_text(encoding="utf-8")
                for path in (vocabulary, merges)
            )
            lines = [
                line
                for line in lines_of(text)
                if line and not line.startswith("#version")
            ]
            pairs = [
                (left, right)
                for left, right in (line.split(" ") for line in lines)
            ]
            ids = dict(parse_json(tokens))
        except (OSError, TypeError, ValueError):
            wrong = f"{vocabulary} and {merges} cannot be read as a byte-level vocabulary"
            raise InputError(
                f"{wrong}: give GPT-2's encoder.json and vocab.bpe."
            ) from None
        return cls(ids, pairs)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "ByteBPE":
        """A vocabulary of at most `vocab_size` tokens by the library's trainer; its merges are
        those of `learn_merges`. The bytes have the first 256 ids."""
        require(
            vocab_size >= 256,
            f"{vocab_size} tokens cannot hold the 256 bytes: give a larger vocabulary.",
        )
        library = ByteLevelBPETokenizer()
        library.train_from_iterator(
            texts,
            vocab_size=vocab_size,
            min_frequency=1,
            show_progress=False,
        )
        model = json.loads(library.to_str())["model"]
        return cls(
            model["vocab"], [tuple(pair) for pair in model["merges"]]
        )

    def __len__(self) -> int:
        return len(self.vocabulary)

    def split_chunk(self, chunk: str) -> tuple[str, ...]:
        """The tokens of one chunk: its bytes, then the oldest merge that fits, until none does."""
        tokens = tuple(written(chunk))
        while known := [
            p
            for p in zip(tokens, tokens[1:], strict=False)
            if p in self.rank
        ]:
            tokens = merge_pair(
                tokens, min(known, key=self.rank.__getitem__)
            )
        return tokens

    def split(self, text: str) -> list[str]:
        """The tokens of a text. Raises InputError for half a character."""
        return [
            token
            for chunk in chunks(text)
            for token in self.split_chunk(chunk)
        ]

    def encode(self, text: str) -> np.ndarray:
        """Ids of a text, int64 [n]. Raises InputError for half a character."""
        return np.array(
            [self.ids[token] for token in self.split(text)],
            dtype=np.int64,
        )

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the tokens; bytes that are no UTF-8, such as half of a character, become
        `�`. Raises InputError for an id that the vocabulary does not have."""
        ids = list(ids)
        wrong = next((i for i in ids if not 0 <= i < len(self)), None)
        require(
            wrong is None,
            f"the id {wrong} is outside 0 to {len(self) - 1}: decode with the vocabulary that "
            "encoded.",
        )
        byte_of = {
            character: byte
            for byte, character in byte_characters().items()
        }
        text = bytes(
            byte_of[character]
            for i in ids
            for character in self.vocabulary[i]
        )
        return text.decode("utf-8", errors="replace")
