"""Checks for the exercises of `book/bert/wordpiece`."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from spanbert_tutorial.bert.wordpiece import count_tokens, split_word
from spanbert_tutorial.exercises.diagnosis import Diagnosis, differs, number, say

# Small vocabularies in which common mistakes give answers of their own.
ROWS = {"row", "rower", "r", "s", "##o", "##w", "##e", "##r", "##s", "##er", "##ers", "##rs"}
CASES = [
    ("rowers", ROWS),
    ("row", ROWS),
    ("sow", {"s", "so", "##w", "w", "##ow"}),
    ("rowing", ROWS),  # nothing covers the i
    (
        "unable",
        {"un", "una", "##able", "##bl"},
    ),  # un + ##able would do, but the longest match comes first
    ("able", {"##able", "##ble"}),  # "able" only goes on
    ("sand", {"s", "and", "##n"}),  # "and" only begins words
    ("", ROWS),
]


def _tokens(answer: Any, *case: object) -> list[str]:
    if isinstance(answer, str):
        raise TypeError
    return list(answer)


def _how_to_go_on(error: Exception, word: str, vocabulary: set[str]) -> str:
    if not word:
        return "There are no tokens to look for: return [UNK]."
    unknown = split_word(word, vocabulary) == ["[UNK]"]
    return "What if no token matches?" if unknown else "Try it by hand on this word."


def _split_mistake(answer: list[str], wanted: list[str], word: str, vocabulary: set[str]) -> str:
    why = _why_wrong(answer, wanted, word, vocabulary)
    return f"{differs(answer, wanted).rstrip('.')}: {why}."


def _why_wrong(answer: list[str], wanted: list[str], word: str, vocabulary: set[str]) -> str:
    if not word:
        return "the empty word has no tokens, so it is unknown"
    if wanted == ["[UNK]"]:
        return _unknown_mistake(word, vocabulary, answer)
    if answer == [token.removeprefix("##") for token in wanted]:
        return "you left out ##: those that do not begin the word carry ##"
    if answer == ["[UNK]"]:
        where = "Look inside the word for tokens with ##, and at its beginning for those without"
        return (
            f"this word has tokens. {where}. A match may extend to the end of the word, or be a "
            "single character"
        )
    if "".join(token.removeprefix("##") for token in answer) != word:
        return "the tokens do not add up to the word. Continue after the last match"
    strangers = [token for token in answer if token not in vocabulary]
    if strangers:
        return (
            f"{strangers[0]} is not in the vocabulary. With and without ## are two different tokens"
        )
    if answer[0].startswith("##") or not all(token.startswith("##") for token in answer[1:]):
        return "the token that begins the word has no ##, and all others have it"
    if len(answer) > len(wanted):
        return (
            "you took a shorter match. Try the whole rest of the word first, then one "
            "character less"
        )
    return "look for the longest match at each position, from the left"


def _unknown_mistake(word: str, vocabulary: set[str], answer: list[str]) -> str:
    """What is wrong when a word that is unknown got tokens."""
    if "[UNK]" in answer:
        return (
            "one position without a match makes the whole word unknown, tokens before it included"
        )
    joined = "".join(token.removeprefix("##") for token in answer)
    if joined != word:
        return (
            "a word is never split in part. One position without a match makes the whole word [UNK]"
        )
    if answer[:1] and answer[0] not in vocabulary or answer[0].startswith("##"):
        return "its first token is in the vocabulary only with ##, so it cannot begin a word"
    if any(token not in vocabulary or not token.startswith("##") for token in answer[1:]):
        return "inside a word only tokens with ## match"
    return "such tokens exist, but the longest match comes first and is not taken back"


diagnose_split = Diagnosis(
    cases=CASES,
    where=lambda word, _: f'for the word "{word}"' if word else "for the empty word",
    read=_tokens,
    returns="a list of tokens, such as ['rower', '##s']",
    hint=_how_to_go_on,
    right=split_word,
    otherwise=_split_mistake,
    correct="the longest match first, ## inside the word, and [UNK] for the whole word when a "
    "match is missing.",
)


def check_split(attempt: Callable[[str, set[str]], list[str]]) -> None:
    """Prints whether `attempt(word, vocabulary)` divides a word, longest match first."""
    say(diagnose_split(attempt))


# --- the score ----------------------------------------------------------------------

Words = dict[tuple[str, ...], int]
Score = Callable[[Words, tuple[str, str]], float]

WORDS = {
    ("b", "##a", "##n", "##a", "##n", "##a"): 2,
    ("n", "##a", "##n"): 3,
    ("b", "##e"): 5,
    ("##n",): 1,
}
PAIRS = [("b", "##e"), ("##a", "##n"), ("b", "##a"), ("##n", "##a")]


# --- the score, right and with the likely mistakes ----------------------------------


def in_words(words: Words) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """In how many words of the text each token and each pair occurs, however often in one."""
    tokens: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in words.items():
        tokens.update(dict.fromkeys(word, count))
        pairs.update(dict.fromkeys(zip(word, word[1:], strict=False), count))
    return tokens, pairs


def score(
    join: Callable[[int, int, int], float] = lambda both, left, right: both / (left * right),
    tokens: Callable[[Words], tuple[Counter, Counter]] = count_tokens,
    pairs: Callable[[Words], tuple[Counter, Counter]] = count_tokens,
) -> Score:
    """The likelihood score, or with one step changed. tokens, pairs: how each of them is
    counted."""

    def scored(words: Words, pair: tuple[str, str]) -> float:
        of_token = tokens(words)[0]
        of_pair = pairs(words)[1]
        return join(of_pair[pair], of_token[pair[0]], of_token[pair[1]])

    return scored


def over_pairs(words: Words, pair: tuple[str, str]) -> float:
    """A token counts only where it is the left, or the right one of a pair."""
    pairs = count_tokens(words)[1]
    left = sum(count for (first, _), count in pairs.items() if first == pair[0])
    right = sum(count for (_, second), count in pairs.items() if second == pair[1])
    return pairs[pair] / (left * right)


TWICE = "you count a token or a pair once per word. If it occurs twice in a word, it counts twice."
SCORE_MISTAKES: list[tuple[Score, str]] = [
    (
        score(lambda both, left, right: both),
        "that is the frequency. Divide by the counts of the left and of the right token.",
    ),
    (
        score(lambda both, left, right: both / (left + right)),
        "you divide by the sum of the two counts. Take their product.",
    ),
    (
        score(lambda both, left, right: both / left),
        "you divide by the count of the left token only.",
    ),
    (
        score(lambda both, left, right: both / right),
        "you divide by the count of the right token only.",
    ),
    (
        score(lambda both, left, right: both / left * right),
        "you multiply by the right count. Put the product in parentheses.",
    ),
    (over_pairs, "you count a token only in pairs. It counts wherever it occurs."),
    (
        lambda words, pair: score()(dict.fromkeys(words, 1), pair),
        "you count every word once. Each occurs in the text as often as its count says.",
    ),
    (score(tokens=in_words, pairs=in_words), TWICE),
    (score(tokens=in_words), TWICE),
]


diagnose_score = Diagnosis(
    cases=[(WORDS, pair) for pair in PAIRS],
    where=lambda words, pair: f"for the pair {pair}",
    read=number,
    returns="one number",
    right=score(),
    mistakes=SCORE_MISTAKES,
    correct="how often the two occur together, divided by the product of how often each occurs at "
    "all.",
)


def check_score(attempt: Score) -> None:
    """Prints whether `attempt(words, pair)` is the likelihood score of a pair."""
    say(diagnose_score(attempt))
