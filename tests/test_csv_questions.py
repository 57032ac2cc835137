"""Tables of questions: rows are read as SQuAD's questions are, and what is wrong is told with its
row."""

import csv
import gzip

import pytest

from spanbert_tutorial.tasks import squad

CONTEXT = "The mill stood by the Aa until 1904, when the mill burned."
HEAD = "question,context,answer\n"


def table(folder, text: str, name: str = "own.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_rows_become_questions(tmp_path):
    text = (
        f"question,context,answer,title\r\nUntil "
        f'when?,"{CONTEXT}",1904,Mill\r\n\r\nWho?,"{CONTEXT}",,Mill\r\n'
    )
    first, second = squad.read(table(tmp_path, text))
    assert first.id == f"{tmp_path / 'own.csv'}, line 2"
    assert (first.title, first.context) == ("Mill", CONTEXT)
    assert [(answer.text, answer.start) for answer in first.answers] == [("1904", 31)]
    assert second.id.endswith("own.csv, line 4") and second.answers == ()


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_other_orders_and_a_line_end_in_a_cell(tmp_path, separator):
    rows = [
        ["id", "answer", "context", "question"],
        ["a", "two", "one\ntwo, three; four", "Second?"],
    ]
    with (tmp_path / "own.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    (question,) = squad.read(tmp_path / "own.csv")
    assert question.id == "a" and question.context == rows[1][2] and question.answers[0].start == 4


def test_a_packed_table_and_an_offset(tmp_path):
    place = CONTEXT.rindex("the mill")
    with gzip.open(tmp_path / "own.CSV.GZ", "wt", encoding="utf-8") as file:
        file.write(
            f'question,context,answer,answer_start\nWhat burned?,"{CONTEXT}",the mill,{place}\n'
        )
    (question,) = squad.read(tmp_path / "own.CSV.GZ")
    assert question.answers[0].start == place


def test_an_answer_in_two_places_is_told(tmp_path):
    path = table(tmp_path, f'{HEAD}What?,"{CONTEXT}",mill\n')
    told = "in 1 rows, such as that of line 2, the answer occurs in its context more than once"
    with pytest.warns(UserWarning, match=told):
        (question,) = squad.read(path)
    assert question.answers[0].start == CONTEXT.index("mill")


def test_intervals_are_over_articles_then_contexts_then_none(tmp_path):
    rows = "".join(f"a{n % 4},Who {n}?,context {n % 8} mill,mill\n" for n in range(40))
    questions = squad.read(table(tmp_path, f"title,question,context,answer\n{rows}"))
    said = {question.id: "mill" if question.title < "a2" else "" for question in questions}
    found = squad.intervals(said, questions)
    assert found["drawn"] == "4 articles" and found["exact"] == found["f1"] == [0.0, 100.0]
    untitled = squad.read(table(tmp_path, f"none,question,context,answer\n{rows}"))
    assert squad.intervals(said, untitled)["drawn"] == "8 contexts"
    assert squad.intervals({"row-2": "mill"}, untitled[:1]) == {}
