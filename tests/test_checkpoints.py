"""Checkpoints: whole or not at all; the same losses after loading; open in transformers; damage
named."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from parity import sizes
from safetensors.torch import load_file
from torch import Tensor
from toys import same_weights
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
    DataCollatorForLanguageModeling,
)

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.checkpoints import (
    continue_from,
    load_checkpoint,
    model_state,
    save_checkpoint,
    vocabulary_file,
)
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
from spanbert_tutorial.relatives.roberta import RobertaConfig, RobertaEncoder
from spanbert_tutorial.spanbert.boundary_task import Boundary
from spanbert_tutorial.spanbert.span_masking import SpanMasking
from spanbert_tutorial.text.encoding import EncodedCorpus

PIECES = [
    *SPECIALS,
    *"abcdefghijklmnopqrst",
    *("##" + letter for letter in "abcdefghijklmnopqrst"),
    "A",
]
FILES = ["README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


@pytest.fixture(autouse=True)
def quiet():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


@pytest.fixture(scope="module")
def wordpiece() -> WordPiece:
    return WordPiece({token: i for i, token in enumerate(PIECES)})


def model_of(objective: str, seed: int = 0) -> PretrainingModel:
    """A small model with every weight random, biases and LayerNorm too: two names swapped would
    show."""
    small = sizes(16, 24, vocab_size=len(PIECES))
    config = EncoderConfig(max_position_embeddings=40, hidden_dropout_prob=0.0, **small)
    model = PretrainingModel(config, Objective.named(objective))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.3)
    return model.eval()


def batch_of(objective: str, wordpiece: WordPiece) -> dict[str, Tensor]:
    """One batch with every tensor the objective needs."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 9, 40)
    ids = rng.integers(5, len(PIECES), lengths.sum())
    corpus = EncodedCorpus(ids, np.cumsum(lengths), np.cumsum(lengths)[3::4])
    data = PretrainingData(
        corpus, wordpiece, Objective.named(objective), max_length=24, batch_size=8
    )
    return next(data.epoch(rng))


def saved(folder: Path, wordpiece: WordPiece, objective: str = "span+sbo") -> Path:
    card = {"README.md": "# Card\n"}
    save_checkpoint(folder / "model", model_of(objective), wordpiece, objective, card)
    return folder / "model"


# --- there and back -----------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_loading_gives_identical_losses(tmp_path, wordpiece, objective):
    model = model_of(objective)
    batch = batch_of(objective, wordpiece)
    loaded, vocabulary = load_checkpoint(str(saved(tmp_path / "new", wordpiece, objective)))
    with torch.no_grad():
        before = model(batch)
        after = loaded(batch)
    assert before.keys() == after.keys() and len(before) == 2 + objective.count("+")
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not loaded.training
    assert vocabulary.vocabulary == wordpiece.vocabulary
    assert not vocabulary.lowercase
    assert loaded.encoder.config == model.encoder.config
    words = loaded.encoder.embeddings.word_embeddings.weight  # still one tensor with the heads'
    assert loaded.masked_language_model.embedding_weight is words
    assert all(
        head.embedding_weight is words
        for name, head in loaded.named_children()
        if name == "boundary"
    )


def test_the_files_and_the_card(tmp_path, wordpiece):
    folder = saved(tmp_path, wordpiece)
    assert sorted(file.name for file in folder.iterdir()) == FILES
    assert (folder / "README.md").read_text(encoding="utf-8") == "# Card\n"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]  # no scratch is left
    assert folder.stat().st_mode & 0o777 == 0o777 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_half_the_size_and_still_computed_in_float32(tmp_path, wordpiece):
    model = model_of("span+sbo")
    for name, half in (("whole", False), ("half", True)):
        save_checkpoint(tmp_path / name, model, wordpiece, "span+sbo", {}, half=half)
    stored = load_file(tmp_path / "half" / "model.safetensors")
    assert {weight.dtype for weight in stored.values()} == {torch.float16}
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.6 * sizes[1]
    opened = BertModel.from_pretrained(tmp_path / "half", add_pooling_layer=False)
    assert opened.dtype == torch.float32
    ids = torch.arange(5, 20)[None]
    ours = load_checkpoint(tmp_path / "half")[0].encoder(ids)
    assert torch.allclose(opened(ids).last_hidden_state, ours, atol=1e-5)
    assert torch.allclose(ours, model.encoder(ids), atol=0.02)


def test_names_are_those_of_transformers(wordpiece):
    config = BertConfig(**sizes(16, 24, vocab_size=len(PIECES)))
    known = set(BertForPreTraining(config).state_dict())
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    assert set(model_state(model_of("mlm+nsp"))) == known - tied
    extra = set(model_state(model_of("span+sbo"))) - known
    assert extra and all(name.startswith("boundary.") for name in extra)


# --- in transformers ----------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_transformers_opens_the_folder(tmp_path, wordpiece, objective):
    folder = saved(tmp_path, wordpiece, objective)
    model = model_of(objective)
    batch = batch_of(objective, wordpiece)
    inputs = {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
    real = batch["attention_mask"]
    with torch.no_grad():
        hidden = model.encoder(**inputs)
        inputs["attention_mask"] = real.long()
        there = BertModel.from_pretrained(folder).eval()(**inputs).last_hidden_state
        assert (hidden - there)[real].abs().max() < 1e-5
        logits = BertForMaskedLM.from_pretrained(folder).eval()(**inputs).logits
        assert (model.masked_language_model(hidden) - logits)[real].abs().max() < 1e-5
        if objective == "mlm+nsp":
            there = BertForPreTraining.from_pretrained(folder).eval()(**inputs)
            labels = there.seq_relationship_logits
            assert (model.next_sentence(hidden) - labels).abs().max() < 1e-5
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "Abc [MASK] a bad A."
    assert tokenizer(text)["input_ids"] == [2, *wordpiece.encode(text).tolist(), 3]


@pytest.mark.parametrize("objective", ["mlm", "span+sbo"])
def test_our_batch_has_the_same_loss_in_transformers(tmp_path, wordpiece, objective):
    batch = batch_of(objective, wordpiece)
    there = BertForMaskedLM.from_pretrained(saved(tmp_path, wordpiece, objective)).eval()
    names = ("input_ids", "attention_mask", "token_type_ids", "labels")
    with torch.no_grad():
        ours = model_of(objective)(batch)["mlm"]
        theirs = there(**{name: batch[name] for name in names}).loss
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-5)


@pytest.mark.parametrize("whole_words", [False, True])
def test_a_batch_of_transformers_collator_trains_our_model(tmp_path, wordpiece, whole_words):
    folder = saved(tmp_path, wordpiece, "mlm")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = ["Abc a bad A. a bad bad a Abc a", "a bad A. Abc a bad", "bad a Abc A a bad bad a"]
    collator = DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=0.5, whole_word_mask=whole_words, seed=0
    )
    # padded before: the collator cannot pad the offsets that it needs for whole words
    padded = tokenizer(texts, padding=True, return_offsets_mapping=whole_words)
    rows = [dict(zip(padded, row, strict=True)) for row in zip(*padded.values(), strict=True)]
    batch = dict(collator(rows))
    assert (batch["labels"] != -100).any()
    model, there = model_of("mlm"), BertForMaskedLM.from_pretrained(folder).eval()
    loss = model(batch)["loss"]
    batch.pop("offset_mapping", None)
    assert loss.item() == pytest.approx(there(**batch).loss.item(), abs=1e-5)
    loss.backward()
    assert all(weight.grad.isfinite().all() for weight in model.encoder.layers.parameters())


def test_the_encoder_here_opens_the_folder_too(tmp_path, wordpiece):
    folder = saved(tmp_path, wordpiece)
    model = model_of("span+sbo")
    batch = batch_of("span+sbo", wordpiece)
    with pytest.warns(UserWarning, match="Only the encoder was loaded"):
        encoder = BertEncoder.from_huggingface(folder).eval()
    with torch.no_grad():
        assert torch.equal(encoder(batch["input_ids"]), model.encoder(batch["input_ids"]))


# --- damage -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "objective, new", [("span+sbo", []), ("span", []), ("mlm+nsp", ["next_sentence"])]
)
def test_continuing_takes_every_head_that_is_there_and_names_the_others(
    tmp_path, wordpiece, objective, new
):
    first = model_of("span+sbo")
    save_checkpoint(tmp_path / "a", first, wordpiece, "span+sbo", {"README.md": "card"})
    second, started_anew = continue_from(tmp_path / "a", objective, seed=4)
    assert started_anew == new
    before = model_state(first)
    after = model_state(second)
    assert all(torch.equal(weight, after[name]) for name, weight in before.items() if name in after)
    assert {name for name in after if name not in before} == {
        name for name in after if "relationship" in name or "pooler" in name
    }
    again, _ = continue_from(tmp_path / "a", objective, seed=4)
    assert all(torch.equal(weight, model_state(again)[name]) for name, weight in after.items())


@pytest.mark.parametrize(
    "kind, new",
    [
        # as the released SpanBERT: an encoder without heads
        (BertModel, ["masked_language_model", "boundary"]),
        (BertForMaskedLM, ["boundary"]),
        (BertForPreTraining, ["boundary"]),
    ],
)
def test_continuing_from_a_transformers_folder(tmp_path, wordpiece, kind, new):
    config = BertConfig(max_position_embeddings=32, **sizes(32, 64, vocab_size=len(wordpiece)))
    theirs = kind(config).eval()
    theirs.save_pretrained(tmp_path / "a")
    with pytest.raises(InputError, match="no tokenizer.json or vocab.txt: give the vocabulary"):
        vocabulary_file(tmp_path / "a")
    wordpiece.save_vocabulary(tmp_path / "a" / "vocab.txt")
    assert vocabulary_file(tmp_path / "a") == tmp_path / "a" / "vocab.txt"
    model, started_anew = continue_from(tmp_path / "a", "span+sbo")
    assert started_anew == new
    ids = torch.arange(5, 15)[None]
    encoder = theirs if kind is BertModel else theirs.bert
    assert torch.allclose(model.eval().encoder(ids), encoder(ids).last_hidden_state, atol=1e-5)
    if kind is BertForMaskedLM:
        assert torch.allclose(
            model.masked_language_model(model.encoder(ids)), theirs(ids).logits, atol=1e-5
        )


def test_a_head_without_names_in_checkpoints_is_kept(monkeypatch, tmp_path, wordpiece):
    wide = type("Wide", (Boundary,), {"name": "wide", "loss_name": "wide"})()
    monkeypatch.setitem(OBJECTIVES, "mine", Objective(SpanMasking(), "span", (Boundary(), wide)))
    save_checkpoint(tmp_path / "model", model_of("mine"), wordpiece, "mine", {})
    assert same_weights(load_checkpoint(tmp_path / "model")[0], model_of("mine"))


def test_an_encoder_whose_computation_no_folder_keeps_is_told_of(tmp_path, wordpiece):
    config = RobertaConfig.preset("tiny", vocab_size=len(wordpiece))
    model = PretrainingModel(config, Objective.named("mlm"), RobertaEncoder(config))
    with pytest.warns(UserWarning, match="computes other numbers than RobertaEncoder"):
        save_checkpoint(tmp_path / "model", model, wordpiece, "mlm", {})
