"""Byte-level BPE: tokens of bytes, so that no text is unknown. Chapter: `book/relatives/roberta`.

Every text is a sequence of bytes, and there are only 256. Each byte is written as one printable
character; frequent neighbors are merged; encoding repeats the merges in the order in which they
were learned. Nothing is lost: what was encoded can be decoded, byte for byte. Source: RoBERTa §4.4,
after GPT-2.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import ByteLevelBPETokenizer
from tokenizers.pre_tokenizers import ByteLevel

Pair = tuple[str, str]

SPLIT = ByteLevel(add_prefix_space=False)  # as GPT-2 does


def chunks(text: str) -> list[str]:
    """The text as words with the space before them, numbers, signs and white space, each byte
    written as one printable character; merges never cross their borders."""
    return [chunk for chunk, _ in SPLIT.pre_tokenize_str(text)]


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
        tuple(chunk) for text in texts for chunk in chunks(text)
    )
    age = {c: i for i, c in enumerate(sorted(SPLIT.alphabet()))}
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
