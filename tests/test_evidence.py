"""Stored results as tables and figures."""

import pandas as pd

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures import evidence


def test_every_comparison_has_its_difference_inside_its_interval_in_the_words_of_the_book():
    stored = pd.read_csv(data_path("results", "comparisons.csv"))
    for experiment in stored.experiment.unique():
        table = evidence.differences(experiment, digits=6)
        assert len(table) == (stored.experiment == experiment).sum()
        assert (table["from"] <= table["first − second"]).all()
        assert (table["first − second"] <= table["to"]).all()
        words = " ".join([*table.index, *table.second, *table.measured])
        assert not any(word in words for word in ("hidden", "kind of", "new weights", " %"))


def test_the_figure_says_the_numbers_that_it_draws():
    rows = evidence.comparisons("first_pair_answers", "SQuAD 1.1")
    label = evidence.draw_differences(rows, "points", "{measured}").get_label()
    assert "SQuAD 1.1, F1  (p = 0.006) -13.2 (-16.3 to -10.2)" in label
