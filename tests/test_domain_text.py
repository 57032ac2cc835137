"""The experiment on a domain's text: what each condition starts from, and what is kept of it."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from toys import corpus_of, save_start

from environment import ROOT
from research.experiments import domain_text as experiment
from research.grid import rows_of
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.tasks import few_questions, squad

WORDPIECE = WordPiece.from_file(data_path("almanac", "vocab.txt"))
FINE_TUNING = replace(experiment.SETTINGS["fine_tuning"], max_length=64)
SETTINGS = dict(experiment.SETTINGS) | {
    "run": Run(size="tiny", steps=3, max_length=32, batch_size=4),
    "sizes": [2, 4],
    "min_steps": 2,
    "fine_tuning": replace(FINE_TUNING, epochs=1.0, batch_size=2),
    "batches": 2,
}


@pytest.fixture
def given(tmp_path: Path) -> experiment.Given:
    start = save_start(tmp_path / "start", WORDPIECE, 7)
    unseen = corpus_of(len(WORDPIECE), 2)
    texts = {
        arm: EncodedText(corpus_of(len(WORDPIECE), number), unseen, WORDPIECE)
        for number, arm in enumerate((experiment.ALMANAC, experiment.WIKIPEDIA))
    }
    asked = [
        one for one in squad.read(data_path("almanac", "questions-test.json.xz")) if one.answers
    ]
    return experiment.Given(texts, start, tmp_path / "models", (asked[:8], asked[8:12]))


def test_the_conditions_differ_only_in_where_fine_tuning_starts(given, monkeypatch):
    curve, weights = few_questions.learning_curve, []

    def watched(plan, train, test):
        (folder,) = plan.models.values()
        weights.append(load_checkpoint(folder)[0].encoder.state_dict())
        assert (train, test) == given.questions and plan.seeds == (1,)
        return curve(plan, train, test)

    monkeypatch.setattr(few_questions, "learning_curve", watched)
    found = {arm: experiment.one(arm, 1, SETTINGS, given) for arm in experiment.ARMS}
    start = load_checkpoint(given.start)[0].encoder.state_dict()
    gaps = {
        arm: max(float((one[name] - start[name]).abs().max()) for name in start)
        for arm, one in zip(experiment.ARMS, weights, strict=True)
    }
    assert gaps[experiment.AS_IT_IS] == 0
    further = [gaps[experiment.ALMANAC], gaps[experiment.WIKIPEDIA]]
    assert 0 < min(further) and max(further) < gaps[experiment.NEW]
    rows = rows_of(experiment, found[experiment.ALMANAC], {"condition": "almanac", "run": 1})
    assert {key[-3:] for key in rows if key[-1].endswith("f1")} == {
        ("2", "", "questions/f1"),
        ("4", "", "questions/f1"),
    }
    kept = sorted(path.name for path in given.models.iterdir())
    assert kept == ["Wikipedia-1", "almanac-1"]
    assert experiment.one(experiment.ALMANAC, 1, SETTINGS, given) == found[experiment.ALMANAC]


def test_the_page_tells_the_means_of_the_results():
    page = (ROOT / "book" / "workshop" / "your_own_data.md").read_text(encoding="utf-8")
    section = page.split("### Does it help a task?")[1].split("\n### ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    told = {row[0]: [float(value) for value in row[1:]] for row in rows[1:]}
    starts = {
        "random weights": experiment.NEW,
        "`spanbert-mini` as it is": experiment.AS_IT_IS,
        "2,000 more steps on Wikipedia": experiment.WIKIPEDIA,
        "2,000 more steps on the almanac": experiment.ALMANAC,
    }
    table = pd.read_csv(data_path("results", "domain_text.csv"))
    means = (
        table.fillna({"questions": 0}).groupby(["condition", "measure", "questions"]).value.mean()
    )
    assert list(told) == list(starts)
    for start, arm in starts.items():
        loss = means[arm, "losses/span", 0]
        scores = [means[arm, "questions/f1", size] for size in (128, 1_024)]
        assert told[start] == [round(loss, 1), *(round(score) for score in scores)]
    said = " ".join(section.split())
    scores = table[(table.measure == "questions/f1") & (table.questions == 1_024)]
    runs = scores.pivot(index="run", columns="condition", values="value")
    words = {
        experiment.AS_IT_IS: "F1 above the checkpoint as it is",
        experiment.WIKIPEDIA: "above the one with more Wikipedia",
    }
    for other, above in words.items():
        one, two, three = (round(value) for value in runs[experiment.ALMANAC] - runs[other])
        assert f"{one}, {two} and {three} {above}" in said
    compared = pd.read_csv(data_path("results", "comparisons.csv"), dtype={"questions": str})
    rows = compared[(compared.experiment == "domain_text") & (compared.questions == "1024")]
    for low, high in zip(rows.low, rows.high, strict=True):
        assert f"(95% CI {low:.0f} to {high:.0f}".replace("-", "−") in said
    assert f"p = {rows.p_holm.min():.2f}, corrected for four comparisons" in said
    once = pd.read_csv(data_path("results", "without_runs.csv")).set_index("experiment")
    trial = [
        round(float(part)) for part in once.figure["domain_text"].replace(" and", ",").split(",")
    ]
    assert f"{trial[1]} F1 after 1,024 questions with the almanac, and {trial[2]} with Wiki" in said
