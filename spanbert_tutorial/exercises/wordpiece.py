"""Checks for the exercise of `book/bert/wordpiece`."""

from spanbert_tutorial.bert.wordpiece import split_word
from spanbert_tutorial.exercises.diagnosis import Check

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


#: Prints whether `attempt(word, vocabulary)` divides a word, longest match first.
check_split = Check(
    SPLITS,
    split_word,
    {
        "you left out ##: those that do not begin the word carry ##.": lambda *case: [
            token.strip("#") for token in split_word(*case)
        ],
        "the empty word has no tokens, so it is unknown: return [UNK].": lambda word, vocabulary: (
            split_word(word, vocabulary) if word else []
        ),
        "you only look up whole words. Look for the longest match at "
        "each position.": lambda word, vocabulary: ["[UNK]"] if word not in vocabulary else [word],
    },
    "the longest match first, ## inside the word, and [UNK] for the whole word when a match is "
    "missing.",
    returns="a list of tokens, such as ['rower', '##s']",
)
