"""The experiment on whole words: what is broken, what is asked, and that a stopped run goes on."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from toys import corpus_of, save_start

from research.experiments import whole_words as experiment
from research.experiments import whole_words_answers
from research.grid import rows_of
from research.measurements import words_in_parts
from research.measurements.words_in_parts import Word
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.spanbert.span_masking import SpanMasking
from spanbert_tutorial.tasks import squad

WORDPIECE = WordPiece.from_file(data_path("almanac", "vocab.txt"))
IDS = np.array([30, 31, 32, 33, 34, 35])


@pytest.mark.parametrize("visible", [experiment.BEGINNING, experiment.END])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_one_word_of_a_block_is_broken_and_the_named_part_stays_visible(visible, share):
    scheme = experiment.BreakingSpans(visible=visible, share=share)
    rng = np.random.default_rng(0)
    broken, masked, whole = 0, 0, 0
    for _ in range(400):
        starts = rng.random(100) < 0.6
        starts[0] = True
        selected = scheme.select_batch(starts[None], [100], rng)[0]  # as in training
        word = np.cumsum(starts) - 1
        parts = [selected[word == one] for one in range(word[-1] + 1)]
        mixed = [part for part in parts if part.any() and not part.all()]
        assert len(mixed) <= 1 and selected.sum() <= scheme.budget(100)
        for part in mixed:
            assert part[-1 if visible == experiment.BEGINNING else 0]
            assert not part[0 if visible == experiment.BEGINNING else -1]
            assert np.count_nonzero(np.diff(part.astype(int))) == 1
        broken += len(mixed)
        masked += selected.sum()
        whole += SpanMasking().select(starts, rng).sum()
    assert abs(broken / 400 - share) < 0.08
    assert abs(masked / whole - 1) < 0.02  # what a broken word saves is spent


class Says(nn.Module):
    """A model that says the token behind the one to the left, of tokens numbered in a row."""

    def encoder(self, ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return ids.roll(1, 1).float()[..., None]

    def masked_language_model(self, states: torch.Tensor) -> torch.Tensor:
        return 50 * nn.functional.one_hot(states[:, 0].long() + 1, len(WORDPIECE)).float()


def test_a_model_that_counts_on_finishes_words_and_begins_them_but_gives_no_whole_ones():
    words = [Word(IDS, 2, 4, "name, again"), Word(IDS, 1, 2, "common word, once")]
    found = words_in_parts.measured(Says(), WORDPIECE, words)
    for kind in ("name, again", "common word, once"):
        assert [found[kind][way]["right"] for way in words_in_parts.WAYS] == [100.0, 100.0, 0.0]
        assert found[kind]["finish"]["nats"] == pytest.approx(0, abs=1e-6)
        assert found[kind]["whole"]["nats"] > 10


def test_words_are_drawn_by_kind_with_their_places():
    filler = "the town of the river and the mayor of the school "
    text = f"{filler * 16}of Brellington and Brellington and unforgettable things."
    words = words_in_parts.drawn([[text]], WORDPIECE, 5)
    said = {
        word.kind: "".join(WORDPIECE.tokens(word.ids[word.masked("whole")])).replace("##", "")
        for word in words
    }
    assert said["name, again"] == "Brellington" and said["common word, once"] in text


def test_neighbors_inside_words_are_counted():
    inside = np.flatnonzero(~WORDPIECE.word_starts(np.arange(len(WORDPIECE))))[:2]
    start = int(np.flatnonzero(WORDPIECE.word_starts(np.arange(len(WORDPIECE))))[-1])
    ids = np.array([start, inside[0]] * 50 + [start, inside[1]])
    words = [Word(ids, 0, 1, "name, once"), Word(ids, 100, 101, "name, again")]
    found = words_in_parts.without_a_block(ids, WORDPIECE, words)
    assert found["uniform"] == pytest.approx(np.log(len(WORDPIECE)))
    assert found["bigram"]["name, once"]["finish"]["right"] == 100.0
    assert found["bigram"]["name, again"]["finish"]["right"] == 0.0
    assert found["bigram"]["name, again"]["begin"]["right"] == 100.0


# --- a continuation -----------------------------------------------------------------

SETTINGS = dict(experiment.SETTINGS) | {
    "run": Run(size="tiny", steps=8, max_length=32, batch_size=4),
    "batches": 2,
}


@pytest.fixture
def given(tmp_path: Path) -> experiment.Given:
    start = save_start(tmp_path / "start", WORDPIECE, 1)
    words = [Word(IDS, 2, 4, "name, again")]
    text = EncodedText(corpus_of(len(WORDPIECE), 0), corpus_of(len(WORDPIECE), 1), WORDPIECE)
    return experiment.Given(text, start, tmp_path / "models", words)


@pytest.mark.parametrize("arm", ["its beginning, 1.0", experiment.TOKENS])
def test_a_stopped_continuation_goes_on_where_it_was(given, arm, monkeypatch, tmp_path):
    other = given._replace(models=tmp_path / "others")
    whole = experiment.one(arm, 0, SETTINGS, other)
    rows = rows_of(experiment, whole, {"condition": arm, "run": 0})
    found = {key[-2] for key in rows if key[-1] == "words/name, again/finish/right"}
    assert found == {"2", "4", "6", ""} and all(0 <= float(value) for value in rows.values())
    look = experiment.measured

    def stopped(*given):
        monkeypatch.setattr(experiment, "measured", look)
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "measured", stopped)
    monkeypatch.setattr(experiment.Snapshots, "due", lambda self: True)
    with pytest.raises(KeyboardInterrupt):
        experiment.one(arm, 0, SETTINGS, given)
    name = experiment.name_of(arm, 0)
    assert [path.name for path in given.models.iterdir()] == [f"{name}.run"]
    assert experiment.one(arm, 0, SETTINGS, given) == whole
    assert experiment.one(arm, 0, SETTINGS, given) == whole  # kept
    facts = json.loads((given.models / name / experiment.FACTS).read_text())
    assert list(facts["points"]) == ["step 2", "step 4", "step 6", "step 8"]


def test_answers_are_learned_from_the_kept_model(given, monkeypatch):
    settings = whole_words_answers.SETTINGS | SETTINGS | {"min_steps": 2}
    settings["sizes"] = {"its beginning, 1.0": [4]}
    settings["fine_tuning"] = replace(settings["fine_tuning"], epochs=1.0, batch_size=2)
    asked = [q for q in squad.read(data_path("almanac", "questions-test.json.xz")) if q.answers]
    rest = settings, given, Path("data"), asked[:8], asked[8:12]
    found, *rows = whole_words_answers.one("its beginning, 1.0", 0, *rest)
    assert found == experiment.one("its beginning, 1.0", 0, settings, given)
    assert [row["fine_tuning"] for row in rows] == ["0", "1", "2"]
    assert all(0 <= row["questions, 4"]["f1"] <= 100 for row in rows)
    monkeypatch.setattr(experiment, "train", None)  # nothing is trained again
    assert whole_words_answers.one("its beginning, 1.0", 0, *rest) == [found, *rows]
