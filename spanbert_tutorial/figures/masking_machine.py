"""The masking machine: spans fly from the distribution of lengths into a text. Chapter:
`book/spanbert/span_masking`."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spanbert_tutorial.bert.masking import TokenMasking, word_sizes
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.diagram import COLORS, HIGH, SMALL, WIDTH, text_width
from spanbert_tutorial.figures.moving import Button, Moving, MovingDiagram
from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric, spans_of

COLUMN, SQUARE = 34, 8  # from length to length, and the height of one draw
TOP, LINE = 42, 25  # room above the distribution; from line to line of the text
MASKED = COLORS["masked"]
LAW = clipped_geometric()


class DrawnSpan(NamedTuple):
    """One span of the paper's mode: its first word, the length drawn, how many words it has after
    the cuts, and how many tokens of the budget are left then."""

    start: int
    length: int
    words: int
    left: int


def drawn_spans(sizes: np.ndarray, left: int, rng: np.random.Generator) -> list[DrawnSpan]:
    """The spans of `span_masking.mask_words`, in the order of the draws."""
    masked = np.zeros(len(sizes), dtype=bool)
    spans = []
    while len(starts := np.flatnonzero(~masked & (sizes <= left))):
        start = int(rng.choice(starts))
        length = 1 + int(rng.choice(len(LAW), p=LAW))
        word, end = start, min(start + length, len(sizes))
        while word < end and (cost := 0 if masked[word] else int(sizes[word])) <= left:
            masked[word] = True
            left -= cost
            word += 1
        spans.append(DrawnSpan(start, length, word - start, left))
    return spans


class Round(NamedTuple):
    """One masking of the text: spans in the order of the draws; span, token: bool [n], the tokens
    that span masking and token masking choose at the same budget; order: the tokens of token
    masking in a random order."""

    spans: list[DrawnSpan]
    span: np.ndarray
    token: np.ndarray
    order: np.ndarray


def draw_round(word_starts: np.ndarray, seed: int) -> Round:
    """Both maskings of one block, with 15% of its tokens; the same seed gives what
    `SpanMasking().select` and `TokenMasking().select` give."""
    scheme, sizes = SpanMasking(), word_sizes(word_starts)
    budget = scheme.budget(len(word_starts))
    spans = drawn_spans(sizes, budget, np.random.default_rng(seed))
    span = scheme.select(word_starts, np.random.default_rng(seed))
    token = TokenMasking().select(word_starts, np.random.default_rng(seed))
    order = np.random.default_rng(seed).permutation(np.flatnonzero(token))
    return Round(spans, span, token, order)


class Frame(NamedTuple):
    """What one frame shows: the round; how many of its spans are in the text; how many draws lie in
    the histogram; the draw that hangs above its column, None for none."""

    round: int
    placed: int
    counted: int
    hanging: int | None


class MaskingMachine:
    """Rounds of span masking on one text, with as many single tokens below, ready to be shown.

    tokens: the text; one that begins with ## continues a word. seeds: one for each round. Raises
    InputError for less than two rounds, and for a text that begins inside a word.
    """

    def __init__(self, tokens: Sequence[str], seeds: Sequence[int]) -> None:
        self.tokens = list(tokens)
        self.starts = ~np.char.startswith(np.array(self.tokens), "##")
        if len(seeds) < 2 or not self.starts[0]:
            raise InputError("give a text that begins with a whole word, and at least two seeds.")
        self.sizes = word_sizes(self.starts)
        self.rounds = [draw_round(self.starts, seed) for seed in seeds]
        self.draws = [span for one in self.rounds for span in one.spans]
        self.budget = SpanMasking().budget(len(self.tokens))

    @cached_property
    def frames(self) -> list[Frame]:
        """A round begins with nothing masked; then each draw has two frames, above its column and
        in the text."""
        frames, counted = [], 0
        for number, one in enumerate(self.rounds):
            frames.append(Frame(number, 0, counted, None))
            for place in range(len(one.spans)):
                frames.append(Frame(number, place, counted, counted))
                counted += 1
                frames.append(Frame(number, place + 1, counted, None))
        return frames

    def ends(self) -> list[int]:
        return list({frame.round: place for place, frame in enumerate(self.frames)}.values())

    def hidden(self, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
        """bool [n] twice: the tokens that spans, and that single tokens mask in this frame."""
        one = self.rounds[frame.round]
        words = np.zeros(len(self.sizes), dtype=bool)
        for span in one.spans[: frame.placed]:
            words[span.start : span.start + span.words] = True
        by_spans, by_tokens = np.repeat(words, self.sizes), np.zeros_like(one.token)
        # a token that no word fits stays unspent; single tokens spend it
        many = None if frame.placed == len(one.spans) else by_spans.sum()
        by_tokens[one.order[:many]] = True
        return by_spans, by_tokens

    def says(self, frame: Frame) -> str:
        draw = f"Draw {frame.counted + (frame.hanging is not None)} of {len(self.draws)}: ℓ = "
        if frame.hanging is not None:
            return f"{draw}{self.draws[frame.hanging].length}."
        if not frame.placed:
            return f"A new round: {len(self.tokens)} tokens, {self.budget} of them may be masked."
        spans = self.rounds[frame.round].spans
        span = spans[frame.placed - 1]
        told = f"{draw}{span.length}, at “{self.tokens[self.sizes[: span.start].sum()]}”. "
        if span.words < span.length:
            at_end = span.start + span.words == len(self.sizes)
            why = "the text ends" if at_end else "the budget is used up"
            told += f"Cut after {span.words} word{'s' * (span.words > 1)}: {why}. "
        if not span.left:
            return told + "No budget left."
        told += f"{span.left} token{'s' * (span.left != 1)} of the budget left"
        return told + (", and no word fits." if frame.placed == len(spans) else ".")

    def counts(self) -> np.ndarray:
        """int [10]: how often each length was drawn, in all rounds."""
        return np.bincount([span.length for span in self.draws], minlength=11)[1:]

    @cached_property
    def places(self) -> list[tuple[float, float, int]]:
        """(x, y, width) of each token, from the upper edge of its text."""
        places, x, y = [], 0.0, 0.0
        for token in self.tokens:
            wide = round(text_width(token, 12) + 8)
            if x + wide > WIDTH:
                x, y = 0.0, y + LINE
            places.append((x, y, wide))
            x += wide + 3
        return places

    def moving(self) -> Moving:
        base = TOP + SQUARE * max(self.counts().max(), 1 + len(self.draws) * LAW[0])
        text, deep, ends = base + 56, self.places[-1][1] + LINE, self.ends()
        by_spans, by_tokens = (
            "; ".join(f"“{' '.join(self.tokens[a : b + 1])}”" for a, b in spans_of(mask))
            for mask in self.hidden(self.frames[ends[0]])
        )
        law = ", ".join(f"{share:.0%}" for share in LAW)
        says = (
            f"Above, for the lengths 1 to 10, the probability of each: {law}; each draw is a square "
            "in the column of its length. Below, the text twice: with the spans that were drawn, "
            "and with as many single tokens. In the first frame, the spans mask "
            f"{by_spans}, the single tokens mask {by_tokens}."
        )
        size = {"frames": len(self.frames), "first": ends[0]}
        picture = MovingDiagram(
            WIDTH, round(text + 2 * deep + 44), "The masking machine", says, **size
        )
        self._distribution(picture, base)
        self._text(picture, text, 0, "spans of whole words")
        self._text(picture, text + deep + 30, 1, "single tokens")
        self._chips(picture, base, text)
        shown = [place for place, frame in enumerate(self.frames) if frame.placed]
        buttons = [Button("Re-roll", ends), Button("One draw", shown)]
        buttons.append(Button("All draws", ends[-1:], plays=False))
        return Moving(picture, list(map(self.says, self.frames)), buttons=buttons)

    def _distribution(self, picture: MovingDiagram, base: float) -> None:
        """The lengths as outlined bars, as high as the draws would pile up by their probabilities,
        and the draws as squares."""
        piles = [0] * 10
        look = 'fill="none" stroke="currentColor" stroke-opacity=".6" stroke-dasharray="3 2"'
        picture.text(0, 13, "length distribution", anchor="start", bold=True)
        for down, line in (
            (13, "dashed: as expected"),
            (28, "square: one draw; hollow: it was cut"),
        ):
            picture.text(WIDTH, down, line, anchor="end", size=SMALL, soft=True)
        for place, share in enumerate(LAW):
            x, high = 10 + COLUMN * place, round(len(self.draws) * share * SQUARE, 1)
            picture.rectangle(x, round(base - high, 1), COLUMN - 6, high, look)
            picture.text(x + 14, base + 14, str(place + 1), bold=True)
            picture.text(x + 14, base + 28, f"{share:.0%}", size=SMALL, soft=True)
        picture.line((6, base), (WIDTH - 4, base)).text(0, base + 14, "ℓ", anchor="start")
        for number, span in enumerate(self.draws):
            piles[span.length - 1] += 1
            there = [int(frame.counted > number) for frame in self.frames]
            fill = "none" if span.words < span.length else MASKED
            looks = {"fill": fill, "stroke": MASKED, "stroke_width": 1.4, "opacity": there}
            x, y = 13 + COLUMN * (span.length - 1), base - SQUARE * piles[span.length - 1]
            size = {"width": COLUMN - 12, "height": SQUARE - 2, "rx": 1.5}
            picture.part("rect", x=x, y=round(y + 1, 1), **size, **looks)

    def _text(self, picture: MovingDiagram, y: float, side: int, name: str) -> None:
        """The text with its masked tokens, and how much of the budget is spent."""
        hidden = [self.hidden(frame)[side] for frame in self.frames]
        picture.text(0, y, name, anchor="start", bold=True)
        for place in range(self.budget):
            looks = {"width": 12, "height": 11, "rx": 2, "stroke": MASKED, "fill": MASKED}
            spent = [int(mask.sum() > place) for mask in hidden]
            left = WIDTH - 112 - 14 * (self.budget - place)
            picture.part("rect", x=left, y=y - 10, fill_opacity=spent, **looks)
        told = [f"{mask.sum()} tokens, {len(spans_of(mask))} spans" for mask in hidden]
        told = [line.replace(" 1 spans", " 1 span") for line in told]
        picture.part("text", told, x=WIDTH, y=y, text_anchor="end", font_size=12)
        for token, (x, down, wide) in enumerate(self.places):
            state = [mask[token] for mask in hidden]
            looks = {
                "fill": MASKED,
                "fill_opacity": [int(masked) for masked in state],
                "stroke": [MASKED if masked else "currentColor" for masked in state],
                "stroke_opacity": [1 if masked else 0.35 for masked in state],
            }
            size = {"width": wide, "height": HIGH - 2, "rx": 5}
            picture.part("rect", x=x + 0.5, y=y + 9 + down, **size, **looks)
            fill = ["#fff" if masked else "currentColor" for masked in state]
            where = {"x": x + wide / 2, "y": y + 23.5 + down}
            picture.part("text", self.tokens[token], font_size=12, fill=fill, **where)

    def _chips(self, picture: MovingDiagram, base: float, text: float) -> None:
        """Each draw as a small sign that appears above its column and flies to its first word."""
        for number, span in enumerate(self.draws):
            x, down, _ = self.places[self.sizes[: span.start].sum()]
            length = span.length - 1
            above = base - SQUARE * max(len(self.draws) * LAW[length], self.counts()[length])
            hang = f"translate({10 + COLUMN * length} {round(above - 24)})"
            land = f"translate({x:g} {round(text + 8 + down)})"
            sign = (
                f'<rect width="30" height="20" rx="10" fill="{MASKED}"/><text x="15" y="15" '
                f'fill="#fff" font-weight="600">{span.length}</text>'
            )
            shown = [int(frame.hanging == number) for frame in self.frames]
            way = [land if frame.counted > number else hang for frame in self.frames]
            picture.part("g", "", sign, opacity=shown, transform=way)
