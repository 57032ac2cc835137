"""Small models and their batches, for the tests of the training loop."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.batches import Interleaved, PretrainingData
from spanbert_tutorial.pretraining.checkpoints import save_checkpoint
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective, objective_or_mixture
from spanbert_tutorial.text.encoding import EncodedCorpus


class Toy(nn.Module):
    """Two-layer regression that speaks the loop's language: a batch in, losses out. A batch with
    "zero" gives a loss that is a number while its gradient is none, one with "infinite" a loss that
    is none while its gradient is a number."""

    def __init__(self, seed: int = 0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.second = nn.Linear(8, 1)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.5)

    def forward(self, batch: dict) -> dict:
        guess = self.second(torch.tanh(self.norm(self.first(batch["x"]))))[:, 0]
        main = (guess - batch["y"]).square().mean()
        size = guess.square().mean()
        loss = main + 0.1 * size
        if "zero" in batch:
            loss = loss + (self.first.weight.sum() * 0 + batch["zero"]).sqrt()
        if "infinite" in batch:
            loss = loss + batch["infinite"]
        return {"loss": loss, "main": main, "size": size}


def toy_batches(count: int, seed: int = 1) -> list[dict]:
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(16, 4, generator=generator) for _ in range(count)]
    return [{"x": x, "y": x[:, 0] - 2 * x[:, 1]} for x in inputs]


class Placed(list):
    """A list of batches for runs whose snapshots nobody reads."""

    def state_dict(self) -> dict:
        return {}


class Breaking:
    """Batches that can be kept, of a machine that goes away after so many of them."""

    def __init__(self, batches, after: int):
        self.batches = batches
        self.left = after
        self.state_dict = batches.state_dict
        self.load_state_dict = batches.load_state_dict

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise ConnectionError("the machine went away")
        self.left -= 1
        return next(self.batches)


def data_of(objective: Objective, by_length: bool = False) -> PretrainingData:
    """Twenty documents of different length."""
    rng = np.random.default_rng(0)
    ends = np.cumsum(rng.integers(3, 15, 80))
    corpus = EncodedCorpus(rng.integers(5, 2_000, ends[-1]).astype(np.uint16), ends, ends[3::4])
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    return PretrainingData(corpus, wordpiece, objective, 48, batch_size=4, by_length=by_length)


def batches_of(name: str, seed: int = 1):
    """Batches of an objective or of a mixture."""
    objective = objective_or_mixture(name)
    if name in OBJECTIVES:
        return data_of(objective).batches(np.random.default_rng(seed))
    parts = {part: data_of(row) for part, row in objective.parts.items()}
    return Interleaved(parts, objective.weights, np.random.default_rng(seed))


def model_of(name: str, dropout: float = 0.0) -> PretrainingModel:
    """A small model of an objective or of a mixture, always the same, in training mode."""
    sizes = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    torch.manual_seed(0)
    config = EncoderConfig.tiny(vocab_size=2_000, num_hidden_layers=1, **sizes)
    return PretrainingModel(config, objective_or_mixture(name)).train()


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    """To the last bit."""
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def corpus_of(vocabulary: int, seed: int) -> EncodedCorpus:
    """160 sentences of random tokens, four to a document."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(6, 15, 160))
    ids = rng.integers(5, vocabulary, ends[-1]).astype(np.uint16)
    return EncodedCorpus(ids, ends, ends[3::4])


def save_start(folder: Path, wordpiece: WordPiece, seed: int) -> Path:
    """Writes a tiny untrained SpanBERT, from which an experiment goes on."""
    torch.manual_seed(seed)
    config = EncoderConfig.tiny(vocab_size=len(wordpiece))
    model = PretrainingModel(config, Objective.named("span+sbo"))
    save_checkpoint(folder, model.eval(), wordpiece, "span+sbo", {})
    return folder
