"""Padded batches have the losses and gradients of the plain ones; a compiled model meets few shapes
and is the plain one afterwards."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from toys import batches_of, data_of, model_of

from spanbert_tutorial.commands.pretrain import add_options, compiled_or_not
from spanbert_tutorial.pretraining import fixed_shapes, runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.fixed_shapes import (
    added_rows,
    compiled,
    padded,
    with_fixed_shapes,
)
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import MIXTURES, OBJECTIVES, objective_or_mixture
from spanbert_tutorial.pretraining.presets import RUNS, Run

NAMES = [*OBJECTIVES, *MIXTURES]
pytestmark = pytest.mark.usefixtures("on_the_processor")
ROUNDING = 1e-5  # of sums in float32 that are taken in another order


def result(model: PretrainingModel, batch: dict) -> tuple[dict, list]:
    """Losses and gradients."""
    losses = model(batch)
    gradients = torch.autograd.grad(losses["loss"], list(model.parameters()), allow_unused=True)
    return losses, gradients


@pytest.mark.parametrize("name", NAMES)
def test_padded_batches_have_the_losses_and_gradients_of_the_plain_ones(name):
    model = model_of(name)
    pairs = zip(batches_of(name), with_fixed_shapes(batches_of(name)), strict=False)
    for plain, fixed in islice(pairs, 12):  # also the last of an epoch
        assert fixed["input_ids"].shape == (len(plain["input_ids"]), 48)
        (losses, gradients), (found, same) = result(model, plain), result(model, fixed)
        assert losses.keys() == found.keys()
        for loss, value in losses.items():
            assert found[loss].item() == pytest.approx(value.item(), abs=ROUNDING)
        for one, other in zip(gradients, same, strict=True):
            assert one is other is None or torch.allclose(one, other, atol=ROUNDING)


def test_all_batches_of_an_objective_have_one_shape_but_the_last_of_an_epoch():
    batches = with_fixed_shapes(batches_of("span+sbo"))
    epoch = len(batches.order)
    shapes = [
        {name: tuple(tensor.shape) for name, tensor in batch.items()}
        for batch in islice(batches, 2 * epoch)
    ]
    assert all(shape == shapes[0] for shape in shapes[: epoch - 1])
    assert shapes[epoch - 1] == shapes[-1]


def test_more_targets_than_usual_get_as_much_room_again():
    rooms = [needed + len(added_rows(2, 4, needed)) for needed in (0, 8, 9, 17)]
    assert rooms == [8, 8, 16, 24]
    batch = next(batches_of("span+sbo"))
    model = model_of("span+sbo")
    small = padded(batch, 48, targets=1)
    assert len(small["masked_positions"]) > len(batch["input_ids"])
    losses, found = model(batch), model(small)
    for loss in losses:
        assert found[loss].item() == pytest.approx(losses[loss].item(), abs=ROUNDING)


def test_a_batch_without_a_target_is_padded_too():
    batch = next(batches_of("span+sbo"))
    for name in [name for name in batch if name.startswith(("masked", "boundary"))]:
        batch[name] = batch[name][:0]
    assert model_of("span+sbo")(padded(batch, 48, 8))["loss"] == 0


def test_the_parts_of_several_processes_keep_their_counts():
    data = data_of(objective_or_mixture("span+sbo"))
    batch = data.batch(np.arange(4), np.random.default_rng(0))
    model = model_of("span+sbo")
    for process in (0, 1):
        part = data.share(batch, process, 2)
        losses, found = model(part), model(padded(part, 48, 8))
        for loss in losses:
            assert found[loss].item() == pytest.approx(losses[loss].item(), abs=ROUNDING)


class Programs:
    """A backend for `torch.compile` that counts the programs, and runs them as they are."""

    def __init__(self):
        self.made = 0

    def __call__(self, graph, inputs):
        self.made += 1
        return graph.forward


@pytest.mark.parametrize("name", ["mlm+nsp", "span+sbo", "mix"])
def test_a_compiled_step_is_the_plain_one_in_few_programs(name):
    """Each a whole model: nothing in it has to be looked at in between. Two shapes for each
    objective."""
    torch._dynamo.reset()
    model = model_of(name)
    programs = Programs()
    parts = 2 if name == "mix" else 1
    batches = list(islice(with_fixed_shapes(batches_of(name)), 24))
    shapes = {tuple(map(tuple, (tensor.shape for tensor in b.values()))) for b in batches}
    assert len(shapes) <= 2 * parts
    plain = [result(model, batch) for batch in batches]
    with compiled(model, Run(), backend=programs, fullgraph=True):
        for batch, (losses, gradients) in zip(batches, plain, strict=True):
            found, same = result(model, batch)
            for loss in losses:
                assert found[loss].item() == pytest.approx(losses[loss].item(), abs=ROUNDING)
            for one, other in zip(gradients, same, strict=True):
                assert one is other is None or torch.allclose(one, other, atol=ROUNDING)
    assert programs.made == len(shapes)
    assert model.forward.__func__ is PretrainingModel.forward


@pytest.mark.parametrize("name, accumulate", [("span+sbo", 1), ("mix", 2)])
def test_a_run_with_a_compiled_step_is_the_run_without(name, accumulate, monkeypatch):
    torch._dynamo.reset()
    data = data_of(OBJECTIVES["mlm"])
    text = EncodedText(data.corpus, data.corpus, data.wordpiece)
    run = Run(objective=name, steps=8, max_length=48, batch_size=4, accumulate=accumulate)
    plain, history = runs.pretrain(run, text)
    asked = []
    compile = torch.compile

    def noted(forward, mode, dynamic):
        asked.append(mode)
        return compile(forward, dynamic=dynamic, backend="eager", fullgraph=True)

    monkeypatch.setattr(torch, "compile", noted)
    model, found = runs.pretrain(run, text, compiling=True)
    assert asked == ["reduce-overhead" if accumulate == 1 else "default"]
    for loss, values in history.losses.items():
        assert found.losses[loss] == pytest.approx(values, abs=1e-3, nan_ok=True)
    assert model.forward.__func__ is PretrainingModel.forward
    monkeypatch.setattr(runs, "REHEARSAL", 0.0)
    assert runs.rehearse(run, text, model, compiling=True)[2] > 0


@pytest.mark.parametrize(
    "size, card, capability, triton, pays",
    [
        ("mini", True, (9, 0), True, True),
        ("base", True, (7, 5), True, True),
        ("tiny", True, (9, 0), True, False),
        ("mini", False, (9, 0), True, False),
        ("mini", True, (6, 1), True, False),
        ("mini", True, (9, 0), False, False),
    ],
)
def test_what_is_compiled_by_default(monkeypatch, size, card, capability, triton, pays):
    import argparse

    monkeypatch.setattr(torch.cuda, "is_available", lambda: card)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(
        fixed_shapes.importlib.util, "find_spec", lambda name: object() if triton else None
    )
    run = replace(RUNS[size], by_length=True)
    add_options(parser := argparse.ArgumentParser())
    made, compiling = compiled_or_not(run, parser.parse_args([]))
    assert compiling == pays and made.by_length != pays
    assert compiled_or_not(run, parser.parse_args(["--no-compile"])) == (run, False)
