"""Checks for the exercises of Part III and of Old notes. Chapters: `book/tasks/classification`,
`book/tasks/squad`, `book/tasks/question_answering`, `book/tasks/real_questions`,
`book/tasks/coreference`, `book/tasks/relation_extraction`, `book/tasks/released_spanbert`,
`book/tasks/old_notes`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from spanbert_tutorial.bert.wordpiece import SPECIALS
from spanbert_tutorial.exercises.diagnosis import Check, plain
from spanbert_tutorial.relatives.splinter import disjoint, runs_of
from spanbert_tutorial.tasks import coreference_scores
from spanbert_tutorial.tasks.classification import metrics
from spanbert_tutorial.tasks.squad import exact_match, f1, normalize
from spanbert_tutorial.tasks.windows import Window, central_windows, decode, window_ranges

# --- classification: the mean state, and Matthews' correlation ----------------------


def mean(states: list, tokens: list[str], left_out: list[str]) -> list[float]:
    rows = [state for state, token in zip(states, tokens, strict=True) if token not in left_out]
    return [sum(values) / len(rows) for values in zip(*rows, strict=True)]


INPUTS = (
    "[CLS] it rained [SEP]",
    "[CLS] the river rose [SEP] [PAD] [PAD]",
    "[CLS] it rained [SEP] we slept [SEP]",
    "[CLS] [UNK] garden ##s . [SEP]",
    "[CLS] very very [SEP]",
)
STATES = np.random.default_rng(0).integers(0, 9, (7, 2)).tolist()

#: Prints whether `attempt(states, tokens)` gives the mean of the states of the text's own tokens.
check_mean = Check(
    [(STATES[: len(tokens)], tokens) for tokens in map(str.split, INPUTS)],
    lambda states, tokens: mean(states, tokens, ["[CLS]", "[SEP]", "[PAD]"]),
    {
        "you take all positions. [CLS], [SEP] and [PAD] are not tokens "
        "of the text.": lambda states, tokens: mean(states, tokens, []),
        "[CLS] and [SEP] are in your mean. They are not tokens of the text.": lambda states, tokens: (
            mean(states, tokens, ["[PAD]"])
        ),
        "[PAD] is in your mean. So the same sentence would get another vector "
        "in another batch.": lambda states, tokens: mean(states, tokens, ["[CLS]", "[SEP]"]),
    },
    "only the tokens of the text count, each once.",
    returns="a list of numbers",
)

LABELS = [
    ("1110000000", "1100000001"),
    ("1111111100", "1111111100"),
    ("1111111100", "0000000011"),
    ("1111111100", "1111111111"),
    ("1111111100", "0000000000"),
    ("1100110000", "1010101000"),
    ("1111110000", "1111001110"),
    ("1000", "1100"),
]


def measure(name: str) -> Callable:
    """One of GLUE's, imported when it is asked for."""
    return lambda gold, said: metrics()[name](gold, said)


#: Prints whether `attempt(gold, said)` gives Matthews' correlation of two rows of "0" and "1".
check_matthews = Check(
    [(list(gold), list(said)) for gold, said in LABELS],
    measure("matthews"),
    {
        "this is the accuracy. Always predicting the more frequent label already scores high on "
        "it.": measure("accuracy"),
        "you compute F1. It ignores the 0s that were right.": measure("f1"),
        "you drop the sign. A program that is always wrong gets -1, not 1.": lambda *case: abs(
            measure("matthews")(*case)
        ),
    },
    "both types of mistakes count, and a constant prediction gets 0.",
    returns="one number, from -1 to 1",
)

# --- squad: the F1 of two texts -----------------------------------------------------


def once(text: str) -> str:
    """Each word of a text once."""
    return " ".join(set(normalize(text).split()))


#: Prints whether `attempt(prediction, gold)` gives the F1 of two texts.
check_f1 = Check(
    [
        ("Denver Broncos", "Denver Broncos"),
        ("Broncos", "Denver Broncos"),
        ("the Denver Broncos", "Denver Broncos"),
        ("denver broncos", "Denver Broncos"),
        ("Denver Broncos.", "the Denver Broncos"),
        ("a theatre in another town", "theatre in town"),
        ("the Denver football team", "Denver Broncos"),
        ("Broncos Denver", "Denver Broncos"),
        ("ha ha ha", "ha ha"),
        ("ha", "ha ha"),
        ("New York New Jersey", "New York"),
        ("Carolina Panthers", "Denver Broncos"),
        ("", "Denver Broncos"),
        ("Denver Broncos", ""),
        ("", ""),
        ("the", ""),
    ],
    f1,
    {
        "you count a repeated word once. The words of an answer are a multiset: "
        "use `Counter`, not `set`.": lambda *case: f1(*map(once, case)),
        "this is the exact match. F1 counts the words that both share.": exact_match,
        "this is in percent. Give a number from 0 to 1.": lambda *case: 100 * f1(*case),
    },
    "each word counts as often as both sides have it, and empty sides are handled.",
    returns="one number, from 0 to 1",
)

# --- question_answering: one answer from several windows ----------------------------

FIRST = 4  # position of the first context token: [CLS], two tokens of the question, [SEP]


def draw_case(rng: np.random.Generator) -> tuple[list[Window], list, float, int]:
    """(windows, scores, threshold, longest): a context of 9 to 12 tokens in windows of 5 to 9, with
    random scores."""
    tokens, room, longest = (int(rng.integers(*ends)) for ends in ((9, 13), (5, 10), (2, 5)))
    ranges = window_ranges(tokens, room, int(rng.integers(2, 5)))
    central = central_windows(ranges, tokens)
    windows, scores = [], []
    for number, (start, end) in enumerate(ranges):
        zeros = np.zeros(FIRST + end - start + 1, int)
        windows.append(Window(zeros, zeros, start, end, FIRST, central[start:end] == number))
        starts, ends = rng.normal(0, 2, (2, len(zeros)))
        starts[0], ends[0] = rng.normal(3.5, 2, 2)
        scores.append((starts, ends))
    return windows, scores, float(rng.integers(-2, 3)), longest


def answer(
    windows: list[Window], scores: list, threshold: float, longest: int, *, null: Any = min
) -> tuple[int, int] | None:
    """The right answer, or with another null score than the lowest."""
    (best, *_), _ = decode(windows, iter(scores), max_answer_length=longest)
    lack = null([starts[0] + ends[0] for starts, ends in scores]) - best.score
    return None if lack > threshold else (best.first, best.last)


#: Prints whether `attempt(windows, scores, threshold, longest)` gives (first, last), or None.
check_answer = Check(
    [draw_case(np.random.default_rng(seed)) for seed in range(36)],
    answer,
    {
        "you take the highest null score of the windows. The null score is the lowest over the "
        "windows: one window that finds an answer is enough.": lambda *case: answer(
            *case, null=max
        ),
        "you ignore the threshold. Compare null score − best score with it, not with 0.": (
            lambda windows, scores, limit, longest: answer(windows, scores, 0.0, longest)
        ),
        "you leave out the longest answers. From first to last there are last − first + 1 tokens.": (
            lambda windows, scores, limit, longest: answer(windows, scores, limit, longest - 1)
        ),
    },
    "one window contains the whole answer, and the lowest null score decides.",
    returns="two whole numbers, (first, last), or None",
    read=lambda value: None if value is None else plain([int(place) for place in value]),
)

# --- real_questions: what to mask before a token of a word is scored ----------------

WORD = [7, 8, 9]

#: Prints whether `attempt(word, i)` gives the positions to mask.
check_rule = Check(
    [(WORD, 7), (WORD, 8), (WORD, 9), ([4], 4)],
    lambda word, i: [position for position in word if position <= i],
    {
        "the token that is scored stays visible, and the model "
        "only has to copy it.": lambda word, i: [position for position in word if position < i],
        "this is the second rule. It leaves the beginning of the word "
        "in view, not its end.": lambda word, i: [position for position in word if position >= i],
        "this is the third rule. It hides the end of the word, too.": lambda word, i: word,
    },
    "the token and what comes before it in its word are masked.",
    returns="a list of positions",
    read=lambda value: sorted(plain(list(value))),
)

# --- coreference: B³ ----------------------------------------------------------------

CLUSTERS = [  # key and response; each letter is a mention
    ("12345 67 89ABC", "12345 6789ABC"),
    ("12345 67 89ABC", "1234589ABC 67"),
    ("abcd", "ab cd"),
    ("abc defg", "ab cd fghi"),
    ("ab c", "ab"),
    ("ab", "ab c"),
    ("ab", "cd"),
    ("ab", ""),
    ("", "ab"),
    ("", ""),
]


def b_cubed(key: list, response: list) -> tuple[float, float]:
    precision, recall, _ = coreference_scores.score(key, response)["b_cubed"]
    return precision / 100, recall / 100


def of_clusters(one: list, other: list) -> float:
    """The mean over the clusters of one side."""
    means = [
        sum(len(set(cluster) & set(found)) ** 2 for found in other) / len(cluster) ** 2
        for cluster in one
    ]
    return sum(means) / len(means) if means else 0.0


#: Prints whether `attempt(key, response)` gives precision and recall of B³, each from 0 to 1.
check_b_cubed = Check(
    [tuple(list(map(list, side.split())) for side in sides) for sides in CLUSTERS],
    b_cubed,
    {
        "you swapped precision and recall. The recall "
        "is a mean over the mentions of the key.": lambda key, response: b_cubed(response, key),
        "you take the mean of the clusters' means. Each mention counts the same, so large "
        "clusters weigh more.": lambda key, response: (
            of_clusters(response, key),
            of_clusters(key, response),
        ),
        "you give 1 to two empty sides. They get 0 here, as "
        "in the official scorer.": lambda *case: (1.0, 1.0) if case == ([], []) else b_cubed(*case),
    },
    "each mention of the key counts once in the recall, each of the response once in the "
    "precision.",
    returns="two numbers, precision and recall",
)

# --- relation_extraction: the F1 of one relation, with directions -------------------

RELATIONS = {
    "c": "Cause-Effect(e1,e2)",
    "C": "Cause-Effect(e2,e1)",
    "m": "Message-Topic(e1,e2)",
    "M": "Message-Topic(e2,e1)",
    "o": "Other",
}
ANSWERS = [
    ("ccCo", "cCCc", "Cause-Effect"),
    ("cccC", "ccCo", "Cause-Effect"),
    ("cmmMo", "cmMMm", "Message-Topic"),
    ("mmoc", "oocc", "Message-Topic"),
    ("CCcmo", "CCmCo", "Cause-Effect"),
    ("cC", "Cc", "Cause-Effect"),
    ("oomM", "mMoM", "Message-Topic"),
]


def directed_f1(gold: list[str], said: list[str], relation: str) -> float:
    """The official F1 of the labels that begin so; a direction may belong to it."""
    right = sum(
        one == other and one.startswith(relation) for one, other in zip(gold, said, strict=True)
    )
    both = sum(label.startswith(relation) for label in [*gold, *said])
    return 200 * right / both if right else 0.0


def bare(labels: list[str]) -> list[str]:
    return [label.split("(")[0] for label in labels]


#: Prints whether `attempt(gold, predicted, relation)` gives its F1 in percent, directions counted.
check_directed = Check(
    [
        ([RELATIONS[letter] for letter in gold], [RELATIONS[letter] for letter in said], relation)
        for gold, said, relation in ANSWERS
    ],
    directed_f1,
    {
        "you count an answer with the wrong direction as right. Compare the "
        "whole labels.": lambda gold, said, relation: directed_f1(bare(gold), bare(said), relation),
        "you score each direction as a class of its own and take the mean. The official scorer "
        "has one score per relation, which counts both directions together.": (
            lambda gold, said, relation: np.mean(
                [directed_f1(gold, said, relation + way) for way in ("(e1", "(e2")]
            )
        ),
        "this is a fraction between 0 and 1. Give it in percent.": lambda *case: (
            directed_f1(*case) / 100
        ),
    },
    "a wrong direction counts as predicted, but not as right.",
    returns="one number, the F1 in percent",
)

# --- released_spanbert: words said again --------------------------------------------

STOP = {"a", "in", "is", "of", "the", "to"}


def clusters(words: list[str], stop: set[str], *, longest_first: bool = True) -> list:
    """The exercise's answer, or with short runs choosing first."""
    runs = runs_of(words, stop)
    return disjoint(runs, sorted(runs, key=len, reverse=longest_first))


ALONE = "you let a cluster have stop words alone. At least one word must be no stop word"

#: Prints whether `attempt(words, stop)` gives the clusters, lists of (first, last), in any order.
check_clusters = Check(
    [
        (text.split(), STOP)
        for text in (
            "The Dead Sea is a salt lake . Is the Dead Sea a sea of salt ?",
            "big red fox , big red fox , fox",  # a word whose copies are taken
            "go go go go , go",  # copies that overlap
            "to the sea , to the sea , to the lake",
            "Sea , sea , sea",
            "1 2 3 4 5 6 7 8 9 10 , 1 2 3 4 5 6 7 8 9 10",
            "",
        )
    ],
    clusters,
    {
        f"{ALONE}.": lambda words, stop: clusters(words, set()),
        f"{ALONE}; and you count copies that differ in a capital letter. Compare letter by letter.": (
            lambda words, stop: clusters([word.lower() for word in words], set())
        ),
        "you let short spans choose first, so names come apart. Let "
        "the longest choose first.": lambda *case: clusters(*case, longest_first=False),
    },
    "the longest choose first, no word is in two spans, and each cluster has two or more.",
    returns="a list of clusters, each a list of (first, last), like [[(1, 2), (10, 11)]]",
    read=lambda value: sorted(sorted(plain(span) for span in cluster) for cluster in value),
)

# --- old_notes: whether a vocabulary is lower-cased ---------------------------------

VOCABULARIES = (
    [*SPECIALS, "the", "##s", "alice", "river"],
    ["the", "river"],
    [*SPECIALS, "the", "##s", "Alice", "River"],
    [*SPECIALS, "the", "eBay", "river"],
    [*SPECIALS, "the", "##Kay", "river"],
    [*SPECIALS, "the", "Évora", "river"],
    ["[PAD]", "[unused1]", *SPECIALS[1:], "the", "[unused2]", "river"],
    [*SPECIALS, "the", "[A", "river"],
    [*SPECIALS, "the", "1873", "?", "[", "]", "中", "river"],
)


def lower_case(tokens: list[str], told: bool | None, *, special: bool = False) -> bool:
    """The exercise's answer. told: what the tokenizer_config.json says, None if nothing. special:
    whether capitals of special tokens count."""
    if told is not None:
        return told
    ordinary = [token for token in tokens if special or token[0] != "[" or token[-1] != "]"]
    return all(token == token.lower() for token in ordinary)


#: Prints whether `attempt(tokens, told)` says rightly whether texts must be lower-cased.
check_lower_case = Check(
    [(tokens, told) for tokens in VOCABULARIES for told in (None, True, False)],
    lower_case,
    {
        "[CLS] and the other special tokens have capitals in every vocabulary. "
        "Leave them out.": lambda *case: lower_case(*case, special=True),
        "`told = False` is an answer, too: the text stays as it is. Ask `told "
        "is not None` instead of `if told`.": lambda tokens, told: lower_case(tokens, told or None),
        "if `told` is None, you lower-case. So does `transformers`, and that is the mistake: "
        "look into the vocabulary.": lambda tokens, told: True if told is None else told,
    },
    "`told` counts first, and a capital in an ordinary token means a cased vocabulary.",
    returns="True or False",
)
