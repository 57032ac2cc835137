"""The page of findings: fresh, with every file of results, and each line worked out as the chapters
do."""

import json
import shutil

import numpy as np
import pytest
from page_links import dead_links
from scipy import stats

import findings as tool
from environment import ROOT
from research import comparisons, findings
from research.lines import NULL, SHOWN, Comparison, lines_of
from research.table import EXPERIMENTS
from spanbert_tutorial.engine.files import data_path

SECTIONS = list(findings.sections())
ONE = [1.0, 1.1, 0.9, 1.0, 1.05]


def test_the_pages_are_those_that_the_tool_writes():
    before = tool.PAGE.read_text(encoding="utf-8")
    assert before == tool.opener(before.split(f"\n{tool.BEGINS}")[0], SECTIONS), (
        "run python tools/findings.py"
    )
    assert tool.LIST.read_text(encoding="utf-8") == tool.listing(SECTIONS), (
        "run python tools/findings.py"
    )
    assert dead_links(tool.PAGE) == [] == dead_links(tool.LIST)


def test_every_file_of_results_is_a_report_or_says_why_not():
    files = {path.stem for path in data_path("results").glob("*.json")}
    reports = {report.name for report in findings.REPORTS}
    assert not reports & set(findings.NO_FINDING)
    assert files <= reports | set(findings.NO_FINDING), (
        "give the new file a report in research/findings.toml, and its comparisons in research/comparisons.py"
    )
    assert {section.report.name for section in SECTIONS} == files & reports


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.report.name)
def test_a_report_tells_page_seeds_controls_and_limits(section):
    report = section.report
    assert section.lines and all(
        map(str.strip, (report.question, report.seeds, report.controls, report.limits))
    )
    assert len(list((ROOT / "book").glob(f"{report.page}.*"))) == 1
    assert (section.seeds == 0) == report.seeds.startswith("No seeds")
    if report.name in EXPERIMENTS:
        assert f"experiment {report.name} " in section.content["command"]
    texts = [line.text for line in section.lines]
    assert len(set(texts)) == len(texts)


def comparison(gap: float, **more) -> Comparison:
    return Comparison("new", "old", "loss", ([value + gap for value in ONE[::-1]], ONE), **more)


def test_the_better_arm_stands_first_and_a_null_keeps_its_order():
    for low, gap, better in (
        (False, 1, "new better than old"),
        (True, 1, "old better than new"),
        (False, -1, "old better than new"),
        (True, -1, "new better than old"),
    ):
        (line,) = lines_of([comparison(gap, low=low)])
        assert (
            line.verdict == SHOWN
            and line.text == f"{better}: loss"
            and line.figure.startswith("1.0 ±")
        )
    for low, sign in (
        (False, "+0.05"),
        (True, "−0.05"),
    ):  # above 0 the first is better, also of losses
        (line,) = lines_of([comparison(0.05, low=low, unit="nats")])
        assert (line.verdict, line.text) == (
            NULL,
            "new against old: loss",
        ) and line.figure.startswith(sign)
        assert line.p > 0.05


def test_a_line_is_corrected_for_its_family():
    """Alone it is shown; as one of many with the same p it is not."""
    rng = np.random.default_rng(1)
    weak = Comparison("a", "b", "m", (rng.normal(0.8, 0.6, 5).tolist(), [0.0] * 5))
    p = stats.ttest_rel(*weak.columns).pvalue
    assert 0.005 < p < 0.05
    assert lines_of([weak])[0].verdict == SHOWN and {
        line.verdict for line in lines_of([weak] * 12)
    } == {NULL}


def test_seeds_that_split_one_collection_have_a_wider_interval():
    """Differences 1, 2, 3, 2 and half as many cases to test on as to learn from: t = 2 / √(2/3 ·
    3/4) = 2.8284, where the usual t = 4.8990 has p = 0.016; with 3 degrees of freedom p = 0.066."""
    columns = ([3, 4, 5, 4], [2, 2, 2, 2])
    (plain,), (corrected,) = (
        lines_of([Comparison("a", "b", "m", columns, test_to_train=share)]) for share in (0, 0.5)
    )
    assert (plain.verdict, corrected.verdict) == (SHOWN, NULL)
    assert corrected.p == pytest.approx(0.0663, abs=1e-4) and plain.p == pytest.approx(
        0.0163, abs=1e-4
    )


def test_a_figure_of_the_page_by_hand():
    """Token against span masking on hidden tokens, from the file and without the package's
    statistics."""
    content = json.loads((data_path("results") / "token_vs_span.json").read_text(encoding="utf-8"))
    losses = {
        name: [
            row["held_out"]["token"]["mlm"]
            for row in content["rows"]
            if row["run"]["objective"] == name
        ]
        for name in ("mlm", "span")
    }
    gap = np.subtract(losses["span"], losses["mlm"])
    half = stats.t.ppf(0.975, 4) * gap.std(ddof=1) / 5**0.5
    wanted = "token masking better than span masking: held-out loss, single tokens masked"
    assert f"| {wanted} | {gap.mean():.2f} ± {half:.2f} nats | " in tool.LIST.read_text(
        encoding="utf-8"
    )


# --- experiments whose file may come later ------------------------------------------


def made_span_tasks(seeds: int) -> dict:
    """A file of all tasks in which spanbert-mini is a little better; `seeds` seeds of each, of RTE
    one only."""
    rows = []
    rng = np.random.default_rng(0)
    for task, figure in comparisons.MAIN.items():
        for start, level in zip(comparisons.STARTS, (30, 50, 55), strict=True):
            if task not in comparisons.TRAINED_AS:
                found = {
                    name: level + rng.normal() for name in (figure, "gap_f1", "average_two_or_more")
                }
                rows += [
                    {
                        "task": task,
                        "start": start,
                        "seed": seed,
                        "scores": {key: value + 0.1 * rng.normal() for key, value in found.items()},
                    }
                    for seed in range(1 if task == "rte" else seeds)
                ]
    rules = {
        "rule, mentions by rule": {"average": 44.0, "average_two_or_more": 44.0},
        "rule, mentions labeled": {"average": 90.0},
        "gap, both": {"gap_f1": 60.0},
    }
    controls = {
        "coreference": rules,
        "relations": {"words": {"f1": 60.0}},
        "sentences": {"bag": {comparisons.MAIN[task]: 40.0 for task in list(comparisons.MAIN)[4:]}},
    }
    return {
        "command": "python -m research span_tasks --output FILE",
        "rows": rows,
        "controls": controls,
    }


def made_spans_and_boundaries() -> dict:
    """A file in which spans help names that must be inferred, and nothing else differs."""
    rng = np.random.default_rng(0)
    rows = []
    for arm in ("start", "token", "span", "span+sbo", "placebo"):
        for seed in range(5):
            names = {
                group: {"first": 10 * (arm != "token") + rng.normal(scale=0.1)}
                for group in ("inferred", "elsewhere")
            }
            rows.append(
                {
                    "arm": arm,
                    "seed": seed,
                    "names": names,
                    "losses": {way: rng.normal() for way in ("token", "span")},
                    "pairs": {place: rng.normal(80) for place in ("inside", "outside")},
                    "kinds": {place: rng.normal(80) for place in ("inside", "boundary")},
                    "uses": {
                        "questions, 300": {"f1": rng.normal(50)},
                        "questions, 2000": {"f1": rng.normal(50)},
                        "tags": rng.normal(90),
                        "coreference": rng.normal(70),
                        "relations": rng.normal(80),
                    },
                }
            )
    gaps = {"names": {"frequency": {group: {"gaps": 10} for group in ("inferred", "elsewhere")}}}
    return {
        "command": "python -m research spans_and_boundaries --output FILE",
        "rows": rows,
        "controls": gaps,
    }


@pytest.fixture
def later(tmp_path, monkeypatch):
    """A folder of results with both files, and no sentences in words about them."""
    others = [
        headline
        for headline in findings.HEADLINES
        if headline.report not in ("span_tasks", "spans_and_boundaries")
    ]
    monkeypatch.setattr(findings, "HEADLINES", others)
    for path in data_path("results").glob("*.json"):
        shutil.copy(path, tmp_path)
    for name, made in (
        ("span_tasks", made_span_tasks(3)),
        ("spans_and_boundaries", made_spans_and_boundaries()),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
    return tmp_path
