"""The command line as a newcomer uses it: good runs, and one sentence with exit code 2 for bad
input."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spanbert_tutorial.__main__ import described, main

SUBJECTS = ["The miller", "A teacher", "The old captain", "Her brother", "The baker"]
VERBS = ["sold", "found", "carried", "painted", "mended"]
OBJECTS = ["the boat", "a lamp", "the green door", "two chairs", "the letter"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """120 documents of six short sentences."""
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    sentence = "{} {} {}.".format
    texts = [
        "\n".join(
            sentence(SUBJECTS[(i + j) % 5], VERBS[(i * j) % 5], OBJECTS[(i + 2 * j) % 5])
            for j in range(6)
        )
        for i in range(120)
    ]
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return path


def run(capsys, line: str, *more) -> tuple[int, str, str]:
    """What is typed, and more words → the exit code, the output, the errors."""
    code = main([*line.split(), *map(str, more)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


FILES = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
FILES |= {"README.md", "metrics.jsonl"}
SMALL = ["--steps", 6, "--batch-size", 8, "--vocab-size", 80, "--max-length", 24]


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp", "span", "span+sbo"])
def test_pretrain_writes_a_checkpoint_that_transformers_opens(capsys, corpus, tmp_path, objective):
    output = tmp_path / "made"
    line = f"pretrain --corpus {corpus} --output {output} --objective {objective}"
    code, out, err = run(capsys, line, *SMALL)
    assert (code, err) == (0, "")
    assert "Unigram entropy" in out and "Held out, span masking" in out and str(output) in out
    reached = [line.strip() for line in out.splitlines() if line.startswith(("Held out", "  SBO "))]
    card = (output / "README.md").read_text(encoding="utf-8")
    assert reached and all(f"- {line}" in card for line in reached)
    assert ("  SBO " in out and "per target (frequency alone " in out) == ("sbo" in objective)
    assert {path.name for path in output.iterdir()} == FILES
    from transformers import AutoTokenizer, BertModel

    assert BertModel.from_pretrained(output).config.hidden_size == 128
    assert AutoTokenizer.from_pretrained(output).tokenize("The Miller")[0] != "the"
    assert list(tmp_path.iterdir()) == [output]  # no scratch left


def test_the_same_seed_gives_the_same_weights(capsys, corpus, tmp_path):
    made = []
    for name, seed in [("a", 1), ("b", 1), ("c", 2)]:
        line = f"pretrain --corpus {corpus} --output {tmp_path / name} --seed {seed}"
        assert run(capsys, line, *SMALL)[0] == 0
        made.append((tmp_path / name / "model.safetensors").read_bytes())
    assert made[0] == made[1] != made[2]


def test_no_refused_command_writes_anything(capsys, corpus, tmp_path, monkeypatch):
    """Each bad input: exit code 2, one sentence that names it, and an untouched folder."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "latin.txt").write_bytes("Ein schöner Satz.".encode("latin-1"))
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n")
    (tmp_path / "short.txt").write_text("One sentence only.\n")
    before = sorted(tmp_path.rglob("*"))
    new = tmp_path / "new"
    cases = [
        (f"{tmp_path}/nowhere.txt --output {new}", "nowhere.txt does not exist"),
        (f"{tmp_path}/empty.txt --output {new}", "empty.txt"),
        (f"{tmp_path}/latin.txt --output {new}", "latin.txt is not UTF-8"),
        (f"{tmp_path}/short.txt --output {new}", "at least 50 documents"),
        (f"{corpus} --vocabulary {tmp_path}/vocab.txt --output {new}", "[MASK]"),
        (f"{corpus} --output {tmp_path}/taken", "exists already"),
        (f"{corpus} --output {tmp_path}/file/below", "cannot be written"),
        (f"{corpus} --output {new} --objective sbo", 'objective "sbo" is unknown'),
        (f"{corpus} --output {new} --steps 0", "--steps: 0 is not between 1 and 999,999,999"),
        (f"{corpus} --output {new} --max-length 600 --vocab-size 80", "600"),
    ]
    cases = [(f"pretrain --corpus {arguments}", expected) for arguments, expected in cases]
    cases += [  # what would do nothing, or something else than it seems
        (f"pretrain --vocab-size 90 --output {new}", "leave it out"),
        (f"inspect --task squad --data x --words a --corpus {corpus}", "--corpus is of a text"),
        (f"inspect --task squad --data {new}.tgz", "is an archive: unpack it"),
        (f"answer --model x --context-file {corpus} --question a --question b", "one --question"),
        (f"make-questions --corpus {corpus} --output {new}.csv", "would hold JSON"),
    ]
    for arguments, expected in cases:
        code, _, err = run(capsys, arguments)
        assert code == 2 and expected in err, (arguments, err)
        assert err.startswith("error: ") and err.count("\n") == 1, err
        assert sorted(tmp_path.rglob("*")) == before, arguments
    monkeypatch.setenv("LOCAL_RANK", "1")  # of several processes the first one tells
    assert run(capsys, "pretrain --steps 0") == (2, "", "")


def test_only_a_lack_of_memory_is_called_one():
    with pytest.raises(RuntimeError) as wrong:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    assert described(wrong.value)[1] == 1 and "out of" in described(MemoryError())[0]
    assert described(RuntimeError("CUDA out of memory."))[0] == described(MemoryError())[0]


def test_python_dash_m_works_from_a_shell():
    line = [sys.executable, "-m", "spanbert_tutorial", "pretrain", "--corpus", "nowhere"]
    made = subprocess.run(line, capture_output=True, text=True)
    assert made.returncode == 2 and "nowhere does not exist" in made.stderr
    assert "Traceback" not in made.stderr
    read, write = os.pipe()
    os.close(read)  # as `| head` does when it has enough
    made = subprocess.run(line, stdout=write, stderr=subprocess.PIPE)
    assert os.name == "nt" or (made.returncode, made.stderr) == (141, b"")
