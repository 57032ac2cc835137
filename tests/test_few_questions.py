"""Few questions: the same ones for both models, the layout of the hub, and the choice between the
hub and the stand-ins."""

import importlib.util
import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import errors
from transformers import BertModel, BertTokenizer

from environment import ROOT
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.weights import read_config, read_weights
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import continue_from, read_vocabulary
from spanbert_tutorial.tasks import few_questions as few
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import (
    QuestionAnswerer,
    QuestionAnsweringData,
    QuestionAnsweringModel,
    QuestionAnsweringSettings,
    answer_tokens,
)
from spanbert_tutorial.tasks.squad import GoldAnswer, Question
from spanbert_tutorial.tasks.windows import encode

CONTEXT = "Ada Hale founded New Upton in 1874. The mill burned down."
TOKENS = [
    *SPECIALS,
    *sorted(set("Ada Hale founded New Upton in 1874 The mill burned down".split())),
]
TOKENS += [
    "Who",
    "What",
    "did",
    "when",
    ".",
    "?",
    "n",
    "##e",
    "##w",
    "u",
    "##p",
    "##t",
    "##o",
    "##n",
]


def wordpiece() -> WordPiece:
    return WordPiece({token: number for number, token in enumerate(TOKENS)})


def random_encoder(seed: int = 0) -> BertEncoder:
    """Small, every weight random, with numbers that float16 holds exactly."""
    generator = torch.Generator().manual_seed(seed)
    config = EncoderConfig(
        vocab_size=len(TOKENS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    encoder = BertEncoder(config, generator)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
            weight.copy_(weight.half())
    return encoder.eval()


def released_folder(folder: Path, seed: int = 0) -> Path:
    """The hub's layout of SpanBERT, with small random sizes."""
    few.write_as_released(folder, random_encoder(seed), wordpiece())
    return folder


def questions(count: int) -> list[Question]:
    answers = ("Ada Hale", "New Upton", "1874")
    return [
        Question(
            f"q{number}",
            "Who founded New Upton?",
            CONTEXT,
            answers=(GoldAnswer(text, CONTEXT.index(text)),),
        )
        for number, text in ((number, answers[number % 3]) for number in range(count))
    ]


# --- the layout of the hub ----------------------------------------------------------


def test_the_layout_is_the_hubs_and_nothing_else(tmp_path):
    folder = released_folder(tmp_path / "released")
    assert {file.name for file in folder.iterdir()} == {
        "config.json",
        "pytorch_model.bin",
        "vocab.txt",
    }
    config = read_config(folder)
    assert "model_type" not in config and "architectures" not in config
    assert "layer_norm_eps" not in config and config["directionality"] == "bidi"
    weights = read_weights(folder)
    assert {weight.dtype for weight in weights.values()} == {torch.float16}
    assert all(name.startswith("bert.e") for name in weights)  # embeddings and encoder, no head


def test_trap_1_capital_letters_stay(tmp_path):
    folder = released_folder(tmp_path / "released")
    here = read_vocabulary(folder)
    assert here.tokens(here.encode("New Upton")) == ["New", "Upton"]
    careless = BertTokenizer.from_pretrained(folder)
    assert careless.tokenize("New Upton") == ["n", "##e", "##w", "u", "##p", "##t", "##o", "##n"]
    careful = BertTokenizer.from_pretrained(folder, do_lower_case=False)
    assert careful.tokenize("New Upton") == ["New", "Upton"]


def test_trap_2_half_precision_becomes_float32(tmp_path):
    folder = released_folder(tmp_path / "released")
    encoder = BertEncoder.from_huggingface(folder)
    assert {weight.dtype for weight in encoder.parameters()} == {torch.float32}
    assert BertModel.from_pretrained(folder, add_pooling_layer=False).dtype == torch.float16
    ids = torch.arange(5, 15)[None]
    assert torch.equal(encoder(ids), random_encoder()(ids))
    assert few.transformers_gap(folder, ids) < 1e-5


def test_trap_3_the_package_asks_for_a_torch_that_transformers_opens_bin_files_with():
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "torch>=2.6" in needed["project"]["dependencies"]


def test_trap_4_missing_heads_are_named(tmp_path):
    folder = released_folder(tmp_path / "released")
    assert BertEncoder.read(folder)[2] == []
    assert continue_from(folder, "span+sbo")[1] == ["masked_language_model", "boundary"]
    with pytest.raises(InputError, match="has no question answering head"):
        QuestionAnswerer.from_pretrained(folder)


@pytest.mark.parametrize(
    "name, size, told",
    [
        ("spanbert-base-cased", "base", "has 12 layers of 768."),
        ("spanbert-large-cased", "large", "has 24 layers of 1024."),
        ("spanbert-base-finetuned-squadv2", "large", "24 layers of 1024: not base, which has 12"),
        ("spanbert-large-cased", "base", "12 layers of 768: not large, which has 24 of 1024."),
        ("bert-mini", "mini", "bert-mini has 4 layers of 256."),
    ],
)
def test_trap_5_a_name_that_misleads(tmp_path, name, size, told):
    folder = tmp_path / name
    folder.mkdir()
    chosen = EncoderConfig.preset(size)
    sizes = {"num_hidden_layers": chosen.num_hidden_layers, "hidden_size": chosen.hidden_size}
    (folder / "config.json").write_text(json.dumps(sizes))
    assert told in few.size_in_words(folder)
    assert (": not " in few.size_in_words(folder)) == (": not " in told)


def test_the_gap_to_transformers_sees_a_difference(tmp_path, monkeypatch):
    folder = released_folder(tmp_path / "released")
    other = random_encoder()
    with torch.no_grad():
        other.layers[1].attention_norm.bias[3] += 0.01
    monkeypatch.setattr(BertEncoder, "read", lambda *_: (other, {}, [], ""))
    assert few.transformers_gap(folder, torch.arange(5, 15)[None]) > 1e-3


# --- samples ------------------------------------------------------------------------


def test_samples_are_nested_random_and_the_same_for_a_seed():
    pool = questions(50)
    first = few.nested_samples(pool, (4, 16, 50), seed=3)
    assert first == few.nested_samples(pool, (4, 16, 50), seed=3)
    assert first[4] == first[16][:4] and first[16] == first[50][:16]
    assert sorted(q.id for q in first[50]) == sorted(q.id for q in pool) and first[50] != pool
    assert first[16] != few.nested_samples(pool, (16,), seed=4)[16]
    with pytest.raises(InputError, match="51 questions are wanted, and there are 50: give smaller"):
        few.nested_samples(pool, (4, 51), seed=0)


def plan(models, **changes) -> few.Plan:
    """The hub's plan, small."""
    settings = QuestionAnsweringSettings(
        epochs=1, batch_size=2, peak_learning_rate=1e-3, max_length=32, doc_stride=16
    )
    small = {"sizes": (3, 9), "seeds": (0, 1), "scored": 5, "min_steps": 3, "settings": settings}
    return replace(few.HUB, models=models, **(small | changes))


def test_few_questions_get_more_epochs_and_many_do_not():
    chosen = plan({}, min_steps=20)
    settings = few.enough_steps(chosen, questions(2), wordpiece(), seed=7)
    data = QuestionAnsweringData(questions(2), wordpiece(), settings)
    assert settings.seed == 7 and settings.recipe(int(data.lengths().sum())).steps == 20
    assert few.enough_steps(chosen, questions(300), wordpiece(), seed=7).epochs == 1


def test_a_model_has_to_answer():
    """Even where [CLS] scores highest, which would mean "no answer"."""
    model = QuestionAnsweringModel(random_encoder())
    with torch.no_grad():
        model.boundaries.weight.zero_()
    answerer = QuestionAnswerer(model, wordpiece(), max_length=32, doc_stride=16)
    one = replace(questions(1)[0], answers=(GoldAnswer("Ada", 0),))
    assert answer_tokens(encode(wordpiece(), one.question, one.context), one) == (0, 0)
    assert few.score(answerer, [one])["f1"] == 100  # all scores equal: the first token


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A stand-in for the hub with two models in SpanBERT's layout, and a set in SQuAD's; it notes
    what was asked for."""
    asked = []
    for number, name in enumerate(few.HUB.models.values()):
        released_folder(tmp_path / "there" / name, seed=number)

    def download(name, allow_patterns):
        asked.append((name, allow_patterns[-1]))
        target = tmp_path / "cache" / name
        target.mkdir(parents=True, exist_ok=True)
        for file in (tmp_path / "there" / name).iterdir():
            if file.name in allow_patterns:
                shutil.copy(file, target)
        return str(target)

    def rows(name, split):
        asked.append((name, split))
        for q in questions(12 if split == "train" else 8):
            answers = {"text": [a.text for a in q.answers], "answer_start": [q.answers[0].start]}
            yield {
                "id": f"{split}-{q.id}",
                "question": q.question,
                "context": q.context,
                "answers": answers,
            }

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    monkeypatch.setattr("datasets.load_dataset", rows)
    return asked


def test_the_whole_way_of_the_hub(hub):
    chosen = plan(few.HUB.models)
    train, test = few.questions_of(chosen)
    assert (len(train), len(test)) == (12, 5) and test != questions(8)[:5]
    assert ("rajpurkar/squad", "train") in hub and ("rajpurkar/squad", "validation") in hub
    runs, answerer = few.learning_curve(chosen, train, test)
    assert [(run.model, run.questions, run.seed) for run in runs] == [
        (model, size, seed) for seed in (0, 1) for size in (3, 9) for model in ("BERT", "SpanBERT")
    ]
    for bert, spanbert in zip(runs[::2], runs[1::2], strict=True):
        assert bert.ids == spanbert.ids and len(bert.ids) == bert.questions
    assert runs[0].ids != runs[4].ids
    assert all(np.isfinite(run.f1) and 0 <= run.exact <= run.f1 <= 100 for run in runs)
    assert answerer.wordpiece.tokens(answerer.wordpiece.encode("New")) == ["New"]
    mean = few.means(runs)
    assert mean["BERT"][3] == pytest.approx((runs[0].f1 + runs[4].f1) / 2)
    assert [*mean] == ["BERT", "SpanBERT"] and [*mean["SpanBERT"]] == [3, 9]


def test_the_curve_leaves_the_start_as_it_was(hub):
    """Each run begins with the released weights: the order of the sizes does not matter."""
    train, test = questions(12), questions(3)
    sizes = [
        few.learning_curve(plan(few.HUB.models, sizes=s, seeds=(0,)), train, test)[0]
        for s in ((3, 9), (9,))
    ]
    assert sizes[0][2:] == sizes[1]


# --- the hub or the stand-ins -------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """The hub's client, whose answer is set by a test: None is a model, else what it raises. Lists
    the calls."""
    calls: list[dict] = []

    class Api:
        answer: Exception | None = None

        def __init__(self, token):
            assert token is False  # no account

        def model_info(self, name, timeout):
            calls.append({"name": name, "timeout": timeout})
            if Api.answer is not None:
                raise Api.answer

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    monkeypatch.delenv(few.SWITCH, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return calls, Api


def test_a_cpu_alone_never_tries_the_network(asked, tmp_path):
    chosen, line = few.choose_plan(tmp_path)
    assert asked[0] == [] and chosen.models["BERT"] == data_path("checkpoints", "bert-mini")
    assert line.startswith("No GPU here. So small models of this book play")


@pytest.mark.parametrize("wish, variable", [(False, ""), (False, "1"), (None, "0")])
def test_the_hub_can_be_switched_off(asked, monkeypatch, wish, variable):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv(few.SWITCH, variable)
    assert few.why_not_the_hub(wish) == "The hub is switched off." and asked[0] == []


@pytest.mark.parametrize(
    "wish, variable, card", [(True, "0", False), (None, "1", False), (None, "", True)]
)
def test_where_it_is_wanted_and_answers_the_hub_is_used(
    asked, monkeypatch, tmp_path, wish, variable, card
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: card)
    monkeypatch.setenv(few.SWITCH, variable)
    chosen, line = few.choose_plan(tmp_path, wish)
    assert chosen is few.HUB and line.startswith("From the hub:")
    assert asked[0] == [{"name": "SpanBERT/spanbert-base-cased", "timeout": few.PATIENCE}]
    assert not list(tmp_path.iterdir()) and few.PATIENCE <= 10


def test_a_hub_that_does_not_answer_gives_the_stand_ins_and_the_reason(
    asked, monkeypatch, tmp_path
):
    asked[1].answer = errors.OfflineModeIsEnabled("no")
    _, line = few.choose_plan(tmp_path, use_hub=True)
    assert (
        line.startswith("No models from the hub (HF_HUB_OFFLINE is set): unset it")
        and "So small" in line
    )
    asked[1].answer = TimeoutError("timed out")
    assert few.why_not_the_hub(True).startswith("No models from the hub (TimeoutError): check")
    monkeypatch.setenv(few.SWITCH, "yes")
    with pytest.raises(InputError, match="SPANBERT_TUTORIAL_HUB is yes: set it to 1 for the hub"):
        few.why_not_the_hub(None)


def test_the_stand_in_of_spanbert_computes_what_the_shipped_model_does(tmp_path):
    chosen = few.stand_ins(tmp_path)
    mini = data_path("checkpoints", "spanbert-mini")
    ids = torch.tensor(read_vocabulary(mini).encode(CONTEXT))[None]
    disguised = chosen.models["SpanBERT"]
    assert read_vocabulary(disguised).encode(CONTEXT).tolist() == ids[0].tolist()
    states = [BertEncoder.read(folder)[0](ids) for folder in (mini, disguised)]
    assert torch.allclose(*states, atol=1e-5)
    assert ": not base" in few.size_in_words(chosen.misnamed)
    train, test = few.questions_of(chosen)
    assert len(test) == chosen.scored and len(train) > max(chosen.sizes)
    assert all(q.answers for q in train) and max(len(q.context) for q in test) < 400
    whole = {q.id: q.context for q in squad.read(chosen.test)}
    assert all(q.context in whole[q.id] for q in test)


# --- the model of PyPI --------------------------------------------------------------


@pytest.fixture
def minilm_check():
    specification = importlib.util.spec_from_file_location(
        "minilm_check", ROOT / "tools" / "minilm_check.py"
    )
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_check_of_a_model_from_pypi(minilm_check, tmp_path, capsys, monkeypatch):
    """`make minilm-check` runs it with the real model, which `make test` does not need."""
    folder = released_folder(tmp_path / "model")
    file = tmp_path / "questions.json"
    from spanbert_tutorial.tasks.squad_files import write

    write(file, questions(9), "1.1")
    chosen = minilm_check.plan_of(folder, [str(file), str(file)], tmp_path)
    assert chosen.sizes == (128, 512) and not chosen.one_sentence
    small = plan(chosen.models, train=chosen.train, test=chosen.test, seeds=(0,))
    monkeypatch.setattr(minilm_check, "plan_of", lambda *_: small)
    monkeypatch.setattr("sys.argv", ["minilm_check.py", str(folder)])
    assert minilm_check.main() == 0
    told = capsys.readouterr().out
    assert "largest difference from transformers: 0.00000" in told
    assert "     9 questions: F1 " in told and "minutes" in told
    monkeypatch.setattr(minilm_check, "transformers_gap", lambda *_: 0.1)
    assert minilm_check.main() == 2
    assert "gives other states here than in transformers" in capsys.readouterr().err
