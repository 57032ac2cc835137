"""Byte-level BPE: tokens of bytes, so that no text is unknown. Chapter: `book/relatives/roberta`.

Every text is a sequence of bytes, and there are only 256. Each byte is written as one printable
character; frequent neighbors are merged; encoding repeats the merges in the order in which they
were learned. Nothing is lost: what was encoded can be decoded, byte for byte. Source: RoBERTa §4.4,
after GPT-2.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

import regex
from tokenizers import ByteLevelBPETokenizer

from spanbert_tutorial.errors import check_text

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


def byte_level_tokenizer(
    texts: Iterable[str], vocab_size: int
) -> ByteLevelBPETokenizer:
    """The library's tokenizer with at most `vocab_size` tokens: the 256 bytes, then the merges of
    `learn_merges`, but fast."""
    tokenizer = ByteLevelBPETokenizer()
    how = {"min_frequency": 1, "show_progress": False}
    tokenizer.train_from_iterator(texts, vocab_size, **how)
    return tokenizer
