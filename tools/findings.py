"""Write the page `book/workshop/what_we_found.md` from the results files: python
tools/findings.py"""

from collections.abc import Sequence

from environment import ROOT
from spanbert_tutorial.lab.findings import NO_FINDING, Section, counts, headlines, sections
from spanbert_tutorial.lab.lines import NULL, SHOWN, SINGLE

PAGE = ROOT / "book" / "workshop" / "what_we_found.md"
BEGINS = "## In short"  # the tool writes from here on
MARKS = {SHOWN: "**shown**", NULL: "*not shown*", SINGLE: "one run"}


def address(page: str) -> str:
    """The link to a page of the book from this one."""
    (file,) = (ROOT / "book").glob(f"{page}.*")
    return f"../{file.relative_to(ROOT / 'book').as_posix()}"


def brackets(text: str) -> str:
    """Text whose brackets make no link."""
    return text.replace("[", "\\[").replace("]", "\\]")


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return brackets(text.replace("|", "\\|"))


def row_text(cells: Sequence[str]) -> str:
    """A row of a table."""
    return "".join(f"| {cell(text)} " if text else "| " for text in cells) + "|"


def p_text(p: float | None) -> str:
    """A p-value with three digits; nothing where there is none."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"


def section_text(section: Section) -> str:
    """One results file: its question, its controls, and its findings in a table."""
    report = section.report
    seeds = f"{section.seeds} seeds draw {report.seeds}" if section.seeds else report.seeds
    chapter = f"[{report.page.split('/')[1]}]({address(report.page)})"
    command = section.content["command"]
    lines = section.lines
    titles = ["", "what", "figure"]
    if any(line.p is not None for line in lines):
        titles.append("p")
    rows = [[MARKS[line.verdict], line.text, line.figure, p_text(line.p)] for line in lines]
    return "\n".join(
        [
            f"### {report.question[0].upper()}{report.question[1:]}",
            "",
            brackets(f"{seeds}. Controls: {report.controls}. {report.limits}"),
            "",
            f"From {chapter}, `data/results/{report.name}.json`, made by `{command}`.",
            "",
            row_text(titles),
            "|---" * len(titles) + "|",
            *(row_text(row[: len(titles)]) for row in rows),
        ]
    )


def page(head: str, found: Sequence[Section]) -> str:
    """The whole page; head: its introduction."""
    number = counts(found)
    parts = [head.rstrip(), BEGINS]
    for group, sentences in headlines(found).items():
        points = [f"- {cell(sentence)} *{cell(line.figure)}*" for sentence, line in sentences]
        parts += [f"**{group}**", "\n".join(points)]
    parts += [
        "## How many",
        f"{len(found)} files of results hold {sum(number.values())} findings: "
        f"{number[SHOWN]} are shown, {number[NULL]} are not, {number[SINGLE]} rest on one run. "
        "These kept files hold no finding of this kind:",
        "\n".join(f"- `{name}.json`: {why}." for name, why in sorted(NO_FINDING.items())),
    ]
    for part in dict.fromkeys(section.report.part for section in found):
        texts = [section_text(section) for section in found if section.report.part == part]
        parts += [f"## {part}", *texts]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(before.split(f"\n{BEGINS}")[0], list(sections())), encoding="utf-8")
