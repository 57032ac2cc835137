"""The table over all tasks: what the chapters draw from it, on a small made file, and that the kept
one is whole."""

from environment import ROOT
from research.experiments import span_tasks, squad_real

LEVELS = dict(zip(span_tasks.STARTS, (10, 20, 40), strict=True))


def made() -> dict:
    """Two seeds; each start has its level, seed 1 one more."""
    rows = [
        {
            "task": task,
            "start": start,
            "seed": seed,
            "scores": {span_tasks.MAIN[task]: level + seed},
        }
        for task in span_tasks.TASKS
        for start, level in LEVELS.items()
        for seed in range(2)
    ]
    return {
        "rows": rows,
        "controls": {"sentences": {"bag": {"sst2 accuracy": 7.0}}, "coreference": {}},
    }


def test_the_mean_over_the_sentence_tasks_is_one_of_each_seed():
    assert span_tasks.mean_of_sentences(made()) == {
        start: [level, level + 1] for start, level in LEVELS.items()
    }


def test_a_table_has_the_starts_and_then_the_controls():
    columns = {"SST-2": ("sst2", "sst2 accuracy"), "RTE": ("rte", "rte accuracy")}
    table = span_tasks.table(made(), "who", columns, {"words": "bag", "nobody": "none"})
    assert table.lines == [
        ["who", "SST-2", "RTE"],
        ["new weights", "10.5", "10.5"],
        ["bert-mini", "20.5", "20.5"],
        ["spanbert-mini", "40.5", "40.5"],
        ["words", "7.0", ""],
        ["nobody", "", ""],
    ]


def test_three_differences_are_one_family():
    found = span_tasks.gains(
        {start: [level, level + 1, level + 3 + level / 10] for start, level in LEVELS.items()}
    )
    assert [round(gain.mean) for gain in found.values()] == [10, 31, 21]
    assert [gain.mean > 0 for gain in found.values()] == [True] * 3


def test_the_readme_names_the_files_that_experiments_need():
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    files = [*span_tasks.coreference.FILES.values(), span_tasks.relations.FILE.as_posix()]
    files += [plan.file for plan in span_tasks.sentences.PLANS.values()]
    files += [
        f"{name}.json.xz"
        for name in (*squad_real.TRAIN, squad_real.TEST, *squad_real.WITH_UNANSWERABLE)
    ]
    assert [name for name in files if f"`{name}`" not in told] == []
