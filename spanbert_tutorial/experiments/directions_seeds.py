"""One direction, two joined, both at once: what the models predict and what their states are good for, five seeds.
Chapter: `book/bert/directions`.

    python -m spanbert_tutorial.experiments.directions_seeds --output FILE

Models of the same seed start from the same weights and see the same blocks; only who may look at whom differs.
"""

import argparse
from tempfile import TemporaryDirectory

import numpy as np
import torch

from spanbert_tutorial import ablation, almanac, runs
from spanbert_tutorial.bert import BertEncoder
from spanbert_tutorial.checkpoints import check_output, load_checkpoint
from spanbert_tutorial.directions import VIEWS, new_language_model, score, train_language_model
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.experiments.frozen_states import (
    Mention,
    accuracy,
    four_ways,
    in_training_text,
    linear_probe,
    most_frequent_tag,
    next_piece_list,
    role_split,
    roles_of,
    samples,
    states_at,
    town_mentions,
    words_at,
)
from spanbert_tutorial.wordpiece import WordPiece

COMMAND = "python -m spanbert_tutorial.experiments.directions_seeds --output FILE"
SEEDS, CURVE_EVERY = 5, 25
TOLERANCE = {"loss": 0.2, "accuracy": 0.04}  # by which a figure may differ on another machine


def role_rows(encoders: dict, mentions: list[Mention], pieces: WordPiece, seed: int) -> dict[str, float]:
    """Accuracy of the probe for each encoder. encoders: name → (encoder, pattern), or several to be joined."""
    seen, unseen = role_split(mentions, seed)
    labels, answers, found = roles_of(seen), roles_of(unseen), {}
    for name, parts in encoders.items():
        both = [torch.cat([states_at(e, m, pieces, p) for e, p in parts], dim=-1) for m in (seen, unseen)]
        found[name] = accuracy(linear_probe(both[0], labels), both[1], answers)
    shipped = encoders["spanbert-tiny"][0][0]
    both = [words_at(shipped, m) for m in (seen, unseen)]
    found["word embedding"] = accuracy(linear_probe(both[0], labels), both[1], answers)
    shuffled = labels[torch.from_numpy(np.random.default_rng(seed).permutation(len(labels)))]
    both = [states_at(shipped, m, pieces) for m in (seen, unseen)]
    found["spanbert-tiny, labels shuffled"] = accuracy(linear_probe(both[0], shuffled), both[1], answers)
    found["a list of next pieces"] = next_piece_list(seen, unseen)
    return found


def one_seed(seed: int, text: runs.Text, shipped: BertEncoder) -> dict:
    """All figures of one seed, rounded."""
    pieces, trained, views, curves = text.wordpiece, {}, {}, {}
    for pattern in ("left-to-right", "right-to-left", "both ways"):
        trained[pattern], losses = train_language_model(pattern, text, seed)
        curves[pattern] = np.reshape(losses, (-1, CURVE_EVERY)).mean(axis=1).round(3).tolist()
        if pattern != "right-to-left":
            scores = {view: score(trained[pattern], text, view) for view in VIEWS}
            views[pattern] = {view: {k: round(v, 4) for k, v in s.items()} for view, s in scores.items()}
    alone = {pattern: [(model.encoder, pattern)] for pattern, model in trained.items()}
    untrained = new_language_model("both ways", len(pieces), seed).encoder
    encoders = {"untrained": [(untrained, "both ways")], **alone}
    encoders["two directions joined"] = alone["left-to-right"] + alone["right-to-left"]
    encoders["spanbert-tiny"] = [(shipped, "both ways")]
    mentions = town_mentions(almanac.read("validation"), pieces)
    rows, tests = samples(pieces, seed)
    known = in_training_text(tests, pieces)
    parts = {"tags": tests, "tags_new": [row for row, old in zip(tests, known, strict=True) if not old]}
    figures = {name: tag_rows(shipped, rows, part, pieces, seed) for name, part in parts.items()}
    figures["roles"] = role_rows(encoders, mentions, pieces, seed)
    rounded = {name: {k: round(v, 4) for k, v in part.items()} for name, part in figures.items()}
    return {"seed": seed, "curves": curves, "views": views, "in_training_text": round(known.mean().item(), 4)} | rounded


def tag_rows(shipped: BertEncoder, rows: list, tests: list, pieces: WordPiece, seed: int) -> dict[str, float]:
    """Accuracy of each way to use the encoder, and of the list of most frequent tags."""
    ways = four_ways(shipped, rows, tests, pieces, seed)
    return ways | {"most frequent tag": most_frequent_tag(rows, tests)}


def main() -> None:
    """Five seeds; the file is written anew after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True)
    output = check_output(parser.parse_args().output)
    shipped, _ = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))
    about = {"command": COMMAND, "surroundings": ablation.surroundings(), "tolerance": TOLERANCE}
    with TemporaryDirectory() as scratch:
        text, rows = runs.open_text("almanac", scratch), []
        about |= {"unigram_entropy": round(text.unigram_entropy, 4), "curve_every": CURVE_EVERY}
        for seed in range(SEEDS):
            rows.append(one_seed(seed, text, shipped.encoder))
            print(rows[-1], flush=True)
            ablation.write_whole(output, about | {"rows": rows})


if __name__ == "__main__":
    main()
