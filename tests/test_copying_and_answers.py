"""The experiment on copying and answers: what counts as copying, which model is measured, what is
asked of it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from research import grid
from research.experiments import copying_and_answers as experiment
from research.measurements import copying
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import save_checkpoint
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import objective_or_mixture
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.tasks.squad import GoldAnswer, Question
from spanbert_tutorial.text.encoding import EncodedCorpus

WORDPIECE = WordPiece.from_file(data_path("almanac", "vocab.txt"))
MASK = 4

# --- what counts as copying ---------------------------------------------------------

# two blocks: 11 is masked and stands once more, 12 is masked and does not, 13 is masked twice
BATCH = {
    "input_ids": torch.tensor([[2, MASK, 20, 11, 3], [2, MASK, MASK, MASK, 3]]),
    "labels": torch.tensor([[-100, 11, -100, -100, -100], [-100, 12, 13, 13, -100]]),
}


def test_a_token_is_shown_again_only_where_the_block_still_shows_it():
    assert copying.shown_again(BATCH).tolist() == [True, False, False, False]


def test_rare_tokens_are_those_below_two_in_ten_thousand():
    ids = np.repeat([7, 8, 9], [1, 2, 9_997])
    assert copying.rare_tokens(ids, 11).tolist() == [i not in (8, 9) for i in range(11)]


class Says(nn.Module):
    """A model that is sure of the given tokens, in the order of the masks."""

    def __init__(self, tokens: list[int]):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.tokens = tokens

    def encode(self, batch: dict) -> None:
        return None

    def masked_logits(self, hidden: None, batch: dict) -> torch.Tensor:
        return 50.0 * nn.functional.one_hot(torch.tensor(self.tokens), 30).float()


def test_a_model_that_copies_is_right_where_there_is_something_to_copy():
    every = np.ones(30, dtype=bool)
    found = copying.measured(Says([11, 5, 5, 13]), [BATCH], every)
    assert found["again"] == {"tokens": 1, "right": 100.0, "nats": pytest.approx(0.0, abs=1e-6)}
    assert found["new"]["tokens"] == 3 and found["new"]["right"] == pytest.approx(100 / 3)
    assert found["new"]["nats"] == pytest.approx(100 / 3)


def test_common_tokens_do_not_count():
    rare = np.ones(30, dtype=bool)
    rare[13] = False
    assert copying.measured(Says([5, 12, 13, 13]), [BATCH], rare)["new"] == {
        "tokens": 1,
        "right": 100.0,
        "nats": pytest.approx(0.0, abs=1e-6),
    }
    with pytest.raises(ValueError, match="again"):
        copying.measured(Says([5, 12, 13, 13]), [BATCH], ~rare)


# --- which model, which questions ---------------------------------------------------


def corpus(seed: int) -> EncodedCorpus:
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(6, 15, 160))
    ids = rng.integers(5, len(WORDPIECE), ends[-1]).astype(np.uint16)
    return EncodedCorpus(ids, ends, ends[3::4])


def questions(count: int) -> list[Question]:
    rows = []
    for number in range(count):
        context = f"In {1900 + number} the mayor of Brell opened a school."
        year = GoldAnswer(str(1900 + number), 3)
        rows.append(Question(str(number), "When was the school opened?", context, "t", (year,)))
    return rows


SETTINGS = dict(experiment.SETTINGS) | {
    "run": Run(size="tiny", steps=3, max_length=32, batch_size=8),
    "batches": 3,
    "questions": 8,
}


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> experiment.Given:
    folder = tmp_path_factory.mktemp("arms")
    for name in experiment.FINISHED:
        objective = {"mlm": "mlm", "mlmnsp": "mlm+nsp", "spansbo": "span+sbo", "mix": "mix"}[name]
        torch.manual_seed(1)
        config = EncoderConfig.tiny(vocab_size=len(WORDPIECE))
        model = PretrainingModel(config, objective_or_mixture(objective))
        save_checkpoint(folder / name, model.eval(), WORDPIECE, objective, {})
    text = EncodedText(corpus(0), corpus(1), WORDPIECE)
    asked = questions(20)
    return experiment.Given(text, folder, folder / "models", {}, asked[:12], asked[12:])


def state(model: PretrainingModel) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.encoder.parameters()])


def test_nothing_leaves_the_finished_model_and_a_run_changes_it(given):
    for goes_on in (experiment.NOTHING, experiment.ONE_SEGMENT):
        finished = experiment.model_of("mlm", goes_on, 0, SETTINGS, given)
        assert torch.equal(
            state(finished), state(experiment.continue_from(given.arms / "mlm", "mlm")[0])
        )
    seeds = [state(experiment.model_of("mlm", "span", seed, SETTINGS, given)) for seed in (0, 1, 0)]
    assert torch.equal(seeds[0], seeds[2]) and not torch.equal(seeds[0], seeds[1])
    assert not torch.equal(seeds[0], state(finished))


def test_a_kept_model_is_not_trained_again(given, monkeypatch):
    first = state(experiment.model_of("spansbo", "mix", 0, SETTINGS, given))
    monkeypatch.setattr(experiment.runs, "train", None)
    assert torch.equal(first, state(experiment.model_of("spansbo", "mix", 0, SETTINGS, given)))


def test_an_arm_that_differs_in_its_masks_only_reads_the_same_blocks(given):
    """Pairs apart: the same seed gives the crossed arms the same blocks in the same order."""
    orders = []
    for goes_on in ("mlm", "span"):
        run = SETTINGS["run"].__class__(**{**vars(SETTINGS["run"]), "objective": goes_on})
        batches = experiment.runs.data_of(run, given.text).batches(np.random.default_rng(1_000))
        orders.append(np.concatenate(batches.order))
    np.testing.assert_array_equal(*orders)


def test_every_arm_names_an_objective_and_every_single_one_is_among_them():
    for start, goes_on in experiment.ARMS:
        assert start in experiment.FINISHED
        if goes_on not in (experiment.NOTHING, experiment.ONE_SEGMENT):
            objective_or_mixture(goes_on)
    assert len(set(experiment.ARMS)) == len(experiment.ARMS)
    assert set(experiment.ONCE) < set(experiment.ARMS)
    assert set(experiment.CROSSED) < set(experiment.ONCE)


def test_one_segment_is_what_the_questions_then_come_as(given, monkeypatch):
    """The encoder reads the row of the first segment for all tokens, whatever the batch says."""
    monkeypatch.setattr(experiment, "copied", lambda *given: {})
    seen = {}

    def answers(model, seed, settings, given):
        ids = torch.tensor([[2, 10, 3, 11, 12, 3]])
        segments = torch.tensor([[0, 0, 0, 1, 1, 1]])
        real = torch.ones_like(ids, dtype=torch.bool)
        with torch.no_grad():
            seen[model] = [
                model.encoder(ids, token_type_ids=some, attention_mask=real)
                for some in (segments, torch.zeros_like(segments))
            ]
        return {}

    monkeypatch.setattr(experiment, "answers", answers)
    for goes_on in (experiment.NOTHING, experiment.ONE_SEGMENT):
        experiment.one(("mlm", goes_on), 0, SETTINGS, given)
    two, one = seen.values()
    assert not torch.allclose(*two) and torch.equal(*one)


def test_all_arms_of_a_seed_learn_from_the_same_questions(given, monkeypatch):
    learned = []

    def fine_tune(encoder, wordpiece, some, settings):
        learned.append([question.id for question in some])
        return SimpleNamespace(), None

    monkeypatch.setattr(experiment, "fine_tune", fine_tune)
    nothing = {question.id: "" for question in given.asked}
    monkeypatch.setattr(experiment, "answered", lambda _, asked: (nothing, asked, {}))
    model = experiment.model_of("mlm", experiment.NOTHING, 0, SETTINGS, given)
    for seed in (0, 0, 1):
        assert experiment.answers(model, seed, SETTINGS, given)["f1"] == 0.0
    assert learned[0] == learned[1] != learned[2] and len(learned[0]) == 8


def test_a_row_is_ready_for_the_file(given):
    small = dict(SETTINGS)
    small["fine_tuning"] = small["fine_tuning"].__class__(
        **{**vars(small["fine_tuning"]), "batch_size": 4, "max_length": 48}
    )
    (row,) = grid.new_rows(experiment, {"arm": ("mlm", "span"), "seed": 0}, small, (given,))
    assert (row["start"], row["goes_on"], row["seed"]) == ("mlm", "span", 0)
    assert row["copying"].keys() == {"token", "span"}
    assert 0 <= row["squad"]["f1"] <= 100 and json.dumps(row)
