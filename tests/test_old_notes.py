"""The old question answering call: its steps against answers of transformers 4; what changed
silently; odd inputs."""

import json

import pytest
import torch
from transformers import (
    AutoModelForQuestionAnswering,
    AutoTokenizer,
    BertForQuestionAnswering,
    BertTokenizer,
    pipeline,
)

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import old_notes, squad
from spanbert_tutorial.tasks.old_notes import ANSWER, CONTEXT, QUESTION
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer

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


@pytest.fixture(scope="module")
def answerer(old) -> QuestionAnswerer:
    return QuestionAnswerer.from_pretrained(old, tokenizer=old)


# --- the call, and its steps --------------------------------------------------------


def test_the_old_call_fails_for_two_reasons(old, model, tokenizer):
    with pytest.raises(ValueError, match="model_type"):
        pipeline("question-answering", model=str(old), tokenizer=str(old))
    with pytest.raises(KeyError, match="question-answering"):
        pipeline("question-answering", model=model, tokenizer=tokenizer)


def test_the_folder_has_the_old_layout(old, cased):
    assert sorted(file.name for file in old.iterdir()) == [
        "config.json",
        "pytorch_model.bin",
        "vocab.txt",
    ]
    assert "model_type" not in json.loads((old / "config.json").read_text(encoding="utf-8"))
    with pytest.raises(InputError, match="exists already"):
        old_notes.write_old_folder(old, cased.vocabulary)
    for auto in (AutoModelForQuestionAnswering, AutoTokenizer):
        with pytest.raises(ValueError):
            auto.from_pretrained(old)


@pytest.mark.parametrize(("number", "start", "end", "score"), OLD_ANSWERS)
def test_the_steps_answer_as_transformers_4_did(number, start, end, score, pairs, model, tokenizer):
    question, context = pairs[number]
    found = old_notes.answer_as_before(model, tokenizer, question, context)
    assert (found["start"], found["end"]) == (start, end)
    assert found["answer"] == context[start:end] and found["score"] == pytest.approx(
        score, abs=2e-6
    )


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


def test_the_answerer_has_the_numbers_of_transformers_and_the_same_best_words(
    pairs, model, tokenizer, answerer
):
    ours = answerer.answer_many(pairs[:60], threshold=float("inf"))
    same = 0
    for (question, context), answer in zip(pairs[:60], ours, strict=True):
        with torch.no_grad():
            scores = model(**tokenizer(question, context, return_tensors="pt"))
        assert answer.null_score == pytest.approx(
            (scores.start_logits[0, 0] + scores.end_logits[0, 0]).item(), abs=1e-3
        )
        theirs = old_notes.answer_as_before(
            model, tokenizer, question, context, n_best_size=1, max_answer_length=30
        )
        known = tokenizer(context)
        words = [
            known.word_to_chars(known.char_to_word(place))
            for place in (answer.start, answer.end - 1)
        ]
        same += (words[0].start, words[1].end) == (theirs["start"], theirs["end"])
    assert same >= 59  # two scores may be a near tie


def test_the_strings_of_the_notes():
    assert CONTEXT.index(ANSWER) == 20 and QUESTION == "What is machine learning?"


# --- what changed without a message -------------------------------------------------


def test_a_cased_vocabulary_is_lower_cased_unless_told(old, tokenizer, cased):
    silent = BertTokenizer.from_pretrained(old)
    assert (
        silent.tokenize("Danube")
        == silent.tokenize("danube")
        != ["Danube"]
        == tokenizer.tokenize("Danube")
    )
    assert len(silent) == len(tokenizer) == len(cased)


def test_lower_casing_changes_the_words_with_capitals_and_accents(cased, pairs, old):
    silent = BertTokenizer.from_pretrained(old)
    changed = total = 0
    for text in dict.fromkeys(context for _, context in pairs[:294]):
        for word, right, wrong in old_notes.lowered_tokens(cased, text):
            assert wrong == silent.tokenize(word)
            plain = word == word.lower() and word.isascii()
            assert right == wrong or not plain
            changed = changed + (right != wrong)
            total = total + 1
    assert total > 9_000 and 0.13 < changed / total < 0.15


def test_auto_tokenizer_lower_cases_an_old_folder_with_a_model_type(old, tmp_path):
    config = json.loads((old / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(
        json.dumps(config | {"model_type": "bert"}), encoding="utf-8"
    )
    assert len(AutoTokenizer.from_pretrained(tmp_path)) == 5
    (tmp_path / "vocab.txt").write_bytes((old / "vocab.txt").read_bytes())
    auto = AutoTokenizer.from_pretrained(tmp_path)
    assert len(auto) == config["vocab_size"] and auto.tokenize("Danube") == auto.tokenize("danube")


def test_attention_maps_need_eager_attention(old, model, tokenizer, answerer):
    inputs = tokenizer(QUESTION, CONTEXT, return_tensors="pt")
    eager = BertForQuestionAnswering.from_pretrained(
        old, dtype=torch.float32, attn_implementation="eager"
    )
    with torch.no_grad():
        assert not model(**inputs, output_attentions=True).attentions
        maps = eager(**inputs, output_attentions=True).attentions
    ours = answerer.model.encoder.attention_maps(
        inputs["input_ids"], token_type_ids=inputs["token_type_ids"]
    )
    assert len(maps) == len(ours) == 2
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(maps, ours, strict=True))


def test_segments_left_out_change_the_scores_and_a_head_mask_does_not(model, tokenizer):
    inputs = tokenizer(QUESTION, CONTEXT, return_tensors="pt")
    with torch.no_grad():
        right = model(**inputs).start_logits
        assert (model(inputs["input_ids"]).start_logits - right).abs().max() > 0.1
        assert torch.equal(model(**inputs, head_mask=torch.zeros(2, 2)).start_logits, right)


def test_the_scores_of_squad_are_those_of_transformers_where_it_still_has_them():
    metrics = pytest.importorskip("transformers.data.metrics.squad_metrics", exc_type=ImportError)
    for one, other in (
        ("the Denver Broncos won", "Denver Broncos"),
        ("", ""),
        ("a", "an"),
        ("3.8-word", "38word"),
    ):
        assert squad.f1(one, other) == pytest.approx(metrics.compute_f1(other, one))
        assert squad.exact_match(one, other) == bool(metrics.compute_exact(other, one))
