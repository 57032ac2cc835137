"""The check of the exercise tells what is wrong."""

import pytest

from spanbert_tutorial.exercises import real_questions as exercise


def test_the_solution_is_correct():
    assert exercise.diagnose_draw(exercise.drawn_mean).startswith("Correct")


@pytest.mark.parametrize("mistake, sentence", exercise.MISTAKES)
def test_each_mistake_is_named_and_differs_from_the_others(mistake, sentence):
    assert exercise.diagnose_draw(mistake) == f"Not yet: {sentence}"


def test_what_is_wrong_otherwise_is_told():
    assert "returns nothing" in exercise.diagnose_draw(lambda values, titles, drawn: None)
    assert "raises KeyError" in exercise.diagnose_draw(lambda values, titles, drawn: {}[drawn[0]])
    assert "Oslo, Tea, Chess the mean is 0.458, and you say 7.000" in exercise.diagnose_draw(lambda *given: 7)
    for wrong in (float("nan"), "much", [0.5, 0.5]):
        assert "you say nan" in exercise.diagnose_draw(lambda *given, said=wrong: said)


def test_all_the_mean_of_means_differs_from_the_mean():
    values = [exercise.mean_of_means(exercise.VALUES, exercise.TITLES, drawn) for drawn in exercise.DRAWS]
    assert not exercise.same(values, exercise.drawn_mean)
