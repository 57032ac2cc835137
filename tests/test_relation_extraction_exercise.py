"""The check of the exercise on directed F1 accepts right answers and names mistakes."""

import pytest

from spanbert_tutorial.exercises import relation_extraction as exercise
from spanbert_tutorial.tasks.relation_extraction import directed_score, undirected


def by_the_package(gold, said, relation):
    """The other relations of gold become Other, so that the mean is over one relation."""

    def only(label):
        return label if undirected(label) == relation else "Other"

    return directed_score([only(label) for label in gold], [only(label) for label in said])["f1"]


def from_precision_and_recall(gold, said, relation):
    right = sum(a == b and a.startswith(relation) for a, b in zip(gold, said, strict=True))
    precision = right / max(1, sum(label.startswith(relation) for label in said))
    recall = right / sum(label.startswith(relation) for label in gold)
    return 100 * 2 * precision * recall / (precision + recall) if right else 0


@pytest.mark.parametrize(
    "attempt", [exercise.directed_f1, by_the_package, from_precision_and_recall]
)
def test_every_right_way_is_correct(attempt):
    assert exercise.diagnose_directed(attempt).startswith("Correct")


def test_the_cases_worked_by_hand():
    wanted = [2 * 2 / 7, 2 * 2 / 7, 2 * 2 / 7, 0, 2 * 2 / 6, 0, 2 * 1 / 5]
    assert [exercise.directed_f1(*case) for case in exercise.CASES] == pytest.approx(
        [100 * each for each in wanted]
    )


@pytest.mark.parametrize("mistake, sentence", exercise.MISTAKES)
def test_each_mistake_is_named_and_differs_from_the_others(mistake, sentence):
    assert exercise.diagnose_directed(mistake) == f"Not yet: {sentence}"


def test_what_is_wrong_otherwise_is_told():
    assert "returns nothing" in exercise.diagnose_directed(lambda *case: None)
    assert "Return one number" in exercise.diagnose_directed(lambda *case: "40")
    assert "Where nothing is right the F1 is 0" in exercise.diagnose_directed(lambda *case: 1 / 0)
    assert "the right answer is 57.1429, and yours is 1" in exercise.diagnose_directed(
        lambda *case: 1
    )
