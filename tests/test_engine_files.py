"""What is written is there whole or not at all."""

import json
import os

import pytest

from spanbert_tutorial.engine import files
from spanbert_tutorial.engine.files import (
    hidden_prefix,
    whole_file,
    whole_folder,
    write_json,
    write_text,
)


def test_a_file_is_written_and_nothing_beside_it(tmp_path):
    write_text(tmp_path / "a.txt", "é\n")
    write_text(tmp_path / "a.txt", "new é\n")
    write_json(str(tmp_path / "b.json"), {"x": [1, "é"]})
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "new é\n"
    assert (tmp_path / "b.json").read_text(
        encoding="utf-8"
    ) == '{\n "x": [\n  1,\n  "\\u00e9"\n ]\n}\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.json"]


@pytest.mark.parametrize("moment", ["writing", "forcing", "renaming"])
def test_what_fails_leaves_what_was_there(tmp_path, monkeypatch, moment):
    file = tmp_path / "a.json"
    folder = tmp_path / "made"
    write_json(file, 1)

    def no_room(*anything):
        raise OSError(28, "No space left on device")

    if moment != "writing":
        monkeypatch.setattr(files.os, {"forcing": "fsync", "renaming": "replace"}[moment], no_room)
    with pytest.raises(OSError, match="No space"), whole_file(file) as part:
        part.write_text("half", encoding="utf-8")
        if moment == "writing":
            no_room()
    with pytest.raises(OSError, match="No space"), whole_folder(folder) as part:
        (part / "one").write_text("half", encoding="utf-8")
        if moment == "writing":
            no_room()
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert json.loads(file.read_text(encoding="utf-8")) == 1


def test_all_of_it_is_on_the_disk_before_the_name_and_the_name_after(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(files, "force_to_disk", lambda path: told.append(path.name))
    replace = os.replace
    monkeypatch.setattr(
        files.os, "replace", lambda *names: (told.append("rename"), replace(*names))
    )
    with whole_folder(tmp_path / "made") as part:
        (part / "inside").mkdir()
        (part / "inside" / "file").touch()
    assert sorted(told[:2]) == ["file", "inside"]
    assert told[2:] == ["made", "rename", tmp_path.name]


def test_what_killed_writers_left_goes_and_nothing_of_anybody_else(tmp_path):
    """Names that look like parts, but that somebody else gave, stay."""
    for name in ("a.json", "made"):
        (tmp_path / f"{hidden_prefix(tmp_path / name)}x").mkdir()
    other = f"{hidden_prefix(tmp_path / 'other')}x"
    others = ["a.json.part", ".a.json.1.part", ".made.1.part", other]
    for name in others:
        (tmp_path / name).write_text("mine", encoding="utf-8")
    write_json(tmp_path / "a.json", 1)
    with whole_folder(tmp_path / "made"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "a.json", "made"])
