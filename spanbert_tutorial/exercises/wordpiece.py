"""Checks for the exercises of `book/bert/wordpiece`."""

from collections import Counter
from collections.abc import Callable, Iterable
from numbers import Real
from textwrap import fill

from spanbert_tutorial.wordpiece import count_pieces, split_word

# Small vocabularies in which common mistakes give answers of their own.
ROWS = {"row", "rower", "r", "s", "##o", "##w", "##e", "##r", "##s", "##er", "##ers", "##rs"}
CASES = [
    ("rowers", ROWS),
    ("row", ROWS),
    ("sow", {"s", "so", "##w", "w", "##ow"}),
    ("rowing", ROWS),  # nothing covers the i
    ("unable", {"un", "una", "##able", "##bl"}),  # un + ##able would do, but the longest match comes first
    ("able", {"##able", "##ble"}),  # "able" only goes on
    ("sand", {"s", "and", "##n"}),  # "and" only begins words
    ("", ROWS),
]


def check_split(attempt: Callable[[str, set[str]], list[str]]) -> None:
    """Prints whether `attempt(word, vocabulary)` divides a word, longest match first."""
    print(fill(diagnose_split(attempt), 68))


def diagnose_split(attempt: Callable[[str, set[str]], list[str]]) -> str:
    """One sentence: correct, or the likely mistake."""
    for word, vocabulary in CASES:
        wanted = split_word(word, vocabulary)
        try:
            answer = attempt(word, set(vocabulary))
        except Exception as error:
            what = "the empty word" if not word else f'"{word}"'
            return f"Not yet: {what} stops your function with {type(error).__name__}. {_why_stopped(word, wanted)}"
        if answer is None:
            return "Not yet: the function returns nothing. End it with `return`."
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            return f'Not yet: "{word}" gives {answer!r}. Return a list of pieces, such as {wanted}.'
        answer = list(answer)
        if answer != wanted:
            said = f'Not yet: "{word}" becomes {answer}, wanted is {wanted}'
            return f"{said}: {_split_mistake(word, vocabulary, answer, wanted)}."
    return "Correct: the longest match first, ## inside the word, and [UNK] for the whole word when a match is missing."


def _why_stopped(word: str, wanted: list[str]) -> str:
    if not word:
        return "It has no pieces to look for: return [UNK]."
    return "Ask for the case that no piece matches." if wanted == ["[UNK]"] else "Try it by hand on this word."


def _split_mistake(word: str, vocabulary: set[str], answer: list[str], wanted: list[str]) -> str:
    """What is wrong with an answer that is not right."""
    if not word:
        return "the empty word has no pieces, so it is unknown"
    if wanted == ["[UNK]"]:
        return _unknown_mistake(word, vocabulary, answer)
    if answer == [piece.removeprefix("##") for piece in wanted]:
        return "the pieces are right, but those that do not begin the word carry ##"
    if answer == ["[UNK]"]:
        where = "Look inside the word for pieces with ##, and at its beginning for those without"
        return f"this word has pieces. {where}. A match may reach to the end of the word, or be a single character"
    if "".join(piece.removeprefix("##") for piece in answer) != word:
        return "the pieces do not join to the word. Go on behind the last match"
    strangers = [piece for piece in answer if piece not in vocabulary]
    if strangers:
        return f"{strangers[0]} is not in the vocabulary. With ## and without are two different pieces"
    if answer[0].startswith("##") or not all(piece.startswith("##") for piece in answer[1:]):
        return "the piece that begins the word stands without ##, all others with it"
    if len(answer) > len(wanted):
        return "a shorter match was taken. Try the whole rest of the word first, then one character less"
    return "look for the longest match at each place, from the left"


def _unknown_mistake(word: str, vocabulary: set[str], answer: list[str]) -> str:
    """What is wrong when a word that is unknown got pieces."""
    if "[UNK]" in answer:
        return "one place without a match makes the whole word unknown, pieces before it included"
    joined = "".join(piece.removeprefix("##") for piece in answer)
    if joined != word:
        return "a word is never divided in part. One place without a match makes the whole word [UNK]"
    if answer[:1] and answer[0] not in vocabulary or answer[0].startswith("##"):
        return "its first piece is only there with ##, so it cannot begin a word"
    if any(piece not in vocabulary or not piece.startswith("##") for piece in answer[1:]):
        return "inside a word only pieces with ## match"
    return "such pieces exist, but the longest match comes first and is not taken back"


# --- the score --------------------------------------------------------------------------------------------------------

WORDS = {("b", "##a", "##n", "##a", "##n", "##a"): 2, ("n", "##a", "##n"): 3, ("b", "##e"): 5, ("##n",): 1}
PAIRS = [("b", "##e"), ("##a", "##n"), ("b", "##a"), ("##n", "##a")]


def check_score(attempt: Callable[[dict[tuple[str, ...], int], tuple[str, str]], float]) -> None:
    """Prints whether `attempt(words, pair)` is the likelihood score of a pair."""
    print(fill(diagnose_score(attempt), 68))


def diagnose_score(attempt: Callable[[dict[tuple[str, ...], int], tuple[str, str]], float]) -> str:
    """One sentence: correct, or the likely mistake."""
    answers = []
    for pair in PAIRS:
        try:
            answers.append(attempt(dict(WORDS), pair))
        except Exception as error:
            return f"Not yet: the pair {pair} stops your function with {type(error).__name__}."
    if None in answers:
        return "Not yet: the function returns nothing. End it with `return`."
    if not all(isinstance(answer, Real) for answer in answers):
        return f"Not yet: the function returns a {type(answers[0]).__name__}. Return one number."
    if _same(answers, _scores(WORDS)):
        return "Correct: how often the two stand together, divided by the product of how often each stands at all."
    for problem, wrong in _wrong_scores():
        if _same(answers, wrong):
            return f"Not yet: {problem}."
    pair, answer, wanted = next(
        (pair, answer, wanted)
        for pair, answer, wanted in zip(PAIRS, answers, _scores(WORDS), strict=True)
        if not _same([answer], [wanted])
    )
    return f"Not yet: for the pair {pair} your score is {float(answer):.4f}, wanted is {wanted:.4f}."


def _same(left: list[float], right: list[float]) -> bool:
    return all(abs(a - b) < 1e-9 for a, b in zip(left, right, strict=True))


def _scores(words: dict[tuple[str, ...], int]) -> list[float]:
    """The likelihood scores of PAIRS."""
    pieces, pairs = count_pieces(words)
    return [pairs[pair] / (pieces[pair[0]] * pieces[pair[1]]) for pair in PAIRS]


def _wrong_scores() -> list[tuple[str, list[float]]]:
    """What common mistakes give for PAIRS, each with a sentence."""
    pieces, pairs = count_pieces(WORDS)
    counts = [(pairs[pair], pieces[pair[0]], pieces[pair[1]]) for pair in PAIRS]
    lefts, rights = Counter(), Counter()  # how often a piece is the left or the right one of any pair
    for (left, right), count in pairs.items():
        lefts[left] += count
        rights[right] += count
    sides = [lefts[left] * rights[right] for left, right in PAIRS]
    holding, together = Counter(), Counter()  # how many words a piece or a pair stands in, however often
    for word, count in WORDS.items():
        holding.update(dict.fromkeys(word, count))
        together.update(dict.fromkeys(zip(word, word[1:], strict=False), count))
    products = [holding[left] * holding[right] for left, right in PAIRS]
    alone = "a piece counts wherever it stands, not only in pairs"
    once = "every word is counted once. Each stands in the text as often as its count says"
    twice = "a piece or a pair that stands twice in a word counts twice"
    return [
        ("that is the frequency. Divide by the counts of the left and of the right piece", [c for c, *_ in counts]),
        ("you divide by the sum of the two counts. Take their product", [c / (a + b) for c, a, b in counts]),
        ("you divide by the count of the left piece only", [c / a for c, a, _ in counts]),
        ("you divide by the count of the right piece only", [c / b for c, _, b in counts]),
        ("you multiply by the right count. Put the product in brackets", [c / a * b for c, a, b in counts]),
        (alone, [c / side for (c, *_), side in zip(counts, sides, strict=True)]),
        (once, _scores(dict.fromkeys(WORDS, 1))),
        (twice, [together[pair] / product for pair, product in zip(PAIRS, products, strict=True)]),
        (twice, [pairs[pair] / product for pair, product in zip(PAIRS, products, strict=True)]),
    ]
