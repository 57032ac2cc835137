"""Tagging: exact labels, tags, entities by CoNLL's convention, the score, the model, and what it
learns in seconds."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kept import kept

from research.experiments import tagging_names
from research.measurements.name_lists import NameList, WordList
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.tasks import tagging
from spanbert_tutorial.tasks.fine_tuning import FineTuning
from spanbert_tutorial.text.sentences import named_sentences

LABELS = {"PERSON", "TOWN", "RIVER", "REGION", "CLUB", "COMPANY", "GROUND", "SEASON", "WORK"}
TEXT = "Ella Hale's club met Hale in Upton."
ENTITIES = [(0, 9, "PERSON"), (21, 25, "PERSON"), (29, 34, "TOWN")]
TAGS = ["B-PERSON", "I-PERSON", "O", "O", "O", "O", "B-PERSON", "O", "B-TOWN", "O"]


@pytest.fixture(scope="module")
def sentences() -> list[tuple[tagging.LabeledText, set[str]]]:
    """Labeled sentences of the test part, and the entities (by id) in each."""
    made = []
    for document in almanac.read("test"):
        named = [{entity for *_, entity in found} for _, found in named_sentences(document)]
        made += zip(tagging.labeled_sentences(document), named, strict=True)
    return made


# --- labels and tags ----------------------------------------------------------------


def test_the_labels_of_sentences_are_those_of_the_document(sentences):
    given = [
        (document["text"][start:end], label)
        for document in almanac.read("test")
        for start, end, label, _ in document["entities"]
    ]
    assert [
        (text[start:end], label)
        for (text, entities), _ in sentences
        for start, end, label in entities
    ] == given
    assert {label for _, label in given} == LABELS and len(given) == 6755


def test_tags_worked_by_hand(wordpiece):
    words = tagging.Words.of(TEXT, wordpiece)
    assert [TEXT[start:end] for start, end in words.offsets] == split_words(TEXT)
    assert tagging.bio(words.offsets, ENTITIES) == TAGS
    assert tagging.spans(TAGS) == {(0, 1, "PERSON"), (6, 6, "PERSON"), (8, 8, "TOWN")}


def test_tags_keep_every_entity_of_the_almanac(wordpiece, sentences):
    for (text, entities), _ in sentences:
        words = tagging.Words.of(text, wordpiece)
        assert [text[start:end] for start, end in words.offsets] == split_words(text)
        again = sorted(tagging.spans(tagging.bio(words.offsets, entities)))
        assert [
            (words.offsets[a, 0], words.offsets[b, 1], label) for a, b, label in again
        ] == entities


# --- entities out of tags: the convention of CoNLL's scorer, also for tags that no annotator writes ---


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ("", set()),
        ("O O", set()),
        ("B-X I-X", {(0, 1, "X")}),
        ("B-X B-X", {(0, 0, "X"), (1, 1, "X")}),
        ("I-X I-X O", {(0, 1, "X")}),  # I at the front begins an entity
        ("O I-X", {(1, 1, "X")}),  # and so after O
        ("B-X I-Y", {(0, 0, "X"), (1, 1, "Y")}),  # and so after another label
        ("B-X I-Y I-X", {(0, 0, "X"), (1, 1, "Y"), (2, 2, "X")}),
        ("B-X O I-X", {(0, 0, "X"), (2, 2, "X")}),
        ("I-X B-X I-X", {(0, 0, "X"), (1, 2, "X")}),
        ("B-A-B I-A-B", {(0, 1, "A-B")}),  # a label may have a hyphen
    ],
)
def test_entities_of_tags(tags, wanted):
    assert tagging.spans(tags.split()) == wanted


def chunks_by_edges(tags: list[str]) -> set[tuple[int, int, str]]:
    """A second writing of the convention: where does a chunk begin, where does it end? Each edge
    from two tags only."""
    pairs = [("O", "") if tag == "O" else tuple(tag.split("-", 1)) for tag in ["O", *tags, "O"]]
    begins = [
        i
        for i in range(1, len(pairs) - 1)
        if pairs[i][0] == "B" or (pairs[i][0] == "I" and pairs[i - 1][1] != pairs[i][1])
    ]
    ends = [
        i
        for i in range(1, len(pairs) - 1)
        if pairs[i][0] != "O" and (pairs[i + 1][0] != "I" or pairs[i + 1][1] != pairs[i][1])
    ]
    return {(a - 1, b - 1, pairs[a][1]) for a, b in zip(begins, ends, strict=True)}


ANY_TAGS = st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), max_size=9)


@given(ANY_TAGS)
def test_entities_agree_with_a_second_writing(tags):
    assert tagging.spans(tags) == chunks_by_edges(tags)


@given(st.lists(st.tuples(ANY_TAGS, st.randoms(use_true_random=False)), max_size=4))
def test_the_score_agrees_with_a_second_writing(drawn):
    gold = [tags for tags, _ in drawn]
    said = [random.sample(tags, len(tags)) for tags, random in drawn]
    wanted, found = (
        {(i, *chunk) for i, tags in enumerate(rows) for chunk in chunks_by_edges(tags)}
        for rows in (gold, said)
    )
    precision = len(wanted & found) / len(found) if found else 0
    recall = len(wanted & found) / len(wanted) if wanted else 0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    scores = tagging.entity_scores(*(map(tagging.spans, rows) for rows in (gold, said)))
    assert list(scores.values()) == pytest.approx([100 * precision, 100 * recall, 100 * f1])
    assert list(scores) == ["precision", "recall", "f1"]


def test_the_score_worked_by_hand():
    gold = [tagging.spans(TAGS), tagging.spans(["O", "B-X"])]  # 4 entities
    # 6; right: Hale, Upton, X
    said = [tagging.spans(["B-PERSON", "B-PERSON", *TAGS[2:]]), tagging.spans(["B-Y", "B-X"])]
    scores = tagging.entity_scores(gold, said)
    assert scores == pytest.approx({"precision": 50, "recall": 75, "f1": 60})
    assert tagging.entity_scores(gold, gold)["f1"] == 100
    assert tagging.entity_scores([[]], [[]])["f1"] == tagging.entity_scores([], [])["f1"] == 0


# --- the controls -------------------------------------------------------------------


def test_the_name_list_takes_the_longest_name():
    names = NameList([(TEXT, ENTITIES), ("Upton Mill", [(0, 10, "WORK")])])
    assert (
        names.tags("Ella Hale left Upton Mill, Upton and Ella.")
        == "B-PERSON I-PERSON O B-WORK I-WORK O B-TOWN O O O".split()
    )
    assert NameList([]).tags("Ella Hale") == ["O", "O"]


def test_the_word_list_worked_by_hand():
    words = WordList(
        [
            # Ella is in a person, and ends no name; Hale ends two persons, Upton a town
            (TEXT, ENTITIES),
            (
                "Hale and Sons met, and Upton Mill and May.",
                [(0, 13, "COMPANY"), (23, 33, "WORK"), (38, 41, "PERSON")],
            ),
            ("It rained in May.", []),  # May: once a name, once not; and: once in a name, twice not
        ]
    )
    assert words.labels == {
        "Ella": "PERSON",
        "Hale": "PERSON",
        "Upton": "TOWN",
        "Sons": "COMPANY",
        "Mill": "WORK",
        "May": "PERSON",
    }
    assert words.tags("Mill Hale met Ella and Upton Ella Sons.") == (
        "B-PERSON I-PERSON O B-PERSON O B-COMPANY I-COMPANY I-COMPANY O".split()
    )
    assert WordList([]).tags("Ella Hale") == ["O", "O"] and words.tags("") == []


# --- model and data -----------------------------------------------------------------


def tiny(wordpiece) -> BertEncoder:
    return BertEncoder(
        EncoderConfig.tiny(vocab_size=len(wordpiece), initializer_range=0.06),
        torch.Generator().manual_seed(0),
    )


def test_only_word_starts_have_a_target(wordpiece):
    text = "Ella met Ellerton."  # the last name is cut into several tokens
    data = tagging.TaggingData(
        [(text, [(9, 17, "PERSON")]), ("Hale", [(0, 4, "PERSON")])], wordpiece, FineTuning()
    )
    assert data.facts["tags"] == ["O", "B-PERSON", "I-PERSON"]
    batch = data.batch(np.array([1, 0]), np.random.default_rng(0))
    starts = np.flatnonzero(wordpiece.word_starts(wordpiece.encode(text))) + 1
    assert len(starts) == 4 < len(wordpiece.encode(text))
    assert np.flatnonzero(batch["tags"][1] != NO_TARGET).tolist() == starts.tolist()
    assert batch["tags"][1, starts].tolist() == [0, 0, 1, 0]
    assert batch["tags"][0].tolist() == [NO_TARGET, 1] + [NO_TARGET] * (len(batch["tags"][0]) - 2)
    assert not batch["token_type_ids"].any()


def test_the_loss_is_the_mean_over_words(wordpiece):
    data = tagging.TaggingData(
        [(TEXT, ENTITIES), ("Hale", [(0, 4, "PERSON")])], wordpiece, FineTuning()
    )
    batch = data.batch(np.array([0, 1]), np.random.default_rng(0))
    torch.manual_seed(0)
    model = tagging.TaggingModel(tiny(wordpiece), len(data.facts["tags"])).eval()
    with torch.no_grad():
        shares = model.scores(batch).softmax(-1)
        loss = model(batch)["loss"].item()
    chosen = [
        shares[row, place, data.targets[row][place]].item()
        for row, words in enumerate(data.inputs)
        for place in words.positions
    ]
    assert len(chosen) == 11 and loss == pytest.approx(-np.log(chosen).mean(), rel=1e-5)


def test_tags_of_many_texts_are_the_single_ones(wordpiece):
    torch.manual_seed(0)
    model = tagging.TaggingModel(tiny(wordpiece), 3)
    tagger = tagging.Tagger(model, wordpiece, 512, tags=["O", "B-X", "I-X"])
    texts = [TEXT, "Upton", "😀 🎉", "مرحبا بالعالم", TEXT * 3]
    many = [tags for _, tags, _ in tagger.scored(texts)]
    assert many == [tags for text in texts for _, tags, _ in tagger.scored([text])]
    assert [len(row) for row in many] == [
        len(tagging.Words.of(text, wordpiece).positions) for text in texts
    ]
    for start, end, label, _ in tagger.predict([(TEXT, [])])[0]:
        assert 0 <= start < end <= len(TEXT) and label == "X"


# --- learning: the pre-trained encoder reads names that the labels never showed; the controls do not ---


def test_a_pre_trained_encoder_labels_names_that_no_label_has_shown(sentences):
    """The experiment of the chapter, made small: one seed, 60 shorter steps, and room. The kept one
    has five seeds."""
    train = tagging_names.sentences(islice(almanac.read("train"), 600))
    settings = FineTuning(batch_size=16, peak_learning_rate=2e-3, max_length=40)
    found = tagging_names.run(train, sentences, 0, steps=60, settings=settings)
    f1 = {name: scores["f1"] for name, scores in found["scores"].items()}
    assert found["texts"][1] > 200 and f1["list of names"] < 30
    assert f1["pre-trained"] > 65 > 55 > f1["new weights"], f1
    assert 65 < f1["list of words"] < 90 < found["known_words"] < 100, f1


def test_the_kept_lists_come_out_again(sentences, wordpiece):
    """Seed 0 of the chapter's figures, without the models."""
    documents = kept("tagging_names")["documents"]
    train = tagging_names.sentences(islice(almanac.read("train"), documents))
    shown, new = tagging_names.parts(train, sentences, seed=0)
    gold = [
        tagging.spans(tagging.bio(tagging.Words.of(text, wordpiece).offsets, entities))
        for text, entities in new
    ]
    row = kept("tagging_names", fine_tuning=0)
    assert row["texts"] == [len(shown), len(new)]
    assert row["known_words"] == pytest.approx(tagging_names.known_words(shown, new), abs=1e-4)
    for name, one in {"list of names": NameList, "list of words": WordList}.items():
        found = one(shown)
        assert kept("tagging_names", name, fine_tuning=0) == pytest.approx(
            tagging.entity_scores(gold, [tagging.spans(found.tags(text)) for text, _ in new]),
            abs=1e-4,
        )
