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
from toy_card import inputs

import card_plan
from card_plan import Kept, Volumes, collect, pack, unpack
from environment import ROOT
from spanbert_tutorial.engine import files
from spanbert_tutorial.engine.files import data_path, write_json
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import continue_from, load_checkpoint
from spanbert_tutorial.pretraining.encoded_text import reopen_text

MIB = 2**20


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Text, start, unseen text, questions."""
    return inputs(tmp_path_factory.mktemp("given"))


# What travels, and what comes back.


def test_what_is_packed_comes_back_equal(given, tmp_path):
    size = pack(*given, tmp_path / "packed")
    packed = [path for path in (tmp_path / "packed").rglob("*") if path.is_file()]
    assert size == sum(path.stat().st_size for path in packed)
    unpack(tmp_path / "packed", tmp_path / "again")
    before, after = reopen_text(given.text), reopen_text(tmp_path / "again" / "text")
    assert after.wordpiece.vocabulary == before.wordpiece.vocabulary
    for name in ("train", "held_out"):
        one, other = getattr(before, name), getattr(after, name)
        assert one.ids.dtype == other.ids.dtype
        for array in ("ids", "sentence_ends", "document_ends"):
            assert np.array_equal(getattr(one, array), getattr(other, array)), array
    for file in given.start.iterdir():
        assert (tmp_path / "again" / "start" / file.name).read_bytes() == file.read_bytes()
    assert (tmp_path / "packed" / "valid.jsonl").read_bytes() == given.valid.read_bytes()
    for file in given.data.iterdir():
        assert (tmp_path / "packed" / "data" / file.name).read_bytes() == file.read_bytes()


def test_a_part_of_a_text_ends_with_a_document(given, tmp_path):
    pack(*given, tmp_path / "packed", most=9_000)
    unpack(tmp_path / "packed", tmp_path / "again")
    whole, part = reopen_text(given.text).train, reopen_text(tmp_path / "again" / "text").train
    assert 7_500 < len(part.ids) <= 9_000 and len(part.ids) in whole.document_ends
    assert part.sentence_ends[-1] == part.document_ends[-1] == len(part.ids)
    assert np.array_equal(part.ids, whole.ids[: len(part.ids)])


def test_what_cannot_travel_is_refused_and_nothing_is_left(given, tmp_path):
    target = tmp_path / "packed"
    with pytest.raises(InputError, match="over 0: take less of the text by --tokens"):
        pack(*given, target, largest=1_000)
    with pytest.raises(InputError, match="longer than 5 tokens"):
        pack(*given, target, most=5)
    with pytest.raises(InputError, match="no encoded text"):
        pack(*given._replace(text=tmp_path), target)
    for field in ("start", "valid", "data"):
        with pytest.raises(InputError, match="is missing"):
            pack(*given._replace(**{field: tmp_path / "nowhere"}), target)
    assert list(tmp_path.iterdir()) == []
    pack(*given, target)
    file = target / "text" / "train.ids.0.xz"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match="is not whole"):
        unpack(target, tmp_path / "again")
    facts = json.loads((target / "text" / "packed.json").read_text(encoding="utf-8"))
    facts["train"]["fingerprint"] = "0" * 16
    write_json(target / "text" / "packed.json", facts)
    file.write_bytes(card_plan.packed(reopen_text(given.text).train.ids))
    with pytest.raises(InputError, match="is broken: copy it again"):
        unpack(target, tmp_path / "again")
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
    tables = ["benchmark.json", "check.json", "answers.json", "weights.json"]
    assert card_plan.VOLUME <= 16 * MIB and card_plan.VOLUMES + len(tables) == 8
    assert card_plan.VOLUME * card_plan.VOLUMES <= 63 * MIB  # all together at most 64
    mini = data_path("checkpoints", "bert-mini") / "model.safetensors"
    assert card_plan.VOLUME * card_plan.VOLUMES > 5 * mini.stat().st_size  # five models come back


def weights_of(given, arm, seed):
    return continue_from(given.start, arm, seed)[0].state_dict()


def keep_all(output, given, names):
    kept = Kept(output, given.start)
    for arm, seed in names:
        kept.keep(arm, seed, weights_of(given, arm, seed))
    return kept


def test_trained_models_are_collected(given, tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    keep_all(output, given, [("span+sbo", 1), ("mix", 2)])
    keep_all(output, given, [("mix", 2), ("span+sbo", 3)])  # a second call, which has one already
    assert collect(output, tmp_path / "models") == ["span-sbo-1", "mix-2", "span-sbo-3"]
    for arm, seed in (("span+sbo", 1), ("mix", 2), ("span+sbo", 3)):
        folder = tmp_path / "models" / f"{arm.replace('+', '-')}-{seed}"
        model, _ = load_checkpoint(folder)
        wanted = weights_of(given, arm, seed)
        for name, weight in model.state_dict().items():
            assert torch.allclose(weight, wanted[name], atol=1e-3), name
        numbers = sum(weight.numel() for weight in model.parameters())
        assert (folder / "model.safetensors").stat().st_size < 2.1 * numbers  # half precision
    with pytest.raises(InputError, match="no run was finished"):
        collect(tmp_path, tmp_path / "more")
    (output / "weights.0").write_bytes((output / "weights.0").read_bytes()[:-9])
    with pytest.raises(InputError, match="weights of span-sbo-3 are broken"):
        collect(output, tmp_path / "more")


def test_weights_without_room_are_left_out(given, tmp_path, capsys):
    kept = Kept(tmp_path, given.start)
    kept.volumes.most = 0
    kept.keep("mlm", 1, weights_of(given, "mlm", 1))
    assert "no room for the weights of mlm-1" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows cannot fork")
def test_a_kill_at_any_moment_loses_nothing_that_was_kept(given, tmp_path, monkeypatch):
    """Killed, in a copy of this process, before the n-th file takes its place: of a model the
    weights come first, then its row."""
    output = tmp_path / "out"
    output.mkdir()
    put = files.put_in_place
    placed = []
    names = [("mlm", 1), ("mix", 1), ("mlm", 2)]

    def put_and_count(part, target):
        placed.extend([target] if target.parent == output else [])
        if len(placed) == deadly:
            os._exit(9)
        put(part, target)

    monkeypatch.setattr(files, "put_in_place", put_and_count)
    for deadly, count in ((1, 0), (2, 0), (3, 1), (2, 1), (4, 2)):
        child = os.fork()
        if child == 0:
            keep_all(output, given, names)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        if count:
            assert len(collect(output, tmp_path / f"models, {deadly}, {count}")) == count
    deadly = None
    keep_all(output, given, names)
    assert collect(output, tmp_path / "models") == ["mlm-1", "mix-1", "mlm-2"]


# The plan.


def planned(*words):
    return card_plan.arguments(["run", *map(str, words)])


def test_only_what_is_due_is_begun(tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    asked = planned("--output", output, "--packed", tmp_path, "--toy")
    assert list(card_plan.commands(asked, tmp_path)) == ["benchmark", "check", "runs"]
    write_json(output / "benchmark.json", {"finished": True})
    write_json(output / "check.json", {"finished": False})  # it was cut off
    assert list(card_plan.commands(asked, tmp_path)) == ["check", "runs"]
    asked = planned("--output", output, "--parts", "benchmark,runs")
    assert card_plan.commands(asked, tmp_path) == {}  # nothing is packed


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


def test_the_command_line(given, tmp_path):
    """A relative path means the same to the parts; bad input is one sentence."""
    command = [sys.executable, str(ROOT / "tools/card_plan.py")]

    def run(*words):
        return subprocess.run(
            [*command, *map(str, words)], cwd=tmp_path, capture_output=True, text=True
        )

    packed = run("pack", *given, "packed")
    assert packed.returncode == 0, packed.stderr
    result = run("run", "--output", "out", "--toy", "--parts", "runs", "--packed", "packed")
    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "answers.json",
        "weights.0",
        "weights.json",
    ]
    found = json.loads((tmp_path / "out" / "answers.json").read_text(encoding="utf-8"))
    assert len(found["rounds"]) == 4
    assert len(collect(tmp_path / "out", tmp_path / "models")) == 16
    wrong = run("collect", ".", "x")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1
    assert "no run was finished" in wrong.stderr
