"""All findings of the book, from its files of results. Page: `book/workshop/what_we_found`, which `tools/findings.py`
writes.

`FOUND` holds the reports by the part of the book; a report without a file is left out, so a new file brings its own
section. `NO_FINDING` names the files that hold no finding, and says why.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.experiments import (
    findings_bert,
    findings_engine,
    findings_relatives,
    findings_spanbert,
    findings_tasks,
)
from spanbert_tutorial.experiments.findings import NULL, SHOWN, SINGLE, Line, Report

FOUND = {
    "Part I: BERT": findings_bert.REPORTS,
    "Part II: SpanBERT": findings_spanbert.REPORTS,
    "Part III: Tasks": findings_tasks.REPORTS,
    "Part IV: Relatives": findings_relatives.REPORTS,
    "Engine and shipped models": findings_engine.REPORTS,
}
NO_FINDING = {
    "live_run": "the recorded run that a chapter repeats",
    "roberta_real": "how two vocabularies cut, and how full inputs are: counts, and nothing that could have come out "
    "otherwise",
}  # fmt: skip


class Section(NamedTuple):
    """A report with the content of its file."""

    part: str
    report: Report
    content: Mapping

    @property
    def lines(self) -> list[Line]:
        """Its findings."""
        return self.report.lines(self.content)

    @property
    def seeds(self) -> int:
        """How many seeds the file has; 0 where nothing is repeated."""
        return len({row.get("seed", row.get("run", {}).get("seed")) for row in self.content.get("rows", [])})


def sections(folder: Path | None = None) -> Iterator[Section]:
    """The reports whose file is there, in the order of the book. folder: of the files, if not the project's own."""
    for part, reports in FOUND.items():
        for report in reports:
            file = (folder or data_path("results")) / f"{report.name}.json"
            if file.is_file():
                yield Section(part, report, json.loads(file.read_text(encoding="utf-8")))


def counts(found: list[Section]) -> dict[str, int]:
    """How many findings there are of each verdict."""
    verdicts = [line.verdict for section in found for line in section.lines]
    return {verdict: verdicts.count(verdict) for verdict in (SHOWN, NULL, SINGLE)}
