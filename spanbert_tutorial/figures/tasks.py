"""What the heads of the tasks read. Chapters: `book/tasks/coreference`,
`book/tasks/relation_extraction`, `book/tasks/classification`.
"""

from collections.abc import Sequence

from spanbert_tutorial.figures.diagram import CELL, SMALL, WIDTH, Diagram

GAP = 7  # between tokens
MENTIONS = ((0, 1), (3, 3))  # of the example below: first and last word
WORDS = ("Nora", "Lund", "lost", "her", "key")


def tokens(picture: Diagram, y: float, words: Sequence[str], gap: float = GAP) -> list[float]:
    """A row of tokens from the left, with a gap between them; returns the middle of each."""
    x = 2.0
    middles = []
    for word in words:
        width = picture.token(x, y, word)
        middles.append(x + width / 2)
        x += width + gap
    return middles


def encoded(picture: Diagram, y: float, middles: Sequence[float], name: str) -> None:
    """The encoder above tokens at y, and a state above it for each of them; the states stand at y −
    62."""
    picture.box(0, y - 38, WIDTH, 24, [name])
    for middle in middles:
        picture.line((middle, y), (middle, y - 14)).arrow(middle, y - 38, middle, y - 52)
        picture.vector(middle - 2.5 * CELL, y - 62)


def span_ranking(hidden: int, features: int) -> Diagram:
    """Two spans of "Nora Lund lost her key": their vectors g, the scores, and what is chosen.
    hidden: H; features: width of a learned feature."""
    wide = 3 * hidden + features
    picture = Diagram(
        WIDTH,
        398,
        "Is “Nora Lund” the antecedent of “her”?",
        f"The encoder gives each token a state of {hidden} numbers. The vector g of a span is "
        f"put together from the "
        "state of its first token, the state of its last token, a weighted mean of all its "
        "states, and a learned "
        f"vector for its length: {wide:,} numbers. s_m scores one span: is it a mention? s_a "
        f"scores two spans: do they "
        "mean the same? The sum of the three scores competes with the scores of other "
        "antecedents, and with the "
        "dummy ε, whose score is 0.",
    )
    middles = tokens(picture, 374, WORDS, 34)
    encoded(picture, 374, middles, "encoder")
    for (first, last), x, name, own in zip(
        MENTIONS, (66, 250), ("j", "i"), ("Nora Lund", "her"), strict=True
    ):
        for end, part in ((first, 0), (last, 1)):
            picture.arrow(middles[end], 310, x - 44 + 34 * part, 278, bend="v")
        _span_vector(picture, x - 60, 268)
        picture.text(x, 246, f"g of “{own}”", size=12)
        picture.arrow(x, 235, x, 214).head(x - 50, 184, 100, 30, [f"sₘ({name})"])
    picture.text(158, 298, f"G = {wide:,}", size=SMALL, soft=True)
    picture.arrow(122, 243, 150, 170, bend="v").arrow(208, 243, 166, 170, bend="v")
    picture.head(113, 140, 90, 30, ["sₐ(i, j)"])
    for x, to in ((66, 122), (250, 194)):
        picture.arrow(x, 183, to, 114, bend="v")
    picture.arrow(158, 139, 158, 114)
    picture.box(46, 88, 224, 26, ["sₘ(i) + sₘ(j) + sₐ(i, j)"]).text(
        306, 105, "ε: 0", anchor="start", bold=True
    )
    picture.arrow(158, 87, 158, 64).arrow(318, 91, 250, 64, bend="v")
    picture.head(63, 36, 230, 28, ["softmax over all j and ε"]).arrow(158, 35, 158, 25)
    picture.token(113, 2, "Nora Lund", "prediction", 90)
    return picture.text(214, 17, "or another, or ε", anchor="start", soft=True, size=12)


def _span_vector(picture: Diagram, x: float, y: float) -> None:
    """[x_first; x_last; x̂; width], named above."""
    for place, (name, kind) in enumerate(
        (("first", ""), ("last", ""), ("x̂", ""), ("width", "learned"))
    ):
        picture.vector(x + 34 * place, y, kind, 4)
        picture.text(x + 34 * place + 13, y - 6, name, size=SMALL, soft=True)


def marked_names(hidden: int, relations: int) -> Diagram:
    """A sentence whose names are replaced by markers, and the two heads that may read it. hidden:
    H; relations: R."""
    picture = Diagram(
        WIDTH,
        240,
        "Two heads on a sentence with marked names",
        "The names of “Nora Lund lives in Upton” are replaced by [SUBJ-PERSON] and [OBJ-TOWN]. "
        "The encoder gives each "
        f"token a state of {hidden} numbers. One head reads the state of [CLS], {hidden} "
        f"numbers. The other reads the "
        f"states of the two markers side by side, {2 * hidden} numbers. Each gives a score for "
        f"each of the {relations} "
        "labels.",
    )
    words = ("[CLS]", "[SUBJ-PERSON]", "lives", "in", "[OBJ-TOWN]")
    middles = tokens(picture, 216, words)
    encoded(picture, 216, middles, "encoder")
    cls = middles[0]
    subject = middles[1]
    thing = middles[-1]
    left = 78
    right = 262
    for middle, name in ((cls, "h"), (subject, "hₛ"), (thing, "hₒ")):
        picture.text(middle + 22, 152, name, anchor="start", size=12, soft=True)
    for middle, to in ((cls, left), (subject, right - 30), (thing, right + 30)):
        picture.arrow(middle, 150, to, 98, bend="v")
    picture.head(left - 70, 60, 140, 38, ["[CLS]", f"W: {relations} × {hidden}"])
    picture.head(right - 84, 60, 168, 38, ["markers", f"W: {relations} × {2 * hidden}"])
    for x, who in ((left, "as in SpanBERT"), (right, "as in Matching the Blanks")):
        picture.arrow(x, 59, x, 44).token(x - 40, 21, "home", "prediction", 80)
        picture.text(x, 12, who, size=SMALL, soft=True)
    return picture


def sentence_heads(hidden: int) -> Diagram:
    """One sentence or two, and what is read from the state of [CLS]: a label or a score. hidden:
    H."""
    picture = Diagram(
        WIDTH,
        300,
        "A label or a score from the state of [CLS]",
        "The input is one sentence between [CLS] and [SEP], or two sentences, each with [SEP] "
        "after it. Only the state of "
        f"[CLS], {hidden} numbers, is used: it passes through the pooler, a layer with tanh, and "
        "then "
        f"through one head. A head "
        "for labels gives a score for each label; a head for a score gives one number.",
    )
    middles = tokens(picture, 276, ("[CLS]", "first", "[SEP]", "second", "[SEP]"), 22)
    encoded(picture, 276, middles, "encoder")
    picture.text(WIDTH, 206, "these states are not read", anchor="end", size=12, soft=True)
    cls = middles[0]
    picture.arrow(cls, 210, cls, 186).box(0, 160, 110, 26, ["pooler"])
    picture.text(118, 177, f"tanh(W h + b), {hidden} numbers", anchor="start", size=12, soft=True)
    picture.arrow(55, 159, 85, 122, bend="v").arrow(55, 159, 265, 122, bend="v")
    picture.head(20, 84, 130, 38, ["label", "one score per label"])
    picture.head(200, 84, 130, 38, ["score", "one number"])
    for x, said in ((85, "entailment"), (265, "3.8")):
        picture.arrow(x, 83, x, 60)
        picture.token(x - 45, 37, said, "prediction", 90)
    picture.text(85, 22, "does it follow?", size=12).text(265, 22, "how similar, 0 to 5?", size=12)
    return picture
