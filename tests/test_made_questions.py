"""Questions made by rule: what they ask for, what they leave out, and the command that writes
them."""

import json

import numpy as np
import pytest

from spanbert_tutorial.__main__ import main
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import made_questions as made
from spanbert_tutorial.tasks import squad_files
from spanbert_tutorial.tasks.squad import read
from spanbert_tutorial.tasks.squad_files import GoldAnswer, Question
from spanbert_tutorial.text.corpora import documents
from spanbert_tutorial.text.lines import read_text

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
        squad_files.checked(question, impossible=False)
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
    others = LONG.split("Anna Sorel")
    rngs = map(np.random.default_rng, range(300))
    asked = [made.question_words(*others, "name", rng, *kept) for rng in rngs]
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
    articles = json.loads(read_text(file, ""))["data"]
    assert [len(article["paragraphs"][0]["qas"]) for article in articles] == [2, 1]


def test_the_command_writes_a_file_to_fine_tune_on(corpus, tmp_path, capsys):
    (tmp_path / "titles.txt").write_text("text 0\ntext 1\n")
    options = ["make-questions", "--corpus", str(corpus)]
    options += ["--leave-out", str(tmp_path / "titles.txt")]
    assert main([*options, "--output", str(tmp_path / "made.json.xz")]) == 0
    questions = read(tmp_path / "made.json.xz")
    assert f"{len(questions)} questions" in capsys.readouterr().out
    assert len({question.title for question in questions}) == len(CONTEXTS) - 2
    assert not {question.context.split(".")[0] for question in questions} & {
        c.split(".")[0] for c in CONTEXTS[:2]
    }
    assert main([*options, "--output", str(tmp_path / "made.json.xz")]) == 2
    assert "exists already" in capsys.readouterr().err
