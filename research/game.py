"""The rounds of the game *Beat the boundary*, with what both heads of `spanbert-mini` predict.

`python -m research.game` draws them again and writes `data/beat_the_boundary.json`.
"""

import json
from typing import Any

import numpy as np

from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures.try_it import GAME, MINI, pretrained
from spanbert_tutorial.pretraining.model import fill_masks
from spanbert_tutorial.spanbert.span_masking import clipped_geometric
from spanbert_tutorial.text.sentences import split_sentences

ROUNDS = 60
SEED = 0
WORDS = (8, 20)  # of a sentence
LONGEST = 2  # words of a span: of three or more, this model gets hardly one right
BEST = 3  # predictions stored for each word
HEADS = ("mlm", "sbo")
SOURCE = {
    "text": "data/reader/reader.json",
    "licence": "CC BY 4.0, by the authors of this project",
    "checkpoint": MINI,
    "seed": SEED,
}


def draw_rounds() -> list[dict[str, Any]]:
    """Sentences of the reader in a random order, each with a span at a random place, its length by
    SpanBERT's distribution up to `LONGEST`; a span counts if it and its neighbors are letters only,
    and each of their words is one token."""
    articles = json.loads(data_path("reader", "reader.json").read_text(encoding="utf-8"))["data"]
    paragraphs = [(one["title"], p["context"]) for one in articles for p in one["paragraphs"]]
    sentences = [(title, s) for title, text in paragraphs for s in split_sentences(text)]
    wordpiece = pretrained(MINI)[1]
    rng = np.random.default_rng(SEED)
    lengths = clipped_geometric()[:LONGEST]
    rounds: list[dict[str, Any]] = []
    for place in rng.permutation(len(sentences)):
        title, text = sentences[place]
        words = split_words(text)
        if not WORDS[0] <= len(words) <= WORDS[1]:
            continue
        many = int(1 + rng.choice(LONGEST, p=lengths / lengths.sum()))
        first = int(rng.integers(1, len(words) - many))
        shown = words[first - 1 : first + many + 1]
        if all(word.isalpha() and len(wordpiece.encode(word)) == 1 for word in shown):
            rounds.append({"title": title, "text": text, "masked": [first, first + many - 1]})
        if len(rounds) == ROUNDS:
            break
    return rounds


def predict(one: dict[str, Any]) -> dict[str, dict[str, list]]:
    """What each head predicts, "near" from the two neighbors alone, and "whole" from the sentence:
    for each masked word its top tokens with their probabilities."""
    words = split_words(one["text"])
    first, last = one["masked"]
    gap = ["[MASK]"] * (last - first + 1)
    texts = {
        "near": [words[first - 1], *gap, words[last + 1]],
        "whole": [*words[:first], *gap, *words[last + 1 :]],
    }
    found = {}
    for view, seen in texts.items():
        (filled,) = fill_masks(*pretrained(MINI), " ".join(seen), BEST)
        found[view] = {
            head: [[(token, round(p, 3)) for token, p in row] for row in filled.predictions[head]]
            for head in HEADS
        }
    return found


def wins(rounds: list[dict[str, Any]], view: str, head: str) -> int:
    """In how many rounds the head predicts the whole span."""
    return sum(
        [row[0][0] for row in one[view][head]]
        == split_words(one["text"])[one["masked"][0] : one["masked"][1] + 1]
        for one in rounds
    )


if __name__ == "__main__":
    drawn = [one | predict(one) for one in draw_rounds()]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in drawn)
    head = json.dumps(SOURCE, indent=1)[:-2]
    file = data_path("reader").with_name(GAME)
    file.write_text(f'{head},\n "rounds": [\n{lines}\n]}}\n', encoding="utf-8")
    for view in ("near", "whole"):
        print(view, {name: wins(drawn, view, name) for name in HEADS}, "of", len(drawn))
