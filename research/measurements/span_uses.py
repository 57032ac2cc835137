"""What an encoder is good for after a short fine-tuning on the almanac: questions, tags,
coreference, relations. Chapter: `book/evidence/spans_and_boundaries`.

Every task starts from a copy of the same encoder, with a new head. Questions have an answer, and
one is forced: so no threshold decides. A seed is an order of the batches, new weights of the head
and, for tags, a choice of names that no label shows.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from research.experiments import almanac_coreference, tagging_names
from research.measurements import span_tasks_coreference
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import (
    coreference,
    question_answering,
    relation_extraction,
    squad,
    tagging,
)
from spanbert_tutorial.tasks.conll import Document
from spanbert_tutorial.tasks.fine_tuning import FineTuning
from spanbert_tutorial.tasks.question_answering import QuestionAnsweringSettings
from spanbert_tutorial.tasks.relation_files import Example
from spanbert_tutorial.tasks.squad import Question

ONE = QuestionAnsweringSettings(
    epochs=3,
    batch_size=16,
    peak_learning_rate=2e-3,
    max_length=128,
    doc_stride=64,
    dropout=0.0,
    answers_only=True,
)
QUESTIONS = {300: replace(ONE, epochs=8), 2_000: ONE}  # how many to train on → how
# sentences have up to 48 tokens
TAGS = FineTuning(epochs=1, batch_size=32, peak_learning_rate=2e-3, max_length=52)
COREFERENCE = almanac_coreference.FINE_TUNING
RELATIONS = FineTuning(epochs=2, batch_size=32, peak_learning_rate=1e-3, max_length=64)
SETTINGS = {
    "questions": {str(most): one for most, one in QUESTIONS.items()},
    "tags": TAGS,
    "coreference": COREFERENCE,
    "relations": RELATIONS,
}
LONG = 3  # words of a long answer, at least


class Uses(NamedTuple):
    """Parts to train on and to test on, of each task."""

    questions: tuple[list[Question], list[Question]]
    sentences: tuple[tagging_names.Labeled, tagging_names.Labeled]
    documents: tuple[list[Document], list[Document]]
    relations: tuple[list[Example], list[Example]]


def uses() -> Uses:
    """The parts, all of the almanac."""
    files = (data_path("almanac", f"questions-{part}.json.xz") for part in ("train", "test"))
    questions = tuple([one for one in squad.read(file) if one.answers] for file in files)
    texts = islice(almanac.read("train"), tagging_names.DOCUMENTS), almanac.read("test")
    documents = almanac_coreference.documents("train", 250), almanac_coreference.documents("test")
    return Uses(
        (spread(questions[0]), questions[1]),
        (tagging_names.sentences(texts[0]), tagging_names.sentences(texts[1])),
        documents,
        (almanac.relations("train"), almanac.relations("test")),
    )


def spread(questions: Sequence[Question]) -> list[Question]:
    """The questions so that the first few are of many documents: the first of each, then the second
    of each, …"""
    turn: dict[str, int] = {}
    numbered = []
    for question in questions:
        turn[question.context] = turn.get(question.context, -1) + 1
        numbered.append((turn[question.context], question))
    return [question for _, question in sorted(numbered, key=lambda one: one[0])]


def measured(
    encoder: BertEncoder, wordpiece: WordPiece, parts: Uses, seed: int
) -> dict[str, Mapping | float]:
    """Scores in percent: F1 of forced answers, F1 of entities, average F1 of coreference, micro-F1
    of relations."""
    found: dict[str, Mapping | float] = {
        f"questions, {most}": answers(encoder, wordpiece, parts.questions, most, seed)
        for most in QUESTIONS
    }
    return found | {
        "tags": tags(encoder, wordpiece, parts.sentences, seed),
        "coreference": clusters(encoder, wordpiece, parts.documents, seed),
        "relations": facts(encoder, wordpiece, parts.relations, seed),
    }


def answers(
    encoder: BertEncoder,
    wordpiece: WordPiece,
    parts: tuple[list[Question], list[Question]],
    most: int,
    seed: int,
) -> dict[str, float]:
    """F1 on all test questions, and on those whose answer is long, trained on `most` questions."""
    train, test = parts
    settings = replace(QUESTIONS[most], seed=seed)
    answerer, _ = question_answering.fine_tune(deepcopy(encoder), wordpiece, train[:most], settings)
    texts, _ = answerer.predict(test)
    long = [one for one in test if min(len(answer.text.split()) for answer in one.answers) >= LONG]
    to_long = {one.id: texts[one.id] for one in long}
    return {"f1": squad.score(texts, test)["f1"], "long": squad.score(to_long, long)["f1"]}


def tags(
    encoder: BertEncoder,
    wordpiece: WordPiece,
    parts: tuple[tagging_names.Labeled, tagging_names.Labeled],
    seed: int,
) -> float:
    """F1 of entities in sentences whose names no label has shown."""
    shown, new = tagging_names.parts(*parts, seed)
    tagger, _ = tagging.fine_tune(deepcopy(encoder), wordpiece, shown, replace(TAGS, seed=seed))
    return tagging.entity_scores([one for _, one in new], tagger.predict(new))["f1"]


def clusters(encoder: BertEncoder, wordpiece: WordPiece, parts: tuple, seed: int) -> float:
    """The average F1 of coreference."""
    (train, test), settings = parts, replace(COREFERENCE, seed=seed)
    resolver, _ = coreference.fine_tune(deepcopy(encoder), wordpiece, train, settings)
    return span_tasks_coreference.figures(test, resolver.predict(test))["average"]


def facts(encoder: BertEncoder, wordpiece: WordPiece, parts: tuple, seed: int) -> float:
    """Micro-F1 of relations; markers around the names, whose states are read."""
    (train, test), settings = parts, replace(RELATIONS, seed=seed)
    reading = {"marking": "around", "head": "entities"}
    copied = deepcopy(encoder)
    extractor, _ = relation_extraction.fine_tune(copied, wordpiece, train, settings, **reading)
    return relation_extraction.score([one.relation for one in test], extractor.predict(test))["f1"]
