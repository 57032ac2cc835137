"""Write `book/workshop/what_we_found.md`, the opener of the evidence pages, and
`book/evidence/all_findings.md`, the list of all findings, from the results files: python
tools/findings.py"""

from collections.abc import Sequence

from environment import ROOT
from research.findings import NO_FINDING, Section, counts, headlines, sections
from research.lines import NULL, SHOWN, SINGLE
from road import read_road

BOOK = ROOT / "book"
PAGE = BOOK / "workshop" / "what_we_found.md"
LIST = BOOK / "evidence" / "all_findings.md"
BEGINS = "## In short"  # the tool writes from here on
NAMES = {chapter.page: chapter.name for chapter in read_road(ROOT).chapters}
MARKS = {SHOWN: "**clear**", NULL: "*within noise*", SINGLE: "one run"}


def link(page: str) -> str:
    """A link to a page of the book from one of the two, by its name."""
    (file,) = BOOK.glob(f"{page}.*")
    return f"[{NAMES[page]}](../{file.relative_to(BOOK).as_posix()})"


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
            f"`data/results/{report.name}.json`, made by `{command}`.",
            "",
            row_text(titles),
            "|---" * len(titles) + "|",
            *(row_text(row[: len(titles)]) for row in rows),
        ]
    )


def opener(head: str, found: Sequence[Section]) -> str:
    """The page that opens the evidence; head: its introduction."""
    number = counts(found)
    parts = [head.rstrip(), BEGINS]
    for group, sentences in headlines(found).items():
        points = [f"- {cell(sentence)} *{cell(line.figure)}*" for sentence, line in sentences]
        parts += [f"**{group}**", "\n".join(points)]
    rows = [
        f"| {cell(one.report.question[0].upper() + one.report.question[1:])} "
        f"| {link(one.report.page)} | `{one.report.name}` |"
        for one in found
    ]
    parts += [
        "## The experiments",
        f"{len(found)} files of results hold {sum(number.values())} findings: "
        f"{number[SHOWN]} are clear, {number[NULL]} are within seed noise, {number[SINGLE]} rest on one run. "
        "[All findings](../evidence/all_findings.md) has a line for each of them, and the command "
        "that makes each file.",
        "\n".join(["| question | page | file |", "|---|---|---|", *rows]),
        "These files hold no finding of this kind:",
        "\n".join(f"- `{name}.json`: {why}." for name, why in sorted(NO_FINDING.items())),
    ]
    return "\n\n".join(parts) + "\n"


def listing(found: Sequence[Section]) -> str:
    """The page with all findings, in the order of the evidence pages."""
    parts = [
        "# All findings",
        "A program writes these lines from the files of results. [What we found: How to read a "
        "line](../workshop/what_we_found.md#how-to-read-a-line) explains them.",
    ]
    for page in dict.fromkeys(section.report.page for section in found):
        texts = [section_text(section) for section in found if section.report.page == page]
        parts += [f"## {NAMES[page]}", f"The page: {link(page)}.", *texts]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    found = list(sections())
    head = PAGE.read_text(encoding="utf-8").split(f"\n{BEGINS}")[0]
    PAGE.write_text(opener(head, found), encoding="utf-8")
    LIST.write_text(listing(found), encoding="utf-8")
