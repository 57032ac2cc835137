"""The check of the ALBERT chapter's exercise: the right count passes, each mistake is named."""

import pytest
import torch

from spanbert_tutorial.exercises.albert import CASES, MISTAKES, check_count, counted, diagnose_count
from spanbert_tutorial.relatives.albert import AlbertConfig, AlbertEncoder


def right(vocabulary, embedding, hidden, layers, sharing):
    attention = 4 * hidden**2 + 6 * hidden
    feed_forward = 8 * hidden**2 + 7 * hidden
    around = (vocabulary + 512 + 2 + 2) * embedding + (embedding + 1) * hidden
    attention *= 1 if sharing in ("all", "attention") else layers
    feed_forward *= 1 if sharing in ("all", "feed_forward") else layers
    return around + attention + feed_forward


def test_a_right_answer(capsys):
    check_count(right)
    assert capsys.readouterr().out.startswith("Correct")


@pytest.mark.parametrize("case", CASES)
def test_the_count_is_that_of_the_encoder(case):
    vocabulary, embedding, hidden, layers, sharing = case
    sizes = {
        "vocab_size": vocabulary,
        "embedding_size": embedding,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
    }
    config = AlbertConfig(
        num_attention_heads=1, intermediate_size=4 * hidden, sharing=sharing, **sizes
    )
    with torch.device("meta"):
        encoder = AlbertEncoder(config)
    assert sum(weight.numel() for weight in encoder.parameters()) == counted()(*case)


@pytest.mark.parametrize("mistake, sentence", MISTAKES)
def test_each_mistake_is_named(mistake, sentence):
    assert diagnose_count(mistake) == f"Not yet: {sentence}"


@pytest.mark.parametrize(
    "attempt, sentence",
    [
        (lambda *case: None, "returns nothing"),
        (lambda *case: right(*case) / 1, "returns 11092992.0 (float). Return a whole number"),
        (lambda *case: right(*case) + 5, "the count is 5 too high"),
        (lambda *case: right(*case) - 1_000, "the count is 1,000 too low"),
        (lambda vocabulary: 3, "stopped with TypeError"),
    ],
)
def test_other_answers(attempt, sentence):
    assert sentence in diagnose_count(attempt)
