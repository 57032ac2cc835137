"""What is a pre-training question worth that is nearer to the task? Chapter:
`book/tasks/released_spanbert`.

From `spanbert-mini` (`--start`) training goes on over Wikipedia, for the same number of tokens
(`RUN`): with the boundary objective, with single tokens, or with recurring span selection ("rss",
Splinter's: words that a passage says again are replaced by one [QUESTION], which points at the copy
that is left; `relatives.splinter`). [QUESTION] is a new token of the vocabulary; it starts as
[MASK]. The same seed gives all the same blocks in the same order.

Then each model learns from a few questions of SQuAD 1.1, three samples, the same for all, and is
scored on 1,000 others. Rss keeps its head: a [QUESTION] behind the question points at the answer.
The others get the usual new layer; "span+sbo, pointing" is "span+sbo" with Splinter's head, untrained.

`CLAIMS` stood here before the first run; a pilot had been seen (20.5, 21.8 F1, against 9.6, 10.9).
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from research.experiments.few_questions_here import files, plan_of
from research.experiments.spans_on_wikipedia import begun_from, open_wikipedia
from research.experiments.whole_words import RUN as LIKE
from research.experiments.whole_words import continued
from research.grid import as_json, fingerprint, rounded, text_facts
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.inputs import NO_TARGET, frame
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import whole_folder, write_json
from spanbert_tutorial.engine.hooks import ProgressBar
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.pretraining.batches import Batches
from spanbert_tutorial.pretraining.checkpoints import continue_from, load_checkpoint
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import train
from spanbert_tutorial.relatives.splinter import (
    QUESTION,
    Splinter,
    ask_questions,
    selection_loss,
)
from spanbert_tutorial.spanbert.single_sequence import single_sequence_blocks
from spanbert_tutorial.tasks import few_questions, squad
from spanbert_tutorial.tasks.fine_tuning import padded
from spanbert_tutorial.tasks.question_answering import (
    PRESETS,
    QuestionAnsweringData,
    QuestionAnsweringModel,
    fine_tune,
)
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.squad_negatives import WordWeights, type_guess
from spanbert_tutorial.text.encoding import EncodedCorpus

SEEDS = 3
RSS, SPANS, TOKENS = "rss", "span+sbo", "mlm"
POINTING = f"{SPANS}, pointing"
ARMS = (RSS, SPANS, TOKENS, POINTING)  # in the order in which they are run
RUN = replace(LIKE, steps=1_250, batch_size=32, peak_learning_rate=1e-3)  # 10.2 M tokens
SIZES = (16, 64, 128, 512, 1_024)
CLAIMS = {
    "primary": "F1 after 512 questions, rss minus span+sbo, paired by seed, with a 95% interval beyond "
    "0. If so, a question nearer to the task is worth more than going on; if not, the pilot saw one "
    "lucky run",
    "labels": "rss after 128 questions is not below span+sbo after 1,024: pointing is worth eight times "
    "the labels",
    "head": "span+sbo with Splinter's untrained head is within 3 points of span+sbo with the usual "
    "layer after 512 questions: the gain is the pointing's, not the head's",
    "tokens": "mlm within 3 points of span+sbo after 512 questions: any other 10 M tokens do as well as "
    "these",
    "bar": "rss after 1,024 questions is above the program that knows the type of the answer and reads "
    "nothing else",
}
SETTINGS = {
    "run": RUN,
    "sizes": SIZES,
    "samples": 3,
    "scored": 1_000,
    "min_steps": 200,
    "fine_tuning": replace(PRESETS["small"], epochs=2.0, answers_only=True),
    "held_out_blocks": 600,
    "claims": CLAIMS,
}


# --- recurring span selection as something to train on ------------------------------


@dataclass
class Passages:
    """Blocks of a corpus with the words that they say again asked for, for `Batches`. wordpiece: one
    that has [QUESTION]."""

    corpus: EncodedCorpus
    wordpiece: WordPiece
    max_length: int
    batch_size: int
    by_length: bool = True

    def __post_init__(self) -> None:
        room = self.max_length - 2
        self.ranges = single_sequence_blocks(self.corpus, self.wordpiece.starts, room).ranges
        self.number = {token: i for i, token in enumerate(self.wordpiece.vocabulary)}

    def __len__(self) -> int:
        return len(self.ranges)

    def lengths(self) -> np.ndarray:
        """Tokens of each block before words are masked, int [blocks]."""
        return np.diff(self.ranges, axis=1)[:, 0] + 2

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        """input_ids int64 [B,n], attention_mask bool [B,n]; of each question its place, positions
        [B,k], and its answer, answers [B,k,2], −100 where a row has fewer."""
        wordpiece = self.wordpiece
        inputs, positions, answers = [], [], []
        for start, end in self.ranges[rows]:
            asked = ask_questions(wordpiece.tokens(self.corpus.ids[start:end].tolist()), rng)
            ids = [self.number[token] for token in asked.tokens]
            inputs.append(frame(ids, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)[0])
            positions.append(asked.positions + 1)  # behind [CLS]
            answers.append(asked.answers + 1)
        ids = padded(inputs, wordpiece.pad_id)
        lengths = torch.tensor([len(one) for one in inputs])
        return {
            "input_ids": ids,
            "attention_mask": torch.arange(ids.shape[1]) < lengths[:, None],
            "positions": padded(positions, 0),
            "answers": padded(answers, NO_TARGET),
        }


class Pointing(nn.Module):
    """Splinter, called with a batch of `Passages`."""

    def __init__(self, encoder: BertEncoder) -> None:
        super().__init__()
        self.splinter = Splinter(encoder)

    def scores(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Start and end logits, [B,k,n] each."""
        return self.splinter(batch["input_ids"], batch["positions"], batch["attention_mask"])

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": nats a side}."""
        return {"loss": selection_loss(*self.scores(batch), batch["answers"])}


def with_question(encoder: BertEncoder, wordpiece: WordPiece) -> tuple[BertEncoder, WordPiece]:
    """The same encoder and vocabulary with [QUESTION], which starts as [MASK]."""
    larger = wordpiece.with_tokens([QUESTION])
    larger.library.add_special_tokens([QUESTION])  # a text may name it
    state = encoder.state_dict()
    name = "embeddings.word_embeddings.weight"
    words = state[name][: len(wordpiece)]
    state[name] = torch.cat([words, words[wordpiece.mask_id][None]])
    grown = BertEncoder(replace(encoder.config, vocab_size=len(larger)))
    grown.load_state_dict(state)
    return grown, larger


@torch.no_grad()
def found_again(model: Pointing, passages: Passages, blocks: int) -> dict[str, float]:
    """Of unseen text the loss, and how often start and end are both right, in %. By chance: of a
    model that points at every token alike."""
    rows = np.random.default_rng(0).permutation(len(passages))[:blocks]
    rng = np.random.default_rng(1)
    loss, chance, right, count = 0.0, 0.0, 0, 0
    model.eval()
    for part in np.array_split(rows, max(1, len(rows) // 32)):
        batch = passages.batch(part, rng)
        start, end = model.scores(batch)
        asked = batch["answers"][..., 0] != NO_TARGET
        both = torch.stack([start.argmax(-1), end.argmax(-1)], dim=-1)
        right += int((both == batch["answers"]).all(-1)[asked].sum())
        loss += float(selection_loss(start, end, batch["answers"])) * int(asked.sum())
        chance += float(batch["attention_mask"].sum(1).log() @ asked.sum(1).float())
        count += int(asked.sum())
    return {
        "nats": loss / count,
        "chance": chance / count,
        "right": 100 * right / count,
        "questions": count,
    }


# --- answering by pointing ----------------------------------------------------------


class PointingAnswerer(QuestionAnsweringModel):
    """Answers by the [QUESTION] that stands behind the question."""

    def __init__(self, splinter: Splinter, question_id: int) -> None:
        nn.Module.__init__(self)
        self.encoder = splinter.encoder
        self.head = splinter.head
        self.question_id = question_id

    def scores(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Start and end logits, [B,n] each."""
        place = (batch["input_ids"] == self.question_id).int().argmax(1)
        start, end = self.head(self.encoder.of(batch), place[:, None], batch["attention_mask"])
        return start[:, 0].float(), end[:, 0].float()


def marked(questions: Sequence[Question]) -> list[Question]:
    """The same with [QUESTION] behind each question."""
    return [replace(one, question=f"{one.question} {QUESTION}") for one in questions]


# --- what it needs ------------------------------------------------------------------


class Given(NamedTuple):
    """known, asked: questions to learn from and to score; models: folder that keeps the trained ones,
    and the state of those that are being trained."""

    text: EncodedText
    start: Path
    models: Path
    known: list[Question]
    asked: list[Question]


def prepare(
    folder: Path,
    settings: Mapping,
    corpus: Path,
    valid: Path,
    start: Path,
    data: Path,
    models: Path,
) -> tuple[dict, tuple]:
    """Text without the titles of SQuAD's development set, another file to measure on, questions."""
    text = open_wikipedia(folder, corpus, valid, start)
    known, asked = few_questions.questions_of(plan_of(start, settings, *files(data)))
    facts = {"begun_from": begun_from(start), "known": len(known)}
    facts["questions_fingerprint"] = fingerprint(known, asked)
    return text_facts(text) | facts, (Given(text, start, models, known, asked),)


def beside(settings: Mapping, given: Given) -> dict:
    """The program that knows the type of the answer and reads nothing else."""
    weights = WordWeights(sorted({question.context for question in given.asked}))
    texts = {question.id: type_guess(question, weights).text for question in given.asked}
    scores = squad.score(texts, given.asked)
    return {"controls": {"type": {name: scores[name] for name in ("exact", "f1")}}}


def place(path: tuple) -> tuple | None:
    """A control is a condition."""
    return (path[1], path[2:]) if path[0] == "controls" else None


# --- running ------------------------------------------------------------------------


def one(arm: str, seed: int, settings: Mapping, given: Given) -> list[dict]:
    """A continuation, kept in a folder of `models`, and its answers, a row for each sample of each
    size. What is finished is kept, so that a stopped command goes on."""
    given.models.mkdir(parents=True, exist_ok=True)
    name = f"{SPANS if arm == POINTING else arm}-{seed}"
    run = replace(settings["run"], seed=seed)
    target = given.models / name
    if arm == RSS:
        model, wordpiece, found = pointed(target, run, settings, given)
        rows = [{"pointing": rounded(found)}]
    else:
        objective = SPANS if arm == POINTING else arm
        run = replace(run, objective=objective)
        continued(
            target,
            run,
            Objective.named(objective),
            given.text,
            given.start,
            run.steps,
            lambda model, step: {},
        )
        trained, wordpiece = load_checkpoint(target)
        model, rows = trained.encoder, []
        if arm == POINTING:
            torch.manual_seed(seed)
            encoder, wordpiece = with_question(model, wordpiece)
            model = Splinter(encoder)
    kept = given.models / f"{arm.replace(', ', '-')}-{seed}.answers.json"
    done = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for sample in range(settings["samples"]):
        few = few_questions.nested_samples(given.known, settings["sizes"], sample)
        for size in settings["sizes"]:
            key = f"{size} {sample}"
            if key not in done:
                done[key] = answers(model, wordpiece, few[size], sample, settings, given)
                write_json(kept, done)
            rows.append({"fine_tuning": str(sample), f"questions, {size}": done[key]})
    return rows


def answers(
    start: BertEncoder | Splinter,
    wordpiece: WordPiece,
    few: list[Question],
    sample: int,
    settings: Mapping,
    given: Given,
) -> dict[str, float]:
    """F1 and exact match after a few questions."""
    asked = given.asked
    model: BertEncoder | QuestionAnsweringModel
    if isinstance(start, Splinter):
        few, asked = marked(few), marked(asked)
        question_id = wordpiece.vocabulary.index(QUESTION)
        model = PointingAnswerer(deepcopy(start), question_id)
    else:
        model = deepcopy(start)
    how = replace(settings["fine_tuning"], seed=sample)
    windows = QuestionAnsweringData(few, wordpiece, how)
    tokens = settings["min_steps"] * how.batch_size * how.max_length
    epochs = max(how.epochs, tokens / int(windows.lengths().sum()))
    answerer, _ = fine_tune(model, wordpiece, windows, replace(how, epochs=epochs))
    scores = few_questions.score(answerer, asked)
    print(f"{len(few)} questions, sample {sample}: {scores['f1']:.1f}", flush=True)
    return rounded({"f1": scores["f1"], "exact": scores["exact"]})


def pointed(
    target: Path, run: Run, settings: Mapping, given: Given
) -> tuple[Splinter, WordPiece, dict]:
    """The model that went on with recurring span selection, with its vocabulary and figures."""
    torch.manual_seed(run.seed)
    encoder, wordpiece = with_question(
        continue_from(given.start, SPANS, run.seed)[0].encoder, given.text.wordpiece
    )
    model = Pointing(encoder)
    weights, figures = target / "model.safetensors", target / "facts.json"
    if not target.exists():
        shape = wordpiece, run.max_length, run.batch_size
        batches = Batches(
            Passages(given.text.train, *shape), np.random.default_rng(1_000 + run.seed)
        )
        state = target.with_name(f"{target.name}.run")
        about = json.dumps(as_json({"run": run, "begun_from": begun_from(given.start)}))
        with closing(ProgressBar()) as bar:
            snapshots = Snapshots(state / "snapshots", {"about": about})
            train(model, batches, run.recipe(), [snapshots, bar])
        held_out = Passages(given.text.held_out, *shape)
        found = found_again(model, held_out, settings["held_out_blocks"])
        with whole_folder(target) as made:
            save_file(model.state_dict(), made / weights.name)
            write_json(made / figures.name, found)
        shutil.rmtree(state)
    model.load_state_dict(load_file(weights))
    return model.splinter, wordpiece, json.loads(figures.read_text(encoding="utf-8"))
