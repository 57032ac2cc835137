"""Fine-tuning in two processes gives what one gives; a stopped one goes on bit for bit, in one
process and in two."""

import os

import numpy as np
import pytest
import torch
from launched import command, done_by_two, metrics, stopped
from safetensors.torch import load_file

from spanbert_tutorial.__main__ import main
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks.classification import ClassificationData, ClassificationModel
from spanbert_tutorial.tasks.fine_tuning import Weighted
from spanbert_tutorial.tasks.question_answering import (
    QuestionAnsweringData,
    QuestionAnsweringModel,
    QuestionAnsweringSettings,
)
from spanbert_tutorial.tasks.squad import read
from spanbert_tutorial.tasks.tagging import TaggingData, TaggingModel

READER = data_path("reader", "reader.json")
TINY = data_path("checkpoints", "spanbert-tiny")
GIVEN = ["finetune", "squad", "--data", str(READER), "--init-from", str(TINY)]
GIVEN += ["--max-length", "128", "--doc-stride", "64", "--batch-size", "8", "--epochs", "0.5"]


# --- the shares of a batch ----------------------------------------------------------


def example(task: str) -> tuple:
    """A model of a task, and its data: nine inputs."""
    settings = QuestionAnsweringSettings(max_length=64, dropout=0.0)
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    encoder = BertEncoder(
        EncoderConfig.tiny(vocab_size=2_000, num_hidden_layers=1), torch.Generator().manual_seed(0)
    )
    if task == "question answering":
        return QuestionAnsweringModel(encoder), QuestionAnsweringData(
            read(READER)[:4], wordpiece, settings
        )
    texts = ["The boat left.", "A green door.", "The old miller of the town sold the mill."] * 3
    if task == "classification":
        examples = [((text, None), str(number % 2)) for number, text in enumerate(texts)]
        return ClassificationModel(encoder, 2), ClassificationData(examples, wordpiece, settings)
    return TaggingModel(encoder, 3), TaggingData(
        [(text, [(2, 5, "X")]) for text in texts], wordpiece, settings
    )


@pytest.mark.parametrize("task", ["question answering", "classification", "tagging"])
@pytest.mark.parametrize("rows, processes", [(5, 2), (7, 3), (1, 2)])
def test_the_mean_of_the_shares_is_the_batch_in_losses_and_gradients(task, rows, processes):
    model, data = example(task)
    model.eval()
    batch = data.batch(np.arange(rows), np.random.default_rng(0))
    parts = [data.share(batch, process, processes) for process in range(processes)]
    assert sum(part["weight"] for part in parts).item() == pytest.approx(processes)
    weights = list(model.parameters())
    whole = model(batch)
    shared = [Weighted(model)(part) for part in parts]
    for name, loss in whole.items():
        assert sum(losses[name] for losses in shared).item() / processes == pytest.approx(
            loss.item(), abs=1e-5
        )
    wanted = torch.autograd.grad(whole["loss"], weights)
    # a process without a row has some, too
    found = [torch.autograd.grad(losses["loss"], weights) for losses in shared]
    for one, *others in zip(wanted, *found, strict=True):
        assert torch.allclose(sum(others) / processes, one, atol=1e-5)


def test_a_process_without_a_row_computes_one_that_counts_nothing():
    _, data = example("classification")
    batch = data.batch(np.arange(2), np.random.default_rng(0))
    without = data.share(batch, 2, 3)
    assert without["weight"] == 0 and torch.equal(without["input_ids"], batch["input_ids"][:1])
    assert data.share(batch, 0, 3)["weight"] == 1.5


# --- the command --------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no SIGINT for one process")
def test_two_processes_fine_tune_as_one_does_and_a_stopped_one_goes_on(
    tmp_path, capsys, on_the_processor
):
    """The last batches are of one window, so the second process has none."""
    one, two, left = (tmp_path / name for name in ("one", "two", "stopped"))
    program = [command, *GIVEN, "--output"]
    assert main([*GIVEN, "--output", str(one)]) == 0
    printed = done_by_two(tmp_path / "said", *program, str(two))
    assert printed.count("294 questions") == printed.count("Model: ") == 1
    # without the tokens: of two processes, one may read a row that counts nothing
    wanted, found = metrics(one, "tokens"), metrics(two, "tokens")
    assert len(wanted) >= 3
    for line, other in zip(wanted, found, strict=True):
        assert other == pytest.approx(line, abs=2e-4)
    start, first, second = (load_file(folder / "model.safetensors") for folder in (TINY, one, two))
    # zero in exact arithmetic are the gradients of the keys' biases, and of a number that all
    # positions share
    free = [name for name in first if name.endswith(("self.key.bias", "qa_outputs.bias"))]
    for name in first.keys() - free:
        assert torch.allclose(first[name].float(), second[name].float(), atol=3e-4), name
    queries = [name for name in first if "query.weight" in name]
    moved = [(first[name].float() - start[name].float()).abs().max() for name in queries]
    assert min(moved) > 3e-3  # ten times what they may differ by

    state = tmp_path / "stopped.training"
    code, said = stopped(tmp_path / "stop", state, *program, str(left))
    assert code == 130 and "continue with the same command and --resume" in said, said
    assert not left.exists()
    given = [*GIVEN, "--output", str(left)]
    for other, told in (
        ([], "holds a stopped run: continue it with --resume"),
        (["--resume", "--seed", "1"], "seed was 0 and is 1"),
        (["--resume", "--untrained"], "untrained was False and is True"),
    ):
        capsys.readouterr()
        assert main([*given, *other]) == 2
        refused = capsys.readouterr().err
        assert told in refused and refused.count("\n") == 1, refused
    assert main([*given, "--resume"]) == 0 and not state.exists()
    weights = [(folder / "model.safetensors").read_bytes() for folder in (one, left)]
    assert weights[0] == weights[1] and wanted == metrics(left, "tokens")  # bit for bit
