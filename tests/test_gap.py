"""GAP: its files, its score by hand, and guesses that learn nothing."""

import lzma

import pytest

from research.measurements import gap
from research.measurements import span_tasks_coreference as task
from spanbert_tutorial.tasks import coreference

TEXT = "Ann Hill met Nora Lund before she left. Hill was early."
LINE = [
    "made-1",
    TEXT,
    "she",
    "30",
    "Ann Hill",
    "0",
    "FALSE",
    "Nora Lund",
    "13",
    "TRUE",
    "http://example.org/a",
]


HEADER = "ID Text Pronoun Pronoun-offset A A-offset A-coref B B-offset B-coref URL".split()


def test_rows_are_read(tmp_path):
    file = tmp_path / "rows.tsv"
    file.write_text("\n".join(map("\t".join, (HEADER, LINE))) + "\n", encoding="utf-8")
    (row,) = gap.read(file)
    assert row == gap.Row(
        "made-1", TEXT, ("she", 30), (("Ann Hill", 0), ("Nora Lund", 13)), (False, True)
    )
    assert row.gender == "feminine"
    packed = file.with_suffix(".tsv.xz")
    packed.write_bytes(lzma.compress(file.read_bytes()))
    assert gap.read(packed) == [row]


def made(pronoun, right):
    return gap.Row("x", TEXT, (pronoun, 30), (("Ann Hill", 0), ("Nora Lund", 13)), right)


def test_the_score_by_hand():
    """Masculine: 1 right of 2 said, 1 of 2 found. Feminine: 1 of 1 said, 1 of 1 found. Together 2
    of 3 and 2 of 3."""
    rights = {
        "he": (True, False),
        "His": (False, True),
        "her": (True, False),
        "she": (False, False),
    }
    rows = [made(pronoun, right) for pronoun, right in rights.items()]
    found = gap.score(rows, [(True, True), (False, False), (True, False), (False, False)])
    assert found == pytest.approx({"f1": 200 / 3, "masculine": 50, "feminine": 100, "bias": 2})
    nothing = gap.score(rows, [(False, False)] * 4)
    assert nothing == {"f1": 0, "masculine": 0, "feminine": 0, "bias": 0}


def test_clusters_answer():
    row = made("she", (False, True))
    document = coreference.plain(TEXT)
    she = (6, 6)
    nora = (3, 4)
    ann = (0, 1)
    assert document.text(she) == "she" and document.text(nora) == "Nora Lund"
    assert task.answer(row, document.offsets, [[nora, she], [ann]]) == (False, True)
    # "Lund" lies inside the name
    assert task.answer(row, document.offsets, [[(4, 4), she]]) == (False, True)
    assert task.answer(row, document.offsets, [[(2, 4), she]]) == (
        False,
        False,
    )  # "met Nora Lund" does not
    assert task.answer(row, document.offsets, [[nora, ann]]) == (False, False)
    assert task.answer(row, document.offsets, [[nora, ann, she]]) == (True, True)
