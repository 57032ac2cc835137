"""Figure 1 of the SpanBERT paper, alive: what each head reads to predict a masked word, and what it
predicts. Chapters: `book/spanbert/boundary`, `book/welcome`.

`book_assets/figure_one.js` draws it; `book_assets/span_boundary.svg` is the still picture.
"""

from functools import cache

from spanbert_tutorial.figures.part import Part
from spanbert_tutorial.figures.predictions import mask_and_predict
from spanbert_tutorial.figures.try_it import MINI, pretrained

# the paper's sentence
WORDS = "Super Bowl 50 was an American football game to determine the champion".split()
SPAN = (4, 7)  # "an American football game", words counted from 0
PLACE = 2  # of "football" in it
BEST = 4  # predictions of a head


@cache
def figure_one() -> Part:
    """The figure, with the predictions of `spanbert-mini` for every span that has a neighbor on
    both sides: "4-7" → head → for each masked word its top tokens."""
    model, wordpiece = pretrained(MINI)
    words = [wordpiece.tokens(wordpiece.encode(word)) for word in WORDS]
    filled = {
        (first, last): mask_and_predict(
            model, wordpiece, " ".join(WORDS), first + 1, last + 1, BEST
        )
        for first in range(1, len(words) - 1)
        for last in range(first, len(words) - 1)
    }
    predictions = {
        f"{first}-{last}": {
            head: [[(token, round(p, 3)) for token, p in row] for row in rows]
            for head, rows in (("mlm", one.mlm), ("sbo", one.sbo))
        }
        for (first, last), one in filled.items()
    }
    data = {"words": words, "span": SPAN, "place": PLACE, "predictions": predictions}
    return Part("figure-one", filled[SPAN], "drag over the words to mask others", data)
