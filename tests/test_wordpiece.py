"""WordPiece by hand and on the library against transformers' BertTokenizer; vocabularies learned,
read and saved."""

import json
import lzma
import math
import os
import re
import time
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
    apply_merges,
    learn_merges,
    merge_pair,
    pair_scores,
    single_tokens,
    split_word,
    split_words,
)
from spanbert_tutorial.errors import InputError

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
        (
            "\u20ac5 $5",
            ["\u20ac5", "$", "5"],
        ),  # of the currency signs only the ASCII one counts as punctuation
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


def test_longest_word():
    vocabulary = {"x", "##x"}
    assert split_word("x" * 100, vocabulary) == ["x"] + ["##x"] * 99
    assert split_word("x" * 101, vocabulary) == ["[UNK]"]
    assert split_word("xxx", vocabulary, longest=2) == ["[UNK]"]


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
    assert learn_merges(COUNTS, 2, by="frequency") == [
        ("##a", "##t"),
        ("##h", "##at"),
    ]  # 8; then 5, the first of two
    assert learn_merges(COUNTS, 2, by="likelihood") == [
        ("q", "##u"),
        ("t", "##h"),
    ]  # 2/4; then 5/25
    assert learn_merges(COUNTS, 1) == learn_merges(COUNTS, 1, by="likelihood")


def test_merges_end_when_every_word_is_one_token():
    for by in ("frequency", "likelihood"):
        merges = learn_merges(COUNTS, 100, by=by)
        assert len(merges) == 5 and {a + b.removeprefix("##") for a, b in merges} >= {
            "that",
            "hat",
            "qu",
        }
    assert learn_merges({"a": 3}, 5) == [] and learn_merges({}, 5) == []


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


def test_the_gain_counts_a_token_that_was_there_before():
    words = {("a", "##bc"): 3, ("ab", "##c"): 4, ("##c",): 1}  # both merges make abc
    words |= {("abc",): 2}
    after = {
        merge_pair(word, ("ab", "##c")): count for word, count in words.items() if word != ("abc",)
    }
    after[("abc",)] += 2
    rise = log_likelihood(after) - log_likelihood(words)
    assert math.isclose(pair_scores(words, "gain")["ab", "##c"], rise, abs_tol=1e-9)


def test_three_criteria_choose_three_first_merges():
    counts = Counter("the hen she sees the queen then the queen sees the hen".split())
    firsts = [learn_merges(counts, 1, by)[0] for by in ("frequency", "likelihood", "gain")]
    assert firsts == [("##h", "##e"), ("q", "##u"), ("t", "##h")]
    with pytest.raises(InputError, match='no criterion "count": give'):
        pair_scores({("a", "##b"): 1}, "count")


def test_the_library_trains_by_frequency():
    words = "the hen she sees the queen then the queen sees the hen".split()
    alphabet = {token for word in words for token in single_tokens(word)}
    size = (
        len(SPECIALS)
        + len(set("".join(words)))
        + len({"##" + c for word in words for c in word[1:]})
    )
    for merges in (1, 2):  # later ones are ties
        made = set(WordPiece.train([" ".join(words)], size + merges).vocabulary) - set(
            WordPiece.train(words, size).vocabulary
        )
        by_hand = learn_merges(Counter(words), merges, "frequency")
        assert (
            made == {left + right.removeprefix("##") for left, right in by_hand}
            and not made & alphabet
        )


def test_merges_applied_to_a_word():
    merges = [("##h", "##e"), ("t", "##he"), ("##e", "##n")]
    assert apply_merges("then", merges) == ("the", "##n") and apply_merges("hen", merges) == (
        "h",
        "##en",
    )
    assert apply_merges("hen", []) == single_tokens("hen") == ("h", "##e", "##n")
    assert apply_merges("a", merges) == ("a",)


# --- agreement with transformers ----------------------------------------------------


def test_the_library_and_the_hand_agree_with_bert_tokenizer_on_small_text(small):
    texts = SENTENCES + ODD
    assert disagreements(small, texts) == []
    theirs = bert_tokenizer_of(small)
    for text in texts:
        assert by_hand(text, small) == theirs.convert_ids_to_tokens(
            theirs(text, add_special_tokens=False)["input_ids"]
        )


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
    ) == (
        0,
        100,
        101,
        102,
        103,
    )
    lines = wikipedia_lines()
    assert len(lines) > 5_000 and disagreements(wordpiece, lines + ODD) == []
    vocabulary = set(wordpiece.vocabulary)
    some = lines[::4]  # the hand version is readable, not fast
    for line, encoding in zip(some, wordpiece.encode_many(some), strict=True):
        tokens = [token for word in split_words(line) for token in split_word(word, vocabulary)]
        assert tokens == wordpiece.tokens(encoding)


@pytest.mark.real_data
def test_agreement_on_wikipedia_with_the_uncased_vocabulary(tmp_path):
    wordpiece = released_vocabulary(tmp_path, "bert-base-uncased-vocab", lowercase=True)
    assert len(wordpiece) == 30_522
    assert disagreements(wordpiece, wikipedia_lines() + ODD) == []


# --- the encoder --------------------------------------------------------------------


def test_specials_come_first_and_mask_in_text_is_the_mask(small):
    assert small.vocabulary[:5] == SPECIALS
    assert (small.pad_id, small.unk_id, small.cls_id, small.sep_id, small.mask_id) == (
        0,
        1,
        2,
        3,
        4,
    )
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


def test_decode_joins_tokens(small):
    assert small.decode(small.encode("The rowers lost, again.")) == "The rowers lost, again."
    assert small.decode(small.encode("The [MASK] lost.")) == "The [MASK] lost."


# --- training -----------------------------------------------------------------------


def test_training_is_deterministic_cased_and_within_size():
    first = WordPiece.train(SENTENCES, 160)
    assert (
        WordPiece.train(iter(SENTENCES), 160).vocabulary == first.vocabulary
    )  # an iterator is read once
    assert len(first) == 160 and len(set(first.vocabulary)) == 160
    assert "The" in first.vocabulary and "the" in first.vocabulary and not first.lowercase
    assert first.unk_id not in np.concatenate(first.encode_many(SENTENCES))


def test_training_is_deterministic_with_more_characters_than_it_keeps():
    # 1,500 characters equally common, of which 1,000 are kept: always the same ones
    texts = [chr(0x4E00 + i) + " a" for i in reversed(range(1_500))] + ["the river"] * 5
    vocabularies = {tuple(WordPiece.train(texts, 1_050).vocabulary) for _ in range(3)}
    assert len(vocabularies) == 1
    assert chr(0x4E00) in next(iter(vocabularies)) and chr(0x4E00 + 1_499) not in next(
        iter(vocabularies)
    )


def test_a_size_that_the_characters_alone_pass():
    with pytest.raises(InputError, match="20 tokens cannot hold .* give a larger vocabulary"):
        WordPiece.train(SENTENCES, 20)


# --- reading and writing ------------------------------------------------------------


def vocab_file(folder: Path, tokens: list[str] | bytes, end: str = "\n") -> Path:
    path = folder / "vocab.txt"
    path.write_bytes(
        tokens if isinstance(tokens, bytes) else "".join(token + end for token in tokens).encode()
    )
    return path


PIECES = [
    "[PAD]",
    "[unused1]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "The",
    "##s",
    "\u00e9",
    "\u2028",
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_line_number_is_the_id(tmp_path, end, mark):
    for last in (True, False):
        data = (mark + end.join(PIECES) + (end if last else "")).encode()
        wordpiece = WordPiece.from_file(vocab_file(tmp_path, data))
        assert wordpiece.vocabulary == PIECES and (wordpiece.unk_id, wordpiece.mask_id) == (2, 5)
        assert wordpiece.tokens(wordpiece.encode("The thes [MASK]")) == [
            "The",
            "the",
            "##s",
            "[MASK]",
        ]


def test_save_vocabulary_comes_back(tmp_path, small):
    small.save_vocabulary(tmp_path / "vocab.txt")
    assert WordPiece.from_file(str(tmp_path / "vocab.txt")).vocabulary == small.vocabulary


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([token for token in PIECES if token != "[MASK]"], r"has no \[MASK\]: add"),
        (
            [token for token in PIECES if token not in ("[PAD]", "[SEP]")],
            r"has no \[PAD\], \[SEP\]: add",
        ),
        ([*PIECES, "the", "The"], "has 2 repeated lines"),
        ([*PIECES, "caf\u00e9".encode("latin-1")], "is not UTF-8 at byte"),
        ([], r"has no \[PAD\], \[UNK\], \[CLS\], \[SEP\], \[MASK\]"),
    ],
)
def test_a_bad_vocabulary_is_named(tmp_path, data, message):
    data = b"".join(token if isinstance(token, bytes) else token.encode() + b"\n" for token in data)
    path = vocab_file(tmp_path, data)
    with pytest.raises(InputError, match=message) as caught:
        WordPiece.from_file(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_the_byte_that_is_not_utf8(tmp_path):
    with pytest.raises(InputError, match="at byte 7:"):
        WordPiece.from_file(vocab_file(tmp_path, b"[PAD]\n\xc3("[:6] + b"a\xe9\n"))


def test_a_vocabulary_that_is_missing_or_a_folder(tmp_path):
    with pytest.raises(InputError, match=re.escape(f"{tmp_path / 'none.txt'} does not exist")):
        WordPiece.from_file(tmp_path / "none.txt")
    with pytest.raises(InputError, match=re.escape(f"{tmp_path} cannot be read")):
        WordPiece.from_file(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        '{"model": null}',
        '{"model": {"type": "BPE", "vocab": {"[PAD]": 0}}}',
        '{"model": {"type": "WordPiece", "vocab": ["[PAD]"]}}',
    ],
)
def test_a_json_file_that_is_no_wordpiece_tokenizer(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(f"{path} is not a tokenizer.json")):
        WordPiece.from_file(path)


def test_ids_with_a_gap_are_refused(tmp_path, small):
    small.save(tmp_path)
    settings_ = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    del settings_["model"]["vocab"][small.vocabulary[7]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings_), encoding="utf-8")
    with pytest.raises(InputError, match="without a gap"):
        WordPiece.from_file(tmp_path / "tokenizer.json")


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


def test_a_word_without_end_costs_no_endless_time_and_teaches_nothing():
    """The trainer alone would take hours for it; words of 1,000 characters are learned from as
    before."""
    texts = ["the old boat and the boats", "的" * 3_000, "y" * 1_000]
    plain = WordPiece.train(texts, 60)
    began = time.monotonic()
    again = WordPiece.train([texts[0] + " " + "x" * 2_000_000 + ", the boat", *texts[1:]], 60)
    assert time.monotonic() - began < 60 and "x" not in again.vocabulary
    assert "的" in plain.vocabulary and "##yy" in plain.vocabulary
    assert (
        again.vocabulary == WordPiece.train([texts[0] + " , the boat", *texts[1:]], 60).vocabulary
    )
    assert again.tokens(again.encode("x" * 2_000_000 + " boat"))[0] == "[UNK]"
