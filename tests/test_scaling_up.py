"""The page on speed, memory and many GPUs: the program knows every command that it shows. That two
processes start is tested in `test_processes`."""

import re
import shlex

import pytest

from environment import ROOT
from notebooks import read
from spanbert_tutorial.__main__ import parser

PAGE = read(ROOT / "book" / "workshop" / "engine.ipynb")
FENCE = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
TEXT = "\n\n".join(cell.source for cell in PAGE.cells if cell.cell_type == "markdown")
COMMANDS = [line for block in FENCE.findall(TEXT) for line in block.strip().splitlines()]
assert len(COMMANDS) >= 5


@pytest.mark.parametrize("line", COMMANDS)
def test_the_program_knows_the_command(line):
    launcher, _, given = line.partition(" -m spanbert_tutorial ")
    assert re.fullmatch(
        r"python|torchrun --nproc_per_node 8|accelerate launch --multi_gpu --num_processes 8",
        launcher,
    )
    parser().parse_args(shlex.split(given))
