"""The seven tables of the SpanBERT paper, and their rows compared. Page:
`book/evidence/paper_tables`.

The numbers are those of `data/papers.json`, which quotes the paper. Large models, one training run
of each.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.table import Table

ABLATION = ("SQuAD 2.0", "NewsQA", "TriviaQA", "coreference", "MNLI-m", "QNLI", "GLUE average")
THREE = ("precision", "recall", "F1")
GLUE = (
    "CoLA",
    "SST-2",
    "MRPC F1",
    "MRPC acc.",
    "STS-B Pearson",
    "STS-B Spearman",
    "QQP F1",
    "QQP acc.",
    "MNLI-m",
    "MNLI-mm",
    "QNLI",
    "RTE",
    "average",
)
WIDE = 8  # columns


class PaperTable(NamedTuple):
    """One table: what it asks, on what it was measured, the columns, and for each system its
    numbers, None where the paper gives none."""

    asks: str
    where: str
    columns: tuple[str, ...]
    rows: dict[str, list[float | None]]

    def shown(self) -> Table:
        """As a table for a notebook; one of many columns lies on its side, so that it fits a
        page."""
        lines: list[list[str | float]] = [["", *self.columns]]
        for name, row in self.rows.items():
            lines.append([name, *("–" if value is None else value for value in row)])
        if len(self.columns) > WIDE:
            lines = [list(cells) for cells in zip(*lines, strict=True)]
        return Table([str(title) for title in lines[0]], lines[1:])

    def gain(self, better: str, worse: str, column: str) -> float:
        """How far one row is above another, rounded as the paper prints its numbers. Raises
        InputError where the paper does not give both."""
        index = self.columns.index(column)
        first, second = self.rows[better][index], self.rows[worse][index]
        if first is None or second is None:
            raise InputError(f"the paper gives no {column} for both rows: use another column.")
        return round(first - second, 1)


def paper_table(number: int) -> PaperTable:
    """Table 1 to 7 of the SpanBERT paper. Raises InputError for another number."""
    if number not in TABLES:
        raise InputError(
            f"the paper has no table {number} of results: give one from 1 to {max(TABLES)}."
        )
    asks, where, columns = TABLES[number]
    return PaperTable(asks, where, tuple(columns), ROWS.get(number, rows)(number))


def rows(number: int) -> dict[str, list]:
    """The rows of a table that is quoted under one name."""
    return quoted(f"spanbert_table{number}")


def glue_rows(number: int) -> dict[str, list]:
    """Table 5: quoted row by row, the averages apart."""
    names = {
        "Google BERT": "google_bert",
        "Our BERT": "our_bert",
        "Our BERT-1seq": "our_bert_1seq",
        "SpanBERT": "spanbert",
    }
    averages = quoted("spanbert_table5_averages")
    return {
        name: [value for cell in quoted(f"spanbert_table{number}_{key}") for value in cell]
        + [average]
        for (name, key), average in zip(names.items(), averages, strict=True)
    }


def ablation_rows(number: int) -> dict[str, list]:
    """Table 7: three rows."""
    names = {
        "spans, two sequences, NSP": "2seq_nsp",
        "spans, one sequence": "1seq",
        "… and SBO": "1seq_sbo",
    }
    return {name: quoted(f"spanbert_table{number}_{key}") for name, key in names.items()}


def quoted(key: str) -> Any:
    """A number, or several, from `data/papers.json`."""
    return json.loads(data_path("papers.json").read_text(encoding="utf-8"))[key]["value"]


def pairs(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Names of columns under heads: "MUC F1", …"""
    return [f"{one} {other}" for one in first for other in second]


DEV = "development sets, after half of the training steps"
TABLES = {
    1: (
        "finding answers in a paragraph",
        "test sets",
        pairs(("SQuAD 1.1", "SQuAD 2.0"), ("EM", "F1")),
    ),
    2: (
        "finding answers in other texts",
        "half of the development sets, F1",
        ("NewsQA", "TriviaQA", "SearchQA", "HotpotQA", "Natural Questions", "average"),
    ),
    3: ("coreference", "OntoNotes, test set", (*pairs(("MUC", "B³", "CEAF"), THREE), "average F1")),
    4: ("relations", "TACRED, test set", THREE),
    5: ("sentences and pairs of sentences", "GLUE, test sets", GLUE),
    6: ("what is masked", f"two sequences with NSP, no SBO; {DEV}", ABLATION),
    7: ("one sequence, and SBO", DEV, ABLATION),
}
ROWS = {5: glue_rows, 7: ablation_rows}  # the other tables: `rows`
