"""The loop against a plain torch loop; its schedule, weight decay, errors and progress bar."""

import math
import re
import time

import pytest
import torch
from accelerate import AutocastKwargs
from accelerate.state import AcceleratorState
from torch import nn

from spanbert_tutorial.engine import keeping, loop, processes
from spanbert_tutorial.engine.keeping import progress_bar
from spanbert_tutorial.engine.loop import History, Recipe, parameter_groups, train
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError


class Toy(nn.Module):
    """Two-layer regression that speaks the loop's language: a batch in, losses out."""

    def __init__(self, seed: int = 0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.second = nn.Linear(8, 1)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.5)

    def forward(self, batch: dict) -> dict:
        guess = self.second(torch.tanh(self.norm(self.first(batch["x"]))))[:, 0]
        main = (guess - batch["y"]).square().mean()
        size = guess.square().mean()
        return {"loss": main + 0.1 * size, "main": main, "size": size}


def toy_batches(count: int, seed: int = 1) -> list[dict]:
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(16, 4, generator=generator) for _ in range(count)]
    return [{"x": x, "y": x[:, 0] - 2 * x[:, 1]} for x in inputs]


def plain_loop(model: nn.Module, batches: list[dict], recipe: Recipe) -> list[float]:
    """The same training in plain torch, with the schedule written out."""
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    vectors = [weight for weight in model.parameters() if weight.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, betas=recipe.betas, eps=recipe.epsilon)
    losses = []
    for step, batch in enumerate(batches):
        rising = step / recipe.warmup_steps if recipe.warmup_steps else 1.0
        falling = (recipe.steps - step) / (recipe.steps - recipe.warmup_steps)
        for group in optimizer.param_groups:
            group["lr"] = recipe.peak_learning_rate * min(rising, falling)
        optimizer.zero_grad()
        loss = model(batch)["loss"]
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    """Accelerate takes a graphics card where there is one; these sums are compared on the CPU in
    float32."""
    AcceleratorState._reset_state(reset_partial_state=True)
    monkeypatch.setattr(loop, "precision", lambda: "no")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


def test_after_training_the_model_computes_in_float32(monkeypatch):
    """Mixed precision is for training only: measuring and filling use float32."""
    monkeypatch.setattr(loop, "precision", lambda: "bf16")
    model = Toy()
    train(model, toy_batches(2), Recipe(2, 0.02, 0))
    assert model(toy_batches(1)[0])["loss"].dtype == torch.float32
    assert model.forward.__func__ is Toy.forward  # no wrapper left


def test_after_training_the_model_is_on_the_device_it_came_from(monkeypatch):
    """Training may take it to a card; what a chapter does next feeds it tensors of the CPU."""
    model = Toy()
    moved = []
    monkeypatch.setattr(model, "to", lambda device: moved.append(device) or model)
    train(model, toy_batches(1), Recipe(1, 0.02, 0))
    assert moved[-1] == torch.device("cpu")
    with pytest.raises(InputError, match="ended"):
        train(model, toy_batches(1), Recipe(2, 0.02, 0))
    assert moved[-1] == torch.device("cpu") and len(moved) >= 2


def test_a_second_training_of_the_same_model_uses_mixed_precision_again(monkeypatch):
    monkeypatch.setattr(loop, "precision", lambda: "bf16")
    model = Toy()
    kinds = []
    model.first.register_forward_hook(lambda *_: kinds.append(torch.is_autocast_enabled("cpu")))
    for _ in range(2):
        train(model, toy_batches(1), Recipe(1, 1e-3, 1))
    assert kinds == [True, True]


@pytest.mark.parametrize(
    "capability, expected", [((6, 1), "no"), ((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_precision_asks_for_the_capability(monkeypatch, capability, expected):
    """A T4 (7.5) only emulates bfloat16, although `is_bf16_supported()` says yes."""
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert processes.precision() == expected


def in_fp16(monkeypatch, factor: float, backoff: float) -> loop.Trainer:
    """A trainer as on a graphics card without bfloat16, with torch's own scaler of losses, which
    works on a CPU."""

    class Accelerator(loop.Accelerator):
        mixed_precision = "fp16"

        def __init__(self, **options):
            super().__init__(**options)
            # sums stay exact
            self.native_amp = True
            self.autocast_handler = AutocastKwargs(enabled=False)
            self.scaler = torch.amp.GradScaler("cpu", init_scale=factor, backoff_factor=backoff)

    monkeypatch.setattr(loop, "Accelerator", Accelerator)
    return loop.Trainer(Toy(), Recipe(80, 0.02, 0))


def test_in_fp16_a_gradient_that_overflows_is_passed_over_and_the_factor_falls(monkeypatch):
    trainer = in_fp16(monkeypatch, 2.0**127, 2.0**-60)
    before = [weight.detach().clone() for weight in trainer.bare.parameters()]
    rates = []
    moved = []
    plain = Toy()
    for number, batch in enumerate(toy_batches(4), start=1):
        trainer.step([(batch, "")], number)
        rates.append(trainer.schedule.get_last_lr()[0])
        moved.append(
            any(
                not torch.equal(a, b)
                for a, b in zip(before, trainer.bare.parameters(), strict=True)
            )
        )
    assert moved == [False, True, True, True] and trainer.skipped == 0
    assert rates[0] == 0.02 and rates == sorted(rates, reverse=True) and len(set(rates)) == 4
    plain_loop(
        plain, toy_batches(4)[1:], Recipe(80, 0.02, 0)
    )  # the schedule did not count the step passed over
    for one, other in zip(trainer.bare.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_in_fp16_a_run_ends_when_a_smaller_factor_does_not_help(monkeypatch):
    trainer = in_fp16(monkeypatch, 2.0**127, 1 - 1e-6)
    with pytest.raises(
        FloatingPointError, match=f"norm is .* at step {loop.SKIPPED + 1}: lower the peak"
    ):
        for number, batch in enumerate(toy_batches(loop.SKIPPED + 1), start=1):
            trainer.step([(batch | {"y": 1e4 * batch["y"]}, "")], number)
    assert all(
        torch.equal(a, b)
        for a, b in zip(Toy().parameters(), trainer.bare.parameters(), strict=True)
    )


def test_freed_memory_is_kept_where_the_system_can(monkeypatch):
    def library(refuses):
        class Library:
            mallopt = staticmethod(lambda *given: asked.append(given) or given not in refuses)

        return Library

    newest = (-3, 2**31 - 1)
    older = (-3, 2**25)
    trim = (-1, 2**31 - 1)
    for refuses, wanted in [((), [newest, trim]), ((newest,), [newest, older, trim])]:
        asked: list[tuple[int, int]] = []
        monkeypatch.setattr(
            processes.ctypes, "CDLL", lambda name, refuses=refuses: library(refuses)
        )
        assert processes.keep_freed_memory() and asked == wanted
    monkeypatch.setattr(processes.ctypes, "CDLL", lambda name: object())
    assert not processes.keep_freed_memory()


def test_precision_is_float32_where_torch_cannot_say(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    assert processes.precision() == "no"


@pytest.mark.parametrize("warmup", [0, 6])
def test_the_loop_equals_a_plain_torch_loop(warmup):
    recipe = Recipe(60, 0.02, warmup, weight_decay=0.1)
    batches = toy_batches(60)
    here = Toy()
    there = Toy()
    history = train(here, batches, recipe)
    losses = plain_loop(there, batches, recipe)
    assert max(abs(a - b) for a, b in zip(history.losses["loss"], losses, strict=True)) < 1e-6
    for name, weight in here.state_dict().items():
        assert (weight - there.state_dict()[name]).abs().max() < 1e-6, name


def test_the_loss_falls_and_the_history_is_whole():
    model = Toy()
    history = train(model, iter(toy_batches(200)), Recipe(200, 0.05, 10))
    assert history.steps == list(range(1, 201))
    assert list(history.losses) == ["loss", "main", "size"] and all(
        len(v) == 200 for v in history.losses.values()
    )
    assert history.mean("main", 10) < 0.2 * sum(history.losses["main"][:10]) / 10
    for total, main, size in zip(*history.losses.values(), strict=True):
        assert total == pytest.approx(main + 0.1 * size, rel=1e-5)
    assert not model.training


def test_the_batches_are_taken_one_a_step_and_no_more():
    taken = []

    def stream():
        for number, batch in enumerate(toy_batches(10)):
            taken.append(number)
            yield batch

    train(Toy(), stream(), Recipe(4, 0.01, 1))
    assert taken == [0, 1, 2, 3]


def test_the_model_trains_in_training_mode():
    class Watched(Toy):
        modes = []

        def forward(self, batch):
            self.modes.append(self.training)
            return super().forward(batch)

    model = Watched().eval()
    train(model, toy_batches(3), Recipe(3, 0.01, 1))
    assert model.modes == [True] * 3 and not model.training


def test_the_schedule(monkeypatch):
    rates = []
    step = torch.optim.AdamW.step

    def recording(self, *args, **options):
        rates.append([group["lr"] for group in self.param_groups])
        return step(self, *args, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", recording)
    train(Toy(), toy_batches(10), Recipe(steps=10, peak_learning_rate=0.5, warmup_steps=4))
    # 0 to the peak in 4 steps, then down by a sixth of it a step; a step 11 would have 0
    expected = [0, 1 / 4, 2 / 4, 3 / 4, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    assert [rate for rate, _ in rates] == pytest.approx([0.5 * share for share in expected])
    assert all(one == other for one, other in rates)


def test_weight_decay_is_for_matrices_only():
    model = Toy()
    model.second.bias.requires_grad_(False)
    decayed, free = parameter_groups(model, 0.3)
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.3, 0.0)
    assert {id(weight) for weight in decayed["params"]} == {
        id(model.first.weight),
        id(model.second.weight),
    }
    expected = [
        model.first.bias,
        model.norm.weight,
        model.norm.bias,
    ]  # a frozen weight is in neither group
    assert {id(weight) for weight in free["params"]} == {id(weight) for weight in expected}


def test_a_tied_weight_is_trained_once():
    model = nn.Module()
    model.words = nn.Embedding(5, 3)
    model.head = nn.Module()
    model.head.embedding_weight = model.words.weight
    assert len(parameter_groups(model, 0.1)[0]["params"]) == 1


def test_gradients_are_clipped():
    wild = [{"x": batch["x"], "y": 1e6 * batch["y"]} for batch in toy_batches(5)]
    clipped, free = (Recipe(5, 0.01, 0, clip_norm=norm, epsilon=1.0) for norm in (1e-3, 1e9))
    moved = []
    for recipe in (clipped, free):
        model = Toy()
        train(model, wild, recipe)
        moved.append((model.first.weight - Toy().first.weight).abs().max().item())
    # with so large an epsilon AdamW's steps shrink with the gradient (weight decay moves the
    # weights a little)
    assert moved[0] < 0.1 * moved[1]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_names_the_step(bad):
    batches = toy_batches(5)
    batches[2]["y"] = torch.full((16,), bad)
    with pytest.raises(
        FloatingPointError, match="at step 3 .*the weights are finite, this batch overflows"
    ):
        train(Toy(), batches, Recipe(5, 0.01, 1))


class Steep(Toy):
    """A loss that is a number while its gradient is none."""

    def forward(self, batch):
        losses = super().forward(batch)
        root = (self.first.weight.sum() * 0 + batch["zero"]).sqrt() if "zero" in batch else 0.0
        return {**losses, "loss": losses["loss"] + root}


def test_a_gradient_that_is_no_number_leaves_the_weights_alone():
    batches = toy_batches(5)
    model = Steep()
    batches[2]["zero"] = torch.zeros(())
    with pytest.raises(
        FloatingPointError, match="gradient's norm is nan at step 3: lower the peak"
    ):
        train(model, batches, Recipe(5, 0.01, 1))
    assert all(weight.isfinite().all() for weight in model.parameters())


def test_batches_that_end_early():
    with pytest.raises(InputError, match="ended at step 3 of 10: give more text or fewer steps"):
        train(Toy(), toy_batches(3), Recipe(10, 0.01, 1))
    with pytest.raises(InputError, match="ended at step 0 of 10"):
        train(Toy(), [], Recipe(10, 0.01, 1))


def test_history_mean_of_the_last_values():
    history = History()
    for step, value in enumerate([4.0, 2.0, 1.0], start=1):
        history.add(step, {"mlm": value})
    assert history.mean("mlm", 2) == 1.5 and history.mean("mlm", 20) == pytest.approx(7 / 3)
    assert math.isclose(history.mean("mlm", 1), 1.0)


# --- progress -----------------------------------------------------------------------


def test_silent_where_outputs_are_kept(capfd):
    train(Toy(), toy_batches(3), Recipe(3, 0.01, 1), reference=6.5)
    assert capfd.readouterr() == ("", "")


def test_the_bar_shows_losses_and_the_reference(capsys, monkeypatch):
    monkeypatch.delenv("SPANBERT_TUTORIAL_STATIC")
    train(Toy(), toy_batches(30), Recipe(30, 0.01, 1), reference=6.543)
    out, err = capsys.readouterr()
    assert "30/30" in out and "main=" in out and "unigram=6.54" in out and err == ""
    train(Toy(), toy_batches(3), Recipe(3, 0.01, 1))
    assert "unigram" not in capsys.readouterr().out


def test_the_bar_shows_the_mean_of_the_last_twenty(monkeypatch):
    monkeypatch.delenv("SPANBERT_TUTORIAL_STATIC")
    shown = []
    monkeypatch.setattr(
        keeping.tqdm, "set_postfix", lambda self, values, **options: shown.append(values)
    )
    history = train(Toy(), toy_batches(30), Recipe(30, 0.01, 1))
    assert len(shown) == 30 and shown[-1]["main"] == f"{sum(history.losses['main'][-20:]) / 20:.2f}"
    assert "loss" not in shown[-1]  # its parts are shown instead


@pytest.mark.parametrize(("value", "silent"), [("1", True), ("0", False), (None, False)])
def test_what_silences_the_bar(monkeypatch, value, silent):
    monkeypatch.delenv("SPANBERT_TUTORIAL_STATIC")
    if value is not None:
        monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", value)
    with progress_bar(3) as bar:
        assert bar.disable == silent


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_a_bar_beside_things_is_there_when_they_take_long(monkeypatch, capsys, seconds):
    monkeypatch.delenv("SPANBERT_TUTORIAL_STATIC")
    bar = progress_bar
    monkeypatch.setattr(
        keeping, "progress_bar", lambda *given, delay, **more: bar(*given, delay=delay / 20, **more)
    )
    assert [
        time.sleep(seconds) or thing for thing in keeping.with_bar(["a", "b", "c"], "question")
    ] == ["a", "b", "c"]
    out = capsys.readouterr().out
    assert ("3/3" in out and "question" in out) if seconds else out == ""


def test_the_bar_shows_tokens_a_second_and_the_time_left(capsys, monkeypatch):
    monkeypatch.delenv("SPANBERT_TUTORIAL_STATIC")
    batches = [
        {**batch, "attention_mask": torch.ones(16, 10, dtype=torch.bool)}
        for batch in toy_batches(30)
    ]

    class Slow(Toy):
        def forward(self, batch):
            time.sleep(0.02)
            return super().forward({"x": batch["x"], "y": batch["y"]})

    train(Slow(), batches, Recipe(30, 0.01, 1))
    out = capsys.readouterr().out
    rates = [float(rate.replace(",", "")) for rate in re.findall(r"tokens/s=([\d,]+)", out)]
    assert rates and 500 < rates[-1] < 160 / 0.02
    assert re.search(r"\d\d:\d\d<\d\d:\d\d", out)  # time so far < time left


# --- several batches a step ---------------------------------------------------------


def test_several_batches_make_the_step_of_one_large_batch():
    whole = toy_batches(6)
    small = []
    for batch in whole:
        small += [
            {name: value[part] for name, value in batch.items()}
            for part in (slice(8), slice(8, 16))
        ]
    models = [Toy(), Toy()]
    histories = [
        train(models[0], whole, Recipe(6, 0.02, 1)),
        train(models[1], small, Recipe(6, 0.02, 1, accumulate=2)),
    ]
    for first, second in zip(*(model.parameters() for model in models), strict=True):
        assert torch.allclose(first, second, atol=1e-6)
    assert histories[0].losses["loss"] == pytest.approx(histories[1].losses["loss"], abs=1e-6)
    with pytest.raises(InputError, match="ended at step 2 of 3"):
        train(Toy(), small[:5], Recipe(3, 0.02, 1, accumulate=2))


# --- stops --------------------------------------------------------------------------


def test_a_stopped_training_leaves_a_model_that_measures_in_float32(monkeypatch):
    monkeypatch.setattr(loop, "precision", lambda: "bf16")

    def batches():
        yield toy_batches(1)[0]
        raise KeyboardInterrupt

    model = Toy()
    with pytest.raises(KeyboardInterrupt):
        train(model, batches(), Recipe(5, 0.01, 1))
    assert not model.training and model(toy_batches(1)[0])["loss"].dtype == torch.float32
    assert model.forward.__func__ is Toy.forward


def test_a_checkpoint_without_numbers_is_told_from_a_step_that_was_too_long():
    model = Toy()
    with torch.no_grad():
        model.norm.weight[0] = float("nan")
    with pytest.raises(
        FloatingPointError,
        match=r"at step 1 \(inputs \(16, 4\)\): .*first norm.weight.*the checkpoint is broken",
    ):
        train(model, toy_batches(3), Recipe(3, 0.01, 1))


def test_the_message_names_the_place_in_the_data():
    class Placed(list):
        place = ", batch 3 of 5 of its epoch, blocks 7, 2, …"

    batches = Placed(toy_batches(3))
    batches[0]["y"] = torch.full((16,), float("nan"))
    with pytest.raises(
        FloatingPointError, match="at step 1, batch 3 of 5 of its epoch, blocks 7, 2"
    ):
        train(Toy(), batches, Recipe(3, 0.01, 1))


class Walking:
    """Batches that know their place; the second is bad."""

    def __init__(self):
        self.at = 0
        self.all = toy_batches(8)
        self.all[1]["y"] = torch.full((16,), float("nan"))

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        return self.all[self.at - 1]

    @property
    def place(self):
        return f", batch {self.at}"


def test_of_several_batches_the_bad_one_is_named_and_leaves_no_gradient():
    model = Toy()
    with pytest.raises(FloatingPointError, match=r"at step 1, batch 2 \("):
        train(model, Walking(), Recipe(2, 0.01, 1, accumulate=4))
    assert all(weight.grad is None for weight in model.parameters())


class Kept(list):
    """Batches whose place can be kept."""

    def state_dict(self):
        return {}


@pytest.mark.parametrize("steps, every", [(1, 1e9), (3, 0.0)])
def test_weights_that_a_step_has_spoilt_are_told_before_they_are_kept(tmp_path, steps, every):
    """The loss of that step is still a number: it was computed before. A snapshot after the first
    step sees it, too."""
    kept = Snapshots(tmp_path / "snapshots", {}, every)
    recipe = Recipe(steps, math.inf, warmup_steps=0)
    with pytest.raises(
        FloatingPointError, match="after step 1 the weights are not finite .*: lower the peak"
    ):
        train(Toy(), Kept(toy_batches(3)), recipe, snapshots=kept)
    assert kept.newest() is None


def test_weights_that_the_last_step_has_spoilt_are_told_without_snapshots():
    with pytest.raises(FloatingPointError, match="after step 1 the weights are not finite"):
        train(Toy(), toy_batches(1), Recipe(1, math.inf, warmup_steps=0))


@pytest.mark.parametrize("every, checked", [(0.0, [1, 2, 3]), (1e9, [3]), (None, [3])])
def test_weights_are_checked_once_before_each_snapshot_and_at_the_end(
    tmp_path, monkeypatch, every, checked
):
    steps = []
    monkeypatch.setattr(loop.Trainer, "check_weights", lambda self, step: steps.append(step))
    kept = None if every is None else Snapshots(tmp_path / "snapshots", {}, every)
    train(Toy(), Kept(toy_batches(3)), Recipe(3, 0.01, 1), snapshots=kept)
    assert steps == checked
