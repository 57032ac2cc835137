"""Hostile checkpoints: config, vocabulary, weights are read right, or refused in one sentence. The
oracle: `fuzz`."""

import json
import shutil

import pytest
import torch
from fuzz import REFUSED, Door, new_folder
from fuzz_files import damaged, in_bytes, spoiled, texts, values
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from test_hostile_checkpoints import KINDS, PIECES, READERS, STATES, whole  # noqa: F401 (a fixture)

from spanbert_tutorial.pretraining.checkpoints import read_vocabulary

door = Door("checkpoint")
counts = door.counts()
pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # torch's, about sparse, quantized and nested tensors

CONTEXT = "The river rose. The town rose."
readers = st.sampled_from(list(READERS))
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")


def check_model(reader: str, found: object) -> None:
    """Finite weights in float32 that compute something."""
    model = found.model if reader == "answer" else found[0]
    encoder = model if reader == "encoder" else model.encoder
    assert all(
        weight.dtype == torch.float32 and weight.isfinite().all()
        for weight in model.state_dict().values()
    )
    ids = torch.arange(min(5, encoder.config.vocab_size, encoder.config.longest))[None]
    assert encoder(ids).shape == (*ids.shape, encoder.config.hidden_size)
    if reader == "answer":
        answer = door.call(found.answer, "where rose the river ?", CONTEXT)
        assert answer is REFUSED or answer.text == CONTEXT[answer.start : answer.end]


def tried(reader: str, folder) -> None:
    """One reader on one folder."""
    found = door.call(READERS[reader][0], folder)
    if found is not REFUSED:
        check_model(reader, found)


def spoil_json(folder, name: str, data: st.DataObject) -> None:
    file = folder / name
    text = data.draw(spoiled(json.loads(file.read_text(encoding="utf-8"))))
    file.write_bytes(data.draw(damaged(in_bytes(text))))


@door.inputs(short=60, share=0.35)
@given(reader=readers, name=st.sampled_from(FILES), data=st.data())
def test_a_folder_with_a_spoiled_file_of_json(whole, reader, name, data):  # noqa: F811
    with new_folder() as place:
        folder = shutil.copytree(whole / READERS[reader][1], place / "model")
        spoil_json(folder, name, data)
        tried(reader, folder)


@door.inputs(short=40, share=0.2)
@given(
    reader=readers,
    changes=st.dictionaries(
        st.sampled_from(
            [
                "vocab_size",
                "hidden_size",
                "num_hidden_layers",
                "num_attention_heads",
                "intermediate_size",
                "max_position_embeddings",
                "type_vocab_size",
                "hidden_dropout_prob",
                "layer_norm_eps",
                "initializer_range",
                "pad_token_id",
                "model_type",
                "hidden_act",
                "is_decoder",
                "pruned_heads",
                "spanbert_tutorial",
                "dtype",
            ]
        ),
        values,
        min_size=1,
        max_size=2,
    ),
)
def test_a_config_with_wild_values(whole, reader, changes):  # noqa: F811
    with new_folder() as place:
        folder = shutil.copytree(whole / READERS[reader][1], place / "model")
        config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | changes
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        tried(reader, folder)


OTHERS = "float64", "float16", "gone", "renamed", "turned", "cut", "longer", "empty"


changes = st.tuples(
    st.integers(0, 40), st.sampled_from([*KINDS, *OTHERS]), texts
)  # of the weight with this number


def changed(state: dict, number: int, how: str, name: str) -> dict:
    """The weights with one of them gone, under another name, of another kind or another shape."""
    old = sorted(state)[number % len(state)]
    weight = state[old]
    rest = {key: value for key, value in state.items() if key != old}
    if how in ("gone", "renamed"):
        return rest | ({} if how == "gone" else {name: weight})
    others = {
        "float64": weight.double,
        "float16": weight.half,
        "turned": lambda: weight.T,
        "cut": lambda: weight[:-1],
        "longer": lambda: torch.cat([weight, weight]),
        "empty": lambda: weight[:0],
    }
    if how in ("sparse rows", "turned") and weight.dim() != 2:
        return rest
    return rest | {old: others[how]() if how in others else KINDS[how](weight)}


@door.inputs(short=60, share=0.3)
@given(reader=readers, first=changes, other=st.none() | st.sampled_from(list(STATES)) | changes)
def test_weights_of_other_kinds_and_names(whole, reader, first, other):  # noqa: F811
    with new_folder() as place:
        folder = shutil.copytree(whole / READERS[reader][1], place / "model")
        file = folder / "model.safetensors"
        whole_state = load_file(file)
        state = (
            STATES[other](whole_state) if isinstance(other, str) else changed(whole_state, *first)
        )
        if isinstance(other, tuple):
            kept = {
                name: weight for name, weight in state.items() if weight is whole_state.get(name)
            }
            state = {name: weight for name, weight in state.items() if name not in kept} | changed(
                kept, *other
            )
        file.unlink()
        torch.save(state, folder / "pytorch_model.bin")
        tried(reader, folder)


@door.inputs(short=20, share=0.1)
@given(reader=readers, data=st.data(), packed=st.booleans())
def test_weights_of_damaged_bytes(whole, reader, data, packed):  # noqa: F811
    with new_folder() as place:
        folder = shutil.copytree(whole / READERS[reader][1], place / "model")
        file = folder / "model.safetensors"
        if packed:
            torch.save(load_file(file), folder / "pytorch_model.bin")
            file.unlink()
            file = folder / "pytorch_model.bin"
        else:
            save_file(load_file(file), file)
        content = file.read_bytes()
        head = data.draw(
            st.integers(1, min(len(content), 4_000))
        )  # where the names and sizes stand
        file.write_bytes(data.draw(damaged(content[:head])) + content[head:])
        tried(reader, folder)


@door.inputs(short=40, share=0.15)
@given(
    lines=st.lists(texts | st.sampled_from(list(PIECES)), max_size=4),
    cut=st.integers(0, len(PIECES)),
    end=st.sampled_from(["\n", "\r\n", "\r", ""]),
    settings=st.none() | values,
    data=st.data(),
)
def test_a_vocabulary_of_lines(lines, cut, end, settings, data):
    with new_folder() as folder:
        text = end.join([*list(PIECES)[cut:], *lines, *list(PIECES)[:cut]])
        (folder / "vocab.txt").write_bytes(data.draw(damaged(in_bytes(text))))
        if settings is not None:
            (folder / "tokenizer_config.json").write_text(
                json.dumps({"do_lower_case": settings}), encoding="utf-8"
            )
        found = door.call(read_vocabulary, folder)
        if found is not REFUSED:
            assert (
                len(set(found.vocabulary)) == len(found)
                and found.vocabulary[found.mask_id] == "[MASK]"
            )
            ids = found.encode("the river rose")
            assert ((ids >= 0) & (ids < len(found))).all() and len(found.starts) == len(found)


@door.inputs(short=6, share=0.1)
@given(name=st.sampled_from(FILES), data=st.data())
def test_the_commands_answer_or_refuse(whole, name, data):  # noqa: F811
    with new_folder() as folder:
        shutil.copytree(whole / "answerer", folder / "model")
        spoil_json(folder / "model", name, data)
        (folder / "text.txt").write_text(CONTEXT, encoding="utf-8")
        asked = ["--question", "where ?", "--context-file", "text.txt"]
        outcome = door.command(["answer", "--model", "model", *asked], folder)
        assert outcome.code or "null score" in outcome.out
