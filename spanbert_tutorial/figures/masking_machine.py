"""The masking machine: spans fly from the distribution of lengths into a text. Chapter:
`book/spanbert/span_masking`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spanbert_tutorial.bert.masking import TokenMasking, word_sizes
from spanbert_tutorial.figures.moving import COLORS, SMALL, WIDTH, Button, Moving, text_width
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


class Frame(NamedTuple):
    """What one frame shows: bool [n] twice, the tokens that spans, and that single tokens mask; how
    many draws lie in the histogram; whether the next one hangs above its column; a sentence."""

    by_spans: np.ndarray
    by_tokens: np.ndarray
    counted: int
    hangs: bool
    says: str


class MaskingMachine(Moving):
    """Rounds of span masking on one text, 15% of its tokens, with as many single tokens below.

    tokens: the text; one that begins with ## continues a word. seeds: one for each round; the same
    gives what `SpanMasking().select` and `TokenMasking().select` give.
    """

    def __init__(self, tokens: Sequence[str], seeds: Sequence[int]) -> None:
        self.tokens = list(tokens)
        self.starts = ~np.char.startswith(np.array(self.tokens), "##")
        self.sizes = word_sizes(self.starts)
        self.budget = SpanMasking().budget(len(self.tokens))
        rounds = [drawn_spans(self.sizes, self.budget, np.random.default_rng(s)) for s in seeds]
        self.draws = [span for spans in rounds for span in spans]
        self.frames: list[Frame] = []
        ends = [self._round(*one) for one in zip(seeds, rounds, strict=True)]
        self.counts = np.bincount([span.length for span in self.draws], minlength=11)[1:]
        self.places: list[tuple[float, float, int]] = []  # x, y, width of each token of the text
        x = y = 0.0
        for token in self.tokens:
            wide = round(text_width(token, 12) + 8)
            if x + wide > WIDTH:
                x, y = 0.0, y + LINE
            self.places.append((x, y, wide))
            x += wide + 3

        def named(mask: np.ndarray) -> str:
            return "; ".join(f"“{' '.join(self.tokens[a : b + 1])}”" for a, b in spans_of(mask))

        first = self.frames[ends[0]]
        law = ", ".join(f"{share:.0%}" for share in LAW)
        description = (
            f"Above, for the lengths 1 to 10, the probability of each: {law}; each draw is a square "
            "in the column of its length. Below, the text twice: with the spans that were drawn, "
            "and with as many single tokens. In the first frame, the spans mask "
            f"{named(first.by_spans)}, the single tokens mask {named(first.by_tokens)}."
        )
        landed = [i for i, one in enumerate(self.frames) if one.by_spans.any() and not one.hangs]
        all_draws = Button("All draws", ends[-1:], plays=False)
        buttons = [Button("Re-roll", ends), Button("One draw", landed), all_draws]
        base = round(TOP + SQUARE * max(self.counts.max(), 1 + len(self.draws) * LAW[0]))
        text, deep = base + 56, self.places[-1][1] + LINE
        says = [one.says for one in self.frames]
        size = WIDTH, round(text + 2 * deep + 44)
        super().__init__(*size, "The masking machine", description, says, buttons, first=ends[0])
        self._distribution(base)
        self._text(text, "spans of whole words", [one.by_spans for one in self.frames])
        self._text(text + deep + 30, "single tokens", [one.by_tokens for one in self.frames])
        self._chips(base, text)

    def _round(self, seed: int, spans: Sequence[DrawnSpan]) -> int:
        """Adds the frames of one round: nothing is masked; then each draw has two, above its column
        and in the text. Returns the number of the last."""
        single = np.flatnonzero(TokenMasking().select(self.starts, np.random.default_rng(seed)))
        order = np.random.default_rng(seed).permutation(single)
        words = np.zeros(len(self.sizes), dtype=bool)
        counted = self.frames[-1].counted if self.frames else 0

        def add(says: str, hangs: bool = False, last: bool = False) -> None:
            by_spans = np.repeat(words, self.sizes)
            # a token that no word fits stays unspent; single tokens spend it
            shown = order if last else order[: by_spans.sum()]
            by_tokens = np.isin(np.arange(len(by_spans)), shown)
            self.frames.append(Frame(by_spans, by_tokens, counted, hangs, says))

        add(f"A new round: {len(self.tokens)} tokens, {self.budget} of them may be masked.")
        for span in spans:
            last = span is spans[-1]
            told = f"Draw {counted + 1} of {len(self.draws)}: ℓ = {span.length}"
            add(f"{told}.", hangs=True)
            counted += 1
            end = span.start + span.words
            words[span.start : end] = True
            told += f", at “{self.tokens[self.sizes[: span.start].sum()]}”. "
            if span.words < span.length:
                why = "the text ends" if end == len(self.sizes) else "the budget is used up"
                told += f"Cut after {span.words} word{'s' * (span.words > 1)}: {why}. "
            left = f"{span.left} token{'s' * (span.left != 1)} of the budget left"
            left += ", and no word fits." if last else "."
            add(told + (left if span.left else "No budget left."), last=last)
        return len(self.frames) - 1

    def _distribution(self, base: float) -> None:
        """The lengths as outlined bars, as high as the draws would pile up by their probabilities,
        and the draws as squares."""
        self.text(0, 13, "length distribution", text_anchor="start", bold=True)
        notes = {13: "dashed: as expected", 28: "square: one draw; hollow: it was cut"}
        for down, note in notes.items():
            self.text(WIDTH, down, note, text_anchor="end", font_size=SMALL, soft=True)
        for place, share in enumerate(LAW):
            x, high = 10 + COLUMN * place, len(self.draws) * share * SQUARE
            bar = f"M{x} {base}v{-high:.1f}h{COLUMN - 6}v{high:.1f}z"
            self.line(bar, stroke_dasharray="3 2")
            self.text(x + 14, base + 14, str(place + 1), bold=True)
            self.text(x + 14, base + 28, f"{share:.0%}", font_size=SMALL, soft=True)
        self.line(f"M6 {base}H{WIDTH - 4}")
        self.text(0, base + 14, "ℓ", text_anchor="start")
        piles = np.zeros(10, dtype=int)
        for number, span in enumerate(self.draws):
            column = span.length - 1
            piles[column] += 1
            there = [int(frame.counted > number) for frame in self.frames]
            fill = "none" if span.words < span.length else MASKED
            looks = {"fill": fill, "stroke": MASKED, "stroke_width": 1.4, "opacity": there}
            x, y = 13 + COLUMN * column, base - SQUARE * piles[column] + 1
            self.add("rect", x=x, y=y, width=COLUMN - 12, height=SQUARE - 2, rx=1.5, **looks)

    def _text(self, y: float, name: str, masks: Sequence[np.ndarray]) -> None:
        """The text with its masked tokens, bool [n] for each frame, and how much of the budget is
        spent."""
        self.text(0, y, name, text_anchor="start", bold=True)
        for place in range(self.budget):
            looks = {"width": 12, "height": 11, "rx": 2, "stroke": MASKED, "fill": MASKED}
            spent = [int(mask.sum() > place) for mask in masks]
            left = WIDTH - 112 - 14 * (self.budget - place)
            self.add("rect", x=left, y=y - 10, fill_opacity=spent, **looks)
        told = [f"{mask.sum()} tokens, {len(spans_of(mask))} spans" for mask in masks]
        told = [line.replace(" 1 spans", " 1 span") for line in told]
        self.text(WIDTH, y, told, text_anchor="end", font_size=12)
        for token, (x, down, wide), *state in zip(self.tokens, self.places, *masks, strict=True):
            looks = {
                "fill": MASKED,
                "fill_opacity": [int(masked) for masked in state],
                "stroke": [MASKED if masked else "currentColor" for masked in state],
                "stroke_opacity": [1 if masked else 0.3 for masked in state],
            }
            self.add("rect", x=x + 0.5, y=y + 9 + down, width=wide, height=20, rx=5, **looks)
            fill = ["#fff" if masked else "currentColor" for masked in state]
            self.text(x + wide / 2, y + 23.5 + down, token, font_size=12, fill=fill)

    def _chips(self, base: float, text: float) -> None:
        """Each draw as a small sign that appears above its column and flies to its first word."""
        for number, span in enumerate(self.draws):
            x, down, _ = self.places[self.sizes[: span.start].sum()]
            column = span.length - 1
            above = base - SQUARE * max(len(self.draws) * LAW[column], self.counts[column])
            hang = f"translate({10 + COLUMN * column} {round(above - 24)})"
            land = f"translate({x:g} {round(text + 8 + down)})"
            sign = (
                f'<rect width="30" height="20" rx="10" fill="{MASKED}"/><text x="15" y="15" '
                f'fill="#fff" font-weight="600">{span.length}</text>'
            )
            shown = [int(frame.hangs and frame.counted == number) for frame in self.frames]
            way = [land if frame.counted > number else hang for frame in self.frames]
            self.add("g", "", sign, opacity=shown, transform=way)
