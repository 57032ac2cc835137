"""Run every notebook once more under other circumstances: `make colab-check`, `make cells-twice`,
`make card-check`.

Only execution is checked, asserts included; stored outputs are not compared, and no file changes.
Each notebook runs in a process of its own, which is stopped when the time is over.
"""

import argparse
import copy
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nbformat

from address import has_tag
from environment import ROOT, kernel_environment, warm_up
from notebooks import NotebookError, book_notebooks, read, run_cells

# what a cell calls when it trains a model or brings one onto a card; a vocabulary is not meant
TRAINS = re.compile(
    r"(?<!WordPiece\.)(?<!ByteBPE\.)\b(?:pretrain|fine_tune|train|trained|train_\w+)\("
    r"|(?<![.\w])fit\(|\bcuda\b|\bQuestionAnswerer\b"
)
PATIENCE = 5  # seconds for a process to end what it has begun
PREAMBLE = """\
import sys
from pathlib import Path
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path({root!r})]
import spanbert_tutorial
assert Path(str(spanbert_tutorial.__file__)).resolve().is_relative_to({target!r}), spanbert_tutorial.__file__
"""


def trains(path: Path) -> bool:
    """Whether the notebook's code trains a model, names `cuda`, or opens a `QuestionAnswerer`."""
    return any(cell.cell_type == "code" and TRAINS.search(cell.source) for cell in read(path).cells)


def beginning(cells: list) -> list:
    """The cells up to the first one, after the setup, that stores an output."""
    for i, cell in enumerate(cells):
        if cell.get("outputs") and not has_tag(cell, "colab-setup"):
            return cells[: i + 1]
    return cells


def twice(cells: list) -> list:
    """Every code cell two times in a row, as a reader does who has looked away."""
    return [
        one
        for cell in cells
        for one in ([cell, copy.deepcopy(cell)] if cell.cell_type == "code" else [cell])
    ]


def install_wheel(target: Path, root: Path = ROOT) -> None:
    """Build the package's wheel and unpack it into the empty folder `target`; no network is
    needed."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    with tempfile.TemporaryDirectory() as built:
        build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", built, str(root)]
        subprocess.run(pip + build, check=True)
        wheel = next(Path(built).glob("*.whl"))
        print(f"wheel: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        install = ["install", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
        subprocess.run([*pip, *install], check=True)


def alone(path: Path, again: bool, target: Path | None) -> int:
    """The process of one notebook: the exit code. target: the folder with the unpacked wheel; the
    notebook then runs in an empty folder, and only its beginning if it trains. A message is short,
    so that no pipe fills."""
    notebook = read(path)
    folder = path.parent
    with tempfile.TemporaryDirectory() as empty:
        if target:
            folder = Path(empty)
            if trains(path):
                notebook.cells = beginning(notebook.cells)
            source = PREAMBLE.format(root=str(ROOT), target=str(target.resolve()))
            notebook.cells.insert(0, nbformat.v4.new_code_cell(source))
        if again:
            notebook.cells = twice(notebook.cells)
        try:
            run_cells(notebook, folder, path.name)
        except NotebookError as problem:
            print(str(problem)[:2_000], flush=True)
            return 1
    return 0


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


def row_of(path: Path, options: list[str], end: float) -> dict:
    """The row of a notebook: seconds, and its error."""
    began = time.monotonic()
    error: str | None = "no time was left"
    if began < end:
        command = [sys.executable, __file__, "--alone", str(path), *options]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            status = end_of(process, end - began)
            said = (process.stdout.read() if process.stdout else "").strip()
        if status is not None:
            error = None if status == 0 else said or f"exit status {status}"
    return {"notebook": path.name, "seconds": round(time.monotonic() - began), "error": error}


def main() -> int:
    """The exit code: 0 when all notebooks passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks (default: the whole book)")
    parser.add_argument("--wheel", action="store_true", help="from the wheel alone, as on Colab")
    parser.add_argument("--card", action="store_true", help="with the graphics card")
    parser.add_argument("--twice", action="store_true", help="every cell two times in a row")
    parser.add_argument("--training", action="store_true", help="only the notebooks that train")
    parser.add_argument("--names", action="store_true", help="only print the notebooks' paths")
    parser.add_argument("--workers", type=int, default=2, help="notebooks at a time (default 2)")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so many minutes")
    parser.add_argument("--output", type=Path, help="write the table to this file, too, as JSON")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--target", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.alone:
        return alone(asked.alone, asked.twice, asked.target)
    paths = [path.resolve() for path in asked.paths] or book_notebooks(ROOT)
    paths = [path for path in paths if not asked.training or trains(path)]
    if asked.names:
        print(*(path.relative_to(ROOT) for path in paths))
        return 0
    if asked.card:
        os.environ["SPANBERT_TUTORIAL_CARD"] = "1"
    options = ["--twice"] if asked.twice else []
    rows: list[dict] = []
    with tempfile.TemporaryDirectory() as target, ThreadPoolExecutor(asked.workers) as pool:
        if asked.wheel:
            install_wheel(Path(target))
            options += ["--target", target]
        os.environ.update(kernel_environment(Path(target) if asked.wheel else ROOT))
        warm_up()
        end = time.monotonic() + 60 * asked.minutes
        for done in as_completed([pool.submit(row_of, path, options, end) for path in paths]):
            rows.append(done.result())
            print(*rows[-1].values(), flush=True)
    failed = [row for row in rows if row["error"]]
    if asked.output:
        content = {"finished": not any("no time" in row["error"] for row in failed), "rows": rows}
        asked.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{len(rows) - len(failed)} of {len(rows)} notebooks passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
