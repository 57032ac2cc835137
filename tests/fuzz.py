"""What the property-based suites (`test_fuzz_*.py`) share: how many inputs they try, the one
oracle, and the counts.

The oracle: whatever comes in through a door of the project, there is a right answer, or one
sentence of at most 300 characters (exit code 2 on the command line, InputError in Python); it comes
within its time, and the folder is then as it was. A suite is one file for one door:

    door = Door("corpora")
    counts = door.counts()  # a fixture: keeps how many inputs were tried

    @door.inputs(short=40)
    @given(text=st.text())
    def test_a_text_is_read_or_refused(text): ...
        outcome = door.command(["pretrain", "--corpus", "text.txt"], folder) # or made =
        door.call(corpora.documents, path) # REFUSED, or what it returns

`make test` tries the short number, always the same inputs. `make fuzz` sets SPANBERT_TUTORIAL_FUZZ
to the inputs of each door, tries others each time, and keeps the counts (`python tests/fuzz.py`
joins them).
"""

import contextlib
import io
import json
import os
import re
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
LONG = int(
    os.environ.get("SPANBERT_TUTORIAL_FUZZ", "0")
)  # inputs for each door; 0: the short numbers
COUNTS = ROOT / "_build" / "fuzz"  # one file a door
KEPT = ROOT / "data" / "results" / "fuzz.json"
LONGEST = 300  # characters of a refusal
MEMORY = 2**31  # bytes that an input may take beside what the tests have
PATIENCE = 10  # by how much waiting may be longer than computing
REFUSED = object()  # what `Door.call` returns in place of an answer


class Outcome(NamedTuple):
    """What a command gave back: exit code, and what it printed."""

    code: int
    out: str
    err: str


class Door:
    """One way into the project, by its name; `tried` counts the inputs that came
    through it."""

    def __init__(self, name: str):
        self.name = name
        self.tried = 0

    def inputs(self, short: int, share: float = 1.0) -> settings:
        """How many inputs a test tries: `short` in `make test`, its share of the door's number in
        `make fuzz`."""
        return settings(
            max_examples=max(1, round(LONG * share)) if LONG else short,
            derandomize=not LONG,
            database=None,
            deadline=None,  # `within` is the limit
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        )

    def command(
        self, arguments: list, folder: Path, seconds: float = 60.0, kept: str = ""
    ) -> Outcome:
        """`python -m spanbert_tutorial ARGUMENTS` in `folder`, judged: what it was given stays as
        it was, and a command that is refused leaves nothing else, but perhaps a folder `kept`, to
        go on from."""
        from spanbert_tutorial.__main__ import main

        self.tried += 1
        before = state_of(folder)
        printed = io.StringIO()
        said = io.StringIO()
        with (
            within(seconds),
            contextlib.chdir(folder),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(said),
        ):
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as end:  # of argparse, for --help
                code = end.code or 0
        outcome = Outcome(code, printed.getvalue(), said.getvalue())
        after = state_of(folder)
        if code:
            assert code == 2 or "the peak learning rate" in outcome.err, outcome
            check_refusal(outcome.err)
            new = {
                path
                for path in after.keys() - before.keys()
                if not kept or path.split(os.sep)[0] != kept
            }
            assert not new, difference(before, after)
        assert before.items() <= after.items(), difference(before, after)
        return outcome

    def call(
        self, function: Callable, *arguments: object, seconds: float = 10.0, **named: object
    ) -> object:
        """What the function returns, or REFUSED where it raises an InputError whose sentence is fit
        to read."""
        from spanbert_tutorial.errors import InputError

        self.tried += 1
        try:
            with within(seconds):
                return function(*arguments, **named)
        except InputError as error:
            check_sentence(str(error))
            return REFUSED

    def counts(self) -> Callable:
        """A fixture for the suite of this door; in `make fuzz` it keeps the counts."""

        @pytest.fixture(autouse=True, scope="module")
        def kept(request: pytest.FixtureRequest) -> Iterator[None]:
            failed = request.session.testsfailed
            yield
            if LONG:
                COUNTS.mkdir(parents=True, exist_ok=True)
                found = {"inputs": self.tried, "findings": request.session.testsfailed - failed}
                file = COUNTS / f"{re.sub(r'[^a-z]+', '_', self.name)}.json"
                file.write_text(json.dumps({self.name: found}), encoding="utf-8")

        return kept


# --- the oracle ---------------------------------------------------------------------


def check_refusal(err: str) -> None:
    """One line that begins with "error: "; warnings may stand before it, each on a line of its
    own."""
    lines = [line for line in err.split("\n")[:-1] if not line.startswith("warning: ")]
    assert len(lines) == 1 and lines[0].startswith("error: "), err
    check_sentence(lines[0].removeprefix("error: "))


def check_sentence(sentence: str) -> None:
    """Short, on one line, without signs that move a terminal's cursor, and it ends as a sentence
    does."""
    assert 10 <= len(sentence) <= LONGEST, sentence
    assert sentence.isprintable() and sentence.endswith((".", ")")), repr(sentence)
    assert "Traceback" not in sentence, sentence


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails what computes longer, or takes more than `MEMORY`; where the system has an alarm it
    also ends what would wait for ever. Other programs may be busy, so the alarm comes late, and the
    time is the processor's own."""
    began = time.process_time()
    alarm = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def late(*_: object) -> None:
        raise AssertionError(f"more than {PATIENCE * seconds} s")

    give_back = limited_memory()
    if alarm:
        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)
    try:
        yield
    finally:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        give_back()
    assert time.process_time() - began < seconds, f"more than {seconds} s of computing"


def limited_memory() -> Callable[[], object]:
    """From here on what needs much more than now gets a MemoryError, on Linux. Returns what lifts
    the limit."""
    if not sys.platform.startswith("linux"):
        return lambda: None
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    now = (
        int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        * resource.getpagesize()
    )
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """A folder for one input: hypothesis calls a test many times, and pytest's `tmp_path` stays the
    same."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def state_of(folder: Path) -> dict[str, tuple]:
    """Every path below a folder with its kind, its rights, and its content; links are not
    followed."""
    found = {}
    for place, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            about = os.lstat(path)
            content: object = None
            if stat.S_ISREG(about.st_mode):
                content = (
                    about.st_size if about.st_size > 2**20 else Path(os.fsdecode(path)).read_bytes()
                )
            elif stat.S_ISLNK(about.st_mode):
                content = os.readlink(path)
            found[os.fsdecode(os.path.relpath(path, os.fsencode(folder)))] = (
                about.st_mode,
                content,
            )
    return found


def difference(before: dict[str, tuple], after: dict[str, tuple]) -> str:
    """Which paths are new, gone or changed."""
    return repr(
        {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    )


# --- the counts ---------------------------------------------------------------------


def join_counts() -> int:
    """Keeps the counts of all doors in one file; returns how many findings there were."""
    doors: dict[str, dict[str, int]] = {}
    for file in sorted(COUNTS.glob("*.json")):
        doors |= json.loads(file.read_text(encoding="utf-8"))
    total = {name: sum(door[name] for door in doors.values()) for name in ("inputs", "findings")}
    kept = {"command": f"make fuzz FUZZ={LONG}", "doors": doors, **total}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(
        f"{total['inputs']:,} inputs through {len(doors)} doors, {total['findings']} findings: "
        f"{KEPT.name}"
    )
    return total["findings"]


if __name__ == "__main__":
    sys.exit(1 if join_counts() else 0)
