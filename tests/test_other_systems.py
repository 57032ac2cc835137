"""What Windows and macOS lack or do otherwise, simulated: no `fork`, processes that are spawned, a
console of one byte a character, no default encoding."""

import os
import subprocess
import sys

from environment import ROOT

SYSTEM = """\
import csv, multiprocessing, os, struct
os.__dict__.pop("fork", None)
multiprocessing.set_start_method("spawn")
csv.field_size_limit = lambda limit: struct.pack("i", limit)  # Windows' C long has 32 bits
"""
OTHERS = ("site-packages", f"lib{os.sep}python")


def test_training_and_answering_without_fork_on_a_console_of_one_byte(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SYSTEM, encoding="utf-8")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "PYTHONIOENCODING": "cp1252",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "LC_ALL": "C",
        "PYTHONWARNDEFAULTENCODING": "1",
    }
    stories = [f"Łucja and Anna Müller crossed bridge {i} → home. It rained." for i in range(90)]
    text = tmp_path / "Brücken.txt"
    text.write_text("\n\n".join(stories), encoding="utf-8")

    model = str(ROOT / "data" / "checkpoints" / "spanbert-mini-squad")
    options = "--steps 2 --batch-size 8 --max-length 64 --vocab-size 200 --held-out-every 9"
    pretrain = ["pretrain", "--corpus", text.name, "--output", "made", *options.split()]
    asked = ["--question", "Who crossed bridge 7?"]
    answer = ["answer", "--model", model, "--context-file", text.name, *asked]
    middle = len(pretrain) + 1
    program = "import sys; from spanbert_tutorial.__main__ import main; "
    program += f"sys.exit(main(sys.argv[1:{middle}]) or main(sys.argv[{middle}:]))"
    command = [sys.executable, "-W", "always::EncodingWarning", "-c", program, *pretrain, *answer]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True)
    said = result.stderr.decode("cp1252")
    assert result.returncode == 0, said
    ours = [line for line in said.splitlines() if "EncodingWarning" in line]
    assert not [line for line in ours if not any(place in line for place in OTHERS)]
    assert (tmp_path / "made" / "model.safetensors").is_file()
    assert "score" in result.stdout.decode("cp1252")
