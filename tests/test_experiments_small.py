"""The experiments behind the chapters on masking and on the boundary objective, on a toy size."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from kept import kept

from research.experiments import boundary_probe
from spanbert_tutorial import almanac
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.spanbert.boundary_probe import mask_names, probe, states
from spanbert_tutorial.spanbert.names import named_blocks, with_specials


@pytest.fixture(scope="module")
def some():
    return [document for document, _ in zip(almanac.read("validation"), range(30), strict=False)]


# --- names in blocks ----------------------------------------------------------------


def test_the_tokens_of_a_name_are_those_of_its_letters(wordpiece, some):
    wanted = [d["text"][a:b] for d in some for a, b, *_ in d["entities"]]
    found = [
        ids[first : last + 1]
        for ids, names in named_blocks(some, wordpiece)
        for first, last, *_ in names
    ]
    assert [wordpiece.encode(name).tolist() for name in wanted] == [
        token_ids.tolist() for token_ids in found
    ]


def test_blocks_keep_every_token_in_order_and_fit(wordpiece, some):
    blocks = list(named_blocks(some, wordpiece))
    assert max(len(block.ids) for block in blocks) <= 62
    every = np.concatenate([wordpiece.encode(document["text"]) for document in some])
    assert (np.concatenate([block.ids for block in blocks]) == every).all()


def test_specials_stand_around_each_row(wordpiece):
    ids, real = with_specials([np.array([7, 8]), np.array([9])], wordpiece)
    cls = wordpiece.cls_id
    sep = wordpiece.sep_id
    pad = wordpiece.pad_id
    assert ids.tolist() == [[cls, 7, 8, sep], [cls, 9, sep, pad]]
    assert real.tolist() == [[True] * 4, [True] * 3 + [False]]


# --- what is measured ---------------------------------------------------------------


def test_a_probe_finds_what_is_there_and_nothing_in_shuffled_labels():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (900,), generator=generator)
    signal = torch.nn.functional.one_hot(labels, 3) + 0.1 * torch.randn(900, 3, generator=generator)
    noise = torch.randn(900, 3, generator=generator)
    assert probe(signal[:600], labels[:600], signal[600:], labels[600:]) > 0.98
    assert probe(noise[:600], labels[:600], noise[600:], labels[600:]) < 0.5


def test_the_probe_reads_the_two_neighbors_and_never_the_edge(wordpiece, some):
    blocks = list(named_blocks(some, wordpiece))
    kinds = sorted({label for d in some for *_, label, _ in d["entities"]})
    names = mask_names(blocks, wordpiece, kinds, seed=0)
    first, last = names.spans.T
    row = torch.arange(len(first))
    assert (names.input_ids[row, first] == wordpiece.mask_id).all()
    assert (names.input_ids[row, last] == wordpiece.mask_id).all()
    for place in (first - 1, last + 1):  # a neighbor is a visible token of the text
        neighbor = names.input_ids[row, place]
        assert not torch.isin(
            neighbor, torch.tensor([wordpiece.mask_id, wordpiece.cls_id, wordpiece.sep_id])
        ).any()
    assert torch.equal((last - first + 1).clamp(max=4) - 1, names.labels["length"])

    def encoder(ids, token_type_ids=None, attention_mask=None):
        return ids[..., None].float()

    outside = states(encoder, names)["boundary"]
    assert torch.equal(
        outside.long(),
        torch.stack([names.input_ids[row, first - 1], names.input_ids[row, last + 1]], 1),
    )


# --- kept results, and one row of each run again ------------------------------------


def test_an_untrained_row_comes_out_again(wordpiece):
    """The row of the probe that needs no training, with seed 1."""
    fit, test = boundary_probe.examples(wordpiece)
    untrained = runs.new_model(
        replace(boundary_probe.START, seed=1), EncodedText(None, None, wordpiece)
    ).encoder
    model = SimpleNamespace(encoder=untrained)
    found = boundary_probe.one("untrained", 1, {}, lambda *_: (model, History()), fit, test)
    for place, wanted in kept("boundary_probe", "untrained", run=1)["probe"].items():
        assert found["probe"][place] == pytest.approx(wanted, abs=0.02)
