"""The check of the exercise tells what is wrong."""

import numpy as np
import pytest
import torch

from spanbert_tutorial.exercises import classification as exercise

SPECIAL = {"[CLS]", "[SEP]", "[PAD]"}


def with_lists(states, tokens):
    rows = [state for state, token in zip(states, tokens, strict=True) if token not in SPECIAL]
    return tuple(sum(values) / len(rows) for values in zip(*rows, strict=True))


def with_numpy(states, tokens):
    return np.array(states)[~np.isin(tokens, list(SPECIAL))].mean(0)


def with_torch(states, tokens):
    own = torch.tensor([token not in SPECIAL for token in tokens])
    return (torch.tensor(states) * own[:, None]).sum(0) / own.sum()


def letters_only(states, tokens):
    return np.mean(
        [state for state, token in zip(states, tokens, strict=True) if token.isalpha()], axis=0
    )


def to_the_first_sep(states, tokens):
    return np.mean(states[1 : tokens.index("[SEP]")], axis=0)


def a_set_of_states(states, tokens):
    own = {
        tuple(state) for state, token in zip(states, tokens, strict=True) if token not in SPECIAL
    }
    return np.mean(list(own), axis=0)


def a_dictionary_of_tokens(states, tokens):
    own = {
        token: state for token, state in zip(tokens, states, strict=True) if token not in SPECIAL
    }
    return np.mean(list(own.values()), axis=0)


def all_but_the_ends(states, tokens):
    return np.mean(states[1:-1], axis=0)


def no_bracket_in_front(states, tokens):
    return np.mean(
        [state for state, token in zip(states, tokens, strict=True) if token[0] != "["], axis=0
    )


def word_starts_only(states, tokens):
    own = [
        state
        for state, token in zip(states, tokens, strict=True)
        if token not in SPECIAL and token[:2] != "##"
    ]
    return np.mean(own, axis=0)


@pytest.mark.parametrize("attempt", [exercise.mean_state, with_lists, with_numpy, with_torch])
def test_every_right_way_is_correct(attempt):
    assert exercise.diagnose_mean(attempt).startswith("Correct")


def test_the_mean_is_as_by_hand():
    by_hand = [[3.0, 2.0], [3.0, 3.0], [2.0, 3.0], [3.5, 3.75], [4.0, 4.5], [4.0, 4.0], [4.0, 4.0]]
    for (states, tokens), wanted in zip(exercise.INPUTS, by_hand, strict=True):
        assert exercise.mean_state(states, tokens) == pytest.approx(wanted), tokens


@pytest.mark.parametrize(
    "attempt, said",
    [
        (letters_only, "tokens made of letters"),
        (to_the_first_sep, "you stop at the first [SEP]"),
        (a_set_of_states, "equal states count only once"),
        (a_dictionary_of_tokens, "a token that occurs twice counts only once"),
        (all_but_the_ends, "only the first and the last position"),
        (no_bracket_in_front, "you leave out [UNK]"),
        (word_starts_only, "tokens that begin with ##"),
    ],
)
def test_short_cuts_are_named(attempt, said):
    sentence = exercise.diagnose_mean(attempt)
    assert sentence.startswith("Not yet: ") and said in sentence


@pytest.mark.parametrize("mistake, sentence", exercise.MISTAKES)
def test_each_mistake_is_named_and_differs_from_the_others(mistake, sentence):
    assert exercise.diagnose_mean(mistake) == f"Not yet: {sentence}"


def test_what_is_wrong_otherwise_is_told():
    assert "returns nothing" in exercise.diagnose_mean(lambda states, tokens: None)
    assert "the function returns 3.0 (float). Return a list" in exercise.diagnose_mean(
        lambda states, tokens: 3.0
    )
    said = exercise.diagnose_mean(lambda states, tokens: {}[0])
    assert "[CLS] it rained [SEP], the function stopped with KeyError" in said
    assert "the right answer is [3.0, 2.0], and yours is [1.0, 1.0]" in exercise.diagnose_mean(
        lambda states, tokens: [1, 1]
    )
