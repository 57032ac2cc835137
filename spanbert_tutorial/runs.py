"""One pre-training run, from text to a trained model, with settings that leave the plateau. Chapter:
`book/spanbert/pretraining_spanbert`.
"""

import json
import lzma
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from spanbert_tutorial import almanac
from spanbert_tutorial.batches import PretrainingData, unigram_entropy
from spanbert_tutorial.bert import EncoderConfig, set_dropout
from spanbert_tutorial.checkpoints import read_vocabulary
from spanbert_tutorial.context_free import context_free
from spanbert_tutorial.corpora import Document, EncodedCorpus, documents, encode_corpus, split_sentences
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.loop import History, Recipe, train
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError, NoRoom
from spanbert_tutorial.masking import TokenMasking
from spanbert_tutorial.objectives import Objective
from spanbert_tutorial.pretraining import PretrainingModel, measure, start_positions_from_sinusoids
from spanbert_tutorial.span_masking import SpanMasking
from spanbert_tutorial.wordpiece import WordPiece

PARTS = {"train": False, "held_out": True}  # folder → whether its documents are held out
HELD_OUT_EVERY = 50  # of the documents of a user's corpus, one in fifty is kept for measuring, if nobody asks otherwise
ALMANAC_PIECES = 2_000  # vocabulary of the almanac
WATCHED_BATCHES = 8  # of held-out text, for the curve of a run
GAPS_SEED = 12345  # the gaps in held-out text, the same for every model
VOCABULARY_SENTENCES = 1_000_000  # enough to learn a vocabulary from, and they fit into memory


@dataclass(frozen=True)
class Run:
    """Settings of a run. length: n with [CLS] and [SEP]; batch_size in blocks; accumulate: batches of a step.

    initializer_range: deviation of the first weights; BERT's 0.02 suits a width of 768, narrow layers start too flat
    with it and stay on the plateau for longer. sinusoidal_positions: whether the position table starts from sinusoids.
    Both are measured in the chapter `book/bert/pretraining`. by_length: batches of equally long blocks, see `batches`.
    warmup: share of the steps in which the learning rate rises, at least one step. dropout, beta2, epsilon,
    weight_decay: no dropout, and RoBERTa's second Adam beta, suit short runs in which blocks return seldom.
    """

    objective: str = "span+sbo"
    size: str = "tiny"
    steps: int = 1_000
    length: int = 64
    batch_size: int = 32
    peak_learning_rate: float = 3e-3
    seed: int = 0
    initializer_range: float = 0.06
    sinusoidal_positions: bool = True
    by_length: bool = False
    accumulate: int = 1
    warmup: float = 0.1
    dropout: float = 0.0
    beta2: float = 0.98
    epsilon: float = 1e-6
    weight_decay: float = 0.01

    def recipe(self) -> Recipe:
        """How the training loop takes these settings."""
        rising = max(1, int(self.warmup * self.steps))
        adam = {"betas": (0.9, self.beta2), "epsilon": self.epsilon, "weight_decay": self.weight_decay}
        return Recipe(self.steps, self.peak_learning_rate, rising, accumulate=self.accumulate, **adam)


AS_BERT = {"initializer_range": 0.02, "sinusoidal_positions": False, "by_length": True}
MINI = {"initializer_range": 0.03, "by_length": True}  # a little above BERT's 0.02: wider than tiny, narrower than base

# BERT §A.2 and SpanBERT §4.2: 256 inputs of at most 512 tokens a step, in parts that a graphics card holds (here as
# many tokens, in inputs of about equal length), and a warm-up of 10,000 steps.
AS_PAPERS = AS_BERT | {"peak_learning_rate": 1e-4, "length": 512, "dropout": 0.1, "beta2": 0.999}
BERT = {"steps": 1_000_000, "warmup": 1 / 100, "epsilon": 1e-6, "weight_decay": 0.01}
SPANBERT = {"steps": 2_400_000, "warmup": 1 / 240, "epsilon": 1e-8, "weight_decay": 0.1}
PAPERS = {"token": BERT, "span": SPANBERT}  # by the unit of the objective, for the papers' sizes

# What each size starts from; see `preset`.
RUNS = {
    "tiny": Run(),
    "mini": Run(size="mini", steps=5_000, length=128, batch_size=64, peak_learning_rate=1.5e-3, **MINI),
    "small": Run(size="small", steps=50_000, length=128, batch_size=64, peak_learning_rate=5e-4, **AS_BERT),
    "base": Run(size="base", batch_size=32, accumulate=8, **AS_PAPERS),
    "large": Run(size="large", batch_size=16, accumulate=16, **AS_PAPERS),
}


def preset(size: str, objective: str) -> Run:
    """What a run of this size and objective starts from; the command's options change single values. base and large
    have SpanBERT's recipe where spans are hidden, else BERT's. Raises InputError for an unknown size or objective."""
    unit = Objective.named(objective).unit
    if size not in RUNS:
        raise InputError(f'the config "{size}" is unknown: use one of {", ".join(RUNS)}.')
    recipe = PAPERS[unit] if size in ("base", "large") else {}
    return replace(RUNS[size], objective=objective, **recipe)


@dataclass(frozen=True)
class EncodedText:
    """Encoded text to train on and to measure on, with the vocabulary that encoded it."""

    train: EncodedCorpus
    held_out: EncodedCorpus
    wordpiece: WordPiece

    @cached_property
    def unigram_entropy(self) -> float:
        """In nats, of the training text's pieces."""
        return unigram_entropy(self.train.ids, len(self.wordpiece))


def parts(
    source: str, held_out: bool, leave_out: Collection[str] = (), every: int = HELD_OUT_EVERY
) -> Iterator[Document]:
    """The training or the held-out documents of the almanac or of a path (there one in `every` is held out), without
    those with a title in `leave_out`."""
    if source == "almanac":
        for document in almanac.read("validation" if held_out else "train"):
            yield split_sentences(document["text"])
    else:
        for number, document in enumerate(documents(source, leave_out)):
            if (number % every == every - 1) == held_out:
                yield document


def open_text(
    source: str,
    folder: str | Path,
    vocabulary: str | Path | None = None,
    vocab_size: int = 8_000,
    leave_out: Collection[str] = (),
    every: int = HELD_OUT_EVERY,
) -> EncodedText:
    """Encodes the shipped almanac (`source="almanac"`) or the corpus at a path into `folder`, once.

    vocabulary: a vocab.txt, a tokenizer.json, or a checkpoint that holds one; None means the almanac's own, or for a
    path a new one of `vocab_size`. leave_out: titles of documents that are neither trained nor measured on (for
    `.jsonl` files). every: of the documents of a path, one in so many is held out. Raises InputError; NoRoom when it
    cannot be written.
    """
    if vocabulary is None and source == "almanac":
        vocabulary = data_path("almanac", "vocab.txt")
    if vocabulary is not None:
        wordpiece = read_vocabulary(vocabulary)
    else:
        sentences = (one for document in parts(source, False, leave_out, every) for one in document)
        wordpiece = WordPiece.train(list(islice(sentences, VOCABULARY_SENTENCES)), vocab_size)
    try:
        encoded = [
            encode_corpus(
                parts(source, held_out, leave_out, every), wordpiece.encode_many, len(wordpiece), Path(folder, name)
            )
            for name, held_out in PARTS.items()
        ]
        wordpiece.save(folder)  # last: the sign that the text is whole
    except InputError as error:
        hint = f" A corpus needs at least {every} documents: one in {every} is kept for measuring."
        raise InputError(f"{source}: {error}{hint if source != 'almanac' else ''}") from None
    except OSError as error:
        told = f"{source} cannot be encoded into {folder} ({error})"
        raise NoRoom(f"{told}: make room, or give another --output.") from None
    return EncodedText(*encoded, wordpiece)


def reopen_text(folder: str | Path) -> EncodedText:
    """The text that `open_text` encoded into `folder`, without the files that it came from."""
    if not Path(folder, "tokenizer.json").is_file():
        raise InputError(f"{folder} holds no whole encoded text: remove {Path(folder).parent} and start the run anew.")
    wordpiece = WordPiece.from_file(Path(folder, "tokenizer.json"))
    return EncodedText(*(EncodedCorpus.load(Path(folder, name)) for name in PARTS), wordpiece)


def write_almanac(folder: str | Path) -> None:
    """Writes the almanac and its vocabulary from the seed. Raises InputError when the folder cannot be written."""
    path = almanac.write(folder)
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        written = [json.loads(line) for line in lines]
    sentences = [s for d in written if d["split"] == "train" for s in split_sentences(d["text"])]
    WordPiece.train(sentences, ALMANAC_PIECES).save_vocabulary(Path(folder) / "vocab.txt")


def new_model(run: Run, text: EncodedText) -> PretrainingModel:
    """An untrained model of the run's size, the same for the same seed."""
    changes = {"hidden_dropout_prob": run.dropout, "attention_probs_dropout_prob": run.dropout}
    changes["initializer_range"] = run.initializer_range
    config = EncoderConfig.preset(run.size, vocab_size=len(text.wordpiece), **changes)
    if run.length > config.max_position_embeddings:
        raise InputError(f"a length of {run.length} is over {config.max_position_embeddings} positions: give less.")
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        model = PretrainingModel(config, Objective.named(run.objective))
    if run.sinusoidal_positions:
        start_positions_from_sinusoids(model.encoder)
    return model


def training_data(run: Run, text: EncodedText) -> PretrainingData:
    """The blocks that the run trains on."""
    objective = Objective.named(run.objective)
    return PretrainingData(
        text.train, text.wordpiece, objective, run.length, run.batch_size, by_length=run.by_length
    )


def pretrain(
    run: Run, text: EncodedText, model: PretrainingModel | None = None, snapshots: Snapshots | None = None
) -> tuple[PretrainingModel, History]:
    """Trains a new model, or goes on with `model`, with the run's dropout. The same run on the same text gives the same
    batches."""
    model = model or new_model(run, text)
    set_dropout(model, run.dropout)
    data = training_data(run, text)
    batches = data.batches(np.random.default_rng(run.seed))
    watch = partial(held_out_losses, model, run, text)
    return model, train(model, batches, run.recipe(), text.unigram_entropy, snapshots, watch)


def rehearse(run: Run, text: EncodedText, model: PretrainingModel, steps: int = 4) -> tuple[int, float, float]:
    """A few steps of a run. Returns the number of parameters, and seconds and tokens a step (of all processes)."""
    data = training_data(run, text)
    batches = list(islice(data.batches(np.random.default_rng(run.seed)), steps + 1))
    recipe = Recipe(steps + 1, run.peak_learning_rate, warmup_steps=1)  # of one batch each
    moments: list[float] = []
    train(model, noting(batches, moments), recipe)
    tokens = processes().num_processes * sum(int(batch["attention_mask"].sum()) for batch in batches) / len(batches)
    return sum(weight.numel() for weight in model.parameters()), (moments[-1] - moments[1]) / (steps - 1), tokens


def noting(batches: list[dict], moments: list[float]) -> Iterator[dict]:
    """The batches, with the time at which each was asked for."""
    for batch in batches:
        moments.append(time.monotonic())
        yield batch


def held_out_losses(model: PretrainingModel, run: Run, text: EncodedText) -> dict[str, float]:
    """Losses on a small part of the held-out text, always the same gaps, so that they make a curve: of the masked
    language model under each way of choosing (`held_out_token`, …), of a second task (such as `held_out_sbo`)."""
    figures = held_out(model, run, text, WATCHED_BATCHES)
    tasks = [task.loss_name for task in model.tasks]
    second = {name: values[name] for values in figures.values() for name in tasks if name in values}
    curve = {way: values["mlm"] for way, values in figures.items()} | second  # of SBO, that of whole spans
    return {f"held_out_{name}": value for name, value in curve.items()}


def held_out(
    model: PretrainingModel, run: Run, text: EncodedText, most: int | None = None, tables: bool = False
) -> dict[str, dict[str, float]]:
    """Held-out losses and accuracy under both ways of choosing, each chosen token replaced by [MASK]; with a task that
    reads pairs also of pairs, under "pairs".

    The same blocks and the same masks for every model, so that runs can be compared pair by pair. most: batches, if not
    all. tables: also what the two tables without context reach on the same pieces (`context_free`).
    """
    results = {}
    for name, data in held_out_data(run, text).items():
        known = context_free(replace(data, corpus=text.train)) if tables else None
        results[name] = measure(model, data, np.random.default_rng(GAPS_SEED), most, known)
    return results


def held_out_data(run: Run, text: EncodedText) -> dict[str, PretrainingData]:
    """The held-out blocks under each way of choosing."""
    own = Objective.named(run.objective)
    blocks = replace(own.mask_only, tasks=tuple(task for task in own.tasks if not task.paired))
    ways = {"token": replace(blocks, masking=TokenMasking()), "span": replace(blocks, masking=SpanMasking())}
    ways |= {"pairs": replace(own.mask_only, masking=TokenMasking())} if own.paired else {}
    return {name: PretrainingData(text.held_out, text.wordpiece, objective, run.length, run.batch_size)
            for name, objective in ways.items()}


def without_context(run: Run, text: EncodedText, most: int | None = None) -> dict[str, dict[str, float]]:
    """What the two tables without context reach on the pieces that `held_out` scores, for both ways of choosing, and
    how many pieces these are (`pieces`). No model is needed."""
    results = {}
    for name, data in held_out_data(run, text).items():
        batches = list(islice(data.epoch(np.random.default_rng(GAPS_SEED)), most))
        positions, ids = (torch.cat([batch[key] for batch in batches]).numpy()
                          for key in ("masked_position", "masked_ids"))
        results[name] = {**context_free(replace(data, corpus=text.train)).losses(positions, ids), "pieces": len(ids)}
    return results
