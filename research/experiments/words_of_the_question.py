"""Which words of a text stand in the question, too? What a linear probe reads at each layer, before
any fine-tuning. Chapter: `book/tasks/real_questions`.

Whoever looks for an answer has to see which words of the text the question repeats. The probe is
asked it of single tokens of the text, in windows of SQuAD 1.1: first tokens of words that are not
frequent, in each window as many that the question has as others. It learns from the training set
and is scored on the development set. Controls: new weights, and the states below the first layer,
which know a token and its position but not the others; they still tell which words questions
repeat more often.

The models were trained alike but for the masks (see `copying_and_answers`); two are shipped, and
`--arms` is the folder of the others.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from research.grid import rounded
from research.measurements.frozen_states import accuracy, layer_states, linear_probe
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import PRESETS, QuestionAnsweringData
from spanbert_tutorial.tasks.squad import Question

MODELS = ("mlm", "bert-mini", "spanbert-mini", "mix")
OTHERS = ("mlm", "mix")
WINDOWS = 2_000  # of training questions, and at most as many of unseen ones
QUESTIONS = 1_000  # unseen
FREQUENT = 200  # tokens that are not asked about: function words and punctuation


def content(folder: Path, arms: Path, data: Path) -> dict:
    """Percent right at each layer: `layer 0` is below the first one."""
    test = squad.read(data / "dev-v1.1-half.json.xz")
    order = np.random.default_rng(0).permutation(len(test))[:QUESTIONS]
    questions = squad.read(data / "train-v1.1-part.json.xz"), [test[i] for i in order]
    found = {}
    for name in MODELS:
        place = arms / name if name in OTHERS else data_path("checkpoints", name)
        encoder = BertEncoder.read(place)[0]
        wordpiece = WordPiece.from_file(place / "tokenizer.json")
        groups = [asked(group, wordpiece) for group in questions]
        found[name] = probed(encoder, groups)
    new = BertEncoder(encoder.config, torch.Generator().manual_seed(0))
    found["new weights"] = probed(new, groups)
    tokens = (sum(len(at) for _, _, at, _ in group) for group in groups)
    found["tokens"] = dict(zip(("learned from", "scored"), tokens, strict=True))
    return rounded(found)


def place(path: tuple) -> tuple | None:
    """A model is a condition."""
    return None if path[0] == "tokens" else (path[0], path[1:])


Asked = list[tuple[Tensor, ...]]


def asked(questions: Sequence[Question], wordpiece: WordPiece) -> Asked:
    """Of windows: ids and segments int64 [n], the positions that are asked about int64 [t], and
    whether the question has the token there, 0 or 1 [t]."""
    data = QuestionAnsweringData(questions, wordpiece, PRESETS["short-first"])
    rng = np.random.default_rng(0)
    counts = np.bincount(np.concatenate([one.ids for one in data.inputs]), minlength=len(wordpiece))
    rank = np.argsort(np.argsort(-counts, kind="stable"))
    wanted = wordpiece.starts & (rank >= FREQUENT)
    found = []
    for row in rng.permutation(len(data))[:WINDOWS]:
        ids, segments = (
            np.array(part) for part in (data.inputs[row].ids, data.inputs[row].segments)
        )
        candidates = (segments == 1) & wanted[ids]
        repeated = np.isin(ids, ids[segments == 0])
        both = [np.flatnonzero(candidates & one) for one in (repeated, ~repeated)]
        size = min(map(len, both))
        at = np.concatenate([rng.permutation(one)[:size] for one in both])
        label = np.repeat([1, 0], size)
        found.append(tuple(torch.from_numpy(part) for part in (ids, segments, at, label)))
    return found


def probed(encoder: BertEncoder, groups: Sequence[Asked]) -> dict[str, float]:
    """Percent right on the second group, by layer."""
    (train_x, train_y), (test_x, test_y) = (states(encoder.eval(), group) for group in groups)
    return {
        f"layer {layer}": 100 * accuracy(linear_probe(x, train_y), test_x[layer], test_y)
        for layer, x in enumerate(train_x)
    }


@torch.no_grad()
def states(encoder: BertEncoder, group: Asked) -> tuple[list[Tensor], Tensor]:
    """The states that are read, by layer [t,H], and the labels [t], over all windows."""
    rows = []
    for ids, segments, at, _ in group:
        every = torch.ones(1, len(ids), len(ids), dtype=torch.bool)
        rows.append([one[0, at] for one in layer_states(encoder, ids[None], every, segments[None])])
    labels = torch.cat([label for *_, label in group])
    return [torch.cat(layer) for layer in zip(*rows, strict=True)], labels
