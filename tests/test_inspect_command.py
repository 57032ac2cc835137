"""`inspect`, which tells of a text what training will meet, and the part of it that is held out."""

import random
import re

import pytest
from test_main import run

from spanbert_tutorial.engine.files import data_path

TINY = data_path("checkpoints", "spanbert-tiny")
SHORT = ["--steps", 4, "--batch-size", 32, "--max-length", 32, "--objective", "mlm"]


@pytest.fixture
def korean(tmp_path):
    words = random.Random(0)
    one = [
        " ".join(words.choices(["강", "마을", "다리", "시장", "사람"], k=20)) + "."
        for _ in range(60)
    ]
    path = tmp_path / "korean.txt"
    path.write_text("\n\n".join(one), encoding="utf-8")
    return path


def test_words_unknown_tokens_and_tables(capsys, korean):
    before = sorted(korean.parent.rglob("*"))
    code, out, err = run(
        capsys, "inspect", "--corpus", korean, "--vocabulary", TINY, "--words", "강", "Alice"
    )
    assert (code, err) == (0, "") and "% of the tokens are [UNK]" in out
    assert "강: [UNK]" in out.splitlines() and "Alice: Alice" in out.splitlines()
    code, out, err = run(
        capsys, "inspect", "--corpus", korean, "--vocab-size", 80, "--words", "마을"
    )
    assert "[UNK]" not in out and "마을: 마을" in out.splitlines()
    assert sorted(korean.parent.rglob("*")) == before


def test_the_tables_are_those_that_a_run_is_compared_with(capsys, korean):
    given = ["--corpus", korean, "--vocab-size", 80, "--held-out-every", 4]
    _, told, _ = run(capsys, "inspect", *given, "--max-length", 32)
    _, trained, _ = run(capsys, "pretrain", *given, *SHORT, "--output", korean.parent / "made")
    reached = re.findall(
        r"frequency ([\d.]+) per masked token, frequency by position ([\d.]+)", told
    )
    assert len(reached) == 2
    assert reached == re.findall(
        r"frequency alone ([\d.]+), frequency by position ([\d.]+)\)", trained
    )
    assert "45 documents" in told and "15 documents held out" in told and "45 documents" in trained
