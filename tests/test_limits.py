"""Numbers on the command line: one table for all commands, and one sentence for what it refuses."""

import argparse
import math

import pytest
from test_main import run

from spanbert_tutorial.__main__ import COMMANDS, parser
from spanbert_tutorial.commands.limits import LIMITS, check
from spanbert_tutorial.errors import InputError, shown


def numeric_options():
    """(command, name, type) of each option that takes a number."""
    return [
        (name, action.dest, action.type)
        for name, command in below(parser())
        for action in inner(command)
        if action.type in (int, float)
    ]


def below(top):
    """The commands of a parser, or its tasks."""
    (commands,) = [
        action for action in top._actions if isinstance(action, argparse._SubParsersAction)
    ]
    return commands.choices.items()


def inner(command):
    """All options of a command, those of its tasks too."""
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for _, task in below(command):
                yield from task._actions
        else:
            yield action


def test_every_number_of_every_command_has_a_limit_and_every_limit_a_user():
    assert {name for _, name, _ in numeric_options()} == set(LIMITS)
    assert {command for command, *_ in numeric_options()} < set(COMMANDS)


@pytest.mark.parametrize("name", LIMITS)
def test_what_no_number_is_fits_nowhere(name):
    with pytest.raises(InputError, match=f"^--{name.replace('_', '-')} is nan: give a"):
        check({name: math.nan})
    check({name: None})
    check({})


@pytest.mark.parametrize("name", [name for name in LIMITS if name != "threshold"])
@pytest.mark.parametrize("number", [-1, 10**400, -(10**400), math.inf, -math.inf, 1e39])
def test_what_is_far_outside_fits_nowhere(name, number):
    with pytest.raises(InputError) as caught:
        check({name: number})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "name, least, most",
    [
        ("seed", 0, 2**63 - 1),
        ("steps", 1, 999_999_999),
        ("max_length", 4, 1_000_000),
        ("doc_stride", 1, 1_000_000),
        ("batch_size", 1, 100_000),
        ("accumulate", 1, 100_000),
        ("vocab_size", 1, 1_000_000),
        ("seeds", 1, 10_000),
    ],
)
def test_whole_numbers_reach_from_the_least_to_the_most(name, least, most):
    check({name: least})
    check({name: most})
    for number in (least - 1, most + 1):
        with pytest.raises(
            InputError, match=f" is {number}: give a whole number from {least:,} to "
        ):
            check({name: number})


@pytest.mark.parametrize(
    "name, number",
    [
        ("learning_rate", 0.0),
        ("learning_rate", 1e38),
        ("epochs", -0.0),
        ("epochs", 0.0),
        ("epochs", 10_000),
    ],
)
def test_the_ends_of_other_numbers_are_outside(name, number):
    with pytest.raises(InputError, match=r"give a number between 0 and \d"):
        check({name: number})


def test_any_threshold_is_a_threshold():
    for number in (0.0, -1e300, math.inf, -math.inf):
        check({"threshold": number})


@pytest.mark.parametrize(
    "command",
    [
        ["pretrain"],
        ["finetune", "squad", "--data", "x", "--init-from", "y", "--output", "z"],
        ["make-questions", "--corpus", "x", "--output", "y"],
    ],
)
@pytest.mark.parametrize(
    "seed, told",
    [
        ("-1", "--seed is -1: give a whole number from 0 to 2^63 − 1."),
        ("1.5", "invalid int value: '1.5'"),
        (str(2**63), "--seed is 9223372036854775808: give"),
        ("9" * 5_000, "invalid int value: '999"),
        ("", "value: ''"),
    ],
)
def test_a_seed_is_checked_alike_in_every_command(
    capsys, monkeypatch, tmp_path, command, seed, told
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *command, f"--seed={seed}")
    assert (
        (code, out) == (2, "") and err.startswith("error: ") and told in err and len(err) < 308
    ), err
    assert err.count("\n") == 1 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given, told",
    [
        (
            ["pretrain", "--stepps", "3"],
            "unrecognized arguments: --stepps 3: see python -m spanbert_tutorial --help.",
        ),
        ([], "required: COMMAND: see python -m spanbert_tutorial --help."),
        (["pretrian"], "'pretrian' (choose from"),
        (["evaluate"], "required: TASK: see python -m spanbert_tutorial evaluate --help"),
        (["evaluate", "squad"], "required: --model, --data, --output: see"),
        (["pretrain", "--s", "1"], "ambiguous option: --s"),
        (["almanac", "--output=--"], "--output: expected one argument"),
    ],
)
def test_wrong_options_are_one_sentence_too(capsys, given, told):
    code, out, err = run(capsys, *given)
    assert (
        (code, out, err.count("\n")) == (2, "", 1) and told in err and err.startswith("error: ")
    ), err


def test_a_long_value_of_many_words_is_shown_short():
    value = {"a": {"": None, "b c": None}, "": {str(i): None for i in range(60)}}
    assert (
        len(shown(value)) == 100
        and shown(value).startswith("{'a': {'': None, 'b c'")
        and shown([1]) == "[1]"
    )
