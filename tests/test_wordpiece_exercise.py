"""The checks of the WordPiece exercises: right attempts pass, each likely mistake is named."""

import pytest

from spanbert_tutorial.bert.wordpiece import pair_scores, split_word
from spanbert_tutorial.exercises.wordpiece import (
    check_score,
    check_split,
    diagnose_score,
    diagnose_split,
)

# --- longest match first -------------------------------------------------------------


def right(word, vocabulary):
    tokens = []
    while word.removeprefix("##"):
        end = len(word)
        while end and word[:end] not in vocabulary:
            end -= 1
        if end < 3 and word.startswith("##") or not end:
            return ["[UNK]"]
        tokens.append(word[:end])
        word = "##" + word[end:]
    return tokens or ["[UNK]"]


def greedy(word, vocabulary, *, mark="##", shortest=False, missing=None, first_mark=""):
    """Longest match first with a choice of mistakes. missing: what to do at a place without a
    match."""
    tokens = []
    start = 0
    while start < len(word):
        ends = range(len(word), start, -1)
        prefix = mark if start else first_mark
        found = [
            end
            for end in (reversed(ends) if shortest else ends)
            if prefix + word[start:end] in vocabulary
        ]
        if not found:
            return missing(tokens, word[start:]) if missing else ["[UNK]"]
        tokens.append(prefix + word[start : found[0]])
        start = found[0]
    return tokens or ["[UNK]"]


def without_marks(word, vocabulary):
    return [token.removeprefix("##") for token in split_word(word, vocabulary)]


def inside_without_marks(word, vocabulary):  # looks for a token with or without ##
    everything = {token.removeprefix("##") for token in vocabulary}
    tokens = greedy(word, everything, mark="")
    return tokens[:1] + ["##" + token for token in tokens[1:]]


def any_division(word, vocabulary):
    if not word:
        return ["[UNK]"]

    def rest(start):
        if start == len(word):
            return []
        for end in range(len(word), start, -1):
            token = ("##" if start else "") + word[start:end]
            if token in vocabulary and (after := rest(end)) is not None:
                return [token, *after]
        return None

    return rest(0) or ["[UNK]"]


def crashes_on_empty(word, vocabulary):
    word[0]
    return split_word(word, vocabulary)


def crashes_without_match(word, vocabulary):
    start = 0
    tokens = []
    while start < len(word):
        end = [
            e
            for e in range(len(word), start, -1)
            if ("##" if start else "") + word[start:e] in vocabulary
        ][0]
        tokens = [*tokens, ("##" if start else "") + word[start:end]]
        start = end
    return tokens or ["[UNK]"]


@pytest.mark.parametrize(
    "attempt", [right, split_word, greedy, lambda *given: tuple(split_word(*given))]
)
def test_right_divisions(attempt, capsys):
    check_split(attempt)
    assert capsys.readouterr().out.startswith("Correct")


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda *given: None, "returns nothing"),
        (without_marks, "those that do not begin the word carry ##"),
        (lambda *given: greedy(*given, mark=""), "carry ##"),
        (
            lambda word, v: ["[UNK]"],
            "this word has tokens. Look inside the word for tokens with ##",
        ),
        (lambda *given: greedy(*given, shortest=True), "you took a shorter match"),
        (
            lambda *given: greedy(*given, missing=lambda tokens, rest: tokens),
            "a word is never split in part",
        ),
        (
            lambda *given: greedy(*given, missing=lambda p, rest: [*p, "[UNK]"]),
            "tokens before it included",
        ),
        (
            lambda *given: greedy(*given, missing=lambda p, rest: [*p, "##" + rest]),
            "inside a word only tokens with ##",
        ),
        (inside_without_marks, "so it cannot begin a word"),
        (
            lambda word, v: ["s", "##and"] if word == "sand" else split_word(word, v),
            "inside a word only tokens",
        ),
        (any_division, "the longest match comes first and is not taken back"),
        (
            lambda word, v: split_word(word, v) if word != "able" else ["##able"],
            "so it cannot begin a word",
        ),
        (lambda word, v: split_word(word, v)[:1], "do not add up to the word"),
        (
            crashes_on_empty,
            "IndexError: string index out of range, in the line `word[0]`. There are no tokens",
        ),
        (
            lambda word, v: split_word(word, v) if word else [],
            "the empty word has no tokens, so it is unknown",
        ),
        (crashes_without_match, "`. What if no token"),
        (lambda *given: greedy(*given, first_mark="##"), "has no ##, and all others have it"),
        (lambda word: [word], "2 were given. Try it by hand"),
        (
            lambda word, v: " ".join(split_word(word, v)),
            "returns 'rower ##s' (str). Return a list of tokens",
        ),
        (lambda word, v: 2, '"rowers", the function returns 2 (int). Return a list of tokens'),
        (lambda word, v: ["row", "ers"], "ers is not in the vocabulary. With and without ##"),
    ],
)
def test_each_mistake_of_a_division_is_named(attempt, sentence):
    assert sentence in diagnose_split(attempt) and diagnose_split(attempt).startswith("Not yet: ")


# --- the score ----------------------------------------------------------------------


def count(words, thing):
    if isinstance(thing, tuple):
        return sum(n * list(zip(w, w[1:], strict=False)).count(thing) for w, n in words.items())
    return sum(n * w.count(thing) for w, n in words.items())


def in_words(words, token):
    return sum(n for w, n in words.items() if token in w)


def in_pairs(words, token, side):
    return sum(
        n * [pair[side] for pair in zip(w, w[1:], strict=False)].count(token)
        for w, n in words.items()
    )


def score(words, pair):
    return count(words, pair) / count(words, pair[0]) / count(words, pair[1])


@pytest.mark.parametrize("attempt", [score, lambda words, pair: pair_scores(words)[pair]])
def test_right_scores(attempt, capsys):
    check_score(attempt)
    assert capsys.readouterr().out.startswith("Correct")


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda *given: None, "returns nothing"),
        (count, "that is the frequency"),
        (lambda w, p: count(w, p) / (count(w, p[0]) + count(w, p[1])), "Take their product"),
        (lambda w, p: count(w, p) / count(w, p[0]), "by the count of the left token only"),
        (lambda w, p: count(w, p) / count(w, p[1]), "by the count of the right token only"),
        (
            lambda w, p: count(w, p) / count(w, p[0]) * count(w, p[1]),
            "Put the product in parentheses",
        ),
        (
            lambda w, p: count(w, p) / in_pairs(w, p[0], 0) / in_pairs(w, p[1], 1),
            "only in pairs. It counts",
        ),
        (lambda w, p: str(score(w, p)), "(str). Return one number"),
        (lambda w, p: score(dict.fromkeys(w, 1), p), "you count every word once"),
        (
            lambda w, p: count(w, p) / in_words(w, p[0]) / in_words(w, p[1]),
            "occurs twice in a word, it counts twice",
        ),
        (
            lambda w, p: (
                sum(n for x, n in w.items() if p in zip(x, x[1:], strict=False))
                / in_words(w, p[0])
                / in_words(w, p[1])
            ),
            "occurs twice in a word, it counts twice",
        ),
        (lambda w, p: 2 * score(w, p), "the right answer is 0.142857, and yours is 0.285714"),
        (lambda w, p: 1 / 0, "stopped with ZeroDivisionError: division by zero, in the line"),
    ],
)
def test_each_mistake_of_a_score_is_named(attempt, sentence):
    assert sentence in diagnose_score(attempt) and diagnose_score(attempt).startswith("Not yet: ")
