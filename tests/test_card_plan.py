"""The plan for a graphics card, rehearsed on the CPU with toy sizes: what travels comes back equal, a
kill at any moment loses nothing that was finished, and a second call does what is left."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import card_plan
from card_plan import TOY, OutOfTime, Runs, Volumes, Watch, collect, pack, unpack
from environment import ROOT
from spanbert_tutorial.engine import files
from spanbert_tutorial.engine.files import data_path, write_json
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.encoded_text import open_text, reopen_text

MIB = 2**20


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """An encoded text of 120 short documents."""
    folder = tmp_path_factory.mktemp("text")
    rng = np.random.default_rng(0)
    words = "the old mill by the river sells bread on market day".split()
    sentences = [" ".join(rng.choice(words, 12)) + "." for _ in range(720)]
    documents = ["\n".join(sentences[at : at + 6]) for at in range(0, 720, 6)]
    (folder / "text.txt").write_text("\n\n".join(documents), encoding="utf-8")
    open_text(str(folder / "text.txt"), folder / "encoded", vocab_size=200)
    return folder / "encoded"


# A text that travels, and weights that come back.


def test_a_packed_text_comes_back_equal(text, tmp_path):
    size = pack(text, tmp_path / "packed")
    assert size == sum(file.stat().st_size for file in (tmp_path / "packed").iterdir())
    unpack(tmp_path / "packed", tmp_path / "again")
    before, after = reopen_text(text), reopen_text(tmp_path / "again")
    assert after.wordpiece.vocabulary == before.wordpiece.vocabulary
    for name in ("train", "held_out"):
        one, other = getattr(before, name), getattr(after, name)
        assert one.ids.dtype == other.ids.dtype
        for array in ("ids", "sentence_ends", "document_ends"):
            assert np.array_equal(getattr(one, array), getattr(other, array)), array


def test_a_part_of_a_text_ends_with_a_document(text, tmp_path):
    pack(text, tmp_path / "packed", most=3_000)
    unpack(tmp_path / "packed", tmp_path / "again")
    whole, part = reopen_text(text).train, reopen_text(tmp_path / "again").train
    assert 2_500 < len(part.ids) <= 3_000 and len(part.ids) in whole.document_ends
    assert part.sentence_ends[-1] == part.document_ends[-1] == len(part.ids)
    assert np.array_equal(part.ids, whole.ids[: len(part.ids)])


def test_what_cannot_travel_is_refused_and_nothing_is_left(text, tmp_path):
    with pytest.raises(InputError, match="over 0: take less of it by --tokens"):
        pack(text, tmp_path / "packed", largest=1_000)
    with pytest.raises(InputError, match="longer than 5 tokens"):
        pack(text, tmp_path / "packed", most=5)
    with pytest.raises(InputError, match="no encoded text"):
        pack(tmp_path, tmp_path / "packed")
    pack(text, tmp_path / "packed")
    file = tmp_path / "packed" / "train.ids.0.xz"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match="no whole packed text"):
        unpack(tmp_path / "packed", tmp_path / "again")
    facts = json.loads((tmp_path / "packed" / "packed.json").read_text(encoding="utf-8"))
    facts["train"]["fingerprint"] = "0" * 16
    write_json(tmp_path / "packed" / "packed.json", facts)
    file.write_bytes(card_plan.packed(reopen_text(text).train.ids))
    with pytest.raises(InputError, match="is broken: copy it again"):
        unpack(tmp_path / "packed", tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir()] == ["packed"]


def test_volumes_hold_what_was_put_into_them(tmp_path):
    rng = np.random.default_rng(0)
    contents = [rng.bytes(int(size)) for size in (70, 30, 100, 1, 149)]
    volumes = Volumes(tmp_path, size=100, most=4)
    began = [volumes.append(content) for content in contents]
    assert began == [0, 70, 100, 200, 201] and volumes.used == 350
    assert [volumes.read(at, len(c)) for at, c in zip(began, contents, strict=True)] == contents
    assert [path.stat().st_size for path in sorted(tmp_path.iterdir())] == [100, 100, 100, 50]
    assert volumes.room(50) and not volumes.room(51)
    # what lies behind the bytes that count is of a run that was cut off
    again = Volumes(tmp_path, used=200, size=100, most=4)
    assert again.append(b"new") == 200 and again.read(200, 3) == b"new"
    assert again.read(100, 100) == contents[2]


def test_the_output_stays_within_eight_files_of_16_mib():
    assert card_plan.VOLUME <= 16 * MIB and card_plan.VOLUMES + len(card_plan.PARTS) == 8
    mini = data_path("checkpoints", "bert-mini") / "model.safetensors"
    assert card_plan.VOLUME * card_plan.VOLUMES > 7 * mini.stat().st_size  # seven models come back


# The runs.


def toy_runs(output, text):
    output.mkdir(exist_ok=True)
    return Runs(output, TOY, text, None)


def later():
    return time.monotonic() + 600


def test_arms_and_seeds_are_trained_and_collected(text, tmp_path):
    output = tmp_path / "out"
    assert toy_runs(output, text).work(["mlm", "mix"], [1, 2], later())
    rows = json.loads((output / "runs.json").read_text(encoding="utf-8"))["rows"]
    assert [(row["arm"], row["seed"]) for row in rows] == [
        ("mlm", 1),
        ("mix", 1),
        ("mlm", 2),
        ("mix", 2),
    ]
    for row in rows:
        assert row["steps"] == TOY.steps and 0 < row["tokens"] <= 3 * 4 * 16
        assert 0 < row["held_out"]["token"]["mlm"] < 10 and row["curve"]["mlm"][0] > 0
    names = collect(output, tmp_path / "models")
    assert names == ["mlm-1", "mix-1", "mlm-2", "mix-2"]
    one, other = (load_checkpoint(tmp_path / "models" / name)[0] for name in ("mlm-1", "mlm-2"))
    assert not torch.equal(*(m.masked_language_model.dense.weight for m in (one, other)))
    stored = tmp_path / "models" / "mix-1" / "model.safetensors"
    assert stored.stat().st_size < 2.1 * sum(
        weight.numel() for weight in load_checkpoint(stored.parent)[0].parameters()
    )  # half precision
    assert toy_runs(output, text).left(["mlm", "mix"], [1, 2]) == []


def test_it_goes_on_from_a_checkpoint(text, tmp_path):
    output = tmp_path / "out"
    toy_runs(output, text).work(["mlm"], [1], later())
    collect(output, tmp_path / "models")
    start = tmp_path / "models" / "mlm-1"
    more = tmp_path / "more"
    more.mkdir()
    assert Runs(more, TOY, text, start).work(["span+sbo"], [1], later())
    with pytest.raises(InputError, match="runs with other start"):
        Runs(more, TOY, text, None)
    with pytest.raises(InputError, match="runs with other settings"):
        Runs(more, card_plan.Settings(), text, start)


def test_a_run_that_would_not_end_in_time_is_not_begun(text, tmp_path, capsys):
    output = tmp_path / "out"
    assert not toy_runs(output, text).work(["mlm"], [1], time.monotonic() - 1)
    assert "no time for mlm, seed 1" in capsys.readouterr().out
    assert list(output.iterdir()) == []
    batch = {"attention_mask": torch.ones(2, 3)}
    watch = Watch(10**9, time.monotonic() + 1, warm=2, sample=3)
    with pytest.raises(OutOfTime, match="it needs"):
        for _ in watch.over([batch] * 100):
            time.sleep(0.002)
    assert watch.seen == 5 and watch.tokens == 30
    with pytest.raises(OutOfTime, match="stopped before step 1 of 4"):
        list(Watch(4, time.monotonic() - 1).over([batch]))


def test_weights_without_room_leave_the_losses(text, tmp_path, capsys):
    runs = toy_runs(tmp_path / "out", text)
    runs.volumes.most = 0
    assert runs.work(["mlm"], [1], later())
    assert "no room for the weights of mlm-1" in capsys.readouterr().out
    assert collect(tmp_path / "out", tmp_path / "models") == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows cannot fork")
def test_a_kill_at_any_moment_loses_nothing_that_was_finished(text, tmp_path, monkeypatch):
    """Killed, in a copy of this process, before the n-th file takes its place: of a run the weights
    come first, then its row."""
    output = tmp_path / "out"
    output.mkdir()
    put = files.put_in_place
    placed = []

    def put_and_count(part, target):
        placed.extend([target] if target.parent == output else [])
        if len(placed) == deadly:
            os._exit(9)
        put(part, target)

    monkeypatch.setattr(files, "put_in_place", put_and_count)
    done = []
    for deadly, rows in ((1, 0), (2, 0), (3, 1), (2, 1), (4, 2)):
        child = os.fork()
        if child == 0:
            toy_runs(output, text).work(["mlm", "span"], [1, 2], later())
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        if rows:
            found = json.loads((output / "runs.json").read_text(encoding="utf-8"))["rows"]
            assert found[: len(done)] == done and len(found) == rows
            done = found
            collect(output, tmp_path / f"models, {deadly}, {rows}")  # the sums of all are right
    deadly = None
    assert toy_runs(output, text).work(["mlm", "span"], [1, 2], later())
    assert len(collect(output, tmp_path / "models")) == 4


# The plan.


def planned(*words):
    return card_plan.arguments(["run", *map(str, words)])


def test_only_what_is_due_is_begun(text, tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    asked = planned("--output", output, "--text", text, "--toy")
    assert list(card_plan.commands(asked, tmp_path)) == ["benchmark", "check", "runs"]
    write_json(output / "benchmark.json", {"finished": True})
    write_json(output / "check.json", {"finished": False})  # it was cut off
    assert list(card_plan.commands(asked, tmp_path)) == ["check", "runs"]
    asked = planned("--output", output, "--parts", "benchmark,runs")
    assert card_plan.commands(asked, tmp_path) == {}  # there is no text


def test_parts_get_their_time_and_are_stopped(tmp_path, monkeypatch, capsys):
    """One part ends, one fails, one never ends: the plan ends in time all the same."""
    programs = {
        "benchmark": ["-c", "pass"],
        "check": ["-c", "raise SystemExit(3)"],
        "runs": ["-c", "import time; time.sleep(600)"],
    }
    monkeypatch.setattr(card_plan, "commands", lambda asked, scratch: dict(programs))
    monkeypatch.setattr(card_plan, "SPARE", 1)
    monkeypatch.setattr(card_plan.signal, "signal", lambda *_: None)
    output = tmp_path / "out"
    output.mkdir()
    (output / ".spanbert-0-1.part").write_text("half")
    began = time.monotonic()
    assert card_plan.run_plan(planned("--output", output, "--minutes", 0.1)) == 1
    assert time.monotonic() - began < 20
    said = capsys.readouterr().out
    assert "benchmark: ended with the status 0" in said and "check: ended with the status 3" in said
    assert "runs: stopped, its time was over" in said and "Something is left" in said
    assert list(output.iterdir()) == []


def test_the_command_line(text, tmp_path):
    """A relative path means the same to the parts; bad input is one sentence."""
    command = [sys.executable, str(ROOT / "tools/card_plan.py")]
    result = subprocess.run(
        [*command, "run", "--output", "out", "--toy", "--parts", "runs", "--seeds", "1"]
        + ["--arms", "mlm", "--text", os.path.relpath(text, tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["runs.json", "weights.0"]
    wrong = subprocess.run(
        [*command, "collect", ".", "x"], cwd=tmp_path, capture_output=True, text=True
    )
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1
    assert "no run was finished" in wrong.stderr
