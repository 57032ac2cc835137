"""Hostile command lines: wild numbers, unknown words, options that are missing, doubled or do not
go together. The oracle is in `fuzz`."""

import json

import pytest
from fuzz import Door, new_folder
from hypothesis import given
from hypothesis import strategies as st
from test_main import OBJECTS, SUBJECTS, VERBS

from spanbert_tutorial.__main__ import COMMANDS
from spanbert_tutorial.engine.files import data_path

door = Door("command line")
counts = door.counts()

TINY = str(data_path("checkpoints", "spanbert-tiny"))
READER = str(data_path("reader", "reader.json"))
SMALL = {
    "--corpus": "text.txt",
    "--vocab-size": "80",
    "--max-length": "16",
    "--batch-size": "4",
    "--steps": "1",
}
WHOLE = st.integers().map(str) | st.sampled_from(
    [
        "-1",
        "0",
        "00",
        "1",
        "-0",
        "1e3",
        "1.0",
        "0x10",
        "1_0",
        " 7 ",
        "٣",
        "nan",
        "inf",
        "None",
        "",
        "--",
        "-",
        "+1",
        str(2**31),
        str(2**63 - 1),
        str(2**63),
        str(2**64),
        "9" * 30,
        "9" * 400,
        "9" * 5_000,
    ]
)
REAL = (
    st.floats().map(str)
    | WHOLE
    | st.sampled_from(["1e309", "-1e309", "1e-400", "infinity", "-nan", "1e38", "0.5"])
)
WORDS = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "tiny",
        "TINY",
        "span",
        "span+sbo",
        "mlm+nsp",
        "squad",
        "a/b",
        "a/b:c",
        "..",
        "/",
        "-",
        "--help",
        "--seed",
        "é",
        "\u202e",
        "\x1b[2J",
        "\udcff",
        "x" * 300,
        "x" * 5_000,
        "w " * 900,
        "text.txt",
        "text.txt/",
        "nowhere",
        "%s%n",
        "$HOME",
        "*",
        "null",
    ]
)
WORDS |= st.text(max_size=12).filter(
    lambda text: "\0" not in text
)  # no command line can hold a zero byte
WILD = {
    "--steps": WHOLE,
    "--max-length": WHOLE,
    "--batch-size": WHOLE,
    "--accumulate": WHOLE,
    "--vocab-size": WHOLE,
    "--seed": WHOLE,
    "--seeds": WHOLE,
    "--doc-stride": WHOLE,
    "--epochs": REAL,
    "--learning-rate": REAL,
    "--threshold": REAL,
}
NAMES = [
    "--objective",
    "--config",
    "--vocabulary",
    "--init-from",
    "--leave-out",
    "--preset",
    "--data",
    "--model",
    "--tune-on",
    "--question",
    "--context-file",
    "--corpus",
]
FLAGS = [
    "--half",
    "--resume",
    "--dry-run",
    "--easy",
    "--untrained",
    "--answers-only",
    "--help",
    "--nothing",
    "stray",
]


def large(option: str, value: str) -> bool:
    """Whether it is a number that an honest run would work on for long."""
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return False
    return number > {
        "--steps": 2,
        "--accumulate": 3,
        "--batch-size": 64,
        "--max-length": 64,
        "--seeds": 1,
        "--epochs": 1e-3,
    }.get(option, float("inf"))


def honest(option: str, value: str) -> bool:
    """Whether this value, though large, is inside what the command takes."""
    from spanbert_tutorial.commands.limits import LIMITS

    limit = LIMITS.get(option[2:].replace("-", "_"))
    try:
        return limit is not None and large(option, value) and limit.fits(float(value))
    except (ValueError, OverflowError):
        return False


@pytest.fixture(scope="module", autouse=True)
def without_bar():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
        yield


def text_file(folder):
    sentence = "{} {} {}.".format
    texts = [
        "\n".join(
            sentence(SUBJECTS[(i + j) % 5], VERBS[(i * j) % 5], OBJECTS[(i + 2 * j) % 5])
            for j in range(4)
        )
        for i in range(60)
    ]
    (folder / "text.txt").write_text("\n\n".join(texts), encoding="utf-8")


@st.composite
def changed(draw, options: dict, names: list[str]):
    """Options with some of their values, or some further options, gone wild; a list of words."""
    options = dict(options)
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)):
        value = draw(WILD.get(name, WORDS))
        if not honest(name, value):
            options[name] = value
    words = [
        part
        for name, value in options.items()
        for part in draw(st.sampled_from([[f"{name}={value}"], [f"{name}={value}"], [name, value]]))
    ]
    return [*words, *draw(st.lists(st.sampled_from(FLAGS), max_size=1))]


@door.inputs(short=60, share=0.4)
@given(
    changed(
        SMALL | {"--output": "made"},
        [
            *WILD,
            "--objective",
            "--config",
            "--vocabulary",
            "--init-from",
            "--leave-out",
            "--corpus",
        ],
    )
)
def test_pretrain_is_right_or_refuses(words):
    with new_folder() as folder:
        text_file(folder)
        made = door.command(["pretrain", *words], folder)
        if not made.code and not {"--dry-run", "--help"} & {*words}:
            (config,) = folder.glob("**/config.json")
            assert json.loads(config.read_text(encoding="utf-8"))["model_type"] == "bert"
            assert not [*folder.glob("**/.*"), *folder.glob("**/*.training")]


@door.inputs(short=60, share=0.4)
@given(
    st.data(),
    st.sampled_from(
        [
            ["finetune", "squad"],
            ["evaluate", "squad"],
            ["answer"],
            ["make-questions"],
            ["export", "web", TINY],
            ["export", "onnx", TINY],
        ]
    ),
)
def test_the_other_commands_refuse_what_is_wrong(data, command):
    """None of these gets as far as work: something that it needs is missing or wild."""
    needed = {
        "finetune": {"--data": READER, "--init-from": TINY, "--output": "made"},
        "evaluate": {"--data": READER, "--model": TINY, "--output": "made"},
        "answer": {"--question": "Who?", "--context-file": "text.txt", "--model": TINY},
        "make-questions": {"--corpus": "text.txt", "--output": "made.json"},
        "export": {"--output": "text.txt"},
    }[command[0]]
    words = data.draw(changed(needed, [*WILD, *NAMES]))
    if command[0] == "finetune":
        words = [word for word in words if word != "--resume"] + [
            "--resume"
        ]  # without a stopped run
    with new_folder() as folder:
        text_file(folder)
        made = door.command([*command, *words], folder)
        assert made.code or "--help" in words or command[0] in ("answer", "make-questions")


@door.inputs(short=60, share=0.2)
@given(
    st.lists(
        st.sampled_from([*COMMANDS, "squad", *WILD, *NAMES, *FLAGS, "made"]) | WORDS | WHOLE,
        max_size=6,
    )
)
def test_any_words_are_refused_in_one_sentence(words):
    """As a cat on the keyboard would have it; `pretrain` alone would train."""
    if words[:1] != ["pretrain"]:
        with new_folder() as folder:
            door.command(words, folder)
