"""`pretrain` with its further options: --init-from, --leave-out, --half, --accumulate, --dry-run;
what stops it."""

import json
import os
import re
import shutil
import signal
import tempfile
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_bert import random_encoder, released
from test_main import OBJECTS, SMALL, SUBJECTS, VERBS, run
from toys import data_of

from spanbert_tutorial.__main__ import parser
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.commands.pretrain import HELD_OUT_BATCHES, settings
from spanbert_tutorial.commands.run_state import read_titles
from spanbert_tutorial.engine import stream
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining import train as train_module
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.text.corpora import documents

TINY = data_path("checkpoints", "spanbert-tiny")
START = ["--init-from", TINY, "--steps", 6, "--batch-size", 8, "--max-length", 24]


@pytest.fixture(autouse=True)
def without_bar(monkeypatch):
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")


@pytest.fixture(scope="module")
def titled(tmp_path_factory):
    """120 documents with titles, in a folder."""
    folder = tmp_path_factory.mktemp("titled")
    sentence = "{} {} {}.".format
    with (folder / "texts.jsonl").open("w", encoding="utf-8") as file:
        for i in range(120):
            text = " ".join(
                sentence(SUBJECTS[(i + j) % 5], VERBS[(i * j) % 5], OBJECTS[(i + 2 * j) % 5])
                for j in range(6)
            )
            file.write(json.dumps({"title": f"Title {i}", "text": text}) + "\n")
    return folder


def test_a_run_goes_on_from_a_checkpoint_without_some_titles_in_half_precision(
    capsys, tmp_path, titled
):
    titles = tmp_path / "titles.txt"
    made = tmp_path / "made"
    titles.write_text(
        "\n".join([*(f"Title {i}" for i in range(10)), "Nobody's title"]) + "\n", encoding="utf-8"
    )
    given = ["--corpus", titled, "--leave-out", titles, "--half", "--output", made]
    code, out, err = run(capsys, "pretrain", *START, *given)
    assert (code, err) == (0, "")
    assert "Left out: 10 of the 11 titles" in out and "new heads: none" in out
    documents, kept_back = map(
        int, re.search(r"(\d+) documents, .* (\d+) documents held out", out).groups()
    )
    assert documents + kept_back == 110
    assert {str(weight.dtype) for weight in load_file(made / "model.safetensors").values()} == {
        "torch.float16"
    }
    configs = [
        json.loads((folder / "config.json").read_text(encoding="utf-8")) for folder in (TINY, made)
    ]
    assert configs[1] == configs[0] | {"dtype": "float32"}
    assert "| started from | spanbert-tiny |" in (made / "README.md").read_text(encoding="utf-8")
    line = json.loads((made / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert line["held_out_sbo"] > 0 and line["held_out_span"] > 0


def test_titles_note_what_was_skipped_and_only_that(titled, tmp_path):
    file = tmp_path / "titles.txt"
    file.write_text("Title 3\nTitle 5\nNobody's title\n", encoding="utf-8")
    titles = read_titles(str(file))
    assert "Title 3" in titles and "Title 4" not in titles
    assert titles.skipped == set()  # asking changes nothing
    assert len(list(documents(titled, titles))) == 118
    assert titles.skipped == {"Title 3", "Title 5"}
    assert read_titles(None) == set()


def test_the_checkpoint_decides_size_vocabulary_and_dropout(capsys, monkeypatch, tmp_path, titled):
    """An uncased checkpoint with a vocab.txt alone, of the size mini, with dropout in its
    config."""
    source = tmp_path / "source"
    source.mkdir()
    from transformers import BertConfig, BertForMaskedLM

    words = sorted(
        {
            word.lower()
            for part in (SUBJECTS, VERBS, OBJECTS)
            for text in part
            for word in text.split()
        }
    )
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *words]
    sizes = {
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    }
    model = BertForMaskedLM(BertConfig(vocab_size=len(tokens), **sizes))
    model.save_pretrained(source)
    (source / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (source / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    given = [
        "--init-from",
        source,
        "--steps",
        2,
        "--batch-size",
        4,
        "--max-length",
        24,
        "--objective",
        "mlm",
    ]
    trained = runs.pretrain
    dropouts = []
    monkeypatch.setattr(
        runs,
        "pretrain",
        lambda run, text, model, *more: (
            dropouts.extend(
                part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)
            )
            or trained(run, text, model, *more)
        ),
    )
    code, out, err = run(
        capsys, "pretrain", *given, "--corpus", titled, "--output", tmp_path / "made"
    )
    assert set(dropouts) == {0.0}  # goes on without, whatever the config keeps
    assert (code, err) == (0, "") and "[UNK]" not in out and "new heads: none" in out
    made = json.loads((tmp_path / "made" / "config.json").read_text(encoding="utf-8"))
    assert (made["num_hidden_layers"], made["hidden_dropout_prob"]) == (4, 0.1)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    (source / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    code, _, err = run(capsys, "pretrain", *given, "--corpus", titled, "--output", tmp_path / "new")
    assert code == 2 and "3 layers of width 256" in err and "--config" in err


def test_words_that_the_vocabulary_lacks_are_told(capsys, tmp_path):
    file = tmp_path / "greek.txt"
    file.write_text(
        "\n\n".join(["Ὁ μῦθος δηλοῖ ὅτι." + "\nThe old bridge." * 5] * 60), encoding="utf-8"
    )
    _, out, _ = run(capsys, "pretrain", *START, "--corpus", file, "--output", tmp_path / "made")
    assert re.search(r"\d+% of the tokens are \[UNK\]", out)
    assert "A document has" not in out
    given = [*START[:-1], 128, "--dry-run", "--corpus", file, "--output", tmp_path / "long"]
    assert "A document has" in run(capsys, "pretrain", *given)[1]  # 40 tokens beside 128 places


def test_bad_starts_and_places_are_refused(capsys, tmp_path, titled):
    before = sorted(tmp_path.rglob("*"))
    cases = [
        (
            [*START, "--max-length", 600, "--corpus", titled],
            tmp_path / "new",
            "a smaller --max-length",
        ),
        ([*SMALL, "--corpus", titled], titled / "made", "is inside the corpus"),
        ([*SMALL, "--corpus", titled], titled / "x" / ".." / "made", "is inside the corpus"),
        (
            [*START, "--corpus", titled, "--vocabulary", tmp_path / "no.txt"],
            tmp_path / "new",
            "no.txt does not exist",
        ),
        ([*SMALL, "--corpus", titled], ".", "exists already"),
        ([*SMALL, "--corpus", titled, "--accumulate", 0], tmp_path / "new", "--accumulate is 0"),
    ]
    for given, output, wanted in cases:
        code, _, err = run(capsys, "pretrain", *given, "--output", output)
        assert code == 2 and wanted in err and err.count("\n") == 1, err
        assert sorted(tmp_path.rglob("*")) == before and len(list(titled.iterdir())) == 1


def test_a_stopped_run_keeps_to_its_text(capsys, monkeypatch, tmp_path, titled):
    corpus = tmp_path / "corpus"
    made = tmp_path / "made"
    corpus.mkdir()
    text = (titled / "texts.jsonl").read_text(encoding="utf-8")
    (corpus / "texts.jsonl").write_text(text, encoding="utf-8")
    given = ["pretrain", *SMALL, "--corpus", corpus, "--output", made]

    measured = held_out_metrics

    def stop(model, run, text, most, **more):
        if most == HELD_OUT_BATCHES:  # after the last step
            raise KeyboardInterrupt
        return measured(model, run, text, most, **more)

    with monkeypatch.context() as patch:
        patch.setattr("spanbert_tutorial.pretraining.evaluation.held_out_metrics", stop)
        code, _, err = run(capsys, *given)
    assert (
        code == 130
        and err == "Stopped: continue with the same command and --resume.\n"
        and not made.exists()
    )
    (corpus / "texts.jsonl").write_text(
        text.replace("boat", "coat"), encoding="utf-8"
    )  # as long as before
    code, _, err = run(capsys, *given, "--resume")
    assert code == 2 and "changed: content" in err
    (corpus / "texts.jsonl").write_text(text, encoding="utf-8")
    (corpus / "notes.md").write_text("no text of the corpus")
    with monkeypatch.context() as patch:
        patch.setattr("spanbert_tutorial.pretraining.checkpoints.save_file", full)
        code, _, err = run(capsys, *given, "--resume")
    assert (
        code == 2
        and "No space left" in err
        and "continue with --resume" in err
        and not made.exists()
    )
    assert run(capsys, *given, "--resume")[0] == 0 and made.is_dir()
    assert not (tmp_path / "made.training").exists()


@pytest.fixture
def stopped(capsys, monkeypatch, tmp_path, titled):
    """Arguments of a run that went on from a copy of a checkpoint and was stopped after its last
    step."""
    shutil.copytree(TINY, tmp_path / "source")
    given = [
        "pretrain",
        *START,
        "--init-from",
        tmp_path / "source",
        "--corpus",
        titled,
        "--output",
        tmp_path / "made",
    ]
    with monkeypatch.context() as patch:
        patch.setattr("spanbert_tutorial.pretraining.checkpoints.save_file", full)
        code, _, err = run(capsys, *given)
    assert code == 2 and "continue with --resume" in err
    return given


def test_what_changes_the_run_is_refused_when_it_goes_on(capsys, tmp_path, stopped):
    changes = {
        "peak_learning_rate was": ["--learning-rate", 1e-5],
        "steps was 6 and is 7": ["--steps", 7],
        "batch_size was 8 and is 4": ["--batch-size", 4],
        "objective was": ["--objective", "mlm"],
        "seed was 0 and is 1": ["--seed", 1],
    }
    for wanted, change in changes.items():
        code, _, err = run(capsys, *stopped, *change, "--resume")
        assert (
            code == 2
            and "was started differently" in err
            and wanted in err
            and err.count("\n") == 1
        ), err
    weights = load_file(tmp_path / "source" / "model.safetensors")
    weights["bert.embeddings.LayerNorm.bias"] += 0.01
    save_file(weights, tmp_path / "source" / "model.safetensors", metadata={"format": "pt"})
    code, _, err = run(capsys, *stopped, "--resume")
    assert code == 2 and "(start was " in err
    shutil.copy(TINY / "model.safetensors", tmp_path / "source")
    assert run(capsys, *stopped, "--resume")[0] == 0 and (tmp_path / "made").is_dir()


def test_a_run_killed_while_it_removes_its_state_is_whole(capsys, tmp_path, stopped):
    """The checkpoint is in place then; going on removes what is left."""
    state = tmp_path / "made.training"
    made = tmp_path / "made"
    shutil.copytree(state, tmp_path / "copy")
    assert run(capsys, *stopped, "--resume")[0] == 0
    before = {path: path.read_bytes() for path in made.iterdir()}
    for gone in ([], ["snapshots"], ["snapshots", "text"], ["."]):
        shutil.copytree(tmp_path / "copy", state)
        for part in gone:
            shutil.rmtree(state / part)
            state.mkdir(exist_ok=True)
        code, out, err = run(capsys, *stopped, "--resume")
        assert (code, err) == (0, "") and f"{made} is complete" in out and not state.exists()
        assert {path: path.read_bytes() for path in made.iterdir()} == before
    shutil.copytree(tmp_path / "copy", state)
    (made / "metrics.jsonl").write_text("of another run")
    code, _, err = run(capsys, *stopped, "--resume")
    assert code == 2 and "exists already" in err and state.exists()


def test_without_its_figures_a_run_still_ends_with_a_card(capsys, tmp_path, stopped):
    """After the last step nothing is trained any more, but tokens and hours are known from the
    snapshot."""
    (tmp_path / "made.training" / "metrics.jsonl").unlink()
    assert run(capsys, *stopped, "--resume")[0] == 0
    (line,) = (tmp_path / "made" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["step"] == 6 and json.loads(line)["tokens"] > 500
    assert "| tokens seen | " in (tmp_path / "made" / "README.md").read_text(encoding="utf-8")


def test_encoded_text_that_was_changed_is_refused(capsys, tmp_path, stopped):
    for name in ("ids.npy", "document_ends.npy"):
        file = tmp_path / "made.training" / "text" / "train" / name
        before = file.read_bytes()
        file.write_bytes(before[:-1] + bytes([before[-1] ^ 0x80]))  # far beyond what it may be
        code, _, err = run(capsys, *stopped, "--resume")
        assert code == 2 and err.count("\n") == 1
        assert f"(train/{name} was changed)" in err.replace(os.sep, "/")
        file.write_bytes(before)


def test_a_released_spanbert_is_a_start_once_its_vocabulary_is_given(capsys, tmp_path, titled):
    """Its layout: no model_type, a .bin file, an encoder without heads, and no vocabulary beside
    it."""
    sizes = {"vocab_size": 2_000, "max_position_embeddings": 64}
    folder = tmp_path / "released"
    folder.mkdir()
    released(folder, random_encoder(EncoderConfig.tiny(**sizes)))
    given = [
        "pretrain",
        *START,
        "--init-from",
        folder,
        "--corpus",
        titled,
        "--output",
        tmp_path / "made",
    ]
    code, _, err = run(capsys, *given)
    assert code == 2 and "vocabulary" in err and err.count("\n") == 1
    code, out, err = run(capsys, *given, "--vocabulary", data_path("almanac", "vocab.txt"))
    assert (code, err) == (0, "") and "new heads: masked_language_model, boundary" in out
    assert (tmp_path / "made" / "model.safetensors").is_file()


def test_a_snapshot_that_was_tampered_with_is_refused_without_the_advice_to_go_on(
    capsys, tmp_path, stopped
):
    (weights,) = (tmp_path / "made.training").glob("snapshots/*/model.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    code, _, err = run(capsys, *stopped, "--resume")
    assert (
        code == 2 and "not as it was written (model.safetensors)" in err and "--resume" not in err
    )
    assert weights.is_file() and not (tmp_path / "made").exists()


def test_a_refusal_removes_nothing_of_a_run_that_was_killed_before_its_first_snapshot(
    capsys, tmp_path, stopped
):
    state = tmp_path / "made.training"
    shutil.rmtree(state / "snapshots")
    (state / "metrics.jsonl").unlink()
    code, _, err = run(capsys, *stopped, "--vocab-size", 70, "--resume")
    assert (
        code == 2 and "changed: vocab-size" in err and (state / "text" / "tokenizer.json").is_file()
    )
    assert run(capsys, *stopped, "--resume")[0] == 0 and not state.exists()


def test_a_short_run_of_a_large_preset_warms_up_for_a_tenth_of_its_steps():
    def warmup(*given: object) -> int:
        options = parser().parse_args(["pretrain", *map(str, given)])
        return settings(options).recipe().warmup_steps

    steps = (1_000, 50_000, 1_000_000)
    assert [warmup("--config", "base", "--steps", many) for many in steps] == [100, 5_000, 10_000]
    assert warmup("--config", "large") == warmup("--config", "large", "--steps", 400_000) == 10_000
    assert warmup("--config", "mini", "--steps", 700) == warmup("--steps", 700) == 70


def test_a_loss_that_is_no_number_ends_the_command(capsys, tmp_path, titled):
    given = [
        "pretrain",
        *SMALL,
        "--corpus",
        titled,
        "--learning-rate",
        1e30,
        "--output",
        tmp_path / "made",
    ]
    code, _, err = run(capsys, *given)
    assert code == 1 and re.search(r"at step \d", err) and "lower the peak learning rate" in err
    assert err.endswith("Start over with another --output.\n") and err.count("\n") == 1
    assert not (tmp_path / "made").exists()


def test_a_folder_without_the_right_to_write_is_told_before_any_work(
    capsys, monkeypatch, tmp_path, titled
):
    def forbidden(*anything, **more):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryDirectory", forbidden)
        code, out, err = run(
            capsys, "pretrain", *SMALL, "--corpus", titled, "--output", tmp_path / "made"
        )
    assert (
        code == 2
        and "cannot be written (Permission denied): give another --output" in err
        and out == ""
    )


def full(*anything, **more):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("most", [20_000, 120_000])
def test_no_room_for_the_encoded_text_is_one_sentence(capsys, tmp_path, most):
    """A limit on the size of files stands for the full disk; the encoded text takes about 200,000
    bytes."""
    resource = pytest.importorskip("resource")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(
        "\n\n".join(
            f"{SUBJECTS[i % 5]} {VERBS[i % 4]} {OBJECTS[i % 3]}. " * 12 for i in range(1_000)
        ),
        encoding="utf-8",
    )
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        code, _, err = run(
            capsys, "pretrain", *SMALL, "--corpus", corpus, "--output", tmp_path / "made"
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert code == 2 and "make room" in err and err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == [corpus]


def test_a_dry_run_states_what_a_step_takes(capsys, tmp_path, titled):
    given = [
        "pretrain",
        *SMALL,
        "--corpus",
        titled,
        "--dry-run",
        "--output",
        tmp_path / "made",
        "--accumulate",
        3,
    ]
    code, out, err = run(capsys, *given)
    assert (code, err) == (0, "") and list(tmp_path.iterdir()) == []
    assert re.search(r"Run: 6 steps of 3 × 8 inputs, ([\d,]+) tokens a step, ", out)
    tokens = int(re.search(r"([\d,]+) tokens a step", out)[1].replace(",", ""))
    assert 3 * 8 * 12 < tokens <= 3 * 8 * 24
    parameters, gib = map(
        float, re.search(r"Model: ([\d.]+) M parameters; .* take ([\d.]+) GiB", out).groups()
    )
    assert gib == pytest.approx(16e6 * parameters / 2**30, abs=0.01) and parameters < 1
    if os.name != "nt" and not torch.cuda.is_available():
        assert 0.1 < float(re.search(r"this process took ([\d.]+) GiB", out)[1]) < 20
    seconds = float(re.search(r"([\d.]+) s a step", out)[1])
    hours = float(re.search(r"about ([\d.]+) hours", out)[1])
    assert hours == pytest.approx(6 * seconds / 3600, abs=0.011)
    speed = float(re.search(r"([\d,]+) tokens/s", out)[1].replace(",", ""))
    assert speed == pytest.approx(tokens / seconds, rel=0.1)  # both are rounded
    share, rate = map(float, re.search(r"are (\d+)% \(MFU\) of the (\S+) TFLOP/s", out).groups())
    assert 0 <= share < 100 and rate > 0.001


class Slow(PretrainingModel):
    """A model whose first batch takes a second, like a card that chooses its kernels, and each
    further one 30 ms, after 40 batches that take twice as long, like a CPU that meets new shapes.
    Its clock knows of nothing else, so that a busy machine changes nothing."""

    now = 0.0
    batches = 0

    def forward(self, batch):
        self.batches += 1
        Slow.now += 1.0 if self.batches == 1 else 0.06 if self.batches <= 40 else 0.03
        return super().forward(batch)


@pytest.fixture
def slow(monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: Slow.now)
    monkeypatch.setattr(stream, "time", clock)
    monkeypatch.setattr(runs, "time", clock)
    monkeypatch.setattr(runs, "PretrainingModel", Slow)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_dry_run_times_what_a_real_run_takes(capsys, tmp_path, titled, slow, accumulate):
    """Its speed is that of the metrics of a run, but for what the first batches take."""
    given = ["pretrain", *SMALL, "--corpus", titled, "--steps", 60, "--accumulate", accumulate]
    given += ["--output", tmp_path / "made"]
    out = run(capsys, *given, "--dry-run")[1]
    said = float(re.search(r"([\d,]+) tokens/s", out)[1].replace(",", ""))
    assert run(capsys, *given)[0] == 0
    lines = (tmp_path / "made" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    *_, first, _, last = map(json.loads, lines)
    shown = (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])
    assert said == pytest.approx(shown, rel=0.15)


def test_a_dry_run_times_single_batches_of_a_step(slow):
    data = data_of(Objective.named("mlm"))
    text = EncodedText(data.corpus, data.corpus, data.wordpiece)
    large = Run(objective="mlm", steps=10, max_length=48, batch_size=4, accumulate=8)
    model = runs.new_model(large, text)
    _, seconds, tokens = runs.rehearse(large, text, model, steps=4)
    assert model.batches == 8 and seconds == pytest.approx(8 * 0.06)
    assert 8 * 4 * 10 < tokens < 8 * 4 * 48


def test_a_step_of_several_batches_is_counted_as_one(capsys, monkeypatch, tmp_path, titled):
    steps = []
    before = train_module.read
    monkeypatch.setattr(
        train_module,
        "read",
        lambda unread, a: steps.append(len(unread[0].losses)) or before(unread, a),
    )
    assert (
        run(
            capsys,
            "pretrain",
            *SMALL,
            "--corpus",
            titled,
            "--accumulate",
            2,
            "--output",
            tmp_path / "m",
        )[0]
        == 0
    )
    assert steps == [2] * 6
    line = json.loads(
        (tmp_path / "m" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    )
    assert line["step"] == 6
