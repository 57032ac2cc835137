"""One finding in one line, worked out from a file of results. Page: `book/workshop/what_we_found`.

A report names an experiment, its page and its controls, and says which differences answer one
question. Figures, verdicts and the order of better and worse come from the file. The reports
themselves stand in `findings_PART`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from spanbert_tutorial.lab.results import Difference, family

SHOWN = "shown"
NULL = "not shown"
SINGLE = "one run"
DIGITS = {"nats": 2, "points": 1, "steps": 0}


class Comparison(NamedTuple):
    """Two arms with one figure for each seed, in the same order of the seeds. measure: what the
    figures are; low: a lower one is better; expected: whether `first` was expected to be the better
    one, None if no sign was; test_to_train: for seeds that split one collection, as
    `results.standard_error` has it."""

    first: str
    second: str
    measure: str
    columns: tuple[Sequence[float], Sequence[float]]
    unit: str = "points"
    low: bool = False
    expected: bool | None = None
    test_to_train: float = 0.0


class Line(NamedTuple):
    """A finding: `SHOWN`, `NULL` or `SINGLE`, what was found, and its figure, both as text; of a
    comparison over seeds the p-value, corrected for its family."""

    verdict: str
    text: str
    figure: str
    p: float | None = None


Families = Sequence[Sequence[Comparison]]


class Report(NamedTuple):
    """What one file of results says. name: of the file, and of the experiment; page: the chapter
    that reads it; seeds: what a seed draws; controls, limits: in words; families: the comparisons,
    by the question that they answer; told: what is no comparison over seeds."""

    name: str
    asks: str
    page: str
    seeds: str
    controls: str
    limits: str
    families: Callable[[Mapping], Families] = lambda content: []
    told: Callable[[Mapping], Sequence[Line]] = lambda content: []

    def lines(self, content: Mapping) -> list[Line]:
        """All findings of a file."""
        return [line for one in self.families(content) for line in lines_of(one)] + list(
            self.told(content)
        )


def corrected(comparisons: Sequence[Comparison]) -> list[Difference]:
    """The difference of each comparison of a family, after Holm. All split their seeds alike."""
    columns = {str(number): one.columns for number, one in enumerate(comparisons)}
    return list(family(columns, comparisons[0].test_to_train).values()) if comparisons else []


def lines_of(comparisons: Sequence[Comparison]) -> list[Line]:
    """One line for each comparison of a family, corrected after Holm."""
    return [
        line_of(one, found) for one, found in zip(comparisons, corrected(comparisons), strict=True)
    ]


def line_of(one: Comparison, found: Difference) -> Line:
    """A shown difference names the better arm first. One that is not shown keeps the order of the
    comparison; above 0 its first arm is better, also where the measure is a loss."""
    gain = -found.mean if one.low else found.mean
    if not found.shown:
        hoped = {
            True: f" (expected: {one.first} better)",
            False: f" (expected: {one.second} better)",
            None: "",
        }
        text = f"{named(one.first)} against {named(one.second)}: {one.measure}{hoped[one.expected]}"
        return Line(NULL, text, with_half(gain, found.half, one.unit, signed=True), found.p)
    better, worse = (one.first, one.second) if gain > 0 else (one.second, one.first)
    met = {None: "", gain > 0: ", as expected"}.get(one.expected, ", against what was expected")
    text = f"{named(better)} better than {named(worse)}: {one.measure}{met}"
    return Line(SHOWN, text, with_half(abs(found.mean), found.half, one.unit), found.p)


def named(arm: str) -> str:
    """An arm's name in a sentence, in quotation marks where it has a comma of its own."""
    return f"“{arm}”" if "," in arm else arm


def with_half(mean: float, half: float, unit: str, signed: bool = False) -> str:
    """A mean and half the width of its interval, as text: "0.95 ± 0.18 nats"."""
    digits = DIGITS[unit]
    number = (
        f"{mean:+z.{digits}f}".replace("-", "−") if signed else f"{mean:z.{digits}f}"
    )  # z: no "−0.0"
    return f"{number} ± {half:.{digits}f} {unit}"


def interval_line(
    text: str, low: float, high: float, mean: float, digits: int = 1, unit: str = "points"
) -> Line:
    """A figure with an interval that is not over seeds: shown when the interval leaves out 0."""
    shown = f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f}) {unit}".replace("-", "−")
    return Line(SHOWN if low > 0 or high < 0 else NULL, text, shown)


def percent(shares: Sequence[float]) -> list[float]:
    """Shares as percent, so that their differences are points."""
    return [100 * share for share in shares]
