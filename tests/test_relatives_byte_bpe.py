"""Byte-level BPE: by hand against the `tokenizers` library, on a small vocabulary and on GPT-2's
files."""

import json
import lzma
import os
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import ByteLevelBPETokenizer

from spanbert_tutorial import almanac
from spanbert_tutorial.relatives.byte_bpe import (
    byte_level_tokenizer,
    chunks,
    learn_merges,
    merge_pair,
)

REAL = Path(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA", "")) / "vocab"
POEM = "the heron the thrush she then hen queen 한국어"
WORDS = [
    " It was a great day",
    "It was a great day",
    "I had a sudden epiphany",
    "don't we'll I'd they've 'S",
    "",
    "é é",
    "  two  spaces ",
    "\n\n\ttabs\n",
    "1,234.56 x²",
    "🙂",
    "한국어 안녕하세요",
    "中文 العربية",
    "\x00\x7f\xad",
]
# What a character is (letter, number, sign) is asked of two programs, which may know newer
# characters sooner or later: so only those that Python knows, too. Cn: not assigned, Cs: half of a
# character, Co: private.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cn", "Cs", "Co"]), max_size=60)


@pytest.fixture(scope="module")
def texts():
    return [
        document["text"] for document, _ in zip(almanac.read("train"), range(150), strict=False)
    ]


@pytest.fixture(scope="module")
def small(texts):
    return byte_level_tokenizer([*texts, POEM], 500)


def merges_of(tokenizer) -> list[tuple[str, str]]:
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def split(text: str, merges) -> list[str]:
    """Encoding by hand: all merges, in the order in which they were learned."""
    pieces = [reduce(merge_pair, merges, tuple(chunk)) for chunk in chunks(text)]
    return [token for piece in pieces for token in piece]


# --- bytes, chunks, merges ----------------------------------------------------------


def test_chunks_by_hand():
    assert chunks("It's  12é,\n") == ["It", "'s", "Ġ", "Ġ12", "Ã©", ",", "Ċ"]


def test_pairs_are_merged_from_the_left():
    assert merge_pair("aaaaa", ("a", "a")) == ("aa", "aa", "a")
    assert merge_pair(("ab", "a", "b"), ("a", "b")) == ("ab", "ab")
    assert merge_pair("abc", ("c", "a")) == ("a", "b", "c")


def test_merges_by_hand():
    """`lo` stands 5 times, then ` lo` 3 times (the first word has no space); `ow` and `we` never
    beat them."""
    assert learn_merges(["low low low lowe lot"], 2) == [("l", "o"), ("Ġ", "lo")]
    assert learn_merges(["a"], 5) == [] and learn_merges(["ab ab"], 9) == [("a", "b"), ("Ġ", "ab")]


@pytest.mark.parametrize("merges", [1, 40, 150])
def test_merges_are_those_of_the_library(texts, merges):
    """The almanac, and a text in which many pairs are equally frequent."""
    for source in (texts[:60], [POEM], ["abcabdabe xyz", "é한é한"]):
        learned = learn_merges(source, merges)
        assert learned == merges_of(byte_level_tokenizer(source, 256 + merges))
        assert len(learned) <= merges


# --- encoding -----------------------------------------------------------------------


@pytest.mark.parametrize("text", WORDS)
def test_encoding_is_the_librarys_and_comes_back(small, text):
    encoded = small.encode(text)
    assert encoded.tokens == split(text, merges_of(small))
    assert small.decode(encoded.ids) == text


@settings(max_examples=150)
@given(ANY_TEXT)
def test_any_text_comes_back(small, text):
    encoded = small.encode(text)
    assert encoded.tokens == split(text, merges_of(small)) and small.decode(encoded.ids) == text


# --- GPT-2's files ------------------------------------------------------------------


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """The library's tokenizer, read from GPT-2's files."""
    folder = tmp_path_factory.mktemp("gpt2")
    files = folder / "vocab.json", folder / "merges.txt"
    for packed, file in zip(("gpt2-encoder.json.xz", "gpt2-vocab.bpe.xz"), files, strict=True):
        file.write_bytes(lzma.open(REAL / packed).read())
    return ByteLevelBPETokenizer(*map(str, files))


@pytest.mark.real_data
@pytest.mark.parametrize("text", [*WORDS, "<|endoftext|>", "We're in Reykjavík; it's -5°C…"])
def test_gpt2s_tokens(gpt2, text):
    assert gpt2.encode(text).tokens == split(text, merges_of(gpt2))


@pytest.mark.real_data
def test_gpt2s_numbers(gpt2):
    assert (gpt2.get_vocab_size(), len(merges_of(gpt2))) == (50_257, 50_000)
    great = gpt2.encode(" It was a great day").tokens
    assert great == ["ĠIt", "Ġwas", "Ġa", "Ġgreat", "Ġday"]
    assert gpt2.encode("It").tokens[0] == "It"
