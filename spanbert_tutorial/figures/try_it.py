"""The parts of a page that come alive in the reader's browser, each with an example that Python
computed. Page: `book/workshop/try_it`.

The examples are in `try_it.toml`; `book_assets/try_it.js` computes what the reader asks for.
"""

import tomllib
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures.part import Part
from spanbert_tutorial.figures.playground import ask
from spanbert_tutorial.figures.predictions import Guesses, Predictions, mask_and_predict
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.windows import decode

BEST = 5  # predictions of a head, spans of an answer
TINY, MINI, ANSWERING = "spanbert-tiny", "spanbert-mini", "spanbert-mini-squad"


class Masked(NamedTuple):
    """A text with one masked span. marked: the text, the span in brackets; note: what to see."""

    model: str
    marked: str
    note: str

    @property
    def text(self) -> str:
        return self.marked.replace("[", "").replace("]", "")

    @property
    def span(self) -> tuple[int, int]:
        """First and last masked word, counted from 0."""
        before, inside = self.marked.replace("]", "[").split("[")[:2]
        first = len(split_words(before))
        return first, first + len(split_words(inside)) - 1


class Asked(NamedTuple):
    """A question on a text. note: what to see."""

    question: str
    context: str
    note: str


EXAMPLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
DECISION = Masked(**EXAMPLES["welcome"])
MASKED = [Masked(**one) for one in EXAMPLES["masked"]]
BORN, FOUNDED = MASKED[:2]
ASKED = [
    Asked(**{**one, "context": EXAMPLES["texts"][one["context"]]}) for one in EXAMPLES["asked"]
]


@cache
def pretrained(name: str) -> tuple[PretrainingModel, WordPiece]:
    """(model, WordPiece) of a shipped checkpoint."""
    return load_checkpoint(data_path("checkpoints", name))


@cache
def answerer() -> QuestionAnswerer:
    return QuestionAnswerer.from_pretrained(data_path("checkpoints", ANSWERING))


def mask_part(examples: Sequence[Masked] = MASKED, best: int = BEST) -> Part:
    """Mask a span: both heads' predictions for the first of the examples, `best` per head, and the
    others to choose from; with several examples, attention too."""
    filled = filled_in(examples[0], best)
    data = {
        "best": best,
        "models": list(dict.fromkeys([TINY, *(example.model for example in examples)])),
        "examples": [one._asdict() | {"text": one.text, "masked": one.span} for one in examples],
        "stored": _fill_result(filled),
    }
    return Part("hide", filled, "type your own text, and choose the words to mask", data)


def filled_in(example: Masked, best: int = BEST) -> Predictions:
    first, last = example.span
    return mask_and_predict(*pretrained(example.model), example.text, first + 1, last + 1, best)


def _fill_result(filled: Predictions) -> dict[str, Any]:
    """The same as the script's engine gives it: tokens with their words, predictions for each
    masked position."""
    tokens, word = [], -1
    for token in filled.strip.tokens:
        word += not token.startswith("##")
        tokens.append({"token": token, "word": word})
    masked, beside = (
        [at for at, mark in enumerate(filled.strip.marks) if mark == kind]
        for kind in ("masked", "boundary")
    )
    rows = zip(masked, filled.mlm, filled.sbo or [()] * len(masked), strict=True)
    positions = [
        {"index": at, "boundary": beside or None, "mlm": _guesses(mlm), "sbo": _guesses(sbo)}
        for at, mlm, sbo in rows
    ]
    return {"tokens": tokens, "positions": positions}


def _guesses(row: Guesses) -> list[dict[str, Any]] | None:
    """A head's predictions for one position; None where the span has no row."""
    return [{"token": token, "probability": round(p, 4)} for token, p in row] or None


def ask_part(examples: Sequence[Asked] = ASKED) -> Part:
    """Ask a question: the answer to the first of the examples, and the others to choose from."""
    first, model = examples[0], answerer()
    said = [one._asdict() for one in examples]
    data = {"best": BEST, "model": ANSWERING, "examples": said}
    data["stored"] = _answer_result(model, first)
    return Part("ask", ask(model, first.question, first.context), "ask about your own text", data)


def _answer_result(model: QuestionAnswerer, example: Asked) -> dict[str, Any]:
    """The same as the script's engine gives it: scores of the context's tokens and of [CLS], best
    spans."""
    pair = (example.question, example.context)
    asked = next(model.scored([pair]))
    found, null = decode(asked.windows, iter(asked.scores), BEST, model.max_answer_length)
    (window,), ((starts, ends),) = asked.windows, asked.scores
    at = asked.encoded.offsets.tolist()
    here = slice(window.first, window.first + len(at))
    spans = [{"text": asked.text(one), **vars(one), "score": round(one.score, 2)} for one in found]
    tokens = zip(model.wordpiece.tokens(asked.encoded.context), at, strict=True)
    return {
        "tokens": [{"token": token, "start": a, "end": b} for token, (a, b) in tokens],
        "start": starts[here].round(2).tolist(),
        "end": ends[here].round(2).tolist(),
        "spans": spans,
        "nullScore": round(null, 2),
        "nullOdds": round(null - found[0].score, 2),
    }


line = partial(mask_part, [DECISION], best=1)  # the small part of the welcome page
