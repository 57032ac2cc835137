"""A stopped run goes on bit for bit; what cannot be continued truthfully is refused."""

import hashlib
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from breaking import Breaking
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.commands.run_state import TEXT_FACTS, check_same_text
from spanbert_tutorial.engine import keeping, loop, snapshots, states
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.loop import Recipe, train
from spanbert_tutorial.engine.metrics import Metrics
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError, NoRoom
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.text.encoding import EncodedCorpus

STEPS = 8


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    AcceleratorState._reset_state(reset_partial_state=True)
    monkeypatch.setattr(loop, "precision", lambda: "no")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(scope="module")
def data() -> PretrainingData:
    """Twenty documents of four sentences: an epoch is five batches, so eight steps cross into the
    second."""
    ids = np.random.default_rng(0).integers(5, 2_000, 20 * 40).astype(np.uint16)
    corpus = EncodedCorpus(ids, np.arange(10, 801, 10), np.arange(40, 801, 40))
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    return PretrainingData(corpus, wordpiece, Objective.named("span+sbo"), 48, batch_size=4)


def part(data, folder, stop_after=None, facts=None, every=0.0):
    """One part of a run with dropout. Returns model, history and the snapshots; with `stop_after`
    it breaks off."""
    torch.manual_seed(3)
    config = EncoderConfig.tiny(
        vocab_size=2_000, num_hidden_layers=1, hidden_size=64, num_attention_heads=2
    )
    model = PretrainingModel(config, data.objective)
    batches = data.batches(np.random.default_rng(1))
    if stop_after is not None:
        batches = Breaking(batches, stop_after)
    kept = Snapshots(folder, facts or {"seed": 1}, every) if folder else None
    return model, train(model, batches, Recipe(STEPS, 1e-2, 2), snapshots=kept)


def equal(first: PretrainingModel, second: PretrainingModel) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("stop", [1, 4, 5, 7])
def test_a_stopped_run_ends_with_the_same_weights_and_history(data, tmp_path, stop):
    whole, history = part(data, None)
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=stop)
    assert [path.name for path in tmp_path.iterdir()] == [
        f"step-{stop:09d}"
    ]  # the earlier ones are gone
    torch.rand(17)  # whatever else the process draws
    resumed, continued = part(data, tmp_path)
    assert equal(whole, resumed) and history == continued


def test_a_finished_run_trains_no_further(data, tmp_path):
    first, _ = part(data, tmp_path)
    second, history = part(data, tmp_path)
    assert equal(first, second) and history.steps == list(range(1, STEPS + 1))


def test_without_dropping_out_of_it_a_run_with_snapshots_is_the_run_without(data, tmp_path):
    assert equal(part(data, None)[0], part(data, tmp_path)[0])


def test_another_setting_is_refused(data, tmp_path):
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=2)
    with pytest.raises(InputError, match=r"was started differently \(seed was 1 and is 2\)"):
        part(data, tmp_path, facts={"seed": 2})


@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimizer.safetensors", "state.json", "snapshot.json"]
)
@pytest.mark.parametrize("harm", ["cut", "change", "remove"])
def test_a_snapshot_that_is_not_whole_is_refused(data, tmp_path, name, harm):
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=2)
    file = tmp_path / "step-000000002" / name
    content = bytearray(file.read_bytes())
    if harm == "remove":
        file.unlink()
    else:
        content[len(content) // 2] ^= 1
        file.write_bytes(content if harm == "change" else content[:-1])
    if name == "snapshot.json" and harm == "change":
        file.write_bytes(b"{}")
    with pytest.raises(InputError, match=f"not as it was written .*{name}"):
        part(data, tmp_path)


def test_a_half_written_snapshot_is_passed_over(data, tmp_path):
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=3)
    half = tmp_path / "step-000000004.part"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    whole = part(data, None)[0]
    resumed = part(data, tmp_path)[0]
    assert equal(whole, resumed)


def test_no_room_names_the_last_whole_snapshot(data, tmp_path, monkeypatch):
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=3)
    monkeypatch.setattr(snapshots, "write_states", no_room)
    with pytest.raises(
        InputError, match="no snapshot of step 4 .*No space left.*the last whole .* step-000000003"
    ):
        part(data, tmp_path)
    monkeypatch.undo()
    assert (tmp_path / "step-000000003").is_dir()


def no_room(folder: Path, states: dict) -> None:
    Path(folder, "model.safetensors").write_bytes(b"half")
    raise SafetensorError("No space left on device")


def test_what_killed_writers_left_is_removed(data, tmp_path):
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=3)
    for name in ("step-000000001", "step-000000002.part"):
        (tmp_path / name).mkdir()
    part(data, tmp_path, every=1e9)
    assert [path.name for path in tmp_path.iterdir()] == [f"step-{STEPS:09d}"]


def full(*_):
    raise OSError(28, "No space left on device")


def test_figures_that_cannot_be_written_end_the_run_in_one_sentence(data, tmp_path, monkeypatch):
    with pytest.raises(ConnectionError):
        part(data, tmp_path / "snapshots", stop_after=3)
    figures = tmp_path / "metrics.jsonl"
    figures.write_text("no figures\n")
    with pytest.raises(InputError, match="the earlier metrics .* restore the file"):
        part(data, tmp_path / "snapshots")
    figures.unlink()
    monkeypatch.setattr("spanbert_tutorial.engine.files.put_in_place", full)
    with pytest.raises(NoRoom, match="the metrics in .* cannot be written"):
        part(data, tmp_path / "snapshots")


def test_a_line_of_figures_that_cannot_be_written_is_told(tmp_path):
    metrics = Metrics(tmp_path / "metrics.jsonl", 1, steps=1)
    history = loop.History()
    history.add(1, {"loss": 2.0})
    metrics.path.unlink()
    metrics.path.mkdir()
    with pytest.raises(NoRoom, match="metrics.jsonl cannot be written .*allow writing there"):
        metrics.add(history, 1e-3, 10, 0.1)


@pytest.mark.parametrize("most", [100_000, 1_500_000])
def test_no_room_for_one_of_the_files_of_a_snapshot(data, tmp_path, most):
    """A limit on the size of files stands for the full disk: it meets the weights, or only the
    optimizer's state."""
    resource = pytest.importorskip("resource")
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=3)
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "step-000000003").iterdir()}
    met = sorted(name for name, size in sizes.items() if size > most)
    assert met == ["model.safetensors", "optimizer.safetensors"][most > 1_000_000 :], sizes
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        with pytest.raises(NoRoom, match="no snapshot of step 4 .*step-000000003"):
            part(data, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-000000003"]
    assert equal(part(data, None)[0], part(data, tmp_path)[0])


def test_another_torch_or_number_of_threads_is_told(data, tmp_path, monkeypatch, capsys):
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=2)
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=1)
    assert "not bit for bit" not in capsys.readouterr().out
    monkeypatch.setattr(snapshots, "machine", lambda: "torch 1.0, threads: 9")
    part(data, tmp_path)
    assert f"the earlier part ran with torch {torch.__version__} on " in capsys.readouterr().out


def test_a_snapshot_of_an_earlier_version_is_refused(data, tmp_path):
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=2)
    with pytest.raises(
        InputError, match="another version of this package, which did not keep start"
    ):
        part(data, tmp_path, facts={"seed": 1, "start": "x"})


def test_the_fingerprint_sees_each_weight():
    first = torch.nn.Linear(3, 3)
    second = torch.nn.Linear(3, 3)
    second.load_state_dict(first.state_dict())
    assert snapshots.fingerprint(first) == snapshots.fingerprint(second)
    with torch.no_grad():
        second.bias[2] += 1e-6
    assert snapshots.fingerprint(first) != snapshots.fingerprint(second)


class Planted:
    """Unpickled, it leaves a file behind: code of a snapshot has run."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def exchanged(snapshot: Path, name: str, content: bytes | None) -> None:
    """Another content for one file of a snapshot, None for none, with the checksum that belongs to
    it."""
    listed = json.loads((snapshot / "snapshot.json").read_text(encoding="utf-8"))
    if content is None:
        (snapshot / name).unlink()
        del listed["files"][name]
    else:
        (snapshot / name).write_bytes(content)
        listed["files"][name] = {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    (snapshot / "snapshot.json").write_text(json.dumps(listed), encoding="utf-8")


FILES = ["model.safetensors", "optimizer.safetensors", "random_0.safetensors", "state.json"]


def planted(mark: Path) -> dict[str, bytes | None]:
    """What somebody may put into a file: code in two forms, JSON of other kinds, tensors of other
    names, nothing."""
    saved = io.BytesIO()
    torch.save({"state": Planted(mark)}, saved)
    return {
        "pickle": pickle.dumps(Planted(mark)),
        "saved": saved.getvalue(),
        "number": b"7",
        "list": b"[]",
        "nested": b"[" * 200_000 + b"]" * 200_000,
        "other": save({"x": torch.ones(2)}),
        "none": None,
        "part": b'{"model": {"code": 1}}',
        "tensor": b'{"model": {"tensor": "gone"}}',
    }


def test_the_files_of_a_snapshot_are_known(data, tmp_path):
    part(data, tmp_path)
    assert sorted(path.name for path in (tmp_path / f"step-{STEPS:09d}").iterdir()) == sorted(
        [*FILES, "snapshot.json"]
    )


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", planted(Path()))
def test_no_file_of_a_snapshot_runs_code(data, tmp_path, name, kind):
    """Whatever stands in it, with the right checksum: the run is refused in one sentence, and
    nothing was executed."""
    with pytest.raises(ConnectionError):
        part(data, tmp_path / "run", stop_after=2)
    mark = tmp_path / "executed"
    exchanged(tmp_path / "run" / "step-000000002", name, planted(mark)[kind])
    with pytest.raises(InputError, match="holds no state that loads here") as refused:
        part(data, tmp_path / "run")
    assert not mark.exists() and len(str(refused.value)) < 400
    pickle.loads(planted(mark)["pickle"])
    assert mark.exists()  # so the planted code works


@pytest.mark.parametrize(
    "content", ["[" * 200_000, '{"facts":' * 200_000, "7" * 9_999, "[]", "7", "", "{}"]
)
def test_a_list_of_other_things_is_refused(data, tmp_path, content):
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=2)
    (tmp_path / "step-000000002" / "snapshot.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="is not as it was written"):
        part(data, tmp_path)


@pytest.mark.parametrize(
    "line", ["[" * 200_000, '{"step":' * 200_000, "[]", "7", '{"step": "x"}', "{}", "x"]
)
def test_figures_of_other_things_are_refused(tmp_path, line):
    (tmp_path / "metrics.jsonl").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="the earlier metrics .* cannot be used"):
        Metrics(tmp_path / "metrics.jsonl", first_step=3, steps=9)


@pytest.mark.parametrize("content", ["[" * 200_000, "[]", "7", "null", '"x"', ""])
def test_facts_of_the_text_of_other_kinds_are_another_text(tmp_path, content):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / TEXT_FACTS).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="started with a different text"):
        check_same_text(tmp_path / "text", {"corpus": "a.txt", "content": "a"})


def test_a_snapshot_does_not_grow_with_the_run(tmp_path):
    """The history in it is that of the last steps."""
    sizes = []
    for steps in (keeping.KEPT_STEPS, 50 * keeping.KEPT_STEPS):
        history = loop.History()
        for step in range(1, steps + 1):
            history.add(step, {"loss": 1.5})
        trainer = SimpleNamespace(taken=lambda: (1, 2.0))
        kept = keeping.Progress(history, trainer, SimpleNamespace(state_dict=dict))
        states.write_states(tmp_path, {"progress": kept.state_dict()})
        sizes.append((tmp_path / "state.json").stat().st_size)
        assert history.done == steps
    assert sizes[1] < 1.5 * sizes[0]  # the numbers of the steps have more digits


def test_a_state_is_the_same_after_writing_and_reading(tmp_path):
    shared = torch.arange(6.0).reshape(2, 3)
    state = {
        "a": shared,
        "again": shared,
        3: {"list": [1, 2.5, None, True, "x"], "tuple": (0.9, (1e-8, 7))},
        "half": torch.ones(2, dtype=torch.bfloat16),
        "empty": {},
        "none": torch.empty(0),
        "no ids": torch.empty(0, dtype=torch.int64),
    }
    state |= {"turned": shared[:, :2].T, "square": shared[:, :2]}  # one memory, read in two ways
    states.write_states(tmp_path, {"one": state, "two": {"words": "only"}})
    found = states.read_states(tmp_path)
    assert found["two"] == {"words": "only"} and list(found["one"]) == list(state)
    assert found["one"][3] == state[3] and found["one"]["empty"] == {}
    for name in ("a", "again", "half", "none", "no ids", "turned", "square"):
        assert (
            torch.equal(found["one"][name], state[name])
            and found["one"][name].dtype == state[name].dtype
        )
    stored = load_file(tmp_path / "one.safetensors")
    assert stored.keys() == {
        f"one.{name}" for name in ("a", "half", "none", "no ids", "turned", "square")
    }
    with pytest.raises(TypeError, match="x.y is a .*Path"):
        states.apart({"y": tmp_path}, "x", {})


COMMAND = [
    sys.executable,
    "-m",
    "spanbert_tutorial",
    "pretrain",
    "--batch-size",
    "2",
    "--max-length",
    "24",
]


def command(corpus: Path, output: Path, *more: str) -> list[str]:
    return [*COMMAND, "--corpus", str(corpus), "--vocab-size", "80", "--output", str(output), *more]


def test_control_c_keeps_the_state_and_says_how_to_go_on(tmp_path):
    """The command is stopped while it trains, refuses to start over, and ends like the run that was
    left alone."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(
        "\n\n".join(f"The boat {i} left the town.\nIt was {i % 7} years old." for i in range(200))
    )
    steps = ["--steps", "300"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SPANBERT_TUTORIAL_STATIC": "0"}
    subprocess.run(
        command(corpus, tmp_path / "whole", *steps),
        check=True,
        capture_output=True,
        env=environment,
    )
    stopped = subprocess.Popen(
        command(corpus, tmp_path / "made", *steps),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    wait_for_training(stopped)
    stopped.send_signal(signal.SIGINT)
    _, complaint = stopped.communicate(timeout=120)
    assert stopped.returncode == 130 and "--resume" in complaint, complaint
    assert not (tmp_path / "made").exists()
    again = subprocess.run(
        command(corpus, tmp_path / "made", *steps), capture_output=True, text=True, env=environment
    )
    assert again.returncode == 2 and "holds a stopped run" in again.stderr
    corpus.write_text(corpus.read_text().replace("town", "city"))
    resume = command(corpus, tmp_path / "made", *steps, "--resume")
    changed = subprocess.run(resume, capture_output=True, text=True, env=environment)
    assert (
        changed.returncode == 2
        and "started with a different text (changed: content)" in changed.stderr
    )
    corpus.write_text(corpus.read_text().replace("city", "town"))
    changed = subprocess.run(
        [*resume, "--vocab-size", "70"], capture_output=True, text=True, env=environment
    )
    assert changed.returncode == 2 and "changed: vocab-size" in changed.stderr
    subprocess.run(
        command(corpus, tmp_path / "made", *steps, "--resume"), check=True, env=environment
    )
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "made")]
    assert weights[0] == weights[1]
    lines = [
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").open()]
        for name in ("whole", "made")
    ]
    for one, other in zip(*lines, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert {path.name for path in tmp_path.iterdir()} == {
        "corpus.txt",
        "whole",
        "made",
    }  # no state left


def wait_for_training(process: subprocess.Popen) -> None:
    """Until the bar of the training stands on the screen."""
    seen = ""
    end = time.monotonic() + 120
    while "unigram=" not in seen:
        assert process.poll() is None and time.monotonic() < end, seen
        seen += process.stdout.read(1)
