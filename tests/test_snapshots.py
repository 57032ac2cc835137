"""A stopped run goes on bit for bit; what cannot be continued truthfully is refused."""

import json
import os
import pickle
import signal
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from launched import command, metrics, started, stopped, until_step
from safetensors import SafetensorError
from toys import Breaking, Toy, batches_of, data_of, model_of, same_weights, toy_batches

from spanbert_tutorial.__main__ import main
from spanbert_tutorial.engine import history as histories
from spanbert_tutorial.engine import snapshots
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.snapshots import Snapshots, long_run
from spanbert_tutorial.engine.stream import Stream
from spanbert_tutorial.errors import InputError, NoRoom
from spanbert_tutorial.pretraining.objectives import OBJECTIVES
from spanbert_tutorial.pretraining.train import TrainingConfig, train

pytestmark = pytest.mark.usefixtures("on_the_processor")
STEPS = 25


def part(folder, stop=None, name="span+sbo", log_every=1, ahead=False, facts=None):
    """One part of a run with dropout and metrics; with `stop` it breaks off after so many batches,
    and has a snapshot after every step. An epoch has five of them."""
    model = model_of(name, dropout=0.1)
    batches = batches_of(name) if stop is None else Breaking(batches_of(name), stop)
    config = TrainingConfig(STEPS, 1e-2, 2, log_every=log_every)
    kept = Snapshots(folder / "snapshots", {"seed": 1} if facts is None else facts, stop and 0.0)
    with long_run(batches, kept) as (stream, hooks):
        stream.ahead, stream.state = ahead, batches.state_dict()
        return model, train(model, stream, config, hooks)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that is left alone, by its objective: model, history, folder."""
    return cache(lambda name: (*part(to := tmp_path_factory.mktemp("whole"), name=name), to))


def broken_off(folder, stop, **options):
    with pytest.raises(ConnectionError):
        part(folder, stop, **options)
    return folder / "snapshots"


@pytest.mark.parametrize(
    "stop, options",
    [
        (16, {}),
        (17, {"log_every": 10}),  # as on a card
        (17, {"log_every": 10, "ahead": True}),
        (7, {"name": "mix"}),
    ],
)
def test_a_stopped_run_ends_with_the_same_weights_history_and_metrics(
    tmp_path, whole, stop, options
):
    model, history, calm = whole(options.get("name", "span+sbo"))
    folder = broken_off(tmp_path, stop, **options)
    last = stop if options.get("log_every", 1) == 1 else 10
    assert [path.name for path in folder.iterdir()] == [f"step-{last:09d}"]  # no earlier ones
    for left in ("step-000000001", f"step-{STEPS:09d}.part"):
        (folder / left).mkdir()  # of killed writers
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 20}\n{"step')
    torch.rand(17)  # whatever else the process draws
    resumed, continued = part(tmp_path, **options)
    assert same_weights(model, resumed)
    assert json.dumps(continued.losses) == json.dumps(history.losses)  # a mixture's have NaN
    assert continued.steps == history.steps and metrics(tmp_path) == metrics(calm)
    assert [line["step"] for line in metrics(tmp_path)] == [10, 20, 25]
    assert [path.name for path in folder.iterdir()] == [f"step-{STEPS:09d}"]
    again, _ = part(tmp_path, **options)  # trains no further
    assert same_weights(model, again)


def test_another_setting_is_refused_and_another_machine_told(tmp_path, monkeypatch, capsys):
    broken_off(tmp_path, 2)
    with pytest.raises(InputError, match=r"started differently \(seed was 1 and is 2, a was None"):
        part(tmp_path, facts={"seed": 2, "a": 1})
    broken_off(tmp_path, 2)
    assert "not bit for bit" not in capsys.readouterr().out
    monkeypatch.setattr(snapshots, "machine", lambda: "torch 1.0, threads: 9")
    part(tmp_path)
    assert f"the earlier part ran with torch {torch.__version__} on " in capsys.readouterr().out


class Planted:
    """Unpickled, it leaves a file behind: code of a snapshot has run."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors"])
def test_a_snapshot_that_cannot_be_read_is_no_fresh_start_and_runs_no_code(tmp_path, name):
    file = broken_off(tmp_path, 2) / "step-000000002" / name
    mark = tmp_path / "executed"
    right = file.read_bytes()
    one_bit = bytearray(right)
    one_bit[len(right) // 2] ^= 1 if name.startswith("tensors") else 128
    nested = b"[" * 200_000 + b"]" * 200_000
    for content in (None, b"", right[:-1], one_bit, pickle.dumps(Planted(mark)), b"[]", nested):
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(InputError, match="holds no state that loads here") as refused:
            part(tmp_path)
        assert not mark.exists() and len(str(refused.value)) < 500
    file.write_bytes(right)
    part(tmp_path)


def no_room(*_):
    raise SafetensorError("No space left on device")


def test_no_room_leaves_the_last_whole_snapshot(tmp_path, monkeypatch):
    folder = broken_off(tmp_path, 3)
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "save_file", no_room)
        with pytest.raises(NoRoom, match="a snapshot .*No space left"):
            part(tmp_path, stop=STEPS)
    assert [path.name for path in folder.iterdir()] == ["step-000000003"]
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(NoRoom, match="metrics.jsonl cannot be written"):
        part(tmp_path)


def test_a_snapshot_does_not_grow_with_the_run_and_stores_shared_weights_once(tmp_path):
    history = History(list(range(5_000)), {"loss": [1.5] * 5_000})
    state = history.state_dict()
    assert len(state["steps"]) == len(state["losses"]["loss"]) == histories.KEPT_STEPS
    assert state["steps"][-1] == 4_999
    model = Toy()
    model.again = model.first
    snapshots.save({"model": model.state_dict(), "numbers": {3: torch.ones(0)}}, tmp_path)
    tensors = snapshots.load_file(tmp_path / snapshots.TENSORS)
    assert len(tensors) == len(list(model.parameters())) + 1
    found = snapshots.read(tmp_path)
    assert list(found["model"]) == list(model.state_dict()) and list(found["numbers"]) == [3]
    with pytest.raises(TypeError, match="a PosixPath|a WindowsPath"):
        snapshots.save({"x": tmp_path}, tmp_path)


# --- batches drawn ahead ------------------------------------------------------------

forked = pytest.mark.skipif(os.name == "nt", reason="Windows draws in the process itself")


@forked
def test_what_was_drawn_ahead_and_not_taken_is_drawn_again_afterwards():
    whole, batches = (data_of(OBJECTIVES["mlm"]).batches(np.random.default_rng(1)) for _ in "ab")
    before = torch.get_rng_state()
    stream = Stream(batches, ahead=True)
    found = [next(stream) for _ in range(7)]
    (worker,) = stream.drawn._workers
    os.kill(worker.pid, signal.SIGINT)  # as Ctrl-C does, which is for the process that trains
    found += [next(stream) for _ in range(10)]
    assert stream.taken()[0] == sum(int(batch["attention_mask"].sum()) for batch in found)
    stream.close()
    found += [next(batches) for _ in range(10)]
    for one in found:
        other = next(whole)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(torch.get_rng_state(), before)  # that of the dropout
    worker.join(timeout=10)
    assert not worker.is_alive()


@forked
def test_an_error_of_the_drawing_is_raised_as_it_was():
    class Bad:
        def __iter__(self):
            yield toy_batches(1)[0] | {"attention_mask": torch.ones(1)}
            raise InputError("the text ends in the middle of a word.")

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    stream = Stream(Bad(), ahead=True)
    next(stream)
    with pytest.raises(InputError, match=r"^the text ends in the middle of a word\.$"):
        next(stream)
    stream.close()


# --- the command --------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no SIGKILL")
def test_a_run_that_is_killed_and_stopped_ends_like_the_run_that_was_left_alone(tmp_path, capsys):
    """Killed by SIGKILL while a snapshot is written or just after one, and at the end; in between
    Ctrl-C."""
    text = tmp_path / "text.txt"
    lines = [f"The boat {i} left the town.\nIt was {i % 7} years old." for i in range(200)]
    text.write_text("\n\n".join(lines), encoding="utf-8")
    steps = 40
    given = ["pretrain", "--batch-size", "2", "--max-length", "24", "--vocab-size", "80"]
    given += ["--corpus", str(text), "--steps", str(steps), "--output"]
    said, state = tmp_path / "said", tmp_path / "hunted.training"
    hunted = [*given, str(tmp_path / "hunted")]

    def again() -> list[str]:
        return [*hunted, *["--resume"] * state.exists()]

    assert main([*given, str(tmp_path / "calm")]) == 0
    for step, delay in ((12, 0.05), (steps, 0.0)):
        process = started(said, command, *again())
        until_step(step, state, process)
        time.sleep(delay)
        if step == 12:
            os.kill(process.pid, signal.SIGSTOP)  # it is still there
            assert main([*hunted, "--resume"]) == 2
            assert "a run is still writing in" in capsys.readouterr().err
        process.kill()
        process.join()
        assert process.exitcode in (-signal.SIGKILL, 0)
        if (tmp_path / "hunted").exists():
            break  # the run was faster than the last of them
        if step == 12:
            code, complaint = stopped(said, state, command, *again(), after=20)
            assert code == 130 and "--resume" in complaint, complaint
            assert main(hunted) == 2
            assert "holds a stopped run" in capsys.readouterr().err
    if state.exists():
        assert main(again()) == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("calm", "hunted")]
    assert weights[0] == weights[1] and metrics(tmp_path / "calm") == metrics(tmp_path / "hunted")
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "said", "calm", "hunted"}
