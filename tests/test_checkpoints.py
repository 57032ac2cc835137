"""Checkpoints: whole or not at all; the same losses after loading; open in transformers; damage
named."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor
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
from spanbert_tutorial.pretraining import checkpoints
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.checkpoints import (
    check_output,
    continue_from,
    load_checkpoint,
    model_state,
    save_checkpoint,
    vocabulary_file,
    write_folder,
)
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
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
    sizes = {
        "vocab_size": len(PIECES),
        "hidden_size": 16,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    }
    config = EncoderConfig(
        num_hidden_layers=2, max_position_embeddings=40, hidden_dropout_prob=0.0, **sizes
    )
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
    save_checkpoint(
        folder / "model", model_of(objective), wordpiece, objective, {"README.md": "# Card\n"}
    )
    return folder / "model"


def edit_weights(folder: Path, change) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def edit_config(folder: Path, **changes) -> None:
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8")) | changes
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")


# --- there and back -----------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_loading_gives_identical_losses(tmp_path, wordpiece, objective):
    model = model_of(objective)
    batch = batch_of(objective, wordpiece)
    save_checkpoint(
        tmp_path / "new" / "model", model, wordpiece, objective, {"README.md": "# Card\n"}
    )
    loaded, vocabulary = load_checkpoint(str(tmp_path / "new" / "model"))
    with torch.no_grad():
        before = model(batch)
        after = loaded(batch)
    assert before.keys() == after.keys() and len(before) == 2 + objective.count("+")
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert (
        not loaded.training
        and vocabulary.vocabulary == wordpiece.vocabulary
        and not vocabulary.lowercase
    )
    assert loaded.encoder.config == model.encoder.config
    words = loaded.encoder.embeddings.words.weight  # still one tensor with the heads'
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


def test_saving_leaves_the_model_as_it_was(tmp_path, wordpiece):
    model = model_of("span+sbo").train()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    save_checkpoint(tmp_path / "model", model, wordpiece, "span+sbo", {})
    assert model.training and all(
        torch.equal(before[name], weight) for name, weight in model.state_dict().items()
    )


def test_half_precision_on_disk_is_loaded_as_float32(tmp_path, wordpiece):
    folder = saved(tmp_path, wordpiece)
    edit_weights(
        folder, lambda weights: weights.update({name: w.half() for name, w in weights.items()})
    )
    model, _ = load_checkpoint(folder)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


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
    sizes = {"vocab_size": len(PIECES), "hidden_size": 16, "intermediate_size": 24}
    config = BertConfig(num_hidden_layers=2, num_attention_heads=2, **sizes)
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
    inputs = {
        "input_ids": batch["input_ids"],
        "token_type_ids": batch["token_type_ids"],
        "attention_mask": batch["attention_mask"],
    }
    inputs["attention_mask"] = inputs["attention_mask"].long()
    real = batch["attention_mask"]
    with torch.no_grad():
        hidden = model.encoder(
            batch["input_ids"],
            token_type_ids=batch["token_type_ids"],
            attention_mask=batch["attention_mask"],
        )
        there = BertModel.from_pretrained(folder).eval()(**inputs).last_hidden_state
        assert (hidden - there)[real].abs().max() < 1e-5
        logits = BertForMaskedLM.from_pretrained(folder).eval()(**inputs).logits
        assert (model.masked_language_model(hidden) - logits)[real].abs().max() < 1e-5
        if objective == "mlm+nsp":
            labels = (
                BertForPreTraining.from_pretrained(folder).eval()(**inputs).seq_relationship_logits
            )
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
    batch = dict(collator([tokenizer(text) for text in texts]))
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


# --- writing: whole or not at all ---------------------------------------------------


@pytest.mark.parametrize("kind", ["empty folder", "file", "checkpoint", "broken link"])
def test_what_exists_is_never_overwritten(tmp_path, wordpiece, kind):
    target = tmp_path / "model"
    if kind == "empty folder":
        target.mkdir()
    elif kind == "file":
        target.write_text("mine", encoding="utf-8")
    elif kind == "checkpoint":
        saved(tmp_path, wordpiece, "mlm")
    else:
        target.symlink_to(tmp_path / "nowhere")
    for attempt in (
        check_output,
        lambda path: save_checkpoint(path, model_of("span"), wordpiece, "span", {}),
    ):
        with pytest.raises(InputError, match=re.escape(f"{target} exists already: give another")):
            attempt(target)
    if kind == "checkpoint":
        assert not load_checkpoint(target)[0].tasks  # the old one, untouched
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_place_that_cannot_be_written(tmp_path, wordpiece):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for target in (tmp_path / "file" / "model", tmp_path / "file" / "deep" / "model"):
        with pytest.raises(InputError, match=re.escape(f"the output {target} cannot be written")):
            check_output(target)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_place_that_is_where_we_are_is_refused(tmp_path):
    for deep in ("new", "new/deep"):
        with pytest.raises(InputError, match=r'ends with "..": give the name of a new folder'):
            check_output(tmp_path / deep / "..")
    assert not list(tmp_path.iterdir())


def test_check_output_leaves_nothing(tmp_path):
    assert check_output(str(tmp_path / "runs" / "model")) == tmp_path / "runs" / "model"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "  ", "\t"])
def test_an_output_needs_a_name(name):
    with pytest.raises(InputError, match="the output has no name: give one by --output"):
        check_output(name)


@pytest.mark.parametrize(
    "weight",
    [
        torch.tensor([1.0, torch.nan]),
        torch.tensor([torch.inf]),
        torch.tensor([7e4]).to(torch.float16),
    ],
)
def test_weights_that_are_no_numbers_are_not_saved(tmp_path, wordpiece, weight):
    model = model_of("span")
    with pytest.raises(InputError, match="the weight a.b is too large for float.*nothing is saved"):
        write_folder(
            tmp_path / "m",
            model.encoder.config,
            "BertForMaskedLM",
            {},
            {"a.b": weight},
            wordpiece,
            {},
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
@pytest.mark.parametrize("at", ["save_file", "os.replace", "WordPiece.save"])
def test_nothing_half_written_when_saving_fails(tmp_path, wordpiece, monkeypatch, error, at):
    def fail(*args, **options):
        raise error

    holder, _, name = at.rpartition(".")
    monkeypatch.setattr({"": checkpoints, "os": os, "WordPiece": WordPiece}[holder], name, fail)
    expected = InputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as caught:
        saved(tmp_path, wordpiece)
    if expected is InputError:
        assert "cannot be written" in str(caught.value) and "No space left" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_objective_is_refused_before_writing(tmp_path, wordpiece):
    with pytest.raises(InputError, match='"spam" is unknown'):
        save_checkpoint(tmp_path / "model", model_of("span"), wordpiece, "spam", {})
    assert list(tmp_path.iterdir()) == []


# --- damage -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("boundary.bias"), "boundary.bias is missing"),
        (
            lambda w: w.pop("bert.embeddings.LayerNorm.bias"),
            "bert.embeddings.LayerNorm.bias is missing",
        ),
        (lambda w: w.pop("cls.predictions.bias"), "cls.predictions.bias is missing"),
        (lambda w: w.update({"qa_outputs.bias": torch.zeros(2)}), "qa_outputs.bias is surplus"),
        (
            lambda w: w.update({"bert.pooler.dense.bias": torch.zeros(16)}),
            "bert.pooler.dense.bias is surplus",
        ),
        (
            lambda w: w.update({"bert.encoder.layer.2.output.dense.bias": torch.zeros(16)}),
            "bert.encoder.layer.2.output.dense.bias is surplus",
        ),
        (
            lambda w: w.update({"cls.predictions.bias": torch.zeros(3)}),
            r"cls.predictions.bias has shape \(3,\) instead of \(46,\)",
        ),
        (
            lambda w: [w.pop(name) for name in [*w] if "word_embeddings" not in name],
            "is missing, .* is missing, and [0-9]+ more",
        ),
        (dict.clear, "has no weights of vocab_size 46"),
    ],
)
def test_weights_missing_surplus_or_of_another_shape_are_named(
    tmp_path, wordpiece, change, message
):
    folder = saved(tmp_path, wordpiece)
    edit_weights(folder, change)
    with pytest.raises(InputError, match=message) as caught:
        load_checkpoint(folder)
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)


def test_a_config_that_does_not_fit_the_weights(tmp_path, wordpiece):
    folder = saved(tmp_path, wordpiece)
    edit_config(folder, intermediate_size=32)
    with pytest.raises(
        InputError, match=r"intermediate.dense.weight has shape \(24, 16\) instead of \(32, 16\)"
    ):
        load_checkpoint(folder)
    edit_config(folder, intermediate_size=24, spanbert_tutorial={"objective": "mlm"})
    with pytest.raises(InputError, match=r"boundary\.\S+ is surplus"):
        load_checkpoint(folder)
    edit_config(folder, spanbert_tutorial={"objective": "mlm+nsp"})
    with pytest.raises(InputError, match=r"bert.pooler.dense.weight is missing"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_sise": 16}, "'hidden_sise' is not a field"),
        ({"spanbert_tutorial": {"objective": "spam"}}, '"spam" is unknown'),
        ({"spanbert_tutorial": None}, "has no heads of this project"),
        ({"spanbert_tutorial": {}}, "has no heads of this project"),
        ({"hidden_act": "relu"}, "hidden_act"),
        ({"num_attention_heads": 3}, "cannot be shared evenly"),
    ],
)
def test_a_tampered_config(tmp_path, wordpiece, changes, message):
    folder = saved(tmp_path, wordpiece)
    edit_config(folder, **changes)
    with pytest.raises(InputError, match=message):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_files_that_are_missing_or_cut_off(tmp_path, wordpiece, name):
    folder = saved(tmp_path, wordpiece)
    file = folder / name
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=re.escape(name)):
        load_checkpoint(folder)
    file.unlink()
    with pytest.raises(InputError, match=re.escape(name)):
        load_checkpoint(folder)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "none"))):
        load_checkpoint(tmp_path / "none")


def test_a_vocabulary_larger_than_the_model(tmp_path, wordpiece):
    folder = saved(tmp_path, wordpiece)
    larger = WordPiece({token: i for i, token in enumerate([*PIECES, "B"])})
    larger.save(folder)
    with pytest.raises(InputError, match="47 tokens in its tokenizer.json but a vocab_size of 46"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    "objective, new",
    [
        ("span+sbo", []),
        ("span", []),
        ("mlm+nsp", ["next_sentence"]),
    ],
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
        (
            BertModel,
            ["masked_language_model", "boundary"],
        ),  # as the released SpanBERT: an encoder without heads
        (BertForMaskedLM, ["boundary"]),
        (BertForPreTraining, ["boundary"]),
    ],
)
def test_continuing_from_a_transformers_folder(tmp_path, wordpiece, kind, new):
    config = BertConfig(
        vocab_size=len(wordpiece),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
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
