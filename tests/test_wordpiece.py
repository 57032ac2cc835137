"""WordPiece by hand and on the library against transformers' BertTokenizer; vocabularies learned,
read and saved."""

import json
import lzma
import math
import os
import unicodedata
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertTokenizer

from spanbert_tutorial.bert.wordpiece import (
    SPECIALS,
    WordPiece,
    learn_merges,
    merge_pair,
    pair_scores,
    single_tokens,
    split_word,
    split_words,
)

# Words, names, numbers, signs: enough for a vocabulary in which some words stay whole and others do
# not.
SENTENCES = [
    "Anna Weber founded the Harlow Rowing Club in 1921, beside the old mill on the river Teal.",
    "The club's first boat was built by hand; it cost 40 pounds and sank twice.",
    "In 1922 the rowers of Harlow met the rowers of Upper Teal and lost by three lengths.",
    'Weber said: "We will row again." They rowed again, and again, and won (by a hand) in 1925.',
    "A river-boat and its re-built mill-house stood near the founder's house until 1960.",
] * 3
ODD = [
    "",
    "   ",
    "caf\u00e9 cafe\u0301 Z\u00fcrich Zu\u0308rich \u00d8re",  # accents composed and decomposed
    # Chinese stands alone, Hangul not
    "\u6771\u4eac Tokyo\u6771\u4eac \u3402 \u304b\u306a \ud55c\uad6d\uc5b4",
    "\U0001f600 a\U0001f600b \U0001f469\u200d\U0001f680",  # emoji, one joined of several
    "a\tb\nc\r\nd\u00a0e\u2003f\u3000g",  # spaces of many kinds
    # control and format characters, no spaces
    "\x00a\x01b\x0bc\x0cd\x1ce\x7ff\x85g\u200bh\u00adi\ufeffj\ufffdk",
    "x" * 100 + " " + "x" * 101 + " " + "\u00e9" * 100,
    "$5 ~a~ ^b^ `c` <d> =e= |f| +g+ h@i.j #k _l_ a\u2013b \u201cc\u201d \u2026 \u00bfd\u00a7 "
    "\u20ac5 \u00b0C \u00d72",
    "##ing #ing ### [] [MASK [mask] [ MASK ]",
    "U.S. rock-and-roll isn't O'Neill 1,000.50 3:30",
]


@pytest.fixture(scope="module")
def small() -> WordPiece:
    return WordPiece.train(SENTENCES, 160)


def bert_tokenizer_of(wordpiece: WordPiece) -> BertTokenizer:
    """transformers' tokenizer on the same vocabulary."""
    vocabulary = {token: i for i, token in enumerate(wordpiece.vocabulary)}
    return BertTokenizer(vocab=vocabulary, do_lower_case=wordpiece.lowercase)


def by_hand(text: str, wordpiece: WordPiece) -> list[str]:
    vocabulary = set(wordpiece.vocabulary)
    return [token for word in split_words(text) for token in split_word(word, vocabulary)]


def disagreements(wordpiece: WordPiece, texts: list[str]) -> list[str]:
    theirs = bert_tokenizer_of(wordpiece)(texts, add_special_tokens=False)["input_ids"]
    return [
        text
        for text, ids, there in zip(texts, wordpiece.encode_many(texts), theirs, strict=True)
        if ids != there
    ]


# --- words --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The U.S. is old.", ["The", "U", ".", "S", ".", "is", "old", "."]),
        ("isn't re-built", ["isn", "'", "t", "re", "-", "built"]),
        ("\u6771\u4eacTokyo", ["\u6771", "\u4eac", "Tokyo"]),
        ("a\u200bb\x00c\ufffdd", ["abcd"]),
        ("a\x0bb\x85c", ["abc"]),  # control characters for Unicode, though Python calls them space
        ("a\tb\nc\rd\u00a0e", ["a", "b", "c", "d", "e"]),
        # of the currency signs only the ASCII one counts as punctuation
        ("\u20ac5 $5", ["\u20ac5", "$", "5"]),
        ("a\u0378b", ["a\u0378b"]),  # a code that stands for no character stays
        ("", []),
    ],
)
def test_split_words(text, words):
    assert split_words(text) == words


def settled(character: str) -> bool:
    """Whether Unicode says of a character what it said in 2002: newer ones depend on the library's
    Unicode tables."""
    before = unicodedata.ucd_3_2_0.category(character)
    return before != "Cn" and before != "Cs" and before == unicodedata.category(character)


def test_split_words_agrees_with_the_library_on_every_character(small):
    library = small.library
    characters = [chr(code) for code in range(0x110000) if settled(chr(code))]
    assert len(characters) > 200_000
    for character in characters:
        text = f"a{character}b"
        words = [
            word
            for word, _ in library.pre_tokenizer.pre_tokenize_str(
                library.normalizer.normalize_str(text)
            )
        ]
        assert split_words(text) == words, hex(ord(character))


# --- tokens of a word ---------------------------------------------------------------


def test_longest_match_first_is_greedy_and_may_fail_where_a_division_exists():
    assert split_word("unable", {"un", "##able", "una", "##ble"}) == ["una", "##ble"]
    # "un" + "##able" would do, but the longest match comes first and is not taken back
    assert split_word("unable", {"un", "##able", "una", "##bl"}) == ["[UNK]"]
    assert split_word("able", {"##able"}) == ["[UNK]"]


words = st.text(alphabet="ab\u00e9", min_size=1, max_size=12)


@given(
    words,
    st.sets(
        st.text(alphabet="ab", min_size=1, max_size=3).flatmap(
            lambda p: st.sampled_from([p, "##" + p])
        )
    ),
)
def test_tokens_join_to_the_word_or_it_is_unknown(word, vocabulary):
    tokens = split_word(word, vocabulary)
    if tokens != ["[UNK]"]:
        assert set(tokens) <= vocabulary
        assert tokens[0] + "".join(token.removeprefix("##") for token in tokens[1:]) == word
        assert all(token.startswith("##") for token in tokens[1:])


# --- learning, by hand --------------------------------------------------------------

# Tokens: t 5, ##h 5, ##a 8, ##t 8, h 3, q 2, ##u 2.
COUNTS = {"that": 5, "hat": 3, "qu": 2}


def test_scores_worked_by_hand():
    words = {("t", "##h", "##a", "##t"): 5, ("h", "##a", "##t"): 3, ("q", "##u"): 2}
    assert pair_scores(words, "frequency") == {
        ("t", "##h"): 5,
        ("##h", "##a"): 5,
        ("##a", "##t"): 8,
        ("h", "##a"): 3,
        ("q", "##u"): 2,
    }
    assert pair_scores(words) == {
        ("t", "##h"): 5 / 25,
        ("##h", "##a"): 5 / 40,
        ("##a", "##t"): 8 / 64,
        ("h", "##a"): 3 / 24,
        ("q", "##u"): 2 / 4,
    }
    # a token that stands twice in a word counts twice: a 3, ##a 6
    assert pair_scores({("a", "##a", "##a"): 3}) == {("a", "##a"): 3 / 18, ("##a", "##a"): 3 / 36}


def test_frequency_and_likelihood_choose_different_first_merges():
    # 8; then 5, the first of two
    assert learn_merges(COUNTS, 2, by="frequency") == [("##a", "##t"), ("##h", "##at")]
    # 2/4; then 5/25
    assert learn_merges(COUNTS, 2, by="likelihood") == [("q", "##u"), ("t", "##h")]
    assert learn_merges(COUNTS, 1) == learn_merges(COUNTS, 1, by="likelihood")


@pytest.mark.parametrize(
    ("word", "pair", "merged"),
    [
        (("a", "##b", "##a", "##b"), ("##a", "##b"), ("a", "##b", "##ab")),
        (("x", "##a", "##a", "##a"), ("##a", "##a"), ("x", "##aa", "##a")),
        (("a", "##a"), ("a", "##a"), ("aa",)),
        (("a", "##b"), ("b", "##a"), ("a", "##b")),
        ((), ("a", "##b"), ()),
    ],
)
def test_merge_pair(word, pair, merged):
    assert merge_pair(word, pair) == merged


@given(
    st.dictionaries(
        st.text(alphabet="abc", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=6
    )
)
def test_each_learned_merge_has_the_best_score(word_counts):
    state = {(word[0], *("##" + c for c in word[1:])): count for word, count in word_counts.items()}
    for pair in learn_merges(word_counts, 4):
        tokens = [(token, count) for word, count in state.items() for token in word]
        pairs = [
            (two, count)
            for word, count in state.items()
            for two in zip(word, word[1:], strict=False)
        ]

        def total(things, wanted):
            return sum(count for thing, count in things if thing == wanted)

        def score(two, tokens=tokens, pairs=pairs):
            return Fraction(total(pairs, two), total(tokens, two[0]) * total(tokens, two[1]))

        assert score(pair) == max(score(two) for two, _ in pairs)
        state = {merge_pair(word, pair): count for word, count in state.items()}
        assert {"".join(p.removeprefix("##") for p in word) for word in state} == set(word_counts)


def log_likelihood(words: dict[tuple[str, ...], int]) -> float:
    """Of all tokens of the words, each token drawn by its share."""
    tokens = Counter()
    for word, count in words.items():
        tokens.update({token: count * word.count(token) for token in set(word)})
    return sum(count * math.log(count / tokens.total()) for count in tokens.values())


@given(
    st.dictionaries(
        st.text(alphabet="abc", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=6
    )
)
def test_the_gain_is_the_rise_of_the_log_likelihood(word_counts):
    before = {single_tokens(word): count for word, count in word_counts.items()}
    for pair, gain in pair_scores(before, "gain").items():
        if pair[0] != pair[1]:  # pairs of one and the same token may overlap
            after = {merge_pair(word, pair): count for word, count in before.items()}
            assert math.isclose(gain, log_likelihood(after) - log_likelihood(before), abs_tol=1e-9)


# --- agreement with transformers ----------------------------------------------------


@given(
    st.text(
        alphabet=st.sampled_from("abteTh river.-'\u00e9\u0301\u6771 \t\n\x00\x85\u200b##[]"),
        max_size=40,
    )
)
def test_hand_and_library_agree_on_any_text(text):
    vocabulary = [*SPECIALS, *"abteThriv.-'\u00e9\u6771[]#", "the"]
    vocabulary += ["##a", "##b", "##e", "##h", "##er", "##iver", "##\u0301"]
    wordpiece = WordPiece({token: i for i, token in enumerate(vocabulary)})
    assert wordpiece.tokens(wordpiece.encode(text)) == by_hand(text, wordpiece)


def test_lower_case_takes_accents_off_as_bert_does(small):
    vocabulary = {token: i for i, token in enumerate(small.vocabulary)}
    lower = WordPiece(vocabulary, lowercase=True)
    assert disagreements(lower, SENTENCES + ODD) == []
    assert lower.encode("THE R\u00edver").tolist() == small.encode("the river").tolist()
    assert not small.lowercase and small.encode("The").tolist() != small.encode("the").tolist()


REAL = Path(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA", "unset"))


def released_vocabulary(folder: Path, name: str, lowercase: bool) -> WordPiece:
    path = folder / "vocab.txt"
    path.write_bytes(lzma.decompress((REAL / "vocab" / f"{name}.txt.xz").read_bytes()))
    return WordPiece.from_file(path, lowercase)


def wikipedia_lines() -> list[str]:
    with lzma.open(REAL / "wikipedia" / "valid.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [line for document in lines for line in json.loads(document)["text"].split("\n")]


@pytest.mark.real_data
def test_agreement_on_wikipedia_with_the_cased_vocabulary(tmp_path):
    wordpiece = released_vocabulary(tmp_path, "bert-base-cased-vocab", lowercase=False)
    assert len(wordpiece) == 28_996 and (~wordpiece.starts).sum() == 6_477
    assert (
        wordpiece.pad_id,
        wordpiece.unk_id,
        wordpiece.cls_id,
        wordpiece.sep_id,
        wordpiece.mask_id,
    ) == (0, 100, 101, 102, 103)
    lines = wikipedia_lines()
    assert len(lines) > 5_000 and disagreements(wordpiece, lines + ODD) == []
    vocabulary = set(wordpiece.vocabulary)
    some = lines[::4]  # the hand version is readable, not fast
    for line, encoding in zip(some, wordpiece.encode_many(some), strict=True):
        tokens = [token for word in split_words(line) for token in split_word(word, vocabulary)]
        assert tokens == wordpiece.tokens(encoding)


# --- the encoder --------------------------------------------------------------------


def test_specials_come_first_and_mask_in_text_is_the_mask(small):
    assert small.vocabulary[:5] == SPECIALS
    ids = small.pad_id, small.unk_id, small.cls_id, small.sep_id, small.mask_id
    assert ids == (0, 1, 2, 3, 4)
    ids = small.encode("The [MASK][MASK] of a[MASK].")
    assert (ids == small.mask_id).sum() == 3
    assert small.tokens(ids)[:3] == ["The", "[MASK]", "[MASK]"]
    assert small.encode("[CLS] [SEP] [PAD] [UNK]").tolist() == [2, 3, 0, 1]


def test_encode_and_encode_many_give_the_same(small):
    texts = SENTENCES + ODD
    assert [small.encode(text).tolist() for text in texts] == small.encode_many(texts)
    assert small.encode("").dtype == np.int64 and small.encode("").shape == (0,)
    assert small.encode_many([]) == []


def test_word_starts(small):
    ids = small.encode("Upper rowers, [MASK] \U0001f600.")
    expected = [not token.startswith("##") for token in small.tokens(ids)]
    assert small.word_starts(ids).tolist() == expected and expected.count(False) > 0
    assert small.word_starts(ids).sum() == len(split_words("Upper rowers, M \U0001f600."))
    assert small.word_starts(np.stack([ids, ids])).shape == (2, len(ids))
    assert small.word_starts(np.arange(5)).all()  # specials count as words


# --- reading and writing ------------------------------------------------------------


def vocab_file(folder: Path, tokens: list[str] | bytes, end: str = "\n") -> Path:
    path = folder / "vocab.txt"
    path.write_bytes(
        tokens if isinstance(tokens, bytes) else "".join(token + end for token in tokens).encode()
    )
    return path


PIECES = "[PAD] [unused1] [UNK] [CLS] [SEP] [MASK] the The ##s \u00e9".split() + ["\u2028"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_line_number_is_the_id(tmp_path, end, mark):
    for last in (True, False):
        data = (mark + end.join(PIECES) + (end if last else "")).encode()
        wordpiece = WordPiece.from_file(vocab_file(tmp_path, data))
        assert wordpiece.vocabulary == PIECES and (wordpiece.unk_id, wordpiece.mask_id) == (2, 5)
        assert wordpiece.tokens(wordpiece.encode("The thes [MASK]")) == "The the ##s [MASK]".split()


def test_save_vocabulary_comes_back(tmp_path, small):
    small.save_vocabulary(tmp_path / "vocab.txt")
    assert WordPiece.from_file(str(tmp_path / "vocab.txt")).vocabulary == small.vocabulary


@pytest.mark.parametrize("lowercase", [False, True])
def test_saved_tokenizers_open_in_transformers_and_here(tmp_path, small, lowercase):
    wordpiece = WordPiece({token: i for i, token in enumerate(small.vocabulary)}, lowercase)
    wordpiece.save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    for theirs in (
        AutoTokenizer.from_pretrained(tmp_path),
        BertTokenizer.from_pretrained(tmp_path),
    ):
        texts = SENTENCES + ODD
        assert theirs(texts, add_special_tokens=False)["input_ids"] == wordpiece.encode_many(texts)
        assert theirs("The river")["input_ids"] == [2, *wordpiece.encode("The river").tolist(), 3]
        assert (
            theirs("The", "river")["token_type_ids"].count(1) == len(wordpiece.encode("river")) + 1
        )
        assert (theirs.mask_token_id, theirs.pad_token_id, theirs.model_max_length) == (4, 0, 512)
    again = WordPiece.from_file(tmp_path / "tokenizer.json")
    assert again.vocabulary == wordpiece.vocabulary and again.lowercase == lowercase
    library = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert (
        library.encode("The River", add_special_tokens=False).ids
        == wordpiece.encode("The River").tolist()
    )
