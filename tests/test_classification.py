"""One label for a sentence or a pair: parity with transformers, cutting, and learning what it is
shown."""

import numpy as np
import pytest
import torch
from parity import sizes
from transformers import BertConfig, BertForSequenceClassification

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.weights import from_huggingface_names
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.tasks.classification import ClassificationData, ClassificationModel, Framed
from spanbert_tutorial.tasks.fine_tuning import FineTuning, stacked
from spanbert_tutorial.tasks.sentence_tasks import fine_tune

PAIR = ("The Swan Club was founded in Upton.", "It was founded in 1873.")


def test_scores_are_those_of_transformers(wordpiece):
    torch.manual_seed(0)
    small = sizes(32, 64)
    theirs = BertForSequenceClassification(
        BertConfig(vocab_size=2_000, **small, num_labels=3, initializer_range=0.3)
    )
    ours = ClassificationModel(BertEncoder(EncoderConfig(vocab_size=2_000, **small)), 3)
    encoder, others = from_huggingface_names(theirs.state_dict())
    ours.encoder.load_state_dict(encoder)
    for name, layer in (("bert.pooler.dense", ours.pooler), ("classifier", ours.classifier)):
        layer.load_state_dict({part: others[f"{name}.{part}"] for part in ("weight", "bias")})
    batch = stacked(
        [Framed.of(one, wordpiece, 64) for one in (PAIR, (PAIR[0], None))], wordpiece.pad_id
    )
    label = torch.tensor([2, 0])
    with torch.no_grad():
        wanted = theirs.eval()(
            batch["input_ids"], batch["attention_mask"], batch["token_type_ids"], labels=label
        )
        assert torch.allclose(ours.eval().scores(batch), wanted.logits, atol=1e-5)
        assert ours(batch | {"label": label})["loss"].item() == pytest.approx(
            wanted.loss.item(), abs=1e-5
        )


@pytest.mark.parametrize("length", [5, 6, 9, 12, 100])
def test_the_longer_sentence_is_cut_at_its_end(wordpiece, length):
    framed = Framed.of(PAIR, wordpiece, length)
    first, second = (wordpiece.encode(text) for text in PAIR)
    kept = [int((framed.segments == segment).sum()) for segment in (0, 1)]
    kept[0], kept[1] = kept[0] - 2, kept[1] - 1
    assert framed.ids[1 : 1 + kept[0]].tolist() == first[: kept[0]].tolist()
    assert framed.ids[2 + kept[0] : -1].tolist() == second[: kept[1]].tolist()
    assert len(framed.ids) == min(length, len(first) + len(second) + 3)
    if length < 12:
        assert 0 <= kept[0] - kept[1] <= 1 and min(kept) >= 1


@pytest.mark.parametrize("pairs", [False, True])
def test_fine_tuning_learns_what_it_is_shown(wordpiece, pairs):
    towns = ["Upton", "Barton", "Denholm", "Foxley"]
    if pairs:  # about the same town or not: no single sentence says it
        said = [
            ((f"The club is in {a}.", f"We went to {b}."), "same" if a == b else "other")
            for a in towns
            for b in [*towns, a, a]
        ]
    else:
        said = [
            ((f"The club is in {a}.", None), "north" if a in towns[:2] else "south") for a in towns
        ]
    encoder = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))[0].encoder
    settings = FineTuning(
        epochs=80 if pairs else 300,
        batch_size=8,
        peak_learning_rate=1e-3,
        max_length=20,
        dropout=0.0,
    )
    classifier, history = fine_tune(encoder, wordpiece, said, settings)
    assert {
        part.p for part in classifier.model.modules() if isinstance(part, torch.nn.Dropout)
    } == {0.0}
    assert history.losses["loss"][-1] < 0.3
    assert classifier.predict(said) == [label for _, label in said]


def test_batches_carry_the_labels_that_occur(wordpiece):
    data = ClassificationData(
        [(PAIR, "yes"), ((PAIR[0], None), "no")], wordpiece, FineTuning(max_length=64)
    )
    batch = data.batch(np.array([1, 0]), np.random.default_rng(0))
    assert data.labels == ["no", "yes"] and batch["label"].tolist() == [0, 1]
    assert batch["attention_mask"].sum(1).tolist() == data.lengths()[[1, 0]].tolist()
