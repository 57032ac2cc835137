"""Two processes with half the batch each are one process with the whole batch."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
from spanbert_tutorial.text.encoding import EncodedCorpus

# Trains six steps in float32 and writes, in the first process, losses, step numbers and the sums of
# all weights.
SCRIPT = """
import json, sys
import numpy as np, torch
from accelerate import PartialState
sys.path.insert(0, sys.argv[3])
PartialState(cpu=True)
from spanbert_tutorial.engine import loop
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.model import PretrainingModel
from test_distributed import data_of
loop.precision = lambda: "no"
objective = Objective.named(sys.argv[1])
torch.manual_seed(0)
sizes = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_hidden_layers": 1}
model = PretrainingModel(EncoderConfig.tiny(vocab_size=2_000, **sizes), objective)
batches = data_of(objective, by_length=sys.argv[4] == "2").batches(np.random.default_rng(1))
history = loop.train(model, batches, loop.Recipe(6, 1e-2, 2, accumulate=int(sys.argv[4])))
if PartialState().is_main_process:
    weights = {name: weight.double().abs().sum().item() for name, weight in model.named_parameters()}
    json.dump({"losses": history.losses, "steps": history.steps, "weights": weights}, open(sys.argv[2], "w"))
"""


# Two processes that disagree: at step 2 only the second finds a snapshot due, at step 4 only it is
# told to stop. Asked to go on, they do not disagree any more, and end with a checksum of the
# weights.
DISAGREE = """
import os, signal, sys
from pathlib import Path
import numpy as np, torch
from accelerate import PartialState
sys.path.insert(0, sys.argv[2])
second = PartialState(cpu=True).process_index == 1
from spanbert_tutorial.engine import loop
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.engine.snapshots import Snapshots
from test_distributed import data_of
objective, seen = Objective.named("mlm"), []
def due(self):
    seen.append(sorted(path.name for path in self.folder.glob("step-*")))
    if sys.argv[3:] == ["on"]:
        return False
    if second and len(seen) == 4:
        os.kill(os.getpid(), signal.SIGINT)  # met at the end of the next step
    return second and len(seen) == 2
Snapshots.due = due
torch.manual_seed(0)
sizes = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_hidden_layers": 1}
model = PretrainingModel(EncoderConfig.tiny(vocab_size=2_000, **sizes), objective)
try:
    batches = data_of(objective).batches(np.random.default_rng(1))
    loop.train(model, batches, loop.Recipe(9, 1e-2, 2), snapshots=Snapshots(Path(sys.argv[1], "snapshots"), {}))
    sums = [weight.double().sum().item() for weight in model.parameters()]
    print(f"process {PartialState().process_index}: {len(seen)} steps, {sums}")
except KeyboardInterrupt as stopped:
    print(f"process {PartialState().process_index}: {stopped}, {seen[2]}")
"""


def data_of(objective: Objective, by_length: bool = False) -> PretrainingData:
    """Twenty documents of different length."""
    rng = np.random.default_rng(0)
    ends = np.cumsum(rng.integers(3, 15, 80))
    corpus = EncodedCorpus(rng.integers(5, 2_000, ends[-1]).astype(np.uint16), ends, ends[3::4])
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    return PretrainingData(corpus, wordpiece, objective, 48, batch_size=4, by_length=by_length)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_shares_of_a_batch_are_the_batch(name):
    data = data_of(Objective.named(name))
    batch = next(data.batches(np.random.default_rng(1)))
    parts = [data.share(batch, process, 2) for process in (0, 1)]
    assert torch.equal(
        torch.cat([part["ids"] for part in parts]),
        torch.cat([batch["ids"][0::2], batch["ids"][1::2]]),
    )
    for process, part in enumerate(parts):
        back = part["masked_batch"] * 2 + process
        assert torch.equal(
            part["ids"][part["masked_batch"], part["masked_position"]],
            batch["ids"][back, part["masked_position"]],
        )
        assert part["masked_count"] * 2 == len(batch["masked_ids"])
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
    model = PretrainingModel(
        EncoderConfig.tiny(vocab_size=2_000, num_hidden_layers=1), objective
    ).eval()
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
    model = PretrainingModel(
        EncoderConfig.tiny(vocab_size=2_000, num_hidden_layers=1), objective
    ).eval()
    parts = [data.share(batch, process, 2) for process in (0, 1)]
    assert [model(part)["loss"].item() for part in parts] == [0, 0]


@pytest.mark.parametrize(
    "name, accumulate", [("span+sbo", "1"), ("mlm+nsp", "1"), ("span+sbo", "2")]
)
def test_two_processes_train_as_one_does(tmp_path, name, accumulate):
    """Also with steps of two batches, these of blocks of like length, as the larger sizes train."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "SPANBERT_TUTORIAL_STATIC": "1",
        "ACCELERATE_USE_CPU": "true",
    }
    results = []
    for processes in (1, 2):
        output = tmp_path / f"{processes}.json"
        launch = (
            []
            if processes == 1
            else ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
        )
        command = [
            sys.executable,
            *launch,
            str(script),
            name,
            str(output),
            os.path.dirname(__file__),
            accumulate,
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        results.append(json.loads(output.read_text(encoding="utf-8")))
    one, two = results
    assert one["steps"] == two["steps"] == [1, 2, 3, 4, 5, 6]
    for loss, values in one["losses"].items():
        assert two["losses"][loss] == pytest.approx(values, abs=1e-5)
    for weight, value in one["weights"].items():
        # absolute for the biases of the keys: they change nothing, so they move by rounding alone
        assert two["weights"][weight] == pytest.approx(value, rel=1e-4, abs=1e-4), weight


def test_processes_that_disagree_snapshot_and_stop_at_the_same_step_and_go_on_from_there(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(DISAGREE, encoding="utf-8")
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "SPANBERT_TUTORIAL_STATIC": "1",
        "ACCELERATE_USE_CPU": "true",
    }
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]

    def printed(folder, *mode) -> str:
        command = [
            sys.executable,
            *launch,
            str(script),
            str(folder),
            os.path.dirname(__file__),
            *mode,
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    stopped = printed(tmp_path)
    for process in (0, 1):
        assert f"process {process}: Stopped after step 5 of 9, ['step-000000002']" in stopped
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == ["step-000000005"]
    resumed = printed(tmp_path, "on")
    whole = printed(tmp_path / "whole", "on")
    assert resumed.count(": 4 steps") == whole.count(": 9 steps") == 2
    ends = [
        set(text.split("steps, ")[1].split("]")[0] for text in out.splitlines() if "steps" in text)
        for out in (resumed, whole)
    ]
    assert ends[0] == ends[1] and len(ends[0]) == 1  # bit for bit, and the same in both processes


@pytest.mark.parametrize("options, processes", [(["--cpu"], 1), (["--multi_gpu"], 2)])
def test_the_command_runs_under_accelerate_launch(tmp_path, options, processes):
    """On a CPU, too, `--multi_gpu` starts several processes."""
    text = tmp_path / "text.txt"
    text.write_text(
        "\n\n".join(f"The boat {i} left the town.\nIt was {i % 7} years old." for i in range(200))
    )
    launch = [sys.executable, "-m", "accelerate.commands.launch", *options]
    launch += ["--num_processes", str(processes), "-m"]
    run = [
        "spanbert_tutorial",
        "pretrain",
        "--corpus",
        str(text),
        "--vocab-size",
        "80",
        "--max-length",
        "24",
    ]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "SPANBERT_TUTORIAL_STATIC": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(
        [*launch, *run, "--steps", "3", "--output", str(tmp_path / "made")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and "Checkpoint after" in done.stdout, done.stderr
    assert f"on CPU, {processes} × 1 threads" in (tmp_path / "made" / "README.md").read_text(
        encoding="utf-8"
    )


def test_the_command_runs_in_two_processes(tmp_path):
    """Under torchrun the command trains as in one process, and only the first process writes and
    speaks."""
    words = np.array("river boat miller sold mended green door the old".split())
    sentences = [
        " ".join(words[row]) + "."
        for row in np.random.default_rng(0).integers(len(words), size=(600, 6))
    ]
    text = tmp_path / "text.txt"
    text.write_text(
        "\n\n".join("\n".join(sentences[i : i + 4]) for i in range(0, 600, 4)), encoding="utf-8"
    )
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "SPANBERT_TUTORIAL_STATIC": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    run = [
        "spanbert_tutorial",
        "pretrain",
        "--corpus",
        str(text),
        "--vocab-size",
        "60",
        "--max-length",
        "32",
    ]
    lines = {}
    printed = {}
    for processes in (1, 2):
        output = tmp_path / f"made{processes}"
        launch = (
            []
            if processes == 1
            else ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
        )
        command = [
            sys.executable,
            *launch,
            "-m",
            *run,
            "--batch-size",
            "8",
            "--steps",
            "12",
            "--output",
            str(output),
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        printed[processes] = done.stdout
        lines[processes] = json.loads(
            (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
        )
        assert f"on CPU, {processes} × 1 threads" in (output / "README.md").read_text(
            encoding="utf-8"
        )
    assert printed[2].count("Unigram entropy") == printed[2].count("Checkpoint after") == 1
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
        "-m",
        *run,
    ]
    done = subprocess.run(
        [*launch, "--dry-run"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stdout.count("Nothing was written") == 1, done.stderr
    assert lines[1]["step"] == lines[2]["step"] == 12
    assert lines[1]["loss"] == pytest.approx(
        lines[2]["loss"], abs=0.02
    )  # bfloat16 rounds other sums


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no SIGINT for one process")
def test_a_run_in_two_processes_is_stopped_and_goes_on(tmp_path):
    """Ctrl-C reaches the launcher, which hands it on; what goes on, with as many processes, ends
    with the same weights as a run that was left alone."""
    text = tmp_path / "text.txt"
    folder = tmp_path / "stopped.training"
    text.write_text(
        "\n\n".join(f"The boat {i} left the town.\nIt was {i % 7} years old." for i in range(200))
    )
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "SPANBERT_TUTORIAL_STATIC": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    program = tmp_path / "program.py"  # the command as it is, but with a snapshot after every step
    program.write_text(
        "import sys\nfrom spanbert_tutorial.engine import snapshots\nsnapshots.EVERY = 0\n"
        "from spanbert_tutorial.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    run = [
        str(program),
        "pretrain",
        "--corpus",
        str(text),
        "--vocab-size",
        "80",
        "--max-length",
        "24",
        "--steps",
        "200",
    ]
    two = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
        *run,
    ]

    def done(command, name, *more):
        command = [*command, "--output", str(tmp_path / name), *more]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    assert done(two, "calm").returncode == 0
    with (tmp_path / "said.txt").open("w+") as said:
        process = subprocess.Popen(
            [*two, "--output", str(tmp_path / "stopped")],
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            until = time.monotonic() + 120
            while not list(folder.glob("snapshots/step-*[0-9]")) and process.poll() is None:
                assert time.monotonic() < until
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=120)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert (
            process.returncode != 0 and not (tmp_path / "stopped").exists() and folder.exists()
        ), said.read()
    refused = done([sys.executable, *run], "stopped", "--resume")
    assert refused.returncode == 2 and "processes was 2 and is 1" in refused.stderr
    assert done(two, "stopped", "--resume").returncode == 0 and not folder.exists()
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("calm", "stopped")]
    assert weights[0] == weights[1]
