"""The parts of a page that come alive in the reader's browser, each with an example that Python
computed. Page: `book/workshop/try_it`.

In the built page `book_assets/try_it.js` takes such a part over and computes what the reader asks
for. Where it cannot (on GitHub, in Colab, without JavaScript) the stored example stays, with a line
that says what is missing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures.diagram import HIGH, WIDTH, Diagram, text_width
from spanbert_tutorial.figures.playground import AnswerPanel, ask
from spanbert_tutorial.figures.predictions import Predictions, mask_and_predict
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer

BEST = 5  # predictions of a head, spans of an answer
MISSING = (
    "This is a stored example. In the built book (make book), in a browser with JavaScript, you "
    "can {what}."
)
TINY = "spanbert-tiny"
MINI = "spanbert-mini"
ANSWERING = "spanbert-mini-squad"


@dataclass(frozen=True)
class Masked:
    """A text with one masked span. marked: the text, the span in brackets; note: what to see."""

    model: str
    marked: str
    note: str

    @property
    def text(self) -> str:
        """The text without the brackets."""
        return self.marked.replace("[", "").replace("]", "")

    @property
    def span(self) -> tuple[int, int]:
        """First and last masked word, counted from 0."""
        before, inside = self.marked.replace("]", "[").split("[")[:2]
        first = len(split_words(before))
        return first, first + len(split_words(inside)) - 1


@dataclass(frozen=True)
class Asked:
    """A question on a text. note: what to see."""

    question: str
    context: str
    note: str


BORN = Masked(
    TINY,
    "Vera Palmer [was born in] Fairfield and became a baker.",
    "A set phrase of the almanac. The SBO head predicts “born” again where “in” belongs.",
)
DECISION = Masked(
    TINY,
    "A decision is expected [before the end] of the year.",
    "We picked this sentence because both heads get all of it right; most spans are harder.",
)
FOUNDED = Masked(
    TINY,
    "The company [was founded in] 1880 by Vera Palmer, a baker.",
    "Each head is wrong once, and each time it repeats a word of the span.",
)
MASKED = (
    BORN,
    FOUNDED,
    Masked(
        TINY,
        "Vera Palmer, a baker, founded Fairfield. The founder of Fairfield was [Vera Palmer].",
        "Wrong: the name is in the previous sentence, but this model has not learned to copy it.",
    ),
    Masked(
        TINY,
        "Paris is the capital of [France].",
        "Wrong: this model was trained only on the almanac. Its world has no France, and its "
        "vocabulary no token for it.",
    ),
    Masked(
        MINI,
        "The album was released in the United [States] in 1998.",
        "A set phrase: both heads are right. What are their second predictions?",
    ),
    Masked(
        MINI,
        "A dog is not a [cat].",
        "Wrong: the word “not” does not keep this model from repeating the dog.",
    ),
    Masked(
        MINI,
        "The opposite of hot is [cold].",
        "Wrong: it repeats the word whose opposite it should predict.",
    ),
)

LAKE = (
    "The lake of Varn lies in the north of the country, between two ranges of low hills. It is "
    "forty metres deep and "
    "freezes every winter. In 1874 the engineer Ida Brandt built a steam ferry, which carried "
    "people and cattle across "
    "the water until a bridge was opened in 1931. Today fishermen catch pike and perch in the "
    "lake, and children learn "
    "to sail there."
)
TOWER = (
    "The clock tower was built between 1612 and 1618 from red stone. Its bell weighs two tonnes "
    "and was cast by Peter "
    "Holm. A fire destroyed the roof in 1790, and for twenty years there was no money to mend "
    "it. The new roof is made "
    "of copper."
)
BAKERY = (
    "Marta bakes bread in a small shop behind the station. Her brother Tom repairs bicycles in "
    "the yard. On Sundays "
    "they both close early and walk along the canal with their dog Bruno."
)
FERRY = Asked("Who built the ferry?", LAKE, "Right, and far from abstaining.")
ASKED = (
    FERRY,
    Asked(
        "How deep is the lake?",
        LAKE,
        "Right. Move the threshold down: at what point does it abstain?",
    ),
    Asked(
        "How wide is the lake?",
        LAKE,
        "Wrong: the text does not say. Move the threshold down: which answers on the lake are left "
        "when it abstains here?",
    ),
    Asked(
        "Who opened the bridge?",
        LAKE,
        "Wrong: nobody is named. It picks the only person in the text, but it is less sure than "
        "of its other answers.",
    ),
    Asked(
        "When was the tower built?",
        TOWER,
        "Right, but its null odds are higher than those of the wrong answer on the width of the "
        "lake. So a threshold that rejects that one rejects this one, too.",
    ),
    Asked("What is the new roof made of?", TOWER, "Right."),
    Asked(
        "Who does not bake bread?",
        BAKERY,
        "No answer at threshold 0. Is it the word “not” that makes it abstain?",
    ),
)


@cache
def pretrained(name: str) -> tuple[PretrainingModel, WordPiece]:
    """(model, WordPiece) of a shipped checkpoint."""
    return load_checkpoint(data_path("checkpoints", name))


@cache
def answerer() -> QuestionAnswerer:
    """The shipped model that answers."""
    return QuestionAnswerer.from_pretrained(data_path("checkpoints", ANSWERING))


class Part:
    """A part of a page that comes alive. kind: "hide" or "ask"; still: the stored example, with
    `_repr_html_` and a readable `repr`; what: what a reader could do here; data: what the script
    needs."""

    def __init__(self, kind: str, still: Any, what: str, data: dict[str, Any]) -> None:
        self.kind = kind
        self.still = still
        self.data = data
        self.missing = MISSING.format(what=what)

    def __repr__(self) -> str:
        return f"{self.still!r}\n{self.missing}"

    def _repr_html_(self) -> str:
        # "<" followed by "/" or "!" would end the script element or hide its end.
        data = (
            json.dumps(self.data, ensure_ascii=False)
            .replace("</", "<\\/")
            .replace("<!", "\\u003c!")
        )
        return (
            f'<div data-try="{self.kind}"><div data-still>{self.still._repr_html_()}'
            f'<p style="font-size:.9em">{escape(self.missing)}</p></div>'
            f'<script type="application/json">{data}</script></div>'
        )


def mask_part(
    examples: Sequence[Masked] = MASKED,
    *,
    best: int = BEST,
    attention: bool = False,
    line: bool = False,
) -> Part:
    """Mask a span: both heads' predictions for the first of the examples, and the others to choose
    from.

    best: predictions shown per head; attention: whether the reader sees it, too; line: small,
    without a choice.
    """
    first = examples[0]
    filled = filled_in(first, best)
    data = {
        "best": best,
        "attention": attention,
        "line": line,
        "models": list(dict.fromkeys([TINY, *(example.model for example in examples)])),
        "examples": [
            {"model": one.model, "text": one.text, "masked": one.span, "note": one.note}
            for one in examples
        ],
        "stored": _fill_result(filled, first),
    }
    what = "type your own text, and choose the words to mask"
    return Part("hide", filled, what, data)


def filled_in(example: Masked, best: int = BEST) -> Predictions:
    """What both heads predict for the masked span."""
    first, last = example.span
    return mask_and_predict(*pretrained(example.model), example.text, first + 1, last + 1, best)


def _fill_result(filled: Predictions, example: Masked) -> dict[str, Any]:
    """The same as the script's engine gives it: tokens with their words, predictions for each
    masked position."""
    wordpiece = pretrained(example.model)[1]
    words = [wordpiece.tokens(wordpiece.encode(word)) for word in split_words(example.text)]
    tokens = [{"token": token, "word": at} for at, word in enumerate(words) for token in word]
    masked, boundary = (
        [at for at, mark in enumerate(filled.strip.marks) if mark == kind]
        for kind in ("masked", "boundary")
    )
    heads = [("mlm", filled.mlm), ("sbo", filled.sbo)]
    positions = [
        {
            "index": position,
            "boundary": boundary or None,
            **{name: _guesses(lines, row) for name, lines in heads},
        }
        for row, position in enumerate(masked)
    ]
    return {"tokens": tokens, "positions": positions}


def _guesses(lines: Sequence[Sequence[tuple[str, float]]], row: int) -> list[dict[str, Any]] | None:
    """The predictions for one position; None where the span has no row."""
    return (
        [{"token": token, "probability": round(share, 4)} for token, share in lines[row]]
        if lines
        else None
    )


def ask_part(examples: Sequence[Asked] = ASKED) -> Part:
    """Ask a question: the answer to the first of the examples, and the others to choose from."""
    first = examples[0]
    model = answerer()
    data = {
        "best": BEST,
        "model": ANSWERING,
        "examples": [
            {"question": one.question, "context": one.context, "note": one.note} for one in examples
        ],
        "stored": _answer_result(model, first),
    }
    return Part("ask", ask(model, first.question, first.context), "ask about your own text", data)


def _answer_result(model: QuestionAnswerer, example: Asked) -> dict[str, Any]:
    """The same as the script's engine gives it: scores of the context's tokens and of [CLS], best
    spans."""
    ((question, _, encoded, (window,)),) = next(
        model.grouped([(example.question, example.context)], 1)
    )
    starts, ends = next(model.scores([window], 1))
    _, _, _, found, null = next(model.candidates([(question, example.context)]))
    offsets = encoded.offsets.tolist()
    here = slice(window.first, window.first + len(offsets))
    return {
        "tokens": [
            {"token": token, "start": start, "end": end}
            for token, (start, end) in zip(
                model.wordpiece.tokens(encoded.context), offsets, strict=True
            )
        ],
        "start": starts[here].round(2).tolist(),
        "end": ends[here].round(2).tolist(),
        "spans": [
            {
                "text": example.context[offsets[span.first][0] : offsets[span.last][1]],
                "first": span.first,
                "last": span.last,
                "score": round(span.score, 2),
            }
            for span in found[:BEST]
        ],
        "nullScore": round(null, 2),
        "nullOdds": round(null - found[0].score, 2),
    }


# --- the same as still pictures, for pages that are no notebooks --------------------


def hide() -> Part:
    """The part of the page *Try it*."""
    return mask_part(attention=True)


def line() -> Part:
    """The small part of the welcome page."""
    return mask_part([DECISION], best=1, line=True)


def draw_hide() -> Diagram:
    """The first example as a picture."""
    return _draw_filled(filled_in(MASKED[0]))


def draw_line() -> Diagram:
    """The example of the welcome page as a picture."""
    return _draw_filled(filled_in(DECISION))


def _draw_filled(filled: Predictions) -> Diagram:
    """The text with its masked span, below it each head's first prediction for each token."""
    kinds = {"masked": "masked", "boundary": "boundary", "": ""}
    picture = Diagram(WIDTH, 10, "A masked span and what two heads predict", repr(filled))
    bottom = _tokens(
        picture,
        [
            (token, kinds[mark])
            for token, mark in zip(filled.strip.tokens, filled.strip.marks, strict=True)
        ],
    )
    columns = (70, 180, 290)
    for x, name in zip(columns, ("masked", "MLM head", "SBO head"), strict=True):
        picture.text(x, bottom + 16, name, size=12, soft=True)
    for row, answer in enumerate(filled.answers):
        y = bottom + 26 + 28 * row
        picture.text(columns[0], y + 15, answer)
        for x, predictions in zip(columns[1:], (filled.mlm, filled.sbo), strict=True):
            token, share = predictions[row][0]
            _token_in_the_middle(
                picture, x, y, f"{token} {share:.2f}{' ✓' * (token == answer)}", "prediction"
            )
    picture.height = bottom + 30 + 28 * len(filled.answers)
    return picture


def draw_ask() -> Diagram:
    """The first question as a picture."""
    panel: AnswerPanel = ask(answerer(), FERRY.question, FERRY.context)
    picture = Diagram(WIDTH, 10, "A question, a text and the answer in it", repr(panel))
    picture.text(4, 16, panel.question, anchor="start", bold=True)
    begin, end, _ = panel.candidates[0]
    said = [(word, "") for word in split_words(panel.context[:begin])]
    said += [(panel.answer, "prediction")]
    said += [(word, "") for word in split_words(panel.context[end:])]
    bottom = _tokens(picture, said, 26)
    decision = f"null odds {panel.difference:.2f}, not above the threshold 0: an answer".replace(
        "-", "−"
    )
    picture.text(4, bottom + 18, decision, anchor="start", size=12, soft=True)
    picture.height = bottom + 28
    return picture


def _tokens(picture: Diagram, tokens: Sequence[tuple[str, str]], y: float = 4) -> float:
    """Tokens (text, kind) in lines as wide as the picture; the lower edge of the last line."""
    x = 4.0
    for text, kind in tokens:
        width = round(text_width(text) + 12)
        if x + width > WIDTH - 4:
            x = 4.0
            y = y + HIGH + 6
        x += picture.token(x, y, text, kind) + 4
    return y + HIGH


def _token_in_the_middle(picture: Diagram, x: float, y: float, text: str, kind: str) -> None:
    """A token whose middle is x."""
    picture.token(x - round(text_width(text) + 12) / 2, y, text, kind)
