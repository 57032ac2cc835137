"""Coreference on the almanac: the saved rows, and the asserts behind the evidence page."""

import copy
from pathlib import Path

import pytest
from chapter_cells import PAPERS, breaks, cells, kept

from research.experiments import almanac_coreference as experiment
from research.results import family

ROWS = "average = {start: []"


@pytest.fixture(scope="module")
def rows():
    return kept("almanac_coreference.json")


def test_the_rules_are_those_of_the_file(rows):
    facts, given = experiment.prepare(Path(), experiment.SETTINGS)
    assert facts == {"fingerprint": rows["fingerprint"], "counts": [250, 68]}
    assert experiment.beside(experiment.SETTINGS, *given)["rules"] == rows["rules"]


def test_no_document_stands_in_two_parts():
    parts = [experiment.documents(split) for split in ("train", "test")]
    train, test = ({one.name: " ".join(one.words) for one in some} for some in parts)
    assert len(train) == 2309 and len(test) == 68
    assert not train.keys() & test.keys() and not set(train.values()) & set(test.values())


def test_both_starts_have_every_seed(rows):
    assert [(row["start"], row["seed"]) for row in rows["rows"]] == [
        (start, seed) for seed in range(experiment.SEEDS) for start in experiment.ARMS
    ]


def holds(rows):
    given = {"kept": rows, "almanac_coreference": experiment, "family": family, "told": str}
    return not breaks(cells("evidence/people_and_relations", ROWS), given)


def test_numbers_of_the_chapter_break_where_they_are_wrong(rows):
    assert holds(rows)
    exchanged, other_rule, fewer = (copy.deepcopy(rows) for _ in range(3))
    for row in exchanged["rows"]:
        row["start"] = experiment.ARMS[row["start"] == experiment.ARMS[0]]
    rules = other_rule["rules"]["by rule"]
    rules["same last word"], rules["nearest"] = rules["nearest"], rules["same last word"]
    fewer["rows"] = [row for row in fewer["rows"] if row["seed"]]
    assert not any(map(holds, (exchanged, other_rule, fewer)))


@pytest.mark.parametrize("key", ["", "spanbert_table7_1seq_sbo", "spanbert_table3_coreference"])
def test_quoted_numbers(key):
    papers = copy.deepcopy(PAPERS)
    value = papers[key]["value"] if key else None
    if isinstance(value, dict):
        value["SpanBERT"][3] += 1
    elif value:
        value[3] += 1
    table = cells("evidence/people_and_relations", 'table = papers["spanbert_table3_coreference"]')
    checks = cells("evidence/people_and_relations", "average_of = {system")
    assert breaks(f"{table}\n{checks}", {"papers": papers}) == bool(key)
