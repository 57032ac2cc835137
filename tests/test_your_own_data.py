"""The page on one's own data: every command and every token of Python on it is run, in order, and
what it prints is compared with what the page states."""

import contextlib
import io
import json
import re
import shlex

import numpy as np
import pytest

from environment import ROOT
from spanbert_tutorial.__main__ import main
from spanbert_tutorial.pretraining import runs

PAGE = (ROOT / "book" / "workshop" / "your_own_data.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(bash|python|text)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?!\w|\.\d)%?")
CALL = ["python", "-m", "spanbert_tutorial"]


def steps() -> list[tuple[str, str, list[str]]]:
    """(kind, what is typed, the lines that it is said to print) of each step."""
    found = []
    for kind, text in FENCES:
        if kind == "text":
            found[-1][2].extend(line for line in text.splitlines() if line != "…")
        else:
            found.append((kind, text, []))
    return found


def agrees(stated: str, printed: str) -> bool:
    """Whether a printed line is the stated one: the same words, "…" for any, and numbers near those
    stated."""
    words = [re.escape(part).replace("…", ".*") for part in NUMBER.split(stated.rstrip())]
    match = re.fullmatch(r"(\d[\d,]*(?:\.\d+)?%?)".join(words), printed.rstrip())
    return match is not None and all(map(near, NUMBER.findall(stated), match.groups()))


def near(stated: str, printed: str) -> bool:
    """Counts exactly; a loss within 0.2 nats; shares and scores in percent within 6 points."""
    (wanted, one), (found, other) = (
        (float(text.strip("%").replace(",", "")), text) for text in (stated, printed)
    )
    if one.endswith("%") or (wanted >= 20 and "." in one):
        return abs(wanted - found) <= 6 and one.endswith("%") == other.endswith("%")
    return abs(wanted - found) <= 0.2 if "." in one else wanted == found


def type_in(kind: str, text: str) -> str:
    """What a reader sees who types this."""
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen):
        if kind == "python":
            exec(text, {})
        else:
            for line in text.replace("\\\n", " ").strip().splitlines():
                words = shlex.split(line)
                assert words[:3] == CALL
                assert main(words[3:]) == 0, line
    return screen.getvalue()


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the book's data, as in the book's own."""
    folder = tmp_path_factory.mktemp("book")
    (folder / "data").symlink_to(ROOT / "data", target_is_directory=True)
    (folder / "own").mkdir()
    return folder


@pytest.mark.parametrize("kind, text, stated", steps(), ids=range(len(steps())))
def test_every_step_says_what_the_page_says(here, monkeypatch, kind, text, stated):
    monkeypatch.chdir(here)
    monkeypatch.setattr(runs, "REHEARSAL", 0.5)  # no line states a time
    printed = type_in(kind, text).splitlines()
    rest = iter(printed)
    for line in stated:
        assert any(agrees(line, other) for other in rest), (
            f"{line!r} is not in its place among {printed}"
        )


def test_the_claims_of_the_text(here):
    """Each figure of the running text stands in a stated output, or is counted here (after the
    steps above)."""
    from spanbert_tutorial.bert.wordpiece import WordPiece
    from spanbert_tutorial.pretraining.checkpoints import read_vocabulary

    tokens = read_vocabulary(ROOT / "data" / "checkpoints" / "spanbert-mini").vocabulary
    assert sum(any("가" <= letter <= "힣" for letter in token) for token in tokens) == 22
    assert ord("힣") - ord("가") + 1 == 11_172
    own = WordPiece.from_file(here / "own" / "ko" / "tokenizer.json")
    assert {"떡", "##떡", "볶", "##이"} <= set(own.vocabulary) and "##볶" not in own.vocabulary
    lines = (ROOT / "data" / "korean" / "documents.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [own.encode(json.loads(line)["text"]) for line in lines]
    held_out = np.concatenate(ids[9::10])
    assert (len(held_out), (held_out == own.unk_id).sum()) == (1_302, 27)
    assert sum((some == own.unk_id).sum() for some in ids) == 27
    vocabulary = {
        name: number
        for number, name in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "한"])
    }
    stripped = WordPiece(vocabulary, lowercase=True).library.normalizer.normalize_str("한국")
    assert len(stripped) > 2  # letters, not syllables
    english = read_vocabulary(ROOT / "data" / "checkpoints" / "spanbert-mini")
    read = np.concatenate(
        [
            english.encode(json.loads(line)["text"])
            for place, line in enumerate(lines)
            if place % 10 != 9
        ]
    )
    unknown = (read == english.unk_id).sum()
    assert (len(read), round(100 * unknown / len(read))) == (6_206, 87)
    # the first table adds one to each count
    assert round(100 * (unknown + 1) / (len(read) + len(english))) == 38
    outputs = "".join(body for kind, body in FENCES if kind == "text")
    figures = "0.44 87% 6.74 6.54 5.93 6.96 209 10,737 0.40 1.20 7.03 6.15 6.89"
    for figure in figures.split():
        assert figure in outputs and figure.rstrip("%").split(".")[0] in PAGE
