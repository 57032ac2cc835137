"""The asserts behind the numbers of the chapters on tasks break where a number or an arm is
wrong."""

import copy
import inspect

import numpy as np
import pytest
from chapter_cells import PAPERS, breaks, cells, kept, swapped

from research.experiments import relation_markers, sentence_states
from research.results import column, family
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks.squad_negatives import RULES
from spanbert_tutorial.tasks.windows import MAX_QUESTION_TOKENS

# --- the kinds of questions without an answer ----------------------------------------

KINDS = "written", "picked, other article", "picked, same article", *RULES
MIDDLE = 0.44, 0.78, 0.85, 0.59, 0.75, 0.72
SOUND = {
    "table": {
        kind: (value, value - 0.06, value + 0.06, 0.5)
        for kind, value in zip(KINDS, MIDDLE, strict=True)
    },
    "before": dict(zip(RULES, (0.512, 0.524, 0.466), strict=True)),
    "by_draw": {
        kind: np.random.default_rng(0).normal(value, 0.02, 500)
        for kind, value in zip(KINDS, MIDDLE, strict=True)
    },
    "kinds": dict.fromkeys(KINDS),
}


def test_the_kinds_pass():
    assert not breaks(cells("evidence/questions", "middle, _, _, by_type"), SOUND)


@pytest.mark.parametrize(
    "wrong",
    [
        {"before": SOUND["before"] | {"other name": 0.54}},
        {"before": swapped(SOUND["before"], "opposite", "other number")},
        {"before": dict.fromkeys(RULES, 0.5)},  # a group against itself
        {"table": swapped(SOUND["table"], "written", "opposite")},
        {"table": swapped(SOUND["table"], "picked, other article", "picked, same article")},
        {"by_draw": swapped(SOUND["by_draw"], "written", "opposite")},
    ],
)
def test_a_wrong_kind_breaks(wrong):
    assert breaks(cells("evidence/questions", "middle, _, _, by_type"), SOUND | wrong)


TUNED = [[52.157, 47.508, 49.282], [79.074, 76.022, 50.0]]


@pytest.mark.parametrize(
    ("tuned", "wrong"),
    [
        (TUNED, False),
        (TUNED[::-1], True),  # the two kinds
        ([[first, nothing, honest] for first, honest, nothing in TUNED], True),
        ([[52.157, 47.308, 49.282], TUNED[1]], True),  # 4.8 instead of 4.6
    ],
)
def test_what_a_threshold_flatters(tuned, wrong):
    asserts = cells("tasks/squad", "flattering, honest, nothing = ").split(
        "flattering, honest, nothing = "
    )[1]
    assert breaks(f"flattering, honest, nothing = {asserts}", {"tuned": tuned}) == wrong


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        ("squad2_table4_tfidf", PAPERS["squad2_table4_rules"]["value"]),
        (
            "squad2_table5_plausible",
            {"BiDAF-No-Answer": [63.0], "DocQA": [69.9], "DocQA+ELMo": [69.2], "people": [60.6]},
        ),
    ],
)
def test_quoted_tables_of_squad(key, value):
    papers = copy.deepcopy(PAPERS)
    if key:
        papers[key]["value"] = value
        if key == "squad2_table5_plausible":
            papers[key]["value"] = {name: [f1, f1] for name, (f1,) in value.items()}
    source = cells("evidence/questions", '"squad2_table5_plausible"')
    assert breaks(source, {"papers": papers}) == bool(key)


# --- question answering -------------------------------------------------------------


def chapter_on_answers(rows: list[dict]) -> bool:
    """Whether the asserts of the chapter on the five seeds break."""
    source = cells("tasks/question_answering", "kept_seeds = json.loads(").split("arms = ")[1]
    given = {"kept_seeds": rows, "numbers": (258, 718_850)}
    return breaks(f"arms = {source}", given)


def arms_of_answers(rows: list[dict]) -> bool:
    """Whether the asserts on the five seeds break."""
    source = cells("evidence/questions", "per_seed = {}")
    arms = "pre-trained", "new weights", "only S and E"
    given = {
        "arms": arms,
        "family": family,
        "seeds": rows,
        "floor": 30.158,
        "of_seeds": lambda name, key: [row[name][key] for row in rows],
    }
    return breaks(source, given)


def test_the_arms_pass_and_swapped_arms_break():
    rows = kept("almanac_answers.json")["rows"]
    assert not arms_of_answers(rows) and not chapter_on_answers(rows)
    for one, other in (
        ("pre-trained", "new weights"),
        ("pre-trained", "only S and E"),
        ("new weights", "only S and E"),
    ):
        assert arms_of_answers([swapped(row, one, other) for row in rows])
        assert chapter_on_answers([swapped(row, one, other) for row in rows])
    assert arms_of_answers(
        [
            row | {"pre-trained": row["pre-trained"] | {"forced": row["pre-trained"]["forced"] - 2}}
            for row in rows
        ]
    )


def categories(rows: list[dict]) -> bool:
    """Whether the asserts on the F1 of each category break."""
    source = cells("evidence/questions", "over_seeds = {")

    def of_seeds(name: str, key: str, kind: str | None = None) -> list:
        return [row[name][key][kind] if kind else row[name][key] for row in rows]

    return breaks(source, {"of_seeds": of_seeds})


def test_the_categories_pass_and_a_lower_one_breaks():
    rows = kept("almanac_answers.json")["rows"]
    assert not categories(rows)
    assert categories([swapped(row, "pre-trained", "new weights") for row in rows])
    for kind in rows[0]["pre-trained"]["by_category"]:
        if kind != "answerable":
            worse = copy.deepcopy(rows)
            worse[2]["pre-trained"]["by_category"][kind] -= 26  # one seed of five
            assert categories(worse)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        ("bert_fine_tuning_dropout", 0.0),
        ("bert_warmup_steps", 1_000),
        ("bert_weight_decay", 0.1),
    ],
)
def test_the_recipes_of_the_papers(key, value):
    source = cells("evidence/questions", "bert_fine_tuning_dropout")
    papers = copy.deepcopy(PAPERS)
    if key:
        papers[key]["value"] = value
    given = {
        "papers": papers,
        "qa": qa,
        "settings": {"dropout": 0.0},
        "decode": qa.decode,
        "inspect": inspect,
        "MAX_QUESTION_TOKENS": MAX_QUESTION_TOKENS,
    }
    assert breaks(source, given) == bool(key)


# --- classification -----------------------------------------------------------------


def test_the_states_pass_and_swapped_labels_break():
    rows = kept("sentence_states.json")["rows"]
    names = ("kind, 3", "length, 3", "kind at random, 3", "kind at random, 30")

    def broken(rows: list[dict]) -> bool:
        table = {
            (size, name, question, vector): 100
            * np.mean([row[size][name][question][vector] for row in rows])
            for size in ("tiny", "mini")
            for name in rows[0][size]
            for question in sentence_states.QUESTIONS
            for vector in sentence_states.READ
        }
        given = {
            "table": table,
            "seeds": rows,
            "QUESTIONS": sentence_states.QUESTIONS,
            "lists": [92.0],
            "trained": [
                ("tiny", "spanbert-tiny"),
                ("mini", "spanbert-mini"),
                ("mini", "bert-mini"),
            ],
            "sentence_states": sentence_states,
            "papers": PAPERS,
        }
        return breaks(cells("evidence/states_and_sentences", "def percent(size, name"), given)

    assert not broken(rows)
    for one, other in zip(names, names[1:], strict=False):
        pair = [f"spanbert-tiny, {name} passes" for name in (one, other)]
        assert broken([row | {"tiny": swapped(row["tiny"], *pair)} for row in rows])
        assert broken([row | {"moved": swapped(row["moved"], *pair)} for row in rows])
    assert broken(
        [row | {"mini": swapped(row["mini"], "spanbert-mini", "bert-mini")} for row in rows]
    )
    assert broken(
        [row | {"tiny": swapped(row["tiny"], "new weights", "spanbert-tiny")} for row in rows]
    )


# --- relation extraction ------------------------------------------------------------

MARKERS = kept("relation_markers.json")


def breaks_with_arms(renamed: dict[str, str]) -> bool:
    """Whether the asserts on the kept arms break when arms have changed their names."""
    content = copy.deepcopy(MARKERS)
    for row in content["rows"]:
        row["way"] = renamed.get(row["way"], row["way"])
    given = {
        "kept": content,
        "relation_markers": relation_markers,
        "column": column,
        "family": family,
    }
    return breaks(
        cells("evidence/people_and_relations", 'pairs = [\n    ("replaced, markers"'), given
    )


@pytest.mark.parametrize(
    "two",
    [
        (),
        ("replaced, [CLS]", "replaced, markers"),
        ("around, [CLS]", "around, markers"),
        ("names alone", "context alone"),
        ("around, markers", "new weights"),
        ("around, markers", "replaced, markers"),
    ],
    ids=str,
)
def test_arms_of_relations_that_change_places(two):
    assert breaks_with_arms(dict(zip(two, reversed(two), strict=True))) == bool(two)


@pytest.mark.parametrize(
    ("model", "values", "wrong"),
    [
        ("SpanBERT", [70.8, 70.9, 70.8], False),
        ("SpanBERT", [70.8, 70.9, 70.9], True),
        ("Our BERT-1seq", [72.4, 67.9, 70.2], True),
        ("Our BERT", [67.8, 67.2, 67.2], True),
        ("BERT-EM + MTB", [None, None, 70.5], True),
    ],
)
def test_the_quoted_table_of_tacred(model, values, wrong):
    papers = copy.deepcopy(PAPERS)
    papers["spanbert_table4"]["value"][model] = values
    source = cells("tasks/relation_extraction", 'reported = papers["spanbert_table4"]')
    assert breaks(source, {"papers": papers, "Table": lambda *_: None}) == wrong
