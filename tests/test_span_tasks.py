"""The table over all tasks: the files that it needs."""

from environment import ROOT
from research.experiments import span_tasks, squad_real


def test_the_readme_names_the_files_that_experiments_need():
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    files = [*span_tasks.coreference.FILES.values(), span_tasks.relations.FILE.as_posix()]
    files += [plan.file for plan in span_tasks.sentences.PLANS.values()]
    files += [
        f"{name}.json.xz"
        for name in (*squad_real.TRAIN, squad_real.TEST, *squad_real.WITH_UNANSWERABLE)
    ]
    assert [name for name in files if f"`{name}`" not in told] == []
