"""What the status page says. `make status` (python tools/status.py) keeps what the last `make test`
found in `data/status.json`; the build of the book writes the page from it and from `data/results/`.
"""

import datetime
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ROOT / "_build" / "counts.json"  # written by conftest.py at the end of `make test`
KEPT = ROOT / "data" / "status.json"
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
    "scikit-learn",
    "matplotlib",
    "jupyter-book",
)
STATED = re.compile(r"^\| \[([^\]]+)\]\(book/([\w/]+)\.ipynb\) .*\| (\d+) \|$", re.MULTILINE)


# --- keeping ------------------------------------------------------------------------


def surroundings() -> dict[str, object]:
    """What the checks ran on."""
    system = (
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} processors, no GPU used"
    )
    packages = {name: version(name) for name in PACKAGES}
    return {"device": system, "versions": {"Python": platform.python_version(), **packages}}


def date_of(path: Path) -> str:
    """The day on which a kept file was last changed in the repository; "" where that is not
    known."""
    command = ["git", "log", "-1", "--format=%cs", "--", str(path)]
    return subprocess.run(command, cwd=path.parent, capture_output=True, text=True).stdout.strip()


def keep(counts: dict, root: Path = ROOT) -> dict:
    """What `data/status.json` holds: the counts of a run of the tests, where it ran, the days of
    the results."""
    results = {
        path.stem: date_of(path) for path in sorted((root / "data" / "results").glob("*.json"))
    }
    today = datetime.date.today().isoformat()
    return {"command": "make test", "date": today, **counts, **surroundings(), "results": results}


# --- showing ------------------------------------------------------------------------


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def checks(kept: dict) -> str:
    """How the last kept run of the tests ended."""
    failed = f"**{kept['failed']} failed**" if kept["failed"] else "none failed"
    told = f"`{kept['command']}` of {kept['date']}: {kept['passed']:,} checks passed, {failed}"
    out = sum(kept["deselected"].values())
    told += f", {out} did not apply on that machine" if out else ""
    return f"{told}; {kept['minutes']} minutes. {kept['device']}."


def chapters(kept: dict, readme: str) -> str:
    """Seconds of each chapter: stated at its head, and measured by the last kept run."""
    rows = [
        (f"[{name}](../{page}.ipynb)", stated, round(kept["seconds"][page]))
        for name, page, stated in STATED.findall(readme)
        if page in kept["seconds"]
    ]
    return table(("chapter", "seconds stated", "seconds measured"), rows)


def results(kept: dict, folder: Path) -> str:
    """Command, device and day of each kept result."""
    rows = []
    for path in sorted(folder.glob("*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        around = told.get("surroundings", {})
        where = f"{around['device']}, torch {around['torch'].partition('+')[0]}" if around else "–"
        rows.append(
            (f"`{path.stem}`", kept["results"].get(path.stem) or "–", f"`{told['command']}`", where)
        )
    return table(("result", "kept on", "command", "ran on"), rows)


def hostile(path: Path) -> str:
    """How many hostile inputs each way into the project was given, and what was found."""
    told = json.loads(path.read_text(encoding="utf-8"))
    rows = [(name, f"{door['inputs']:,}", door["findings"]) for name, door in told["doors"].items()]
    rows.append(("**all**", f"**{told['inputs']:,}**", f"**{told['findings']}**"))
    return (
        f"`{told['command']}` tries inputs made to break the project at each of its doors. A "
        f"finding is one that "
        "got neither a right answer nor one short sentence of refusal, in time.\n\n"
        + table(("door", "inputs", "findings"), rows)
    )


def sections(root: Path = ROOT) -> str:
    """The page below its introduction; what was never kept has no section."""
    parts = {}
    folder = root / "data" / "results"
    kept = {"results": {}}
    if (root / "data" / "status.json").is_file():
        kept = json.loads((root / "data" / "status.json").read_text(encoding="utf-8"))
        parts["Checks"] = checks(kept)
        parts["Chapters"] = chapters(kept, (root / "README.md").read_text(encoding="utf-8"))
        parts["Versions"] = table(("package", "version"), kept["versions"].items())
    if (folder / "fuzz.json").is_file():
        parts["Hostile inputs"] = hostile(folder / "fuzz.json")
    parts["Results"] = results(kept, folder)
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items()) + "\n"


if __name__ == "__main__":
    if not COUNTS.is_file():
        sys.exit("There is nothing to keep: run `make test` first.")
    found = keep(json.loads(COUNTS.read_text(encoding="utf-8")))
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{found['passed']:,} passed, {found['failed']} failed: {KEPT.relative_to(ROOT)}")
