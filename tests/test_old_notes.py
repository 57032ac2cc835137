"""The old question answering call: its steps against answers of transformers 4; what changed
silently; odd inputs."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers
from transformers import (
    AutoModelForQuestionAnswering,
    AutoTokenizer,
    BertForQuestionAnswering,
    BertTokenizer,
    pipeline,
)

from spanbert_tutorial.bert.weights import read_weights
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


def test_spans_of_the_same_text_are_added_up(model, tokenizer):
    context = (
        "Danube Danube danube"  # the middle of a word is widened, and letter case does not count
    )
    some = old_notes.answer_as_before(model, tokenizer, QUESTION, context, n_best_size=12)
    alone = old_notes.answer_as_before(model, tokenizer, QUESTION, context, n_best_size=1)
    assert some["score"] > alone["score"] > 0
    for answer in (some, alone):
        assert answer["answer"] == context[answer["start"] : answer["end"]]
        assert set(answer["answer"].split()) <= {"Danube", "danube"}


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


def test_an_empty_vocabulary_raises_no_error(old, tmp_path):
    for empty in (
        BertTokenizer(vocab_file=str(old / "vocab.txt")),
        BertTokenizer.from_pretrained(tmp_path),
    ):
        assert len(empty) == 5 and empty.tokenize("the Danube") == ["[UNK]", "[UNK]"]


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


def test_half_precision_on_disk_is_half_precision_in_memory(tmp_path, cased, tokenizer):
    written = old_notes.write_old_folder(tmp_path / "half", cased.vocabulary, torch.float16)
    default = BertForQuestionAnswering.from_pretrained(tmp_path / "half")
    full = BertForQuestionAnswering.from_pretrained(tmp_path / "half", dtype=torch.float32)
    ours = QuestionAnswerer.from_pretrained(tmp_path / "half")
    assert (default.dtype, full.dtype) == (torch.float16, torch.float32)
    assert {weight.dtype for weight in ours.model.state_dict().values()} == {torch.float32}
    inputs = tokenizer(QUESTION, CONTEXT, return_tensors="pt")
    with torch.no_grad():
        rough, fine, exact = (m(**inputs).start_logits.float() for m in (default, full, written))
        mine, _ = ours.model.scores(
            {
                "input_ids": inputs["input_ids"],
                "token_type_ids": inputs["token_type_ids"],
                "attention_mask": inputs["attention_mask"].bool(),
            }
        )
    assert 0 < (rough - fine).abs().max() < 0.1 and 0 < (fine - exact).abs().max() < 0.1
    assert torch.allclose(mine, fine, atol=1e-4)


def test_segments_left_out_change_the_scores_and_a_head_mask_does_not(model, tokenizer):
    inputs = tokenizer(QUESTION, CONTEXT, return_tensors="pt")
    with torch.no_grad():
        right = model(**inputs).start_logits
        assert (model(inputs["input_ids"]).start_logits - right).abs().max() > 0.1
        assert torch.equal(model(**inputs, head_mask=torch.zeros(2, 2)).start_logits, right)


class Trap:
    """Unpickling it would write a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (str(self.file), "w")


def test_a_pickle_file_runs_no_code(tmp_path, cased):
    old_notes.write_old_folder(tmp_path / "trap", cased.vocabulary)
    torch.save({"weight": Trap(tmp_path / "ran")}, tmp_path / "trap" / "pytorch_model.bin")
    for load in (
        BertForQuestionAnswering.from_pretrained,
        QuestionAnswerer.from_pretrained,
        read_weights,
    ):
        with pytest.raises(Exception):  # noqa: B017 - each refuses in its own way
            load(tmp_path / "trap")
    assert not (tmp_path / "ran").exists()
    torch.load(tmp_path / "trap" / "pytorch_model.bin", weights_only=False)  # the trap works
    assert (tmp_path / "ran").exists()


def test_the_transformers_that_is_asked_for_is_the_one_that_runs(monkeypatch, tmp_path):
    """`make older` sets TRANSFORMERS_WANTED; a process elsewhere, as the kernel of a notebook is,
    finds the same."""
    monkeypatch.chdir(tmp_path)
    asked = [sys.executable, "-c", "import transformers; print(transformers.__version__)"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert said == transformers.__version__ == os.environ.get("TRANSFORMERS_WANTED", said)


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


# --- look before you load -----------------------------------------------------------


def test_warnings_name_what_transformers_would_do(old, tmp_path, cased, answerer):
    found = old_notes.warnings_of(old)
    assert (
        len(found) == 3
        and "do_lower_case=False" in found[0]
        and "model_type" in found[1]
        and "pickle" in found[2]
    )
    answerer.save(tmp_path / "new", {"README.md": "# Card\n"})
    assert old_notes.warnings_of(tmp_path / "new") == []
    assert AutoTokenizer.from_pretrained(tmp_path / "new").tokenize("Danube") == ["Danube"]
    assert AutoModelForQuestionAnswering.from_pretrained(tmp_path / "new").dtype == torch.float32


def test_each_warning_has_its_reason(tmp_path, cased):
    def warnings(folder, **config):
        file = tmp_path / folder / "config.json"
        settings = json.loads(file.read_text(encoding="utf-8")) | config
        file.write_text(json.dumps(settings), encoding="utf-8")
        return " ".join(old_notes.warnings_of(tmp_path / folder))

    old_notes.write_old_folder(tmp_path / "half", cased.vocabulary, torch.bfloat16)
    assert "half precision" in warnings("half", model_type="bert")
    assert "half precision" not in warnings("half", dtype="float32")  # the config decides
    assert "4,000 tokens and the model 4,001" in warnings("half", vocab_size=4001)
    (tmp_path / "half" / "vocab.txt").unlink()
    assert "every word as [UNK]" in warnings("half")
    lower = [token for token in cased.vocabulary if token == token.lower() or token.startswith("[")]
    old_notes.write_old_folder(tmp_path / "uncased", lower)
    assert "lower-case" not in warnings("uncased") and "vocabulary" not in warnings("uncased")
    tiny = " ".join(old_notes.warnings_of(data_path("checkpoints", "spanbert-tiny")))
    assert "no question answering head" in tiny and "half" not in tiny and "pickle" not in tiny
    with pytest.raises(InputError, match="config.json is missing"):
        old_notes.warnings_of(tmp_path)


# --- odd inputs ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "context"),
    [
        ("😀", "😀 🎉"),
        ("😀🎉🎉 🎉", CONTEXT),
        ("ما هو التعلم؟", "تعلم الآلة فرع من الذكاء الاصطناعي"),
        ("מהי למידת מכונה?", CONTEXT),
        (QUESTION, "Yes."),
        ("word " * 200, "Yes."),  # a question of more than 64 tokens, a context of two
        ("?", "."),
        (QUESTION, "a\u200b\u0301 \ufeff b\x00c"),
    ],
)
def test_odd_inputs_give_a_slice_or_no_answer(question, context, answerer):
    answer = answerer.answer(question, context, threshold=1e9)
    assert answer.text and answer.text == context[answer.start : answer.end]
    assert np.isfinite([answer.score, answer.null_score]).all()
    assert answerer.answer(question, context, threshold=-1e9).text == ""


@pytest.mark.parametrize(
    ("question", "context", "name"),
    [
        ("", CONTEXT, "question"),
        (" \t\n", CONTEXT, "question"),
        ("\u200b", CONTEXT, "question"),
        (QUESTION, "", "context"),
        (QUESTION, "\u00a0\u200b\x00", "context"),
        ("", "", "question"),
    ],
)
def test_an_empty_side_is_one_sentence(question, context, name, answerer):
    with pytest.raises(InputError, match=f"the {name} is empty: write at least one word."):
        answerer.answer(question, context)


MEMORY = """
import resource, sys
from spanbert_tutorial.tasks.old_notes import CONTEXT, QUESTION
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
answerer = QuestionAnswerer.from_pretrained(sys.argv[1])
peaks = []
for characters in (20_000, 100_000):
    context = (CONTEXT + " ") * (characters // len(CONTEXT) + 1)
    answer = answerer.answer(QUESTION, context, threshold=1e9)
    assert answer.text and answer.text == context[answer.start : answer.end]
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(peaks[1] / peaks[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no resource module")
def test_a_long_context_needs_no_more_memory_than_a_shorter_one(old):
    """The peak of the whole process, after 20,000 and after 100,000 characters: windows come 32 at
    a time."""
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, str(old)], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) < 1.15
