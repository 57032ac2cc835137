"""A learning curve over few questions: released models from the hub, or stand-ins without a
network. Chapter: `book/tasks/released_spanbert`.

The recipe follows public runs with few questions: at least 200 steps, at least 10 epochs.
"""

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.weights import hub_trouble, to_huggingface_names
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path, write_json
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.old_notes import write_old_files
from spanbert_tutorial.tasks.question_answering import (
    PRESETS,
    QuestionAnswerer,
    QuestionAnsweringData,
    QuestionAnsweringSettings,
    fine_tune,
)
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.text.sentences import placed_sentences

SWITCH = "SPANBERT_TUTORIAL_HUB"  # environment variable: 1 asks for the hub, 0 for the stand-ins
PATIENCE = 5.0  # seconds until the hub has to answer


@dataclass(frozen=True)
class Plan:
    """Which models answer which questions, and how much of each; by default those of the hub.

    models: those to compare, name in figures → folder or hub name. answerer: one that is fine-tuned
    on SQuAD. misnamed: only its config is read. train, test: for `squad.read`. sizes: numbers of
    training questions. scored: of test questions. min_steps: of a run, however few its questions.
    one_sentence: cut each context to the sentence of its answer.
    """

    models: Mapping[str, str | Path] = field(
        default_factory=lambda: {
            "BERT": "google-bert/bert-base-cased",
            "SpanBERT": "SpanBERT/spanbert-base-cased",
        }
    )
    answerer: str | Path = "mrm8488/spanbert-finetuned-squadv1"
    misnamed: str | Path = "mrm8488/spanbert-base-finetuned-squadv2"
    train: str | Path = "rajpurkar/squad:train"
    test: str | Path = "rajpurkar/squad:validation"
    sizes: tuple[int, ...] = (32, 128, 512)
    seeds: tuple[int, ...] = (0, 1)
    scored: int = 1_000
    min_steps: int = 200
    one_sentence: bool = False
    settings: QuestionAnsweringSettings = QuestionAnsweringSettings(
        epochs=10, batch_size=12, peak_learning_rate=3e-5, max_length=384
    )


HUB = Plan()


def stand_ins(folder: Path) -> Plan:
    """A plan without a network: the book's small models play the released ones, the almanac's
    questions play SQuAD. `folder`, which must be empty, gets a copy of `spanbert-mini` in the hub's
    files of SpanBERT, and a config with a misleading name."""
    checkpoints = data_path("checkpoints")
    mini = checkpoints / "spanbert-mini"
    spanbert = folder / "in-disguise" / "spanbert-base-cased"
    write_as_released(spanbert, BertEncoder.read(mini)[0], read_vocabulary(mini))
    misnamed = folder / "spanbert-base-finetuned-squadv2"
    misnamed.mkdir()
    write_json(misnamed / "config.json", asdict(EncoderConfig.preset("large")))
    return Plan(
        {"BERT": checkpoints / "bert-mini", "SpanBERT": spanbert},
        checkpoints / "bert-mini-squad",
        misnamed,
        train=data_path("almanac", "questions-train.json.xz"),
        test=data_path("almanac", "questions-test.json.xz"),
        sizes=(16, 64, 256),
        seeds=(0,),
        scored=150,
        min_steps=24,
        one_sentence=True,
        settings=replace(PRESETS["small"], epochs=2, peak_learning_rate=5e-4, max_length=96),
    )


def write_as_released(folder: Path, encoder: BertEncoder, wordpiece: WordPiece) -> None:
    """Writes an encoder in the three files that the hub has of SpanBERT: `config.json`, float16
    weights without any head, `vocab.txt`. Nothing says whether it is cased."""
    weights = to_huggingface_names(encoder.state_dict(), prefix="bert.")
    half = {name: weight.half() for name, weight in weights.items()}
    write_old_files(folder, asdict(encoder.config), half, wordpiece.vocabulary)


def choose_plan(folder: Path, use_hub: bool | None = None) -> tuple[Plan, str]:
    """The plan, and one line that says which and why. The hub is used where it is wanted and
    answers within seconds; without `use_hub`, SPANBERT_TUTORIAL_HUB decides (1 or 0), and without
    that, whether there is a GPU. folder: for the stand-ins, empty."""
    if why := why_not_the_hub(use_hub):
        play = "small models of this book play SpanBERT and BERT, and the almanac's questions SQuAD"
        return stand_ins(folder), f"{why} So {play}."
    return HUB, "From the hub: the released SpanBERT and BERT, and the questions of SQuAD."


def why_not_the_hub(use_hub: bool | None) -> str:
    """Why the hub is not used, in a sentence; "" where it is wanted and answers."""
    wish = os.environ.get(SWITCH, "")
    mend = "set it to 1 for the hub or to 0 for the stand-ins"
    require(wish in ("", "0", "1"), f"{SWITCH} is {wish}: {mend}.")
    if use_hub is None and wish:
        use_hub = wish == "1"
    if use_hub is False:
        return "The hub is switched off."
    if use_hub is None and not torch.cuda.is_available():
        return "No GPU here."
    from huggingface_hub import HfApi

    try:  # without an account
        HfApi(token=False).model_info(str(HUB.models["SpanBERT"]), timeout=PATIENCE)
    except Exception as error:  # the client raises many kinds
        return f"No models from the hub {hub_trouble(error)}."
    return ""


# --- the learning curve -------------------------------------------------------------


def questions_of(plan: Plan) -> tuple[list[Question], list[Question]]:
    """All training questions with an answer, and the test questions to score, a random part."""
    train, test = (
        [q for q in squad.read(source) if q.answers] for source in (plan.train, plan.test)
    )
    test = nested_samples(test, (plan.scored,), seed=0)[plan.scored]
    if plan.one_sentence:
        train, test = ([only_its_sentence(question) for question in part] for part in (train, test))
    return train, test


def only_its_sentence(question: Question) -> Question:
    """The question with only the sentence of its first answer, as an oracle finds it; several
    sentences, where the answer crosses an end. Answers elsewhere are left out."""
    context, answer = question.context, question.answers[0]
    places = [(at, at + len(sentence)) for at, sentence in placed_sentences(context)]
    begin = max((at for at, _ in places if at <= answer.start), default=0)
    ends = (end for _, end in places if end >= answer.start + len(answer.text))
    end = min(ends, default=len(context))
    answers = tuple(
        replace(one, start=one.start - begin)
        for one in question.answers
        if begin <= one.start <= end - len(one.text)
    )
    return replace(question, context=context[begin:end], answers=answers)


def nested_samples(
    questions: Sequence[Question], sizes: Sequence[int], seed: int
) -> dict[int, list[Question]]:
    """A sample of each size; a smaller one begins a larger one.

    Raises InputError when there are fewer questions than the largest asks for."""
    wrong = f"{max(sizes):,} of {len(questions):,} questions"
    require(max(sizes) <= len(questions), f"{wrong}: give fewer.")
    order = np.random.default_rng(seed).permutation(len(questions))
    return {n: [questions[i] for i in order[:n]] for n in sizes}


class Point(NamedTuple):
    """A point of the curve: F1 and EM in percent, the ids of the questions it learned from."""

    model: str
    questions: int
    seed: int
    f1: float
    exact: float
    ids: tuple[str, ...]


def learning_curve(plan: Plan, train: Sequence[Question], test: Sequence[Question]) -> list[Point]:
    """Fine-tunes each model of a plan on samples of `train`, the same ones for all models, for at
    least `min_steps` steps, and scores it on `test`."""
    starts = {}
    for name, source in plan.models.items():
        starts[name] = BertEncoder.read(source)[0], read_vocabulary(source)
    steps = plan.min_steps * plan.settings.batch_size * plan.settings.max_length  # in tokens
    runs = []
    for seed in plan.seeds:
        for size, few in nested_samples(train, plan.sizes, seed).items():
            for name, (encoder, wordpiece) in starts.items():
                data = QuestionAnsweringData(few, wordpiece, plan.settings)
                epochs = max(plan.settings.epochs, steps / int(data.lengths().sum()))
                settings = replace(plan.settings, epochs=epochs, seed=seed)
                answerer, _ = fine_tune(deepcopy(encoder), wordpiece, data, settings)
                found = score(answerer, test)
                ids = tuple(question.id for question in few)
                runs.append(Point(name, size, seed, found["f1"], found["exact"], ids))
    return runs


def score(answerer: QuestionAnswerer, questions: Sequence[Question]) -> dict[str, float]:
    """Exact match and F1 of a model that has to answer; on a GPU in half precision."""
    card = torch.cuda.is_available()
    answerer.model.to("cuda" if card else "cpu")
    with torch.autocast("cuda", torch.float16, enabled=card):
        texts, _ = answerer.predict(questions)
    answerer.model.to("cpu")
    return squad.score(texts, questions)
