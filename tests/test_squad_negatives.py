"""Baselines that learn nothing, by hand; made questions without an answer differ where they should
and nowhere else."""

import math

import pytest

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks.squad_files import Question, check_ids, read
from spanbert_tutorial.tasks.squad_negatives import (
    Guess,
    WordWeights,
    auc,
    lexical_guess,
    picked,
    stretches,
    type_guess,
    wanted_kind,
    words,
)

CONTEXT = (
    "In 1985 two friends founded Brell Works in Lower Tarn. The firm of Ada Brell sold 300 clocks."
)


@pytest.fixture(scope="module")
def questions():
    return read(data_path("reader", "reader.json"))


@pytest.fixture(scope="module")
def weights(questions):
    return WordWeights([*dict.fromkeys(q.context for q in questions)])


def ask(question: str, context: str = CONTEXT) -> Question:
    return Question("q", question, context)


def test_words_are_lower_case_without_punctuation_and_without_the_s_of_a_name():
    assert words("Braille's A-1, the “Étude” (3.5/2)!") == "braille a-1 the étude 3.5/2".split()
    assert words("The man’s car; it is.") == ["the", "man", "car", "it", "is"]
    assert words("") == []


def test_weights_by_hand():
    small = WordWeights(["the river rose", "the river fell", "the team won the cup"])
    assert small.weight("the") == 0 and small.weight("river") == math.log(4 / 3)
    assert small.weight("unknown") == math.log(4) and small.weight("who") == 0
    share = math.log(2) / (math.log(2) + math.log(4 / 3))
    assert small.overlap("Who won the river?", "The team won") == pytest.approx(share)
    assert small.overlap("Who?", "who") == 0  # nothing that weighs: no division by zero
    assert small.overlap("river river rose", "river rose") == pytest.approx(1)


def test_stretches_by_hand():
    assert [one[:2] for one in stretches(CONTEXT)] == [
        ("1985 two", "number"),
        ("Brell Works", "name"),
        ("Lower Tarn", "name"),
        ("Ada Brell", "name"),
        ("300", "number"),
    ]
    text = "On 14 March, Ørsted's friend and I saw Halley's Comet."
    assert all(text[place:].startswith(stretch) for stretch, _, place in stretches(text))
    assert [one[:2] for one in stretches(text)] == [
        ("14 March", "name number"),
        ("Ørsted", "name"),
        ("Halley", "name"),
        ("Comet", "name"),
    ]
    assert stretches("") == stretches("no name here") == []


def test_the_lexical_guess_by_hand():
    weights = WordWeights(CONTEXT.split(". "))
    guess = lexical_guess(ask("Who sold clocks?"), weights)
    assert guess.text == "Ada Brell" and guess.null_odds == -1
    # none that was asked with
    assert lexical_guess(ask("How many clocks did Ada Brell sell?"), weights).text == "300"
    assert lexical_guess(ask("Who bought a moon?"), weights).null_odds == 0
    # "the" is in one sentence of two, "moon" in none
    share = math.log(3 / 2) / (math.log(3 / 2) + math.log(3))
    assert lexical_guess(ask("Which the moon?"), weights).null_odds == pytest.approx(-share)
    assert lexical_guess(ask("What?", "nothing to see here."), weights) == Guess("", 0)


def test_the_type_guess_by_hand():
    weights = WordWeights(CONTEXT.split(". "))
    assert type_guess(ask("When was it founded?"), weights) == Guess("1985 two", 0)
    # the first name
    assert type_guess(ask("Where was it founded?"), weights) == Guess("Brell Works", 0)
    assert type_guess(ask("When?", "No number here, Ada."), weights) == Guess("", 1)
    assert type_guess(ask("Who is Ada?", "No one but Ada."), weights) == Guess("", 1)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who won?", "name"),
        ("To whom?", "name"),
        ("In which city?", "name"),
        ("What company was founded in 1992?", "name"),
        ("When did it end?", "number"),
        ("How many?", "number"),
        ("In what year did who win?", "number"),
        ("Why?", ""),
        ("What is it?", ""),
        ("How did it end?", ""),
        ("Whenever?", ""),
    ],
)
def test_which_kind_is_wanted(question, kind):
    assert wanted_kind(question) == kind


@pytest.mark.parametrize("same_article", [True, False])
def test_picked_questions_keep_their_words_and_get_the_nearest_context(
    questions, weights, same_article
):
    made = picked(questions, weights, same_article)
    source = {q.id: q for q in questions}
    titles = {q.context: q.title for q in questions}
    assert len(made) == 149
    check_ids([*questions, *made])
    for q in made:
        old = source[q.id.removesuffix("-picked")]
        assert q.question == old.question and q.context != old.context and not q.answers
        assert (titles[q.context] == old.title) == same_article
        assert not any(answer.text.lower() in q.context.lower() for answer in old.answers)
        rivals = [
            c
            for c, title in titles.items()
            if (title == old.title) == same_article
            and c != old.context
            and not any(answer.text.lower() in c.lower() for answer in old.answers)
        ]
        best = max(weights.overlap(q.question, c) for c in rivals)
        assert weights.overlap(q.question, q.context) == best


def test_auc_by_hand():
    assert auc([1, 2], [3, 4]) == 1 and auc([3, 4], [1, 2]) == 0
    assert auc([1, 3], [2]) == 0.5 and auc([1, 1], [1]) == 0.5
    assert auc([1, 2, 3], [2, 4]) == (1.5 + 3) / 6
