"""For every test run: the notebooks' environment, and which tests this machine can run.

Tests that need real text or a browser are taken out (deselected), and the summary says how many.
"""

import json
import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import settings

from environment import find_chromium, prepare, warm_up

prepare()
settings.register_profile(
    "book", deadline=None
)  # on a busy machine a test's time says nothing of the code
settings.load_profile("book")

# Taken out of the environment: a test that runs pytest once more must not write over it.
COUNTS = os.environ.pop("SPANBERT_TUTORIAL_COUNTS", "")
CHOSEN = pytest.StashKey[dict]()
BEGAN = pytest.StashKey[float]()
REASONS = {
    "real_data": "SPANBERT_TUTORIAL_REAL_DATA is not set",
    "browser": "no Chromium was found",
}


def usable(marker: str) -> bool:
    """Whether this machine has what tests with the marker need."""
    if marker == "real_data":
        return bool(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA"))
    return os.environ.get("SPANBERT_TUTORIAL_BROWSER") == "required" or find_chromium() is not None


def pytest_configure(config: pytest.Config) -> None:
    """Counters of this run; fonts are listed once, before two notebooks would do it at the same
    time."""
    config.stash[CHOSEN], config.stash[BEGAN] = {"deselected": {}}, time.time()
    if config.getoption("nbval", False) and not hasattr(config, "workerinput"):
        warm_up()


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Lines of a plot may differ a little on another machine; that there is one is compared, as
    with pictures."""
    if hasattr(collector, "sanitize_patterns"):  # a notebook, of nbval
        collector.sanitize_patterns[r'(?s)^<svg class="plot".*'] = "a plot"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the tests that cannot run here."""
    for marker in REASONS:
        if usable(marker):
            continue
        out = [item for item in items if item.get_closest_marker(marker)]
        items[:] = [item for item in items if not item.get_closest_marker(marker)]
        config.hook.pytest_deselected(items=out)
        config.stash[CHOSEN]["deselected"][marker] = len(out)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands its counts to the main process."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["deselected"] = session.config.stash[CHOSEN]["deselected"]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    """Each worker takes out the same tests, so one worker's counts are the run's."""
    node.config.stash[CHOSEN]["deselected"].update(
        getattr(node, "workeroutput", {}).get("deselected", {})
    )


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Say what was taken out; leave the counts of the run for whoever asks by environment
    variable."""
    deselected = config.stash[CHOSEN]["deselected"]
    for marker, count in deselected.items():
        if count:
            terminalreporter.write_line(f"deselected: {count} {marker} tests ({REASONS[marker]})")
    stats = terminalreporter.stats
    passed = [report for report in stats.get("passed", []) if report.when == "call"]
    real = sum("real_data" in report.keywords for report in passed)
    if os.environ.get("SPANBERT_TUTORIAL_REAL_DATA"):
        terminalreporter.write_line(f"real-data tests passed: {real}")
    if place := COUNTS:
        failed = len(stats.get("failed", [])) + len(stats.get("error", []))
        minutes = round((time.time() - config.stash[BEGAN]) / 60)
        counts = {
            "passed": len(passed),
            "failed": failed,
            "real_data_passed": real,
            "deselected": deselected,
        }
        counts |= {"minutes": minutes, "seconds": chapter_seconds(sum(stats.values(), []))}
        Path(place).write_text(json.dumps(counts), encoding="utf-8")


def chapter_seconds(reports: list) -> dict[str, float]:
    """Seconds that the cells of each chapter took, by its page: {"bert/masking": 21.3}."""
    seconds: dict[str, float] = {}
    for report in reports:
        if found := re.match(r"book/(\S+)\.ipynb::", getattr(report, "nodeid", "")):
            seconds[found[1]] = round(seconds.get(found[1], 0) + report.duration, 1)
    return seconds
