"""The benchmark of a graphics card, rehearsed on the CPU: padding changes no loss, rows are written
one by one, and a goal counts as reached only where it was measured."""

import json
from itertools import islice

import numpy as np
import pytest
import torch

from benchmarks import card

SHAPE = card.TOY["tiny"]


def test_a_rehearsal_writes_every_way_and_no_goal(tmp_path):
    output = tmp_path / "speed.json"
    card.main([str(output), "--toy"])
    found = json.loads(output.read_text(encoding="utf-8"))
    ways = [row["way"] for row in found["rows"]]
    on_card = ["graph"] if torch.cuda.is_available() else []
    both = ["plain", "compiled", *on_card, "transformers", "with SBO", "package, ready", "package"]
    assert ways == both and not any("failed" in row for row in found["rows"])
    for row in found["rows"]:
        assert 0 < row["mfu"] < 2 and row["tokens_a_second"] > 0 and row["milliseconds"] > 0
    drawing = found["drawing"]["tiny"]
    assert drawing["tokens_drawn_a_second"] > 0 and 0 < drawing["share_of_the_time"] < 1
    assert set(found["goals"].values()) == {None}
    assert [path.name for path in tmp_path.iterdir()] == ["speed.json"]


def ready():
    return list(islice(card.fixed(card.data_of(SHAPE, "mlm")), card.READY))


def test_all_ways_get_batches_of_one_shape():
    """As a graph needs them; and with the masked tokens of the plain ones."""
    batches = ready()
    shapes = [{name: value.shape for name, value in one.items()} for one in batches]
    assert all(one == shapes[0] for one in shapes) and shapes[0]["input_ids"] == (2, 32)
    plain = card.data_of(SHAPE, "mlm").batches(np.random.default_rng(0))
    for fixed, one in zip(batches, plain, strict=False):
        assert torch.equal(
            fixed["labels"][fixed["labels"] != -100][: len(one["masked_positions"])],
            one["labels"][one["labels"] != -100],
        )


def test_labels_hold_the_masked_tokens_and_nothing_else():
    batch = ready()[0]
    assert (batch["labels"] != -100).sum() == batch["masked_count"]


def test_a_way_that_fails_leaves_its_error_and_the_others(tmp_path):
    report = card.Report(tmp_path / "speed.json", rate=1e12)

    def too_large():
        raise RuntimeError("out of memory\nand a long trace")

    report.add("tiny", "graph", SHAPE, too_large)
    report.add("tiny", "plain", SHAPE, lambda: (0.5, 60.0))
    failed, worked = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))["rows"]
    assert failed["failed"] == "RuntimeError: out of memory" and "mfu" not in failed
    assert worked["tokens_a_second"] == 120 and worked["milliseconds"] == 500


def row(size, way, rate, mfu=0.1):
    return {"size": size, "way": way, "tokens_a_second": rate, "mfu": mfu}


def loops(drawn):
    ways = {"package, ready": 100, "package": drawn}
    return [row(size, way, rate) for size in card.SIZES for way, rate in ways.items()]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([], [None, None, None]),
        ([row("base", "graph", 1, 0.51), row("base", "plain", 1, 0.3)], [True, None, None]),
        ([row("base", "transformers", 1, 0.9), row("base", "plain", 1, 0.3)], [False, None, None]),
        ([row("mini", "plain", 3.1e6)], [None, True, None]),
        (
            [row("mini", "plain", 2.9e6), row("mini", "graph", 0) | {"failed": ""}],
            [None, False, None],
        ),
        (loops(drawn=96), [False, False, True]),
        (loops(drawn=90), [False, False, False]),
    ],
)
def test_goals(rows, wanted):
    assert list(card.goals(rows).values()) == wanted


def test_a_card_is_known_by_its_name():
    assert card.peak("NVIDIA A100-SXM4-40GB") == 312e12 and card.peak("a card of tomorrow") is None
