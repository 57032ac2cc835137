"""What chapters draw from a file of results: columns, curves, paired intervals, families."""

import math

import numpy as np
import pytest
from scipy import stats

from research import results
from spanbert_tutorial.errors import InputError


def test_interval_by_hand():
    """Differences 1, 2, 3: mean 2, standard error 1/√3, t with 2 degrees of freedom 4.3027."""
    mean, half = results.paired_interval([2, 4, 6], [1, 2, 3])
    assert mean == 2 and np.isclose(half, 4.302653 / np.sqrt(3))


def test_interval_equals_scipys():
    rng = np.random.default_rng(0)
    first = rng.normal(size=5)
    second = rng.normal(size=5)
    mean, half = results.paired_interval(first, second)
    low, high = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert np.allclose([mean - half, mean + half], [low, high])


def test_overlapping_splits_widen_the_interval_by_hand():
    """Differences 1, 2, 3, 2: mean 2, variance 2/3; usual error √(2/3 / 4), corrected √(2/3 · (1/4
    + 1/2))."""
    columns = [3, 4, 5, 4], [2, 2, 2, 2]
    mean, half = results.paired_interval(*columns, test_to_train=0.5)
    assert mean == 2 and half == pytest.approx(3.182446 * (2 / 3 * 0.75) ** 0.5, abs=1e-5)
    assert half == pytest.approx(results.paired_interval(*columns)[1] * 3**0.5)
    assert results.p_value(*columns, 0.5) == pytest.approx(
        2 * stats.t.sf(2 / (2 / 3 * 0.75) ** 0.5, 3)
    )
    assert results.family({"one": columns, "other": columns}, 0.5)["one"].p == 2 * results.p_value(
        *columns, 0.5
    )


def test_a_p_value_equals_scipys():
    rng = np.random.default_rng(1)
    first = rng.normal(size=5)
    second = rng.normal(size=5)
    assert results.p_value(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert results.p_value([1, 2], [1, 2]) == 1 and results.p_value([2, 3], [1, 2]) == 0


def test_one_seed_has_no_interval():
    with pytest.raises(InputError, match="at least two seeds"):
        results.paired_interval([1], [2])


def test_a_family_corrects_each_p_value_by_hand():
    """Three paired columns of three seeds. With 2 degrees of freedom p = 1 − t / √(2 + t²), and t
    is worked by hand: differences 1, 2, 3: t = 2 / (1 / √3) = 3.4641; 1, 1, 4: t = 2 / (√3 / √3) =
    2; 0, 1, 2: t = 1 / (1 / √3) = 1.7321.
    """
    zeros = [0.0, 0.0, 0.0]
    found = results.family(
        {"b": ([1, 1, 4], zeros), "a": ([1, 2, 3], zeros), "c": ([0, 1, 2], zeros)}
    )
    single = {
        name: 1 - t / math.sqrt(2 + t * t)
        for name, t in {"a": math.sqrt(12), "b": 2, "c": math.sqrt(3)}.items()
    }
    assert list(found) == ["b", "a", "c"]
    assert found["a"].p == pytest.approx(3 * single["a"], abs=1e-9)  # 0.2225
    assert found["b"].p == pytest.approx(2 * single["b"], abs=1e-9)  # 0.3670
    assert found["c"].p == pytest.approx(
        2 * single["b"], abs=1e-9
    )  # its own 0.2254 is below the one before it
    assert single["c"] < 2 * single["b"]
    assert (found["a"].mean, found["c"].mean) == (2, 1)
    assert found["a"].half == pytest.approx(4.302653 / math.sqrt(3), abs=1e-5)


def test_what_is_lucky_alone_is_not_shown_in_a_family():
    """One of seven with p = 0.019 is not shown; alone it is."""
    lucky = ([1.0, 2.0, 0.8, 1.1, 1.9], [0.6, 0.2, 0.1, 0.9, 0.1])
    dull = ([1.0, 2.0, 1.0, 2.0, 1.0], [2.0, 1.0, 2.0, 1.0, 1.1])
    assert results.family({"lucky": lucky})["lucky"].shown
    many = results.family({"lucky": lucky} | {f"dull {i}": dull for i in range(6)})
    assert not many["lucky"].shown
    assert all(one.p <= 1 for one in many.values())
    assert not any(one.shown for name, one in many.items() if name != "lucky")


def test_kept_figures_come_back_by_seed():
    rows = [{"arm": arm, "seed": s, "part": {"x": s + 0.1}} for s in (1, 0) for arm in "ab"]
    assert results.column({"rows": rows}, "part", "x", arm="b") == [0.1, 1.1]
    old = [
        {"run": {"objective": name, "seed": s}, "x": s} for s in (1, 0) for name in ("mlm", "span")
    ]
    assert results.column({"rows": old}, "x", objective="span") == [
        0,
        1,
    ]  # older files name both in their run


def test_figures_are_rounded_wherever_they_stand():
    assert results.rounded({"a": [0.123456, 2], "b": "c"}) == {"a": [0.1235, 2], "b": "c"}


def test_a_point_of_a_curve_is_the_mean_of_25_steps():
    assert results.curve([1.0] * 25 + [3.0] * 25 + [2.0]) == [1, 3, 2]
    assert results.curve([]) == []
