"""All findings of the book, one line each, worked out from its results files. Pages:
`book/workshop/what_we_found` and `book/evidence/all_findings`, which `tools/findings.py` writes.

`comparisons` lists what each experiment compares over seeds, `single_runs` what is measured without
seeds, and `findings.toml` has the words of the page. A report without a results file is left out.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from research.comparisons import Families, families_of
from research.lines import NULL, SHOWN, SINGLE, Line, lines_of
from research.single_runs import SINGLE_RUNS
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError

WORDS = tomllib.loads(Path(__file__).with_name("findings.toml").read_text(encoding="utf-8"))


class Report(NamedTuple):
    """An experiment in words. name: of the experiment and its results file; page: where it is
    told; seeds: what a seed draws."""

    name: str
    question: str
    page: str
    seeds: str
    controls: str
    limits: str

    def families(self, content: Mapping) -> Families:
        """Its comparisons over seeds, by the question that they answer."""
        return families_of(self.name, content)

    def lines(self, content: Mapping) -> list[Line]:
        """All findings of its results file."""
        compared = [line for family in self.families(content) for line in lines_of(family)]
        single = SINGLE_RUNS[self.name](content) if self.name in SINGLE_RUNS else ()
        return [*compared, *single]


class Headline(NamedTuple):
    """A sentence, and the line of a report that it rests on."""

    group: str
    sentence: str
    report: str
    line: str


REPORTS = [Report(**row) for row in WORDS["reports"]]
HEADLINES = [Headline(**row) for row in WORDS["headlines"]]
NO_FINDING: Mapping[str, str] = WORDS["no_finding"]


class Section(NamedTuple):
    """A report with the content of its results file."""

    report: Report
    content: Mapping

    @property
    def lines(self) -> list[Line]:
        """Its findings."""
        return self.report.lines(self.content)

    @property
    def seeds(self) -> int:
        """How many seeds the file has; 0 where nothing is repeated."""
        rows = self.content.get("rows", [])
        return len({row.get("seed", row.get("run", {}).get("seed")) for row in rows})


def sections(folder: Path | None = None) -> Iterator[Section]:
    """The reports that have a results file, in the order of the pages. folder: of the files, if not
    the project's own."""
    for report in REPORTS:
        file = (folder or data_path("results")) / f"{report.name}.json"
        if file.is_file():
            yield Section(report, json.loads(file.read_text(encoding="utf-8")))


def headlines(sections: Sequence[Section]) -> dict[str, list[tuple[str, Line]]]:
    """Group → each sentence with the line that it rests on. Raises InputError for a line that is
    gone: then the sentence no longer holds."""
    lines = {
        (section.report.name, line.text): line for section in sections for line in section.lines
    }
    groups: dict[str, list[tuple[str, Line]]] = {}
    for headline in HEADLINES:
        if (headline.report, headline.line) not in lines:
            raise InputError(
                f"the files no longer say “{headline.line}”: check “{headline.sentence}” again."
            )
        line = lines[headline.report, headline.line]
        groups.setdefault(headline.group, []).append((headline.sentence, line))
    return groups


def counts(sections: Sequence[Section]) -> dict[str, int]:
    """How many findings there are of each verdict."""
    verdicts = Counter(line.verdict for section in sections for line in section.lines)
    return {verdict: verdicts[verdict] for verdict in (SHOWN, NULL, SINGLE)}
