"""The page on speed, memory and many cards: every command that it shows runs, and says of itself
what the page says."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from page_links import BOOK, links, markdown

PAGE = BOOK / "workshop" / "engine.ipynb"
FENCE = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in FENCE.findall(markdown(PAGE)) for line in block.strip().splitlines()]
ALONE = [line for line in COMMANDS if line.startswith("python ")]
TOGETHER = [line for line in COMMANDS if not line.startswith("python ")]
# instead of the page's
SMALL = {
    "--config": "tiny",
    "--steps": "2",
    "--batch-size": "4",
    "--vocab-size": "80",
}


def made_small(line: str) -> list[str]:
    """The command's words after the package's name, with small numbers and with paths that are
    there."""
    words = shlex.split(line)
    words = words[words.index("spanbert_tutorial") + 1 :]
    paths = {"MY_TEXTS": "texts.txt", "DRIVE/base": "drive"}
    words = [
        SMALL.get(before, paths.get(word, word))
        for before, word in zip(["", *words], words, strict=False)
    ]
    return [*words, "--max-length", "24", *([] if "--steps" in words else ["--steps", "2"])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text."""
    place = tmp_path_factory.mktemp("scaling")
    (place / "texts.txt").write_text(
        "\n\n".join(f"The boat {i} left the town.\nIt was {i % 7} years old." for i in range(200)),
        encoding="utf-8",
    )
    return place


def test_there_are_commands_and_the_links_lead_somewhere():
    assert len(ALONE) >= 5 and len(TOGETHER) == 2
    assert all("-m spanbert_tutorial " in line for line in COMMANDS)
    targets = {target for _, target in links(markdown(PAGE))}
    assert targets and all((PAGE.parent / target).is_file() for target in targets)


@pytest.mark.parametrize("line", TOGETHER, ids=lambda line: line.split()[0])
def test_the_commands_of_several_processes_start_them(line, folder):
    """With two processes on a CPU, and only as far as saying what a run would cost."""
    module = {
        "torchrun": ["torch.distributed.run", "--standalone"],
        "accelerate": ["accelerate.commands.launch"],
    }
    launcher, *given = shlex.split(line[: line.index(" -m spanbert_tutorial")].replace(" 8", " 2"))
    given = [word for word in given if word != "launch"]
    command = [
        sys.executable,
        "-m",
        *module[launcher],
        *given,
        "-m",
        "spanbert_tutorial",
        *made_small(line),
    ]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "SPANBERT_TUTORIAL_STATIC": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(
        [*command, "--dry-run"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stdout.count("Nothing was written") == 1, done.stderr
