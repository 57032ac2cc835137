"""Two processes with half the batch each are one process with the whole batch."""

import json
import os
import re

import numpy as np
import pytest
import torch
import two_processes
from launched import done_by_two, module, stopped
from toys import data_of, model_of

from spanbert_tutorial.__main__ import main
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_shares_of_a_batch_are_the_batch(name):
    data = data_of(Objective.named(name))
    batch = next(data.batches(np.random.default_rng(1)))
    parts = [data.share(batch, process, 2) for process in (0, 1)]
    assert torch.equal(
        torch.cat([part["input_ids"] for part in parts]),
        torch.cat([batch["input_ids"][0::2], batch["input_ids"][1::2]]),
    )
    for process, part in enumerate(parts):
        assert torch.equal(part["labels"], batch["labels"][process::2])
        masked = (part["labels"] != -100).flatten().nonzero()[:, 0]
        assert torch.equal(part["masked_positions"], masked)
        assert part["masked_count"] * 2 == len(batch["masked_positions"])
        for task in data.objective.tasks:
            assert (
                part[f"{task.name}_count"] * 2 == task.count(batch) == sum(map(task.count, parts))
            )
    for field in [name for name in batch if name.startswith(("masked", "boundary"))]:
        assert sum(len(part[field]) for part in parts) == len(batch[field])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_process_without_a_row_computes_and_adds_nothing(name):
    objective = Objective.named(name)
    data = data_of(objective)
    batch = data.batch(np.array([0]), np.random.default_rng(0))
    model = model_of(name).eval()
    whole = model(batch)
    parts = [model(data.share(batch, process, 2)) for process in (0, 1)]
    for loss, value in whole.items():
        assert parts[1][loss] == 0
        assert ((parts[0][loss] + parts[1][loss]) / 2).item() == pytest.approx(
            value.item(), abs=1e-5
        )
    weights = list(model.parameters())  # the two processes wait for the gradient of each
    wanted, found, none = (
        torch.autograd.grad(losses["loss"], weights) for losses in (whole, *parts)
    )
    for one, half, nothing in zip(wanted, found, none, strict=True):
        assert not nothing.any() and torch.allclose(half / 2, one, atol=1e-5)


def test_the_shares_of_a_batch_without_a_target_have_loss_0():
    objective = Objective.named("span+sbo")
    data = data_of(objective)
    batch = data.batch(np.arange(2), np.random.default_rng(0))
    for name in [name for name in batch if name.startswith(("masked", "boundary"))]:
        batch[name] = batch[name][:0]
    batch["labels"] = torch.full_like(batch["labels"], -100)
    model = model_of("span+sbo").eval()
    parts = [data.share(batch, process, 2) for process in (0, 1)]
    assert [model(part)["loss"].item() for part in parts] == [0, 0]


def test_two_processes_train_as_one_does_and_stop_and_go_on_together(
    tmp_path, monkeypatch, on_the_processor
):
    printed = done_by_two(tmp_path / "said", two_processes.main, tmp_path)
    monkeypatch.setattr(Snapshots, "due", lambda self: False)
    model, history = two_processes.trained(tmp_path / "one")
    two = torch.load(tmp_path / "weights.pt")
    start = model_of(two_processes.NAME).state_dict()
    for weight, value in model.state_dict().items():
        apart, way = (two[weight] - value).norm(), (value - start[weight]).norm()
        # not for the biases of the keys: they change nothing, so they move by rounding alone
        assert "key.bias" in weight or apart <= 1e-4 * way, weight
    result = json.loads((tmp_path / "result.json").read_text())
    assert history.steps == result["steps"] == [1, 2, 3, 4, 5, 6]
    for loss, values in history.losses.items():
        assert result["losses"][loss] == pytest.approx(values, abs=1e-5)
    lines = [json.loads((tmp_path / m / "metrics.jsonl").read_text()) for m in ("one", "two")]
    # a process without a row computes one that counts nothing in the losses
    assert 0 < lines[0]["tokens"] <= lines[1]["tokens"] < 1.1 * lines[0]["tokens"]
    for number in (0, 1):
        wanted = rf"process {number}: Stopped after step 5 of 6.*\['step-000000005'\]"
        assert re.search(wanted, printed), printed
    ends = re.findall(r"ends with ([\d.]+)", printed)
    assert len(ends) == 2 and len(set(ends)) == 1  # the same in both processes


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no SIGINT for one process")
def test_the_command_in_two_processes_is_stopped_and_goes_on(tmp_path, capsys):
    """Only the first process writes and speaks. Ctrl-C reaches the launcher, which hands it on; what
    goes on, with as many processes, ends with the weights of a run that was left alone."""
    text = tmp_path / "text.txt"
    lines = [f"The boat {i} left the town.\nIt was {i % 7} years old." for i in range(200)]
    text.write_text("\n\n".join(lines), encoding="utf-8")
    calm, left = tmp_path / "calm", tmp_path / "stopped"
    # the command as it is, but the run that is stopped has a snapshot after every step
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom spanbert_tutorial.engine import snapshots\n"
        "from spanbert_tutorial.pretraining import runs\nruns.REHEARSAL = 0.1\n"
        "from spanbert_tutorial.__main__ import main\n"
        f"words, calm = sys.argv[1:], ['--output', {str(calm)!r}]\n"
        "assert main([*words, *calm, '--dry-run']) == main([*words, *calm]) == 0\n"
        f"snapshots.EVERY = 0\nsys.exit(main([*words, '--output', {str(left)!r}]))\n"
    )
    run = ["pretrain", "--corpus", str(text), "--vocab-size", "80", "--max-length", "24"]
    run += ["--steps", "60"]
    launch = [module, "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    said, state = tmp_path / "said", tmp_path / "stopped.training"
    code, said = stopped(said, state, *launch, str(program), *run)
    assert code != 0 and not left.exists() and state.exists()
    assert said.count("Nothing was written") == said.count("Checkpoint after") == 1
    assert f"on CPU, 2 × {torch.get_num_threads()} threads" in (calm / "README.md").read_text(
        encoding="utf-8"
    )
    given = ["spanbert_tutorial", *run, "--output", str(left), "--resume"]
    assert main(given[1:]) == 2
    assert "processes was 2 and is 1" in capsys.readouterr().err
    done_by_two(tmp_path / "goes on", module, *given)
    weights = [(folder / "model.safetensors").read_bytes() for folder in (calm, left)]
    assert weights[0] == weights[1] and not state.exists()
