"""The package as others meet it: a quick import, its public names, its metadata, its command."""

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

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
    loaded = loaded_by("import spanbert_tutorial")
    assert "spanbert_tutorial" in loaded
    assert not loaded & {"torch", "transformers", "numpy", "datasets", "matplotlib"}


def test_a_public_name_loads_what_it_needs():
    assert "torch" in loaded_by("from spanbert_tutorial import BertEncoder")


@pytest.mark.parametrize("name", spanbert_tutorial.__all__)
def test_every_public_name_resolves(name):
    value = getattr(spanbert_tutorial, name)
    assert value is getattr(spanbert_tutorial, name)
    assert getattr(value, "__doc__", None)
    assert value.__name__.rpartition(".")[2] == name


def test_public_names_are_listed_once():
    names = spanbert_tutorial.__all__
    assert len(names) == len(set(names))
    assert set(names) <= set(dir(spanbert_tutorial))
    assert "__version__" in dir(spanbert_tutorial)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'SpanBert'"):
        spanbert_tutorial.SpanBert  # noqa: B018
    with pytest.raises(ImportError):
        exec("from spanbert_tutorial import SpanBert")
    assert not hasattr(spanbert_tutorial, "boundary_target")


def test_the_metadata_names_the_command_and_the_extras():
    assert PROJECT["scripts"] == {"spanbert-tutorial": "spanbert_tutorial.__main__:main"}
    assert {"book", "export", "test"} <= set(PROJECT["optional-dependencies"])
    module, _, function = PROJECT["scripts"]["spanbert-tutorial"].partition(":")
    assert module == command_line.__name__ and callable(getattr(command_line, function))


def test_the_package_declares_its_types():
    assert (ROOT / "spanbert_tutorial" / "py.typed").is_file()


def test_the_version_is_the_same_everywhere():
    version = spanbert_tutorial.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert PROJECT["dynamic"] == ["version"]  # read from the package when it is built
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == version


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


def test_python_dash_m_names_itself():
    done = subprocess.run(
        [sys.executable, "-m", "spanbert_tutorial", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.startswith("usage: python -m spanbert_tutorial [-h] COMMAND")
