"""`export web` and `export onnx`: right files, and one sentence for what cannot be exported. What a
page computes with its file is tested in `test_model_js.py`."""

import base64
import json

import numpy as np
import onnxruntime
import pytest
import torch
from test_main import run

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.commands import exports
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.spanbert.boundary import boundary_targets
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer, QuestionAnsweringModel

TINY = data_path("checkpoints", "spanbert-tiny")


def content(script: str) -> tuple[str, dict]:
    """The name that a script registers, and what it registers there."""
    start, name, what = script.split('"', 2)
    assert start == "(self.SPANBERT_WEIGHTS = self.SPANBERT_WEIGHTS || {})["
    assert what.startswith("] = {") and what.endswith("};\n")
    return name, json.loads(what[4:-2])


def array(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    """A small model that answers: the tiny encoder under a head of random numbers."""
    model, wordpiece, _ = exports.open_model(TINY)
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "answering"
    QuestionAnswerer(QuestionAnsweringModel(model.encoder), wordpiece, max_length=200).save(
        folder, {}
    )
    return folder


def test_a_script_holds_the_model_in_8_bits(capsys, tmp_path):
    output = tmp_path / "new" / "tiny.js"
    code, out, err = run(capsys, "export", "web", TINY, "--output", output)
    assert (code, err) == (0, "")
    assert (
        out == f'A page finds the model as SPANBERT_WEIGHTS["spanbert-tiny"].\nThe model is in '
        f"{output}.\n"
    )
    name, made = content(output.read_text(encoding="ascii"))
    model, wordpiece, _ = exports.open_model(TINY)
    assert (name, made["kind"]) == ("spanbert-tiny", "pretraining") and "threshold" not in made
    assert made["vocabulary"] == wordpiece.vocabulary
    assert made["config"]["num_hidden_layers"] == 2 and made["config"]["length"] == 512
    state = {
        name: weight
        for name, weight in model.state_dict().items()
        if not name.endswith("embedding_weight")
    }
    assert made["tensors"].keys() == state.keys()
    for name, weight in state.items():
        tensor = made["tensors"][name]
        assert tensor["shape"] == list(weight.shape) and ("scale" in tensor) == (weight.dim() == 2)
        if weight.dim() == 2:
            whole = array(tensor["data"], "i1").reshape(weight.shape)
            rounded = whole * array(tensor["scale"], "<f4")[:, None]
            assert np.abs(rounded - weight.numpy()).max() < 0.006 * weight.abs().max()


def test_a_script_may_hold_the_exact_weights(capsys, answering, tmp_path):
    output = tmp_path / "model.js"
    code, *_ = run(
        capsys, "export", "web", answering, "--float", "--threshold=-1.5", "--output", output
    )
    name, made = content(output.read_text(encoding="ascii"))
    assert (code, name, made["kind"]) == (0, "answering", "question_answering")
    assert made["threshold"] == -1.5
    assert made["config"]["length"] == 200
    state = exports.open_model(answering)[0].state_dict()
    assert made["tensors"].keys() == state.keys()
    for name, tensor in made["tensors"].items():
        assert np.array_equal(
            array(tensor["data"], "<f4").reshape(tensor["shape"]), state[name].numpy()
        )


def inputs(wordpiece: WordPiece, rows: int, n: int) -> dict[str, np.ndarray]:
    """Random ids, the second half of them a second segment, the last row with padding."""
    rng = np.random.default_rng(n)
    ids = rng.integers(5, len(wordpiece), (rows, n))
    mask = np.ones((rows, n), dtype=np.int64)
    mask[-1, n - n // 4 :] = 0
    return {
        "input_ids": ids,
        "token_type_ids": np.repeat([[0, 1]], [n - n // 2, n // 2], axis=1).repeat(rows, axis=0),
        "attention_mask": mask,
    }


def test_onnx_runtime_computes_what_pytorch_computes(capsys, tmp_path):
    """Encoder and both heads, for any number of rows, tokens and spans, also none."""
    output = tmp_path / "tiny.onnx"
    code, out, err = run(capsys, "export", "onnx", TINY, "--output", output)
    assert (code, err) == (0, "")
    assert "boundary_left [t]" in out and "outputs (float32): hidden [B,n,H], logits [B,n,V]" in out
    assert [*tmp_path.iterdir()] == [output]
    session, (model, wordpiece, _) = onnxruntime.InferenceSession(output), exports.open_model(TINY)
    targets = []
    for rows, n in ((1, 3), (1, 40), (3, 65), (2, 512)):
        given = inputs(wordpiece, rows, n)
        rng = np.random.default_rng(0)
        selected = rng.random((rows, n - 2)) < 0.2
        spans = boundary_targets(selected, given["input_ids"][:, 1:-1], np.full(rows, n - 2))
        given |= {
            f"boundary_{name}": tensor.numpy()
            for name, tensor in spans._asdict().items()
            if name != "labels"
        }
        hidden, logits, boundary = session.run(None, given)
        real = given["attention_mask"] == 1
        with torch.no_grad():
            states = model.encoder(
                **{
                    name: torch.from_numpy(given[name])
                    for name in ("input_ids", "token_type_ids", "attention_mask")
                }
            )
            wanted = model.masked_language_model(states), model.boundary(states, spans)
        assert np.abs(hidden - states.numpy())[real].max() <= 1e-4
        assert np.abs(logits - wanted[0].numpy())[real].max() <= 1e-4
        assert boundary.shape == tuple(wanted[1].shape)
        assert np.abs(boundary - wanted[1].numpy()).max(initial=0) <= 1e-4
        targets.append(len(boundary))
    assert targets[0] == 0 and targets[-1] > 50


def test_onnx_runtime_answers_as_pytorch_does(capsys, answering, tmp_path):
    output = tmp_path / "answering.onnx"
    code, out, _ = run(capsys, "export", "onnx", answering, "--output", output)
    assert code == 0 and "outputs (float32): start_scores [B,n], end_scores [B,n]" in out
    session = onnxruntime.InferenceSession(output)
    model, wordpiece, _ = exports.open_model(answering)
    for rows, n in ((1, 4), (3, 50)):
        given = inputs(wordpiece, rows, n)
        batch = {name: torch.from_numpy(array) for name, array in given.items()}
        batch["attention_mask"] = batch["attention_mask"].bool()
        with torch.no_grad():
            wanted = [scores.numpy() for scores in model.scores(batch)]
        for ours, theirs in zip(wanted, session.run(None, given), strict=True):
            assert np.array_equal(np.isinf(ours), np.isinf(theirs)) and np.isinf(ours).any()
            assert np.allclose(ours, theirs, rtol=0, atol=1e-4)
