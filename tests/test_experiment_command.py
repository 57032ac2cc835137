"""`python -m research`: the list, one new file and one row, and what is
refused."""

import re
import textwrap
from itertools import islice

import pytest

from environment import ROOT
from research import experiments, table
from research.__main__ import main
from spanbert_tutorial.__main__ import COMMANDS
from spanbert_tutorial.__main__ import main as command
from spanbert_tutorial.pretraining import encoded_text
from spanbert_tutorial.pretraining.encoded_text import parts


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    """As it stands there, in one new file and one row; on a few documents, for one step."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^   ```python\n(.*?)^   ```", readme, flags=re.M | re.S)
    (tmp_path / "smaller_batch.py").write_text(textwrap.dedent(code), encoding="utf-8")
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    row = table.Row("what does a smaller batch cost?", 20)
    monkeypatch.setitem(table.EXPERIMENTS, "smaller_batch", row)
    monkeypatch.setattr(encoded_text, "parts", lambda *given: islice(parts(*given), 20))
    output = tmp_path / "smaller.csv"
    words = ["smaller_batch", "--steps", "1", "--seeds", "1", "--output", str(output)]
    assert main(words) == 0
    rows = [row.split(",") for row in output.read_text(encoding="utf-8").splitlines()[1:]]
    losses = {row[0]: float(row[-1]) for row in rows if row[5] == "held_out/token/mlm"}
    assert list(losses) == ["8", "16", "32"] and min(losses.values()) > 0


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
        (["plateau"], 'the experiment "plateau" is unknown: use one of '),
        (["token_vs_span", "--seeds", "0"], "--seeds 0 does not fit token_vs_span: leave it out."),
        (["tagging_names", "--steps", "5"], "trains no model: leave it out."),
        (["easy_first"], "the experiment easy_first needs --corpus: give a text file"),
        (["token_vs_span", "--corpus", "x"], "does not use --corpus: leave it out."),
        (["token_vs_span", "--output", "other.csv"], "other.csv holds other rows than those of"),
    ],
)
def test_bad_arguments_get_one_sentence_and_write_nothing(
    tmp_path, monkeypatch, capsys, arguments, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "other.csv").touch()
    before = sorted(tmp_path.rglob("*"))
    assert main([*arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1 and told in said
    assert sorted(tmp_path.rglob("*")) == before


def test_a_stop_says_that_the_same_command_goes_on(tmp_path, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt("Stopped after step 5 of 9")

    monkeypatch.setattr("research.grid.run", stopped)
    assert main(["token_vs_span", "--output", str(tmp_path / "a.csv")]) == 130
    said = capsys.readouterr().err
    assert "the same command continues" in said and "--resume" not in said


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        command([name, "--help"])
    assert end.value.code == 0 and "Traceback" not in capsys.readouterr().out


def test_the_help_names_all_commands(capsys):
    with pytest.raises(SystemExit):
        command(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert all(does in shown for _, does in COMMANDS.values())
