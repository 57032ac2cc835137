"""`make colab-check`: run every notebook as Colab would: the package installed from its wheel, no
repository beside it.

Each notebook runs alone in an empty folder; only execution is checked, stored outputs are not
compared.
"""

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from environment import ROOT, prepare, warm_up
from notebooks import NotebookError, book_notebooks, read, run_cells

PREAMBLE = """\
import sys
from pathlib import Path
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path({root!r})]
import spanbert_tutorial
assert Path(str(spanbert_tutorial.__file__)).resolve().is_relative_to({target!r}), spanbert_tutorial.__file__
"""


def install_wheel(target: Path, root: Path = ROOT) -> Path:
    """Build the package's wheel and unpack it into the empty folder `target`; no network is
    needed."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    with tempfile.TemporaryDirectory() as built:
        build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", built, str(root)]
        subprocess.run(pip + build, check=True)
        wheel = next(Path(built).glob("*.whl"))
        print(f"wheel: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        subprocess.run(
            [*pip, "install", "--no-deps", "--no-index", "--target", str(target), str(wheel)],
            check=True,
        )
    return target


def run_alone(path: Path, target: Path, root: Path = ROOT) -> float:
    """Run one notebook in an empty folder; seconds taken. Raises NotebookError that names the
    failing cell."""
    start = time.perf_counter()
    notebook = read(path)
    source = PREAMBLE.format(root=str(root.resolve()), target=str(target.resolve()))
    notebook.cells.insert(0, nbformat.v4.new_code_cell(source))
    with tempfile.TemporaryDirectory() as empty:
        run_cells(notebook, Path(empty), path.name)
    return time.perf_counter() - start


def main() -> int:
    """Check all notebooks, two at a time."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        target = install_wheel(Path(folder))
        prepare(import_from=target)
        warm_up()
        with ThreadPoolExecutor(max_workers=2) as pool:
            runs = {path: pool.submit(run_alone, path, target) for path in book_notebooks()}
            for path, run in runs.items():
                try:
                    print(f"{path.name}: {run.result():.0f} s", flush=True)
                except NotebookError as problem:
                    failed += 1
                    print(f"FAILED: {problem}", file=sys.stderr, flush=True)
    print(f"colab-check: {len(runs) - failed} of {len(runs)} notebooks ran from the wheel alone.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
