"""The old question answering call: its steps against answers of transformers 4; what changed
silently; odd inputs."""

import pytest
import torch
from transformers import BertForQuestionAnswering, BertTokenizer

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import old_notes, squad
from spanbert_tutorial.tasks.old_notes import CONTEXT

# (question, start, end, score) from `pipeline("question-answering")` of transformers 4.57.6 on the
# folder that the fixture `old` writes. Questions from 294 on ask on ten contexts at once, which
# takes several windows.
OLD_ANSWERS = [
    (0, 282, 305, 0.001414),
    (7, 99, 121, 0.004085),
    (40, 229, 258, 0.001534),
    (101, 14, 74, 0.000887),
    (150, 221, 232, 0.002089),
    (222, 283, 344, 0.00173),
    (280, 6, 22, 0.001375),
    (293, 26, 50, 0.003731),
    (295, 3107, 3122, 9e-05),
    (300, 2964, 2989, 0.000214),
    (303, 3853, 3901, 0.00071),
]


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    """Question and context: the reader's, then ten with a long context."""
    asked = [(q.question, q.context) for q in squad.read(data_path("reader", "reader.json"))]
    return asked + [
        (asked[i][0], " ".join(c for _, c in asked[i : i + 40 : 4])) for i in range(0, 200, 20)
    ]


@pytest.fixture(scope="module")
def cased(pairs) -> WordPiece:
    """A cased vocabulary of real text."""
    contexts = dict.fromkeys(context for _, context in pairs[:294])
    return WordPiece.train([*contexts, CONTEXT], 4000)


@pytest.fixture(scope="module")
def old(cased, tmp_path_factory):
    """The folder of an old checkpoint."""
    folder = tmp_path_factory.mktemp("old") / "spanbert"
    old_notes.write_old_folder(folder, cased.vocabulary)
    return folder


@pytest.fixture(scope="module")
def tokenizer(old) -> BertTokenizer:
    return BertTokenizer.from_pretrained(old, do_lower_case=False)


@pytest.fixture(scope="module")
def model(old) -> BertForQuestionAnswering:
    return BertForQuestionAnswering.from_pretrained(old, dtype=torch.float32)


# --- the call, and its steps --------------------------------------------------------


@pytest.mark.parametrize(("number", "start", "end", "score"), OLD_ANSWERS)
def test_the_steps_answer_as_transformers_4_did(number, start, end, score, pairs, model, tokenizer):
    question, context = pairs[number]
    found = old_notes.answer_as_before(model, tokenizer, question, context)
    assert (found["start"], found["end"]) == (start, end)
    assert found["answer"] == context[start:end]
    assert found["score"] == pytest.approx(score, abs=2e-6)
    with pytest.raises(InputError, match="the context holds no word"):
        old_notes.answer_as_before(model, tokenizer, question, "")


def test_best_spans_agree_with_a_loop():
    generator = torch.Generator().manual_seed(0)
    for n in (4, 7, 12):
        for longest in (1, 3, 30):
            starts, ends = torch.randn(2, n, generator=generator) * 2
            allowed = torch.arange(n) > 2
            allowed[-1] = False
            places = [0, *range(3, n - 1)]
            shares = [
                {i: x[i].exp().item() / sum(x[j].exp().item() for j in places) for i in places}
                for x in (starts, ends)
            ]
            wanted = sorted(
                (
                    (shares[0][i] * shares[1][j], i, j)
                    for i in places[1:]
                    for j in places[1:]
                    if i <= j < i + longest
                ),
                reverse=True,
            )[:5]
            found = old_notes.best_by_probability(starts, ends, allowed, longest, 5)
            assert [(i, j) for i, j, _ in found] == [(i, j) for _, i, j in wanted]
            assert [share for *_, share in found] == pytest.approx(
                [share for share, _, _ in wanted], rel=1e-5
            )


# --- what changed without a message -------------------------------------------------
