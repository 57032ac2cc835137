"""Check for the exercise of `book/relatives/roberta`: how many numbers an ALBERT has."""

from collections.abc import Callable
from operator import index

from spanbert_tutorial.exercises.diagnosis import Diagnosis, say

POSITIONS = 512
SEGMENTS = 2
CASES = (  # vocabulary, E, H, layers, sharing
    (30_000, 128, 768, 12, "all"),
    (30_000, 128, 768, 12, "none"),
    (30_000, 128, 768, 12, "attention"),
    (2_000, 64, 128, 4, "feed_forward"),
    (28_996, 100, 1_024, 24, "all"),
)
PARTS = ("attention", "feed_forward")
ONCE = {
    "all": PARTS,
    "attention": PARTS[:1],
    "feed_forward": PARTS[1:],
    "none": (),
}  # what counts once
Attempt = Callable[[int, int, int, int, str], int]


def counted(
    drop: tuple[str, ...] = (),
    wide: bool = False,
    once: dict[str, tuple[str, ...]] = ONCE,
    norm: str = "E",
) -> Attempt:
    """The right count, or with one part changed: what a likely mistake computes.

    drop: parts that are forgotten; wide: embeddings of width H; once: which parts count once for
    which sharing; norm: how wide the LayerNorm of the embeddings is.
    """

    def count(vocabulary: int, embedding: int, hidden: int, layers: int, sharing: str) -> int:
        width = hidden if wide else embedding
        times = {part: 1 if part in once[sharing] else layers for part in PARTS}
        parts = {
            "words": vocabulary * width,
            "positions and segments": (POSITIONS + SEGMENTS) * width,
            "embedding norm": 2 * (embedding if norm == "E" else hidden),
            "projection": embedding * hidden,
            "projection bias": hidden,
            "attention": times["attention"] * 4 * hidden**2,
            "feed_forward": times["feed_forward"] * 8 * hidden**2,
            "biases": times["attention"] * 4 * hidden + times["feed_forward"] * 5 * hidden,
            "norms": times["attention"] * 2 * hidden + times["feed_forward"] * 2 * hidden,
        }
        return sum(number for part, number in parts.items() if part not in drop)

    return count


EACH: dict[str, tuple[str, ...]] = dict.fromkeys(ONCE, ())
BOTH: dict[str, tuple[str, ...]] = dict.fromkeys(ONCE, PARTS)
TURNED = ONCE | {"attention": PARTS[1:], "feed_forward": PARTS[:1]}

# What a mistake computes, and what to say to the person who made it.
MISTAKES = (
    (counted(once=EACH), "you count what the layers share once per layer. It is stored once."),
    (
        counted(once=BOTH),
        'you count everything in the layers once. Only what they share is: with "none", nothing.',
    ),
    (
        counted(once=TURNED),
        'with "attention" and "feed_forward" you count the wrong part once. The name says what '
        "is shared.",
    ),
    (
        counted(wide=True),
        "you count the embeddings with width H. They have width E, and the projection turns "
        "that into H.",
    ),
    (
        counted(wide=True, drop=("projection", "projection bias"), norm="H"),
        "this is a BERT: its embeddings have width H. ALBERT's have width E, followed by a "
        "projection.",
    ),
    (
        counted(drop=("projection", "projection bias")),
        "the projection from E to H is missing: a matrix and a bias.",
    ),
    (counted(drop=("projection bias",)), "the projection has a bias of H numbers, too."),
    (
        counted(drop=("positions and segments",)),
        "512 positions and 2 segments have vectors of width E, too.",
    ),
    (counted(drop=("embedding norm",)), "the embeddings have a LayerNorm, too: 2E numbers."),
    (
        counted(norm="H"),
        "the LayerNorm of the embeddings comes before the projection, so it has 2E numbers.",
    ),
    (
        counted(drop=("norms",)),
        "each layer has two LayerNorms of 2H numbers: one for each part.",
    ),
    (
        counted(drop=("biases",)),
        "the linear layers have biases: 4H in attention, 4H + H in the feed-forward part.",
    ),
    (
        counted(drop=("norms", "biases")),
        "you count only the matrices of the layers. Add biases and LayerNorms.",
    ),
)


def _case_in_words(*case: object) -> str:
    return f"for V, E, H, L, sharing = {case}"


def _off(count: int, wanted: int, *case: object) -> str:
    side = "high" if count > wanted else "low"
    return f"the count is {abs(count - wanted):,} too {side}. Write the parts one under another."


diagnose_count = Diagnosis(
    cases=CASES,
    where=_case_in_words,
    read=lambda value, *case: index(value),
    returns="a whole number: multiply and add whole numbers; nothing is divided",
    right=counted(),
    mistakes=MISTAKES,
    otherwise=_off,
    correct="what is shared counts once, and each token costs E numbers, not H.",
)


def check_count(attempt: Attempt) -> None:
    """Prints whether `attempt(V, E, H, L, sharing)` counts the numbers of an ALBERT without pooler
    and heads."""
    say(diagnose_count(attempt))
