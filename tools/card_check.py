"""`make card-check`: run every notebook with the graphics card, several at a time, and print a
table.

Only execution is checked, asserts included; stored outputs are those of a CPU and are not compared,
and no file changes. Each notebook runs in a process of its own, which is stopped when the time is
over. Without a card the notebooks run on the CPU, and the first line says so.
"""

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from environment import ROOT, kernel_environment, warm_up
from notebooks import NotebookError, book_notebooks, read, run_cells
from processes import PATIENCE, stop

sys.path.insert(0, str(ROOT))  # the package may not be installed

from spanbert_tutorial.engine.files import write_json

# what a cell calls when a model may come onto a card; a vocabulary is trained without one
REACHES_A_CARD = re.compile(
    r"(?<!WordPiece\.)(?<!ByteBPE\.)\b(?:pretrain|fine_tune|train|trained|train_\w+)\("
    r"|\bcuda\b|\bQuestionAnswerer\b"
)
QUICK_MINUTES = 3.8
PASSED = "passed"
NO_TIME = "no time was left"


@dataclass(frozen=True)
class Outcome:
    """What one notebook came to. error: the first line of what went wrong, or why it did not end;
    "passed" where nothing did."""

    notebook: str
    seconds: float
    error: str = PASSED

    def row(self) -> str:
        """A row of the table."""
        return f"{self.notebook:38}{self.seconds:6.0f} s  {self.error}"


def reaches_a_card(path: Path) -> bool:
    """Whether the notebook's code trains a model, names `cuda`, or opens a `QuestionAnswerer`,
    which chooses its device: the rule of `--quick`. On the others a card has no influence."""
    return any(
        cell.cell_type == "code" and REACHES_A_CARD.search(cell.source) for cell in read(path).cells
    )


def by_length(paths: list[Path]) -> list[Path]:
    """The long ones first, by the seconds in the README's table, so that none is left to the
    end."""
    table = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"\]\((book/\S+\.ipynb)\).*\|\s*(\d+) \|$", table, re.MULTILINE)
    seconds = {name: int(number) for name, number in rows}
    return sorted(paths, key=lambda path: -seconds.get(place(path), 0))


def place(path: Path) -> str:
    """The notebook's path in the book, for people."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def run_alone(path: Path, end: float) -> Outcome:
    """Runs a notebook in a process of its own, until `end` on the monotonic clock at the latest."""
    began = time.monotonic()
    if began >= end:
        return Outcome(place(path), 0, f"not run: {NO_TIME}")
    command = [sys.executable, __file__, "--alone", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    ) as process:
        # a thread reads, so that what the process says can never fill the pipe
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
        reader.start()
        try:
            process.wait(end - began)
            error = PASSED if process.returncode == 0 else first_line(said, process.returncode)
        except subprocess.TimeoutExpired:
            stop(process)
            error = f"stopped: {NO_TIME}"
        reader.join(PATIENCE)
    return Outcome(place(path), round(time.monotonic() - began, 1), error)


def first_line(said: list[str], status: int) -> str:
    """The error of a notebook in one line."""
    lines = [line.strip() for line in said if line.strip()]
    return lines[0] if lines else f"it ended with the exit status {status} and no message"


def alone(path: Path) -> int:
    """The process of one notebook: the exit code."""
    try:
        run_cells(read(path), path.parent, path.name)
    except NotebookError as problem:
        print(problem, flush=True)
        return 1
    return 0


def run_all(paths: list[Path], workers: int, seconds: float) -> Iterator[Outcome]:
    """Outcomes in the order in which the notebooks end."""
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for done in as_completed([pool.submit(run_alone, path, end) for path in paths]):
            yield done.result()


def check(
    paths: list[Path], workers: int, seconds: float, keep: Callable[[list[Outcome]], None]
) -> int:
    """Prints the table as it grows; `keep` gets all rows after each. The exit code."""
    began = time.monotonic()
    rows: list[Outcome] = []
    for outcome in run_all(paths, workers, seconds):
        rows.append(outcome)
        keep(rows)
        print(outcome.row(), flush=True)
    passed = sum(row.error == PASSED for row in rows)
    taken = time.monotonic() - began
    print(f"card-check: {passed} of {len(rows)} notebooks passed, in {taken:.0f} s.", flush=True)
    return 0 if passed == len(rows) else 1


def write_rows(path: Path, rows: list[Outcome], wanted: int) -> None:
    """The table so far as JSON, whole or not at all. finished: each of the `wanted` notebooks ran
    to its end, whatever that was."""
    ran = [row for row in rows if not row.error.endswith(NO_TIME)]
    found = {"device": device(), "finished": len(ran) == wanted}
    write_json(path, found | {"notebooks": [asdict(row) for row in rows]})


def device() -> str:
    """The card's name, or "CPU"."""
    import torch  # here: importing it takes seconds, and `--help` needs none of it

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "paths", nargs="*", type=Path, help="notebooks; all of the book when none is given"
    )
    parser.add_argument("--workers", type=int, default=6, help="notebooks at a time (default 6)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only notebooks whose code trains a model, names cuda, or opens a QuestionAnswerer: "
        f"the others never meet a card; ends after {QUICK_MINUTES} minutes unless --minutes says "
        "otherwise, and what was not run by then counts as failed",
    )
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument("--output", type=Path, help="write the table to this file, too, as JSON")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """The exit code: 0 when all notebooks passed, 2 when one that was named is not there."""
    asked = arguments(words)
    if asked.alone:
        return alone(asked.alone)
    missing = [str(path) for path in asked.paths if not path.is_file()]
    if missing:
        print(f"No such notebook: {', '.join(missing)}.", file=sys.stderr)
        return 2
    os.environ["SPANBERT_TUTORIAL_CARD"] = "1"
    os.environ.update(kernel_environment())
    warm_up()
    name = device()
    print("No graphics card: the notebooks run on the CPU." if name == "CPU" else name, flush=True)
    paths = [path.resolve() for path in asked.paths] or book_notebooks()
    paths = by_length([path for path in paths if not asked.quick or reaches_a_card(path)])
    minutes = asked.minutes or (QUICK_MINUTES if asked.quick else float("inf"))
    seconds = min(60 * minutes, threading.TIMEOUT_MAX)
    keep = (
        (lambda rows: write_rows(asked.output, rows, len(paths)))
        if asked.output
        else lambda rows: None
    )
    return check(paths, asked.workers, seconds, keep)


if __name__ == "__main__":
    sys.exit(main())
