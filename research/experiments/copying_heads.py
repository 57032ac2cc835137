"""Does a model copy words that its text says again, does fine-tuning leave that, and do the heads that
copy also answer? Chapter: `book/evidence/spans_and_boundaries`.

Only words of one token are asked for, so nothing is finished and nothing begun: a word that its
block says again is masked alone ("seen": the others are in view), then everywhere ("hidden"). It is
the same word in the same place; the difference is what the model takes from the others. The models
are `spanbert-mini` and, after fine-tuning, `spanbert-mini-squad`, with the MLM head of before.

Then each attention head is switched off, one at a time: how much of the difference is lost before
fine-tuning, and how much F1 on SQuAD 1.1 after it? One model of each kind, so nothing but the head
differs. Words said once are the control: a head that matters for everything costs them, too.

Last, what a head looks at before and after fine-tuning: of the attention that a token of the text
pays, if the question has the same token, the share that goes to it there ("matching").
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr

from research.grid import rounded
from research.measurements import words_in_parts
from research.measurements.words_in_parts import KINDS, Word
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.windows import encode, windows
from spanbert_tutorial.text.corpora import documents

WORDS = 300  # of each kind, at most
QUESTIONS = 1_000
BEFORE, AFTER = "spanbert-mini", "spanbert-mini-squad"
OTHERS = "bert-mini", "bert-mini-squad"


def content(folder: Path, valid: Path, data: Path) -> dict:
    """What is copied before and after fine-tuning, and what each head is worth to both."""
    model, wordpiece = load_checkpoint(data_path("checkpoints", BEFORE))
    answerer = QuestionAnswerer.from_pretrained(data_path("checkpoints", AFTER))
    words = words_in_parts.drawn(documents(valid), wordpiece, WORDS, several=False)
    test = squad.read(data / "dev-v1.1-half.json.xz")
    order = np.random.default_rng(0).permutation(len(test))[:QUESTIONS]
    questions = [test[i] for i in order]

    tuned, _ = load_checkpoint(data_path("checkpoints", BEFORE))  # its head on the tuned encoder
    tuned.encoder.load_state_dict(answerer.model.encoder.state_dict())
    found: dict = {
        BEFORE: {"words": measured(model, wordpiece, words)},
        AFTER: {"words": measured(tuned, wordpiece, words), "f1": f1(answerer, questions)},
    }
    names = [word for word in words if word.kind.startswith("name")]
    lost = []
    for layer, head in heads(model.encoder):
        with without(model.encoder, layer, head), without(answerer.model.encoder, layer, head):
            one = measured(model, wordpiece, names)
            score = f1(answerer, questions)
        found[f"without {layer + 1}.{head + 1}"] = {"words": one, "f1": score}
        print(f"head {layer + 1}.{head + 1}: F1 {score:.1f}", flush=True)
        lost.append((copied(found[BEFORE]["words"]) - copied(one), found[AFTER]["f1"] - score))
    rank = spearmanr(*zip(*lost, strict=True))
    for before, after in ((BEFORE, AFTER), OTHERS):
        checkpoint = data_path("checkpoints", after)
        tuned = QuestionAnswerer.from_pretrained(checkpoint)
        pretrained, _ = load_checkpoint(data_path("checkpoints", before))
        for name, one in ((before, pretrained), (after, tuned.model)):
            found.setdefault(name, {})["matching"] = matching(one.encoder, tuned, questions)
    found["heads"] = {"spearman": float(rank.statistic), "p": float(rank.pvalue)}
    return rounded(found)


def place(path: tuple) -> tuple | None:
    """A model, whole or without a head, is a condition."""
    return (path[0], path[1:])


def measured(model: PretrainingModel, wordpiece: WordPiece, words: Sequence[Word]) -> dict:
    """Kind → "seen" or "hidden" → how many were asked, right in %, nats; words said once are only
    "hidden"."""
    model.eval()
    found: dict = {kind: {} for kind in KINDS}
    for way, given in (
        ("seen", words),
        ("hidden", [everywhere(word, wordpiece) for word in words]),
    ):
        logs = words_in_parts.log_probabilities(model, wordpiece, given, "whole")
        gold = [word.ids[word.first] for word in words]
        right = [log[0].argmax() == one for log, one in zip(logs, gold, strict=True)]
        nats = [float(-log[0, one]) for log, one in zip(logs, gold, strict=True)]
        for kind, figures in words_in_parts.by_kind(words, right, nats).items():
            if way == "hidden" or kind.endswith("again"):
                found[kind][way] = figures
    return found


def everywhere(word: Word, wordpiece: WordPiece) -> Word:
    """The same with its other copies masked, too."""
    ids = np.where(word.ids == word.ids[word.first], wordpiece.mask_id, word.ids)
    return word._replace(ids=ids)


def copied(words: dict) -> float:
    """Nats that a name costs less because the block says it again."""
    name = words[KINDS[0]]
    return name["hidden"]["nats"] - name["seen"]["nats"]


def f1(answerer: QuestionAnswerer, questions: Sequence[squad.Question]) -> float:
    """In percent, always answering."""
    return squad.score(answerer.predict(questions)[0], questions)["f1"]


@torch.no_grad()
def matching(
    encoder: BertEncoder, answerer: QuestionAnswerer, questions: Sequence[squad.Question]
) -> dict[str, float]:
    """Head → percent of the attention of a token of the text that goes to the same token in the
    question, mean over the tokens that it has; "uniform": if all tokens got the same."""
    encoder.eval()
    sums: Counter[str] = Counter()
    for question in questions:
        (window, *_) = windows(
            encode(answerer.wordpiece, question.question, question.context),
            answerer.wordpiece,
            answerer.max_length,
            answerer.doc_stride,
        )
        ids = torch.tensor(window.ids)
        asked, text = slice(1, window.first - 1), slice(window.first, -1)
        same = ids[text][:, None] == ids[asked]
        rows = same.any(1)
        maps = encoder.attention_maps(ids[None], token_type_ids=torch.tensor(window.segments)[None])
        for layer, head in heads(encoder):
            share = (maps[layer][0, head, text, asked] * same).sum(1)
            sums[f"{layer + 1}.{head + 1}"] += 100 * float(share[rows].sum())
        sums["uniform"] += 100 * float(same.sum()) / len(ids)
        sums["tokens"] += int(rows.sum())
    tokens = sums.pop("tokens")
    return {name: total / tokens for name, total in sums.items()}


def heads(encoder: BertEncoder) -> list[tuple[int, int]]:
    """(layer, head) of each, counted from 0."""
    config = encoder.config
    numbers = range(config.num_hidden_layers), range(config.num_attention_heads)
    return [(layer, head) for layer in numbers[0] for head in numbers[1]]


@contextmanager
def without(encoder: BertEncoder, layer: int, head: int) -> Iterator[None]:
    """While this is open, a head's vectors do not reach its layer."""
    weight = encoder.layers[layer].attention.output.weight
    size = weight.shape[1] // encoder.config.num_attention_heads
    columns = slice(head * size, (head + 1) * size)
    kept = weight[:, columns].detach().clone()
    with torch.no_grad():
        weight[:, columns] = 0
        yield
        weight[:, columns] = kept
