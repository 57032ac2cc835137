"""What was measured of the engine and of the shipped models. Page:
`book/workshop/what_we_found`."""

from collections.abc import Mapping

from spanbert_tutorial.lab.experiments.twins import PARTS, TWINS, joined, lead
from spanbert_tutorial.lab.findings import NULL, SHOWN, SINGLE, Line, Report, interval_line

SIZES = ("tiny", "mini", "mini, large vocabulary", "base")


def race(first: str, second: str, measure: str, row: Mapping) -> Line:
    """The ratio of `second` to `first`, median of many rounds: shown when all of them lie on one
    side of 1."""
    least, most = row["ratios"]
    better, worse = (first, second) if row["ratio"] > 1 else (second, first)
    shown = least > 1 or most < 1
    text = (
        f"{better} ahead of {worse}: {measure}" if shown else f"{first} against {second}: {measure}"
    )
    return Line(
        SHOWN if shown else NULL,
        text,
        f"{second} ÷ {first}: {row['ratio']:.2f} ({least:.2f} to {most:.2f})",
    )


def steps(content: Mapping) -> list[Line]:
    """Races of whole training steps."""
    runs = [
        (f"seconds of a step, {size}, {kind}", content[kind][size])
        for kind in ("float32", "bfloat16")
        for size in SIZES
    ]
    return [
        line
        for told, row in runs
        for line in (
            race("ours", "transformers", told, row["against_transformers"]),
            race("without SBO", "with SBO", told, row["span_with_sbo_against_without"]),
        )
    ]


def attention(content: Mapping) -> list[Line]:
    """PyTorch's fused attention, and its formula written out."""
    return [
        race("maps written out", "fused attention", f"training of attention, {shape}, {kind}", row)
        for kind in ("float32", "bfloat16")
        for shape, row in content[kind].items()
    ]


def masking(content: Mapping) -> list[Line]:
    """Masking all rows at once."""
    return [
        race("all rows at once", "a plain loop", f"seconds of masking, {name}", row)
        for name, row in content.items()
        if name.startswith("batch")
    ]


def freed(content: Mapping) -> list[Line]:
    """Freed memory kept."""
    return [
        race(
            "memory kept", "memory handed back", f"processor time of a step, {size}", content[size]
        )
        for size in ("tiny", "mini", "base")
    ]


def memory(content: Mapping) -> list[Line]:
    """The greatest memory of a step."""
    return [race("transformers", "ours", "greatest memory of a step, base, n = 512", content)]


def growth(content: Mapping) -> list[Line]:
    """Ten times the text."""
    few, more = content["added_mib"]
    return [
        Line(
            SINGLE,
            "memory that encoding adds, and with ten times the text",
            f"{few} and {more} MiB",
        )
    ]


def kills(content: Mapping) -> list[Line]:
    """A run that is killed again and again."""
    same = "the same weights" if content["same_weights"] else "other weights"
    return [
        Line(
            SINGLE,
            "a run killed at any moment and resumed, against one left alone",
            f"{same} after {content['kills']} kills",
        )
    ]


def shipped_losses(content: Mapping) -> list[Line]:
    """The twins under both ways of hiding."""
    lines = []
    for way, told in {"token": "one by one", "span": "in spans"}.items():
        loss = {
            name: content["losses"][name]["held out"][way]["mlm"]
            for name in ("bert-mini", "spanbert-mini")
        }
        best, other = sorted(loss, key=loss.__getitem__)
        lines.append(
            Line(
                SINGLE,
                f"{best} below {other}: loss on held-out Wikipedia, tokens hidden {told}",
                f"{loss[best]:.2f} and {loss[other]:.2f} nats",
            )
        )
    return lines


def twins(content: Mapping) -> list[Line]:
    """By how much the twins are apart at the end of each part of their pre-training."""
    parts = [f"{TWINS[0]}-{part}" for part in range(1, PARTS + 1)]
    ends = [joined(content, parts[:count], "token")[0][-1] for count in range(1, PARTS + 1)]
    told = " and ".join(f"{end:.0f}" for end in ends) + " million tokens after the common start"
    return [
        Line(
            SINGLE,
            f"spanbert-mini below bert-mini (above where negative), tokens hidden {way}, {told}",
            " and ".join(f"{nats:.2f}".replace("-", "−") for nats in lead(content, loss)) + " nats",
        )
        for loss, way in {"token": "one by one", "span": "in spans"}.items()
    ]


def copied_names(content: Mapping) -> list[Line]:
    """Names hidden whole or in part, given back by the twins and by a rule."""
    lines = []
    for what, row in content["differences"].items():
        ahead = row["mean"] > 0
        low, high = row["interval"] if ahead else (0 - end for end in row["interval"][::-1])
        pair = TWINS[::-1] if ahead else TWINS
        word = "better than" if low > 0 else "against"
        text = f" {word} ".join(pair) + f": a hidden name given back, {what}"
        lines.append(interval_line(text, low, high, abs(row["mean"])))
        shares = ", ".join(f"{share:.1f}" for share in content["right"][what].values())
        told = f"a hidden name given back by bert-mini, spanbert-mini and a rule, {what}"
        lines.append(Line(SINGLE, told, f"{shares} %"))
    return lines


SMALL = (
    "Besides the objective the twins differ in small things: how long the learning rate "
    "rose, how many processes"
)
ROUNDS = "No seeds: the median of several rounds, with the least and the greatest"
REPORTS = (
    Report(
        "shipped_losses",
        "losses of the shipped models, beside two tables without context",
        "workshop/shipped_models",
        "No seeds: one model of each kind",
        "two tables without context, on the same pieces",
        f"{SMALL}.",
        told=shipped_losses,
    ),
    Report(
        "twins",
        "do the twins draw apart on their way?",
        "workshop/shipped_models",
        "No seeds: one pre-training run of each",
        "the common start",
        f"{SMALL}.",
        told=twins,
    ),
    Report(
        "copied_names",
        "do the shipped models give back a name that stands elsewhere in the block?",
        "workshop/shipped_models",
        "No seeds: the intervals run over documents",
        "two rules that copy",
        f"One pre-training run of each; the question was not planned. {SMALL}.",
        told=copied_names,
    ),
    Report(
        "speed_steps",
        "how fast is a training step?",
        "workshop/engine",
        ROUNDS,
        "transformers on the same batch",
        "Two CPU cores.",
        told=steps,
    ),
    Report(
        "speed_attention",
        "when is fused attention faster?",
        "workshop/engine",
        ROUNDS,
        "the formula written out",
        "Two CPU cores.",
        told=attention,
    ),
    Report(
        "speed_masking",
        "how fast are masks drawn?",
        "workshop/engine",
        ROUNDS,
        "a plain loop by the rules of the released code",
        "Two CPU cores.",
        told=masking,
    ),
    Report(
        "freed_memory",
        "is it worth while to keep freed memory?",
        "workshop/engine",
        ROUNDS,
        "a process that hands it back",
        "Linux; batches of one shape.",
        told=freed,
    ),
    Report(
        "memory",
        "how much memory does a step take?",
        "workshop/engine",
        ROUNDS,
        "transformers",
        "One size.",
        told=memory,
    ),
    Report(
        "growth",
        "does a larger text need more memory?",
        "workshop/engine",
        "No seeds",
        "a tenth of the text",
        "Small texts.",
        told=growth,
    ),
    Report(
        "kills",
        "does a killed run lose anything?",
        "workshop/engine",
        "No seeds",
        "the run left alone",
        "A CPU.",
        told=kills,
    ),
)
