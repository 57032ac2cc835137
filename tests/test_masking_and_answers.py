"""The experiment for a graphics card, on the CPU with toy sizes: what it draws, measures and asks is
what the package draws, measures and asks, and what was finished is not done again."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_card import inputs

from research.experiments import copied_names
from research.experiments import masking_and_answers as experiment
from research.measurements import copying, many_answers
from research.measurements.many_answers import Answering, Tuning, best_spans
from research.side_by_side import Learner, rates
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import continue_from
from spanbert_tutorial.pretraining.encoded_text import reopen_text
from spanbert_tutorial.pretraining.objectives import objective_or_mixture
from spanbert_tutorial.tasks import squad, windows
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.real_questions import answered
from spanbert_tutorial.text.corpora import documents

SETTINGS = replace(experiment.TOY, steps=16, sizes=((16, 1.0),), tuning_seeds=1, held_out=1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return inputs(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def given(files):
    return experiment.prepare(
        reopen_text(files.text), files.start, files.valid, files.data, SETTINGS
    )


# --- what is drawn ------------------------------------------------------------------


def test_any_number_of_workers_draws_the_same(given):
    drawn = experiment.Drawn(("mlm", "mix"), 1, given, SETTINGS)
    alone, two = (list(drawn.loader(3, workers)) for workers in (0, 2))
    assert [(name, tokens) for name, tokens, _ in alone] == [(n, t) for n, t, _ in two]
    assert [name for name, *_ in alone] == ["mlm", "mlm", "mlm", "span+sbo", "mlm", "mlm"]
    for (_, _, one), (_, _, other) in zip(alone, two, strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_each_epoch_has_every_block_once_and_the_arms_read_the_same_ones(given):
    drawn = experiment.Drawn(("mlm", "span+sbo"), 1, given, SETTINGS)
    data = drawn.data["mlm"]
    steps = len(data) // SETTINGS.batch_size
    rows = [drawn.rows(data, step) for step in range(2 * steps)]
    for epoch in (rows[:steps], rows[steps:]):
        assert len(np.unique(np.concatenate(epoch))) == steps * SETTINGS.batch_size
    assert not np.array_equal(rows[0], rows[steps])
    assert np.array_equal(drawn.rows(drawn.data["span+sbo"], 3), rows[3])


def test_the_arms_have_their_own_masks_and_one_shape(given):
    drawn = experiment.Drawn(experiment.OTHERS, 1, given, SETTINGS)
    for place, arm in enumerate(experiment.OTHERS):
        name, tokens, batch = drawn[place]
        other = drawn[len(experiment.OTHERS) + place][2]
        assert name == arm and 0 < tokens <= SETTINGS.batch_size * SETTINGS.max_length
        assert {n: t.shape for n, t in batch.items()} == {n: t.shape for n, t in other.items()}
        assert ("boundary_labels" in batch) == ("sbo" in arm)
        assert bool(batch["token_type_ids"].any()) == ("nsp" in arm)


# --- steps --------------------------------------------------------------------------


def test_the_learning_rate_rises_and_falls():
    found = rates(20, 1.0)
    assert found[:2].tolist() == [0.5, 1.0] and found.argmax() == 1
    assert found[-1] == pytest.approx(1 / 18) and (found[1:].diff() <= 0).all()
    assert rates(1, 1.0).tolist() == [1.0]


def test_a_learner_begins_afresh_with_other_weights(given):
    """The same weights, rates and batches lead to the same place, whatever was trained before."""
    drawn = experiment.Drawn(("mix",), 1, given, SETTINGS)
    batches = [drawn[number] for number in range(4)]
    model = continue_from(given.start, "mix")[0]
    learner = Learner(model, 4, (0.9, 0.98), 1e-6)
    for name, _, batch in batches[:2]:
        assert learner.record(name, batch) == "as it is"
    ends = []
    for seed in (1, 2, 1):
        learner.begin(continue_from(given.start, "mix", seed)[0].state_dict(), rates(4, 1e-3))
        for name, _, batch in batches:
            learner.step(name, batch)
        assert 4 < learner.mean_loss(4) < 20 and learner.at.item() == 4
        ends.append(learner.weights())
    assert all(torch.equal(ends[0][name], ends[2][name]) for name in ends[0])
    head = "boundary.linear1.weight"
    assert not torch.equal(ends[0][head], ends[1][head])


# --- measures -----------------------------------------------------------------------


def test_measured_is_what_the_other_experiments_measure(given, files):
    model = continue_from(given.start, "mlm")[0].eval()
    found = experiment.measured(model, experiment.ways_of(given), given)
    for way, batches in given.ways.items():
        theirs = copying.measured(model, batches, given.rare | True)
        mine = experiment.measured(
            model, experiment.ways_of(given._replace(rare=given.rare | True)), given
        )[way]
        for kind in ("again", "new"):
            assert mine[kind] == pytest.approx(theirs[kind], abs=1e-3)
        assert mine["all"]["tokens"] == sum(len(batch["masked_positions"]) for batch in batches)
    names = copied_names.drawn(documents(files.valid), given.text.wordpiece)
    for told, again in copied_names.STANDS.items():
        some = [one for one in names if one.again == again][: SETTINGS.names]
        for how in copied_names.HIDDEN:
            right = copied_names.right(some, how, model, given.text.wordpiece)
            assert found[f"{how}, {told}"] == pytest.approx(right.mean(), abs=0.01)


def test_restored_names_are_those_of_the_slow_way(given, files):
    model = continue_from(given.start, "mlm")[0].eval()
    names = copied_names.drawn(documents(files.valid), given.text.wordpiece)
    (some, hidden), *_ = [
        ([n for n in names if n.again == again][: SETTINGS.names], given.names[f"{how}, {told}"])
        for told, again in copied_names.STANDS.items()
        for how in copied_names.HIDDEN
    ]
    with torch.no_grad():
        said = experiment.restored(model, hidden)
    for name, mine in zip(some, said, strict=True):
        how = next(iter(copied_names.HIDDEN))
        slow = copied_names.fill(model, *copied_names.hide(name, how, given.text.wordpiece))
        assert mine == slow


# --- answers ------------------------------------------------------------------------


def test_the_best_span_of_many_windows_is_that_of_each(given):
    rng = np.random.default_rng(0)
    tuning = SETTINGS.fine_tuning
    some = given.questions[:6]
    encoded = [windows.encode(given.text.wordpiece, q.question, q.context) for q in some]
    cut = [
        window
        for one in encoded
        for window in windows.windows(
            one, given.text.wordpiece, tuning.max_length, tuning.doc_stride
        )
    ]
    arrays, _ = many_answers.to_answer(some, given.text.wordpiece, tuning)
    held = many_answers.on_card(arrays)
    scores = torch.from_numpy(rng.normal(size=(2, *arrays.ids.shape)).astype(np.float32))
    for longest in (1, 5, 30):
        value, first, last = best_spans(*scores, held["may_start"], held["context"], longest)
        for row, window in enumerate(cut):
            n = len(window.ids)
            (best, *_) = windows.best_spans(
                window, scores[0, row, :n].numpy(), scores[1, row, :n].numpy(), 1, longest
            )
            shift = arrays.shift[row]
            assert (first[row] + shift, last[row] + shift) == (best.first, best.last)
            assert value[row] == pytest.approx(best.score)


def answering_of(given, slots=2):
    return Answering(
        lambda: experiment.encoder_of(given.start),
        given.train,
        given.asked,
        SETTINGS.fine_tuning,
        dict(SETTINGS.sizes),
        slots,
    )


def test_scores_are_those_of_the_package(given):
    """The model that was fine-tuned in a slot answers as `QuestionAnswerer` has it answer."""
    answering = answering_of(given, slots=1)
    encoder = experiment.encoder_of(given.start).state_dict()
    slot = answering.slots[0]
    steps = answering.begin(Tuning(("x",), encoder, 16, 1.0, 1), slot)
    for _ in range(steps):
        slot.learner.step("questions", {})
    spans = answering.spans(slot.learner.model, second=True)
    many_answers.know(given.offsets, given.questions)
    tuning = SETTINGS.fine_tuning
    answerer = QuestionAnswerer(
        slot.learner.model.eval(), given.text.wordpiece, tuning.max_length, tuning.doc_stride
    )
    theirs = squad.score(*answered(answerer, given.questions)[:2])
    mine = many_answers.scored(spans)
    assert mine == {name: round(theirs[name], 3) for name in ("exact", "f1")}


def test_the_order_has_the_windows_of_the_drawn_questions_once_an_epoch(given):
    answering = answering_of(given, slots=1)
    size = SETTINGS.fine_tuning.batch_size
    order = answering.order(Tuning((), {}, 8, 2.0, 5))
    own = np.flatnonzero(np.isin(given.train.owner, np.random.default_rng(5).permutation(24)[:8]))
    assert set(order.ravel()) <= set(own)
    assert sorted(order.ravel()[: len(own)]) == sorted(own)
    assert len(order) == round(2 * len(own) / size)
    longer = answering.order(Tuning((), {}, 16, 1.0, 5))
    assert set(own) <= set(longer.ravel())  # the smaller sample is a part of the larger one
    assert len(longer) <= answering.most


def test_as_one_segment_a_model_hears_of_no_second(given, monkeypatch):
    answering = answering_of(given, slots=1)
    slot = answering.slots[0]
    seen = []
    forward = slot.learner.model.encoder.forward
    monkeypatch.setattr(
        slot.learner.model.encoder,
        "forward",
        lambda ids, segments, mask: (
            seen.append(int(segments.max())) or forward(ids, segments, mask)
        ),
    )
    encoder = experiment.encoder_of(given.start).state_dict()
    for one_segment in (True, False):
        answering.begin(Tuning((), encoder, 16, 1.0, 1, one_segment), slot)
        slot.learner.step("questions", {})
        answering.spans(slot.learner.model, second=not one_segment)
    half = len(seen) // 2
    assert set(seen[:half]) == {0} and set(seen[half:]) == {1}


# --- all of it ----------------------------------------------------------------------


def test_rounds_that_are_done_are_not_done_again(given, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(experiment, "ROUNDS", ((("mlm", "mix"), 1), (("mlm", "mix"), 2)))
    output = tmp_path / "answers.json"
    kept = []

    def keep(arm, seed, weights):
        kept.append((arm, seed, len(weights)))

    assert not experiment.work(output, given, SETTINGS, keep, until=0.0)
    assert "no time for another round" in capsys.readouterr().out and not output.exists()

    def one_round(arms, seed, *rest):
        if seed == 2:
            raise KeyboardInterrupt
        return train(arms, seed, *rest)

    train = experiment.train
    monkeypatch.setattr(experiment, "train", one_round)
    with pytest.raises(KeyboardInterrupt):
        experiment.work(output, given, SETTINGS, keep)
    first = json.loads(output.read_text(encoding="utf-8"))
    assert first["rounds"] == [[["mlm", "mix"], 1]] and [one[:2] for one in kept] == [
        ("mlm", 1),
        ("mix", 1),
    ]
    monkeypatch.setattr(experiment, "train", train)
    assert experiment.work(output, given, SETTINGS, keep)
    found = json.loads(output.read_text(encoding="utf-8"))
    assert found["runs"][: len(first["runs"])] == first["runs"] and len(found["rounds"]) == 2
    # two arms and seeds at five points of the training; four of them are fine-tuned once, the
    # finished ones also as one segment; and the start
    assert len(found["runs"]) == 2 * 2 * 5 and len(found["answers"]) == 2 * 2 * 6 + 1
    ended = [row for row in found["runs"] if row["fraction"] == 1.0]
    assert all(row["tokens"] > 0 and len(row["curve"]) == SETTINGS.steps for row in ended)
    assert all(0 <= row["exact"] <= row["f1"] <= 100 for row in found["answers"])
    assert experiment.work(output, given, SETTINGS)  # nothing is left
    assert found == json.loads(output.read_text(encoding="utf-8"))
    with pytest.raises(InputError, match="other settings"):
        experiment.work(output, given, replace(SETTINGS, steps=17))


def test_every_arm_is_an_objective_and_the_main_ones_have_three_seeds():
    arms = [(arm, seed) for arms, seed in experiment.ROUNDS for arm in arms]
    assert len(arms) == len(set(arms)) == 16
    assert all(objective_or_mixture(arm) for arm, _ in arms)
    assert {arm for arm, seed in arms if seed == 3} == {"mlm", "mlm+nsp", "span+sbo", "mix"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_without_a_card_it_says_so(files, tmp_path):
    with pytest.raises(InputError, match="use a machine with a graphics card"):
        experiment.content(tmp_path, files.text, files.start, files.valid, files.data)
