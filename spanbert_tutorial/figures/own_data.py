"""From your own file to a model: the two ways, step by step. Chapter:
`book/workshop/your_own_data`."""

from spanbert_tutorial.figures.diagram import SMALL, WIDTH, Diagram

LEFT = 8
RIGHT = 190
WIDE = 162
# the first box, a box, from one box to the next
FIRST = 40
HIGH = 44
STEP = 70
TEXT = (
    ("inspect", "tokens, [UNK], baselines"),
    ("pretrain --dry-run", "memory, hours"),
    ("pretrain", "a checkpoint"),
    ("metrics.jsonl", "the curve"),
    ("fill_masks", "a gap is filled"),
)
QUESTIONS = (
    ("finetune squad", "a model that answers"),
    ("evaluate squad", "score and interval"),
    ("QuestionAnswerer", "or transformers"),
)


def two_ways() -> Diagram:
    """The commands of the page as boxes, each with what it gives; the checkpoint is where the ways
    meet."""
    picture = Diagram(
        WIDTH,
        FIRST + STEP * len(TEXT) - 20,
        "From your file to a model, in two ways",
        "On the left, plain text in any language: inspect shows tokens, the percentage of [UNK] "
        "and two frequency baselines; pretrain with --dry-run estimates memory and hours; "
        "pretrain makes a checkpoint; metrics.jsonl has the curve; fill_masks fills a gap. On the "
        "right, a table of questions: finetune squad starts from a checkpoint and makes a model "
        "that answers; evaluate squad gives the score and its interval; "
        "QuestionAnswerer or "
        "transformers use it.",
    )
    meet = next(place for place, (name, _) in enumerate(TEXT) if name == "pretrain")
    for x, name, first, steps in (
        (LEFT, "plain text", 0, TEXT),
        (RIGHT, "a table of questions", meet, QUESTIONS),
    ):
        middle = x + WIDE / 2
        picture.text(middle, 20, name, bold=True).arrow(
            middle, 26, middle, FIRST + STEP * first - 2
        )
        _column(picture, x, first, steps)
    level = FIRST + STEP * meet + HIGH / 2
    return picture.arrow(LEFT + WIDE, level, RIGHT - 2, level)


def _column(picture: Diagram, x: float, first: int, steps: tuple[tuple[str, str], ...]) -> None:
    """The boxes of one way, from a row on, with arrows between them."""
    for place, (name, gives) in enumerate(steps, start=first):
        y = FIRST + STEP * place
        picture.box(x, y, WIDE, HIGH).text(x + WIDE / 2, y + 19, name, bold=True)
        picture.text(x + WIDE / 2, y + 35, gives, size=SMALL, soft=True)
        if place + 1 < first + len(steps):
            picture.arrow(x + WIDE / 2, y + HIGH, x + WIDE / 2, y + STEP - 2)
