"""The exercise on Matthews' correlation: right answers pass, each mistake is named."""

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

from spanbert_tutorial.exercises import sentence_tasks as exercise


def with_numpy(gold, said):
    one, other = (1.0 * (np.array(row) == "1") for row in (gold, said))
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) and np.ptp(other) else 0


def without_care(gold, said):
    tp, fp, fn, tn = exercise.counts(gold, said)
    return (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)) ** 0.5


@pytest.mark.parametrize("attempt", [exercise.matthews, with_numpy, matthews_corrcoef])
def test_every_right_way_is_correct(attempt):
    assert exercise.diagnose_matthews(attempt).startswith("Correct")


@pytest.mark.parametrize("mistake, sentence", exercise.MISTAKES)
def test_each_mistake_is_named_and_differs_from_the_others(mistake, sentence):
    assert exercise.diagnose_matthews(mistake) == f"Not yet: {sentence}"


def test_what_is_wrong_otherwise_is_told():
    assert "before you divide" in exercise.diagnose_matthews(without_care)
    assert "returns nothing" in exercise.diagnose_matthews(lambda gold, said: None)
    assert "the right answer is" in exercise.diagnose_matthews(lambda gold, said: 0.5)
