"""The experiments on pointing and on the heads that copy: what is asked, who answers, what a head is."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import torch

from research.experiments import copying_heads, pointing
from research.measurements.words_in_parts import Word
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.relatives.splinter import QUESTION, Splinter
from spanbert_tutorial.tasks.question_answering import PRESETS, QuestionAnsweringData, fine_tune
from spanbert_tutorial.tasks.squad import GoldAnswer, Question
from spanbert_tutorial.text.encoding import EncodedCorpus

WORDPIECE = WordPiece.from_file(data_path("almanac", "vocab.txt"))
TEXT = "Vera Palmer founded Fairfield. Vera Palmer was a baker, and Fairfield was small."


def grown() -> tuple[BertEncoder, BertEncoder, WordPiece]:
    config = EncoderConfig.preset("tiny", vocab_size=len(WORDPIECE))
    encoder = BertEncoder(config, torch.Generator().manual_seed(0)).eval()
    return encoder, *pointing.with_question(encoder, WORDPIECE)


def test_question_is_one_token_that_starts_as_the_mask_and_changes_nothing_else():
    encoder, larger, wordpiece = grown()
    ids = torch.tensor(WORDPIECE.encode(TEXT))[None]
    assert torch.equal(encoder(ids), larger.eval()(ids)) and len(wordpiece) == len(WORDPIECE) + 1
    asked = wordpiece.encode(f"{TEXT} {QUESTION}")
    assert asked[:-1].tolist() == ids[0].tolist() and asked[-1] == len(WORDPIECE)
    masked = torch.tensor([[WORDPIECE.mask_id, 30]])
    assert torch.equal(larger(torch.tensor([[len(WORDPIECE), 30]])), encoder(masked))


def test_a_question_points_at_the_words_that_it_replaced():
    _, encoder, wordpiece = grown()
    text = WORDPIECE.encode(TEXT)
    ends = np.array([len(text), len(text) + 4])
    corpus = EncodedCorpus(np.concatenate([text, text[:4]]), ends, ends)
    passages = pointing.Passages(corpus, wordpiece, 64, 2)
    batch = passages.batch(np.array([0, 1]), np.random.default_rng(0))
    asked = batch["answers"][..., 0] != NO_TARGET
    assert asked.sum(1).tolist() == [2, 0] and batch["positions"][asked].ndim == 1
    said = set()
    for place, (first, last) in zip(batch["positions"][0], batch["answers"][0], strict=True):
        assert batch["input_ids"][0, place] == len(WORDPIECE)
        answer = batch["input_ids"][0, first : last + 1].tolist()
        said.add(wordpiece.decode(answer))
    assert said == {"Vera Palmer", "Fairfield"}
    loss = pointing.Pointing(encoder)(batch)["loss"]
    loss.backward()
    assert loss > 0
    found = pointing.found_again(pointing.Pointing(encoder), passages, 2)
    assert found["questions"] == 2 and found["chance"] > 2


def test_the_answer_is_pointed_at_from_the_question_and_can_be_learned():
    _, encoder, wordpiece = grown()
    text = "The lake is deep. Its only town is Fairfield."
    one = Question("1", "What is its town?", text, "", (GoldAnswer("Fairfield", 35),))
    how = replace(PRESETS["small"], epochs=60.0, max_length=32, batch_size=1, answers_only=True)
    model = pointing.PointingAnswerer(Splinter(encoder), wordpiece.vocabulary.index(QUESTION))
    data = QuestionAnsweringData(pointing.marked([one]), wordpiece, how)
    assert QUESTION in wordpiece.tokens(data.inputs[0].ids)
    answerer, history = fine_tune(model, wordpiece, data, replace(how, peak_learning_rate=3e-3))
    assert history.losses["loss"][-1] < 0.5 < history.losses["loss"][0]
    assert answerer.answer(f"{one.question} {QUESTION}", text).text == "Fairfield"


def test_a_head_that_is_switched_off_says_nothing_and_comes_back():
    encoder, _, _ = grown()
    ids = torch.tensor(WORDPIECE.encode(TEXT))[None]
    before = encoder(ids)
    with copying_heads.without(encoder, 1, 0):
        off = encoder(ids)
    with torch.no_grad():
        for layer, head in copying_heads.heads(encoder):
            with copying_heads.without(encoder, layer, head):
                assert not torch.allclose(encoder(ids), before)
    assert not torch.allclose(off, before) and torch.equal(encoder(ids), before)


def test_all_copies_of_a_word_are_hidden():
    word = Word(np.array([7, 8, 7, 9, 7]), 2, 2, "name, again")
    hidden = copying_heads.everywhere(word, WORDPIECE)
    mask = WORDPIECE.mask_id
    assert hidden.ids.tolist() == [mask, 8, mask, 9, mask] and word.ids[0] == 7


def test_a_head_that_attends_to_all_tokens_alike_matches_by_chance():
    encoder, _, _ = grown()
    with torch.no_grad():
        for layer in encoder.layers:
            layer.attention.query.weight.zero_()
    answerer = SimpleNamespace(wordpiece=WORDPIECE, max_length=64, doc_stride=16)
    one = Question("1", "What is small?", "Fairfield was small. A small town.", "", ())
    found = copying_heads.matching(encoder, answerer, [one])
    length = 3 + len(WORDPIECE.encode(f"{one.question} {one.context}"))
    assert np.allclose(list(found.values()), 100 / length) and set(found) > {"1.1", "2.2"}
