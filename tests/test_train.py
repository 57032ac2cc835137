"""The loop against a plain torch loop; its schedule, weight decay, errors and progress bar."""

import math
import re
import time

import pytest
import torch
from accelerate import AutocastKwargs
from torch import nn
from toys import Placed, Toy, same_weights, toy_batches

from spanbert_tutorial.engine import device, hooks, processes
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.hooks import ProgressBar
from spanbert_tutorial.engine.snapshots import Snapshots, long_run
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.train import TrainingConfig, adamw, train

pytestmark = pytest.mark.usefixtures("on_the_processor")


def plain_loop(model: nn.Module, batches: list[dict], config: TrainingConfig) -> list[float]:
    """The same training in plain torch, with the schedule written out."""
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    vectors = [weight for weight in model.parameters() if weight.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, betas=config.betas, eps=config.epsilon)
    losses = []
    for step, batch in enumerate(batches):
        rising = step / config.warmup_steps if config.warmup_steps else 1.0
        falling = (config.steps - step) / (config.steps - config.warmup_steps)
        for group in optimizer.param_groups:
            group["lr"] = config.peak_learning_rate * min(rising, falling)
        optimizer.zero_grad()
        loss = model(batch)["loss"]
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("warmup, log_every", [(0, 1), (6, 7)])
def test_the_loop_equals_a_plain_torch_loop(warmup, log_every):
    config = TrainingConfig(60, 0.02, warmup, weight_decay=0.1, log_every=log_every)
    here, there = Toy(), Toy()
    history = train(here, toy_batches(60), config)
    losses = plain_loop(there, toy_batches(60), config)
    assert history.steps == list(range(1, 61)) and list(history.losses) == ["loss", "main", "size"]
    assert history.losses["loss"] == pytest.approx(losses, abs=1e-6)
    assert history.mean("loss", 3) == pytest.approx(sum(losses[-3:]) / 3)
    for name, weight in here.state_dict().items():
        assert (weight - there.state_dict()[name]).abs().max() < 1e-6, name


def test_the_loss_falls_and_no_batch_is_taken_too_many():
    stream = iter(toy_batches(201))
    history = train(Toy(), stream, TrainingConfig(200, 0.05, 10))
    assert history.mean("main", 10) < 0.2 * sum(history.losses["main"][:10]) / 10
    assert len(list(stream)) == 1


def test_weight_decay_is_for_matrices_only_and_a_tied_weight_is_trained_once():
    model = Toy()
    model.tied = model.first.weight
    model.second.bias.requires_grad_(False)
    decayed, free = adamw(model, TrainingConfig(1, 1.0, 0, weight_decay=0.3)).param_groups
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.3, 0.0)
    assert [*map(id, decayed["params"])] == [*map(id, (model.first.weight, model.second.weight))]
    vectors = (model.first.bias, model.norm.weight, model.norm.bias)
    assert [*map(id, free["params"])] == [*map(id, vectors)]


def test_several_batches_make_the_step_of_one_large_batch():
    whole = toy_batches(6)
    halves = (slice(8), slice(8, 16))
    small = [{name: v[part] for name, v in batch.items()} for batch in whole for part in halves]
    models = [Toy(), Toy()]
    one = train(models[0], whole, TrainingConfig(6, 0.02, 1))
    two = train(models[1], small, TrainingConfig(6, 0.02, 1, accumulate=2))
    for first, second in zip(*(model.parameters() for model in models), strict=True):
        assert torch.allclose(first, second, atol=1e-6)
    assert one.losses["loss"] == pytest.approx(two.losses["loss"], abs=1e-6)


@pytest.mark.parametrize("batches", [[], toy_batches(3)])
def test_batches_that_end_early(batches):
    with pytest.raises(InputError, match="ended before the last step: give more text or fewer"):
        train(Toy(), batches, TrainingConfig(4, 0.01, 1))


def test_the_model_comes_back_in_float32_in_evaluation_mode_and_where_it_was(monkeypatch):
    """Also from a training that breaks off; a second one uses mixed precision again."""
    monkeypatch.setattr(device, "precision", lambda: "bf16")
    model, seen, moved = Toy().eval(), [], []
    model.first.register_forward_hook(
        lambda *_: seen.append((model.training, torch.is_autocast_enabled("cpu")))
    )
    monkeypatch.setattr(model, "to", lambda device: moved.append(device) or model)

    def broken():
        yield toy_batches(1)[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(model, broken(), TrainingConfig(5, 0.01, 1))
    train(model, toy_batches(1), TrainingConfig(1, 1e-3, 1))
    assert seen == [(True, True)] * 2 and moved[-1] == torch.device("cpu")
    assert not model.training and all(weight.grad is None for weight in model.parameters())
    assert model(toy_batches(1)[0])["loss"].dtype == torch.float32
    assert model.forward.__func__ is Toy.forward  # no wrapper left


# --- numbers that are none ----------------------------------------------------------

HARM = {
    "loss": {"y": torch.full((16,), float("nan"))},
    "gradient": {"zero": torch.zeros(())},
    "loss alone": {"infinite": torch.tensor(torch.inf)},
}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("log_every, kept", [(1, 13), (10, 10)])
def test_what_is_no_number_stops_the_run_with_the_weights_before_it(
    tmp_path, harm, log_every, kept
):
    """Read later it is found out later. Until then the weights stay as they were, and what is on the
    disk is of the reading before."""
    batches = Placed(toy_batches(20))
    batches[13] |= HARM[harm]
    config = TrainingConfig(20, 0.01, 1, log_every=log_every)
    model = Toy()
    snapshots = Snapshots(tmp_path / "snapshots", every=0.0)
    with pytest.raises(FloatingPointError, match="^step 14: losses .* lower the peak learning"):
        train(model, batches, config, [snapshots])
    assert snapshots.newest().name == f"step-{kept:09d}"

    def until_there():
        yield from toy_batches(13)
        raise ConnectionError

    before = Toy()
    with pytest.raises(ConnectionError):
        train(before, until_there(), config)
    assert same_weights(model, before)


def test_weights_that_a_step_has_spoiled_are_told_before_they_are_kept(tmp_path):
    """The loss of that step is still a number: it was computed before."""
    kept = Snapshots(tmp_path, every=0.0)
    for steps, hooks_ in ((3, [kept]), (1, [])):
        with pytest.raises(FloatingPointError, match="after step 1 the weights are not finite .*:"):
            config = TrainingConfig(steps, math.inf, warmup_steps=0)
            train(Toy(), Placed(toy_batches(3)), config, hooks_)
    assert kept.newest() is None


def in_fp16(monkeypatch, scale: float, backoff: float) -> None:
    """As on a graphics card without bfloat16, with torch's own scaler of losses, which works on a
    CPU."""

    class Accelerator(device.Accelerator):
        mixed_precision = "fp16"

        def __init__(self, **options):
            super().__init__(**options)
            self.native_amp = True
            self.autocast_handler = AutocastKwargs(enabled=False)  # sums stay exact
            self.scaler = torch.amp.GradScaler("cpu", init_scale=scale, backoff_factor=backoff)

    monkeypatch.setattr(device, "Accelerator", Accelerator)


def test_in_fp16_a_gradient_that_overflows_is_passed_over(monkeypatch):
    in_fp16(monkeypatch, 2.0**127, 2.0**-60)
    model = Toy()
    train(model, toy_batches(1), TrainingConfig(1, 0.02, 0))
    assert same_weights(model, Toy())
    history = train(model, toy_batches(4), TrainingConfig(4, 0.02, 0))  # the second has a scale
    assert history.done == 4 and not same_weights(model, Toy())
    assert all(weight.isfinite().all() for weight in model.parameters())


def test_in_fp16_a_run_ends_when_a_smaller_scale_does_not_help(monkeypatch):
    in_fp16(monkeypatch, 2.0**10, 0.5)
    steep = [batch | HARM["gradient"] for batch in toy_batches(60)]
    model = Toy()
    with pytest.raises(
        FloatingPointError, match="step 40: losses .*norm of the gradient (nan|inf)"
    ):
        train(model, steep, TrainingConfig(60, 0.02, 0))
    assert same_weights(model, Toy())


# --- precision and memory -----------------------------------------------------------


@pytest.mark.parametrize(
    "capability, expected", [((6, 1), "no"), ((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_precision_asks_for_the_capability(monkeypatch, capability, expected):
    """A T4 (7.5) only emulates bfloat16, although `is_bf16_supported()` says yes."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert processes.precision() == expected


def test_precision_is_float32_where_torch_cannot_say(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    assert processes.precision() == "no"


# --- progress -----------------------------------------------------------------------


def test_the_bar_shows_losses_the_reference_and_the_time_left(capsys, monkeypatch):
    with_mask = [b | {"attention_mask": torch.ones(16, 10)} for b in toy_batches(30)]
    config = TrainingConfig(30, 0.01, 1)
    train(Toy(), with_mask, config, [ProgressBar(6.543)])
    assert capsys.readouterr() == ("", "")  # silent where outputs are stored
    monkeypatch.delenv("SPANBERT_TUTORIAL_STATIC")

    class Slow(Toy):
        def forward(self, batch):
            time.sleep(0.02)
            return super().forward(batch)

    class Kept(Placed):
        def __next__(self):
            return self.pop(0)

        def load_state_dict(self, state):
            pass

    with long_run(Kept(with_mask), reference=6.543) as (stream, given):
        history = train(Slow(), stream, config, given)
    other, out = capsys.readouterr()
    assert "30/30" in out and "unigram=6.54" in out and " loss=" not in out and other == ""
    assert f"main={history.mean('main', 20):.2f}" in out
    assert re.search(r"\d\d:\d\d<\d\d:\d\d", out)  # time so far < time left
    rates = [float(rate.replace(",", "")) for rate in re.findall(r"tokens/s=([\d,]+)", out)]
    assert rates and 100 < rates[-1] < 160 / 0.02
    train(Toy(), toy_batches(3), TrainingConfig(3, 0.01, 1), [ProgressBar()])
    assert "unigram" not in capsys.readouterr().err


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_a_bar_beside_things_is_there_when_they_take_long(monkeypatch, capsys, seconds):
    monkeypatch.delenv("SPANBERT_TUTORIAL_STATIC")
    bar = hooks.progress_bar
    monkeypatch.setattr(
        hooks, "progress_bar", lambda *given, delay, **more: bar(*given, delay=delay / 20, **more)
    )
    things = [time.sleep(seconds) or one for one in hooks.with_bar(["a", "b", "c"], "question")]
    other, out = capsys.readouterr()  # results may go to stdout
    assert things == ["a", "b", "c"] and other == ""
    assert ("3/3" in out and "question" in out) if seconds else out == ""


def test_a_loss_that_comes_late_or_goes_is_no_number_there():
    history = History()
    history.add(1, {"loss": 1.0})
    history.add(2, {"loss": 2.0, "sbo": 4.0})
    history.add(3, {"loss": 3.0})
    assert history.mean("sbo", 3) == 4.0 and history.mean("loss", 3) == 2.0
    assert math.isnan(history.mean("sbo", 1)) and len(history.losses["sbo"]) == 3
