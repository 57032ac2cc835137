"""The check of the exercise tells what is wrong."""

import pytest

from spanbert_tutorial.exercises import real_questions as exercise
from spanbert_tutorial.exercises.diagnosis import same


def test_the_solution_is_correct():
    assert exercise.diagnose_draw(exercise.drawn_mean).startswith("Correct")


@pytest.mark.parametrize("mistake, sentence", exercise.MISTAKES)
def test_each_mistake_is_named_and_differs_from_the_others(mistake, sentence):
    assert exercise.diagnose_draw(mistake) == f"Not yet: {sentence}"


def test_what_is_wrong_otherwise_is_told():
    assert "returns nothing" in exercise.diagnose_draw(lambda values, titles, drawn: None)
    assert "stopped with KeyError" in exercise.diagnose_draw(
        lambda values, titles, drawn: {}[drawn[0]]
    )
    assert (
        "Oslo, Tea, Chess, the right answer is 0.458333, and yours is 7."
        in exercise.diagnose_draw(lambda *given: 7)
    )
    said = exercise.diagnose_draw(lambda *given: float("nan"))
    assert "yours is nan. Your answer contains nan, which is not a number" in said
    for wrong in ("much", "0.5", [0.5, 0.5]):
        said = exercise.diagnose_draw(lambda *given, wrong=wrong: wrong)
        assert f"returns {wrong!r} ({type(wrong).__name__}). Return one number." in said


def test_all_the_mean_of_means_differs_from_the_mean():
    values = [exercise.mean_of_means(*case) for case in exercise.CASES]
    assert not same(values, [exercise.drawn_mean(*case) for case in exercise.CASES])
