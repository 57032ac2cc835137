"""From encoded text to batches of an objective: `mlm`, `mlm+nsp`, `span`, `span+sbo`. Chapter:
`book/spanbert/pretraining_spanbert` (the first two also in `book/bert/pretraining`).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.boundary import boundary_targets
from spanbert_tutorial.corpora import EncodedCorpus
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.inputs import NO_TARGET, assemble
from spanbert_tutorial.masking import TokenMasking, corrupt
from spanbert_tutorial.sentence_pairs import sentence_pairs
from spanbert_tutorial.single_sequence import single_sequence_blocks
from spanbert_tutorial.span_masking import SpanMasking
from spanbert_tutorial.wordpiece import WordPiece


@dataclass(frozen=True)
class Objective:
    """What a run predicts. unit: 80/10/10 is decided once a "token" or once a "span"."""

    masking: TokenMasking | SpanMasking
    unit: str
    next_sentence: bool = False
    boundary: bool = False

    @classmethod
    def named(cls, name: str) -> "Objective":
        if name not in OBJECTIVES:
            raise InputError(f'the objective "{name}" is unknown: use one of {", ".join(OBJECTIVES)}.')
        return OBJECTIVES[name]


OBJECTIVES = {
    "mlm": Objective(TokenMasking(), "token"),
    "mlm+nsp": Objective(TokenMasking(), "token", next_sentence=True),
    "span": Objective(SpanMasking(), "span"),
    "span+sbo": Objective(SpanMasking(), "span", boundary=True),
}


def unigram_entropy(ids: np.ndarray, vocabulary: int) -> float:
    """Entropy in nats of the pieces' frequencies: the loss of a model that knows frequency and nothing else."""
    counts = np.zeros(vocabulary, dtype=np.int64)
    for start in range(0, len(ids), 2**24):  # in parts: bincount makes eight bytes of each number
        counts += np.bincount(ids[start : start + 2**24], minlength=vocabulary)
    p = counts / len(ids)
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())


def gather(corpus: EncodedCorpus, ranges: np.ndarray, pad_id: int) -> tuple[np.ndarray, np.ndarray]:
    """ids int64 [B, n] of the ranges [B, 2], padded on the right, and their lengths [B]."""
    lengths = ranges[:, 1] - ranges[:, 0]
    ids = np.full((len(ranges), lengths.max()), pad_id, dtype=np.int64)
    for row, (start, end) in enumerate(ranges):
        ids[row, : end - start] = corpus.ids[start:end]
    return ids, lengths


@dataclass
class PretrainingData:
    """Batches of one objective over an encoded corpus, masked anew each time they are drawn.

    length: n of the model's input, with [CLS] and [SEP]. keep_none: replace every chosen token by [MASK], as one does
    when measuring (80/10/10 is a habit for training). by_length: in training, batches of blocks that are about equally
    long, so that nearly nothing is padding; each then holds about `batch_size` × `length` tokens.
    """

    corpus: EncodedCorpus
    wordpiece: WordPiece
    objective: Objective
    length: int
    batch_size: int
    keep_none: bool = False
    by_length: bool = False
    report: str = field(init=False)

    def __post_init__(self):
        specials = 3 if self.objective.next_sentence else 2
        if self.length <= specials + 1:
            raise InputError(f"a length of {self.length} leaves no room beside [CLS] and [SEP]: give at least 8.")
        if not self.objective.next_sentence:
            blocks = single_sequence_blocks(self.corpus, self.wordpiece.starts, self.length - specials)
            self.segments, self.labels, self.report = [blocks.ranges], None, blocks.report
        else:
            # the pairs are drawn once, from a fixed stream, so that they do not depend on the order of training
            pairs = sentence_pairs(self.corpus, self.length - specials, np.random.default_rng(0))
            self.segments, self.labels, self.report = [pairs.first, pairs.second], pairs.labels, pairs.report

    def __len__(self) -> int:
        return len(self.segments[0])

    def epoch(self, rng: np.random.Generator) -> Iterator[dict[str, Tensor]]:
        """Every block once, in random order; the last batch may be smaller."""
        order = rng.permutation(len(self))
        for start in range(0, len(self), self.batch_size):
            yield self.batch(order[start : start + self.batch_size], rng)

    def lengths(self) -> np.ndarray:
        """Tokens of each block, with [CLS] and [SEP], int [blocks]."""
        return sum(np.diff(ranges, axis=1)[:, 0] + 1 for ranges in self.segments) + 1

    def batches(self, rng: np.random.Generator) -> "Batches":
        """Epochs without end, which can be stopped and continued."""
        return Batches(self, rng)

    def masked_segment(self, ranges: np.ndarray, rng: np.random.Generator):
        """One segment of each row: original ids, corrupted ids, selected (all [B, n]) and lengths [B]."""
        ids, lengths = gather(self.corpus, ranges, self.wordpiece.pad_id)
        selected = self.objective.masking.select_batch(self.wordpiece.word_starts(ids), lengths, rng)
        mask_id = self.wordpiece.mask_id
        if self.keep_none:
            corrupted = np.where(selected, mask_id, ids)
        else:
            # drawn from the corpus itself, so that random replacements follow its frequencies
            options = {"mask_id": mask_id, "random_ids": self.corpus.ids, "unit": self.objective.unit}
            corrupted = corrupt(ids, selected, rng, **options)
        return ids, corrupted, selected, lengths

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        """The named tensors that `PretrainingModel` takes, for these blocks."""
        segments = [self.masked_segment(ranges[rows], rng) for ranges in self.segments]
        batch = assemble(segments, self.wordpiece)
        if self.objective.boundary:
            ids, _, selected, lengths = segments[0]
            rows_of_spans = boundary_targets(selected, ids, lengths)
            batch |= {f"boundary_{name}": value for name, value in vars(rows_of_spans).items()}
        if self.labels is not None:
            batch["next_sentence"] = torch.from_numpy(self.labels[rows])
        return batch


class Batches:
    """Batches without end, epoch after epoch, that know their place: `state_dict` says it, `load_state_dict` goes there
    and draws the same batches from there on.

    Of several processes each draws the same batch and takes its own rows, so that together they see what one would.
    """

    def __init__(self, data: PretrainingData, rng: np.random.Generator):
        self.data, self.rng = data, rng
        state = processes()
        self.process, self.processes = state.process_index, state.num_processes
        if data.batch_size % self.processes:
            raise InputError(f"{data.batch_size} blocks cannot be shared evenly by {self.processes} processes: give a "
                             "--batch-size that they divide.")
        self.new_epoch()

    def new_epoch(self) -> None:
        self.before_epoch = self.rng.bit_generator.state  # enough to draw the same order again
        order, size = self.rng.permutation(len(self.data)), self.data.batch_size
        if self.data.by_length:
            self.order = grouped_by_length(order, self.data.lengths(), size, self.data.length, self.rng)
        else:
            self.order = [order[start : start + size] for start in range(0, len(order), size)]
        self.at = 0

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> dict[str, Tensor]:
        if self.at >= len(self.order):
            self.new_epoch()
        batch = self.data.batch(self.order[self.at], self.rng)
        self.at += 1
        return share(batch, self.process, self.processes) if self.processes > 1 else batch

    @property
    def place(self) -> str:
        """Where the last batch stood, for messages."""
        blocks = ", ".join(map(str, self.order[self.at - 1][:8])) if self.at else "none"
        return f", batch {self.at} of {len(self.order)} of its epoch, blocks {blocks}, …"

    def state_dict(self) -> dict[str, str | int]:
        states = {"before_epoch": self.before_epoch, "rng": self.rng.bit_generator.state}
        return {"at": self.at, **{name: json.dumps(state) for name, state in states.items()}}

    def load_state_dict(self, state: dict[str, str | int]) -> None:
        self.rng.bit_generator.state = json.loads(state["before_epoch"])
        self.new_epoch()
        self.rng.bit_generator.state, self.at = json.loads(state["rng"]), state["at"]


def grouped_by_length(
    order: np.ndarray, lengths: np.ndarray, size: int, length: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Batches of about `size` × `length` tokens, each of blocks that are about equally long, in random order.

    order: the blocks as drawn, int [blocks], sorted only among the next 64 batches; lengths: of all blocks in tokens.
    """
    batches, window = [], 64 * size
    for start in range(0, len(order), window):
        drawn = order[start : start + window]
        drawn = drawn[np.argsort(lengths[drawn], kind="stable")]
        before = np.cumsum(lengths[drawn]) - lengths[drawn]  # tokens before each block
        number = before // (size * length)  # of the block's batch
        parts = np.split(drawn, np.flatnonzero(np.diff(number)) + 1)
        batches += [parts[i] for i in rng.permutation(len(parts))]
    return batches


def share(batch: dict[str, Tensor], process: int, processes: int) -> dict[str, Tensor]:
    """The rows process, process + processes, … of a batch, with what belongs to them.

    masked_count, boundary_count and rows are those of the whole batch divided by `processes`: the gradients of the
    processes are averaged, and so become those of one process with the whole batch. The last batch of an epoch may have
    no row left for a process: it gets one without targets, because all have to compute in step.
    """
    if process >= len(batch["ids"]):
        part = share(batch, 0, processes)
        chosen = [name for name in part if name.startswith(("masked_", "boundary_")) and not name.endswith("_count")]
        part |= {name: part[name][:0] for name in chosen}
        return part | {name: torch.full_like(part[name], NO_TARGET) for name in part if name == "next_sentence"}
    part = {name: batch[name][process::processes] for name in ("ids", "segments", "attention_mask")}
    if "next_sentence" in batch:
        part["next_sentence"] = batch["next_sentence"][process::processes]
    for kind in ("masked", "boundary"):
        fields = [name for name in batch if name.startswith(kind)]
        if fields:
            mine = batch[f"{kind}_batch"] % processes == process
            part |= {name: batch[name][mine] for name in fields}
            part[f"{kind}_batch"] = part[f"{kind}_batch"] // processes
    counts = {"masked_count": max(len(batch["masked_ids"]), 1), "rows": len(batch["ids"])}
    if "boundary_targets" in batch:
        counts["boundary_count"] = max(int((batch["boundary_targets"] != NO_TARGET).sum()), 1)
    return part | {name: torch.tensor(count / processes) for name, count in counts.items()}
