"""Questions made by rule: what they ask for, what they leave out, and the command that writes
them."""

import json
import os

import numpy as np
import pytest

from spanbert_tutorial.__main__ import main
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import made_questions as made
from spanbert_tutorial.tasks import squad_files
from spanbert_tutorial.tasks.squad import read
from spanbert_tutorial.tasks.squad_files import GoldAnswer, Question
from spanbert_tutorial.text.corpora import documents

CONTEXTS = list(
    dict.fromkeys(question.context for question in read(data_path("reader", "reader.json")))
)
LONG = "The old mill by the river Tarn was built in 1873 by Anna Sorel for her two sons."


@pytest.fixture
def corpus(tmp_path):
    file = tmp_path / "texts.jsonl"
    rows = [{"title": f"text {number}", "text": context} for number, context in enumerate(CONTEXTS)]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def test_every_answer_is_a_slice_of_its_context_that_the_question_leaves_out(corpus):
    questions = list(made.made_questions(documents(corpus)))
    assert len(questions) >= len(CONTEXTS)
    for question in questions:
        (answer,) = question.answers
        squad_files.check(question, impossible=False)
        others = question.question.removesuffix("?").split()[1:]
        assert any(
            question.question.startswith(word) for words in made.ASKING.values() for word in words
        )
        assert len(others) <= 40 and len(question.context.split()) <= made.MAX_WORDS
    assert len({question.id for question in questions}) == len(questions)


def test_an_answer_is_a_run_of_names_and_numbers_or_a_few_words():
    kinds = {}
    for seed in range(200):
        text, place, kind = made.answer_in(LONG, np.random.default_rng(seed))
        assert LONG[place : place + len(text)] == text
        kinds.setdefault(kind, set()).add(text)
    assert kinds["year"] == {"1873"} and kinds["number"] == {"two"}
    assert kinds["name"] == {"Tarn", "Anna Sorel"}
    for text in kinds[""]:
        words = text.split()
        assert len(words) <= 4 and not {words[0].lower(), words[-1].lower()} & made.SMALL_WORDS


@pytest.mark.parametrize("kept", [made.USUAL, made.EASY])
def test_a_question_holds_a_part_of_the_other_words_and_none_of_the_answer(kept):
    place = LONG.index("Anna Sorel")
    rngs = map(np.random.default_rng, range(300))
    asked = [made.question_words(LONG, "Anna Sorel", place, "name", rng, *kept) for rng in rngs]
    rest = [question.removesuffix("?").split()[1:] for question in asked]
    assert not {"Anna", "Sorel"} & {word for words in rest for word in words}
    share = min(kept[0], kept[1] / 15)
    assert np.mean([len(words) for words in rest]) == pytest.approx(15 * share, rel=0.1)
    swapped = [
        words.index("sons") < words.index("mill")
        for words in rest
        if {"sons", "mill"} <= set(words)
    ]
    assert 0.35 < np.mean(swapped) < 0.65


def test_a_sentence_that_is_one_name_asks_with_its_question_word_alone():
    sentence = "North South East West Red Blue Green White Black Gold"
    document = [sentence]
    asked = []
    for seed in range(20):
        asked += list(made.made_questions([document], seed))
    assert len(asked) == 20 and any(question.answers[0].text == sentence for question in asked)


def test_long_sentences_do_not_make_long_questions():
    sentence = " ".join(f"word{i}" for i in range(100))
    for kept in (made.USUAL, made.EASY):
        asked = [
            made.question_words(sentence, "word3", 18, "", np.random.default_rng(i), *kept)
            for i in range(50)
        ]
        assert np.mean([len(question.split()) for question in asked]) == pytest.approx(
            1 + kept[1], rel=0.15
        )


def test_easy_questions_keep_more_words_of_the_same_sentences(corpus):
    usual, easy = (
        list(made.made_questions(documents(corpus), easy=easy)) for easy in (False, True)
    )
    lengths = [
        np.mean([len(question.question.split()) for question in some]) for some in (usual, easy)
    ]
    assert len(usual) == len(easy) and lengths[1] > 1.4 * lengths[0]


def test_passages_hold_whole_sentences_and_leave_out_none_that_fits():
    sentences = ["a b c.", "d e.", "f g h i.", "j " * 7, "k."]
    assert list(made.passages_of(sentences, 5)) == [["a b c.", "d e."], ["f g h i."], ["k."]]
    assert [s for part in made.passages_of(sentences, 7) for s in part] == sentences


def test_seeds_repeat_and_differ(corpus):
    once, again, other = (list(made.made_questions(documents(corpus), seed)) for seed in (0, 0, 1))
    assert once == again != other


def test_a_short_document_gives_one_question_for_each_passage_at_most(corpus):
    texts = list(documents(corpus))
    assert len(list(made.made_questions(texts[:1], per_document=1))) == 1
    assert not list(made.made_questions([["Too short."], ["Who? No."]]))


# --- files and command --------------------------------------------------------------


@pytest.mark.parametrize("packing", ["", ".xz", ".gz"])
def test_what_is_written_is_read_back(tmp_path, packing):
    questions = [
        Question("1", "Who?", "Anna did.", "one", (GoldAnswer("Anna", 0),)),
        Question(
            "2", "When?", "Anna did.", "one", category="silent", plausible=(GoldAnswer("did", 5),)
        ),
        Question("3", "What?", "It — rains.", "two", (GoldAnswer("rains", 5),)),
    ]
    file = tmp_path / f"some.json{packing}"
    squad_files.write(file, questions, "1")
    assert read(file) == questions
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    articles = squad_files.articles(file)
    assert [len(article["paragraphs"][0]["qas"]) for article in articles] == [2, 1]


def test_the_command_writes_a_file_to_fine_tune_on(corpus, tmp_path, capsys):
    (tmp_path / "titles.txt").write_text("text 0\ntext 1\n")
    options = [
        "make-questions",
        "--corpus",
        str(corpus),
        "--leave-out",
        str(tmp_path / "titles.txt"),
    ]
    assert main([*options, "--output", str(tmp_path / "made.json.xz")]) == 0
    questions = read(tmp_path / "made.json.xz")
    assert f"{len(questions)} questions" in capsys.readouterr().out
    assert len({question.title for question in questions}) == len(CONTEXTS) - 2
    assert not {question.context.split(".")[0] for question in questions} & {
        c.split(".")[0] for c in CONTEXTS[:2]
    }
    assert main([*options, "--output", str(tmp_path / "made.json.xz")]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_seed_below_zero_is_refused(corpus, tmp_path, capsys):
    options = [
        "make-questions",
        "--corpus",
        str(corpus),
        "--output",
        str(tmp_path / "made.json"),
        "--seed",
        "-1",
    ]
    assert main(options) == 2
    assert "--seed is -1: give a whole number from 0" in capsys.readouterr().err
    assert not (tmp_path / "made.json").exists()


def test_text_without_long_sentences_is_refused(tmp_path, capsys):
    (tmp_path / "short.txt").write_text("Too short.\n")
    options = [
        "make-questions",
        "--corpus",
        str(tmp_path / "short.txt"),
        "--output",
        str(tmp_path / "made.json"),
    ]
    assert main(options) == 2
    assert "8 to 110 words" in capsys.readouterr().err
    assert not (tmp_path / "made.json").exists()


def test_no_room_is_told_and_nothing_is_left(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(squad_files.InputError, match="make room"):
        squad_files.write(tmp_path / "made.json", [], "1")
    assert not list(tmp_path.iterdir())


def test_a_parent_that_is_a_file_is_told(tmp_path):
    (tmp_path / "texts").write_text("a file")
    with pytest.raises(squad_files.InputError, match="cannot be written to .*texts"):
        squad_files.write(tmp_path / "texts" / "made.json", [], "1")
