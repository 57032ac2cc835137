"""Paired intervals, and results that survive a stop."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from spanbert_tutorial import ablation, runs
from spanbert_tutorial.errors import InputError


def test_interval_by_hand():
    """Differences 1, 2, 3: mean 2, standard error 1/√3, t with 2 degrees of freedom 4.3027."""
    mean, half = ablation.paired_interval([2, 4, 6], [1, 2, 3])
    assert mean == 2 and np.isclose(half, 4.302653 / np.sqrt(3))


def test_interval_equals_scipys():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=5), rng.normal(size=5)
    mean, half = ablation.paired_interval(first, second)
    low, high = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert np.allclose([mean - half, mean + half], [low, high])


def test_one_seed_has_no_interval():
    with pytest.raises(InputError, match="at least two seeds"):
        ablation.paired_interval([1], [2])


def test_a_stopped_command_goes_on_where_it_was(tmp_path, monkeypatch):
    """The second call trains only what is missing; other settings are refused."""
    trained = []

    def fake(run, text):
        trained.append((run.objective, run.seed))
        figures = {"token": {"mlm": run.seed + 1.0}}
        return {"run": asdict(run), "held_out": figures}

    class Text:
        unigram_entropy, wordpiece = 5.0, []

        class train:
            ids = []

    monkeypatch.setattr(ablation, "one", fake)
    monkeypatch.setattr(runs, "open_text", lambda source, folder: Text)
    output = tmp_path / "results.json"
    ablation.run_all(output, seeds=1, run=runs.RUNS["tiny"])
    assert trained == [(name, 0) for name in ablation.OBJECTIVES]
    ablation.run_all(output, seeds=2, run=runs.RUNS["tiny"])
    assert trained[3:] == [(name, 1) for name in ablation.OBJECTIVES]
    content = json.loads(output.read_text())
    assert len(content["rows"]) == 6 and ablation.column(content, "span", "token", "mlm") == [1.0, 2.0]
    with pytest.raises(InputError, match="other settings"):
        ablation.run_all(output, seeds=2, run=runs.Run(steps=3))


def test_a_family_corrects_each_p_value_by_hand():
    """Three paired columns of three seeds. With 2 degrees of freedom p = 1 − t / √(2 + t²), and t is worked by hand:
    differences 1, 2, 3: t = 2 / (1 / √3) = 3.4641; 1, 1, 4: t = 2 / (√3 / √3) = 2; 0, 1, 2: t = 1 / (1 / √3) = 1.7321.
    """
    zeros = [0.0, 0.0, 0.0]
    found = ablation.family({"b": ([1, 1, 4], zeros), "a": ([1, 2, 3], zeros), "c": ([0, 1, 2], zeros)})
    single = {name: 1 - t / math.sqrt(2 + t * t) for name, t in {"a": math.sqrt(12), "b": 2, "c": math.sqrt(3)}.items()}
    assert list(found) == ["b", "a", "c"]
    assert found["a"].p == pytest.approx(3 * single["a"], abs=1e-9)  # 0.2225
    assert found["b"].p == pytest.approx(2 * single["b"], abs=1e-9)  # 0.3670
    assert found["c"].p == pytest.approx(2 * single["b"], abs=1e-9)  # its own 0.2254 is below the one before it
    assert single["c"] < 2 * single["b"]
    assert (found["a"].mean, found["c"].mean) == (2, 1)
    assert found["a"].half == pytest.approx(4.302653 / math.sqrt(3), abs=1e-5)


def test_what_is_lucky_alone_is_not_shown_in_a_family():
    """One of seven with p = 0.019 is not shown; alone it is."""
    lucky = ([1.0, 2.0, 0.8, 1.1, 1.9], [0.6, 0.2, 0.1, 0.9, 0.1])
    dull = ([1.0, 2.0, 1.0, 2.0, 1.0], [2.0, 1.0, 2.0, 1.0, 1.1])
    assert ablation.family({"lucky": lucky})["lucky"].shown
    many = ablation.family({"lucky": lucky} | {f"dull {i}": dull for i in range(6)})
    assert not many["lucky"].shown
    assert all(one.p <= 1 for one in many.values())
    assert not any(one.shown for name, one in many.items() if name != "lucky")
