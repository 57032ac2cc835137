"""Paired intervals, and results that survive a stop."""

import json
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
