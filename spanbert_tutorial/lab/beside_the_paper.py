"""Which experiments ask what a table of the SpanBERT paper asks, and a browser through their
figures. Chapter: `book/tasks/results`.

Differences, intervals and verdicts are those of `findings`: a difference keeps the correction of
its whole family when only a part of the family belongs to a question.
"""

from collections.abc import Callable, Mapping
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spanbert_tutorial.figures.table import Table
from spanbert_tutorial.lab.experiments.span_tasks import MAIN, STARTS, by_start
from spanbert_tutorial.lab.findings import DIGITS, Comparison, Line, corrected, lines_of, with_half
from spanbert_tutorial.lab.findings_spanbert import ANSWERS, CLUSTERS, HIDDEN, LITBANK
from spanbert_tutorial.lab.findings_tasks import TOLD, best_control, complete, task_of
from spanbert_tutorial.lab.measurements.span_tasks_sentences import PLANS
from spanbert_tutorial.lab.paper_tables import paper_table
from spanbert_tutorial.lab.results import Difference
from spanbert_tutorial.lab.what_we_found import Section, sections

Wanted = Callable[[Comparison], bool]
SENTENCES = tuple(told for task, told in TOLD.items() if task in ("sentences", *PLANS))
SHOWS = ("number of each seed", "differences")


def about(*words: str) -> Wanted:
    """Comparisons whose measure has one of these words."""
    return lambda one: any(word in one.measure for word in words)


def with_sbo(one: Comparison) -> bool:
    """Comparisons in which one arm has SBO and the other has not."""
    return "SBO" in f"{one.first} {one.second}" or "sbo" in f"{one.first} {one.second}"


# question → experiment → which of its comparisons ask it
QUESTIONS: Mapping[str, Mapping[str, Wanted]] = {
    "answers (Table 1)": {"squad_real": about(""), "almanac_answers": about("")},
    "coreference (Table 3)": {
        "span_tasks": about("LitBank", "GAP"),
        "almanac_coreference": about(""),
    },
    "relations (Table 4)": {"span_tasks": about(TOLD["relations"]), "relation_markers": about("")},
    "sentences (Table 5)": {"span_tasks": about(*SENTENCES)},
    "what is hidden (Table 6)": {
        "token_vs_span": lambda one: not with_sbo(one),
        "spans_and_boundaries": lambda one: not with_sbo(one),
        "ways_of_hiding": lambda one: "pairs" not in (one.first, one.second),
        "spans_on_wikipedia": lambda one: not with_sbo(one),
    },
    "one sequence (Table 7)": {
        "pairs_vs_single": about("held-out loss"),
        "ways_of_hiding": lambda one: "pairs" in (one.first, one.second),
    },
    "SBO (Table 7)": {
        "boundary_probe": about(""),
        "token_vs_span": with_sbo,
        "spans_and_boundaries": with_sbo,
        "spans_on_wikipedia": with_sbo,
    },
}


class Asked(NamedTuple):
    """One experiment that asks a question, with its comparisons and what came out of each."""

    section: Section
    found: list[tuple[Comparison, Line]]


def asked(question: str, folder: Path | None = None) -> list[Asked]:
    """The experiments of a question whose files are there. folder: of the files, if not the
    project's own."""
    there = {section.report.name: section for section in sections(folder)}
    result = []
    for name, wanted in QUESTIONS[question].items():
        if name in there:
            section = there[name]
            both = [
                pair
                for family in section.report.families(section.content)
                for pair in zip(family, lines_of(family), strict=True)
                if wanted(pair[0])
            ]
            result += [Asked(section, both)] if both else []
    return result


def questions(folder: Path | None = None) -> list[str]:
    """Those that at least one file answers."""
    return [question for question in QUESTIONS if asked(question, folder)]


class Sign(NamedTuple):
    """A difference of the paper beside one of ours that asks the same: a table of the paper, two of
    its rows and a column; and an experiment, two of its arms and a measure. The first is the later
    system on both sides."""

    asks: str
    table: int
    rows: tuple[str, str]
    column: str
    name: str
    arms: tuple[str, str]
    measure: str

    def line(self, there: Mapping[str, Section]) -> list[str] | None:
        """What the paper has, what we have, the sign that was written down before our runs, and
        whether the signs agree; None without a file of results. Above 0 the later system is better,
        also where a measure is a loss."""
        found = difference(there, self.name, self.arms, self.measure)
        if found is None:
            return None
        one, gap = found
        gain = -gap.mean if one.low else gap.mean
        paper = paper_table(self.table).gain(*self.rows, self.column)
        verdict = (
            ("the same" if (gain > 0) == (paper > 0) else "opposite") if gap.shown else "not shown"
        )
        return [
            self.asks,
            f"{self.column}: {f'{paper:+.1f}'.replace('-', '−')}",
            f"{self.measure}: {with_half(gain, gap.half, one.unit, signed=True)}",
            {True: "+", False: "−", None: ""}[one.expected],
            verdict,
        ]


def difference(
    there: Mapping[str, Section], name: str, arms: tuple[str, str], measure: str
) -> tuple[Comparison, Difference] | None:
    """One comparison with its difference, corrected for its family; None where it was not
    measured."""
    families = there[name].report.families(there[name].content) if name in there else []
    for comparisons in families:
        for one in comparisons:
            if (one.first, one.second, one.measure) == (*arms, measure):
                return one, corrected(comparisons)[comparisons.index(one)]
    return None


TWINS = ("spanbert-mini", "bert-mini")
PAPER = ("SpanBERT", "Our BERT")
GLUE = {"sst2": "SST-2", "cola": "CoLA", "rte": "RTE", "mrpc": "MRPC acc.", "stsb": "STS-B Pearson"}
SPANS = ("geometric spans", "sub-word tokens")
SBO = ("… and SBO", "spans, one sequence")
SCRATCH = ("span masking", "token masking")
SPANS_HIDDEN, TOKENS_HIDDEN = (f"held-out loss, {HIDDEN[way]}" for way in ("span", "token"))
WIKIPEDIA = (("SQuAD 2.0", SPANS_HIDDEN), ("SQuAD 2.0", TOKENS_HIDDEN), ("coreference", LITBANK))
LATE = (
    ("SQuAD 2.0", SPANS_HIDDEN),
    ("SQuAD 2.0", TOKENS_HIDDEN),
    ("SQuAD 2.0", ANSWERS),
    ("coreference", CLUSTERS),
)
ONE_SEQUENCE = ("spans, one sequence", "spans, two sequences, NSP")
UNITS = {"words": "whole words", "entities": "named entities", "noun phrases": "noun phrases"}
SIGNS = (
    Sign("SpanBERT against BERT", 1, PAPER, "SQuAD 1.1 F1", "squad_real", TWINS, "SQuAD 1.1, F1"),
    Sign("SpanBERT against BERT", 1, PAPER, "SQuAD 2.0 F1", "squad_real", TWINS, "SQuAD 2.0, F1"),
    Sign("SpanBERT against BERT", 3, PAPER, "average F1", "span_tasks", TWINS, TOLD["coreference"]),
    Sign("SpanBERT against BERT", 4, PAPER, "F1", "span_tasks", TWINS, TOLD["relations"]),
    *(
        Sign("SpanBERT against BERT", 5, PAPER, told, "span_tasks", TWINS, TOLD[task])
        for task, told in GLUE.items()
    ),
    *(
        Sign(
            "spans against tokens, from scratch",
            6,
            SPANS,
            "SQuAD 2.0",
            "token_vs_span",
            SCRATCH,
            measure,
        )
        for measure in (SPANS_HIDDEN, TOKENS_HIDDEN)
    ),
    *(
        Sign(
            "spans against tokens, past the plateau",
            6,
            SPANS,
            asked,
            "spans_and_boundaries",
            ("span", "token"),
            measure,
        )
        for asked, measure in LATE
    ),
    *(
        Sign(
            "spans against tokens, on Wikipedia",
            6,
            SPANS,
            asked,
            "spans_on_wikipedia",
            ("span", "token"),
            measure,
        )
        for asked, measure in WIKIPEDIA
    ),
    *(
        Sign(
            f"spans against {told}, past the plateau",
            6,
            (SPANS[0], told),
            "SQuAD 2.0",
            "ways_of_hiding",
            ("span", arm),
            ANSWERS,
        )
        for arm, told in UNITS.items()
    ),
    *(
        Sign(
            "one sequence against two with NSP, from scratch",
            7,
            ONE_SEQUENCE,
            "SQuAD 2.0",
            "pairs_vs_single",
            ("one segment", "pairs + NSP"),
            f"held-out loss, measured on {way}",
        )
        for way in ("one segment", "pairs")
    ),
    Sign(
        "one sequence against two with NSP, past the plateau",
        7,
        ONE_SEQUENCE,
        "SQuAD 2.0",
        "ways_of_hiding",
        ("span", "pairs"),
        ANSWERS,
    ),
    Sign(
        "with SBO against without, from a start",
        7,
        SBO,
        "coreference",
        "boundary_probe",
        ("span masking with SBO", "span masking alone"),
        "kind of a hidden name, read from the two states outside the span",
    ),
    Sign(
        "with SBO against without, from scratch",
        7,
        SBO,
        "SQuAD 2.0",
        "token_vs_span",
        ("span masking with SBO", "span masking"),
        SPANS_HIDDEN,
    ),
    *(
        Sign(
            "with SBO against without, past the plateau",
            7,
            SBO,
            asked,
            "spans_and_boundaries",
            ("span+sbo", "span"),
            measure,
        )
        for asked, measure in LATE[2:]
    ),
    Sign(
        "with SBO against without, on Wikipedia",
        7,
        SBO,
        "coreference",
        "spans_on_wikipedia",
        ("span+sbo", "span"),
        LITBANK,
    ),
)


def signs(number: int, folder: Path | None = None) -> Table:
    """Those of `SIGNS` that were measured, beside one table of the paper. "expected" is a column
    where anything was."""
    there = {section.report.name: section for section in sections(folder)}
    lines = [line for sign in SIGNS if sign.table == number and (line := sign.line(there))]
    whole = [["question", "the paper", "here", "expected", "sign"], *lines]
    head, *lines = (
        whole if any(line[3] for line in lines) else [[*line[:3], line[4]] for line in whole]
    )
    return Table(head, lines)


def all_tasks(content: Mapping) -> Table:
    """Each task on real text in one line: of every start the mean over its fine-tuning seeds and
    their range, and the best control, which needs no encoder. content: of `span_tasks`."""
    lines = []
    for task in complete(content):
        found = by_start(content, task_of(task), MAIN[task])
        told = [
            f"{np.mean(found[start]):.1f} ({min(found[start]):.1f} to {max(found[start]):.1f})"
            for start in STARTS
        ]
        name, figure = best_control(content, task)
        lines.append([TOLD[task], *told, f"{figure:.1f}, {name}"])
    return Table(["task and figure", *STARTS, "best control"], lines)


class Panel:
    """The figures of one question: a table for each experiment, with its seeds and controls. show:
    one of `SHOWS`."""

    def __init__(self, question: str, show: str, folder: Path | None = None) -> None:
        make = {SHOWS[0]: each_seed, SHOWS[1]: differences}[show]
        self.parts = [(heading(one.section), make(one)) for one in asked(question, folder)]

    def __repr__(self) -> str:
        return "\n\n".join(f"{told}\n{table!r}" for told, table in self.parts)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(told)}</p>{table._repr_html_()}" for told, table in self.parts)


def heading(section: Section) -> str:
    """What a reader should know before the figures."""
    report = section.report
    return f"{report.name}: {section.seeds} seeds draw {report.seeds}. Controls: {report.controls}."


def differences(one: Asked) -> Table:
    """What each comparison found."""
    return Table(
        ["", "what", "figure"], [[line.verdict, line.text, line.figure] for _, line in one.found]
    )


def each_seed(one: Asked) -> Table:
    """Every arm of every measure once, seed after seed, with the mean."""
    arms = {
        (f"{pair.measure}{', nats' * (pair.unit == 'nats')}", name): (pair.unit, values)
        for pair, _ in one.found
        for name, values in zip((pair.first, pair.second), pair.columns, strict=True)
    }
    shown = [
        [measure, name, *(f"{value:.{DIGITS[unit]}f}" for value in (*values, np.mean(values)))]
        for (measure, name), (unit, values) in arms.items()
    ]
    most = max(map(len, shown)) - 3
    lines = [
        [
            *line[:2],
            *(value for value, _ in zip_longest(line[2:-1], range(most), fillvalue="")),
            line[-1],
        ]
        for line in shown
    ]
    return Table(["measure", "arm", *map(str, range(most)), "mean"], lines)
