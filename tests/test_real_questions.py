"""Training in stages, and intervals over articles."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from spanbert_tutorial.bert import BertEncoder, EncoderConfig
from spanbert_tutorial.data_files import data_path
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks import real_questions
from spanbert_tutorial.tasks.squad import read
from spanbert_tutorial.wordpiece import WordPiece

QUESTIONS = read(data_path("reader", "reader.json"))


def test_each_stage_goes_on_where_the_one_before_ended():
    wordpiece = WordPiece.from_file(data_path("checkpoints", "mini-start", "tokenizer.json"))
    config = EncoderConfig.tiny(vocab_size=len(wordpiece), max_position_embeddings=128, num_hidden_layers=1)
    questions = [question for question in QUESTIONS if question.answers][:24]
    short = replace(qa.PRESETS["short-first"], epochs=0.5)
    stages = [short, replace(qa.PRESETS["small"], epochs=0.5, length=128, stride=64, answers_only=True)]
    encoders = [BertEncoder(config, torch.Generator().manual_seed(0)) for _ in range(2)]
    answerer, histories = real_questions.fine_tune_in_stages(encoders[0], wordpiece, questions, stages)
    assert (answerer.length, answerer.stride, len(histories)) == (128, 64, 2)
    for stage, history in zip(stages, histories, strict=True):
        again = qa.fine_tune(encoders[1], wordpiece, questions, stage)
        assert again[1].losses == history.losses
    for one, other in zip(answerer.model.parameters(), again[0].model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_recipe_ends_in_full_windows_and_keeps_all_where_answers_may_lack():
    for task in ("squad1", "squad2"):
        stages = real_questions.STAGES[task]
        assert stages[-1].length == 256 and stages[-1].answers_only == (task == "squad1")


def test_the_interval_over_articles_is_wider_where_articles_differ():
    titles = np.repeat(np.arange(40), 10).astype(str)
    within = np.tile([0.0, 1.0] * 5, 40)  # each article the same
    between = np.repeat([0.0, 1.0] * 20, 10)  # each question of an article the same
    low, high = real_questions.over_articles(within, titles)
    assert low == high == 0.5
    low, high = real_questions.over_articles(between, titles)
    by_formula = 1.96 * np.sqrt(0.25 / 40)
    assert (high - low) / 2 == pytest.approx(by_formula, rel=0.1)
    assert real_questions.over_articles(between, titles) == [low, high]


def test_articles_of_different_size_weigh_as_their_questions():
    low, high = real_questions.over_articles([1.0, 1.0, 1.0, 0.0], ["a", "a", "a", "b"])
    assert (low, high) == (0.0, 1.0)  # one article may be drawn twice
