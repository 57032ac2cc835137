"""Nothing is left behind when a card computes: the package on a card that is pretended
(`pretend_card`), so that a CPU finds what only a card would say."""

from itertools import islice

import numpy as np
import pytest
from pretend_card import on_card, pretend_card

from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.evaluation import evaluate
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES
from spanbert_tutorial.pretraining.train import TrainingConfig, train
from spanbert_tutorial.tasks import (
    classification,
    coreference,
    question_answering,
    relation_extraction,
    tagging,
)
from spanbert_tutorial.tasks.fine_tuning import FineTuning
from spanbert_tutorial.tasks.question_answering import QuestionAnsweringSettings
from spanbert_tutorial.tasks.squad import GoldAnswer, Question
from spanbert_tutorial.text.encoding import EncodedCorpus

ROWS = ["mlm+nsp", "mlm+sop", "span+sbo", "span+sbo+nsp"]


def data(wordpiece, objective):
    """Blocks of random tokens."""
    ids = np.random.default_rng(0).integers(10, len(wordpiece), 4_000)
    ends = np.arange(20, 4_001, 20)
    corpus = EncodedCorpus(ids.astype(np.uint16), ends, ends[9::10])
    return PretrainingData(corpus, wordpiece, objective, max_length=32, batch_size=4)


@pytest.fixture(scope="module")
def shipped():
    return load_checkpoint(data_path("checkpoints", "spanbert-tiny"))


@pytest.mark.parametrize("name", ROWS)
def test_a_model_trains_on_the_card_and_comes_back(name, shipped):
    source = data(shipped[1], OBJECTIVES[name])
    config = EncoderConfig.tiny(vocab_size=len(shipped[1]))
    model = PretrainingModel(config, OBJECTIVES[name])
    seen = []
    model.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(on_card(inputs[0])))
    with pretend_card():
        history = train(model, source.batches(np.random.default_rng(0)), TrainingConfig(2, 1e-3, 1))
        assert seen == [True, True] and len(history.losses["loss"]) == 2
        assert not any(map(on_card, model.parameters()))
        model.to("cuda")
        found = evaluate(model, source, np.random.default_rng(0), most=2)
    assert all(np.isfinite(value) for value in found.values())


SETTINGS = {"epochs": 1, "batch_size": 4, "peak_learning_rate": 1e-3, "max_length": 64}


def sentences_sorted(encoder, wordpiece):
    examples = [((f"It was {word}.", None), word) for word in ("red", "blue")] * 2
    model, _ = classification.fine_tune(encoder, wordpiece, examples, FineTuning(**SETTINGS))
    return model, lambda model: model.predict(examples)


def names_joined(encoder, wordpiece):
    some = [
        coreference.plain(one["text"], one["id"], one["clusters"])
        for one in islice(almanac.coreference("train"), 4)
    ]
    model, _ = coreference.fine_tune(encoder, wordpiece, some, FineTuning(**SETTINGS))
    return model, lambda model: model.predict(some)


def relations_found(encoder, wordpiece):
    some = almanac.relations("train")[:40]
    model, _ = relation_extraction.fine_tune(encoder, wordpiece, some, FineTuning(**SETTINGS))
    return model, lambda model: model.predict(some[:8])


def names_tagged(encoder, wordpiece):
    some = [("Ada Brook was born in Leeds.", [(0, 9, "PERSON"), (22, 27, "TOWN")])] * 4
    model, _ = tagging.fine_tune(encoder, wordpiece, some, FineTuning(**SETTINGS))
    return model, lambda model: [tags for _, tags, _ in model.scored([text for text, _ in some])]


def questions_answered(encoder, wordpiece):
    context = "Ada Brook was born in Leeds."
    some = [
        Question(str(n), "Where was she born?", context, "", (GoldAnswer("Leeds", 22),))
        for n in range(4)
    ]
    settings = QuestionAnsweringSettings(epochs=1, batch_size=4, max_length=64, doc_stride=32)
    model, _ = question_answering.fine_tune(encoder, wordpiece, some, settings)
    return model, lambda model: model.answer(some[0].question, context).text


@pytest.mark.parametrize(
    "task", [sentences_sorted, names_joined, relations_found, names_tagged, questions_answered]
)
def test_a_task_is_learned_done_and_opened_again_on_the_card(task, tmp_path):
    model, wordpiece = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))
    with pretend_card():
        learned, predict = task(model.encoder, wordpiece)
        assert not any(map(on_card, learned.model.parameters()))
        at_home = predict(learned)
        learned.save(tmp_path / "model", {"README.md": "A model.\n"})
        learned.model.to("cuda")
        assert predict(learned) == at_home
        again = type(learned).from_pretrained(tmp_path / "model")
        assert all(map(on_card, again.model.parameters()))
        assert len(predict(again)) == len(at_home)
