"""Recurring span selection: clusters and masks by hand and by rule, the head and the model against
transformers number for number."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import sizes
from transformers import SplinterConfig, SplinterForPreTraining, SplinterForQuestionAnswering

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.relatives import splinter
from spanbert_tutorial.relatives.splinter import (
    MOST_QUESTIONS,
    QUESTION,
    Splinter,
    ask_questions,
    recurring_spans,
    selection_loss,
)

CLOSE = {"rtol": 0, "atol": 1e-5}  # in float64; transformers takes the softmax in float32
EXACT = {"rtol": 0, "atol": 1e-10}  # without the softmax
PASSAGE = (
    "The Dead Sea is a salt lake . Fish can ##not live in the Dead Sea , and the salt of the lake "
    "stays ."
)
QUESTION_ID = 104


def said(tokens: str | list[str]) -> dict[str, int]:
    """Each cluster as its words and how often they are there."""
    tokens = tokens.split() if isinstance(tokens, str) else tokens
    return {
        " ".join(tokens[spans[0][0] : spans[0][1] + 1]): len(spans)
        for spans in recurring_spans(tokens)
    }


def filled_in(asked: splinter.Questions) -> list[str]:
    """The passage with each [QUESTION] replaced by its answer."""
    answers = dict(zip(asked.positions.tolist(), asked.answers.tolist(), strict=True))
    tokens: list[str] = []
    for position, token in enumerate(asked.tokens):
        if position in answers:
            first, last = answers[position]
            tokens += asked.tokens[first : last + 1]
        else:
            tokens.append(token)
    return tokens


# --- clusters by hand ---------------------------------------------------------------


def test_a_passage_by_hand():
    assert recurring_spans(PASSAGE.split()) == [
        [(1, 2), (14, 15)],
        [(5, 5), (19, 19)],
        [(6, 6), (22, 22)],
    ]
    assert said(PASSAGE) == {"Dead Sea": 2, "salt": 2, "lake": 2}


def test_the_longest_run_wins_and_its_parts_may_be_said_elsewhere():
    assert said("big red fox , big red fox") == {"big red fox": 2}
    # a third "fox" alone is no cluster, because the other two are taken
    assert said("big red fox , big red fox , fox") == {"big red fox": 2}
    assert said("big red fox , big red fox , fox , fox") == {"big red fox": 2, "fox": 2}


def test_copies_may_not_overlap():
    assert said("go go go") == {"go": 3}
    assert said("go go go go") == {"go go": 2}


# --- rules for any passage ----------------------------------------------------------

passages = st.lists(
    st.sampled_from(["a", "the", "fox", "red", "##es", "##s", "Fox", ",", "[SEP]", "1887"]),
    max_size=60,
)


@given(passages)
@settings(max_examples=200, deadline=None)
def test_clusters_hold_equal_whole_words_and_share_no_token(tokens):
    used: list[int] = []
    for spans in recurring_spans(tokens):
        assert len(spans) >= 2 and spans == sorted(spans)
        runs = {tuple(tokens[first : last + 1]) for first, last in spans}
        assert len(runs) == 1
        (run,) = runs
        assert 1 <= len(run) <= 10 and all(token.removeprefix("##").isalnum() for token in run)
        for first, last in spans:
            assert not tokens[first].startswith("##")
            assert last + 1 == len(tokens) or not tokens[last + 1].startswith("##")
            used += range(first, last + 1)
    assert len(used) == len(set(used))


@given(passages, st.integers(0, 100))
@settings(max_examples=200, deadline=None)
def test_answers_fill_the_passage_in_again_and_are_never_masked(tokens, seed):
    asked = ask_questions(tokens, np.random.default_rng(seed))
    assert filled_in(asked) == tokens
    assert len(asked.positions) <= min(MOST_QUESTIONS, round(0.15 * len(tokens)))
    assert [
        p for p, token in enumerate(asked.tokens) if token == QUESTION
    ] == asked.positions.tolist()
    for first, last in asked.answers:
        assert QUESTION not in asked.tokens[first : last + 1]
    again = ask_questions(tokens, np.random.default_rng(seed))
    assert again.tokens == asked.tokens and (again.answers == asked.answers).all()


# --- against transformers -----------------------------------------------------------


def random_model(kind=SplinterForPreTraining, **changes):
    """Every weight random, biases and LayerNorm too: a swapped pair of names would show."""
    small = sizes(32, 48, vocab_size=120, max_position_embeddings=40)
    torch.manual_seed(0)
    model = kind(SplinterConfig(**small | changes)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn(weight.shape))
    return model


def batch() -> dict[str, torch.Tensor]:
    """Three rows with two questions each, of 20, 14 and 9 tokens; positions count from [CLS]."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1, 100, (3, 20), generator=generator)
    positions = torch.tensor([[3, 12], [5, 9], [2, 7]])
    ids[torch.arange(3)[:, None], positions] = QUESTION_ID
    mask = (torch.arange(20) < torch.tensor([20, 14, 9])[:, None]).long()
    answers = torch.tensor([[[6, 8], [1, 1]], [[2, 3], [10, 13]], [[4, 4], [8, 8]]])
    return {"input_ids": ids, "positions": positions, "attention_mask": mask, "answers": answers}


@torch.no_grad()
def test_logits_and_loss_are_those_of_pretraining_in_transformers():
    theirs = random_model()
    ours = Splinter.from_huggingface(theirs)
    b = batch()
    start, end = ours(b["input_ids"], b["positions"], b["attention_mask"])
    gold = theirs(
        b["input_ids"],
        b["attention_mask"].double(),  # whole numbers would give nan there
        question_positions=b["positions"],
        start_positions=b["answers"][..., 0].clone(),
        end_positions=b["answers"][..., 1].clone(),
    )
    real = b["attention_mask"].bool()[:, None].expand_as(start)
    torch.testing.assert_close(start[real], gold.start_logits[real], **CLOSE)
    torch.testing.assert_close(end[real], gold.end_logits[real], **CLOSE)
    assert (start[~real] == -torch.inf).all() and (end[~real] == -torch.inf).all()
    assert selection_loss(start, end, b["answers"]).item() == pytest.approx(gold.loss.item())


@torch.no_grad()
def test_the_head_alone_is_that_of_transformers():
    theirs = random_model()
    head = Splinter.from_huggingface(theirs).head
    hidden = torch.randn(3, 20, 32, dtype=torch.float64)
    positions = batch()["positions"]
    for mine, gold in zip(
        head(hidden, positions), theirs.splinter_qass(hidden, positions), strict=True
    ):
        torch.testing.assert_close(mine, gold, **EXACT)


@torch.no_grad()
def test_logits_are_those_of_question_answering_in_transformers():
    """There the first [QUESTION] of a row asks."""
    theirs = random_model(SplinterForQuestionAnswering)
    ours = Splinter.from_huggingface(theirs)
    b = batch()
    start, end = ours(b["input_ids"], b["positions"][:, :1])
    gold = theirs(b["input_ids"])
    torch.testing.assert_close(start[:, 0], gold.start_logits, **CLOSE)
    torch.testing.assert_close(end[:, 0], gold.end_logits, **CLOSE)


@torch.no_grad()
def test_dropped_tokens_give_the_states_of_padding_that_nobody_attends_to():
    """As the released code has it: [QUESTION], then padding with attention 0; positions are a
    running sum over the attention mask."""
    theirs = random_model()
    ours = Splinter.from_huggingface(theirs)
    ids = torch.randint(1, 100, (1, 12), generator=torch.Generator().manual_seed(2))
    ids[0, [2, 7]] = QUESTION_ID  # spans of three and of two tokens
    stays = torch.ones(1, 12, dtype=torch.long)
    stays[0, [3, 4, 8]] = 0
    released = theirs(
        ids * stays,
        stays.double(),
        position_ids=stays.cumsum(1) - 1,
        question_positions=torch.tensor([[2, 7]]),
    )
    start, end = ours(ids[stays.bool()][None], torch.tensor([[2, 5]]))
    real = stays[0].bool()
    torch.testing.assert_close(start, released.start_logits[..., real], **CLOSE)
    torch.testing.assert_close(end, released.end_logits[..., real], **CLOSE)


def test_the_loss_by_hand():
    """Two questions in the first row, one in the second."""
    start, end = torch.zeros(2, 2, 4), torch.zeros(2, 2, 4)
    start[0, 0, 1] = 1.0
    answers = torch.tensor([[[1, 2], [0, 0]], [[3, 3], [-100, -100]]])
    first = -np.log(np.e / (np.e + 3))
    gold = (first + 5 * np.log(4)) / 2 / 3
    assert selection_loss(start, end, answers).item() == pytest.approx(gold)
    assert selection_loss(start, end, torch.full((2, 2, 2), -100)).item() == 0


def test_a_folder_of_transformers_opens(tmp_path):
    theirs = random_model()
    theirs.save_pretrained(tmp_path)
    ours, direct = (Splinter.from_huggingface(one) for one in (tmp_path, theirs))
    for name, weight in direct.state_dict().items():
        assert torch.equal(ours.state_dict()[name], weight.float()), name


def test_the_books_own_encoder_learns_to_point():
    """One passage by heart: the loss falls, and the answers are found."""
    torch.manual_seed(0)
    model = Splinter(BertEncoder(EncoderConfig.tiny(vocab_size=120, hidden_dropout_prob=0.0)))
    b = batch()
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(30):
        start, end = model(b["input_ids"], b["positions"], b["attention_mask"])
        adam.zero_grad()
        selection_loss(start, end, b["answers"]).backward()
        adam.step()
    assert torch.equal(start.argmax(-1), b["answers"][..., 0])
    assert torch.equal(end.argmax(-1), b["answers"][..., 1])
