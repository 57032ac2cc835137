"""Checkpoints that nobody meant to write: every door refuses them alike, in one sentence, or reads
them right."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from spanbert_tutorial.__main__ import main
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.weights import from_huggingface_names
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import LONGEST, InputError
from spanbert_tutorial.pretraining.checkpoints import (
    continue_from,
    load_checkpoint,
    read_vocabulary,
    save_checkpoint,
)
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.tasks import question_answering as qa

WORDS = ["the", "river", "rose", "where", "town", "a", ".", "?", "##s"]
PIECES = {token: number for number, token in enumerate([*SPECIALS, *WORDS])}
SIZES = {
    "vocab_size": len(PIECES),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
}
DEEP = "[" * 200_000 + "]" * 200_000
QUERY = "bert.encoder.layer.1.attention.self.query.weight"
# The ways into a folder, in Python, and which of the two folders each opens.
READERS = {
    "load": (load_checkpoint, "pretrained"),
    "go on": (lambda folder: continue_from(folder, "span+sbo"), "pretrained"),
    "encoder": (BertEncoder.read, "answerer"),
    "answer": (qa.QuestionAnswerer.from_pretrained, "answerer"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A folder with a pre-trained and a fine-tuned checkpoint."""
    folder = tmp_path_factory.mktemp("whole")
    wordpiece = WordPiece(PIECES)
    torch.manual_seed(0)
    model = PretrainingModel(EncoderConfig(**SIZES), Objective.named("span+sbo"))
    save_checkpoint(folder / "pretrained", model, wordpiece, "span+sbo", {})
    answerer = qa.QuestionAnswerer(
        qa.QuestionAnsweringModel(model.encoder), wordpiece, max_length=32, doc_stride=8
    )
    answerer.save(folder / "answerer", {})
    return folder


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    """Copies of both, to be spoiled."""
    return shutil.copytree(whole, tmp_path / "models")


def refused(reader: str, models: Path) -> str:
    """The sentence with which the reader refuses its folder."""
    read, name = READERS[reader]
    with pytest.raises(InputError) as caught:
        read(models / name)
    assert len(str(caught.value)) <= LONGEST and str(caught.value).endswith(".")
    return str(caught.value)


def change_config(models: Path, **changes: object) -> None:
    for file in models.glob("*/config.json"):
        file.write_text(
            json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8"
        )


def change_weights(models: Path, change) -> None:
    """Weights as a .bin file, which can hold what the newer one cannot."""
    for file in models.glob("*/model.safetensors"):
        state = change(load_file(file))
        file.unlink()
        torch.save(state, file.with_name("pytorch_model.bin"))


# --- config.json --------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", [*SIZES, "type_vocab_size", "pad_token_id"])
@pytest.mark.parametrize("size", [2**31, 2**63, 10**400, 512 * 10**6])
def test_a_size_that_no_weight_has_is_refused_before_anything_is_built(copy, reader, name, size):
    change_config(copy, **{name: size})
    assert refused(reader, copy)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "value", [None, True, "16", 16.0, [16], {}, -1, float("nan"), [[]] * 10_000]
)
def test_a_size_of_another_type_is_named(copy, reader, value):
    change_config(copy, hidden_size=value)
    assert "hidden_size" in refused(reader, copy)


@pytest.mark.parametrize(
    "value", [None, True, False, "0.1", [0.1], {}, -1, 1, float("nan"), 10**400]
)
def test_a_share_of_another_type_is_named(copy, value):
    change_config(copy, hidden_dropout_prob=value)
    assert "hidden_dropout_prob" in refused("encoder", copy)


@pytest.mark.parametrize("objective", [[], {}, 5, None, True, "x" * 10_000, "\ud800"])
def test_an_objective_of_another_type_is_unknown(copy, objective):
    change_config(copy, spanbert_tutorial={"objective": objective})
    assert "is unknown: use one of" in refused("load", copy)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "content", [DEEP, '{"a":' * 200_000 + "1" + "}" * 200_000, "", "nul", "[]", "7" * 9_999]
)
def test_a_config_that_is_no_object_is_named(copy, reader, content):
    for file in copy.glob("*/config.json"):
        file.write_text(content, encoding="utf-8")
    assert "config.json" in refused(reader, copy)


def test_a_value_nested_just_so_deep_that_it_can_be_read(copy):
    for depth in (900, 950, 980, 990):
        for file in copy.glob("*/config.json"):
            file.write_text('{"model_type": ' + "[" * depth + "]" * depth + "}", encoding="utf-8")
        assert refused("encoder", copy)


def test_more_layers_than_anybody_has_trained():
    with pytest.raises(InputError, match="num_hidden_layers is 1001: give at most 1,000"):
        EncoderConfig(num_hidden_layers=1_001)
    assert EncoderConfig(num_hidden_layers=1_000).num_hidden_layers == 1_000


def test_an_id_of_padding_outside_the_vocabulary():
    with pytest.raises(InputError, match="pad_token_id 14 is no id of 14 tokens"):
        EncoderConfig(**SIZES, pad_token_id=14)


# --- weights ------------------------------------------------------------------------


def replaced(make):
    """The state with one weight made anew."""
    return lambda state: state | {QUERY: make(state[QUERY])}


KINDS = {
    "complex": lambda weight: weight.to(torch.complex64),
    "float8": lambda weight: weight.to(torch.float8_e4m3fn),
    "whole": lambda weight: weight.to(torch.int64),
    "bool": lambda weight: weight > 0,
    "sparse": lambda weight: weight.to_sparse(),
    "sparse rows": lambda weight: weight.float().to_sparse_csr(),
    "quantized": lambda weight: torch.quantize_per_tensor(weight.float(), 0.1, 0, torch.qint8),
    "nested": lambda weight: torch.nested.nested_tensor([weight]),
    "repeated": lambda weight: torch.zeros(1).expand(weight.shape),
    "enormous": lambda weight: torch.zeros(1).expand(2**40, 2**20),
    "nowhere": lambda weight: weight.to("meta"),
    "not a number": lambda weight: weight * float("nan"),
    "infinite": lambda weight: weight / 0,
    "infinite in float32": lambda weight: weight.double() + 1e300,
    "no tensor": lambda weight: weight.tolist(),
    "none": lambda weight: None,
}


@pytest.mark.filterwarnings("ignore")  # torch's, about sparse, quantized and nested tensors
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_that_is_not_computed_with_is_named(copy, reader, kind):
    change_weights(copy, replaced(KINDS[kind]))
    said = refused(reader, copy)
    assert "pytorch_model.bin" in said and (QUERY in said or kind in ("no tensor", "none"))


STATES = {
    "numbers as names": lambda state: dict(enumerate(state.values())),
    "one number as a name": lambda state: state | {7: torch.ones(1)},
    "pairs as names": lambda state: {(name, 0): weight for name, weight in state.items()},
    "below another name": lambda state: {"state_dict": state},
    "beside other things": lambda state: state | {"epoch": 3},
    "a list": lambda state: list(state.values()),
    "one tensor": lambda state: state[QUERY],
    "nothing": lambda state: {},
    "two names": lambda state: state | {QUERY.removeprefix("bert."): state[QUERY]},
    "long names": lambda state: state | {"x" * 10**6: torch.ones(1)},
    "layers far away": lambda state: state | {QUERY.replace(".1.", f".{10**30}."): state[QUERY]},
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("state", STATES)
def test_a_file_of_other_things_is_refused(copy, reader, state):
    change_weights(copy, STATES[state])
    assert refused(reader, copy)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.bfloat16])
def test_other_float_types_are_computed_in_float32(whole, copy, reader, kind):
    change_weights(copy, lambda state: {name: weight.to(kind) for name, weight in state.items()})
    read, name = READERS[reader]
    one = read(copy / name)
    other = read(whole / name)
    models = [found.model if reader == "answer" else found[0] for found in (one, other)]
    for here, there in zip(*(model.state_dict().values() for model in models), strict=True):
        assert here.dtype == torch.float32 and torch.allclose(here, there, atol=0.01)
        assert kind != torch.float64 or torch.equal(here, there)


def test_ids_beside_the_weights_may_be_whole_numbers(copy):
    change_weights(
        copy, lambda state: state | {"bert.embeddings.position_ids": torch.arange(64)[None]}
    )
    assert READERS["encoder"][0](copy / "answerer")[2] == ["embeddings.position_ids", "qa_outputs"]


def test_one_weight_under_two_names_is_refused():
    name = "encoder.layer.0.output.dense.bias"
    with pytest.raises(InputError, match=f"'bert.{name}' is there under two names"):
        from_huggingface_names({name: torch.ones(1), f"bert.{name}": torch.ones(1)})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["complex", "float8", "sparse", "not a number", "no tensor"])
def test_every_command_refuses_alike(copy, capsys, kind):
    """Two folders before, two folders after, exit code 2 and one sentence."""
    change_weights(copy, replaced(KINDS[kind]))
    text = copy.parent / "text.txt"
    new = copy.parent / "new"
    text.write_text("\n\n".join(["The river rose."] * 60), encoding="utf-8")
    reader = data_path("reader", "reader.json")
    before = sorted(copy.parent.rglob("*"))
    for arguments in (
        [
            "pretrain",
            "--corpus",
            text,
            "--init-from",
            copy / "pretrained",
            "--config",
            "tiny",
            "--max-length",
            "24",
            "--output",
            new,
        ],
        [
            "finetune",
            "squad",
            "--data",
            reader,
            "--init-from",
            copy / "pretrained",
            "--max-length",
            "24",
            "--output",
            new,
        ],
        ["evaluate", "squad", "--model", copy / "answerer", "--data", reader, "--output", new],
        ["answer", "--model", copy / "answerer", "--question", "Where?", "--context-file", text],
    ):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr().err
        assert code == 2 and said.startswith("error: ") and said.count("\n") == 1, (arguments, said)
        assert "pytorch_model.bin" in said, (arguments, said)
        assert sorted(copy.parent.rglob("*")) == before


# --- tokenizer.json, tokenizer_config.json, vocab.txt -------------------------------


def tokenizer(**changes: object) -> str:
    """A tokenizer.json, and what is to be changed in it; `vocab` stands in its model."""
    model = {"type": "WordPiece", "vocab": changes.pop("vocab", PIECES)}
    return json.dumps({"model": model, "normalizer": None} | changes)


def said_of(folder: Path, content: str) -> str:
    """The sentence with which a tokenizer.json is refused."""
    (folder / "tokenizer.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_vocabulary(folder)
    assert len(str(caught.value)) <= LONGEST and str(folder / "tokenizer.json") in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("normalizer", [[1], [], "x", "", 5, 0, True, False])
def test_a_normalizer_that_is_no_object(tmp_path, normalizer):
    assert "is not a tokenizer.json" in said_of(tmp_path, tokenizer(normalizer=normalizer))


@pytest.mark.parametrize("name", ["strip_accents", "lowercase"])
@pytest.mark.parametrize("value", ["yes", "", 5, 0, [1], [], {}, 1.5])
def test_a_setting_that_is_neither_true_nor_false(tmp_path, name, value):
    assert f"{name} is {value!r}: write true or false." in said_of(
        tmp_path, tokenizer(normalizer={name: value})
    )


@pytest.mark.parametrize(
    "value", ["5", "", None, [5], {}, -0.0, 0.0, False, True, 1.0, 2**70, -1, 13.5, 2]
)
@pytest.mark.parametrize("token", ["[PAD]", "[UNK]", "##s"])
def test_an_id_that_is_no_number_of_its_own(tmp_path, token, value):
    assert "the ids of the vocabulary are not 0, 1, 2" in said_of(
        tmp_path, tokenizer(vocab=PIECES | {token: value})
    )


def test_a_token_with_half_a_character(tmp_path):
    said = said_of(tmp_path, tokenizer(vocab=PIECES | {"\ud83d": len(PIECES)}))
    assert "a token of the vocabulary holds half a character (U+D83D)" in said


@pytest.mark.parametrize("content", [DEEP, '{"model":' + DEEP + "}", "7" * 9_999])
def test_a_tokenizer_nested_deeply(tmp_path, content):
    assert "is not a tokenizer.json" in said_of(tmp_path, content)


@pytest.mark.parametrize(
    "name, setting", [("do_lower_case", "lowercase"), ("strip_accents", "strip_accents")]
)
@pytest.mark.parametrize("value", ["false", 0, [], {}])
def test_a_config_of_the_tokenizer_with_other_types(tmp_path, name, setting, value):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({name: value}), encoding="utf-8")
    with pytest.raises(InputError, match=f"{setting} is .*: write true or false"):
        read_vocabulary(tmp_path)


def test_tokens_and_texts_that_are_none(tmp_path):
    for odd in ("", "##", "a\0b", " ", "\n"):  # odd, but they do no harm
        assert WordPiece(PIECES | {odd: len(PIECES)}).encode("the river").tolist() == [5, 6]
    with pytest.raises(InputError, match="a token of the vocabulary is 5: give text"):
        WordPiece(PIECES | {5: len(PIECES)})
    for encode in (WordPiece(PIECES).encode, WordPiece(PIECES).encode_with_offsets):
        with pytest.raises(InputError, match="the text holds half a character"):
            encode("the \ud800")
        with pytest.raises(InputError, match="the text is 5: give text"):
            encode(5)
    with pytest.raises(InputError, match="a text holds half a character"):
        WordPiece(PIECES).encode_many(["the", "\ud800"])
