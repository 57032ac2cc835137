"""The loop on a graphics card: a step waits for nothing, and what is found out later is found out in
time.

Without a card its steps run on the CPU while every call is counted that would wait for one.
"""

import json
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from breaking import Breaking
from test_distributed import data_of
from test_engine_loop import Kept, Steep, Toy, toy_batches
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from spanbert_tutorial.bert import encoder
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.engine import loop
from spanbert_tutorial.engine.loop import Recipe, train
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.pretraining.batches import MixedData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import MIXTURES, OBJECTIVES, objective_or_mixture

CARD = torch.cuda.is_available()
# calls that look at the values of a tensor, by the names of PyTorch's operators …
OPERATORS = {
    "_local_scalar_dense",
    "nonzero",
    "nonzero_numpy",
    "masked_select",
    "equal",
    "is_nonzero",
}
OPERATORS |= {"_unique2", "unique_consecutive", "unique_dim", "repeat_interleave"}
# … and by those of the methods in Python
METHODS = {
    "item",
    "tolist",
    "numpy",
    "cpu",
    "nonzero",
    "__bool__",
    "__int__",
    "__float__",
    "__index__",
}
METHODS |= {"__array__", "__contains__"}


class Operators(TorchDispatchMode):
    """Counts the operators that would wait, also those of the backward pass."""

    def __init__(self, found: Counter):
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in OPERATORS or name in ("index", "index_put_", "index_put") and by_truth(args[1]):
            self.found[name] += 1
        return func(*args, **(kwargs or {}))


def by_truth(indices) -> bool:
    """Whether an index is a mask: its true places have to be looked up."""
    return any(one is not None and one.dtype in (torch.bool, torch.uint8) for one in indices)


class Methods(TorchFunctionMode):
    """Counts the methods that would wait."""

    def __init__(self, found: Counter):
        super().__init__()
        self.found = found

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in METHODS:
            self.found[func.__name__] += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def counted():
    """What would wait while this is open; with a card, an error where something does."""
    found = Counter()
    before = torch.cuda.get_sync_debug_mode() if CARD else 0
    if CARD:
        torch.cuda.set_sync_debug_mode("error")
    try:
        with Operators(found), Methods(found):
            yield found
    finally:
        if CARD:
            torch.cuda.set_sync_debug_mode(before)


@pytest.fixture(autouse=True)
def on_the_processor(request, monkeypatch):
    """Numbers are compared on the CPU in float32. Only what waits is looked for on a card, where there
    is one."""
    AcceleratorState._reset_state(reset_partial_state=True)
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    if not (CARD and request.function is test_no_step_waits):
        monkeypatch.setattr(loop, "precision", lambda: "no")
        monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture
def as_on_a_card(monkeypatch):
    """Losses are read after every tenth step, and ids are not looked at."""
    monkeypatch.setattr(loop, "steps_between_readings", lambda device: 10)
    monkeypatch.setattr(loop, "LONGEST", 1e9)
    monkeypatch.setattr(encoder, "_may_look", lambda tensor: False)


def test_the_count_sees_what_waits():
    values = torch.tensor([1.0, -1.0], requires_grad=True)
    ways = {
        "item": lambda: values.sum().item(),
        "float": lambda: float(values.sum()),
        "truth": lambda: bool(values.sum() > 0),
        "list": lambda: values.tolist(),
        "nonzero": lambda: (values > 0).nonzero(),
        "mask": lambda: values[values > 0],
        "mask to write": lambda: values.detach().clone().index_put_((values > 0,), torch.ones(())),
        "copy": lambda: values.detach().cpu(),
        "equal": lambda: torch.equal(values, values),
    }
    for way, look in ways.items():
        found = Counter()
        with Operators(found), Methods(found):
            look()
        assert found, way
    with counted() as found:
        (values[torch.tensor([0, 0])] * 2).sum().backward()
    assert not found


def pretraining(name: str):
    """A small model of an objective, and its batches."""
    objective = objective_or_mixture(name)
    sizes = {
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "num_hidden_layers": 1,
    }
    torch.manual_seed(0)
    model = PretrainingModel(EncoderConfig.tiny(vocab_size=2_000, **sizes), objective)
    if name in OBJECTIVES:
        return model, data_of(objective).batches(np.random.default_rng(1))
    parts = {part: data_of(row) for part, row in objective.parts.items()}
    return model, MixedData(parts, objective.shares).batches(np.random.default_rng(1))


@pytest.mark.parametrize(
    "name, accumulate", [(name, 1) for name in (*OBJECTIVES, *MIXTURES)] + [("mix", 2)]
)
def test_no_step_waits(name, accumulate, monkeypatch, as_on_a_card):
    model, batches = pretraining(name)
    right = loop.Trainer.step
    steps = []
    if loop.precision() == "fp16":
        pytest.skip("in fp16 the schedule waits for the scaler, once a step")

    def step(self, drawn, number):
        with counted() as found:
            right(self, drawn, number)
        steps.append(dict(found))

    monkeypatch.setattr(loop.Trainer, "step", step)
    history = train(model, batches, Recipe(12, 1e-3, 2, accumulate=accumulate))
    assert steps == [{}] * 12 and history.steps == list(range(1, 13))


@pytest.mark.parametrize("name", ["span+sbo", "mix"])
def test_reading_later_changes_nothing(name, tmp_path, monkeypatch):
    """Losses, weights, metrics and snapshots are those of a loop that reads after each step, and a
    run that was stopped goes on to the same end."""
    results = []
    for every in (1, 10):
        monkeypatch.setattr(loop, "steps_between_readings", lambda device, every=every: every)
        folder = tmp_path / str(every)
        model, batches = pretraining(name)
        kept = Snapshots(folder / "snapshots", {}, 1e9)
        history = train(model, batches, Recipe(25, 1e-2, 2), snapshots=kept)
        results.append((history, model.state_dict(), metrics(folder)))
    (one, weights, lines), (other, later, more) = results
    assert json.dumps(one.losses) == json.dumps(other.losses) and one.steps == other.steps
    assert lines == more and [line["step"] for line in lines] == [10, 20, 25]
    assert all(torch.equal(weights[key], later[key]) for key in weights)


def metrics(folder) -> list[dict]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open(encoding="utf-8")]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def test_a_stopped_run_that_reads_later_goes_on_bit_for_bit(tmp_path, as_on_a_card):
    def run(folder, stop=None):
        model, batches = pretraining("span+sbo")
        source = Breaking(batches, stop) if stop else batches
        kept = Snapshots(folder, {}, every=0.0)
        return model, train(model, source, Recipe(25, 1e-2, 2), snapshots=kept)

    whole, history = run(tmp_path / "whole")
    with pytest.raises(ConnectionError):
        run(tmp_path / "made", stop=17)
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["step-000000010"]
    resumed, continued = run(tmp_path / "made")
    assert continued == history
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


def bad_at(step: int, harm: str) -> list[dict]:
    """Batches of which one gives a loss, or only a gradient, that is no number."""
    batches = toy_batches(20)
    change = {"loss": {"y": torch.full((16,), float("nan"))}, "gradient": {"zero": torch.zeros(())}}
    batches[step - 1] |= change[harm]
    return batches


@pytest.mark.parametrize(
    "harm, said",
    [
        ("loss", r"the loss is nan at step 14 \(inputs \(16, 4\)\): the weights are finite, this"),
        ("gradient", "the gradient's norm is nan at step 14: lower the peak"),
    ],
)
def test_what_is_no_number_stops_the_run_with_the_weights_before_it(
    harm, said, tmp_path, as_on_a_card
):
    """It is found out six steps later. Until then the weights stay as they were, and what is on the
    disk is of the reading before."""
    recipe = Recipe(20, 0.01, 1)
    model = Steep()
    kept = Snapshots(tmp_path / "snapshots", {}, every=0.0)
    with pytest.raises(FloatingPointError, match=said):
        train(model, Kept(bad_at(14, harm)), recipe, snapshots=kept)
    assert kept.newest().name == "step-000000010" and len(metrics(tmp_path)) == 1
    before = Steep()
    trainer = loop.Trainer(before, recipe)
    for number, batch in enumerate(toy_batches(13), start=1):
        trainer.step([(batch, "")], number)
    for one, other in zip(model.parameters(), before.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_bad_batch_of_a_step_is_named_later(as_on_a_card):
    class Placed(list):
        place = ", batch 3 of 5 of its epoch"

    with pytest.raises(FloatingPointError, match="at step 7, batch 3 of 5 of its epoch"):
        train(Steep(), Placed(bad_at(14, "loss")), Recipe(10, 0.01, 1, accumulate=2))


def test_slow_steps_are_read_at_once(monkeypatch, as_on_a_card):
    """Where a step takes long, waiting costs nothing, and the bar and Ctrl-C follow."""
    monkeypatch.setattr(loop, "LONGEST", 0.0)
    read = []
    right = loop.Trainer.read
    monkeypatch.setattr(loop.Trainer, "read", lambda self: read.append(1) or right(self))
    train(Toy(), toy_batches(4), Recipe(4, 0.01, 1))
    assert len(read) == 4


def test_a_card_is_read_every_tenth_step_and_a_cpu_at_each():
    assert loop.steps_between_readings(torch.device("cpu")) == 1
    assert loop.steps_between_readings(torch.device("cuda")) == loop.READ_EVERY == 10
