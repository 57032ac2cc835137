"""Which experiments ask what a table of the SpanBERT paper asks, and a browser of their results.
Chapter: `book/evidence/paper_tables`.

Differences, intervals and verdicts are those of `findings`: a difference keeps the correction of
its whole family when only a part of the family belongs to a question.
"""

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from research.comparisons import (
    ANSWERS,
    CLUSTERS,
    HELD_OUT,
    LITBANK,
    TOLD,
    best_control,
    complete,
    task_of,
)
from research.experiments.span_tasks import MAIN, STARTS, by_start
from research.findings import Section, sections
from research.lines import DIGITS, Comparison, Line, corrected, lines_of, with_half
from research.measurements.span_tasks_sentences import PLANS
from research.paper_tables import paper_table
from research.results import Difference
from spanbert_tutorial.figures.table import Table

Filter = Callable[[Comparison], bool]
SENTENCES = tuple(text for task, text in TOLD.items() if task in ("sentences", *PLANS))
SHOWS = ("number of each seed", "differences")


# --- questions -----------------------------------------------------------------------


def about(*words: str) -> Filter:
    """Comparisons whose measure has one of these words."""
    return lambda comparison: any(word in comparison.measure for word in words)


def everything(comparison: Comparison) -> bool:
    """All comparisons of an experiment."""
    return True


def with_sbo(comparison: Comparison) -> bool:
    """Comparisons of a condition with SBO and one without."""
    return "sbo" in f"{comparison.first} {comparison.second}".lower()


def without_sbo(comparison: Comparison) -> bool:
    """Comparisons of two conditions without SBO."""
    return not with_sbo(comparison)


def with_pairs(comparison: Comparison) -> bool:
    """Comparisons with training on pairs of segments."""
    return "pairs" in (comparison.first, comparison.second)


def without_pairs(comparison: Comparison) -> bool:
    """Comparisons of two ways of masking."""
    return not with_pairs(comparison)


# question → experiment → which of its comparisons ask it
QUESTIONS: Mapping[str, Mapping[str, Filter]] = {
    "answers (Table 1)": {
        "first_pair_answers": everything,
        "copying_and_answers": everything,
        "almanac_answers": everything,
    },
    "coreference (Table 3)": {
        "span_tasks": about("LitBank", "GAP"),
        "almanac_coreference": everything,
    },
    "relations (Table 4)": {
        "span_tasks": about(TOLD["relations"]),
        "relation_markers": everything,
    },
    "sentences (Table 5)": {"span_tasks": about(*SENTENCES)},
    "what is masked (Table 6)": {
        "token_vs_span": without_sbo,
        "spans_and_boundaries": without_sbo,
        "ways_of_hiding": without_pairs,
        "spans_on_wikipedia": without_sbo,
    },
    "one sequence (Table 7)": {
        "pairs_vs_single": about("held-out loss"),
        "ways_of_hiding": with_pairs,
    },
    "SBO (Table 7)": {
        "boundary_probe": everything,
        "token_vs_span": with_sbo,
        "spans_and_boundaries": with_sbo,
        "spans_on_wikipedia": with_sbo,
    },
}


class Asked(NamedTuple):
    """One experiment that asks a question, with its comparisons and the finding of each."""

    section: Section
    findings: list[tuple[Comparison, Line]]


def asked(question: str, folder: Path | None = None) -> list[Asked]:
    """The experiments of a question that have a results file. folder: of the files, if not the
    project's own."""
    by_name = sections_by_name(folder)
    result = []
    for name, belongs in QUESTIONS[question].items():
        if name in by_name:
            section = by_name[name]
            findings = [
                pair
                for family in section.report.families(section.content)
                for pair in zip(family, lines_of(family), strict=True)
                if belongs(pair[0])
            ]
            if findings:
                result.append(Asked(section, findings))
    return result


def sections_by_name(folder: Path | None = None) -> dict[str, Section]:
    """The reports that have a results file, by name."""
    return {section.report.name: section for section in sections(folder)}


def questions(folder: Path | None = None) -> list[str]:
    """Those that at least one results file answers."""
    return [question for question in QUESTIONS if asked(question, folder)]


# --- signs: a difference of the paper and one of ours --------------------------------


class Sign(NamedTuple):
    """Differences of the paper, each with one of ours that asks the same. On both sides the first
    row or condition is the later system. pairs: the paper's column, our measure."""

    question: str
    table: int
    rows: tuple[str, str]
    experiment: str
    conditions: tuple[str, str]
    pairs: tuple[tuple[str, str], ...]

    def lines(self, by_name: Mapping[str, Section]) -> list[list[str]]:
        """For each measure with results: what the paper has, what we have, the sign predicted
        before our runs, and whether the signs agree. Above 0 the later system is better, also where
        a measure is a loss."""
        lines = []
        for column, measure in self.pairs:
            measured = difference(by_name, self.experiment, self.conditions, measure)
            if measured:
                lines.append(self.line(column, *measured))
        return lines

    def line(self, column: str, comparison: Comparison, ours: Difference) -> list[str]:
        """One measure."""
        gain = -ours.mean if comparison.low else ours.mean
        paper = paper_table(self.table).gain(*self.rows, column)
        agreement = "the same" if (gain > 0) == (paper > 0) else "opposite"
        return [
            self.question,
            f"{column}: {f'{paper:+.1f}'.replace('-', '−')}",
            f"{comparison.measure}: {with_half(gain, ours.half, comparison.unit, signed=True)}",
            {True: "+", False: "−", None: ""}[comparison.expected],
            agreement if ours.shown else "within noise",
        ]


def difference(
    by_name: Mapping[str, Section], name: str, conditions: tuple[str, str], measure: str
) -> tuple[Comparison, Difference] | None:
    """One comparison with its difference, corrected for its family; None where it was not
    measured. by_name: the reports with results; name: of the experiment."""
    families = by_name[name].report.families(by_name[name].content) if name in by_name else []
    for family in families:
        for comparison, gap in zip(family, corrected(family), strict=True):
            if (comparison.first, comparison.second, comparison.measure) == (*conditions, measure):
                return comparison, gap
    return None


TWINS = ("spanbert-mini", "bert-mini")
BERT = ("SpanBERT", "Our BERT")
SPANS = ("geometric spans", "sub-word tokens")
SBO = ("… and SBO", "spans, one sequence")
ONE_SEQUENCE = ("spans, one sequence", "spans, two sequences, NSP")
UNITS = {"words": "whole words", "entities": "named entities", "noun phrases": "noun phrases"}
LOSSES = (("SQuAD 2.0", HELD_OUT["span"].text), ("SQuAD 2.0", HELD_OUT["token"].text))
TASKS = (("SQuAD 2.0", ANSWERS.text), ("coreference", CLUSTERS.text))
NOVELS = (("coreference", LITBANK.text),)
ON_QUESTIONS = (("SQuAD 2.0", ANSWERS.text),)
GLUE = {"sst2": "SST-2", "cola": "CoLA", "rte": "RTE", "mrpc": "MRPC acc.", "stsb": "STS-B Pearson"}
BY_FORMAT = tuple(
    ("SQuAD 2.0", f"held-out loss, measured on {way}") for way in ("one segment", "pairs")
)
KIND = "kind of a masked name, read from the two states outside the span"
FIRST_PAIR = (f"the first {TWINS[0]}", f"the first {TWINS[1]}")
AS_ARMS = ("spans with SBO", "tokens in pairs")  # the twins, fine-tuned in short windows
ON_SQUAD = (("SQuAD 1.1 F1", "SQuAD 1.1, F1"), ("SQuAD 2.0 F1", "SQuAD 2.0, F1"))
ON_GLUE = tuple((column, TOLD[task]) for task, column in GLUE.items())
PRETRAINED = "SpanBERT against BERT"
LONGER = "trained longer"
SCRATCH = "from scratch"
PLATEAU = "past the plateau"
WIKIPEDIA = "on Wikipedia"
SIGNS = (
    Sign(PRETRAINED, 1, BERT, "first_pair_answers", FIRST_PAIR, ON_SQUAD),
    Sign(f"{PRETRAINED}, {LONGER}", 1, BERT, "copying_and_answers", AS_ARMS, ON_SQUAD[:1]),
    Sign(PRETRAINED, 3, BERT, "span_tasks", TWINS, (("average F1", TOLD["coreference"]),)),
    Sign(PRETRAINED, 4, BERT, "span_tasks", TWINS, (("F1", TOLD["relations"]),)),
    Sign(PRETRAINED, 5, BERT, "span_tasks", TWINS, ON_GLUE),
    Sign(
        f"spans against tokens, {SCRATCH}",
        6,
        SPANS,
        "token_vs_span",
        ("span masking", "token masking"),
        LOSSES,
    ),
    Sign(
        f"spans against tokens, {PLATEAU}",
        6,
        SPANS,
        "spans_and_boundaries",
        ("span", "token"),
        (*LOSSES, *TASKS),
    ),
    Sign(
        f"spans against tokens, {WIKIPEDIA}",
        6,
        SPANS,
        "spans_on_wikipedia",
        ("span", "token"),
        (*LOSSES, *NOVELS),
    ),
    *(
        Sign(
            f"spans against {unit}, {PLATEAU}",
            6,
            (SPANS[0], unit),
            "ways_of_hiding",
            ("span", condition),
            ON_QUESTIONS,
        )
        for condition, unit in UNITS.items()
    ),
    Sign(
        f"one sequence against two with NSP, {SCRATCH}",
        7,
        ONE_SEQUENCE,
        "pairs_vs_single",
        ("one segment", "pairs + NSP"),
        BY_FORMAT,
    ),
    Sign(
        f"one sequence against two with NSP, {PLATEAU}",
        7,
        ONE_SEQUENCE,
        "ways_of_hiding",
        ("span", "pairs"),
        ON_QUESTIONS,
    ),
    Sign(
        "with SBO against without, from a start",
        7,
        SBO,
        "boundary_probe",
        ("span masking with SBO", "span masking alone"),
        (("coreference", KIND),),
    ),
    Sign(
        f"with SBO against without, {SCRATCH}",
        7,
        SBO,
        "token_vs_span",
        ("span masking with SBO", "span masking"),
        LOSSES[:1],
    ),
    Sign(
        f"with SBO against without, {PLATEAU}",
        7,
        SBO,
        "spans_and_boundaries",
        ("span+sbo", "span"),
        TASKS,
    ),
    Sign(
        f"with SBO against without, {WIKIPEDIA}",
        7,
        SBO,
        "spans_on_wikipedia",
        ("span+sbo", "span"),
        NOVELS,
    ),
)


def signs(number: int, folder: Path | None = None) -> Table:
    """Those of `SIGNS` that were measured, for one table of the paper. There is a column "expected"
    where any sign was predicted."""
    by_name = sections_by_name(folder)
    lines = [line for sign in SIGNS if sign.table == number for line in sign.lines(by_name)]
    head = ["question", "the paper", "here", "expected", "sign"]
    if any(line[3] for line in lines):
        return Table(head, lines)
    head, *lines = ([*line[:3], line[4]] for line in (head, *lines))
    return Table(head, lines)


# --- tables --------------------------------------------------------------------------


def all_tasks(content: Mapping) -> Table:
    """Each task on real text in one line: for every start the mean over its fine-tuning seeds and
    their range, and the best baseline without an encoder. content: of `span_tasks`."""
    lines = []
    for task in complete(content):
        scores = by_start(content, task_of(task), MAIN[task])
        cells = [
            f"{np.mean(scores[start]):.1f} ({min(scores[start]):.1f} to {max(scores[start]):.1f})"
            for start in STARTS
        ]
        name, score = best_control(content, task)
        lines.append([TOLD[task], *cells, f"{score:.1f}, {name}"])
    return Table(["task and figure", *STARTS, "best control"], lines)


class Panel:
    """The results for one question: a table for each experiment, with its seeds and controls.
    show: one of `SHOWS`."""

    def __init__(self, question: str, show: str, folder: Path | None = None) -> None:
        make = {SHOWS[0]: each_seed, SHOWS[1]: differences}[show]
        self.parts = [(heading(part.section), make(part)) for part in asked(question, folder)]

    def __repr__(self) -> str:
        return "\n\n".join(f"{text}\n{table!r}" for text, table in self.parts)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(text)}</p>{table._repr_html_()}" for text, table in self.parts)


def heading(section: Section) -> str:
    """What a reader should know before the table."""
    report = section.report
    return f"{report.name}: {section.seeds} seeds draw {report.seeds}. Controls: {report.controls}."


def differences(part: Asked) -> Table:
    """The finding of each comparison."""
    lines = [[line.verdict, line.text, line.figure] for _, line in part.findings]
    return Table(["", "what", "figure"], lines)


def each_seed(part: Asked) -> Table:
    """Every condition of every measure once, seed after seed, with the mean."""
    values_of: dict[tuple[str, str], list[str]] = {}
    for comparison, _ in part.findings:
        measure = comparison.measure + (", nats" if comparison.unit == "nats" else "")
        for name, values in zip(
            (comparison.first, comparison.second), comparison.columns, strict=True
        ):
            digits = DIGITS[comparison.unit]
            cells = [f"{value:.{digits}f}" for value in (*values, float(np.mean(values)))]
            values_of[measure, name] = cells
    most = max(map(len, values_of.values())) - 1
    lines = [
        [*key, *cells[:-1], *[""] * (most + 1 - len(cells)), cells[-1]]
        for key, cells in values_of.items()
    ]
    return Table(["measure", "arm", *map(str, range(most)), "mean"], lines)
