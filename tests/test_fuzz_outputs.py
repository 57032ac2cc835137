"""Hostile outputs: names that are empty, endless or no text, places that cannot be written, disks
that are full, and files that are no files. The oracle is in `fuzz`."""

import builtins
import contextlib
import errno
import io
import os
from pathlib import Path

import pytest
from fuzz import Door, new_folder
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz_command_line import SMALL, TINY, text_file

from spanbert_tutorial.engine.files import data_path

door = Door("outputs and folders")
counts = door.counts()

posix = pytest.mark.skipif(os.name == "nt", reason="pipes and names of bytes")
ANSWERER = str(data_path("checkpoints", "spanbert-mini-squad"))
LETTERS = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20
)
NAMES = LETTERS | st.sampled_from(
    [
        "",
        ".",
        "..",
        "/",
        "//",
        "./",
        " ",
        "\n",
        "-",
        "--",
        "~",
        "a/",
        "a/..",
        "a/./b",
        "*",
        "made.training",
        "made.json.part",
        "\udcff",
        "é\udc80.json",
        "CON",
        "\u202e",
    ]
)
NAMES |= st.integers(240, 260).map(lambda size: "n" * size) | st.sampled_from(
    ["ä" * 127, "ä" * 128, "n" * 5_000]
)
PLACES = st.sampled_from(
    ["", "new/", "new/deeper/", "text.txt/", "pipe/", "broken/", "empty/", "loop/", "n" * 256 + "/"]
)
PATHS = st.builds(str.__add__, PLACES, NAMES)
KINDS = [
    "text.txt",
    "pipe",
    "pipe.txt",
    "empty",
    "empty.txt",
    "broken",
    "loop",
    "loop.txt",
    "zeros.txt",
    "fails.txt",
    "folder.txt",
    "nowhere.txt",
    "n" * 256 + ".txt",
    "mine.json.part",
    "half.json",
]
MAKE = ["make-questions", "--corpus", "long.txt"]
TRAIN = ["pretrain", *(word for option in SMALL.items() for word in option)]


@pytest.fixture(scope="module", autouse=True)
def without_bar():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
        yield


def odd_things(folder):
    """A folder with a thing of every kind, and with files of the user that look like parts."""
    text_file(folder)
    sentence = "The old miller of the town sold a green boat to Clara in 1904. "
    (folder / "long.txt").write_text(3 * sentence, encoding="utf-8")
    (folder / "empty").mkdir()
    (folder / "folder.txt").mkdir()
    (folder / "empty.txt").touch()
    (folder / "half.json").write_text('{"rows": [', encoding="utf-8")
    for name in ("made.json.part", ".made.json.1.part", ".made.part", "mine.json.part"):
        (folder / name).write_text("mine", encoding="utf-8")
    (folder / "broken").symlink_to("nowhere")
    for name in ("loop", "loop.txt"):
        (folder / name).symlink_to(name)
    (folder / "zeros.txt").symlink_to("/dev/zero")
    (folder / "fails.txt").symlink_to(
        "/proc/self/mem"
    )  # on Linux reading it is an input/output error
    for name in ("pipe", "pipe.txt"):
        os.mkfifo(folder / name)


@posix
@door.inputs(short=80, share=0.4)
@given(PATHS)
def test_questions_are_written_to_any_place_or_refused(path):
    with new_folder() as folder:
        odd_things(folder)
        made = door.command([*MAKE, f"--output={path}"], folder)
        if not made.code:
            assert os.path.getsize(folder / Path(path)) > 100


@posix
@door.inputs(short=15, share=0.05)
@given(PATHS)
def test_a_checkpoint_is_written_to_any_place_or_refused(path):
    with new_folder() as folder:
        odd_things(folder)
        made = door.command([*TRAIN, f"--output={path}"], folder)
        if not made.code:
            assert os.path.getsize(folder / Path(path) / "model.safetensors") > 10_000
            assert not os.path.lexists(folder / f"{Path(path)}.training")


@posix
@door.inputs(short=80, share=0.35)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(
        [
            [*TRAIN, "--output=made", "--corpus"],
            [*TRAIN, "--output=made", "--leave-out"],
            [*TRAIN, "--output=made", "--vocabulary"],
            [*TRAIN, "--output=made", "--init-from"],
            [*MAKE, "--output=m", "--leave-out"],
            ["make-questions", "--output=m", "--corpus"],
            ["answer", "--question=Who?", "--context-file=text.txt", "--model"],
            [
                "answer",
                "--question=Who?",
                f"--model={ANSWERER}",
                "--vocabulary=nowhere.txt",
                "--context-file",
            ],
            ["finetune", "squad", f"--init-from={TINY}", "--output=made", "--data"],
            ["evaluate", "squad", f"--model={ANSWERER}", "--output=made", "--data"],
            ["experiment", "live_run", "--seeds=1", "--output"],
            ["experiment", "answer_errors", "--output=made", "--data"],
            ["almanac", "--output"],
        ]
    ),
)
def test_what_is_no_file_is_refused_and_never_waited_for(kind, command):
    if command[0] in ("almanac", "experiment") and kind in ("nowhere.txt",):
        return  # a good place to write to
    with new_folder() as folder:
        odd_things(folder)
        made = door.command([*command, kind], folder)
        titles = (
            {"empty.txt", "half.json"} if "--leave-out" in command else set()
        )  # any text is a list of titles
        assert made.code or kind in {"text.txt", "mine.json.part"} | titles


@contextlib.contextmanager
def full_after(writes: int):
    """The disk is full after so many writes and forced files; what is removed gives no room."""
    left = [writes]
    opened = builtins.open
    force = os.fsync

    def count(*_):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def limited(file, mode="r", *more, **named):
        if set(mode) & set("wax+"):
            count()
        return opened(file, mode, *more, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", limited)  # pathlib's
        patch.setattr(builtins, "open", limited)
        patch.setattr(os, "fsync", lambda handle: (count(), force(handle))[1])
        yield


@posix
@door.inputs(short=24, share=0.2)
@given(st.sampled_from(["make", "make", "make", "train", "almanac"]), st.integers(0, 30))
def test_a_full_disk_is_one_sentence_and_leaves_nothing(what, writes):
    """Wherever it comes: while the text is encoded, a snapshot, the figures or the checkpoint is
    written. Only a snapshot stays, and the sentence then says how to go on."""
    command = {"make": MAKE, "train": TRAIN, "almanac": ["almanac"]}[what]
    writes = 0 if what == "almanac" else writes  # later ones come after long work
    with new_folder() as folder:
        odd_things(folder)
        with full_after(writes):
            made = door.command(
                [*command, "--output", "made.json"], folder, kept="made.json.training"
            )
        assert made.code == 0 or "No space" in made.err
        assert ("--resume" in made.err) == (folder / "made.json.training").exists()
