"""The page of findings: fresh, with every file of results, and each line worked out as the chapters
do."""

import json
import re
import shutil

import nbformat
import numpy as np
import pytest
from page_links import dead_links
from scipy import stats

import findings as tool
from environment import ROOT
from research import comparisons, findings
from research import paper_comparison as beside
from research.comparisons import families_of
from research.experiments import span_settings, spans_on_wikipedia, ways_of_hiding
from research.lines import NULL, SHOWN, SINGLE, Comparison, interval_line, lines_of
from research.table import EXPERIMENTS
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError

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


def test_nulls_are_kept_and_counted():
    number = findings.counts(SECTIONS)
    page = tool.LIST.read_text(encoding="utf-8")
    assert page.count(f"| {tool.MARKS[NULL]} |") == number[NULL] > 30
    assert page.count(f"| {tool.MARKS[SHOWN]} |") == number[SHOWN] and number[SINGLE] > 3


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


def test_an_expected_sign_is_compared():
    texts = [lines_of([comparison(gap, expected=True)])[0].text for gap in (1, -1, 0)]
    assert texts == [
        "new better than old: loss, as expected",
        "old better than new: loss, against what was expected",
        "new against old: loss (expected: new better)",
    ]


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


def test_the_table_tells_p_where_there_is_one():
    assert [tool.p_text(p) for p in (None, 0.0004, 0.0006, 0.0535)] == [
        "",
        "< 0.001",
        "0.001",
        "0.053",
    ]
    page = tool.LIST.read_text(encoding="utf-8")
    assert "| | what | figure | p |" in page and "| | what | figure |\n" in page


def test_an_interval_is_shown_when_it_leaves_out_zero():
    verdicts = [
        interval_line("x", *edges, 1.0).verdict for edges in ((0.1, 2), (-2, -0.1), (-0.1, 2))
    ]
    assert verdicts == [SHOWN, SHOWN, NULL]


def test_the_headline_on_the_state_of_cls_counts_right():
    """In three of nine comparisons with the mean of the states it is shown to be worse, and in none
    better."""
    lines = {section.report.name: section.lines for section in SECTIONS}["sentence_states"]
    mean = [line for line in lines if "the mean of its states" in line.text]
    shown = [line.text for line in mean if line.verdict == SHOWN]
    assert (len(shown), len(mean)) == (3, 9)
    assert all(text.startswith("the mean of its states better than [CLS]") for text in shown)
    assert any(headline.sentence.startswith("In three of nine") for headline in findings.HEADLINES)


def test_the_twins_differ_in_one_of_nine_measures_and_in_none_when_all_are_corrected_together():
    (section,) = [one for one in SECTIONS if one.report.name == "span_tasks"]
    pairs = [
        pair
        for found in section.report.families(section.content)
        for pair in found
        if {pair.first, pair.second} == set(beside.TWINS)
        and "five sentence tasks" not in pair.measure
    ]
    alone = {
        line.text.split(": ")[1].split(",")[0]
        for line in section.lines
        if line.text.startswith(
            ("spanbert-mini better than bert-mini", "bert-mini better than spanbert-mini")
        )
    }
    assert alone == {"SemEval-2010 task 8"}
    assert len(pairs) == 9 and not any(line.verdict == SHOWN for line in lines_of(pairs))
    assert any(
        "corrected together with the eight other" in headline.sentence
        for headline in findings.HEADLINES
    )


def test_a_line_without_an_interval_over_seeds_has_none():
    """Where a ± stands, the line is shown or not shown."""
    lines = [line for section in SECTIONS for line in section.lines]
    assert not [line for line in lines if line.verdict == SINGLE and "±" in line.figure]
    assert any("±" in line.figure for line in lines)


def test_an_interval_may_leave_out_zero_and_its_line_say_not_shown():
    """As the page says: the verdict is corrected for the family, the interval is not."""
    lines = [
        line
        for section in SECTIONS
        for line in section.lines
        if line.verdict == NULL and " ± " in line.figure
    ]
    edges = [
        [float(part.replace("−", "-")) for part in line.figure.rsplit(" ", 1)[0].split(" ± ")]
        for line in lines
    ]
    assert any(abs(mean) > half for mean, half in edges)


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


def test_a_sentence_that_does_not_hold_any_more_is_named(monkeypatch):
    groups = findings.headlines(SECTIONS)
    assert sum(map(len, groups.values())) == len(findings.HEADLINES)
    wrong = findings.Headline("all", "All is well.", "token_vs_span", "span masking wins")
    monkeypatch.setattr(findings, "HEADLINES", [wrong])
    with pytest.raises(InputError, match="All is well"):
        findings.headlines(SECTIONS)


def markdown_of(path) -> str:
    """The words of a page."""
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


NOTEBOOKS = sorted(
    path
    for folder in ("evidence", "workshop")
    for path in (ROOT / "book" / folder).glob("*.ipynb")
    if path.stem != "paper_tables"  # it draws from all files
)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_page_tells_the_command_of_each_file_that_it_draws_from(path):
    """Cells that only check may look at a file of another page."""
    cells = nbformat.read(path, as_version=4).cells
    code = "".join(
        cell.source
        for cell in cells
        if cell.cell_type == "code" and "check" not in cell.metadata.tags
    )
    told = markdown_of(path)
    for file in sorted(data_path("results").glob("*.json")):
        if re.search(rf"[\"']{file.stem}(\.json)?[\"']", code):
            command = json.loads(file.read_text(encoding="utf-8"))["command"]
            (named,) = re.findall(r"experiment \w+|benchmarks\.\w+", command)
            assert named in told, file.stem


EVIDENCE = [one for one in SECTIONS if one.report.page.startswith("evidence/")]
COMMAND = re.compile(r"python -m research (\w+)((?:[^`\n]|\\\n)*)")


@pytest.mark.parametrize("section", EVIDENCE, ids=lambda section: section.report.name)
def test_an_evidence_page_says_how_its_experiment_is_run_again(section):
    page = section.report.page
    found = dict(COMMAND.findall(markdown_of(ROOT / "book" / f"{page}.ipynb")))
    (name,) = re.findall(r"experiment (\w+)", section.content["command"])
    assert name in found, page
    options = set(re.findall(r"--(\w+) ", found[name]))
    assert options - {"seeds"} == {*EXPERIMENTS[name].inputs, "output"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "book").glob("[brst]*/*.ipynb")), ids=lambda path: path.stem
)
def test_a_teaching_chapter_has_no_rerun_command(path):
    assert "spanbert_tutorial experiment" not in markdown_of(path)


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


def test_a_new_file_brings_its_section_and_its_panels(later):
    found = {section.report.name: section for section in findings.sections(later)}
    *gains, beaten = families_of("span_tasks", found["span_tasks"].content)
    assert [len(one) for one in gains] == [3] * 8 and len(
        beaten
    ) == 16  # without RTE, which is not complete
    assert {"the control “rule”", "the control “both”"} <= {one.second for one in beaten}
    claims, beside_them = families_of("spans_and_boundaries", found["spans_and_boundaries"].content)
    verdicts = [line.verdict for line in lines_of(claims)]
    assert (
        verdicts == [SHOWN, NULL, NULL]
        and all(one.expected for one in claims)
        and len(beside_them) == 23
    )
    page = tool.listing(list(found.values()))
    assert (
        "from a common checkpoint past the plateau?" in page
        and "in coreference, relations and sentence tasks?" in page
    )
    assert "sentences (Table 5)" in beside.questions(later)
    for question in beside.questions(later):
        for show in beside.SHOWS:
            panel = beside.Panel(question, show, later)
            assert panel._repr_html_().count("<table>") == len(beside.asked(question, later)) >= 1
            assert re.search(r"\d seeds draw", repr(panel))
    tasks = [line[1] for line in beside.signs(5, later).lines]
    assert any("CoLA" in asked for asked in tasks) and not any("RTE" in asked for asked in tasks)


def test_a_sign_is_told_for_the_later_idea_also_where_it_is_a_loss():
    spans, tokens, *later = beside.signs(6).lines[1:]
    assert spans[:2] == ["spans against tokens, from scratch", "SQuAD 2.0: +1.6"] == tokens[:2]
    assert spans[2].endswith("loss, spans masked: −0.95 ± 0.18 nats") and spans[3:] == [
        "",
        "opposite",
    ]
    assert later[1][2].endswith("single tokens masked: −1.91 ± 0.10 nats") and later[1][3:] == [
        "",
        "opposite",
    ]
    single, in_pairs, *_ = beside.signs(7).lines[1:]
    assert single[2].endswith("+0.77 ± 0.31 nats") and single[-1] == "the same"
    assert (
        in_pairs[2].startswith("held-out loss, measured on pairs: −0.09")
        and in_pairs[-1] == "within noise"
    )


def test_a_sign_expected_before_the_runs_is_told():
    assert {line[3] for line in beside.signs(3).lines[1:]} == {"+"}
    assert beside.signs(5).lines[0][3] == "expected" and "expected" not in beside.signs(1).lines[0]


def test_both_pairs_of_mini_models_are_set_against_the_first_table_of_the_paper():
    *first_pair, longer = beside.signs(1).lines[1:]
    assert [line[-1] for line in first_pair] == ["opposite", "within noise"]
    assert longer[0].endswith(beside.LONGER) and longer[-1] == "the same"
    assert len(beside.asked("answers (Table 1)")) == 3


def test_a_panel_says_each_seed_of_each_arm_once():
    (part,) = beside.asked("what is masked (Table 6)")[:1]
    table = beside.each_seed(part)
    assert (
        table.lines[0] == ["measure", "arm", "0", "1", "2", "3", "4", "mean"]
        and len(table.lines) == 5
    )
    values = [float(value) for value in table.lines[1][2:]]
    assert values[-1] == pytest.approx(np.mean(values[:-1]), abs=0.01)


# --- experiments that share the starts of another -----------------------------------


def made_beside_core(arms, seeds: int) -> dict:
    """Rows with what the reports of the further arms read."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "arm": arm,
            "seed": seed,
            "names": {"inferred": {"first": rng.normal(10)}},
            "uses": {"questions, 2000": {"f1": rng.normal(50)}},
            "kinds": {"boundary": rng.normal(80)},
            "losses": {"token": rng.normal(3), "span": rng.normal(5)},
            "pairs": {"outside": rng.normal(70)},
            "coreference": {"average": rng.normal(55)},
        }
        for arm in arms
        for seed in range(seeds)
    ]
    return {"rows": rows}


@pytest.mark.parametrize(
    "experiment, sizes",
    [(ways_of_hiding, [6, 4]), (spans_on_wikipedia, [3, 4]), (span_settings, [2, 9])],
)
def test_further_arms_stand_beside_those_whose_starts_they_share(experiment, sizes):
    content = made_beside_core(experiment.ARMS, experiment.SEEDS)
    families = families_of(experiment.__name__.split(".")[-1], content)
    assert [len(one) for one in families] == sizes
    assert all(
        len(column) == experiment.SEEDS
        for one in families
        for pair in one
        for column in pair.columns
    )
    core = {pair.second for one in families for pair in one} | {
        pair.first for one in families for pair in one
    }
    assert core >= {"span"} and all(lines_of(one) for one in families)
