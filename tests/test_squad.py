"""SQuAD: each rule of the score by hand, a second writing equal to the last digit, bad files named,
real files read."""

import gzip
import json
import lzma
import os
import random
from functools import cache
from pathlib import Path

import pytest

from research.experiments.squad_real import human_score, majority_answer
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks.squad import (
    NEVER,
    GoldAnswer,
    Question,
    best_threshold,
    chosen_threshold,
    exact_match,
    f1,
    golds,
    normalize,
    read,
    score,
)

PACK = {"": lambda data: data, ".xz": lzma.compress, ".gz": gzip.compress}
CONTEXT = "The Denver Broncos won Super Bowl 50 in Santa Clara, California."


def asked(number: str, *texts: str) -> Question:
    """A question whose answers are the texts; where they stand does not matter to the score."""
    return Question(
        number, "?", " ".join(texts), answers=tuple(GoldAnswer(text, 0) for text in texts)
    )


# --- the rules, by hand -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Denver Broncos", "denver broncos"),  # case
        ("the Denver Broncos.", "denver broncos"),  # article and full stop
        ("Santa Clara, California", "santa clara california"),
        ("a man's 3.8-word span", "mans 38word span"),  # punctuation goes without a space
        ("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", ""),
        ("an answer, a question and the end", "answer question and end"),
        # whole words only
        ("Theodore and Anna at another theatre", "theodore and anna at another theatre"),
        ("the", ""),
        ("The a AN", ""),
        ("", ""),
        ("A.", ""),
        ("a-b", "ab"),  # punctuation goes first, so this "a" is no word
        ("the_end", "theend"),
        ("t.h.e end", "end"),  # … and this is one
        ("  two \t words\n", "two words"),
        ("two\u00a0words\u3000here", "two words here"),  # spaces of every alphabet
        ("Ørsted’s “Étude” – 5 €", "ørsted’s “étude” – 5 €"),  # only ASCII punctuation
        ("«a» l’a", "« » l’"),  # an article beside punctuation that stays is still a word
        ("áa", "áa"),  # an accented letter is a letter: no article here
        ("Straße ΣΑΣ", "straße σας"),  # lower case, no case folding
    ],
)
def test_normalize(text, wanted):
    assert normalize(text) == wanted


@pytest.mark.parametrize(
    ("prediction", "gold", "exact", "by_words"),
    [
        ("Denver Broncos", "the Denver Broncos!", 1, 1),
        ("Broncos", "Denver Broncos", 0, 2 / 3),  # P = 1, R = 1/2
        ("the Denver team Broncos", "Denver Broncos", 0, 0.8),  # P = 2/3, R = 1
        ("Carolina Panthers", "Denver Broncos", 0, 0),
        ("Broncos Denver", "Denver Broncos", 0, 1),  # the order counts for exact match only
        ("ha ha ha", "ha ha", 0, 0.8),  # a word counts as often as in both
        ("ha", "ha ha ha", 0, 0.5),
        ("ha ha b", "ha b b", 0, 2 / 3),
        ("", "Denver", 0, 0),
        ("Denver", "", 0, 0),
        ("", "", 1, 1),
        ("the", "", 1, 1),  # empty once normalized
        ("a", "the", 1, 1),
        ("3.8", "38", 1, 1),
    ],
)
def test_exact_match_and_f1(prediction, gold, exact, by_words):
    assert exact_match(prediction, gold) == exact and f1(prediction, gold) == by_words
    assert f1(gold, prediction) == by_words  # both are symmetric


def test_the_best_of_several_answers_counts_for_each_measure_by_itself():
    questions = [asked("q", "in Santa Clara", "Clara Santa X", "California")]
    result = score({"q": "Santa Clara"}, questions)
    # 0.8 from both of the first
    assert (result["exact"], result["f1"], result["total"]) == (0, 80, 1)
    assert score({"q": "the California"}, questions)["exact"] == 100


def test_both_kinds_are_scored_apart():
    questions = [asked("a", "Denver Broncos"), asked("b", "1992"), *map(asked, "cde")]
    predictions = {"a": "Broncos", "b": "1992", "c": "", "d": "the", "e": "Denver"}
    result = score(predictions, questions)
    by_hand = {
        "exact": 60,
        "f1": 100 * (2 / 3 + 3) / 5,
        "total": 5,
        "HasAns_exact": 50,
        "HasAns_f1": 100 * (2 / 3 + 1) / 2,
        "HasAns_total": 2,
        "NoAns_exact": 200 / 3,
        "NoAns_f1": 200 / 3,
        "NoAns_total": 3,
    }
    # in the official order
    assert result == pytest.approx(by_hand) and list(result) == list(by_hand)


@pytest.mark.parametrize("texts, kind", [(("Denver",), "HasAns"), ((), "NoAns")])
def test_one_kind_only_has_its_own_part_alone(texts, kind):
    result = score({"a": "Denver", "b": ""}, [asked("a", *texts), asked("b", *texts)])
    assert result == {
        "exact": 50,
        "f1": 50,
        "total": 2,
        **{f"{kind}_{name}": value for name, value in {"exact": 50, "f1": 50, "total": 2}.items()},
    }


def test_only_above_the_threshold_there_is_no_answer():
    questions = [asked("a", "Denver"), asked("b")]
    predictions = {"a": "Denver", "b": "Denver"}
    null_odds = {"a": 1.5, "b": 2.5}
    at = {
        threshold: score(predictions, questions, null_odds, threshold)["f1"]
        for threshold in (1.4, 1.5, 2.4, 2.5)
    }
    # equal to the null odds: the prediction stands
    assert at == {1.4: 50, 1.5: 100, 2.4: 100, 2.5: 50}
    assert score(predictions, questions) == score(predictions, questions, null_odds, 2.5)
    assert score({"a": "", "b": ""}, questions, null_odds, 2.5)["f1"] == 50  # "" stays ""


def test_best_threshold_by_hand():
    questions = [asked("a", "Denver"), asked("b"), asked("c", "Broncos"), asked("d")]
    predictions = {"a": "Denver", "b": "x", "c": "Denver Broncos", "d": "y"}
    # from 2 (all ""): a +1 → 3, c +2/3 → 3.67, b −1, d −1
    null_odds = {"a": -3.0, "c": -1.0, "b": 0.5, "d": 2.0}
    best, threshold = best_threshold(predictions, questions, null_odds)
    assert (best, threshold) == (pytest.approx(100 * 11 / 3 / 4), -1.0)
    assert score(predictions, questions, null_odds, threshold)["f1"] == pytest.approx(best)
    # c adds nothing: the first stays
    assert best_threshold(predictions, questions, null_odds, "exact") == (75, -3.0)


def test_equal_null_odds_are_taken_one_by_one_as_officially():
    questions = [asked("a", "Denver"), asked("b")]
    predictions = {"a": "Denver", "b": "x"}
    # no threshold reaches it …
    assert best_threshold(predictions, questions, {"a": 1, "b": 1}) == (100, 1)
    assert [score(predictions, questions, {"a": 1, "b": 1}, t)["f1"] for t in (0, 1)] == [50, 50]
    # … and it hangs on the order
    assert best_threshold(predictions, questions, {"b": 1, "a": 1}) == (50, 0)


def test_the_human_score_takes_the_second_answer_as_the_prediction():
    questions = [
        asked("a", "Denver Broncos", "Broncos", "the Broncos"),
        asked("b", "1992", "in 1992"),
        asked("c", "x"),
    ]
    result = human_score(questions)
    assert (result["exact"], result["total"]) == (50, 2)
    assert result["f1"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    with pytest.raises(InputError):
        human_score(questions[2:])


# --- a second writing, to the last digit --------------------------------------------


@cache
def plain(text: str) -> tuple[str, ...]:
    """The words that are compared, by a walk over the characters."""
    kept = []
    word = ""
    for character in text.lower() + " ":
        if character.isspace():
            kept += [word] * (word not in ("", "a", "an", "the"))
            word = ""
        elif not (character.isascii() and not character.isalnum() and character.isprintable()):
            word += character
    return tuple(kept)


def shared_words(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many words both share, by merging the two sorted lists."""
    (one, other), i, j, shared = (sorted(one), sorted(other)), 0, 0, 0
    while i < len(one) and j < len(other):
        shared += one[i] == other[j]
        i, j = i + (one[i] <= other[j]), j + (other[j] <= one[i])
    return shared


def second_f1(prediction: tuple[str, ...], gold: tuple[str, ...]) -> float:
    shared = shared_words(prediction, gold)
    if shared == 0:
        return 1.0 if prediction == gold == () else 0.0
    precision = shared / len(prediction)
    recall = shared / len(gold)
    return (2 * precision * recall) / (precision + recall)


def second_pair(entry: dict, prediction: str) -> tuple[int, float]:
    texts = [words for words in (plain(answer["text"]) for answer in entry["answers"]) if words]
    words = plain(prediction)
    pairs = [(1 if words == text else 0, second_f1(words, text)) for text in texts or [()]]
    return sorted(pair[0] for pair in pairs)[-1], sorted(pair[1] for pair in pairs)[-1]


def second_score(data: dict, predictions: dict, null_odds: dict, threshold: float) -> dict:
    found: dict[bool, list] = {True: [], False: []}
    everything = []
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                kept = "" if null_odds[entry["id"]] > threshold else predictions[entry["id"]]
                pair = second_pair(entry, kept)
                found[len(entry["answers"]) > 0].append(pair)
                everything.append(pair)
    result = {}
    for prefix, pairs in {"": everything, "HasAns_": found[True], "NoAns_": found[False]}.items():
        result[f"{prefix}total"] = len(pairs)
        for place, name in enumerate(("exact", "f1")):
            result[prefix + name] = 100.0 * sum([pair[place] for pair in pairs]) / len(pairs)
    return result


def second_best(data: dict, predictions: dict, null_odds: dict, place: int) -> tuple[float, float]:
    """The best over the first k questions by null odds for all k, each sum worked out anew; at
    first, "" for all."""
    entries = [
        entry
        for article in data["data"]
        for paragraph in article["paragraphs"]
        for entry in paragraph["qas"]
    ]
    pairs = {entry["id"]: second_pair(entry, predictions[entry["id"]])[place] for entry in entries}
    negative = {entry["id"] for entry in entries if not entry["answers"]}
    best = len(negative)
    chosen = 0.0
    ordered = sorted(null_odds, key=lambda number: null_odds[number])
    gains = [(-1 if predictions[i] else 0) if i in negative else pairs[i] for i in ordered]
    for last, number in enumerate(ordered, start=1):
        total = sum(gains[:last], start=len(negative))
        if total > best:
            best = total
            chosen = null_odds[number]
    return 100.0 * best / len(entries), chosen


def perturbed(rng: random.Random, text: str, other: str) -> str:
    """The text with words dropped or doubled, other case, punctuation, articles; or another text;
    or nothing."""
    words = text.split()
    kind = rng.randrange(9)
    if kind == 0:
        return ""
    if kind == 1:
        return other
    if kind == 2 and words:
        words.pop(rng.randrange(len(words)))
    if kind == 3 and words:
        words.append(rng.choice(words))
    if kind == 4:
        words = [rng.choice((word.upper(), word.title(), word.lower())) for word in words]
    if kind == 5:
        words = [word + rng.choice((".", ",", "!", "’s", "-", "")) for word in words]
    if kind == 6:
        words.insert(rng.randrange(len(words) + 1), rng.choice(("a", "An", "the", "The.")))
    if kind == 7:
        rng.shuffle(words)
    return rng.choice((" ", "  ", "\u00a0")).join(words)


def test_a_second_writing_agrees_to_the_last_digit_on_60_files_of_predictions():
    file = data_path("reader", "reader.json")
    data = json.loads(file.read_text(encoding="utf-8"))
    questions = read(file)
    pool = [answer.text for q in questions for answer in (*q.answers, *q.plausible)]
    seen = set()
    abstain = 100 * sum(not q.answers for q in questions) / len(questions)
    for seed in range(60):
        rng = random.Random(seed)
        predictions = {
            q.id: perturbed(rng, rng.choice(q.answers or q.plausible).text, rng.choice(pool))
            for q in questions
        }
        exact = rng.random() < 0.5  # else many null odds are equal
        null_odds = {
            q.id: rng.gauss(0, 3) + rng.choice((0, 4)) * (not q.answers) for q in questions
        }
        null_odds = (
            null_odds if exact else {number: round(value) for number, value in null_odds.items()}
        )
        threshold = rng.choice((-10.0, 0.0, 2.0, 10.0, null_odds[rng.choice(questions).id]))
        assert score(predictions, questions, null_odds, threshold) == second_score(
            data, predictions, null_odds, threshold
        )
        assert score(predictions, questions) == second_score(data, predictions, null_odds, 1e9)
        for place, measure in enumerate(("exact", "f1")):
            found = best_threshold(predictions, questions, null_odds, measure)
            assert found == second_best(data, predictions, null_odds, place)
            # equal ones are taken one by one, which no threshold can do
            if exact and found[0] > abstain:
                # "the"
                only = {
                    q.id
                    for q in questions
                    if not q.answers and predictions[q.id] and not plain(predictions[q.id])
                }
                kept = sum(null_odds[number] <= found[1] for number in only)
                reached = score(predictions, questions, null_odds, found[1])[measure]
                assert found[0] == pytest.approx(reached - 100 * kept / len(questions))
        seen.add(score(predictions, questions)["f1"])
    assert len(seen) > 50  # the files differ


# --- files --------------------------------------------------------------------------


def made(**changes) -> dict:
    """A file of one article with one question, and what is to be changed in that question."""
    entry = {
        "id": "q1",
        "question": "Who won?",
        "is_impossible": False,
        "answers": [{"text": "Denver Broncos", "answer_start": 4}],
    }
    entry = {key: value for key, value in (entry | changes).items() if value is not ...}
    return {
        "version": "v2.0",
        "data": [{"title": "Bowl", "paragraphs": [{"context": CONTEXT, "qas": [entry]}]}],
    }


def written(folder: Path, content: object, name: str = "x.json") -> Path:
    path = folder / name
    path.write_bytes(
        PACK["" if path.suffix == ".json" else path.suffix](json.dumps(content).encode())
    )
    return path


@pytest.mark.parametrize("packing", PACK)
def test_every_packing_is_read(tmp_path, packing):
    (question,) = read(written(tmp_path, made(), f"x.json{packing}"))
    assert question == Question(
        "q1", "Who won?", CONTEXT, "Bowl", (GoldAnswer("Denver Broncos", 4),)
    )
    assert question == read(str(tmp_path / f"x.json{packing}"))[0]


# --- the reader and the real files --------------------------------------------------


def test_the_reader_is_read():
    questions = read(data_path("reader", "reader.json"))
    assert len(questions) == 294 and sum(bool(q.answers) for q in questions) == 149
    assert all(bool(q.answers) == (not q.plausible) == (q.category is None) for q in questions)
    assert (
        score({q.id: q.answers[0].text if q.answers else "" for q in questions}, questions)["f1"]
        == 100
    )


REAL = Path(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA", "unset")) / "squad"


COUNTS = {  # questions, answerable ones
    "dev-v1.1-half": (5_665, 5_665),
    "dev-v2.0-half": (5_303, 2_656),
    "train-v1.1-part": (11_877, 11_877),
    "train-v2.0-part": (4_719, 4_371),
    "squadshifts-amazon_reviews": (9_885, 9_885),
    "squadshifts-reddit": (9_803, 9_803),
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", COUNTS)
def test_the_real_files_are_read_whole(name):
    questions = read(REAL / f"{name}.json.xz")
    with_answers = sum(bool(q.answers) for q in questions)
    assert (len(questions), with_answers) == COUNTS[name]
    nothing = score({q.id: "" for q in questions}, questions)
    # in one file, the only answer to a question is "A"
    right = sum(golds(q) == [""] for q in questions)
    assert right - (len(questions) - with_answers) == (name == "squadshifts-reddit")
    assert nothing["exact"] == nothing["f1"] == pytest.approx(100 * right / len(questions))
    first = score({q.id: q.answers[0].text if q.answers else "" for q in questions}, questions)
    assert first["exact"] == first["f1"] == 100


def test_the_chosen_threshold_takes_equal_null_odds_together_and_may_be_never():
    two = [
        Question("a", "Who?", "Ada won.", answers=(GoldAnswer("Ada", 0),)),
        Question("b", "Who lost?", "Ada won."),
    ]
    texts = {"a": "Ada", "b": "Ada"}
    assert chosen_threshold(texts, two, {"a": -1.0, "b": 2.0}) == -1.0
    # the official search says (100, 1.0)
    assert chosen_threshold(texts, two, {"a": 1.0, "b": 1.0}) == NEVER
    assert chosen_threshold({"b": "Ada"}, two[1:], {"b": -5.0}) == NEVER
    told = r"^.*1 ids without a value, or without a question \(\['b'\]\).*\.\Z"  # one line
    with pytest.raises(InputError, match=told):
        chosen_threshold(texts, two, {"a": -1.0})
    assert chosen_threshold({"a": "Bo", "b": "Ada"}, two, {"a": 0.0, "b": 1.0}) == NEVER


def test_answers_that_are_empty_once_normalised_are_left_out():
    assert golds(asked("q", "the", "Denver", "...")) == ["Denver"]
    assert golds(asked("q", "the", "A")) == [""] and golds(asked("q")) == [""]
    # else "" would be right by "the"
    assert score({"q": ""}, [asked("q", "the", "Denver")])["f1"] == 0
    # it has answers, though only an empty text is left to compare with
    questions = [asked("q", "the"), asked("no")]
    wanted = {"": (50, 50, 2), "HasAns_": (100, 100, 1), "NoAns_": (0, 0, 1)}
    measures = "exact", "f1", "total"
    assert score({"q": "", "no": "x"}, questions) == {
        kind + name: values[i] for kind, values in wanted.items() for i, name in enumerate(measures)
    }


def test_a_majority_decides_then_to_answer_then_the_shorter_text():
    # two say Broncos
    assert majority_answer(["the Broncos", "Denver Broncos", "Broncos"]) == "Broncos"
    assert majority_answer(["", "Denver Broncos", ""]) == ""
    assert majority_answer(["", "Denver Broncos", "Broncos", ""]) == ""
    assert majority_answer(["", "Denver Broncos", "Denver"]) == "Denver"  # three ties
    with pytest.raises(InputError, match="no answers to vote on"):
        majority_answer([])
    questions = [
        asked("a", "Broncos", "Denver Broncos", "the Broncos", "Broncos"),
        asked("b", "1992", "in 1992"),
    ]
    result = human_score(questions, vote=True)
    # the second has no two others that could vote
    assert (result["exact"], result["total"]) == (100, 1)
    two = [asked("a", "Denver", "Denver Broncos", "Broncos")]
    assert human_score(two, vote=True)["exact"] == 0
    assert human_score(two)["f1"] == pytest.approx(200 / 3)
