"""The asserts behind the numbers on BERT's relatives, in `book/evidence/relatives`, break where a
number or a condition is wrong."""

import copy

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from chapter_cells import PAPERS, breaks, cells, kept

from research.experiments import albert_sop, beyond_ways, electra_mini
from research.results import column, family
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.figures.curves import draw_intervals
from spanbert_tutorial.relatives.albert import SHARING, AlbertConfig, AlbertEncoder
from spanbert_tutorial.relatives.electra import ElectraConfig
from spanbert_tutorial.relatives.electra_flops import electra_flops, mlm_flops

matplotlib.use("Agg")


PAGE = "evidence/relatives"

# --- numbers of papers --------------------------------------------------------------

QUOTED = {
    "albert": (
        ["albert_table1_sizes"],
        {"AlbertConfig": AlbertConfig, "AlbertEncoder": AlbertEncoder, "torch": torch, "V": 30_000},
    ),
    "electra": (
        ["glue = {n: papers", "electra_small_part_of_bert_large", "found = [round(gain, 1)"],
        {
            "ElectraConfig": ElectraConfig,
            "EncoderConfig": EncoderConfig,
            "electra_flops": electra_flops,
            "mlm_flops": mlm_flops,
        },
    ),
    "roberta": (["def show(columns, keys)", "Table 5, GLUE"], {"np": np}),
}
WRONG = [
    ("albert", "albert_table2_speed", [4.7, 1.0, 5.6, 1.7, 0.6, 0.4]),
    ("albert", "albert_table2_speed", [4.7, 1.0, 5.6, 1.7, 0.3, 0.6]),
    ("albert", "albert_table2_speed", [4.7, 1.0, 5.6, 1.6, 0.6, 0.3]),
    ("albert", "albert_table2_average", [80.1, 82.4, 82.3, 85.2, 85.5, 88.7]),
    ("albert", "albert_xxlarge_slower", 4),
    (
        "albert",
        "albert_table1_sizes",
        {
            "base": [12, 768, 128],
            "large": [24, 1024, 128],
            "xlarge": [24, 2048, 128],
            "xxlarge": [24, 4096, 128],
            "another": [24, 4096, 128],
        },
    ),
    (
        "albert",
        "albert_table1_sizes",
        {
            "base": [12, 768, 768],
            "large": [24, 1024, 128],
            "xlarge": [24, 2048, 128],
            "xxlarge": [12, 4096, 128],
        },
    ),
    ("electra", "electra_small_part_of_bert_large", {"parameters": 20, "computation": 4}),
    (
        "electra",
        "electra_train_flops",
        PAPERS["electra_train_flops"]["value"] | {"BERT-Large": 1.9e19},
    ),
    (
        "electra",
        "electra_train_flops",
        PAPERS["electra_train_flops"]["value"] | {"RoBERTa-500K": 7.1e20},
    ),
    ("electra", "electra_table5_bert", 85.0),
    ("electra", "electra_table5_replace_mlm", 84.8),
    ("electra", "electra_table1_electra_small", 84.9),
    (
        "roberta",
        "roberta_text_gigabytes",
        {"books and Wikipedia": 13, "CC-News": 76, "OpenWebText": 38, "Stories": 31},
    ),
    ("roberta", "roberta_table5_roberta", PAPERS["roberta_table5_xlnet_large"]["value"]),
    ("roberta", "bert_short_phase", {"share": 0.1, "length": 128}),
]


@pytest.mark.parametrize("chapter", QUOTED)
def test_quoted_numbers_pass(chapter):
    marks, given = QUOTED[chapter]
    assert not breaks(cells(PAGE, *marks), given | {"papers": PAPERS})


@pytest.mark.parametrize(("chapter", "key", "wrong"), WRONG)
def test_a_wrong_quoted_number_breaks(chapter, key, wrong):
    marks, given = QUOTED[chapter]
    papers = copy.deepcopy(PAPERS)
    papers[key]["value"] = wrong
    assert breaks(cells(PAGE, *marks), given | {"papers": papers})


# --- the project's own results, with two arms in each other's place -----------------


def swapped(rows: list[dict], one: dict, other: dict) -> list[dict]:
    """The rows with the names of two arms exchanged. one, other: key → name."""
    changed = []
    for row in rows:
        first, second = (all(row[key] == name for key, name in arm.items()) for arm in (one, other))
        changed.append(row | (other if first else one if second else {}))
    return changed


def sharing(rows: list[dict]) -> tuple[str, dict]:
    marks = "def held_out(sharing)", '"all - none": ("all", "none")'
    results = kept("albert_sharing.json") | {"rows": rows}
    return cells(PAGE, *marks), {
        "SHARING": SHARING,
        "sharing_kept": results,
        "family": family,
        "draw_intervals": draw_intervals,
        "plt": plt,
    }


def order(rows: list[dict]) -> tuple[str, dict]:
    bags = {"NSP": [81.0, 55.0], "SOP": [51.0, 66.0]}
    given = {
        "order_kept": {"rows": rows},
        "bags": bags,
        "albert_sop": albert_sop,
        "np": np,
        "family": family,
        "draw_intervals": draw_intervals,
        "plt": plt,
    }
    return cells("evidence/input_formats", 'TRAINED = "none"', "asked = {  # task"), given


def tasks(rows: list[dict]) -> tuple[str, dict]:
    marks = (
        "def mean(arm, begin",
        "score, steps = {}, {}",
        '"scratch: ELECTRA - MLM"',
    )
    rows = sorted(
        rows, key=lambda row: (row["seed"], electra_mini.ARMS.index((row["arm"], row["from"])))
    )
    given = {
        "np": np,
        "electra_mini": electra_mini,
        "family": family,
        "draw_intervals": draw_intervals,
        "plt": plt,
    }
    return cells(PAGE, *marks), given | {"recorded": lambda name: kept(name) | {"rows": rows}}


def masks(rows: list[dict]) -> tuple[str, dict]:
    places = "held out", "trained on"
    ways = "static", "ten copies", "dynamic"
    found = {
        (w, p): column({"rows": rows}, "new_masks", p, "loss", way=w) for w in ways for p in places
    }
    return cells(PAGE, 'for way in ("ten copies", "static")'), {
        "loss": found,
        "places": places,
        "np": np,
        "plt": plt,
        "family": family,
        "draw_intervals": draw_intervals,
    }


def copying(rows: list[dict]) -> tuple[str, dict]:
    def figures(way: str, *names: str) -> list[float]:
        values = [row["uses"] for row in rows if row["way"] == way]
        for name in names:
            values = [value[name] for value in values]
        return values

    given = {
        "ways": beyond_ways.WAYS,
        "of_seeds": figures,
        "family": family,
        "np": np,
        "entropy": 5.87,
    }
    return cells(PAGE, "for way, gain in family(losses).items()"), given


ENCODING, REGRESSIVE, CONTROL = ({"way": way} for way in beyond_ways.WAYS)
ARMS = [
    (sharing, "albert_sharing.json", {"sharing": "attention"}, {"sharing": "feed_forward"}),
    (order, "albert_sop.json", {"trained": "NSP"}, {"trained": "SOP"}),
    (order, "albert_sop.json", {"trained": "none"}, {"trained": "SOP"}),
    (
        tasks,
        "electra_mini.json",
        {"arm": "electra", "from": "start"},
        {"arm": "arg-max", "from": "start"},
    ),
    (
        tasks,
        "electra_mini.json",
        {"arm": "mlm", "from": "scratch"},
        {"arm": "electra", "from": "scratch"},
    ),
    (masks, "roberta_masks.json", {"way": "static"}, {"way": "ten copies"}),
    (masks, "roberta_masks.json", {"way": "dynamic"}, {"way": "ten copies"}),
    (copying, "beyond_ways.json", ENCODING, REGRESSIVE),
    (copying, "beyond_ways.json", CONTROL, REGRESSIVE),
]


@pytest.mark.parametrize(("chapter", "file"), dict.fromkeys((arm[0], arm[1]) for arm in ARMS))
def test_kept_results_pass(chapter, file):
    assert not breaks(*chapter(kept(file)["rows"]))
    plt.close("all")


@pytest.mark.parametrize(("chapter", "file", "one", "other"), ARMS)
def test_swapped_arms_break(chapter, file, one, other):
    rows = kept(file)["rows"]
    assert swapped(rows, one, other) != rows
    source, given = chapter(swapped(rows, one, other))
    assert breaks(source, given)
    plt.close("all")
