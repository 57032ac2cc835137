"""Checks for the exercises of `book/bert/wordpiece`."""

from spanbert_tutorial.bert.wordpiece import pair_scores, split_word
from spanbert_tutorial.exercises.diagnosis import Diagnosis

# Small vocabularies in which common mistakes give answers of their own.
ROWS = {"row", "rower", "r", "s", "##o", "##w", "##e", "##r", "##s", "##er", "##ers", "##rs"}
SPLITS = [
    ("rowers", ROWS),
    ("row", ROWS),
    ("sow", {"s", "so", "##w", "w", "##ow"}),
    ("rowing", ROWS),  # nothing covers the i
    ("unable", {"un", "una", "##able", "##bl"}),  # the longest match comes first
    ("able", {"##able", "##ble"}),  # "able" only goes on
    ("sand", {"s", "and", "##n"}),  # "and" only begins words
    ("", ROWS),
]
Words = dict[tuple[str, ...], int]
WORDS = {
    ("b", "##a", "##n", "##a", "##n", "##a"): 2,
    ("n", "##a", "##n"): 3,
    ("b", "##e"): 5,
    ("##n",): 1,
}
PAIRS = [("b", "##e"), ("##a", "##n"), ("b", "##a"), ("##n", "##a")]


def count(words: Words, thing: str | tuple[str, str]) -> int:
    """How often a token or a pair occurs."""
    if isinstance(thing, str):
        return sum(n * word.count(thing) for word, n in words.items())
    return sum(n * list(zip(w, w[1:], strict=False)).count(thing) for w, n in words.items())


SPLIT_MISTAKES = (
    (
        lambda *case: [token.strip("#") for token in split_word(*case)],
        "you left out ##: those that do not begin the word carry ##.",
    ),
    (
        lambda word, vocabulary: split_word(word, vocabulary) if word else [],
        "the empty word has no tokens, so it is unknown: return [UNK].",
    ),
    (
        lambda word, vocabulary: ["[UNK]"] if word not in vocabulary else [word],
        "you only look up whole words. Look for the longest match at each position.",
    ),
)
SCORE_MISTAKES = (
    (
        lambda words, pair: pair_scores(dict.fromkeys(words, 1))[pair],
        "you count every word once. Each occurs in the text as often as its count says.",
    ),
    (count, "that is the frequency. Divide by the counts of the left and of the right token."),
    (
        lambda words, pair: count(words, pair) / count(words, pair[0]),
        "you divide by the count of the left token only.",
    ),
)

diagnose_split = Diagnosis(
    SPLITS,
    split_word,
    SPLIT_MISTAKES,
    "the longest match first, ## inside the word, and [UNK] for the whole word when a match is "
    "missing.",
    returns="a list of tokens, such as ['rower', '##s']",
)
diagnose_score = Diagnosis(
    [(WORDS, pair) for pair in PAIRS],
    lambda words, pair: pair_scores(words)[pair],
    SCORE_MISTAKES,
    "how often the two occur together, divided by the product of how often each occurs at all.",
    returns="one number",
    read=float,
)

#: Prints whether `attempt(word, vocabulary)` divides a word, longest match first.
check_split = diagnose_split.say

#: Prints whether `attempt(words, pair)` is the likelihood score of a pair.
check_score = diagnose_score.say
