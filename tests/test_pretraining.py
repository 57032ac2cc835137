"""The objectives put together: what a batch holds, what the losses are, what the heads fill in."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.baselines import unigram_baselines
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.evaluation import evaluate
from spanbert_tutorial.pretraining.model import PretrainingModel, fill_masks
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
from spanbert_tutorial.spanbert.boundary_task import Boundary
from spanbert_tutorial.text.encoding import EncodedCorpus

WORDS = [f"word{i}" for i in range(30)] + [f"##token{i}" for i in range(10)]
WORDPIECE = WordPiece({token: i for i, token in enumerate(SPECIALS + WORDS)})
V = len(WORDPIECE)
SIZES = {"vocab_size": V, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    """40 documents of 8 sentences of 10 tokens."""
    ids = np.random.default_rng(0).integers(5, V, 40 * 8 * 10).astype(np.uint16)
    ids[::10] = 5  # a sentence begins with a word start
    sentence_ends = np.arange(10, len(ids) + 1, 10)
    return EncodedCorpus(ids, sentence_ends, sentence_ends[7::8])


def data(corpus, name, **changes) -> PretrainingData:
    return PretrainingData(
        corpus, WORDPIECE, Objective.named(name), **{"max_length": 40, "batch_size": 8, **changes}
    )


def measured(corpus, name, **changes) -> PretrainingData:
    """With every chosen token replaced by [MASK]."""
    made = data(corpus, name, **changes)
    return replace(made, objective=made.objective.mask_only)


def model(name, seed=0) -> PretrainingModel:
    torch.manual_seed(seed)
    return PretrainingModel(EncoderConfig.tiny(**SIZES), Objective.named(name)).eval()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_batch_restores_to_the_corpus(corpus, name):
    """Putting the originals back at the chosen places gives [CLS] text [SEP] exactly; specials are
    never chosen."""
    made = data(corpus, name)
    batch = made.batch(np.arange(8), np.random.default_rng(1))
    restored = batch["input_ids"].clone()
    restored[batch["labels"] != -100] = batch["labels"][batch["labels"] != -100]
    for row in range(8):
        expected = [WORDPIECE.cls_id]
        for segment in made.segments:
            start, end = segment[row]
            expected += [*corpus.ids[start:end].tolist(), WORDPIECE.sep_id]
        real = batch["attention_mask"][row]
        assert restored[row][real].tolist() == expected
        assert (restored[row][~real] == WORDPIECE.pad_id).all()
    assert (batch["labels"][batch["labels"] != -100] >= 5).all()


def test_pairs_carry_segments_and_labels(corpus):
    batch = data(corpus, "mlm+nsp").batch(np.arange(8), np.random.default_rng(0))
    for ids, segments, real in zip(
        batch["input_ids"], batch["token_type_ids"], batch["attention_mask"], strict=True
    ):
        middle = (ids == WORDPIECE.sep_id).nonzero()[0, 0]
        assert segments[: middle + 1].sum() == 0
        assert segments[middle + 1 :][real[middle + 1 :]].all()
    assert set(batch["next_sentence"].tolist()) <= {0, 1}


@pytest.mark.parametrize("name", ["span+sbo", "span+sbo+nsp"])
def test_boundary_rows_point_at_unmasked_neighbors(corpus, name):
    """Of both segments, where there are two."""
    made = data(corpus, name)
    batch = made.batch(np.arange(8), np.random.default_rng(0))
    masked = batch["labels"] != -100
    assert len(batch["boundary_batch"]) > 5
    for row in zip(*Boundary().rows(batch), strict=True):
        block, left, right, offset, label = map(int, row)
        assert not masked[block, left] and not masked[block, right]
        assert masked[block, left + 1 : right].all()
        assert left >= 1 and batch["input_ids"][block, left] != WORDPIECE.sep_id
        assert batch["input_ids"][block, right] != WORDPIECE.sep_id
        assert label == batch["labels"][block, left + 1 + offset]
    second = batch["token_type_ids"][batch["boundary_batch"], batch["boundary_left"]]
    assert second.any() == (name == "span+sbo+nsp")


def test_masks_are_drawn_anew_each_epoch(corpus):
    made = data(corpus, "span", batch_size=10_000)
    rng = np.random.default_rng(0)
    first = next(made.epoch(rng))
    second = next(made.epoch(rng))
    assert (
        first["labels"][first["labels"] != -100].tolist()
        != second["labels"][second["labels"] != -100].tolist()
    )


def test_the_loss_is_the_sum_over_masked_tokens(corpus):
    """Paper: −log P by MLM plus −log P by SBO, divided by the number of masked tokens; here
    computed token by token. What is shown of SBO is the mean over its own targets."""
    batch = data(corpus, "span+sbo").batch(np.arange(8), np.random.default_rng(0))
    net = model("span+sbo")
    losses = net(batch)
    hidden = net.encoder(
        batch["input_ids"],
        token_type_ids=batch["token_type_ids"],
        attention_mask=batch["attention_mask"],
    )
    every = net.masked_language_model(hidden).log_softmax(-1)
    places = (batch["labels"] != -100).nonzero().tolist()
    mlm = -sum(every[b, i, batch["labels"][b, i]] for b, i in places) / len(places)
    assert torch.allclose(losses["mlm"], mlm, atol=1e-5)
    sbo = 0.0
    count = 0
    head = net.boundary
    for block, left, right, j, token in zip(*Boundary().rows(batch), strict=True):
        together = torch.cat([hidden[block, left], hidden[block, right], head.positions.weight[j]])
        y = head.norm2(F.gelu(head.linear2(head.norm1(F.gelu(head.linear1(together))))))
        sbo -= (net.encoder.embeddings.word_embeddings.weight @ y + head.bias).log_softmax(-1)[
            token
        ]
        count += 1
    assert 0 < count < len(batch["masked_positions"])  # spans at a block's edge have no targets
    assert torch.allclose(losses["sbo"], sbo / count, atol=1e-5)
    assert torch.allclose(
        losses["loss"], losses["mlm"] + sbo / len(batch["masked_positions"]), atol=1e-5
    )


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_parameter_learns(corpus, name):
    batch = data(corpus, name).batch(np.arange(8), np.random.default_rng(0))
    net = model(name)
    net(batch)["loss"].backward()
    silent = [n for n, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum()]
    # the key bias cancels in the softmax, so its gradient is zero up to rounding: not an error
    assert [n for n in silent if "key.bias" not in n] == []


def test_parts_that_an_objective_lacks_are_not_built():
    heads = {
        name: {child for child, _ in model(name).named_children()}
        for name in OBJECTIVES
        if name != "span+placebo"  # that is of research
    }
    assert (
        heads["mlm"]
        == heads["mlm-wholeword"]
        == heads["span"]
        == heads["span-subword"]
        == {"encoder", "masked_language_model"}
    )
    second = {name: found - heads["mlm"] for name, found in heads.items() if found > heads["mlm"]}
    assert second == {
        "mlm+nsp": {"next_sentence"},
        "mlm+sop": {"sentence_order"},
        "span+nsp": {"next_sentence"},
        "span+sbo": {"boundary"},
        "span+sbo+nsp": {"boundary", "next_sentence"},
    }


def test_fill_reports_each_span_once_and_no_boundary_at_the_edge():
    net = model("span+sbo")
    at_edge, inside = fill_masks(net, WORDPIECE, "[MASK] word1 [MASK] [MASK] word2")
    assert (at_edge.first, at_edge.last, at_edge.predictions["sbo"]) == (0, 0, [])
    mlm = inside.predictions["mlm"]
    sbo = inside.predictions["sbo"]
    assert (inside.first, inside.last) == (2, 3) and len(mlm) == len(sbo) == 2
    assert all(0 <= p <= 1 for row in mlm + sbo for _, p in row)
    with pytest.raises(InputError, match="no \\[MASK\\]"):
        fill_masks(net, WORDPIECE, "word1 word2")


def test_measure_equals_one_big_batch(corpus):
    """Means are weighted by masked tokens, so the batch size does not matter."""
    net = model("span+sbo")
    small = evaluate(net, measured(corpus, "span+sbo", batch_size=200), np.random.default_rng(3))
    again = evaluate(net, measured(corpus, "span+sbo", batch_size=200), np.random.default_rng(3))
    assert small == again and set(small) == {"loss", "mlm", "sbo", "accuracy"}
    assert abs(small["mlm"] - np.log(V)) < 0.5


def test_means_are_taken_over_what_they_are_means_of(corpus):
    """MLM over masked tokens, SBO over its targets: each batch counts with its own number of
    them."""
    net = model("span+sbo")
    held_out = measured(corpus, "span+sbo", batch_size=7)
    tables = unigram_baselines(held_out)
    found = evaluate(net, held_out, np.random.default_rng(3), tables=tables)
    mlm = []
    sbo = []
    frequency = []
    position = []
    with torch.no_grad():
        for batch in held_out.epoch(np.random.default_rng(3)):
            hidden = net.encoder(
                batch["input_ids"],
                token_type_ids=batch["token_type_ids"],
                attention_mask=batch["attention_mask"],
            )
            rows = Boundary().rows(batch)
            logits = net.boundary(hidden, rows)
            sbo += F.cross_entropy(logits, rows.labels, reduction="none").tolist()
            every = net.masked_language_model(hidden).log_softmax(-1)
            masked = batch["labels"] != -100
            labels = batch["labels"][masked]
            mlm += (-every[masked][torch.arange(len(labels)), labels]).tolist()
            frequency += (-tables.frequency[labels]).tolist()
            position += (-tables.by_position[masked.nonzero()[:, 1], labels]).tolist()
    wanted = {"mlm": mlm, "sbo": sbo, "frequency": frequency, "by_position": position}
    for name, values in wanted.items():
        assert found[name] == pytest.approx(np.mean(values), abs=1e-5), name
