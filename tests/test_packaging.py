"""The package as others meet it: a quick import, its public names, its metadata, its command."""

import subprocess
import sys
import tomllib

import pytest

import spanbert_tutorial
from environment import ROOT
from spanbert_tutorial import __main__ as command_line

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a new Python process has loaded after a statement."""
    script = f"import sys\n{statement}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_the_import_loads_no_large_library():
    loaded = loaded_by("import spanbert_tutorial") - loaded_by("pass")
    assert "spanbert_tutorial" in loaded
    assert not loaded & {"torch", "transformers", "numpy", "datasets", "matplotlib"}


@pytest.mark.parametrize("name", spanbert_tutorial.__all__)
def test_every_public_name_resolves(name):
    value = getattr(spanbert_tutorial, name)
    assert value is getattr(spanbert_tutorial, name)
    assert getattr(value, "__doc__", None)
    assert value.__name__.rpartition(".")[2] == name


def test_the_metadata_names_the_command_and_the_extras():
    assert PROJECT["scripts"] == {"spanbert-tutorial": "spanbert_tutorial.__main__:main"}
    assert {"book", "export", "test"} <= set(PROJECT["optional-dependencies"])
    module, _, function = PROJECT["scripts"]["spanbert-tutorial"].partition(":")
    assert module == command_line.__name__ and callable(getattr(command_line, function))


@pytest.mark.parametrize(
    "called, program",
    [
        ("/usr/local/bin/spanbert-tutorial", "spanbert-tutorial"),
        ("spanbert-tutorial.exe", "spanbert-tutorial"),
        ("/home/me/spanbert_tutorial/__main__.py", "python -m spanbert_tutorial"),
        ("", "python -m spanbert_tutorial"),
    ],
)
def test_the_help_names_the_program_as_it_was_called(monkeypatch, capsys, called, program):
    monkeypatch.setattr(sys, "argv", [called])
    with pytest.raises(SystemExit):
        command_line.parser().parse_args(["pretrain", "--help"])
    assert capsys.readouterr().out.startswith(f"usage: {program} pretrain [-h]")
    assert command_line.main(["pretrain", "--stepps", "3"]) == 2
    assert f"see {program} --help." in capsys.readouterr().err
