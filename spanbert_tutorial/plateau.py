"""What happens inside a model when its loss leaves the unigram entropy, and what shortens the wait. Chapter:
`book/bert/pretraining`.

`python -m spanbert_tutorial.plateau --output FILE` trains a tiny model under each of `SETTINGS` with several seeds.
Seeds are paired: the same seed gives every setting the same masks and, with the same batch size, the same batches.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor, nn

from spanbert_tutorial import ablation, runs
from spanbert_tutorial.bert import BertEncoder
from spanbert_tutorial.checkpoints import check_output
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.masking import MaskingScheme
from spanbert_tutorial.pretraining import PretrainingModel
from spanbert_tutorial.wordpiece import WordPiece

GAP = 1.0  # nats below the unigram entropy that count as having left

# What each setting changes in a run of the book: tiny, token masking, 3e-3 after a warm-up of 0.1, start 0.06,
# sinusoidal positions, batch 32.
SETTINGS = {
    "as in the book": {},
    "no sinusoids": {"sinusoidal_positions": False},
    "start 0.02": {"initializer_range": 0.02},
    "peak 1e-3": {"peak_learning_rate": 1e-3},
    "no warm-up": {"warmup": 0.0},
    "warm-up of 0.4": {"warmup": 0.4},
    "half the batch": {"batch_size": 16},
    "half, twice the steps": {"batch_size": 16, "steps": 2_000},  # as much text as the book's run
    "short blocks": {"length": 24, "batch_size": 64},  # twice the blocks, two thirds of the pieces
    "short blocks, half": {"length": 24},  # half as many: as many blocks as the book's run
}


def setting(name: str, seed: int, steps: int = 1_000) -> runs.Run:
    """The run of a setting and a seed. Raises InputError when there is no such setting."""
    if name not in SETTINGS:
        raise InputError(f'the setting "{name}" is unknown: use one of {", ".join(SETTINGS)}.')
    return replace(runs.Run(objective="mlm", steps=steps, seed=seed), **SETTINGS[name])


LIVE = setting("short blocks", seed=0, steps=600)  # the run that the chapter repeats
LIVE_TOLERANCE = 0.25  # nats, on another machine; in the fall bf16 and float32 were up to 0.104 apart


def left_after(curve: Sequence[float], every: int, entropy: float) -> int | None:
    """The step at which a loss curve, means over `every` steps, first lies `GAP` below the unigram entropy, or None."""
    below = np.flatnonzero(np.asarray(curve) < entropy - GAP)
    return int(below[0] + 1) * every if len(below) else None


def run_all(output: str | Path, seeds: int, steps: int) -> None:
    """The chapter's live run, then each setting with every seed, on the almanac. `output` is written whole after each
    run, so a stopped command goes on where it was. Raises InputError when it holds runs of other settings."""
    output = check_output(output) if not Path(output).exists() else Path(output)
    before = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
    live, kept = before.get("live"), before.get("rows", [])
    if any(runs.Run(**row["run"]) != setting(row["setting"], row["run"]["seed"], steps) for row in kept):
        raise InputError(f"{output} holds runs of other settings: give another --output.")
    done = {(row["setting"], row["run"]["seed"]) for row in kept}
    with TemporaryDirectory() as scratch:
        text = runs.open_text("almanac", scratch)
        live = live or ablation.one(LIVE, text)
        for seed, name in [(seed, name) for seed in range(seeds) for name in SETTINGS if (name, seed) not in done]:
            row = ablation.one(setting(name, seed, steps), text)
            left = left_after(row["curve"]["mlm"], ablation.CURVE_EVERY, text.unigram_entropy)
            kept.append({"setting": name, "left_after": left} | row)
            print(f"seed {seed}, {name}: left after {left}, {row['held_out']['token']}", flush=True)
            ablation.write_whole(output, results(live, kept, text, seeds, steps))


def results(live: dict, kept: list[dict], text: runs.Text, seeds: int, steps: int) -> dict:
    """The content of the results file."""
    command = f"python -m spanbert_tutorial.plateau --output FILE --seeds {seeds} --steps {steps}"
    head = {"command": command, "surroundings": ablation.surroundings(), "curve_tolerance": LIVE_TOLERANCE, "gap": GAP}
    entropy = round(text.unigram_entropy, 4)
    return {**head, "unigram_entropy": entropy, "curve_every": ablation.CURVE_EVERY, "live": live, "rows": kept}


@dataclass(frozen=True)
class EveryNth(MaskingScheme):
    """Chooses one piece in `every`, from a random first one: no two chosen pieces are near, so what stands beside one
    of them can be changed without touching another."""

    every: int = 8

    def select_batch(self, word_starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """bool [B, n]; `word_starts` counts only for its shape."""
        places, first = np.arange(word_starts.shape[1]), rng.integers(self.every, size=(len(lengths), 1))
        return (places % self.every == first) & (places < lengths[:, None])


def visible(batch: dict[str, Tensor], wordpiece: WordPiece) -> Tensor:
    """bool [B, n]: real pieces, so neither [MASK] nor [CLS], [SEP] or padding."""
    special = torch.tensor([getattr(wordpiece, name + "_id") for name in ("mask", "cls", "sep", "pad")])
    return ~torch.isin(batch["ids"], special)


def hide_at(batch: dict[str, Tensor], distance: int, wordpiece: WordPiece) -> dict[str, Tensor]:
    """The batch with the pieces `distance` places before and after each chosen one replaced by [MASK] as well."""
    near, last = torch.zeros_like(batch["attention_mask"]), batch["ids"].shape[1] - 1
    for side in (-distance, distance):  # a place outside falls on the edge: [CLS], [SEP] or padding, which stay
        near[batch["masked_batch"], (batch["masked_position"] + side).clamp(0, last)] = True
    return {**batch, "ids": batch["ids"].masked_fill(near & visible(batch, wordpiece), wordpiece.mask_id)}


def shuffle_visible(batch: dict[str, Tensor], wordpiece: WordPiece, rng: np.random.Generator) -> dict[str, Tensor]:
    """The batch with the visible pieces of each block in random order."""
    ids = batch["ids"].clone()
    for row, places in zip(ids, visible(batch, wordpiece), strict=True):
        row[places] = row[places][torch.from_numpy(rng.permutation(int(places.sum())))]
    return {**batch, "ids": ids}


@torch.no_grad()
def piece_losses(model: PretrainingModel, batches: Sequence[dict[str, Tensor]]) -> np.ndarray:
    """float [t]: −ln P of each chosen piece of all batches by the masked language model head, in nats."""
    device, losses = next(model.parameters()).device, []
    for batch in batches:
        batch = {name: value.to(device) for name, value in batch.items()}
        hidden = model.encoder(batch["ids"], batch["segments"], batch["attention_mask"])  # [B, n, H]
        logits = model.masked_language_model(hidden[batch["masked_batch"], batch["masked_position"]])  # [t, V]
        losses.append(nn.functional.cross_entropy(logits, batch["masked_ids"], reduction="none").cpu())
    return torch.cat(losses).numpy()


def attention_by_distance(encoder: BertEncoder, batch: dict[str, Tensor], most: int = 4) -> np.ndarray:
    """float [L, A, 2 · most + 1]: the mean weight that chosen places give to the place at distance −most … most; places
    outside the input are left out. An even spread gives about 1 / (length of the input) everywhere."""
    device = encoder.embeddings.words.weight.device
    inputs = [batch[name].to(device) for name in ("ids", "segments", "attention_mask")]
    maps = torch.stack(encoder.attention_maps(*inputs), dim=2).cpu()  # [B, A, L, n, n]
    lengths, means = batch["attention_mask"].sum(1), []
    for distance in range(-most, most + 1):
        place = batch["masked_position"] + distance
        real = (place >= 0) & (place < lengths[batch["masked_batch"]])
        rows, looks, looked_at = batch["masked_batch"][real], batch["masked_position"][real], place[real]
        means.append(maps[rows, :, :, looks, looked_at].mean(0).T)  # [L, A]
    return torch.stack(means, dim=2).numpy()


def watched(batches: Iterable[dict], at: Sequence[int], look: Callable[[int], None]) -> Iterator[dict]:
    """The same batches; `look(step)` is called before the batch after step `step`, for each step in `at`."""
    for step, batch in enumerate(batches):
        if step in at:
            look(step)
        yield batch


class NeighbourCounts:
    """Guesses a hidden piece from the two pieces beside it, by counting in the training text; no network.

    The counts of all three together lean, with the weight of `trust` counts, on P(x | left) · P(x | right) / P(x), and
    those of the pairs likewise on P(x)."""

    def __init__(self, ids: np.ndarray, vocabulary: int, trust: float = 5.0):
        self.ids, self.trust = ids.astype(np.int64), trust
        self.p = np.bincount(self.ids, minlength=vocabulary) + 0.5
        self.p /= self.p.sum()
        pairs, outer = (self.ids[:-by] * vocabulary + self.ids[by:] for by in (1, 2))
        self.pairs = np.bincount(pairs, minlength=vocabulary**2).reshape(vocabulary, vocabulary)  # [left, right]
        order = np.argsort(outer, kind="stable")
        self.outer, self.middle, self.vocabulary = outer[order], self.ids[1:-1][order], vocabulary

    def lean(self, counts: np.ndarray, on: np.ndarray) -> np.ndarray:
        return (counts + self.trust * on) / (counts.sum() + self.trust)

    def probabilities(self, left: int | None, right: int | None) -> np.ndarray:
        """float [V]; None where a neighbour is not to be used."""
        after = self.p if left is None else self.lean(self.pairs[left], self.p)
        before = self.p if right is None else self.lean(self.pairs[:, right], self.p)
        both = after * before / self.p
        both /= both.sum()
        if left is None or right is None:
            return both
        a, b = np.searchsorted(self.outer, left * self.vocabulary + right + np.arange(2))
        return self.lean(np.bincount(self.middle[a:b], minlength=self.vocabulary), both)


def main(arguments: list[str] | None = None) -> int:
    """The command of the kept experiment; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m spanbert_tutorial.plateau", description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, help="JSON file of the results")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1_000, help="batches of each run")
    try:
        run_all(**vars(parser.parse_args(arguments)))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
