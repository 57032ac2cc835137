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


def ordinary(pieces):
    return [piece for piece in pieces if not is_special(piece)]


def test_a_right_attempt(capsys):
    check_lower_case(lower_case)
    assert capsys.readouterr().out.startswith("Correct")


def test_a_right_attempt_written_differently():
    def other_way(pieces, told):
        if told in (True, False):
            return told
        letters = "".join(piece for piece in pieces if not re.fullmatch(r"\[.*\]", piece))
        return not any(letter.isupper() for letter in letters)

    assert diagnose_lower_case(other_way).startswith("Correct")


def asks_if_told(pieces, told):
    if told:
        return True
    return not any(piece != piece.lower() for piece in ordinary(pieces))


def forgets_a_return(pieces, told):
    if told is not None:
        return told


def with_capital(capital):
    """An attempt that takes `capital(piece)` for the sign of a cased vocabulary."""
    return lambda pieces, told: not any(map(capital, ordinary(pieces))) if told is None else told


@pytest.mark.parametrize(
    ("attempt", "named"),
    [
        (
            lambda pieces, told: not any(p != p.lower() for p in pieces) if told is None else told,
            "special tokens",
        ),
        (
            lambda pieces, told: told or not any(p != p.lower() for p in pieces),
            "And `told = False`",
        ),
        (asks_if_told, "`told = False` is an answer"),
        (lambda pieces, told: lower_case(pieces, None), "do not use what is told"),
        (
            lambda pieces, told: (
                any(p != p.lower() for p in ordinary(pieces)) if told is None else not told
            ),
            "the other way round: you say",
        ),
        (
            lambda pieces, told: (
                any(p != p.lower() for p in ordinary(pieces)) if told is None else told
            ),
            "without a word from the config",
        ),
        (lambda pieces, told: told is None or told, "So does `transformers`"),
        (lambda pieces, told: bool(told), "you never lower-case. A vocabulary in small letters"),
        (lambda pieces, told: True, "you always lower-case"),
        (lambda pieces, told: False, "you never lower-case. Look"),
        (with_capital(lambda piece: piece[0].isupper()), "first character only"),
        (with_capital(lambda piece: piece.lstrip("#")[:1].isupper()), "first letter only"),
        (with_capital(lambda piece: piece.isupper()), "whole piece is in capitals"),
        (with_capital(lambda piece: bool(re.findall(r"[A-Z]", piece))), "É is one"),
        (with_capital(lambda piece: not piece.islower()), "digits and signs"),
        (
            lambda pieces, told: (
                told
                if told is not None
                else not any(p != p.lower() for p in ordinary(pieces) if p[:2] != "##")
            ),
            "pass over pieces with ##",
        ),
        (
            lambda pieces, told: (
                told if told is not None else not all(p != p.lower() for p in ordinary(pieces))
            ),
            "One such piece is enough",
        ),
        (
            lambda pieces, told: (
                told if told is not None else not any(p != p.lower() for p in pieces[5:])
            ),
            "first five",
        ),
        (
            lambda pieces, told: (
                told if told is not None else not any(p != p.lower() for p in pieces if p[0] != "[")
            ),
            "begins with a bracket",
        ),
        (forgets_a_return, "returns nothing"),
        (lambda pieces, told: pieces["a"], "TypeError"),
        (
            lambda pieces, told: (
                told if told is not None else "Alice" not in pieces and "NATO" not in pieces
            ),
            'the vocabulary "a capital inside" and told = None, wanted is False, and yours is True',
        ),
    ],
)
def test_a_mistake_is_named(attempt, named):
    found = diagnose_lower_case(attempt)
    assert found.startswith("Not yet") and named in found


def test_no_named_mistake_is_right():
    for mistake, _ in MISTAKES:
        assert diagnose_lower_case(mistake).startswith("Not yet")
