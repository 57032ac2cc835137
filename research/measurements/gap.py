"""GAP: one pronoun and two names; whom does it mean? Files, score, controls. Chapter:
`book/tasks/coreference`.

Half of the pronouns are feminine, half masculine, so that a system that knows one better is seen.
Source: GAP (Webster and others, 2018) and the rules of its official scorer, written anew.
"""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from spanbert_tutorial.tasks.fine_tuning import shares
from spanbert_tutorial.text.lines import columns_of

FEMININE = {"she", "her", "hers"}
Answer = tuple[bool, bool]  # whether the pronoun means A, and whether it means B


@dataclass(frozen=True)
class Row:
    """A text, a pronoun and two names in it, each as (text, offset of its first character), and
    what is right."""

    id: str
    text: str
    pronoun: tuple[str, int]
    names: tuple[tuple[str, int], tuple[str, int]]
    right: Answer

    @property
    def gender(self) -> str:
        """feminine or masculine, as the pronoun is."""
        return "feminine" if self.pronoun[0].lower() in FEMININE else "masculine"


def read(path: str | Path) -> list[Row]:
    """The rows of a `.tsv` file (also `.xz` or `.gz`)."""
    table = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)

    def place(one: dict, what: str) -> tuple[str, int]:
        return one[what], one[f"{what}-offset"]

    return [
        Row(
            one["ID"],
            one["Text"],
            place(one, "Pronoun"),
            (place(one, "A"), place(one, "B")),
            (one["A-coref"], one["B-coref"]),
        )
        for one in table.to_dict("records")
    ]


def score(rows: Sequence[Row], answers: Sequence[Answer]) -> dict[str, float]:
    """F1 in percent over both names of all rows: `f1`, `masculine`, `feminine`; `bias` is feminine
    by masculine, 1 when both are equal (0 where masculine is 0)."""
    found = {}
    for name in ("f1", "masculine", "feminine"):
        pairs = [
            pair
            for row, answer in zip(rows, answers, strict=True)
            if name in ("f1", row.gender)
            for pair in zip(row.right, answer, strict=True)
        ]
        right, wanted, said = (
            sum(map(test, pairs)) for test in (all, lambda pair: pair[0], lambda pair: pair[1])
        )
        found[name] = shares(right, said, wanted)["f1"]
    return found | {"bias": found["feminine"] / found["masculine"] if found["masculine"] else 0.0}


# --- controls: no training ----------------------------------------------------------


def both(row: Row) -> Answer:
    """Says that the pronoun means A and means B."""
    return True, True


def nearest(row: Row) -> Answer:
    """The name that stands nearest to the pronoun, in characters; of two, the one before it."""
    at = row.pronoun[1]
    far = [
        (at - offset - len(name) if offset < at else offset - at - len(row.pronoun[0]), offset > at)
        for name, offset in row.names
    ]
    return far[0] <= far[1], far[0] > far[1]


def most_often(row: Row) -> Answer:
    """The name of which a word stands in the text most often, so perhaps the text's topic; of two,
    the nearest."""
    text = row.text.replace("'s", "").translate({ord(sign): " " for sign in '.,;:()"'})
    counts = Counter(columns_of(text))
    often = [max(counts[word] for word in columns_of(name)) for name, _ in row.names]
    return nearest(row) if often[0] == often[1] else (often[0] > often[1], often[0] < often[1])
