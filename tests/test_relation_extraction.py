"""Relation extraction: scores by hand and by the official rules, both layouts, markers, the two
heads, the almanac's examples, and what the controls know."""

import json
import lzma
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kept import kept, settings
from test_main import run

from research.almanac import relations
from research.almanac.documents import generate
from research.experiments import relation_markers
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.commands.previews import relation_preview
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import relation_baselines as controls
from spanbert_tutorial.tasks import relation_extraction as rx
from spanbert_tutorial.tasks.fine_tuning import FineTuning, make_room
from spanbert_tutorial.tasks.relation_files import NO_RELATION, Argument, Example, read

WORDS = tuple("Today Ella Hale of Upton met the mayor of Kelso .".split())
EXAMPLE = Example("a", WORDS, Argument(1, 2, "PERSON"), Argument(4, 4, "TOWN"), "person:home")
BACKWARDS = EXAMPLE._replace(subject=EXAMPLE.object, object=EXAMPLE.subject, relation=NO_RELATION)
NO = NO_RELATION


@pytest.fixture(scope="module")
def shipped() -> dict[str, list[Example]]:
    return {part: almanac.relations(part) for part in ("train", "validation", "test")}


def tiny(wordpiece: WordPiece) -> BertEncoder:
    return BertEncoder(
        EncoderConfig.tiny(vocab_size=len(wordpiece)), torch.Generator().manual_seed(0)
    )


# --- micro-F1 without the negative class --------------------------------------------


@pytest.mark.parametrize(
    ("gold", "said", "wanted"),
    [
        ("a a b - -", "a b b - a", (50, 200 / 3, 400 / 7)),  # right: a, b; said 4; wanted 3
        ("a - -", "a - -", (100, 100, 100)),
        ("- - -", "- - -", (0, 0, 0)),  # an accuracy would be 100
        ("a b -", "- - -", (0, 0, 0)),  # TACRED's scorer prints a precision of 100 here
        ("- -", "a -", (0, 0, 0)),
        ("a", "b", (0, 0, 0)),
        ("", "", (0, 0, 0)),
        ("a", "new", (0, 0, 0)),  # a relation that gold does not have costs precision
    ],
)
def test_the_score_worked_by_hand(gold, said, wanted):
    gold, said = ([NO if label == "-" else label for label in row.split()] for row in (gold, said))
    assert tuple(rx.score(gold, said, NO).values()) == pytest.approx(wanted)


def test_the_score_knows_other_names_of_no_relation():
    assert rx.score(["x", "Other"], ["x", "Other"], "Other")["f1"] == 100
    assert rx.score(["x", "Other"], ["x", "Other"])["precision"] == 100
    assert rx.score(["x", "Other"], ["x", "x"], "Other")["precision"] == 50


def as_tacred_counts(gold, said) -> tuple[float, float, float]:
    """A second writing: counted relation by relation, as TACRED's scorer does, but 0 for a share of
    nothing."""
    right, guessed, wanted = Counter(), Counter(), Counter()
    for one, other in zip(gold, said, strict=True):
        wanted[one] += one != NO
        guessed[other] += other != NO
        right[one] += one == other != NO
    precision = 100 * right.total() / guessed.total() if guessed.total() else 0
    recall = 100 * right.total() / wanted.total() if wanted.total() else 0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0


@given(st.lists(st.tuples(*[st.sampled_from([NO, "a", "b", "c"])] * 2)))
def test_the_score_agrees_with_a_second_writing(pairs):
    gold = [one for one, _ in pairs]
    said = [other for _, other in pairs]
    assert tuple(rx.score(gold, said, NO).values()) == pytest.approx(as_tacred_counts(gold, said))


# --- SemEval's directed macro-F1 ----------------------------------------------------

CE = "Cause-Effect(e1,e2)"
EC = "Cause-Effect(e2,e1)"
MT = "Message-Topic(e1,e2)"
TM = "Message-Topic(e2,e1)"


@pytest.mark.parametrize(
    ("gold", "said", "wanted"),
    [
        ([CE, CE, EC, "Other"], [CE, CE, EC, "Other"], (100, 100, 100)),
        ([CE, EC], [EC, CE], (0, 0, 0)),  # the right relation, the wrong direction
        ([CE, CE], [CE, EC], (50, 50, 50)),  # one of two said, one of two wanted
        ([CE, "Other"], [CE, EC], (50, 100, 200 / 3)),  # Other as a relation costs precision
        ([CE, CE], [CE, "Other"], (100, 50, 200 / 3)),
        ([CE, MT], [CE, CE], (25, 50, 100 / 3)),  # Cause-Effect: 1/2, 1/1; Message-Topic: nothing
        # a mean over relations, not over examples
        ([CE, CE, CE, MT], [CE, CE, EC, TM], (100 / 3, 100 / 3, 100 / 3)),
        ([CE], [MT], (0, 0, 0)),  # a relation that gold does not have is no part of the mean
        # so here it costs nothing, as in the official scorer
        ([CE, "Other"], [CE, MT], (100, 100, 100)),
    ],
)
def test_the_directed_score_worked_by_hand(gold, said, wanted):
    assert tuple(rx.directed_score(gold, said).values()) == pytest.approx(wanted)


def test_eighteen_classes_would_score_otherwise():
    """The usual mistake: the mean over directed classes. Here CE 2 of 2 and 3 said, EC 0 of 1: (80
    + 0) / 2."""
    gold = [CE, CE, EC]
    said = [CE, CE, CE]
    assert rx.directed_score(gold, said)["f1"] == pytest.approx(200 / 3)


def official(gold, said) -> float:
    """A second writing after the description of the official scorer: wrong directions are a row of
    their own in the confusion matrix, and are added to what was said."""
    confusion, wrong_direction = Counter(), Counter()
    bare = {label: label.split("(")[0] for label in [*gold, *said]}
    for one, other in zip(gold, said, strict=True):
        if one != other and bare[one] == bare[other]:
            wrong_direction[bare[one]] += 1
        else:
            confusion[bare[one], bare[other]] += 1
    found = []
    for relation in {bare[label] for label in gold} - {"Other"}:
        right = confusion[relation, relation]
        said_it = sum(count for (_, other), count in confusion.items() if other == relation)
        precision = right / (said_it + wrong_direction[relation]) if said_it else 0
        recall = right / sum(bare[label] == relation for label in gold)
        found.append(2 * precision * recall / (precision + recall) if precision + recall else 0)
    return 100 * sum(found) / len(found)


@given(
    st.lists(
        st.tuples(*[st.sampled_from([CE, EC, MT, TM, "Other", "Entity-Origin(e1,e2)"])] * 2),
        min_size=1,
    )
)
def test_the_directed_score_agrees_with_a_second_writing(pairs):
    gold = [CE, *(one for one, _ in pairs)]
    said = [CE, *(other for _, other in pairs)]
    assert rx.directed_score(gold, said)["f1"] == pytest.approx(official(gold, said))


# --- TACRED's labels and layout -----------------------------------------------------


ENTRY = {
    "id": "e1", "docid": "made-1", "relation": "per:city_of_birth",
    "token": "Ella Hale was born in Upton .".split(),
    "subj_start": 0, "subj_end": 1, "obj_start": 5, "obj_end": 5, "subj_type": "PERSON", "obj_type": "CITY",
    "stanford_pos": "NNP NNP VBD VBN IN NNP .".split(), "stanford_ner": "PERSON PERSON O O O "
                                                                        "CITY O".split(),
    "stanford_head": [4, 1, 4, 0, 6, 4, 4],
    "stanford_deprel": "compound nsubj aux ROOT case nmod punct".split(),
}  # fmt: skip  # a line of the layout, written for this test


@pytest.mark.parametrize("suffix", [".json", ".json.xz"])
def test_tacred_is_read(tmp_path, suffix):
    path = tmp_path / f"train{suffix}"
    text = json.dumps([ENTRY, ENTRY | {"id": "e2", "relation": NO}])
    path.write_bytes(lzma.compress(text.encode()) if suffix.endswith("xz") else text.encode())
    first, second = read(path)
    arguments = Argument(0, 1, "PERSON"), Argument(5, 5, "CITY")
    assert first == Example("e1", tuple(ENTRY["token"]), *arguments, "per:city_of_birth")
    assert second.relation == NO
    assert rx.figures([first, second], [first.relation, NO]) == {
        "micro": {"precision": 100, "recall": 100, "f1": 100}
    }


# --- SemEval's layout ---------------------------------------------------------------

SEMEVAL = """1\t"The <e1>heat</e1>, she said, came from an old <e2>iron stove</e2>."
Cause-Effect(e2,e1)
Comment: made up

2\t"A <e1>box</e1><e2>lid</e2> fell"
Other
Comment:
"""


def test_semeval_is_read(tmp_path):
    path = tmp_path / "some.txt"
    path.write_text(SEMEVAL, encoding="utf-8")
    first, second = read(path)
    words = "The heat , she said , came from an old iron stove .".split()
    assert first == Example("1", tuple(words), Argument(1, 1), Argument(10, 11), EC)
    assert second == Example(
        "2", ("A", "box", "lid", "fell"), Argument(1, 1), Argument(2, 2), "Other"
    )
    found = rx.figures([first, second], [EC, "Other"])
    assert list(found) == ["micro", "macro, directed"]
    assert {figure for each in found.values() for figure in each.values()} == {100}
    assert rx.figures([first, first], [EC, "Other"])["micro"]["precision"] == 100


# --- markers ------------------------------------------------------------------------


def test_markers_worked_by_hand():
    replaced = "Today [SUBJ-PERSON] of [OBJ-TOWN] met the mayor of Kelso ."
    around = "Today [SUBJ] Ella Hale [/SUBJ] of [OBJ] Upton [/OBJ] met the mayor of Kelso ."
    assert " ".join(rx.marked(EXAMPLE, "replaced")) == replaced
    assert " ".join(rx.marked(EXAMPLE, "around")) == around
    assert " ".join(rx.marked(BACKWARDS, "replaced")).startswith(
        "Today [OBJ-PERSON] of [SUBJ-TOWN] met"
    )
    assert " ".join(rx.marked(relation_markers.context_alone(EXAMPLE), "replaced")).startswith(
        "Today [SUBJ] of [OBJ] met"
    )
    assert rx.markers([EXAMPLE, BACKWARDS], "replaced") == (
        "[OBJ-PERSON] [OBJ-TOWN] [SUBJ-PERSON] [SUBJ-TOWN]".split()
    )
    assert rx.markers([EXAMPLE], "around") == ["[/OBJ]", "[/SUBJ]", "[OBJ]", "[SUBJ]"]


def test_a_name_inside_the_other_keeps_both_markers():
    inside = EXAMPLE._replace(object=Argument(2, 2, "PERSON"))
    assert " ".join(rx.marked(inside, "around")).startswith(
        "Today [SUBJ] Ella [OBJ] Hale [/SUBJ] [/OBJ] of Upton"
    )
    assert " ".join(rx.marked(inside, "replaced")).startswith(
        "Today [SUBJ-PERSON] [OBJ-PERSON] of Upton"
    )


@pytest.mark.parametrize("marking", rx.MARKINGS)
@pytest.mark.parametrize("example", [EXAMPLE, BACKWARDS])
def test_the_input_is_the_text_with_markers(wordpiece, marking, example):
    more = wordpiece.with_tokens(rx.markers([example], marking))
    made = rx.Marked.of(example, more, marking, 40)
    tokens = more.tokens(made.ids)
    assert tokens[0] == "[CLS]" and tokens[-1] == "[SEP]" and not made.segments.any()
    subject, thing = (tokens[place] for place in made.places)
    assert subject.startswith("[SUBJ") and thing.startswith("[OBJ")
    assert [id_ for id_ in made.ids[1:-1] if id_ < len(wordpiece)] == wordpiece.encode(
        " ".join(word for word in rx.marked(example, marking) if not isinstance(word, rx.Marker))
    ).tolist()


# --- model --------------------------------------------------------------------------


@pytest.mark.parametrize(("head", "width"), [("cls", 128), ("entities", 256)])
def test_what_the_heads_read(wordpiece, head, width):
    more = wordpiece.with_tokens(rx.markers([EXAMPLE], "around"))
    encoder = tiny(wordpiece).eval()
    make_room(encoder, len(more))
    model = rx.RelationModel(encoder, 3, head).eval()
    batch = rx.tensors(
        [rx.Marked.of(one, more, "around", 40) for one in (EXAMPLE, BACKWARDS)], more.pad_id
    )
    hidden = encoder(
        batch["input_ids"],
        token_type_ids=batch["token_type_ids"],
        attention_mask=batch["attention_mask"],
    )
    assert model.classifier.in_features == width
    for row, places in enumerate(batch["places"]):
        states = (
            hidden[row, 0]
            if head == "cls"
            else torch.cat([hidden[row, places[0]], hidden[row, places[1]]])
        )
        assert torch.allclose(model.scores(batch)[row], model.classifier(states), atol=1e-5)


def test_the_loss_is_the_mean_over_examples(wordpiece):
    more = wordpiece.with_tokens(rx.markers([EXAMPLE], "around"))
    data = rx.RelationData([EXAMPLE, BACKWARDS], more, FineTuning(max_length=40), "around")
    assert data.facts["relations"] == [NO, "person:home"] and len(data) == 2
    batch = data.batch(np.array([0, 1]), np.random.default_rng(0))
    assert batch[data.target_field].tolist() == [1, 0]
    encoder = tiny(wordpiece)
    make_room(encoder, len(more))
    model = rx.RelationModel(encoder, 2, "entities").eval()
    shares = model.scores(batch).softmax(-1)
    wanted = -(shares[0, 1].log() + shares[1, 0].log()) / 2
    assert model(batch)["loss"].item() == pytest.approx(wanted.item(), rel=1e-5)


def test_predictions_of_many_are_the_single_ones(wordpiece, shipped):
    some = shipped["test"][:20]
    extractor, _ = rx.fine_tune(
        tiny(wordpiece), wordpiece, some, FineTuning(epochs=0.1, max_length=40)
    )
    many = extractor.predict(some)
    assert many == [extractor.predict([example])[0] for example in some]
    assert set(many) <= {example.relation for example in some} and extractor.predict([]) == []
    hidden = [example._replace(relation="?") for example in some]
    assert extractor.predict(hidden) == many


@pytest.mark.parametrize("head", rx.HEADS)
def test_a_saved_extractor_predicts_the_same(wordpiece, shipped, tmp_path, head):
    some = shipped["test"][:30]
    settings = FineTuning(epochs=0.2, max_length=40)
    made, _ = rx.fine_tune(
        tiny(wordpiece), wordpiece, some, settings, marking="replaced", head=head
    )
    made.save(tmp_path / "model", {"README.md": "made"})
    again = rx.RelationExtractor.from_pretrained(tmp_path / "model")
    assert again.facts == made.facts and again.max_length == 40
    assert again.wordpiece.vocabulary == made.wordpiece.vocabulary
    assert again.predict(some) == made.predict(some)
    settings = json.loads((tmp_path / "model" / "config.json").read_text())
    assert settings["vocab_size"] == len(made.wordpiece) > len(wordpiece)


def test_the_preview_is_what_training_sees(wordpiece):
    made = rx.RelationData([EXAMPLE], wordpiece, FineTuning(max_length=40))
    tokens, label = relation_preview(EXAMPLE, wordpiece, 40)
    assert tokens == made.wordpiece.tokens(made.inputs[0].ids.tolist())
    assert "[SUBJ] Ella" in " ".join(tokens) and label == "person:home of Ella Hale to Upton"


def test_the_command_trains_and_scores(tmp_path, capsys):
    data = data_path("almanac", "relations-validation.json.xz")
    start, model = data_path("checkpoints", "spanbert-tiny"), tmp_path / "model"
    line = f"relations --data {data}"
    finetune = f"finetune {line} --init-from {start} --output {model} --epochs 0.05"
    assert "2,619 examples" in run(capsys, finetune)[1]
    assert run(capsys, f"evaluate {line} --model {model} --output {tmp_path / 'scores'}")[0] == 0
    found = json.loads((tmp_path / "scores" / "score.json").read_text())
    assert list(found) == ["micro"] and 0 <= found["micro"]["f1"] <= 100
    assert len(json.loads((tmp_path / "scores" / "predictions.json").read_text())) == 2_619


# --- the almanac: exact by construction ---------------------------------------------


def test_the_examples_fit_the_text(shipped):
    texts = {document["id"]: document for document in almanac.read()}
    words = cache(lambda sentence: tuple(split_words(sentence)))
    for part, examples in shipped.items():
        assert len(examples) > 2_000
        for example in examples:
            document = texts[example.id.rsplit("-", 2)[0]]
            assert document["split"] == part
            number = int(example.id.split("-")[2])
            sentence = almanac_sentences(document)[number]
            assert example.words == words(sentence)
            labels = {
                (document["text"][start:end], label)
                for start, end, label, _ in document["entities"]
            }
            for first, last, kind in (example.subject, example.object):
                name = " ".join(example.words[first : last + 1])
                assert kind == "YEAR" and name.isdigit() or (name, kind) in labels


def almanac_sentences(document: dict) -> list[str]:
    return [
        sentence + "." * (not sentence.endswith(".")) for sentence in document["text"].split(". ")
    ]


def test_the_shipped_examples_come_out_again(shipped):
    made = [
        example
        for document in islice(generate(), 60)
        if document.split == "train"
        for example in relations.examples(document)
    ]
    assert len(made) > 200 and shipped["train"][: len(made)] == made


def test_no_pair_and_no_document_of_the_test_is_trained_on():
    seen: dict[str, set] = {"train": set(), "validation": set(), "test": set()}
    for document in islice(generate(), 1_000):
        made = list(relations.examples(document))
        both = [pair for sentence in document.sentences for pair in relations.pairs(sentence)]
        kept = [
            pair.things
            for pair in both
            if relations.held_out(pair.things) == (document.split != "train")
        ]
        assert len(kept) == len(made)
        seen[document.split] |= set(kept)
    assert all(len(things) > 100 for things in seen.values())
    assert not seen["train"] & (seen["validation"] | seen["test"])


# --- controls -----------------------------------------------------------------------


def test_the_kept_controls_come_out_again(shipped):
    again = relation_markers.beside({}, shipped["train"], shipped["test"])["controls"]
    # sums in another order, on another machine
    assert again == pytest.approx(
        {name: kept("relation_markers", name)["f1"] for name in again}, abs=0.2
    )
    assert (
        settings("relation_markers")["fingerprint"]
        == relation_markers.prepare(None, {})[0]["fingerprint"]
    )


def test_a_pre_trained_encoder_learns_relations(shipped):
    """A kept arm, made small: one seed, a quarter of the steps, some of the test."""
    settings = replace(relation_markers.FINE_TUNING, epochs=0.5)
    made = relation_markers.trained("replaced, markers", 0, settings, shipped["train"])
    test = shipped["test"][:600]
    gold = [example.relation for example in test]
    f1 = rx.score(gold, made.predict(test))["f1"]
    assert f1 > 60 > rx.score(gold, controls.most_frequent(shipped["train"], test, NO))["f1"]
