"""The page on speed, memory and many cards: the program knows every command that it shows. That two
processes start is tested in `test_processes`."""

import re
import shlex

import pytest
from page_links import BOOK, links, markdown

from spanbert_tutorial.__main__ import parser
from spanbert_tutorial.commands import limits

PAGE = BOOK / "workshop" / "engine.ipynb"
FENCE = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in FENCE.findall(markdown(PAGE)) for line in block.strip().splitlines()]


@pytest.mark.parametrize("line", COMMANDS)
def test_the_program_knows_the_command(line):
    launcher, _, given = line.partition(" -m spanbert_tutorial ")
    assert re.fullmatch(
        r"python|torchrun --nproc_per_node 8|accelerate launch --multi_gpu --num_processes 8",
        launcher,
    )
    options = parser().parse_args(shlex.split(given))
    limits.check(vars(options))


def test_there_are_commands_and_the_links_lead_somewhere():
    assert len(COMMANDS) >= 5
    targets = {target for _, target in links(markdown(PAGE))}
    assert targets and all((PAGE.parent / target).is_file() for target in targets)
