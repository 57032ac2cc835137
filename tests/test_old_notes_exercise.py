"""The check of the exercise accepts right attempts, also written differently, and names each likely
mistake."""

import re

import pytest

from spanbert_tutorial.exercises.old_notes import (
    MISTAKES,
    check_lower_case,
    diagnose_lower_case,
    is_special,
    lower_case,
)


def ordinary(tokens):
    return [token for token in tokens if not is_special(token)]


def test_a_right_attempt(capsys):
    check_lower_case(lower_case)
    assert capsys.readouterr().out.startswith("Correct")


def test_a_right_attempt_written_differently():
    def other_way(tokens, told):
        if told in (True, False):
            return told
        letters = "".join(token for token in tokens if not re.fullmatch(r"\[.*\]", token))
        return not any(letter.isupper() for letter in letters)

    assert diagnose_lower_case(other_way).startswith("Correct")


def asks_if_told(tokens, told):
    if told:
        return True
    return not any(token != token.lower() for token in ordinary(tokens))


def forgets_a_return(tokens, told):
    if told is not None:
        return told


def with_capital(capital):
    """An attempt that takes `capital(token)` for the sign of a cased vocabulary."""
    return lambda tokens, told: not any(map(capital, ordinary(tokens))) if told is None else told


@pytest.mark.parametrize(
    ("attempt", "named"),
    [
        (
            lambda tokens, told: not any(p != p.lower() for p in tokens) if told is None else told,
            "special tokens",
        ),
        (
            lambda tokens, told: told or not any(p != p.lower() for p in tokens),
            "And `told = False`",
        ),
        (asks_if_told, "`told = False` is an answer"),
        (lambda tokens, told: lower_case(tokens, None), "ignore `told`"),
        (
            lambda tokens, told: (
                any(p != p.lower() for p in ordinary(tokens)) if told is None else not told
            ),
            "the other way around: you return",
        ),
        (
            lambda tokens, told: (
                any(p != p.lower() for p in ordinary(tokens)) if told is None else told
            ),
            "if `told` is None, it is the other way around",
        ),
        (lambda tokens, told: told is None or told, "So does `transformers`"),
        (lambda tokens, told: bool(told), "you never lower-case. A vocabulary in small letters"),
        (lambda tokens, told: True, "you always lower-case"),
        (lambda tokens, told: False, "you never lower-case. Look"),
        (with_capital(lambda token: token[0].isupper()), "first character only"),
        (with_capital(lambda token: token.lstrip("#")[:1].isupper()), "first letter only"),
        (with_capital(lambda token: token.isupper()), "whole token is in capitals"),
        (with_capital(lambda token: bool(re.findall(r"[A-Z]", token))), "É is one"),
        (with_capital(lambda token: not token.islower()), "digits and signs"),
        (
            lambda tokens, told: (
                told
                if told is not None
                else not any(p != p.lower() for p in ordinary(tokens) if p[:2] != "##")
            ),
            "pass over tokens with ##",
        ),
        (
            lambda tokens, told: (
                told if told is not None else not all(p != p.lower() for p in ordinary(tokens))
            ),
            "One such token is enough",
        ),
        (
            lambda tokens, told: (
                told if told is not None else not any(p != p.lower() for p in tokens[5:])
            ),
            "first five",
        ),
        (
            lambda tokens, told: (
                told if told is not None else not any(p != p.lower() for p in tokens if p[0] != "[")
            ),
            "begins with a bracket",
        ),
        (forgets_a_return, "returns nothing"),
        (lambda tokens, told: tokens["a"], "TypeError"),
        (
            lambda tokens, told: (
                told if told is not None else "Alice" not in tokens and "NATO" not in tokens
            ),
            'the vocabulary "a capital inside" and told = None, the right answer is False, and yours is True',
        ),
    ],
)
def test_a_mistake_is_named(attempt, named):
    found = diagnose_lower_case(attempt)
    assert found.startswith("Not yet") and named in found


def test_no_named_mistake_is_right():
    for mistake, _ in MISTAKES:
        assert diagnose_lower_case(mistake).startswith("Not yet")
