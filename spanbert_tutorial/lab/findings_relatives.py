"""What the experiments of Part IV found. Page: `book/workshop/what_we_found`."""

from collections.abc import Mapping

from spanbert_tutorial.lab.findings import Comparison, Families, Report, percent
from spanbert_tutorial.lab.results import column

SHARED = {
    "all": "all shared",
    "attention": "attention shared",
    "feed_forward": "feed-forward shared",
    "none": "nothing shared",
}


def roberta_masks(content: Mapping) -> Families:
    """Masks that return against new ones."""

    def loss(way: str, place: str) -> list[float]:
        return column(content, "new_masks", place, "loss", way=way.replace("-", " "))

    return [
        [
            Comparison(
                f"{way} masks",
                "dynamic masks",
                f"loss on new masks, blocks {place}",
                (loss(way, place), loss("dynamic", place)),
                "nats",
                True,
            )
            for way in ("ten-copies", "static")
            for place in ("held out", "trained on")
        ]
    ]


def roberta_formats(content: Mapping) -> Families:
    """Four input formats, on blocks of one document."""
    names = "SEGMENT-PAIR+NSP", "SENTENCE-PAIR+NSP", "FULL-SENTENCES", "DOC-SENTENCES"
    pairs = ((2, 3), (0, 3), (1, 0))
    loss = {
        name: column(content, "held_out", "DOC-SENTENCES", "mlm", format=name) for name in names
    }
    return [
        [
            Comparison(
                names[one],
                names[other],
                "held-out loss on blocks of one document",
                (loss[names[one]], loss[names[other]]),
                "nats",
                True,
            )
            for one, other in pairs
        ]
    ]


def albert_sharing(content: Mapping) -> Families:
    """What sharing costs."""
    loss = {kind: column(content, "held_out", "mlm", sharing=kind) for kind in SHARED}
    pairs = (
        ("all", "none"),
        ("attention", "none"),
        ("feed_forward", "none"),
        ("attention", "feed_forward"),
    )
    return [
        [
            Comparison(
                SHARED[one], SHARED[other], "held-out loss", (loss[one], loss[other]), "nats", True
            )
            for one, other in pairs
        ]
    ]


def albert_sop(content: Mapping) -> Families:
    """Each asked the other's question: one family for each question."""

    def right(trained: str, task: str, way: str) -> list[float]:
        return percent(column(content, "asked", task, way, trained=trained))

    def pair(task: str, way: str, one: str, other: str) -> Comparison:
        name = {"none": "neither learned", "NSP": "NSP learned", "SOP": "SOP learned"}
        return Comparison(
            name[one],
            name[other],
            f"{task}, read by the {way}",
            (right(one, task, way), right(other, task, way)),
        )

    sop = [
        pair("SOP", *rest)
        for rest in (
            ("head", "SOP", "NSP"),
            ("head", "NSP", "none"),
            ("probe", "SOP", "none"),
            ("probe", "NSP", "none"),
        )
    ]
    return [sop, [pair("NSP", "head", "NSP", "SOP"), pair("NSP", "probe", "SOP", "none")]]


def electra_mini(content: Mapping) -> Families:
    """Equal computation: three questions, so three families."""

    def pairs(
        first: tuple[str, str], second: tuple[str, str], names: tuple[str, str]
    ) -> list[Comparison]:
        return [
            Comparison(
                *names,
                task,
                tuple(
                    percent(column(content, "tasks", task, arm=arm, **{"from": start}))
                    for arm, start in (first, second)
                ),
            )
            for task in ("tags, fine-tuned", "tags, frozen", "roles, frozen")
        ]

    mlm = "masked language modeling"
    more = pairs(
        ("electra", "scratch"), ("mlm", "scratch"), ("ELECTRA from scratch", f"{mlm} from scratch")
    )
    more += pairs(("electra", "start"), ("mlm", "start"), ("ELECTRA, going on", f"{mlm}, going on"))
    draws = pairs(
        ("electra", "start"), ("arg-max", "start"), ("drawn words", "the likeliest words")
    )
    harm = pairs(
        ("arg-max", "start"), ("mlm", "scratch"), ("the likeliest words", "their own start")
    )
    return [more, draws, harm]


def beyond_ways(content: Mapping) -> Families:
    """One model trained in two ways: gaps, and copying."""
    encoding = "auto-encoding, 15 %"
    all_targets = "auto-regressive, 100 %"
    control = "auto-regressive, 15 %"

    def right(way: str, view: str) -> list[float]:
        return percent(column(content, "uses", "gaps", view, "accuracy", way=way))

    def pair(
        one: tuple[str, str], other: tuple[str, str], names: tuple[str, str], measure: str
    ) -> Comparison:
        return Comparison(*names, measure, (right(*one), right(*other)))

    tried = "both, tried"
    left = "left, tried"
    both = "left and right sides"
    gaps = [
        pair(
            (control, tried), (encoding, tried), (control, encoding), "gaps named right, both sides"
        ),
        pair(
            (control, "left"),
            (encoding, "both"),
            (f"{control}, left side", f"{encoding}, both sides"),
            "gaps named right",
        ),
        pair(
            (all_targets, "left"),
            (control, "left"),
            (all_targets, control),
            "gaps named right, left side",
        ),
        pair(
            (all_targets, tried),
            (all_targets, left),
            (both, "left side alone"),
            f"gaps named right, {all_targets}",
        ),
        pair(
            (encoding, "both"),
            (encoding, "left, no [SEP]"),
            (both, "left side alone"),
            f"gaps named right, {encoding}",
        ),
    ]
    copies = [
        Comparison(
            "a second copy",
            "other text in front",
            f"loss of repeated random pieces, {way}",
            tuple(
                column(content, "uses", "copying", which, way=way) for which in ("copy", "other")
            ),
            "nats",
            True,
        )
        for way in (encoding, all_targets, control)
    ]
    return [gaps, copies]


REPORTS = (
    Report(
        "roberta_masks",
        "static masks, ten copies, dynamic masks",
        "relatives/roberta",
        "first weights and order",
        "the same blocks in the same order",
        "Few seeds; no model here is good.",
        roberta_masks,
    ),
    Report(
        "roberta_formats",
        "four input formats with the same number of tokens",
        "relatives/roberta",
        "first weights and order",
        "the same start, about the same number of tokens a step",
        "It says when a model begins to learn; tasks were not measured.",
        roberta_formats,
    ),
    Report(
        "albert_sharing",
        "what does sharing the layers' weights cost?",
        "relatives/albert",
        "first weights and order",
        "nothing shared, the same computation",
        "Few seeds, and two layers leave little to share.",
        albert_sharing,
    ),
    Report(
        "albert_sop",
        "next sentence against sentence order, each asked the other's question",
        "relatives/albert",
        "first weights and order",
        "the same start, neither learned; bags of words",
        "Few seeds; bags of words are at least as good.",
        albert_sop,
    ),
    Report(
        "electra_mini",
        "ELECTRA against masked language modeling at equal computation",
        "relatives/electra",
        "first weights and order",
        "an untrained encoder, the start",
        "Settings were chosen for the masked model, "
        "and from scratch ELECTRA's models stay on the plateau.",
        electra_mini,
    ),
    Report(
        "beyond_ways",
        "one small model trained in two ways",
        "relatives/beyond",
        "first weights and order",
        "the same targets, the same blocks",
        "1,000 steps of a tiny model on an easy text.",
        beyond_ways,
    ),
)
