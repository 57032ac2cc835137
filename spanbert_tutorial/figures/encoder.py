"""The encoder in pictures: its layers, its heads, and the vectors that go in. Chapters:
`book/bert/bert`, `book/bert/wordpiece`.
"""

from collections.abc import Sequence
from itertools import product

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.diagram import HIGH, SMALL, WIDTH, Diagram
from spanbert_tutorial.figures.stages import Stage, Stages

# where the lanes of the tokens stand
LEFT = 104
RIGHT = 330


def shape(*sizes: int) -> str:
    """A tensor's shape as the book writes it: [4, 768]."""
    return f"[{', '.join(f'{size:,}' for size in sizes)}]"


def layer_stack(config: EncoderConfig, tokens: Sequence[str]) -> Diagram:
    """From tokens to states: which steps see one token, and the one step in which the tokens meet.

    tokens: two to five short ones. Raises InputError for another number.
    """
    if not 2 <= len(tokens) <= 5:
        raise InputError(f"{len(tokens)} tokens do not fit: give two to five.")
    n = len(tokens)
    H = config.hidden_size
    wide = config.intermediate_size
    layers = config.num_hidden_layers
    picture = Diagram(
        WIDTH,
        380,
        "The encoder: tokens meet only in attention",
        f"From below: {n} tokens ({', '.join(tokens)}). The embeddings give each token a vector "
        f"of width {H:,}. Then "
        f"come {layers} layers. In a layer, attention connects every token with every token; "
        f"adding, LayerNorm and "
        f"the feed-forward part, {H:,} to {wide:,} to {H:,}, treat each token by itself. Out: "
        f"states {shape(n, H)}.",
    )
    lanes = [round(LEFT + 40 + (RIGHT - LEFT - 66) * place / (n - 1)) for place in range(n)]
    for lane, token in zip(lanes, tokens, strict=True):
        long = round(len(token) * 7 + 14)
        picture.token(lane - long / 2, 350, token, width=long)
        _lane(picture, lane)
    picture.box(LEFT + 4, 222, RIGHT - LEFT - 4, 54)
    for one, other in product(lanes, lanes):
        picture.path(
            f"M{one} 276L{other} 222", 'stroke="currentColor" stroke-opacity=".55" fill="none"'
        )
    for y, *lines in (
        (51, "states", shape(n, H)),
        (97, "add, LayerNorm"),
        (142, "feed-forward", f"{H:,} → {wide:,}", f"→ {H:,}"),
        (197, "add, LayerNorm"),
        (249, "attention", "tokens meet", "only here"),
        (317, "embeddings", shape(n, H)),
        (361, "tokens"),
    ):
        _label(picture, y, lines)
    picture.path("M340 80h7v212h-7", 'fill="none" stroke="currentColor" stroke-opacity=".6"')
    picture.text(359, 186, f"{layers} layers", turned=True, bold=True)
    return picture.text(WIDTH / 2, 16, f"n = {n} tokens, width H = {H:,}", soft=True)


def encoder_flow(config: EncoderConfig, tokens: Sequence[str]) -> Stages:
    """`layer_stack` with the shapes of every stage and a sentence about it; raises InputError as it
    does."""
    picture = layer_stack(config, tokens)
    n = len(tokens)
    H = config.hidden_size
    A = config.num_attention_heads
    wide = config.intermediate_size
    same = f"{shape(n, H)} → {shape(n, H)}"
    stages = [
        Stage(
            346,
            376,
            "tokens",
            shape(n),
            f"The text is split into tokens. Each is one of {config.vocab_size:,} in the "
            f"vocabulary, and has its id there.",
        ),
        Stage(
            297,
            345,
            "embeddings",
            f"{shape(n)} → {shape(n, H)}",
            "For each token three vectors are looked up: for its id, its segment and its "
            "position. They are added "
            "and normalized. No token sees another.",
        ),
        Stage(
            218,
            280,
            "attention",
            same,
            f"Each token takes a mixture of what all tokens offer, in {A} attention heads "
            f"with weights "
            f"{shape(A, n, n)}. Here the tokens meet, and nowhere else.",
        ),
        Stage(
            181,
            213,
            "add, LayerNorm",
            same,
            "The input of attention is added to its output (the dashed line). Then each "
            "vector is "
            "normalized by itself.",
        ),
        Stage(
            116,
            172,
            "feed-forward",
            f"{shape(n, H)} → {shape(n, wide)} → {shape(n, H)}",
            "Each vector is widened, passes GELU and is narrowed again, by itself, with "
            "the same weights at all "
            "positions.",
        ),
        Stage(
            81,
            113,
            "add, LayerNorm",
            same,
            "Again the input is added and each vector normalized. The last four stages "
            "are one layer; there "
            f"are {config.num_hidden_layers}, each with its own weights.",
        ),
        Stage(
            36,
            72,
            "states",
            shape(n, H),
            "One vector for each token, and each has seen the whole input. Prediction heads "
            "turn them into answers.",
        ),
    ]
    return Stages(picture, stages, first=2)


def _lane(picture: Diagram, lane: float) -> None:
    """What one token passes by itself; dashed: what came in, to be added."""
    picture.arrow(lane, 348, lane, 322).vector(lane - 17, 313).arrow(lane, 310, lane, 276)
    picture.arrow(lane, 222, lane, 209).line((lane, 185), (lane, 168))
    picture.arrow(lane, 120, lane, 109).arrow(lane, 85, lane, 56).vector(lane - 17, 46)
    for top, below in ((185, 288), (85, 176)):
        picture.line(
            (lane, below),
            (lane - 27, below),
            (lane - 27, top + 12),
            (lane - 12, top + 12),
            dashed=True,
        )
        picture.rectangle(
            lane - 12, top, 24, 24, 'fill="none" stroke="currentColor" stroke-opacity=".6"', 4
        )
        picture.text(lane, top + 17, "+")
    way = (
        f"M{lane - 10} 168L{lane - 21} 144L{lane - 10} 120H{lane + 10}L{lane + 21} "
        f"144L{lane + 10} 168Z"
    )
    picture.path(
        way, 'fill="currentColor" fill-opacity=".09" stroke="currentColor" stroke-opacity=".6"'
    )


def _label(picture: Diagram, middle: float, lines: Sequence[str]) -> None:
    """The name of a step at the left edge, and what it does."""
    first = middle + 4 - 7 * (len(lines) - 1)
    for place, line in enumerate(lines):
        size = SMALL if place else 12
        picture.text(
            0, first + 14 * place, line, size=size, anchor="start", bold=not place, soft=bool(place)
        )


def heads(config: EncoderConfig, n: int) -> Diagram:
    """H cut into A heads, with the shapes for one input of n tokens."""
    H = config.hidden_size
    A = config.num_attention_heads
    d = H // A
    picture = Diagram(
        WIDTH,
        420,
        f"Width {H:,} cut into {A} heads",
        f"The states {shape(n, H)} pass three linear maps: queries, keys and values, "
        f"{shape(n, H)} each. Each is cut "
        f"into A = {A} parts of width H/A = {d}. In one head, queries {shape(n, d)} and keys "
        f"{shape(n, d)} give scores "
        f"{shape(n, n)}, softmax turns them into weights, and the weights mix the values "
        f"{shape(n, d)}. The results of "
        f"all {A} heads are concatenated again, {shape(n, H)}, and pass one more linear map.",
    )
    _strips(picture, 20, 26, 320, A, [])
    picture.text(180, 16, f"states [n, H] = {shape(n, H)}", bold=True)
    for x, name in ((20, "queries"), (132, "keys"), (244, "values")):
        picture.arrow({20: 44, 132: 180, 244: 316}[x], 58, x + 48, 92)
        _strips(picture, x, 110, 96, A, [0])
        picture.text(x + 48, 106, name, size=12)
    picture.text(186, 80, "three linear maps", size=12, anchor="start", soft=True)
    picture.text(180, 154, f"each cut into A = {A} heads of width H/A = {d}", size=12)
    _one_head(picture, n, d)
    _strips(picture, 20, 334, 320, A, [0])
    picture.text(180, 326, f"all {A} heads concatenated again: {shape(n, H)}", size=12)
    picture.arrow(180, 364, 180, 382)
    return picture.text(180, 398, f"one more linear map: {shape(n, H)}", bold=True)


def _strips(
    picture: Diagram, x: float, y: float, width: float, A: int, chosen: Sequence[int]
) -> None:
    """A matrix [n, H] as A strips; the chosen ones are filled."""
    one = round(width / A, 2)
    for place in range(A):
        strong = ".6" if place in chosen else ".1"
        looks = (
            f'fill="currentColor" fill-opacity="{strong}" stroke="currentColor" stroke-width=".8"'
        )
        picture.rectangle(round(x + one * place, 2), y, one, 28, looks)


def _one_head(picture: Diagram, n: int, d: int) -> None:
    """Scores, weights and mixture of one head."""
    picture.box(8, 166, 344, 142)
    picture.text(20, 186, "head 1", anchor="start", bold=True)
    picture.arrow(24, 139, 24, 168)
    middle = 232
    for x, rows, columns, name, sizes in (
        (22, 4, 6, "queries", (n, d)),
        (92, 6, 4, "keysᵀ", (d, n)),
        (182, 4, 4, "weights", (n, n)),
        (240, 4, 6, "values", (n, d)),
        (304, 4, 6, "mixed", (n, d)),
    ):
        wide = 7 * columns
        high = 7 * rows
        picture.matrix(x, middle - high / 2, rows, columns)
        picture.text(x + wide / 2, 270, name, size=SMALL)
        picture.text(x + wide / 2, 286, shape(*sizes), size=SMALL, soft=True)
    picture.text(78, middle + 4, "·").text(227, middle + 4, "·").text(293, middle + 4, "=")
    picture.arrow(124, middle, 178, middle)
    picture.text(151, middle - 22, "divide by", size=SMALL).text(
        151, middle - 8, f"√{d}", size=SMALL
    )
    picture.text(151, middle + 16, "softmax", size=SMALL)


def embeddings(
    config: EncoderConfig,
    tokens: Sequence[str],
    segments: Sequence[int],
    positions: Sequence[int] | None = None,
) -> Diagram:
    """Three vectors looked up and added for each token; segments: 0 (A) or 1 (B) for each.

    Raises InputError when there are not as many segments as tokens, or more tokens than positions.
    """
    n = len(tokens)
    H = config.hidden_size
    if len(segments) != n or n > config.longest:
        raise InputError(
            f"{n} tokens and {len(segments)} segments: give as many, at most {config.longest}."
        )
    positions = range(n) if positions is None else positions
    rows = "; ".join(
        f"{token}: segment {'AB'[segment]}, position {position}"
        for token, segment, position in zip(tokens, segments, positions, strict=True)
    )
    picture = Diagram(
        WIDTH,
        92 + 26 * n,
        "Three vectors are added for each token",
        "Each token contributes the vectors of its id, its segment and its position; the "
        "three are added, then "
        f"LayerNorm. {rows}. The sums are {shape(n, H)}. The tables are "
        f"{shape(config.vocab_size, H)}, "
        f"{shape(config.type_vocab_size, H)} and {shape(config.max_position_embeddings, H)}.",
    )
    for x, name, rows_of in (
        (111, "token", config.vocab_size),
        (188, "segment", config.type_vocab_size),
        (262, "position", config.max_position_embeddings),
    ):
        picture.text(x, 14, name, size=12, bold=True)
        picture.text(x, 30, shape(rows_of, H), size=SMALL, soft=True)
    picture.text(331, 14, "sum", size=12, bold=True).text(
        331, 30, shape(n, H), size=SMALL, soft=True
    )
    picture.text(0, 30, "tables", size=SMALL, anchor="start", soft=True)
    for place, (token, segment, position) in enumerate(
        zip(tokens, segments, positions, strict=True)
    ):
        top = 42 + 26 * place
        middle = top + HIGH / 2
        wide = picture.token(1, top, token)
        picture.line((wide + 2, middle), (91, middle))
        picture.vector(94, middle - 3)
        picture.text(139, middle + 4, "+").text(157, middle + 4, "AB"[segment], size=12)
        picture.vector(165, middle - 3, "learned")
        picture.text(210, middle + 4, "+").text(230, middle + 4, str(position), size=12)
        picture.vector(242, middle - 3, "learned").text(288, middle + 4, "=")
        picture.vector(314, middle - 3)
    picture.arrow(331, 40 + 26 * n + 4, 331, 40 + 26 * n + 22)
    below = f"LayerNorm, then the first layer: {shape(n, H)}"
    return picture.text(WIDTH - 2, 40 + 26 * n + 38, below, anchor="end", size=12)
