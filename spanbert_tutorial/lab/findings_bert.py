"""What the experiments of Part I found. Page: `book/workshop/what_we_found`."""

from collections.abc import Mapping

import numpy as np

from spanbert_tutorial.lab.experiments.directions import ROLES
from spanbert_tutorial.lab.findings import SINGLE, Comparison, Families, Line, Report, percent
from spanbert_tutorial.lab.results import column

AS_MANY_TO_TEST = 826 / 812  # mentions to test on for each to learn from, of seed 0


def masking_mini(content: Mapping) -> Families:
    """The shares 80/10/10 against two others, and one gap at a time."""
    places = {
        "mask": "[MASK] stands there",
        "same": "the token stands there",
        "random": "another token stands there",
    }
    shares = [
        Comparison(
            variant,
            "80/10/10",
            f"share of tokens named, {told}",
            tuple(
                percent(column(content, "shown", place, "accuracy", variant=which))
                for which in (variant, "80/10/10")
            ),
        )
        for variant in ("100/0/0", "80/20/0")
        for place, told in places.items()
    ]
    names = tuple(
        percent(column(content, "names", way, "exists", variant="80/10/10"))
        for way in ("one at a time", "apart")
    )
    told = "two gaps filled with a name that exists"
    return [shares, [Comparison("one gap at a time", "two gaps apart", told, names)]]


def tags(content: Mapping) -> list[Comparison]:
    """Names tagged by frozen and by fine-tuned encoders."""
    side = "frozen, all layers side by side"
    pairs = (
        ("fine-tuned", "from scratch"),
        ("most frequent tag", "from scratch"),
        ("frozen, below the first layer", "most frequent tag"),
        ("fine-tuned", "frozen, last layer"),
        ("fine-tuned", side),
    )
    return [
        Comparison(
            one,
            other,
            "the tag of each piece",
            tuple(percent(column(content, "tags", arm)) for arm in (one, other)),
        )
        for one, other in pairs
    ]


def roles(content: Mapping) -> list[Comparison]:
    """What a linear probe reads of a town's role. Every seed splits the same documents."""
    return [
        Comparison(
            one,
            other,
            "role of a town's name",
            tuple(percent(column(content, "roles", arm)) for arm in (one, other)),
            test_to_train=AS_MANY_TO_TEST,
        )
        for one, other in ROLES
    ]


def leaving_the_plateau(content: Mapping) -> Families:
    """Each other setting against the book's: held-out losses, and steps where every run has
    left."""

    def losses(name: str) -> list[float]:
        return column(content, "held_out", "token", "mlm", setting=name)

    book = "as in the book"
    settings = list(dict.fromkeys(row["setting"] for row in content["rows"]))
    others = [name for name in settings if name != book and not name.startswith("short")]
    left = {
        name: column(content, "left_after", setting=name)
        for name in (book, "short blocks", "warm-up of 0.4")
    }
    return [
        [
            Comparison(name, book, "held-out loss", (losses(name), losses(book)), "nats", True)
            for name in others
        ]
        + [
            Comparison(
                name, book, "steps to leave the plateau", (left[name], left[book]), "steps", True
            )
            for name in left
            if name != book
        ]
    ]


def easy_first(content: Mapping) -> Families:
    """The almanac first, or the same text twice."""
    arms = "almanac first", "corpus, then corpus"
    return [
        [
            Comparison(
                *arms,
                "held-out loss on Wikipedia",
                tuple(column(content, "held_out", "mlm", arm=arm) for arm in arms),
                "nats",
                True,
            )
        ]
    ]


def copying(content: Mapping) -> list[Line]:
    """What a model that may see the answer has learned."""
    views = [row["views"]["both ways"] for row in content["rows"]]
    least, most = (
        f"{100 * share:.0f} %"
        for share in (
            min(one["in sight"]["accuracy"] for one in views),
            max(one["behind [MASK]"]["accuracy"] for one in views),
        )
    )
    nats = np.mean([one["behind [MASK]"]["loss"] for one in views])
    text = (
        "A model that may look at the next word: share named right by the weakest run where the "
        "word is in sight, "
        "by the best run behind [MASK]; and the mean loss there"
    )
    return [Line(SINGLE, text, f"{least}, {most}; {nats:.1f} nats")]


REPORTS = (
    Report(
        "directions",
        "what do models that look one way, or both ways, predict and know?",
        "bert/directions",
        "first weights, order and what is learned from",
        "an untrained encoder, the word's embedding alone, a list of next pieces, the most "
        "frequent tag",
        "A probe says what can be read from a state, not what a model uses.",
        lambda content: [tags(content), roles(content)],
        copying,
    ),
    Report(
        "masking_mini",
        "what do 80/10/10 and other shares do?",
        "bert/masking",
        "first weights and order",
        "all else equal; a random draw is seldom the original",
        "At [MASK] the figures say who leaves the plateau sooner.",
        masking_mini,
    ),
    Report(
        "leaving_the_plateau",
        "what shortens the time in which the loss stands still?",
        "bert/pretraining",
        "first weights and order",
        "the setting of the book",
        "One text and 1,000 steps of a tiny model.",
        leaving_the_plateau,
    ),
    Report(
        "easy_first",
        "does easy text first help a larger model off the plateau?",
        "bert/pretraining",
        "first weights and order",
        "the same text in both halves",
        "Few seeds, 1,500 steps.",
        easy_first,
    ),
)
