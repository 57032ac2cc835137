"""Run every notebook once more under other circumstances: `make colab-check`, `make cells-twice`,
`make card-check`.

Only execution is checked, asserts included; stored outputs are not compared, and no file changes.
"""

import argparse
import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nbformat

from environment import ROOT, prepare, warm_up
from kinds import has_tag
from notebooks import NotebookError, book_notebooks, read, run_cells

# what a cell calls when it trains a model or brings one onto a card; a vocabulary is not meant
TRAINS = re.compile(
    r"(?<!WordPiece\.)\b(?:pretrain|fine_tune|train|trained|train_\w+)\("
    r"|(?<![.\w])fit\(|\bcuda\b|\bQuestionAnswerer\b"
)
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
    pairs = ([cell, copy.deepcopy(cell)][: 1 + (cell.cell_type == "code")] for cell in cells)
    return sum(pairs, [])


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


def row_of(path: Path, again: bool, target: Path | None) -> dict:
    """The row of a notebook: seconds, and its error. again: every cell two times; target: the folder
    with the unpacked wheel, and the notebook then runs in an empty folder, and only its beginning if
    it trains."""
    began, notebook, error = time.monotonic(), read(path), None
    with tempfile.TemporaryDirectory() as empty:
        if target:
            if trains(path):
                notebook.cells = beginning(notebook.cells)
            source = PREAMBLE.format(root=str(ROOT), target=str(target.resolve()))
            notebook.cells.insert(0, nbformat.v4.new_code_cell(source))
        if again:
            notebook.cells = twice(notebook.cells)
        try:
            run_cells(notebook, Path(empty) if target else path.parent, path.name)
        except NotebookError as problem:
            error = str(problem)[:2_000]
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
    parser.add_argument("--output", type=Path, help="write the table to this file, too, as JSON")
    asked = parser.parse_args()
    paths = [path.resolve() for path in asked.paths] or book_notebooks(ROOT)
    paths = [path for path in paths if not asked.training or trains(path)]
    if asked.names:
        print(*(path.relative_to(ROOT) for path in paths))
        return 0
    if asked.card:
        os.environ["SPANBERT_TUTORIAL_CARD"] = "1"
    rows: list[dict] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.workers) as pool:
        target = Path(folder) if asked.wheel else None
        if target:
            install_wheel(target)
        prepare(target or ROOT)
        warm_up()
        for done in as_completed(pool.submit(row_of, path, asked.twice, target) for path in paths):
            rows.append(done.result())
            print(*rows[-1].values(), flush=True)
    failed = [row for row in rows if row["error"]]
    if asked.output:
        asked.output.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"{len(rows) - len(failed)} of {len(rows)} notebooks passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
