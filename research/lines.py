"""One finding as a line of text: a verdict, what was found, and its metric. Page:
`book/workshop/what_we_found`."""

from collections.abc import Sequence
from typing import NamedTuple

from research.results import Difference, family

SHOWN = "shown"
NULL = "not shown"
SINGLE = "one run"
DIGITS = {"nats": 2, "points": 1, "steps": 0}


class Comparison(NamedTuple):
    """Two conditions with one metric per seed, in the same order of the seeds. measure: what the
    metric is; low: a lower one is better; expected: whether `first` was expected to be better, None
    if no sign was expected; test_to_train: see `results.paired_difference`."""

    first: str
    second: str
    measure: str
    columns: tuple[Sequence[float], Sequence[float]]
    unit: str = "points"
    low: bool = False
    expected: bool | None = None
    test_to_train: float = 0.0


class Line(NamedTuple):
    """A finding: `SHOWN`, `NULL` or `SINGLE`, what was found, and its metric, both as text; for a
    comparison over seeds the p-value, corrected for its family."""

    verdict: str
    text: str
    figure: str
    p: float | None = None


def corrected(comparisons: Sequence[Comparison]) -> list[Difference]:
    """The difference of each comparison of a family, corrected after Holm. All comparisons split
    their seeds alike."""
    if not comparisons:
        return []
    columns = {str(number): each.columns for number, each in enumerate(comparisons)}
    return list(family(columns, comparisons[0].test_to_train).values())


def lines_of(comparisons: Sequence[Comparison]) -> list[Line]:
    """One line for each comparison of a family, corrected after Holm."""
    return [line_of(*pair) for pair in zip(comparisons, corrected(comparisons), strict=True)]


def line_of(comparison: Comparison, difference: Difference) -> Line:
    """A significant difference names the better condition first. Any other keeps the order of the
    comparison; above 0 its first condition is better, also where the measure is a loss."""
    first, second, measure = comparison.first, comparison.second, comparison.measure
    gain = -difference.mean if comparison.low else difference.mean
    if not difference.shown:
        hoped = {
            True: f" (expected: {first} better)",
            False: f" (expected: {second} better)",
            None: "",
        }
        text = f"{quoted(first)} against {quoted(second)}: {measure}{hoped[comparison.expected]}"
        metric = with_half(gain, difference.half, comparison.unit, signed=True)
        return Line(NULL, text, metric, difference.p)
    better, worse = (first, second) if gain > 0 else (second, first)
    met = {None: "", gain > 0: ", as expected"}
    surprise = met.get(comparison.expected, ", against what was expected")
    text = f"{quoted(better)} better than {quoted(worse)}: {measure}{surprise}"
    metric = with_half(abs(difference.mean), difference.half, comparison.unit)
    return Line(SHOWN, text, metric, difference.p)


def quoted(condition: str) -> str:
    """A condition's name in a sentence, in quotation marks where it has a comma."""
    return f"“{condition}”" if "," in condition else condition


def with_half(mean: float, half: float, unit: str, signed: bool = False) -> str:
    """A mean and half the width of its interval, as text: "0.95 ± 0.18 nats"."""
    digits = DIGITS[unit]
    number = f"{mean:z.{digits}f}"  # z: no "−0.0"
    if signed:
        number = f"{mean:+z.{digits}f}".replace("-", "−")
    return f"{number} ± {half:.{digits}f} {unit}"


def interval_line(text: str, low: float, high: float, mean: float) -> Line:
    """A metric in points with an interval that is not over seeds: shown when the interval leaves
    out 0."""
    metric = f"{mean:.1f} ({low:.1f} to {high:.1f}) points".replace("-", "−")
    return Line(SHOWN if low > 0 or high < 0 else NULL, text, metric)
