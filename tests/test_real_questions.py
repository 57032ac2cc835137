"""Training in stages, intervals over articles, and where the errors are."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from research.experiments import squad_real
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine import snapshots
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import train as train_module
from spanbert_tutorial.tasks import few_questions, squad
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks.squad import GoldAnswer, Question, read
from spanbert_tutorial.text.sentences import split_sentences

QUESTIONS = read(data_path("reader", "reader.json"))


VOCABULARY = WordPiece.from_file(data_path("checkpoints", "bert-mini", "tokenizer.json"))
CONFIG = EncoderConfig.tiny(
    vocab_size=len(VOCABULARY), max_position_embeddings=128, num_hidden_layers=1
)
ANSWERABLE = [question for question in QUESTIONS if question.answers][:24]


def new_encoder() -> BertEncoder:
    return BertEncoder(CONFIG, torch.Generator().manual_seed(0))


def test_each_stage_goes_on_where_the_one_before_ended():
    short = replace(qa.PRESETS["short-first"], epochs=0.5)
    stages = [
        short,
        replace(
            qa.PRESETS["small"],
            epochs=0.5,
            max_length=128,
            doc_stride=64,
            answers_only=True,
            seed=1,
        ),
    ]
    encoders = [new_encoder() for _ in range(3)]
    answerer, histories = squad_real.fine_tune_in_stages(
        encoders[0], VOCABULARY, ANSWERABLE, stages
    )
    assert (answerer.max_length, answerer.doc_stride, len(histories)) == (128, 64, 2)
    model = encoders[1]
    for stage, history in zip(stages, histories, strict=True):
        again = qa.fine_tune(model, VOCABULARY, ANSWERABLE, stage)
        assert again[1].losses == history.losses
        model = again[0].model  # with its head
    for one, other in zip(answerer.model.parameters(), again[0].model.parameters(), strict=True):
        assert torch.equal(one, other)
    new_heads = [
        qa.fine_tune(encoders[2], VOCABULARY, ANSWERABLE, stage)[1].losses for stage in stages
    ]
    assert new_heads[0] == histories[0].losses and new_heads[1] != histories[1].losses


def test_stages_go_on_after_a_stop(tmp_path, monkeypatch):
    """Stopped in the second stage, the same call ends with the same weights; a finished stage is
    not trained again."""
    short = replace(qa.PRESETS["short-first"], epochs=0.5, batch_size=4)
    stages = [short, replace(short, seed=1)]
    right = train_module.read
    trained = []

    def whole(state):
        encoder = new_encoder()
        return squad_real.fine_tune_in_stages(encoder, VOCABULARY, ANSWERABLE, stages, state)[
            0
        ].model

    def read(unread, accelerator):
        trained.append(unread[0].step)
        if len(trained) == stop:
            raise ConnectionError("the machine went away")
        return right(unread, accelerator)

    monkeypatch.setattr(snapshots, "EVERY", 0.0)
    monkeypatch.setattr(train_module, "read", read)
    stop = 0
    wanted = whole(None)
    steps = len(trained)
    trained = []
    stop = steps // 2 + 2
    with pytest.raises(ConnectionError):
        whole(tmp_path)
    trained = []
    stop = 0
    found = whole(tmp_path)
    assert trained == list(range(2, steps // 2 + 1)) and steps > 4
    assert all(
        torch.equal(one, other)
        for one, other in zip(wanted.parameters(), found.parameters(), strict=True)
    )


def test_the_interval_over_articles_is_wider_where_articles_differ():
    gold = (GoldAnswer("mill", 0),)
    questions = [Question(str(n), "?", "mill", f"article {n // 10}", gold) for n in range(400)]

    def interval(right) -> list[float]:
        said = {one.id: "mill" * right(int(one.id)) for one in questions}
        return squad.intervals(said, questions)["exact"]

    assert interval(lambda n: n % 2) == [50, 50]  # each article the same
    low, high = interval(lambda n: n // 10 % 2)  # each question of an article the same
    by_formula = 100 * 1.96 * np.sqrt(0.25 / 40)
    assert (high - low) / 2 == pytest.approx(by_formula, rel=0.1)


# --- where the errors are -----------------------------------------------------------

CONTEXT = "Mara wrote. Mr. Lund read it in 1901! It was long.  Nobody else read it."


def asked(*texts: str) -> Question:
    answers = tuple(GoldAnswer(text, CONTEXT.index(text)) for text in texts)
    return Question("a", "Who read it?", CONTEXT, "Books", answers)


@pytest.mark.parametrize(
    "answer, sentence",
    [
        ("Mara", "Mara wrote."),
        ("1901", "Lund read it in 1901!"),
        ("It was long", "It was long."),
        ("Nobody else", "Nobody else read it."),
        ("1901! It", "Lund read it in 1901! It was long."),
        ("long.  Nobody", "It was long.  Nobody else read it."),
        (CONTEXT, CONTEXT),
    ],
)
def test_the_oracle_leaves_the_sentences_of_the_first_answer(answer, sentence):
    question = few_questions.only_its_sentence(asked(answer))
    assert question.context == sentence
    assert [sentence[one.start :][: len(one.text)] for one in question.answers] == [answer]


def test_the_oracle_takes_the_place_of_the_answer_not_its_text():
    place = CONTEXT.rindex("read it")
    answers = GoldAnswer("read it", place), GoldAnswer("Mara", 0), GoldAnswer("it", place + 5)
    question = replace(asked(), answers=answers)
    found = few_questions.only_its_sentence(question)
    assert found.context == "Nobody else read it."
    # Mara stands elsewhere
    assert found.answers == (GoldAnswer("read it", 12), GoldAnswer("it", 17))


def test_the_oracle_on_the_reader():
    for question in QUESTIONS:
        if question.answers:
            found = few_questions.only_its_sentence(question)
            assert len(split_sentences(found.context)) == 1
            assert found.context in question.context
            assert all(found.context[one.start :].startswith(one.text) for one in found.answers)
