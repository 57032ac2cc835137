"""What the experiments of Part II found. Page: `book/workshop/what_we_found`."""

import json
from collections.abc import Callable, Mapping

import numpy as np

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.lab.findings import Comparison, Families, Report, percent
from spanbert_tutorial.lab.results import column

NAMES = "hidden names that must be inferred, ranked first"
KIND = "kind of a hidden name, read from the states outside"
ANSWERS = "2,000 questions on the almanac, F1, an answer forced"
CLUSTERS = "coreference on the almanac, average F1"
LITBANK = "LitBank, average F1"
HIDDEN = {"token": "tokens hidden one by one", "span": "tokens hidden in spans"}
OBJECTIVES = {"mlm": "token masking", "span": "span masking", "span+sbo": "span masking with SBO"}


def token_vs_span(content: Mapping) -> Families:
    """Three objectives from scratch, under both ways of hiding."""

    def pair(first: str, second: str, way: str, expected: bool | None) -> Comparison:
        losses = tuple(
            column(content, "held_out", way, "mlm", objective=one) for one in (first, second)
        )
        return Comparison(
            OBJECTIVES[first],
            OBJECTIVES[second],
            f"held-out loss, {HIDDEN[way]}",
            losses,
            "nats",
            True,
            expected,
        )

    return [
        [
            pair("span", "mlm", "token", None),
            pair("span", "mlm", "span", None),
            pair("span+sbo", "span", "token", None),
            pair("span+sbo", "span", "span", None),
        ]
    ]


def boundary_probe(content: Mapping) -> Families:
    """With and without SBO, from a common start: what a probe reads, and what it costs the token
    head."""
    where = {"boundary": "outside the span", "inside": "inside it"}
    arms = {"span+sbo": "span masking with SBO", "span": "span masking alone"}
    read = [
        Comparison(
            *arms.values(),
            f"{asked} of a hidden name, read from the two states {told}",
            tuple(percent(column(content, "probe", place, asked, arm=arm)) for arm in arms),
        )
        for place, told in where.items()
        for asked in ("kind", "length", "first piece")
    ]
    ends = tuple(
        [float(np.mean(curve[-4:])) for curve in column(content, "curve", arm=arm)] for arm in arms
    )
    price = Comparison(
        *arms.values(), "loss of the token head in the last 100 steps", ends, "nats", True
    )
    return [read, [price]]


def pairs_vs_single(content: Mapping) -> Families:
    """Three formats, measured in two; and whether the second task was learned."""
    contrasts = (("one segment", "pairs"), ("pairs", "pairs + NSP"), ("one segment", "pairs + NSP"))
    losses = [
        Comparison(
            first,
            second,
            f"held-out loss, measured on {way}",
            tuple(column(content, "held_out", way, "mlm", format=one) for one in (first, second)),
            "nats",
            True,
        )
        for first, second in contrasts
        for way in ("one segment", "pairs")
    ]
    return [losses, [nsp_learned(content)]]


def nsp_learned(content: Mapping) -> Comparison:
    """The second task, against a program that always says the same."""
    right = percent(column(content, "held_out", "pairs", "nsp_accuracy", format="pairs + NSP"))
    always = 100 * column(content, "held_out", "pairs", "not_next", format="pairs + NSP")[0]
    return Comparison(
        "pairs + NSP",
        "always saying NotNext",
        "NSP labels of held-out pairs that are right",
        (right, [always] * len(right)),
    )


def of_arms(content: Mapping) -> Callable[..., Comparison]:
    """What compares two arms of a file: names of the arms, of the measure, and of the figure in a
    row."""

    def pair(
        first: str,
        second: str,
        measure: str,
        *names: str,
        expected: bool | None = None,
        unit: str = "points",
        low: bool = False,
    ) -> Comparison:
        return Comparison(
            first,
            second,
            measure,
            tuple(column(content, *names, arm=arm) for arm in (first, second)),
            unit,
            low,
            expected,
        )

    return pair


def spans_and_boundaries(content: Mapping) -> Families:
    """The claims as they stood before the runs, and what else was measured."""
    pair = of_arms(content)

    def in_all(first: str, second: str) -> Comparison:
        return Comparison(
            first,
            second,
            "all hidden names, ranked first",
            tuple(over_all_names(content, arm) for arm in (first, second)),
        )

    outside = "a word and a name mean the same, AUC of a probe on the states outside"
    claims = [
        pair("span", "token", NAMES, "names", "inferred", "first", expected=True),
        pair("span+sbo", "placebo", outside, "pairs", "outside", expected=True),
        pair("span+sbo", "token", ANSWERS, "uses", "questions, 2000", "f1", expected=True),
    ]
    beside = [
        pair(*arms, f"held-out loss, {told}", "losses", way, unit="nats", low=True)
        for arms in (("span", "token"), ("span+sbo", "span"))
        for way, told in HIDDEN.items()
    ]
    beside += [
        pair(
            "span",
            "token",
            "hidden names that stand elsewhere in the block, ranked first",
            "names",
            "elsewhere",
            "first",
        ),
        pair("span+sbo", "span", NAMES, "names", "inferred", "first"),
        in_all("span", "token"),
        in_all("span+sbo", "span"),
        pair("span+sbo", "span", outside, "pairs", "outside"),
        pair("span+sbo", "placebo", outside.replace("outside", "inside"), "pairs", "inside"),
        pair("span+sbo", "placebo", KIND, "kinds", "boundary"),
        pair("span+sbo", "span", KIND, "kinds", "boundary"),
        pair("span", "token", KIND, "kinds", "boundary"),
        pair("span+sbo", "span", KIND.replace("outside", "inside"), "kinds", "inside"),
        pair("span+sbo", "placebo", ANSWERS, "uses", "questions, 2000", "f1"),
        pair(
            "span+sbo",
            "token",
            "300 questions on the almanac, F1, an answer forced",
            "uses",
            "questions, 300",
            "f1",
        ),
    ]
    tasks = {
        "tags": "tags of new names, F1",
        "coreference": CLUSTERS,
        "relations": "relations of the almanac, F1",
    }
    beside += [pair("span+sbo", "token", told, "uses", task) for task, told in tasks.items()]
    for arms in (("span", "token"), ("span+sbo", "span")):  # as rows of the paper's Tables 6 and 7
        beside += [
            pair(*arms, ANSWERS, "uses", "questions, 2000", "f1"),
            pair(*arms, CLUSTERS, "uses", "coreference"),
        ]
    return [claims, beside]


def over_all_names(content: Mapping, arm: str) -> list[float]:
    """How many of 100 hidden names of each seed are ranked first, wherever else they stand."""
    gaps = {
        where: found["gaps"] for where, found in content["controls"]["names"]["frequency"].items()
    }
    ranked = [
        np.multiply(gaps[where], column(content, "names", where, "first", arm=arm))
        for where in gaps
    ]
    return (np.sum(ranked, axis=0) / sum(gaps.values())).tolist()


def spans_on_wikipedia(content: Mapping) -> Families:
    """The claims as they stood before the runs, and beside them the losses, and coreference as in
    the paper's Tables 6 and 7."""
    pair = of_arms(content)
    claims = [
        pair("span", "token", NAMES, "names", "inferred", "first", expected=True),
        pair(
            "span+sbo",
            "placebo",
            "a pronoun and a name mean the same in GAP, AUC of a probe on the states outside",
            "pairs",
            "outside",
            expected=True,
        ),
        pair("span+sbo", "token", LITBANK, "coreference", "average", expected=True),
    ]
    beside = [
        pair("span", "token", f"held-out loss, {told}", "losses", way, unit="nats", low=True)
        for way, told in HIDDEN.items()
    ]
    beside += [
        pair(*arms, LITBANK, "coreference", "average")
        for arms in (("span", "token"), ("span+sbo", "span"))
    ]
    return [claims, beside]


def beside_core(content: Mapping) -> dict:
    """The rows of an experiment with those of `spans_and_boundaries` that have its starts and
    seeds."""
    core = json.loads(data_path("results", "spans_and_boundaries.json").read_text(encoding="utf-8"))
    seeds = {row["seed"] for row in content["rows"]}
    return {"rows": [row for row in (*core["rows"], *content["rows"]) if row["seed"] in seeds]}


def ways_of_hiding(content: Mapping) -> Families:
    """The claims as they stood before the runs, and names under the other ways."""
    pair = of_arms(beside_core(content))
    others = list(dict.fromkeys(row["arm"] for row in content["rows"]))
    claims = [
        pair("entities", "span", NAMES, "names", "inferred", "first", expected=True),
        *(
            pair("span", other, ANSWERS, "uses", "questions, 2000", "f1", expected=True)
            for other in others
        ),
    ]
    beside = [
        pair(other, "span", NAMES, "names", "inferred", "first")
        for other in others
        if other != "entities"
    ]
    return [claims, beside]


def span_settings(content: Mapping) -> Families:
    """The signs as they stood before the runs, and what each setting changes in the states
    outside."""
    pair = of_arms(content)
    arms = list(dict.fromkeys(row["arm"] for row in content["rows"]))
    second = arms.index("span+sbo")  # from here on arms have a boundary head
    one_by_one = f"held-out loss, {HIDDEN['token']}"
    claims = [
        pair(
            "at most 3 words",
            "span",
            one_by_one,
            "losses",
            "token",
            expected=True,
            unit="nats",
            low=True,
        ),
        pair(
            "SBO × 3",
            "span+sbo",
            one_by_one,
            "losses",
            "token",
            expected=False,
            unit="nats",
            low=True,
        ),
    ]
    kinds = [
        pair(arm, same[0], KIND, "kinds", "boundary")
        for same in (arms[:second], arms[second:])
        for arm in same[1:]
    ]
    return [claims, kinds]


REPORTS = (
    Report(
        "token_vs_span",
        "does span masking help, and the span boundary objective, from scratch?",
        "spanbert/pretraining_spanbert",
        "first weights and order",
        "the same text, steps and number of hidden pieces; two tables without context",
        "Learning rate and start were chosen on token masking; all losses were still falling. It "
        "says who leaves "
        "the plateau sooner, not which way of hiding is better in the end.",
        token_vs_span,
    ),
    Report(
        "boundary_probe",
        "what do boundary states hold, with and without SBO?",
        "spanbert/boundary",
        "first weights and order",
        "the same start, blocks and spans; an untrained encoder, shuffled labels",
        "500 steps from a start of token masking.",
        boundary_probe,
    ),
    Report(
        "pairs_vs_single",
        "one segment against pairs, with and without next sentence prediction",
        "spanbert/single_sequence",
        "first weights and order",
        "the same pairs without NSP",
        "Runs that leave the plateau later end higher; no task was fine-tuned.",
        pairs_vs_single,
    ),
    Report(
        "spans_and_boundaries",
        "what are spans and their boundaries good for, from one start past the plateau?",
        "spanbert/name_ranks",
        "first weights and order",
        "one start for all arms of a seed; an untrained encoder; frequency, tables without "
        "context, names that "
        "stand together; a placebo, SBO rows that read another span's neighbours",
        "Tiny models, no wider one, and a vocabulary of 800 pieces, so that names have several. "
        "span+sbo: spans "
        "with SBO. Of the further comparisons thirteen were added when rows of four or five "
        "seeds had been seen.",
        spans_and_boundaries,
    ),
    Report(
        "spans_on_wikipedia",
        "the same four arms on Wikipedia, from one start",
        "spanbert/name_ranks",
        "the order of the blocks and the masks; the start is one and the same",
        "the start; frequency, tables without context, names that stand together; a placebo",
        "One start, so an interval says less; names are runs of words with a capital. One "
        "learning rate, chosen "
        "for none of the arms.",
        spans_on_wikipedia,
    ),
    Report(
        "ways_of_hiding",
        "what does it matter whether spans, words, entities, noun phrases or collocations are "
        "hidden?",
        "spanbert/labeled_masking",
        "first weights and order",
        "the same starts and tokens as spans and tokens",
        "Tiny models, a vocabulary of 800 pieces, one invented text whose phrases are labeled "
        "by construction. The "
        "learning rate is that of spans and tokens; it was not chosen for these ways.",
        ways_of_hiding,
    ),
    Report(
        "span_settings",
        "what do lengths, shares and the weight of SBO change?",
        "spanbert/labeled_masking",
        "first weights and order",
        "the paper's settings, from the same starts, for as many steps",
        "Miniatures: 1,000 steps after the start, and no task was trained.",
        span_settings,
    ),
)
