"""Batches drawn ahead by workers are those drawn in the process itself, and a run on them is the same
run."""

import itertools
import os
import signal
import time
from contextlib import ExitStack, closing
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_distributed import data_of
from test_snapshots import data, equal, on_the_processor, part  # noqa: F401

from spanbert_tutorial.engine import ahead, loop
from spanbert_tutorial.engine.ahead import Ahead, drawn_ahead
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import MixedData
from spanbert_tutorial.pretraining.objectives import Mixture

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows draws in the process itself")
CARD = torch.device("cuda")  # a name only: the batches stay on the CPU
THREE = Mixture({"mlm+nsp": 1, "span+sbo": 2, "mlm-wholeword": 1})


def in_turn(seed: int = 1):
    """Batches of three objectives in turn."""
    parts = {name: data_of(row, by_length=True) for name, row in THREE.parts.items()}
    return MixedData(parts, THREE.shares).batches(np.random.default_rng(seed))


def drawn_by(workers: int, stack: ExitStack, seed: int = 1):
    """The same, drawn by so many workers."""
    if workers == 1:
        return stack.enter_context(closing(Ahead(in_turn(seed))))
    return stack.enter_context(drawn_ahead(in_turn(seed), CARD if workers else torch.device("cpu")))


def taken(batches, count: int) -> list[tuple]:
    """Batches, each with its place and the state after it."""
    return [
        (batch, batches.place, batches.state_dict()) for batch in itertools.islice(batches, count)
    ]


def same(one: list[tuple], other: list[tuple]) -> bool:
    return len(one) == len(other) and all(
        a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a) and rest == more
        for (a, *rest), (b, *more) in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_the_batches_do_not_depend_on_the_number_of_workers(workers):
    """Two epochs of batches, places and states."""
    with ExitStack() as stack:
        assert same(taken(drawn_by(workers, stack), 60), taken(drawn_by(0, stack), 60))


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_they_go_on_where_they_were_taken_with_another_number_of_workers(workers, before):
    with ExitStack() as stack:
        first, second = drawn_by(before, stack), drawn_by(workers, stack, seed=2)
        taken(first, 13)
        taken(second, 5)
        second.load_state_dict(first.state_dict())
        assert same(taken(first, 20), taken(second, 20))


def test_what_was_drawn_ahead_and_not_taken_is_drawn_again_afterwards():
    batches = data_of(THREE.parts["span+sbo"]).batches(np.random.default_rng(1))
    whole = taken(data_of(THREE.parts["span+sbo"]).batches(np.random.default_rng(1)), 30)
    with drawn_ahead(batches, CARD) as source:
        first = taken(source, 7)
    assert same(first + taken(batches, 23), whole)
    turns = in_turn()
    with drawn_ahead(turns, CARD) as source:
        assert {type(one) for one in source.parts.values()} == {Ahead}
        first = taken(source, 7)
    assert Ahead not in {type(one) for one in turns.parts.values()}
    assert same(first + taken(turns, 13), taken(in_turn(), 20))


@pytest.mark.parametrize("stop", [3, 5])
def test_a_run_on_them_is_the_same_bit_for_bit_also_after_a_stop(
    data,  # noqa: F811
    tmp_path,
    monkeypatch,
    stop,
):
    whole, history = part(data, None)
    right = ahead.drawn_ahead
    monkeypatch.setattr(loop, "drawn_ahead", lambda batches, device: right(batches, CARD))
    assert equal(part(data, None)[0], whole)
    with pytest.raises(ConnectionError):
        part(data, tmp_path, stop_after=stop)
    resumed, continued = part(data, tmp_path)
    assert equal(whole, resumed) and history == continued


def test_an_error_of_the_drawing_is_raised_as_it_was():
    class Bad:
        def __iter__(self):
            yield {"x": torch.ones(1)}
            raise InputError("the text ends in the middle of a word.")

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    with drawn_ahead(Bad(), CARD) as source:
        assert next(source)["x"] == 1
        with pytest.raises(InputError) as told:
            next(source)
    assert str(told.value) == "the text ends in the middle of a word."


def worker_of(source: Ahead) -> int:
    (worker,) = source.drawn._workers
    return worker.pid


def test_a_worker_ignores_control_c_and_ends_with_the_training():
    with drawn_ahead(
        data_of(THREE.parts["mlm+nsp"]).batches(np.random.default_rng(1)), CARD
    ) as one:
        next(one)
        worker = worker_of(one)
        os.kill(worker, signal.SIGINT)
        taken(one, 20)
        assert worker_of(one) == worker
    end = time.monotonic() + 10
    while alive(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(worker)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_drawing_ahead_leaves_the_random_numbers_of_the_dropout_alone():
    before = torch.get_rng_state()
    with drawn_ahead(in_turn(), CARD) as source:
        next(source)
    assert torch.equal(torch.get_rng_state(), before)


def test_on_a_cpu_and_without_a_place_to_go_on_from_they_are_drawn_here(monkeypatch):
    batches = in_turn()
    with drawn_ahead(batches, torch.device("cpu")) as source:
        assert source is batches
    plain = iter([{"x": torch.ones(1)}])
    with drawn_ahead(plain, CARD) as source:
        assert source is plain
    without = SimpleNamespace(get_all_start_methods=lambda: ["spawn"])
    monkeypatch.setattr(ahead, "multiprocessing", without)
    with drawn_ahead(batches, CARD) as source:
        assert source is batches
