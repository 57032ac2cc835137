"""A step of the loop on a graphics card waits for nothing.

Without a card its steps run on the CPU while every call is counted that would wait for one.
"""

from collections import Counter
from contextlib import contextmanager

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from toys import batches_of, model_of

from spanbert_tutorial.bert import pretrained
from spanbert_tutorial.engine import device
from spanbert_tutorial.pretraining.objectives import MIXTURES, OBJECTIVES
from spanbert_tutorial.pretraining.train import TrainingConfig, train

CARD = torch.cuda.is_available()
# calls that look at the values of a tensor, by the names of PyTorch's operators …
OPERATORS = {*"_local_scalar_dense nonzero nonzero_numpy masked_select equal is_nonzero".split()}
OPERATORS |= {"_unique2", "unique_consecutive", "unique_dim", "repeat_interleave"}
# … and by those of the methods in Python
METHODS = {*"item tolist numpy cpu nonzero __bool__ __int__ __float__ __index__".split()}
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


class Between:
    """Batches; from the first of a reading to the last before the next, waiting calls are
    counted, so that only the reading itself is left out."""

    def __init__(self, batches, config):
        self.batches, self.config = batches, config
        self.taken, self.counts, self.counting = 0, [], None

    def __iter__(self):
        return self

    def __next__(self):
        if self.counting is not None:
            self.counting.__exit__(None, None, None)
            self.counting = None
        batch = next(self.batches)
        self.taken += 1
        first = (self.taken - 1) % (self.config.log_every * self.config.accumulate)
        if first < (self.config.log_every - 1) * self.config.accumulate:
            self.counting = counted()
            self.counts.append(self.counting.__enter__())
        return batch


@pytest.mark.parametrize(
    "name, accumulate", [(name, 1) for name in (*OBJECTIVES, *MIXTURES)] + [("mix", 2)]
)
def test_no_step_waits(name, accumulate, monkeypatch, request):
    """Counted from each batch to the next, but for the steps that end with a reading."""
    if not CARD:
        request.getfixturevalue("on_the_processor")
    if device.precision() == "fp16":
        pytest.skip("in fp16 the scaler waits, once a step")
    monkeypatch.setattr(pretrained, "may_look", lambda tensor: False)  # at ids, on a CPU
    config = TrainingConfig(12, 1e-3, 2, accumulate=accumulate, log_every=6)
    batches = Between(batches_of(name), config)
    history = train(model_of(name, dropout=0.1), batches, config)
    assert batches.counts == [Counter()] * 10 * accumulate
    assert history.steps == list(range(1, 13))
