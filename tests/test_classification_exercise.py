"""The check of the exercise tells what is wrong."""

import pytest

from spanbert_tutorial.exercises import classification as exercise


def test_the_solution_is_correct():
    assert exercise.diagnose_mean(exercise.mean_state).startswith("Correct")
    states, tokens = exercise.INPUTS[0]
    assert exercise.mean_state(states, tokens) == [3.0, 2.0]


@pytest.mark.parametrize("mistake, sentence", exercise.MISTAKES)
def test_each_mistake_is_named_and_differs_from_the_others(mistake, sentence):
    assert exercise.diagnose_mean(mistake) == f"Not yet: {sentence}"


def test_what_is_wrong_otherwise_is_told():
    assert "returns nothing" in exercise.diagnose_mean(lambda states, tokens: None)
    assert "the function returns 3.0. Return a list" in exercise.diagnose_mean(lambda states, tokens: 3.0)
    assert "[CLS] it rained [SEP] the function raises KeyError" in exercise.diagnose_mean(lambda states, tokens: {}[0])
    assert "the mean is [3.0, 2.0], and you say [1.0, 1.0]" in exercise.diagnose_mean(lambda states, tokens: [1, 1])
