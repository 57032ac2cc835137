"""The almanac: rebuilt exactly, exact labels, true to its world, varied; names can be inferred from
context."""

import hashlib
import json
import lzma
import re

import pytest

from research.almanac import coreference
from research.almanac.documents import SEED, generate
from research.almanac.world import World
from spanbert_tutorial import almanac
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.text.sentences import split_sentences

PLACE = r"(?:[A-Z][a-z]+ ){0,3}[A-Z][a-z]+"
NAME = r"(?:[A-Z][a-z]+ ){1,2}[A-Z][a-z]+"


@pytest.fixture(scope="module")
def documents():
    return list(generate())


@pytest.fixture(scope="module")
def records(documents):
    return [document.record() for document in documents]


@pytest.fixture(scope="module")
def split(records):
    """What the records' texts are split into, as a reader of them does it."""
    return [sentence for record in records for sentence in split_sentences(record["text"])]


@pytest.fixture(scope="module")
def sentences(documents):
    return [sentence for document in documents for sentence in document.sentences]


@pytest.fixture(scope="module")
def world():
    return World(SEED)


def test_the_shipped_file_is_rebuilt_byte_for_byte(records):
    packed = data_path("almanac", "documents.jsonl.xz").read_bytes()
    content = "".join(
        json.dumps(record, separators=(",", ":")) + "\n" for record in records
    ).encode("ascii")
    assert lzma.decompress(packed) == content
    readme = data_path("almanac", "README.md").read_text()
    assert hashlib.sha256(content).hexdigest() in readme


def test_entity_slices_are_exact(records, world):
    for record in records:
        for start, end, label, key in record["entities"]:
            entity = world.entities[key]
            assert record["text"][start:end] in (entity.name, entity.short)
            assert label == entity.label != ""


def test_every_stated_fact_holds_in_the_world(sentences, world):
    assert {fact for sentence in sentences for fact in sentence.facts} <= world.facts


@pytest.mark.parametrize(
    ("pattern", "relation"),
    [
        (rf"^(?P<a>{NAME})(?:, an? \w+,)? founded (?P<b>{PLACE}) in \d+\.$", "founder"),
        (rf"^(?P<b>{PLACE}) (?:was|were) founded in (?P<a>\d+)", "founded"),
        (rf"^(?P<b>{NAME}) was born in (?:{PLACE} in )?(?P<a>\d+)\.$", "born"),
        (rf"^(?P<a>{NAME}), an? \w+, is mayor of (?P<b>{PLACE})\.$", "mayor"),
        (rf"^The colours of (?P<b>{PLACE}) are (?P<a>[a-z ]+)\.$", "colours"),
    ],
)
def test_the_texts_read_from_outside_agree_with_the_world(split, world, pattern, relation):
    values = {
        entity.name: value.name if hasattr(value := entity.values[relation], "name") else value
        for entity in world.entities.values()
        if relation in entity.values
    }
    seen = 0
    for sentence in split:
        found = re.match(pattern, sentence)
        if found and found["b"] in values:
            assert found["a"] == values[found["b"]], sentence
            seen += 1
    assert seen >= 10


def test_coreference_labels_are_those_of_the_generator(documents):
    made = {
        document.id: found
        for document in documents
        if (found := coreference.clusters(document)) is not None
    }
    assert made == {record["id"]: record["clusters"] for record in almanac.coreference()}


@pytest.mark.parametrize(
    ("label", "margin"),
    [("PERSON", 0.15), ("TOWN", 0.25), ("CLUB", 0.4), ("RIVER", 0.4), ("COMPANY", 0.4)],
)
def test_a_masked_name_is_inferred_better_from_context_than_from_frequency(records, label, margin):
    train = [record for record in records if record["split"] == "train"]
    test = [record for record in records if record["split"] == "test"]
    result = almanac.name_inference(train, test, label)
    assert result["document"] - result["frequency"] > margin
    assert result["sentence"] - result["frequency"] > margin


def test_name_inference_on_three_documents_by_hand():
    def document(*entities):
        text = ""
        found = []
        for label, name in entities:
            found.append([len(text), len(text) + len(name), label, name])
            text += name + " "
        return {"text": text.strip() + ".", "entities": found}

    train = [
        document(("TOWN", "Elm"), ("RIVER", "Ash")),
        document(("TOWN", "Elm"), ("RIVER", "Ash")),
        document(("TOWN", "Oak"), ("RIVER", "Tarn")),
    ]
    test = [document(("TOWN", "Oak"), ("RIVER", "Tarn"))]
    result = almanac.name_inference(train, test, "TOWN")
    assert result == {"frequency": 0, "sentence": 1, "document": 1}
