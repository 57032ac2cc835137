"""Hostile SQuAD files: every question is read right, or the file is refused in one sentence. The
oracle: `fuzz`."""

import json
import warnings

from fuzz import REFUSED, Door, new_folder
from fuzz_files import PACK, damaged, in_bytes, put, read_json, spoiled, texts
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.tasks import squad, squad_files
from spanbert_tutorial.tasks.squad import GoldAnswer, Question

door = Door("SQuAD file")
counts = door.counts()

CONTEXT = "The old mill stood by the river Aa until 1904."
WHOLE = {
    "version": "v2.0",
    "data": [
        {
            "title": "Mill",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {
                            "id": "a",
                            "question": "Where did it stand?",
                            "is_impossible": False,
                            "answers": [{"text": "by the river Aa", "answer_start": 19}],
                        },
                        {
                            "id": "b",
                            "question": "Who burned it?",
                            "is_impossible": True,
                            "answers": [],
                            "category": "no such person",
                            "plausible_answers": [{"text": "1904", "answer_start": 41}],
                        },
                    ],
                }
            ],
        },
        {
            "title": "River",
            "paragraphs": [
                {
                    "context": "The Aa is short.",
                    "qas": [
                        {
                            "id": "c",
                            "question": "How long?",
                            "answers": [{"text": "short", "answer_start": 10}],
                        }
                    ],
                }
            ],
        },
    ],
}


def check_questions(questions: list[Question]) -> None:
    """Texts that can be written, answers where they say, and ids of their own."""
    assert questions and len({question.id for question in questions}) == len(questions)
    for question in questions:
        "".join(
            [
                question.id,
                question.question,
                question.context,
                question.title,
                question.category or "",
            ]
        ).encode()
        for answer in (*question.answers, *question.plausible):
            assert answer.text and question.context[answer.start :].startswith(answer.text)


@door.inputs(short=80, share=0.4)
@given(text=spoiled(WHOLE), packing=st.sampled_from(list(PACK)), data=st.data())
def test_a_spoiled_file_is_read_or_refused(text, packing, data):
    whole = in_bytes(text)
    content = data.draw(damaged(PACK[packing](whole)))
    with new_folder() as folder:
        found = door.call(squad.read, put(folder, f"a.json{packing}", content))
    if found is not REFUSED:
        check_questions(found)
    if text == json.dumps(WHOLE) and content == PACK[packing](whole):
        assert [question.id for question in found] == ["a", "b", "c"]


cells = st.text(st.sampled_from('",;\t\r\n \\0Aa1é떡\u2028'), max_size=12)


@door.inputs(short=60, share=0.2)
@given(
    header=st.permutations(["question", "context", "answer", "answer_start", "id", "title"]),
    rows=st.lists(st.lists(cells, min_size=2, max_size=7), max_size=3),
    separator=st.sampled_from(",;\t"),
    packing=st.sampled_from(list(PACK)),
)
def test_a_table_is_read_or_refused(header, rows, separator, packing):
    lines = [separator.join(row) for row in [header, *rows]]
    with (
        new_folder() as folder,
        warnings.catch_warnings(action="ignore"),
    ):  # of an answer in several places
        found = door.call(
            squad.read, put(folder, f"a.csv{packing}", PACK[packing]("\n".join(lines).encode()))
        )
    if found is not REFUSED:
        check_questions(found)


half = st.text(st.characters(codec=None), max_size=6)


@door.inputs(short=40, share=0.3)
@given(
    title=half,
    name=half,
    asked=half,
    context=half,
    category=st.none() | half,
    places=st.lists(st.tuples(st.integers(-1, 7), st.integers(0, 7)), max_size=2),
)
def test_questions_are_written_and_read_again_or_refused(
    title, name, asked, context, category, places
):
    answers = tuple(GoldAnswer(context[start : start + length], start) for start, length in places)
    question = Question(
        name, asked, context, title, answers, category=None if answers else category
    )
    with new_folder() as folder:
        written = door.call(squad_files.write, folder / "a.json", [question], "v2.0")
        assert (folder / "a.json").exists() == (written is not REFUSED) and len(
            list(folder.iterdir())
        ) <= 1
        if written is not REFUSED:
            assert read_json((folder / "a.json").read_bytes())
            found = door.call(squad.read, folder / "a.json")
            assert found is REFUSED or found == [question]


@door.inputs(short=6, share=0.1)
@given(text=spoiled(WHOLE), other=spoiled(WHOLE), model=texts)
def test_the_commands_read_or_refuse(text, other, model):
    """Data are read before the model, so a model that is not there is enough."""
    with new_folder() as folder:
        put(folder, "a.json", in_bytes(text))
        put(folder, "b.json", in_bytes(other))
        for arguments in (
            [
                "evaluate",
                "squad",
                "--model",
                "./nowhere",
                "--data",
                "a.json",
                "--tune-on",
                "b.json",
            ],
            ["finetune", "squad", "--init-from", "./nowhere", "--data", "a.json", "b.json"],
        ):
            assert door.command([*arguments, "--output", "new"], folder).code == 2
