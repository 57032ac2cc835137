"""Hostile predictions and null odds: scored right, or refused in one sentence. The oracle:
`fuzz`."""

import json

from fuzz import REFUSED, Door, new_folder
from fuzz_files import damaged, in_bytes, numbers, put, read_json, spoiled, texts, values
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.squad import GoldAnswer, Question

door = Door("predictions")
counts = door.counts()

CONTEXT = "The old mill stood by the river Aa until 1904."
QUESTIONS = [
    Question(
        "a",
        "Where?",
        CONTEXT,
        "Mill",
        (GoldAnswer("by the river Aa", 19), GoldAnswer("river Aa", 26)),
    ),
    Question("b", "Who?", CONTEXT, "Mill", category="no such person"),
    Question("c", "When?", CONTEXT, "Mill", (GoldAnswer("1904", 41),)),
]
WHOLE = {"a": "the river Aa", "b": "", "c": "1904"}
anything = values | st.sampled_from(["1.5", b"x", (1,), 1j, object, frozenset()])


def check_score(found: dict[str, float], count: int) -> None:
    assert all(0 <= value <= 100 for name, value in found.items() if not name.endswith("total"))
    assert found["total"] == count == found.get("HasAns_total", 0) + found.get("NoAns_total", 0)
    assert found["exact"] <= found["f1"] + 1e-9


@door.inputs(short=80, share=0.4)
@given(text=spoiled(WHOLE), data=st.data())
def test_spoiled_predictions_are_scored_or_refused(text, data):
    content = data.draw(damaged(in_bytes(text)))
    with new_folder() as folder:
        found = door.call(squad.read_predictions, put(folder, "p.json", content), QUESTIONS)
        if found is REFUSED:
            assert content != in_bytes(json.dumps(WHOLE))
            return
        assert found == read_json(content) and found.keys() == WHOLE.keys()
        check_score(door.call(squad.score, found, QUESTIONS), 3)
        if door.call(squad.write_predictions, folder / "q.json", found) is not REFUSED:
            assert squad.read_predictions(folder / "q.json", QUESTIONS) == found


@door.inputs(short=60, share=0.4)
@given(
    odds=st.dictionaries(st.sampled_from(["a", "b", "c"]), numbers, min_size=3)
    | st.dictionaries(st.sampled_from(["a", "b", "c"]) | texts, anything, max_size=4),
    threshold=st.none() | numbers | anything,
)
def test_null_odds_and_thresholds(odds, threshold):
    found = door.call(squad.score, WHOLE, QUESTIONS, odds, threshold)
    if found is not REFUSED:
        check_score(found, 3)
        left = {name for name, value in odds.items() if value > threshold}
        right = [name not in left for name in ("a", "c")] + ["b" in left or WHOLE["b"] == ""]
        assert (
            found["HasAns_f1"] <= 100 * sum(right[:2]) / 2
            and (found["NoAns_f1"] == 100) == right[2]
        )
    best = door.call(squad.best_threshold, WHOLE, QUESTIONS, odds)
    chosen = door.call(squad.chosen_threshold, WHOLE, QUESTIONS, odds)
    assert (best is REFUSED) == (chosen is REFUSED)
    if best is not REFUSED:
        assert 0 <= best[0] <= 100
        check_score(door.call(squad.score, WHOLE, QUESTIONS, odds, chosen), 3)


@door.inputs(short=40, share=0.2)
@given(
    predictions=st.dictionaries(
        st.sampled_from(["a", "b", "c"]) | texts, texts | anything, max_size=4
    )
)
def test_predictions_of_anything(predictions):
    found = door.call(squad.score, predictions, QUESTIONS)
    if found is not REFUSED:
        check_score(found, 3)
        assert all(isinstance(text, str) for text in predictions.values())
