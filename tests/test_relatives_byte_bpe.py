"""Byte-level BPE: by hand against the `tokenizers` library, on a small vocabulary and on GPT-2's
files."""

import json
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import ByteLevelBPETokenizer
from tokenizers.pre_tokenizers import ByteLevel

from spanbert_tutorial import almanac
from spanbert_tutorial.relatives.byte_bpe import (
    ByteBPE,
    byte_characters,
    chunks,
    learn_merges,
    merge_pair,
    written,
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
    return ByteBPE.train([*texts, POEM], 500)


@pytest.fixture(scope="module")
def library(small):
    """The same vocabulary in the `tokenizers` library."""
    return ByteLevelBPETokenizer(small.ids, small.merges)


@pytest.fixture(scope="module")
def gpt2_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    files = folder / "vocab.json", folder / "merges.txt"
    for packed, file in zip(("gpt2-encoder.json.xz", "gpt2-vocab.bpe.xz"), files, strict=True):
        file.write_bytes(lzma.open(REAL / packed).read())
    return files


@pytest.fixture(scope="module")
def gpt2(gpt2_files):
    vocabulary, merges = (file.read_text(encoding="utf-8") for file in gpt2_files)
    pairs = [tuple(line.split(" ")) for line in merges.split("\n")[1:] if line]
    return ByteBPE(json.loads(vocabulary), pairs)


@pytest.fixture(scope="module")
def gpt2_library(gpt2_files):
    """The library's tokenizer, read from the same files without this package."""
    return ByteLevelBPETokenizer(*map(str, gpt2_files))


# --- bytes, chunks, merges ----------------------------------------------------------


def test_every_byte_has_a_printable_character_of_its_own():
    table = byte_characters()
    assert sorted(table) == list(range(256)) and len(set(table.values())) == 256
    assert all(character.isprintable() and not character.isspace() for character in table.values())
    assert set(table.values()) == set(ByteLevel.alphabet())
    assert (table[ord("A")], table[ord(" ")], table[ord("\n")]) == ("A", "Ġ", "Ċ")
    assert written("é ") == "Ã©Ġ"


@pytest.mark.parametrize("text", WORDS)
def test_chunks_are_those_of_the_library(text):
    theirs = [token for token, _ in ByteLevel(add_prefix_space=False).pre_tokenize_str(text)]
    assert [written(chunk) for chunk in chunks(text)] == theirs
    assert "".join(chunks(text)) == text


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
        assert learned == ByteBPE.train(source, 256 + merges).merges
        assert len(learned) <= merges


# --- encoding -----------------------------------------------------------------------


@pytest.mark.parametrize("text", WORDS)
def test_encoding_is_the_librarys_and_comes_back(small, library, text):
    ids = small.encode(text)
    assert ids.tolist() == library.encode(text).ids and ids.dtype == np.int64
    assert small.decode(ids) == text == library.decode(ids.tolist())
    assert [small.vocabulary[i] for i in ids] == small.split(text)


@settings(max_examples=150)
@given(ANY_TEXT)
def test_any_text_comes_back(small, library, text):
    ids = small.encode(text)
    assert small.decode(ids) == text and ids.tolist() == library.encode(text).ids


# --- GPT-2's files ------------------------------------------------------------------


@pytest.mark.real_data
@pytest.mark.parametrize("text", [*WORDS, "<|endoftext|>", "We're in Reykjavík; it's -5°C…"])
def test_gpt2s_tokens(gpt2, gpt2_library, text):
    ids = gpt2.encode(text)
    assert ids.tolist() == gpt2_library.encode(text).ids
    assert gpt2.decode(ids) == text == gpt2_library.decode(ids.tolist())


@pytest.mark.real_data
def test_gpt2s_numbers(gpt2):
    assert (len(gpt2), len(gpt2.merges)) == (50_257, 50_000)
    assert gpt2.split(" It was a great day") == ["ĠIt", "Ġwas", "Ġa", "Ġgreat", "Ġday"]
    assert gpt2.split("It")[0] == "It" != gpt2.split(" It")[0]
