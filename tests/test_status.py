"""The status page: what is kept of a run of the tests, and what the page says of it and of the kept
results."""

import json

import pytest

import status
from conftest import chapter_seconds
from environment import ROOT

COUNTS = {
    "passed": 4100,
    "failed": 0,
    "real_data_passed": 0,
    "deselected": {"real_data": 12, "browser": 0},
    "minutes": 18,
    "seconds": {"bert/masking": 21.3},
}
FUZZ = {
    "command": "make fuzz",
    "doors": {
        "corpora": {"inputs": 1500, "findings": 0},
        "command line": {"inputs": 2500, "findings": 1},
    },
    "inputs": 4000,
    "findings": 1,
}
README = "| [Masking](book/bert/masking.ipynb) | 15 % | `masking` | CPU | 30 |\n"
RESULT = {
    "command": "python -m spanbert_tutorial experiment some --output FILE --seeds 3",
    "surroundings": {"device": "CPU", "torch": "2.13.0"},
}


@pytest.fixture
def book(tmp_path):
    """A repository with one result and one chapter."""
    (tmp_path / "data" / "results").mkdir(parents=True)
    (tmp_path / "data" / "results" / "some.json").write_text(json.dumps(RESULT))
    (tmp_path / "README.md").write_text(README)
    return tmp_path


def test_before_anything_is_kept_the_page_has_the_results_only(book):
    page = status.sections(book)
    assert page.count("## ") == 1 and page.startswith("## Results")
    assert f"| `some` | – | `{RESULT['command']}` | CPU, torch 2.13.0 |" in page


def test_the_page_says_what_was_kept(book):
    kept = status.keep(COUNTS, book)
    assert kept["date"][:2] == "20" and kept["results"] == {"some": ""}  # no repository around it
    kept = kept | {"date": "2026-11-23", "results": {"some": "2026-11-22"}}
    (book / "data" / "status.json").write_text(json.dumps(kept))
    (book / "data" / "results" / "fuzz.json").write_text(json.dumps(FUZZ))
    page = status.sections(book)
    assert (
        "`make test` of 2026-11-23: 4,100 checks passed, none failed, 12 did not apply on that "
        "machine" in page
    )
    assert "| [Masking](../bert/masking.ipynb) | 30 | 21 |" in page
    assert "| command line | 2,500 | 1 |" in page and "| **all** | **4,000** | **1** |" in page
    assert "| `some` | 2026-11-22 | " in page and "| `fuzz` | " in page and "| torch | " in page
    assert page.index("## Hostile inputs") < page.index("## Results")


def test_a_failed_run_is_not_hidden(book):
    kept = status.keep(COUNTS | {"failed": 3}, book)
    assert "**3 failed**" in status.checks(kept)


def test_every_kept_result_has_its_command_on_the_page():
    page = status.results({"results": {}}, ROOT / "data" / "results")
    assert page.count("\n| `") == len(list((ROOT / "data" / "results").glob("*.json")))
    assert "/tmp" not in page and "| `` |" not in page


def test_the_readme_states_the_seconds_of_every_chapter():
    stated = status.STATED.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(stated) > 20
    assert all((ROOT / "book" / f"{page}.ipynb").is_file() for _, page, _ in stated)


def test_seconds_are_summed_over_the_cells_of_a_chapter():
    class Report:
        def __init__(self, nodeid, duration):
            self.nodeid = nodeid
            self.duration = duration

    cell = "book/bert/masking.ipynb::ipynb::Cell"
    cells = [
        Report(f"{cell} 0", 1.25),
        Report(f"{cell} 1", 2),
        Report("tests/test_masking.py::test_one", 5),
        object(),
    ]
    assert chapter_seconds(cells) == {"bert/masking": 3.2}
