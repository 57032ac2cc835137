"""What both heads predict for a masked span, side by side. Chapter: `book/spanbert/boundary`."""

from collections.abc import Sequence
from html import escape

from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.errors import require
from spanbert_tutorial.figures.tokens import STRIP, TokenStrip
from spanbert_tutorial.pretraining.model import PretrainingModel, fill_masks

Guesses = Sequence[tuple[str, float]]  # most probable first: a token and its probability
LEGEND = {"masked": "masked", "boundary": "boundary token"}
CELL = "padding:.15em .6em .15em 0;vertical-align:top;text-align:left;border:0"
LONGEST = 60  # tokens that the tiny model has learned positions for


class Predictions:
    """A strip of the text above a table with one line for each masked token.

    answers: the original tokens [t]; mlm, sbo: for each of them its predictions; sbo is empty where
    the span has no row. A right prediction has a check mark.
    """

    def __init__(
        self,
        strip: TokenStrip,
        answers: Sequence[str],
        mlm: Sequence[Guesses],
        sbo: Sequence[Guesses],
    ) -> None:
        self.strip = strip
        self.answers, self.mlm, self.sbo = list(answers), list(mlm), list(sbo)

    def right(self, head: str) -> tuple[int, int]:
        """How many first predictions of the head, "mlm" or "sbo", are right, and how many it
        made."""
        guesses = getattr(self, head)
        pairs = zip(guesses, self.answers, strict=False)
        return sum(guess[0][0] == answer for guess, answer in pairs), len(guesses)

    def _lines(self) -> list[tuple[str, list[str], list[str]]]:
        """(name of the line, predictions of the MLM head, predictions of the SBO head)."""
        rows = zip(self.answers, self.mlm, self.sbo or [()] * len(self.answers), strict=True)
        return [
            (f"p{place} {answer}", _written(mlm, answer), _written(sbo, answer))
            for place, (answer, mlm, sbo) in enumerate(rows, start=1)
        ]

    def __repr__(self) -> str:
        lines = (
            f"{name}: MLM {', '.join(mlm)}; SBO {', '.join(sbo) or 'no row'}"
            for name, mlm, sbo in self._lines()
        )
        return "\n".join([self.strip.text, *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="{CELL}">{escape(name)}</th>{_column(mlm)}{_column(sbo or ["no row"])}</tr>'
            for name, mlm, sbo in self._lines()
        )
        names = ("masked", "MLM head", "SBO head")
        head = "".join(f'<th style="{CELL}">{name}</th>' for name in names)
        return (
            f'{self.strip._repr_html_()}<div style="{STRIP};line-height:1.4;font-size:.9em">'
            f'<table style="border-collapse:collapse;display:table;width:auto;margin:.3em 0">'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


def _written(guesses: Guesses, answer: str) -> list[str]:
    return [f"{token} {share:.2f}{' ✓' if token == answer else ''}" for token, share in guesses]


def _column(guesses: list[str]) -> str:
    return f'<td style="{CELL}">' + "<br>".join(map(escape, guesses)) + "</td>"


def mask_and_predict(
    model: PretrainingModel, wordpiece: WordPiece, text: str, first: int, last: int, top: int = 3
) -> Predictions:
    """Masks the words `first` to `last` of a text, counted from 1 (a punctuation mark is a word),
    and lets both heads predict them.

    top: predictions per head. Notes: p1, p2, … under the masked tokens, x1, x2, … under the others.
    A reader may type the text: raises InputError when it has fewer words than `last` or more than
    60 tokens.
    """
    words = split_words(text)
    parts = [wordpiece.tokens(wordpiece.encode(word)) for word in words]
    cuts = parts[: first - 1], parts[first - 1 : last], parts[last:]
    before, masked, after = (sum(some, []) for some in cuts)
    tokens = before + masked + after
    require(
        1 <= first <= last <= len(words) and len(tokens) <= LONGEST,
        f"the text has {len(words)} words and {len(tokens)} tokens: give at least {last} words and "
        f"at most {LONGEST} tokens.",
    )
    seen = [*words[: first - 1], *["[MASK]"] * len(masked), *words[last:]]
    (filled,) = fill_masks(model, wordpiece, " ".join(seen), top)
    start, end = len(before), len(before) + len(masked)
    marks = [""] * len(tokens)
    notes = [f"x{position}" for position in range(1, len(tokens) + 1)]
    marks[start:end] = ["masked"] * len(masked)
    notes[start:end] = [f"p{position}" for position in range(1, len(masked) + 1)]
    sbo = filled.predictions.get("sbo", [])
    if sbo:
        marks[start - 1] = marks[end] = "boundary"
    strip = TokenStrip(tokens, marks, LEGEND, notes=notes)
    return Predictions(strip, masked, filled.predictions["mlm"], sbo)
