"""GAP: one pronoun and two names; whom does it mean? Files, score, controls. Chapter:
`book/tasks/coreference`.

Half of the pronouns are feminine, half masculine, so that a system that knows one better is seen.
Source: GAP (Webster and others, 2018) and the rules of its official scorer, written anew.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks.fine_tuning import shares
from spanbert_tutorial.text.lines import columns_of, lines_of, read_text, visible

HEADER = "ID Text Pronoun Pronoun-offset A A-offset A-coref B B-offset B-coref URL".split(" ")
FEMININE = {"she", "her", "hers"}
MASCULINE = {"he", "him", "his"}
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
    """The rows of a `.tsv` file (also `.xz` or `.gz`). Raises InputError naming line and reason."""
    first, *others = lines_of(read_text(path, "a .tsv file of GAP (also .xz, .gz)"))
    if first.split("\t") != HEADER:
        raise InputError(
            f"{path}, line 1: not GAP's header; write {' '.join(HEADER)}, with tabs between."
        )
    return [
        row(line.split("\t"), f"{path}, line {number}")
        for number, line in enumerate(others, start=2)
        if visible(line)
    ]


def row(columns: Sequence[str], where: str) -> Row:
    """One line of a file."""
    if len(columns) != len(HEADER):
        raise InputError(f"{where}: {len(columns)} columns instead of {len(HEADER)}; mend it.")
    given = dict(zip(HEADER, columns, strict=True))
    for what in ("Pronoun", "A", "B"):
        offset = given[f"{what}-offset"]
        if (
            not offset.isdecimal()
            or not given["Text"].startswith(given[what], int(offset))
            or not given[what]
        ):
            raise InputError(
                f'{where}: "{given[what]}" does not stand at {offset} of the text; mend '
                f"{what}-offset."
            )
    if given["Pronoun"].lower() not in FEMININE | MASCULINE:
        raise InputError(
            f'{where}: "{given["Pronoun"]}" is no pronoun of GAP; give a form of he or she.'
        )
    truth = {"TRUE": True, "FALSE": False}
    coreferent = [given[f"{name}-coref"].upper() for name in "AB"]
    if not set(coreferent) <= set(truth):
        raise InputError(f"{where}: A-coref and B-coref must be TRUE or FALSE; mend them.")
    places = [(given[what], int(given[f"{what}-offset"])) for what in ("Pronoun", "A", "B")]
    return Row(
        given["ID"],
        given["Text"],
        places[0],
        (places[1], places[2]),
        (truth[coreferent[0]], truth[coreferent[1]]),
    )


def score(rows: Sequence[Row], answers: Sequence[Answer]) -> dict[str, float]:
    """F1 in percent over both names of all rows: `f1`, `masculine`, `feminine`; `bias` is feminine
    by masculine, 1 when both are equal (0 where masculine is 0). Raises InputError unless there is
    one answer for each row."""
    if len(rows) != len(answers):
        raise InputError(f"{len(rows)} rows and {len(answers)} answers: give one for each.")
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


def answers(rows: Iterable[Row], control: Callable[[Row], Answer]) -> list[Answer]:
    """What a control says of each row."""
    return [control(row) for row in rows]
