"""What the experiment `masking_and_answers` reads, small and made up."""

import json
import lzma
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining.checkpoints import save_checkpoint
from spanbert_tutorial.pretraining.encoded_text import open_text
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective

# enough of them that most stand once in a block
WORDS = [
    a + b + c for a in ("ba", "de", "fi", "go") for b in ("lum", "ner", "pos") for c in "aeioumrst"
]


class Inputs(NamedTuple):
    text: Path
    start: Path
    valid: Path
    data: Path


def name(rng: np.random.Generator) -> str:
    """Of no meaning, and of several tokens."""
    return "".join(rng.choice(list("bdfklmnprst"), 8)).capitalize()


def article(rng: np.random.Generator, sentences: int) -> list[str]:
    """Sentences in which one name returns."""
    known = name(rng)
    found = []
    for _ in range(sentences):
        other = name(rng) if rng.random() < 0.3 else known
        words = list(rng.choice(WORDS, 11))
        found.append(" ".join(["Here", *words[:5], other, *words[5:]]) + ".")
    return found


def questions(rng: np.random.Generator, count: int) -> dict:
    """A file of SQuAD: who sells?"""
    articles = []
    for number in range(count):
        who = name(rng)
        context = " ".join(
            [*article(rng, 3), f"On market day {who} sells bread.", *article(rng, 2)]
        )
        answer = {"text": who, "answer_start": context.index(who)}
        qa = {"id": f"q{number}", "question": "Who sells bread on market day?", "answers": [answer]}
        articles.append({"title": f"t{number}", "paragraphs": [{"context": context, "qas": [qa]}]})
    return {"version": "1.1", "data": articles}


def inputs(folder: Path) -> Inputs:
    """Files in a folder."""
    rng = np.random.default_rng(0)
    documents = [article(rng, 30) for _ in range(60)]
    text = folder / "text.txt"
    text.write_text("\n\n".join("\n".join(one) for one in documents), encoding="utf-8")
    encoded = open_text(str(text), folder / "encoded", vocab_size=600, every=10)
    valid = folder / "valid.jsonl"
    rows = [json.dumps({"title": "x", "text": " ".join(article(rng, 40))}) for _ in range(4)]
    valid.write_text("\n".join(rows) + "\n", encoding="utf-8")
    data = folder / "squad"
    data.mkdir()
    for part, count in (("train-v1.1-part", 24), ("dev-v1.1-half", 12)):
        content = json.dumps(questions(rng, count)).encode()
        (data / f"{part}.json.xz").write_bytes(lzma.compress(content))
    start(folder / "start", encoded.wordpiece)
    return Inputs(folder / "encoded", folder / "start", valid, data)


def start(folder: Path, wordpiece: WordPiece) -> None:
    """An untrained checkpoint."""
    torch.manual_seed(0)
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = EncoderConfig.tiny(vocab_size=len(wordpiece), num_hidden_layers=1, **none)
    model = PretrainingModel(config, Objective.named("mlm"))
    save_checkpoint(folder, model, wordpiece, "mlm", {"README.md": "# start\n"})
