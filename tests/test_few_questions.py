"""Few questions: the same ones for both models, the layout of the hub, and the choice between the
hub and the stand-ins."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertModel, BertTokenizer

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import continue_from, read_vocabulary
from spanbert_tutorial.tasks import few_questions as few
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer, QuestionAnsweringSettings
from spanbert_tutorial.tasks.squad import GoldAnswer, Question

CONTEXT = "Ada Hale founded New Upton in 1874. The mill burned down."
TOKENS = [
    *SPECIALS,
    *sorted(set("Ada Hale founded New Upton in 1874 The mill burned down".split())),
]
TOKENS += "Who What did when . ? n ##e ##w u ##p ##t ##o ##n".split()


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
    theirs = BertModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False).eval()
    assert torch.allclose(encoder(ids), theirs(ids).last_hidden_state, atol=1e-5)


def test_trap_4_missing_heads_are_named(tmp_path):
    folder = released_folder(tmp_path / "released")
    assert not BertEncoder.read(folder)[1]
    assert continue_from(folder, "span+sbo")[1] == ["masked_language_model", "boundary"]
    with pytest.raises(InputError, match="has no question answering head"):
        QuestionAnswerer.from_pretrained(folder)


# --- samples ------------------------------------------------------------------------


def plan(models, **changes) -> few.Plan:
    """The hub's plan, small."""
    settings = QuestionAnsweringSettings(
        epochs=1, batch_size=2, peak_learning_rate=1e-3, max_length=32, doc_stride=16
    )
    small = {"sizes": (3, 9), "seeds": (0, 1), "scored": 5, "min_steps": 3, "settings": settings}
    return replace(few.HUB, models=models, **(small | changes))


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
    runs = few.learning_curve(chosen, train, test)
    assert [(run.model, run.questions, run.seed) for run in runs] == [
        (model, size, seed) for seed in (0, 1) for size in (3, 9) for model in ("BERT", "SpanBERT")
    ]
    for bert, spanbert in zip(runs[::2], runs[1::2], strict=True):
        assert bert.ids == spanbert.ids and len(bert.ids) == bert.questions
    assert runs[0].ids != runs[4].ids
    assert all(np.isfinite(run.f1) and 0 <= run.exact <= run.f1 <= 100 for run in runs)
