"""`make card-check`: run every notebook with the graphics card, several at a time.

Only execution is checked, asserts included; stored outputs are those of a CPU, and no file changes.
Each notebook runs in a process of its own, which is stopped when the time is over.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from environment import ROOT, kernel_environment, warm_up
from notebooks import NotebookError, book_notebooks, read, run_cells

# what a cell calls when a model may come onto a card; a vocabulary is trained without one
REACHES_A_CARD = re.compile(
    r"(?<!WordPiece\.)(?<!ByteBPE\.)\b(?:pretrain|fine_tune|train|trained|train_\w+)\("
    r"|\bcuda\b|\bQuestionAnswerer\b"
)
PATIENCE = 5  # seconds for a process to end what it has begun


def reaches_a_card(path: Path) -> bool:
    """Whether the notebook's code trains a model, names `cuda`, or opens a `QuestionAnswerer`."""
    cells = read(path).cells
    return any(cell.cell_type == "code" and REACHES_A_CARD.search(cell.source) for cell in cells)


def end_of(process: subprocess.Popen, seconds: float) -> int | None:
    """The exit status, or None where the process was stopped because its time was over; asked
    first, so that it takes along what it has started, such as a kernel."""
    try:
        return process.wait(max(seconds, 0.1))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return None


def run_alone(path: Path, end: float) -> dict:
    """The row of a notebook: seconds, and the first line of its error."""
    began = time.monotonic()
    error: str | None = "no time was left"
    if began < end:
        command = [sys.executable, __file__, "--alone", str(path)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            status = end_of(process, end - began)
            said = (process.stdout.read() if process.stdout else "").strip()
        if status is not None:
            error = None if status == 0 else said.split("\n")[0] or f"exit status {status}"
    return {"notebook": path.name, "seconds": round(time.monotonic() - began), "error": error}


def alone(path: Path) -> int:
    """The process of one notebook: the exit code. A message is short, so that no pipe fills."""
    try:
        run_cells(read(path), path.parent, path.name)
    except NotebookError as problem:
        print(str(problem)[:2_000], flush=True)
        return 1
    return 0


def main() -> int:
    """The exit code: 0 when all notebooks passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks (default: the whole book)")
    parser.add_argument("--workers", type=int, default=6, help="notebooks at a time (default 6)")
    parser.add_argument("--quick", action="store_true", help="only those that may meet a card")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so many minutes")
    parser.add_argument("--output", type=Path, help="write the table to this file, too, as JSON")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.alone:
        return alone(asked.alone)
    os.environ["SPANBERT_TUTORIAL_CARD"] = "1"
    os.environ.update(kernel_environment())
    warm_up()
    paths = [path.resolve() for path in asked.paths] or book_notebooks(ROOT)
    paths = [path for path in paths if not asked.quick or reaches_a_card(path)]
    end = time.monotonic() + 60 * asked.minutes
    rows: list[dict] = []
    with ThreadPoolExecutor(asked.workers) as pool:
        for done in as_completed([pool.submit(run_alone, path, end) for path in paths]):
            rows.append(done.result())
            print(*rows[-1].values(), flush=True)
    failed = [row for row in rows if row["error"]]
    if asked.output:
        content = {"finished": not any("no time" in row["error"] for row in failed), "rows": rows}
        asked.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"card-check: {len(rows) - len(failed)} of {len(rows)} notebooks passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
