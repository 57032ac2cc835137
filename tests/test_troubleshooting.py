"""The Help page: every message that it quotes is brought about here and compared with it."""

import json
import random
import re
import shutil
import socket
import subprocess
import sys

import pytest
import torch
import transformers
from test_main import run

from environment import ROOT
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.engine.files import data_path

CELLS = json.loads((ROOT / "book" / "workshop" / "faq.ipynb").read_text(encoding="utf-8"))["cells"]
PAGE = "\n\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
QUOTED = re.findall(r"^```text\n(.*?)\n```$", PAGE, flags=re.MULTILINE | re.DOTALL)
SHORT = ["--steps", 4, "--batch-size", 4, "--max-length", 32]
seen_here = set()  # the quoted messages that a test has met


def on_the_page(told: str) -> list[str]:
    """The quoted messages that stand in what a program has told; "…" stands for anything."""
    found = [
        quote
        for quote in QUOTED
        if re.search(re.escape(quote).replace("…", ".*"), told, flags=re.DOTALL)
    ]
    seen_here.update(found)
    return found


def error_of(work) -> str:
    """Name and text of what `work` raises, as a traceback ends."""
    with pytest.raises(Exception) as caught:
        work()
    return f"{caught.type.__name__}: {caught.value}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder, no progress bar, no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    words = random.Random(0)
    text = "\n\n".join(
        " ".join(words.choices(["강", "마을", "다리", "시장", "사람"], k=40)) + "."
        for _ in range(60)
    )
    (tmp_path / "korean.txt").write_text(text, encoding="utf-8")
    return tmp_path


def pretrain(capsys, *options) -> str:
    """All that `pretrain` prints with these options."""
    _, out, err = run(capsys, "pretrain", *options)
    return out + err


def test_the_package_is_not_found(here):
    command = [sys.executable, "-I", "-S", "-c", "import spanbert_tutorial"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=here).stderr
    assert len(on_the_page(told)) == 1, told


def test_not_enough_memory():
    assert len(on_the_page(error_of(lambda: torch.zeros(10**15)))) == 1


def test_a_dry_run_of_a_text_in_another_language(capsys, here):
    """Tells [UNK], the entropy to compare with, the memory and the hours."""
    vocabulary = data_path("almanac", "vocab.txt")
    told = pretrain(
        capsys, "--corpus", "korean.txt", "--vocabulary", vocabulary, "--dry-run", *SHORT
    )
    assert len(on_the_page(told)) == 4, told


def test_ids_that_the_model_does_not_have():
    """The last id of the uncased vocabulary, and the size of the cased one."""
    ids = torch.tensor([[30521]])
    ours = BertEncoder(EncoderConfig.tiny(vocab_size=28996))
    sizes = {
        "vocab_size": 28996,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
    }
    theirs = transformers.BertModel(transformers.BertConfig(**sizes, intermediate_size=8))
    assert (
        len(on_the_page(error_of(lambda: ours(ids))))
        == len(on_the_page(error_of(lambda: theirs(ids))))
        == 1
    )


def test_a_learning_rate_that_is_far_too_high(capsys, here):
    told = pretrain(
        capsys, "--corpus", "korean.txt", "--vocab-size", 100, "--learning-rate", 1e9, *SHORT
    )
    assert len(on_the_page(told)) == 2, told  # the entropy is told before


def test_a_text_that_is_not_utf8(capsys, here):
    (here / "latin.txt").write_bytes("caf\u00e9 au lait\n".encode("latin-1"))
    assert len(on_the_page(pretrain(capsys, "--corpus", "latin.txt", *SHORT))) == 1


def test_names_of_the_hub_without_a_network(capsys, here):
    told = pretrain(capsys, "--init-from", "bert-base-cased", "--corpus", "korean.txt", *SHORT)
    assert len(on_the_page(told)) == 1, told
    told = error_of(lambda: transformers.BertModel.from_pretrained("bert-base-cased"))
    assert len(on_the_page(told)) == 1, told


@pytest.mark.parametrize(
    "left", [{"config.json": 50}, {"model.safetensors": 100_000}, {"tokenizer.json": None}]
)
def test_a_damaged_checkpoint(capsys, here, left):
    """Files cut short, or without a tokenizer at all."""
    shutil.copytree(data_path("checkpoints", "spanbert-tiny"), "cut")
    ((name, size),) = left.items()
    if size is None:
        (here / "cut" / name).unlink()
    else:
        (here / "cut" / name).write_bytes((here / "cut" / name).read_bytes()[:size])
    told = pretrain(capsys, "--init-from", "cut", "--corpus", "korean.txt", *SHORT)
    assert f"{'has no ' if size is None else 'cut/'}{name}" in "".join(on_the_page(told)), told


def test_a_packed_text_that_was_cut_short(capsys, here):
    packed = data_path("almanac", "documents.jsonl.xz").read_bytes()
    (here / "cut.jsonl.xz").write_bytes(packed[:2000])
    assert len(on_the_page(pretrain(capsys, "--corpus", "cut.jsonl.xz", *SHORT))) == 1


def test_a_pipeline_that_transformers_has_removed():
    assert len(on_the_page(error_of(lambda: transformers.pipeline("question-answering")))) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the number of the error is that of Linux")
def test_the_port_is_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [
            sys.executable,
            "-m",
            "http.server",
            "--bind",
            "127.0.0.1",
            str(taken.getsockname()[1]),
        ]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60).stderr
    assert len(on_the_page(told)) == 1, told


def test_a_stopped_run_and_none(capsys, here):
    (here / "made.training").mkdir()
    assert (
        len(on_the_page(pretrain(capsys, "--corpus", "korean.txt", "--output", "made", *SHORT)))
        == 1
    )
    assert (
        len(
            on_the_page(
                pretrain(capsys, "--corpus", "korean.txt", "--output", "other", "--resume", *SHORT)
            )
        )
        == 1
    )


def test_every_quoted_message_was_met():
    """Runs last in this file; alone it can say nothing."""
    if not seen_here:
        pytest.skip("the other tests of this file did not run")
    assert len(QUOTED) == len(set(QUOTED)) and set(QUOTED) == seen_here, set(QUOTED) - seen_here


def test_no_message_of_the_package_is_lost():
    """Each failure that a reader can meet has its message on the page."""
    for message in (
        "ModuleNotFoundError",
        "can't allocate memory",
        "this process took",
        "take the vocabulary of this model",
        "has no tokenizer.json or vocab.txt",
        "of the tokens are [UNK]",
        "Unigram entropy",
        "the loss is nan",
        "Nothing was written",
        "is not UTF-8",
        "cannot be had from the hub",
        "cannot be read as weights",
        "cannot be read as JSON",
        "is not a whole .xz file",
        "has been removed from transformers",
        "Address already in use",
        "holds a stopped run",
        "there is no stopped run",
    ):
        assert sum(message in quote for quote in QUOTED) == 1, message


def test_every_section_of_this_part_quotes_a_message_or_says_that_it_was_not_tried():
    sections = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
    titles = [part.split("\n", 1)[0] for part in sections]
    installing = PAGE.split("\n## Installing and running\n")[1].split("\n## ")[0]
    parts = re.split(r"^### ", installing, flags=re.MULTILINE)[1:]
    without = [
        part.split("\n", 1)[0]
        for part in parts
        if "```text" not in part and "Not tried here" not in part
    ]
    assert len(parts) >= 10 and without == []
    for word in (
        "Colab",
        "memory",
        "tokenizer",
        "[UNK]",
        "plateau",
        "GPU",
        "Windows",
        "Apple",
        "Offline",
        "port",
    ):
        assert any(word in title for title in titles), word
