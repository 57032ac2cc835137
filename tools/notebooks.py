"""Execute the book's notebooks, store them in one normal form, and check that form.

python tools/notebooks.py COMMAND [PATHS], all chapters without PATHS; the commands:

- execute: run in a fresh kernel and store the outputs;
- normalize: only bring metadata, ids, titles and code into the normal form;
- check: print what is not in the normal form;
- address: write the repository's public address, if it has one, and normalize.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from address import Address, read_address, write_cells, write_settings
from environment import ROOT, prepare, warm_up
from kinds import code_of, write_form

CELL_TIMEOUT = 900  # seconds, the same as in pyproject.toml
COLORS = re.compile(r"\x1b\[[0-9;]*m")
# what the book uses; everything else is an editor's own
CELL_METADATA = ("cellView", "mystnb", "source", "tags", "varies")
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


class NotebookError(RuntimeError):
    """A notebook could not be executed."""


def book_notebooks(root: Path = ROOT) -> list[Path]:
    """Every notebook of the book, in alphabetical order."""
    every = (root / "book").rglob("*.ipynb")
    return sorted(path for path in every if ".ipynb_checkpoints" not in path.parts)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def serialize(notebook: nbformat.NotebookNode) -> str:
    return nbformat.writes(notebook, version=4) + "\n"


def write(notebook: nbformat.NotebookNode, path: Path) -> None:
    path.write_text(serialize(notebook), encoding="utf-8", newline="\n")


def name_cells(cells: list) -> None:
    """Give each cell an id made from its source: the same in every run, kept when a cell moves."""
    seen: dict[str, int] = {}
    for cell in cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:10]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


def format_code(notebook: nbformat.NotebookNode) -> None:
    """Format the code with `book/ruff.toml`, on 72 columns. Code that is not Python stays as it
    is."""
    ruff = ["ruff", "format", "--quiet", "--config", str(ROOT / "book" / "ruff.toml")]
    command = [sys.executable, "-m", *ruff, "--stdin-filename", "chapter.ipynb", "-"]
    how = {"capture_output": True, "text": True, "encoding": "utf-8"}
    result = subprocess.run(command, input=serialize(notebook), **how)
    if result.returncode == 0:
        formatted = nbformat.reads(result.stdout, 4).cells
        for cell, own in zip(notebook.cells, formatted, strict=True):
            if "source" not in cell.metadata:  # the package's own text, as `spine.py` writes it
                cell.source = own.source


def normalize(
    notebook: nbformat.NotebookNode, path: Path, root: Path = ROOT
) -> nbformat.NotebookNode:
    """The notebook in the book's normal form: nothing of an editor, of a machine or of a moment in
    it."""
    notebook = nbformat.from_dict(notebook)
    place = path.resolve().relative_to(root.resolve()).as_posix()
    write_cells(notebook, read_address(root / "_config.yml"), place)
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    notebook.nbformat = 4
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {k: cell.metadata[k] for k in CELL_METADATA if k in cell.metadata}
        )
        cell.pop("attachments", None)
        if cell.cell_type == "code":
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = cell.execution_count
            write_form(cell)
    format_code(notebook)
    name_cells(notebook.cells)
    return notebook


def describe(cell: nbformat.NotebookNode, cells: list) -> str:
    """ "code cell 7 (`x = …`)": the cell's number among the code cells, from 1, and its first
    line."""
    number = [other.id for other in cells if other.cell_type == "code"].index(cell.id) + 1
    first = next((line for line in code_of(cell.source).splitlines() if line.strip()), "")
    return f"code cell {number} (`{first[:60]}`)"


def run_cells(notebook: nbformat.NotebookNode, folder: Path, name: str) -> None:
    """Run all cells in a fresh kernel whose working folder is `folder`; the outputs go into
    `notebook`.

    Raises NotebookError that names the cell when one fails, takes too long or loses its kernel.
    """
    started: list[nbformat.NotebookNode] = []
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # how the kernel cuts them depends on timing
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=lambda cell, cell_index: started.append(cell),
    )
    try:
        client.execute(stderr=subprocess.DEVNULL)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        kind = getattr(error, "ename", type(error).__name__)
        trace = COLORS.sub("", getattr(error, "traceback", ""))
        told = f"{kind}: {getattr(error, 'evalue', error)}\n{trace}"
        raise NotebookError(f"{name}, {describe(started[-1], notebook.cells)}: {told}") from None


def execute(path: Path, root: Path = ROOT) -> float:
    """Execute one notebook in its own folder and store it in the normal form; seconds taken.

    The file changes only when every cell ran: a failing cell raises NotebookError and leaves it as
    it was.
    """
    start = time.perf_counter()
    notebook = normalize(read(path), path, root)
    run_cells(notebook, path.parent, path.name)
    write(normalize(notebook, path, root), path)
    return time.perf_counter() - start


def execute_all(paths: list[Path]) -> int:
    """Execute notebooks two at a time, say seconds and failures; the exit code."""
    prepare()
    warm_up()
    failed = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        runs = {path: pool.submit(execute, path) for path in paths}
        for path, run in runs.items():
            try:
                print(f"{path.name}: {run.result():.0f} s", flush=True)
            except NotebookError as problem:
                failed += 1
                print(f"FAILED, file left as it was: {problem}", file=sys.stderr, flush=True)
    return 1 if failed else 0


def normalize_all(paths: list[Path], root: Path = ROOT) -> list[str]:
    """Rewrite the notebooks that are not in the normal form; their places in the book's folder."""
    changed = []
    for path in paths:
        notebook = normalize(read(path), path, root)
        if serialize(notebook) != path.read_text(encoding="utf-8"):
            write(notebook, path)
            changed.append(path.relative_to(root).as_posix())
    return changed


def write_address(root: Path = ROOT) -> list[str]:
    """Bring `_config.yml` and all notebooks in line with the address: that of the settings, else
    GITHUB_REPOSITORY (OWNER/NAME); names of the files changed."""
    config = root / "_config.yml"
    before = config.read_text(encoding="utf-8")
    address, repository = read_address(config), os.environ.get("GITHUB_REPOSITORY")
    if repository and not address.url:
        address = Address(f"https://github.com/{repository}")
    config.write_text(write_settings(before, address), encoding="utf-8", newline="\n")
    changed = [config.name] if config.read_text(encoding="utf-8") != before else []
    return changed + normalize_all(book_notebooks(root), root)


def check(path: Path, root: Path = ROOT) -> list[str]:
    """What keeps the stored notebook from the normal form, one sentence each."""
    notebook = read(path)
    normal = serialize(normalize(notebook, path, root)) == path.read_text(encoding="utf-8")
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    in_order = counts == list(range(1, len(counts) + 1))
    wrong = {
        "not in the normal form; run `tools/notebooks.py normalize` on it.": not normal,
        f"execution counts are not 1 to {len(counts)}; execute it anew.": not in_order,
    }
    return [f"{path.name}: {problem}" for problem, found in wrong.items() if found]


def main() -> int:
    """The command line; 1 where a notebook fails or is not in the normal form."""
    parser = argparse.ArgumentParser(description="Execute, normalize or check notebooks.")
    parser.add_argument("command", choices=["execute", "normalize", "check", "address"])
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; without any, the book's")
    arguments = parser.parse_args()
    paths = [path.resolve() for path in arguments.paths] or book_notebooks()
    if missing := [str(path) for path in paths if not path.is_file()]:
        parser.error(f"no such notebook: {', '.join(missing)}.")
    if arguments.command == "execute":
        return execute_all(paths)
    if arguments.command == "check":
        problems = [problem for path in paths for problem in check(path)]
        print("\n".join(problems) or f"{len(paths)} notebooks are in the normal form.")
        return 1 if problems else 0
    changed = write_address() if arguments.command == "address" else normalize_all(paths)
    print("\n".join(f"rewritten: {name}" for name in changed) or "Nothing had to change.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
