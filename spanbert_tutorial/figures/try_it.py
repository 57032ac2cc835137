"""The parts of a page that come alive in the reader's browser, each with an example that Python
computed. Pages: `book/workshop/try_it`, `book/spanbert/boundary`, `book/welcome`.

In the built page a script of `book_assets/` takes them over: `try_it.js` computes what the reader
asks for, the examples are in `try_it.toml`. Where no script runs (on GitHub, in Colab, without
JavaScript) the stored example stays, with a line that says what is missing.
"""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, NamedTuple

from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures.explorer import json_script
from spanbert_tutorial.figures.playground import ask
from spanbert_tutorial.figures.predictions import Guesses, Predictions, mask_and_predict
from spanbert_tutorial.figures.tokens import TokenStrip
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.windows import decode

BEST = 5  # predictions of a head, spans of an answer
TINY, MINI, ANSWERING = "spanbert-tiny", "spanbert-mini", "spanbert-mini-squad"
MISSING = "This is a stored example. In the built book (make book), in a browser with JavaScript, you can {}."
# Figure 1 of the SpanBERT paper: its sentence, its span, and the place of "football" in the span
WORDS = "Super Bowl 50 was an American football game to determine the champion".split()
SPAN, PLACE = (4, 7), 2
GAME = "beat_the_boundary.json"


@dataclass(repr=False, eq=False)
class Part:
    """A part of a page that comes alive."""

    kind: str  # the name of its script's class
    still: Any  # the stored example, with `_repr_html_` and a `repr`
    what: str  # what a reader could do here
    data: dict[str, Any]  # what the script needs

    def __repr__(self) -> str:
        return f"{self.still!r}\n{MISSING.format(self.what)}"

    def _repr_html_(self) -> str:
        return (
            f'<div data-try="{self.kind}"><div data-still>{self.still._repr_html_()}'
            f'<p style="font-size:.9em">{escape(MISSING.format(self.what))}</p></div>'
            f"{json_script(self.data)}</div>"
        )


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
TEXTS = EXAMPLES["texts"]
ASKED = [Asked(**one | {"context": TEXTS[one["context"]]}) for one in EXAMPLES["asked"]]


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
    return mask_and_predict(*pretrained(example.model), example.text, *example.span, best)


def _fill_result(filled: Predictions) -> dict[str, Any]:
    """The same as the script's engine gives it: tokens with their words, predictions for each
    masked position."""
    strip = filled.strip
    tokens, word = [], -1
    for token in strip.tokens:
        word += not token.startswith("##")
        tokens.append({"token": token, "word": word})

    def marked(kind: str) -> list[int]:
        return [at for at, mark in enumerate(strip.marks) if mark == kind]

    def guesses(row: Guesses) -> list[dict[str, Any]]:
        return [{"token": token, "probability": round(p, 4)} for token, p in row]

    positions = [
        {"index": at, "boundary": marked("boundary"), "mlm": guesses(mlm), "sbo": guesses(sbo)}
        for at, mlm, sbo in zip(marked("masked"), filled.mlm, filled.sbo, strict=True)
    ]
    return {"tokens": tokens, "positions": positions}


def ask_part(examples: Sequence[Asked] = ASKED) -> Part:
    """Ask a question: the answer to the first of the examples, and the others to choose from."""
    model, first = answerer(), examples[0]
    said = [one._asdict() for one in examples]
    stored = _answer_result(model, first.question, first.context)
    data = {"best": BEST, "model": ANSWERING, "examples": said, "stored": stored}
    return Part("ask", ask(model, first.question, first.context), "ask about your own text", data)


def _answer_result(model: QuestionAnswerer, question: str, context: str) -> dict[str, Any]:
    """The same as the script's engine gives it: scores of the context's tokens and of [CLS], best
    spans."""
    asked = next(model.scored([(question, context)]))
    found, null = decode(asked.windows, iter(asked.scores), BEST, model.max_answer_length)
    (window,), ((starts, ends),) = asked.windows, asked.scores
    at = asked.encoded.offsets.tolist()
    here = slice(window.first, window.first + len(at))
    tokens = zip(model.wordpiece.tokens(asked.encoded.context), at, strict=True)
    return {
        "tokens": [{"token": token, "start": a, "end": b} for token, (a, b) in tokens],
        "start": starts[here].round(2).tolist(),
        "end": ends[here].round(2).tolist(),
        "spans": [
            {"text": asked.answer(one).text, **vars(one), "score": round(one.score, 2)}
            for one in found
        ],
        "nullScore": round(null, 2),
        "nullOdds": round(null - found[0].score, 2),
    }


@cache
def figure_one() -> Part:
    """Figure 1 of the SpanBERT paper: what each head reads to predict a masked word, and what
    `spanbert-mini` predicts, for every span that has a neighbor on both sides: "4-7" → head → for
    each masked word its top tokens. The still picture is `book_assets/span_boundary.svg`."""
    model, wordpiece = pretrained(MINI)
    inside = range(1, len(WORDS) - 1)
    predictions = {}
    for first, last in combinations_with_replacement(inside, 2):
        one = mask_and_predict(model, wordpiece, " ".join(WORDS), first, last, 4)
        predictions[f"{first}-{last}"] = {
            head: [[(token, round(p, 3)) for token, p in row] for row in rows]
            for head, rows in (("mlm", one.mlm), ("sbo", one.sbo))
        }
        if (first, last) == SPAN:
            still = one
    words = [wordpiece.tokens(wordpiece.encode(word)) for word in WORDS]
    data = {"words": words, "span": SPAN, "place": PLACE, "predictions": predictions}
    return Part("figure-one", still, "drag over the words to mask others", data)


def game() -> Part:
    """Beat the boundary: a span is masked, only its two neighbors can be read. In a clone
    `python -m research.game` draws its rounds again."""
    kept = json.loads(data_path(GAME).read_text(encoding="utf-8"))
    for one in kept["rounds"]:
        one["words"] = split_words(one["text"])
    says = "Beat the boundary: a span of a sentence is masked. Which words are missing?"
    return Part("game", TokenStrip([says], [""]), "play ten rounds against both heads", kept)


line = partial(mask_part, [DECISION], best=1)  # the small part of the welcome page
