"""What both heads predict for a masked span, side by side. Chapter: `book/spanbert/boundary`."""

from collections.abc import Sequence
from dataclasses import dataclass

from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.figures.table import small_table
from spanbert_tutorial.figures.tokens import STRIP, TokenStrip
from spanbert_tutorial.pretraining.model import PretrainingModel, fill_masks

Guesses = Sequence[tuple[str, float]]  # most probable first: a token and its probability
LEGEND = {"masked": "masked", "boundary": "boundary token"}


@dataclass(repr=False, eq=False)
class Predictions:
    """A strip of the text above a table with one line for each masked token. A right prediction has
    a check mark."""

    strip: TokenStrip
    answers: Sequence[str]  # the original tokens [t]
    mlm: Sequence[Guesses]  # for each of them the predictions of a head
    sbo: Sequence[Guesses]

    def _lines(self) -> list[list[str]]:
        """For each masked token its name and the predictions of both heads, a line each."""
        rows = zip(self.answers, self.mlm, self.sbo, strict=True)
        return [
            [f"p{place} {answer}", _written(mlm, answer), _written(sbo, answer)]
            for place, (answer, mlm, sbo) in enumerate(rows, start=1)
        ]

    def __repr__(self) -> str:
        lines = (f"{name}: MLM {mlm}; SBO {sbo}" for name, mlm, sbo in self._lines())
        return "\n".join([repr(self.strip), *(line.replace("\n", ", ") for line in lines)])

    def _repr_html_(self) -> str:
        table = small_table([["masked", "MLM head", "SBO head"], *self._lines()])
        return f'{self.strip._repr_html_()}<div style="{STRIP};line-height:1.4">{table}</div>'


def _written(guesses: Guesses, answer: str) -> str:
    return "\n".join(f"{token} {p:.2f}{' ✓' * (token == answer)}" for token, p in guesses)


def mask_and_predict(
    model: PretrainingModel, wordpiece: WordPiece, text: str, first: int, last: int, top: int
) -> Predictions:
    """Masks the words `first` to `last` of a text, counted from 0 (a punctuation mark is a word),
    with a word on either side, and lets both heads predict them.

    top: predictions per head. Notes: p1, p2, … under the masked tokens, x1, x2, … under the others.
    """
    words = split_words(text)
    parts = [wordpiece.tokens(wordpiece.encode(word)) for word in words]
    cuts = parts[:first], parts[first : last + 1], parts[last + 1 :]
    before, masked, after = (sum(some, []) for some in cuts)
    seen = [*words[:first], *["[MASK]"] * len(masked), *words[last + 1 :]]
    (filled,) = fill_masks(model, wordpiece, " ".join(seen), top)
    marks = ["boundary", *["masked"] * len(masked), "boundary"]
    marks = [""] * (len(before) - 1) + marks + [""] * (len(after) - 1)
    tokens, start = before + masked + after, len(before)
    notes = [f"x{position}" for position in range(1, len(tokens) + 1)]
    notes[start : start + len(masked)] = [f"p{place}" for place in range(1, len(masked) + 1)]
    heads = filled.predictions
    strip = TokenStrip(tokens, marks, LEGEND, notes=notes)
    return Predictions(strip, masked, heads["mlm"], heads["sbo"])
