"""`make card-plan`: all that is due on a graphics card, in one call that may be cut off.

    python tools/card_plan.py OUTPUT [--minutes 9] [--toy] [INPUTS of masking_and_answers]

First the benchmark (`benchmarks.card`) alone, because its times count; then `card_check.py --quick`
and, beside it where INPUTS are given (`--text PATH --start PATH --valid PATH --data PATH`), the
experiment `masking_and_answers`. Each writes one file into the folder OUTPUT, whole, after each row;
a second call with the same folder does what is left. `--toy` rehearses the plan on a CPU.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from card_check import end_of
from environment import ROOT

BENCHMARK_SECONDS = 150  # at most
SPARE = 15  # seconds at the end, for the last file


def finished(path: Path) -> bool:
    """Whether an earlier call has written the whole of this file."""
    return path.is_file() and bool(json.loads(path.read_text(encoding="utf-8")).get("finished"))


def commands(output: Path, inputs: list[str], toy: bool, minutes: float) -> dict[str, list[str]]:
    """The command of each part that is due."""
    benchmark, check = output / "benchmark.json", output / "check.json"
    what = [str(ROOT / "book/tasks/squad.ipynb")] if toy else ["--quick"]
    found = {
        "benchmark": ["-m", "benchmarks.card", str(benchmark), *(["--toy"] if toy else [])],
        "check": [str(ROOT / "tools/card_check.py"), *what, "--output", str(check)],
        "runs": ["-m", "research", "masking_and_answers", "--output", str(output / "answers.json")],
    }
    found["check"] += ["--minutes", str(minutes)]
    found["runs"] += inputs
    left_out = {"benchmark": finished(benchmark), "check": finished(check), "runs": not inputs}
    return {name: command for name, command in found.items() if not left_out[name]}


def started(command: list[str]) -> subprocess.Popen:
    """A part, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPANBERT_TUTORIAL_CARD": "1"}
    return subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment)


def main(words: list[str] | None = None) -> int:
    """The exit code: 0 when nothing is left to do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--toy", action="store_true", help="a rehearsal on a CPU")
    asked, inputs = parser.parse_known_args(words)
    asked.output.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * asked.minutes - SPARE
    due = commands(asked.output.resolve(), inputs, asked.toy, asked.minutes / 2)
    done = []
    if "benchmark" in due:
        limit = min(BENCHMARK_SECONDS, end - time.monotonic())
        done.append(end_of(started(due.pop("benchmark")), limit) == 0)
    running = [started(command) for command in due.values()]
    done += [end_of(one, end - time.monotonic()) == 0 for one in running]
    print("The plan is done." if all(done) else "Something is left: call it again.")
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
