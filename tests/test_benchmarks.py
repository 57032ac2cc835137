"""The kept measurements of the engine hold what the README and the book say of them; the measuring
itself works."""

import pytest
from kept import kept

from benchmarks.race import race


def test_a_race_tells_the_faster_one():
    result = race(lambda: sum(range(10_000)), lambda: sum(range(200_000)), rounds=5)
    assert result["rounds"] == 5 and result["ratio"] > 5
    assert result["ratios"][0] <= result["ratio"] <= result["ratios"][1]
    assert result["seconds"][0] < result["seconds"][1]


@pytest.mark.parametrize("rows", [32, 64, 256])
def test_span_masking_is_faster_than_a_plain_loop(rows):
    result = kept("speed_masking", f"batch of {rows}")
    assert result["million_tokens_a_second"][0] > 18.5 and result["ratio"] > 1.5


def test_the_mode_that_breaks_words_is_as_fast_as_a_plain_loop_of_the_released_rules():
    assert kept("speed_masking", "batch of 64, words may break")["ratios"]["low"] >= 1


LEAST = {"tiny": 2, "mini": 1.7, "mini, large vocabulary": 3, "base": 1.2}
MISSED = {("float32", "mini")}  # named on the page of the engine


@pytest.mark.parametrize("kind", ["bfloat16", "float32"])
def test_a_step_is_faster_than_that_of_transformers(kind):
    results = {name: kept("speed_steps", f"{name}, {kind}") for name in LEAST}
    for name, least in LEAST.items():
        assert (results[name]["against_transformers"]["ratio"] < least) == (
            (kind, name) in MISSED
        ), name
        assert results[name]["tokens_drawn_a_second"] > 10 * results[name]["tokens_a_second"], name
    for name in ("mini", "base"):
        assert results[name]["span_with_sbo_against_without"]["ratio"] < 1.15


def test_memory_and_growth():
    assert kept("memory")["ratio"] <= 0.8
    growth = kept("growth")
    assert (
        growth["tokens"][1] == pytest.approx(10 * growth["tokens"][0], rel=0.05)
        and growth["rounds"] >= 5
    )
    few, more = growth["added_mib"]
    assert growth["seconds_ratios"]["high"] <= 11 and more - few <= 3


# 8 bits: 96.6 to 96.8
BELOW_97_PERCENT = {(name, "mlm") for name in ("spanbert-tiny", "bert-mini")}


def test_the_model_in_the_page():
    result = kept("model_in_the_page")
    for name, heads in result["same_first_guess"].items():
        for head, (same, places) in heads.items():
            assert places > 1_000 or (name, head, places) == ("bert-mini", "sbo", 0)
            if places:
                assert (same / places < 0.97) == ((name, head) in BELOW_97_PERCENT), (name, head)
                assert same / places > 0.965
    assert max(result["megabytes"].values()) <= 8
    for scores in result["reader"].values():
        assert abs(scores["page_f1"] - scores["pytorch_f1"]) <= 1 and scores["questions"] > 100
    for most in result["farthest_float"].values():
        assert max(most.values()) <= 1e-4
    median = {
        what: {kind: values[0] for kind, values in taken.items()}
        for what, taken in result["milliseconds"].items()
    }
    assert max(median["spanbert-tiny, 64 tokens"].values()) <= 100
    assert max(median["spanbert-mini, 128 tokens"].values()) <= 1_000
