"""The asserts behind the numbers of the chapters on BERT break where a number or an arm is
wrong."""

import copy
import json
import math
from fractions import Fraction
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from chapter_cells import PAPERS, breaks, cells, kept, swapped

from research import results as kept_results
from research.experiments import directions as of_five_seeds
from research.experiments import leaving_the_plateau
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import directions
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.encoded_text import open_text

matplotlib.use("Agg")


# --- pretraining --------------------------------------------------------------------


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return open_text("almanac", tmp_path_factory.mktemp("almanac"))


def test_the_bias_finds_the_frequencies(text):
    source = cells("bert/pretraining", "def over_the_text(bias)")
    kinds = len(text.wordpiece)
    f = (np.bincount(text.train.ids, minlength=kinds) + 1) / (len(text.train.ids) + kinds)
    quoted = {name: entry["value"] for name, entry in PAPERS.items()}
    log_f = torch.from_numpy(np.log(f))
    near = log_f + 0.1 * torch.randn(kinds, generator=torch.Generator().manual_seed(0))
    given = {
        "np": np,
        "torch": torch,
        "V": kinds,
        "text": text,
        "quoted": quoted,
        "start": np.log(kinds),
        "bias_only": SimpleNamespace(bias=near),
    }
    assert not breaks(source, given)
    of_another = SimpleNamespace(train=text.train, unigram_entropy=text.unigram_entropy + 0.1)
    for wrong in (
        {"bias_only": SimpleNamespace(bias=log_f.roll(1))},
        {"start": 5.87},
        {"text": of_another},
        {"bias_only": SimpleNamespace(bias=torch.zeros(kinds))},
    ):
        assert breaks(source, given | wrong)


class Sized(SimpleNamespace):
    """Data of so many blocks."""

    def __len__(self):
        return self.blocks


def test_the_steps_that_short_blocks_save():
    source = cells("bert/pretraining", "def left_after(setting)")
    results = kept("leaving_the_plateau.json")
    given = {
        "kept": results,
        "quoted": {name: entry["value"] for name, entry in PAPERS.items()},
        "run": SimpleNamespace(batch_size=32),
        "live_data": Sized(blocks=100, batch_size=64),
        "data": Sized(blocks=34),
    }
    assert not breaks(source, given)
    assert breaks(source, given | {"data": Sized(blocks=50)})
    for setting, seed in (("short blocks", 0), ("as in the book", 4), ("no warm-up", 2)):
        wrong = copy.deepcopy(results)
        for row in wrong["rows"]:
            if (row["setting"], row["run"]["seed"]) == (setting, seed):
                row["left_after"] = 500
        assert breaks(source, given | {"kept": wrong})


def settings() -> dict:
    """What the cell on the ten settings is given."""
    rows = sorted(kept("leaving_the_plateau.json")["rows"], key=lambda row: row["run"]["seed"])
    chosen = {
        name: [row for row in rows if row["setting"] == name] for name in leaving_the_plateau.ARMS
    }
    final = {name: [row["held_out"]["token"]["mlm"] for row in of] for name, of in chosen.items()}
    left_after = {name: [row["left_after"] for row in of] for name, of in chosen.items()}
    return {
        "final": final,
        "left_after": left_after,
        "arms": leaving_the_plateau.ARMS,
        "family": kept_results.family,
        "column": kept_results.column,
        "paired_interval": kept_results.paired_interval,
        "data_path": data_path,
        "quoted": {name: entry["value"] for name, entry in PAPERS.items()},
    }


def test_the_family_of_the_ten_settings():
    source = cells("evidence/plateau", "losses_of | steps_of")
    given = settings()
    assert not breaks(source, given)
    final = given["final"]
    left = given["left_after"]
    book = "as in the book"
    wrong_losses = [
        swapped(final, book, name) for name in ("no warm-up", "start 0.02", "warm-up of 0.4")
    ]
    wrong_losses += [
        final
        | {"no sinusoids": [x + y for x, y in zip(final[book], (3, 3.1, 3, 2.9, 3), strict=True)]}
    ]
    wrong_losses += [
        final
        | {"warm-up of 0.4": [x - y for x, y in zip(final[book], (1, 1, 1.1, 1, 1.1), strict=True)]}
    ]
    assert all(breaks(source, given | {"final": wrong}) for wrong in wrong_losses)
    wrong_steps = [swapped(left, book, name) for name in ("short blocks", "warm-up of 0.4")]
    assert all(breaks(source, given | {"left_after": wrong}) for wrong in wrong_steps)


# --- directions ---------------------------------------------------------------------


def test_both_products_are_the_share_of_the_sentence():
    source = cells("bert/directions", "def factors(sentence, seen)", '"from both sides": lambda')
    given = {"math": math, "Fraction": Fraction}
    assert not breaks(source, given)
    assert breaks(source.replace('"the dog sleeps": 2', '"the dog sleeps": 3'), given)
    assert breaks(source.replace("range(i)", "range(i + 1)"), given)


def test_roles_need_the_corrected_interval():
    source = cells("evidence/states_and_sentences", "gaps = family(")
    results = kept("directions.json")
    given = {
        "kept": results,
        "ratio": 826 / 812,
        "np": np,
        "ROLES": of_five_seeds.ROLES,
        "JOINED": of_five_seeds.JOINED,
        "family": kept_results.family,
        "paired_interval": kept_results.paired_interval,
    }
    assert not breaks(source, given)
    assert breaks(source, given | {"ratio": 0})  # the usual test
    assert breaks(source, given | {"ROLES": of_five_seeds.ROLES[:5]})  # a smaller family
    for names in (
        ("two directions joined", "right-to-left"),
        ("spanbert-tiny", "untrained"),
        ("both ways", "left-to-right"),
        ("word embedding", "untrained"),
    ):
        wrong = copy.deepcopy(results)
        for row in wrong["rows"]:
            row["roles"] = swapped(row["roles"], *names)
        assert breaks(source, given | {"kept": wrong})


def test_the_copying_machine_and_the_tables_without_context():
    source = cells("evidence/states_and_sentences", "equal shares for all tokens: ")
    results = kept("directions.json")
    given = {
        "np": np,
        "kept": results,
        "VIEWS": directions.VIEWS,
        "wordpiece": range(2_000),
        "asked": np.repeat([7, *range(50)], [5, *[2] * 50]),
        "tables": {"frequency": 5.84, "by_position": 5.42},
        "table": {("both ways", "in sight"): (0.14, 0.998)},
    }
    given["asked"] = np.concatenate([np.full(6, 1), np.arange(2, 96)])
    assert not breaks(source, given)
    wrong = copy.deepcopy(results)
    for row in wrong["rows"]:
        row["views"] = swapped(row["views"], "both ways", "left-to-right")
    for change in (
        {"kept": wrong},
        {"tables": {"frequency": 9.5, "by_position": 5.42}},
        {"asked": np.arange(100)},
        {"tables": {"frequency": 5.84, "by_position": 4.5}},
    ):
        assert breaks(source, given | change)


def test_a_masked_model_is_no_writer(monkeypatch):
    source = cells("bert/directions", "asks = {side: score_gaps")
    found = {
        "both sides": {"loss": 1.82, "accuracy": 0.591},
        "left side": {"loss": 3.58, "accuracy": 0.301},
        "left side, length known": {"loss": 2.95, "accuracy": 0.385},
    }
    given = {
        "data_path": data_path,
        "text": None,
        "wordpiece": None,
        "np": np,
        "kept": kept("directions.json"),
        "load_checkpoint": load_checkpoint,
    }
    monkeypatch.setattr(directions, "write_on", lambda *_: "")

    def broken(values):
        monkeypatch.setattr(directions, "score_gaps", lambda model, text, side: values[side])
        return breaks(source, given)

    assert not broken(found)
    assert broken(swapped(found, "both sides", "left side"))
    assert broken(swapped(found, "left side, length known", "left side"))
    assert broken(found | {"left side": {"loss": 3.38, "accuracy": 0.301}})


# --- the others ---------------------------------------------------------------------


def test_the_six_differences_of_the_shares():
    source = cells("evidence/plateau", "apart_from = family(")
    results = kept("masking_mini.json")
    variants = ["80/10/10", "100/0/0", "80/20/0"]
    shown = ["mask", "same", "random"]
    figures = {
        (variant, place, name): kept_results.column(results, "shown", place, name, variant=variant)
        for variant in variants
        for place in shown
        for name in ("loss", "accuracy")
    }
    exec(
        "from itertools import product\nfrom research.results import family",
        given := {},
    )
    given |= {
        "np": np,
        "figures": figures,
        "variants": variants,
        "shown": shown,
        "frozen": {"80_10_10": 94.9, "100_0_0": 94.0},
    }
    assert not breaks(source, given)
    for place in shown:
        wrong = swapped(figures, ("80/10/10", place, "accuracy"), ("100/0/0", place, "accuracy"))
        assert breaks(source, given | {"figures": wrong})
    same = figures | {("80/20/0", "random", "accuracy"): figures["80/10/10", "random", "accuracy"]}
    assert breaks(source, given | {"figures": same})


def test_what_a_head_names_that_saw_only_masks(tmp_path):
    source = cells("bert/masking", "usual, only_mask = (")
    path = tmp_path / "masking_mini.json"
    for variant, shown, wrong in (
        ("none", "same", False),
        ("80/10/10", "same", True),
        ("100/0/0", "same", True),
        ("80/20/0", "same", True),
        ("80/20/0", "random", True),
    ):
        results = kept("masking_mini.json")
        for row in results["rows"]:
            if row["variant"] == variant:
                row["shown"][shown]["accuracy"] = 0.5 + 0.01 * row["seed"]
        path.write_text(json.dumps(results), encoding="utf-8")
        given = {"papers": PAPERS, "data_path": lambda *_: path}
        assert breaks(source, given) == wrong
    kept_scores = {"bert_masking_100_0_0_ner_frozen": {"value": 94.5}}
    given = {"papers": PAPERS | kept_scores, "data_path": data_path}
    assert breaks(source, given)


def test_the_seeds_from_scratch():
    exits = cells("evidence/plateau", "def exits_of(objective")
    family_of_four = cells("evidence/plateau", "from_scratch_differences = family(both)")
    results = kept("token_vs_span.json")
    table = cells("evidence/plateau", "from_scratch = kept_results(")
    given = {
        "kept_results": lambda _: results,
        "column": kept_results.column,
        "family": kept_results.family,
        "token_vs_span": SimpleNamespace(ARMS=("mlm", "span", "span+sbo")),
        "Table": lambda *_: None,
        "draw_curves": lambda *_: None,
        "draw_intervals": lambda *_: plt.figure(),
        "plt": plt,
    }
    curves = cells("evidence/plateau", "def all_curves(objective")
    source = "\n".join((table, curves, exits, family_of_four))
    assert not breaks(source, given)
    for one, other in (("mlm", "span"), ("span", "span+sbo")):
        wrong = copy.deepcopy(results)
        for row in wrong["rows"]:
            names = {one: other, other: one}
            row["run"]["objective"] = names.get(row["run"]["objective"], row["run"]["objective"])
        # without the boundary head's losses a curve is missing
        for row in wrong["rows"]:
            row["curve"].setdefault("sbo", row["curve"]["mlm"])
        assert breaks(source, given | {"kept_results": lambda _, wrong=wrong: wrong})


def test_bert_base_has_the_size_of_gpt(tmp_path):
    source = cells("bert/bert", '"transformer_base", "gpt", "bert_base"')
    given = {"json": json, "EncoderConfig": EncoderConfig}
    for value, wrong in (([12, 768, 12], False), ([12, 768, 16], True), ([24, 1024, 16], True)):
        path = tmp_path / "papers.json"
        path.write_text(
            json.dumps(PAPERS | {"gpt_size": PAPERS["gpt_size"] | {"value": value}}),
            encoding="utf-8",
        )
        assert breaks(source, given | {"data_path": lambda name, path=path: path}) == wrong


def test_rows_that_were_never_trained_against_two_tables():
    source = cells("evidence/masking_and_copying", "usual, control, far, other_segment")
    losses = (2.42, 2.66, 6.12, 5.78)
    right = (0.47, 0.41, 0.05, 0.14)
    scores = {
        i: {"mlm": loss, "accuracy": share}
        for i, (loss, share) in enumerate(zip(losses, right, strict=True))
    }
    given = {
        "scores": scores,
        "blind": {"frequency": 5.81, "by_position": 5.44},
        "papers": PAPERS,
        "moved": {"segments": [True, False], "positions": [True] * 32 + [False] * 480},
    }
    assert not breaks(source, given)
    for change in (
        {"scores": swapped(scores, 0, 2)},
        {"scores": swapped(scores, 1, 3)},
        {"blind": {"frequency": 6.3, "by_position": 5.44}},
        {"blind": {"frequency": 5.81, "by_position": 4}},
    ):
        assert breaks(source, given | change)
