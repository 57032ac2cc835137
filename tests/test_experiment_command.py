"""`python -m research`: the list, one new file and one row, and what is
refused."""

import json
import re
import textwrap
from itertools import islice
from pathlib import Path

import pytest

from environment import ROOT
from research import experiments, table
from research.__main__ import main
from spanbert_tutorial.__main__ import COMMANDS
from spanbert_tutorial.__main__ import main as command
from spanbert_tutorial.pretraining import encoded_text
from spanbert_tutorial.pretraining.encoded_text import parts

TOY = '''"""A toy."""
ARM, ARMS, SEEDS, SETTINGS = "way", ("a", "b"), 2, {}

def prepare(folder, settings, corpus):
    return {"letters": len(corpus.read_text())}, (corpus.read_text(),)

def one(way, seed, settings, text):
    return {"figure": text.count(way) + seed}
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """One new file and one row of the table make an experiment."""
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "toy_letters.py").write_text(TOY, encoding="utf-8")
    (tmp_path / "text").write_text("abba", encoding="utf-8")
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path / "rooms")])
    monkeypatch.setitem(
        table.EXPERIMENTS, "toy_letters", table.Row("letters", 1, {"corpus": "text"})
    )
    monkeypatch.chdir(tmp_path)


def test_one_file_and_one_row_make_an_experiment(toy, capsys):
    assert main(["toy_letters", "--corpus", "text"]) == 0
    kept = json.loads(Path("runs", "toy_letters.json").read_text(encoding="utf-8"))
    assert [row["figure"] for row in kept["rows"]] == [2, 2, 3, 3] and kept["letters"] == 4
    assert (
        main(
            [
                "toy_letters",
                "--corpus",
                "text",
                "--seeds",
                "3",
                "--output",
                "more.json",
            ]
        )
        == 0
    )
    assert "seed 2" in capsys.readouterr().out


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    """As it stands there, in one new file and one row; on a few documents, for one step."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^   ```python\n(.*?)^   ```", readme, flags=re.M | re.S)
    (tmp_path / "smaller_batch.py").write_text(textwrap.dedent(code), encoding="utf-8")
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    monkeypatch.setitem(
        table.EXPERIMENTS, "smaller_batch", table.Row("what does a smaller batch cost?", 20)
    )
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    monkeypatch.setattr(encoded_text, "parts", lambda *given: islice(parts(*given), 20))
    output = tmp_path / "smaller.json"
    assert main(["smaller_batch", "--steps", "1", "--seeds", "1", "--output", str(output)]) == 0
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert (
        [row["batch"] for row in rows] == [8, 16, 32] == [row["run"]["batch_size"] for row in rows]
    )
    assert all(
        len(row["curve"]["mlm"]) == 1 and row["held_out"]["token"]["mlm"] > 0 for row in rows
    )


def test_without_a_name_all_are_listed_with_their_minutes(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, row in table.EXPERIMENTS.items():
        (line,) = [line for line in lines if f" {name}: " in line]
        assert line.split()[0] == str(row.minutes) and row.asks in line
        assert all(f"--{option}" in line for option in row.inputs)


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["token_vs_spam"], 'the experiment "token_vs_spam" is unknown: use one of token_vs_span'),
        (["plateau"], 'the experiment "plateau" is unknown: use one of '),
        (["token_vs_span", "--seeds", "0"], "--seeds is 0: give a number above 0."),
        (
            ["token_vs_span", "--seeds", "-1"],
            "--seeds is -1: give a number above 0.",
        ),
        (
            ["token_vs_span", "--steps", "-1"],
            "--steps is -1: give a number above 0.",
        ),
        (["tagging_names", "--steps", "5"], "does no pre-training: leave it out."),
        (
            ["roberta_real", "--data", ".", "--seeds", "2"],
            "roberta_real measures only once: leave it out.",
        ),
        (["easy_first"], "the experiment easy_first needs --corpus: give a text file"),
        (
            ["token_vs_span", "--corpus", "x"],
            "the experiment token_vs_span does not use --corpus: leave it out.",
        ),
        (["token_vs_span", "--output", "folder"], "folder is a folder: give a file by --output."),
        (
            ["token_vs_span", "--output", "empty"],
            "empty exists and holds no rows of token_vs_span: give another --output.",
        ),
        (
            ["token_vs_span", "--output", "other"],
            "other exists and holds no rows of token_vs_span: give another --output.",
        ),
        (["token_vs_span", "--output", "empty/below"], "cannot be written"),
    ],
)
def test_bad_arguments_get_one_sentence_and_write_nothing(
    tmp_path, monkeypatch, capsys, arguments, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "other").write_text('{"command": "python -m research live_run ", "rows": []}')
    before = sorted(tmp_path.rglob("*"))
    assert main([*arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1 and told in said
    assert sorted(tmp_path.rglob("*")) == before


def test_a_stop_says_that_the_same_command_goes_on(toy, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt("Stopped after step 5 of 9")

    assert main(["toy_letters", "--corpus", "text", "--seeds", "1"]) == 0
    monkeypatch.setattr("research.grid.run", stopped)
    assert main(["toy_letters", "--corpus", "text"]) == 130
    said = capsys.readouterr().err
    assert "the same command continues" in said and "--resume" not in said


@pytest.mark.parametrize("words", [["experiment", "token_vs_span"], ["almanac", "--output", "x"]])
def test_a_command_that_moved_says_where_it_went(words, capsys):
    assert command(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "python -m research" in said


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        command([name, "--help"])
    assert end.value.code == 0 and "Traceback" not in capsys.readouterr().out


def test_the_help_names_all_commands(capsys):
    with pytest.raises(SystemExit):
        command(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert all(command.help in shown for command in COMMANDS.values())
