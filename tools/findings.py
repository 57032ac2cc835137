"""Write the page `book/workshop/what_we_found.md` anew from the files of results: python
tools/findings.py"""

from collections.abc import Sequence

from environment import ROOT
from spanbert_tutorial.lab.findings import NULL, SHOWN, SINGLE
from spanbert_tutorial.lab.what_we_found import NO_FINDING, Section, counts, headlines, sections

PAGE = ROOT / "book" / "workshop" / "what_we_found.md"
BEGINS = "## In short"  # what the tool writes
MARKS = {SHOWN: "**shown**", NULL: "*not shown*", SINGLE: "one run"}


def address(page: str) -> str:
    """The link to a page of the book from this one."""
    (file,) = (ROOT / "book").glob(f"{page}.*")
    return f"../{file.relative_to(ROOT / 'book').as_posix()}"


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|").replace("[", "\\[").replace("]", "\\]")


def row_text(cells: Sequence[str]) -> str:
    """A row of a table."""
    return "".join(f"| {cell(text)} " if text else "| " for text in cells) + "|"


def p_text(p: float | None) -> str:
    """A p-value with three digits; nothing where there is none."""
    return "" if p is None else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def section_text(section: Section) -> str:
    """What the page says of one file."""
    report = section.report
    seeds = f"{section.seeds} seeds draw {report.seeds}" if section.seeds else report.seeds
    told = f"{seeds}. Controls: {report.controls}. {report.limits}".replace("[", "\\[").replace(
        "]", "\\]"
    )
    where = (
        f"[{report.page.split('/')[1]}]({address(report.page)}), "
        f"`data/results/{report.name}.json`, "
    )
    lines = section.lines
    titles = ["", "what", "figure", *["p"] * any(line.p is not None for line in lines)]
    rows = [
        [MARKS[line.verdict], line.text, line.figure, p_text(line.p)][: len(titles)]
        for line in lines
    ]
    head = f"### {report.asks[0].upper()}{report.asks[1:]}"
    return "\n".join(
        [
            head,
            "",
            told,
            "",
            f"From {where}made by `{section.content['command']}`.",
            "",
            row_text(titles),
            "|---" * len(titles) + "|",
            *map(row_text, rows),
        ]
    )


def page(head: str, found: Sequence[Section]) -> str:
    """The whole page below its introduction."""
    number = counts(found)
    parts = [head.rstrip(), BEGINS]
    for group, told in headlines(found).items():
        said = (f"- {cell(sentence)} *{cell(line.figure)}*" for sentence, line in told)
        parts += [f"**{group}**", "\n".join(said)]
    parts += [
        "## How many",
        f"{len(found)} files of results hold {sum(number.values())} findings: "
        f"{number[SHOWN]} are shown, {number[NULL]} are not, {number[SINGLE]} rest on one run. "
        "These kept files hold no finding of this kind:",
        "\n".join(f"- `{name}.json`: {why}." for name, why in sorted(NO_FINDING.items())),
    ]
    for part in dict.fromkeys(section.part for section in found):
        parts += [f"## {part}", *(section_text(one) for one in found if one.part == part)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(before.split(f"\n{BEGINS}")[0], list(sections())), encoding="utf-8")
