"""From encoded text to batches of an objective. Chapter: `book/spanbert/pretraining_spanbert`
(those of BERT also in `book/bert/pretraining`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.bert.inputs import NO_TARGET, collate, masked_positions
from spanbert_tutorial.bert.masking import Blocks, MaskedBlocks, corrupt
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.spanbert.single_sequence import single_sequence_blocks
from spanbert_tutorial.text.encoding import EncodedCorpus

INPUTS = {"input_ids", "token_type_ids", "attention_mask"}


def slice_and_pad(
    ids: np.ndarray, ranges: np.ndarray, pad_id: int
) -> tuple[np.ndarray, np.ndarray]:
    """The ranges int [B,2] of a corpus's ids, padded on the right: int64 [B,n], and their lengths
    [B]."""
    lengths = ranges[:, 1] - ranges[:, 0]
    padded = np.full((len(ranges), lengths.max()), pad_id, dtype=np.int64)
    for row, (start, end) in enumerate(ranges):
        padded[row, : end - start] = ids[start:end]
    return padded, lengths


def mask_blocks(
    corpus: EncodedCorpus,
    ranges: np.ndarray,
    wordpiece: WordPiece,
    objective: Objective,
    rng: np.random.Generator,
) -> MaskedBlocks:
    """Blocks of a corpus: what is masked, what the model sees.

    ranges: int [B,2], from where to where each goes."""
    ids, lengths = slice_and_pad(corpus.ids, ranges, wordpiece.pad_id)
    starts = wordpiece.word_starts(ids)
    spans = labeled_spans(corpus, ranges)
    blocks = Blocks(starts, lengths, ids, spans)
    masked = objective.masking.select_blocks(blocks, rng)
    if objective.probs is None:
        visible = np.where(masked, wordpiece.mask_id, ids)
    else:
        visible = corrupt(
            ids,
            masked,
            rng,
            mask_id=wordpiece.mask_id,
            random_ids=corpus.ids,  # as frequent as in the text
            unit=objective.unit,
            probs=objective.probs,
        )
    return MaskedBlocks(ids, visible, masked, lengths)


def labeled_spans(corpus: EncodedCorpus, ranges: np.ndarray) -> np.ndarray:
    """The labeled spans inside the ranges [B, 2], int [k, 4]: (row, first, last, kind), counted
    from the range's start."""
    found = [np.empty((0, 4), dtype=np.int64)]
    for row, (start, stop) in enumerate(ranges if len(corpus.labeled) else ()):
        begin, end = np.searchsorted(corpus.labeled[:, 0], (start, stop))
        spans = corpus.labeled[begin:end] - [start, start + 1, 0]
        inside = spans[:, 1] < stop - start
        found.append(np.insert(spans[inside], 0, row, axis=1))
    return np.concatenate(found)


@dataclass
class PretrainingData:
    """Batches of one objective over an encoded corpus, masked anew each time they are drawn.

    max_length: n of the model's input, with [CLS] and [SEP]. by_length: in training, batches of blocks
    that are about equally long, so that nearly nothing is padding; each then holds about
    `batch_size` × `max_length` tokens.
    """

    corpus: EncodedCorpus
    wordpiece: WordPiece
    objective: Objective
    max_length: int
    batch_size: int
    by_length: bool = False
    report: str = field(init=False)

    def __post_init__(self) -> None:
        self.objective.masking.check(self.corpus.labeled)
        task = self.objective.paired
        room = self.max_length - (2 if task is None else 3)  # beside [CLS] and [SEP]
        require(room > 1, f"a length of {self.max_length} has no room for text: give at least 8.")
        found: Any
        if task is None:
            found = single_sequence_blocks(self.corpus, self.wordpiece.starts, room)
            self.segments, self.labels = [found.ranges], None
        else:
            # drawn once, from a fixed stream, so that they do not depend on the order of training
            found = task.pairs(self.corpus, room, np.random.default_rng(0))
            self.segments, self.labels = [found.first, found.second], found.labels
        self.report = found.report

    def __len__(self) -> int:
        return len(self.segments[0])

    def lengths(self) -> np.ndarray:
        """Tokens of each block, with [CLS] and [SEP], int [blocks]."""
        sizes = [np.diff(ranges, axis=1)[:, 0] + 1 for ranges in self.segments]
        return np.sum(sizes, axis=0) + 1

    def epoch(self, rng: np.random.Generator) -> Iterator[dict[str, Tensor]]:
        """Every block once, in random order; the last batch may be smaller."""
        for rows in in_parts(rng.permutation(len(self)), self.batch_size):
            yield self.batch(rows, rng)

    def batches(self, rng: np.random.Generator) -> "Batches":
        return Batches(self, rng)

    def masked_segment(self, ranges: np.ndarray, rng: np.random.Generator) -> MaskedBlocks:
        """One segment of each row, chosen and masked. ranges: int [B, 2]."""
        return mask_blocks(self.corpus, ranges, self.wordpiece, self.objective, rng)

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        """The named tensors that `PretrainingModel` takes, for these blocks."""
        segments = [self.masked_segment(ranges[rows], rng) for ranges in self.segments]
        batch = collate(segments, self.wordpiece)
        labels = None if self.labels is None else self.labels[rows]
        for task in self.objective.tasks:
            batch |= task.targets(segments, labels)
        return batch

    def share(self, batch: dict[str, Tensor], process: int, processes: int) -> dict[str, Tensor]:
        """The rows process, process + processes, … of a batch, with what belongs to them.

        The gradients of the processes are averaged; with what the losses are means over, divided by
        `processes`, they become those of one process with the whole batch. The last batch of an
        epoch may have no row left for a process: it gets one without targets, because all have to
        compute in step.
        """
        # by the names that `PretrainingModel` looks for
        counts = {f"{task.name}_count": task.count(batch) for task in self.objective.tasks}
        counts["masked_count"] = len(batch["masked_positions"])
        targets = target_columns(batch)
        flat = {"masked_positions"}.union(*targets.values())
        part = {name: rows[process::processes] for name, rows in batch.items() if name not in flat}
        if not len(part["input_ids"]):
            part = {name: batch[name][:1].clone() for name in part}
            for name in part.keys() - INPUTS:
                part[name].fill_(NO_TARGET)
        for kind, names in targets.items():
            own = batch[f"{kind}_batch"] % processes == process
            part |= {name: batch[name][own] for name in names}
            part[f"{kind}_batch"] //= processes
        part["masked_positions"] = masked_positions(part)
        return part | {k: torch.tensor(max(n, 1) / processes) for k, n in counts.items()}


def target_columns(batch: Mapping[str, Tensor]) -> dict[str, list[str]]:
    """By the name of an auxiliary objective its columns with one row a target: `NAME_…`, where
    there is a `NAME_batch`."""
    names = [name.removesuffix("_batch") for name in batch if name.endswith("_batch")]
    return {
        name: [key for key in batch if key.startswith(f"{name}_") and key != f"{name}_count"]
        for name in names
    }


class Batches(Iterator[dict[str, Tensor]]):
    """Batches without end, epoch after epoch, that can be resumed: `state_dict` saves the
    place, `load_state_dict` returns to it and draws the same batches from there on.

    Of several processes each draws the same batch and takes its own part, `data.share`, so that
    together they see what one would.
    """

    def __init__(self, data: Any, rng: np.random.Generator):
        self.data = data
        self.rng = rng
        self.ready: Callable[[dict], dict] | None = None  # what is done to a batch at the end
        several = processes().num_processes
        told = f"{several} processes do not divide a --batch-size of {data.batch_size}: change it."
        require(data.batch_size % several == 0, told)
        self.new_epoch()

    def new_epoch(self) -> None:
        data = self.data
        self.before_epoch = self.rng.bit_generator.state  # enough to draw the same order again
        order = self.rng.permutation(len(data))
        if data.by_length:
            sizes = data.batch_size, data.max_length
            self.order = grouped_by_length(order, data.lengths(), *sizes, self.rng)
        else:
            self.order = in_parts(order, data.batch_size)
        self.at = 0

    def __next__(self) -> dict[str, Tensor]:
        if self.at >= len(self.order):
            self.new_epoch()
        batch = self.data.batch(self.order[self.at], self.rng)
        self.at += 1
        if (state := processes()).num_processes > 1:
            batch = self.data.share(batch, state.process_index, state.num_processes)
        return batch if self.ready is None else self.ready(batch)

    def state_dict(self) -> dict[str, Any]:
        rng = self.rng.bit_generator.state
        return {"at": self.at, "before_epoch": self.before_epoch, "rng": rng}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng.bit_generator.state = state["before_epoch"]
        self.new_epoch()
        self.rng.bit_generator.state = state["rng"]
        self.at = state["at"]


def in_parts(order: np.ndarray, size: int) -> list[np.ndarray]:
    return [order[start : start + size] for start in range(0, len(order), size)]


def grouped_by_length(
    order: np.ndarray, lengths: np.ndarray, size: int, max_length: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Batches of about `size` × `max_length` tokens, each of blocks that are about equally long, in
    random order.

    order: the blocks as drawn, int [blocks], sorted only among the next 64 batches; lengths: of all
    blocks in tokens.
    """
    batches = []
    for drawn in in_parts(order, 64 * size):
        drawn = drawn[np.argsort(lengths[drawn], kind="stable")]
        before = np.cumsum(lengths[drawn]) - lengths[drawn]  # tokens before each block
        number = before // (size * max_length)  # of the block's batch
        parts = np.split(drawn, np.flatnonzero(np.diff(number)) + 1)
        batches += [parts[i] for i in rng.permutation(len(parts))]
    return batches


class Interleaved(Iterator[dict[str, Tensor]]):
    """Batches of several objectives in turn, without end: the next is of the one that is furthest
    behind its weight (the first of equal ones). It knows its place, as `Batches` does; each part
    has draws of its own."""

    def __init__(
        self,
        parts: Mapping[str, PretrainingData],
        weights: Mapping[str, float],
        rng: np.random.Generator,
    ):
        own = zip(parts.items(), rng.spawn(len(parts)), strict=True)
        self.parts = {name: Batches(data, rng) for (name, data), rng in own}
        self.weights = weights
        self.taken = dict.fromkeys(parts, 0)
        self.last = ""

    def __next__(self) -> dict[str, Tensor]:
        self.last = min(self.parts, key=lambda name: (self.taken[name] + 1) / self.weights[name])
        self.taken[self.last] += 1
        return next(self.parts[self.last])

    def state_dict(self) -> dict[str, Any]:
        parts = {name: part.state_dict() for name, part in self.parts.items()}
        return {"taken": dict(self.taken), "parts": parts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.taken = dict(state["taken"])
        for name, part in self.parts.items():
            part.load_state_dict(state["parts"][name])
