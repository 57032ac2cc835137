"""Findings that are no comparison over seeds: single runs, speed measurements, and intervals over
articles or documents. Page: `book/workshop/what_we_found`."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from research.experiments.twins import PARTS, TWINS, joined, lead
from research.lines import NULL, SHOWN, SINGLE, Line, interval_line
from research.results import column

SIZES = ("tiny", "mini", "mini, large vocabulary", "base")
PRECISIONS = ("float32", "bfloat16")
SPANBERT_FIRST = ("spanbert-mini", "bert-mini")


# --- models --------------------------------------------------------------------------


def directions(content: Mapping) -> Iterable[Line]:
    """A model that may see the answer learns to copy it."""
    views = [row["views"]["both ways"] for row in content["rows"]]
    in_sight = min(view["in sight"]["accuracy"] for view in views)
    behind_mask = max(view["behind [MASK]"]["accuracy"] for view in views)
    loss = np.mean([view["behind [MASK]"]["loss"] for view in views])
    text = (
        "A model that may look at the next word: share named right by the weakest run where the "
        "word is in sight, by the best run behind [MASK]; and the mean loss there"
    )
    yield Line(SINGLE, text, f"{100 * in_sight:.0f} %, {100 * behind_mask:.0f} %; {loss:.1f} nats")


def squad_real(content: Mapping) -> Iterable[Line]:
    """The mini models beside what has learned less: new weights, counting words, abstaining."""

    def f1(start: str, task: str) -> float:
        return column(content, "score", "f1", start=start, task=task)[0]

    baselines = content["baselines"]
    counting = max(baselines[name]["squad1"]["f1"] for name in ("lexical", "type"))
    abstaining = baselines["always abstain"]["squad2"]["f1"]
    for name, task, beside, score in (
        ("SQuAD 1.1", "squad1", "the better of two programs that count words", counting),
        ("SQuAD 2.0", "squad2", "never answering", abstaining),
    ):
        minis = [f1(mini, task) for mini in SPANBERT_FIRST]
        yield Line(
            SINGLE,
            f"{name}, F1: spanbert-mini, bert-mini, {beside}, new weights (one run each)",
            ", ".join(f"{figure:.1f}" for figure in (*minis, score, f1("new weights", task))),
        )


def first_pair_answers(content: Mapping) -> Iterable[Line]:
    """The first mini models against what has learned less: new weights, counting words, abstaining."""

    def scores(start: str, task: str) -> list[float]:
        return column(content, "score", "f1", start=start, task=task)

    baselines = content["baselines"]
    minis = {
        task: scores("spanbert-mini", task) + scores("bert-mini", task)
        for task in ("squad1", "squad2")
    }
    new = {task: scores("new weights", task)[0] for task in minis}
    counting = max(baselines[name]["squad1"]["f1"] for name in ("lexical", "type"))
    abstaining = baselines["always abstain"]["squad2"]["f1"]
    yield Line(
        SINGLE,
        "SQuAD 1.1, F1: the weakest run of the twins, the better of two programs that count words, "
        "new weights (one run)",
        f"{min(minis['squad1']):.1f}, {counting:.1f}, {new['squad1']:.1f}",
    )
    yield Line(
        SINGLE,
        "SQuAD 2.0, F1: the weakest and the best run of the twins, never answering, new weights "
        "(one run)",
        f"{min(minis['squad2']):.1f}, {max(minis['squad2']):.1f}, {abstaining:.1f}, "
        f"{new['squad2']:.1f}",
    )


def answer_errors(content: Mapping) -> Iterable[Line]:
    """Differences with intervals over articles; SQuAD 2.0 against a system that abstains."""
    squad1, squad2 = content["squad1"], content["squad2"]
    for name, row in squad1["differences"].items():
        low, high = row["interval"]
        yield interval_line(f"{name}: SQuAD 1.1, F1", low, high, row["mean"])
    for name in SPANBERT_FIRST:
        gain = squad1["systems"][name]["gain"]
        low, high = gain["interval"]
        text = f"{name} given the sentence with the answer, gain in F1"
        yield interval_line(text, low, high, gain["mean"])
    abstaining = 100 * squad2["without"] / squad2["questions"]
    for name in SPANBERT_FIRST:
        text = f"{name}: SQuAD 2.0, F1 with a threshold, against never answering"
        f1 = squad2["systems"][name]["tuned"]["f1"]
        yield Line(SINGLE, text, f"{f1:.1f} against {abstaining:.1f}")


def squad_negatives(content: Mapping) -> Iterable[Line]:
    """Which unanswerable questions shared words give away."""
    for kind, row in content["results"]["lexical"].items():
        low, high, mean = (100 * (auc - 0.5) for auc in (*row["interval"], row["auc"]))
        text = (
            f"A program that counts shared words finds questions without an answer, {kind}: "
            "AUC above chance"
        )
        yield interval_line(text, low, high, mean)


def shipped_losses(content: Mapping) -> Iterable[Line]:
    """The mini models under both ways of masking."""
    for way, text in {"token": "single tokens", "span": "spans"}.items():
        loss = {name: content["losses"][name]["held out"][way]["mlm"] for name in TWINS}
        best, other = sorted(loss, key=loss.__getitem__)
        yield Line(
            SINGLE,
            f"{best} below {other}: loss on held-out Wikipedia, {text} masked",
            f"{loss[best]:.2f} and {loss[other]:.2f} nats",
        )


def twins(content: Mapping) -> Iterable[Line]:
    """How far the mini models are apart at the end of each part of their pre-training."""
    parts = [f"{TWINS[0]}-{part}" for part in range(1, PARTS + 1)]
    ends = [joined(content, parts[:count], "token")[0][-1] for count in range(1, PARTS + 1)]
    when = " and ".join(f"{end:.0f}" for end in ends) + " million tokens after the common start"
    for way, text in {"token": "single tokens", "span": "spans"}.items():
        leads = " and ".join(f"{nats:.2f}".replace("-", "−") for nats in lead(content, way))
        yield Line(
            SINGLE,
            "the first spanbert-mini below the first bert-mini (above where negative), "
            f"{text} masked, {when}",
            f"{leads} nats",
        )


def copied_names(content: Mapping) -> Iterable[Line]:
    """Names masked whole or in part, predicted by the mini models and by a rule."""
    return copied_by(content, dict(zip(TWINS, TWINS, strict=True)))


def first_pair_copying(content: Mapping) -> Iterable[Line]:
    """The same, by the first mini models."""
    return copied_by(content, {name: f"the first {name}" for name in TWINS})


def copied_by(content: Mapping, told: Mapping[str, str]) -> Iterable[Line]:
    """told: a model's name in the file → on the page."""
    for case, row in content["differences"].items():
        low, high = row["interval"]
        pair = SPANBERT_FIRST
        if row["mean"] <= 0:
            low, high = 0 - high, 0 - low
            pair = TWINS
        word = "better than" if low > 0 else "against"
        text = f"{told[pair[0]]} {word} {told[pair[1]]}: a masked name restored, {case}"
        yield interval_line(text, low, high, abs(row["mean"]))
        rates = ", ".join(f"{rate:.1f}" for rate in content["right"][case].values())
        text = f"a masked name restored by {', '.join(told.values())} and a rule, {case}"
        yield Line(SINGLE, text, f"{rates} %")


def copying_and_answers(content: Mapping) -> Iterable[Line]:
    """What four finished models copy; no seeds, because copying is measured before fine-tuning."""
    starts = {"mlm": "tokens", "mlmnsp": "tokens in pairs", "spansbo": "spans", "mix": "a mix"}
    last = "its last token, it stands in the block again"
    for path, text in {
        ("copying", last): "a masked name restored, its last token, the block repeats it",
        ("copying", "token", "again", "right"): "rare tokens restored that the block shows again",
    }.items():
        rates = [
            column(content, *path, start=start, goes_on="nothing", seed=0)[0] for start in starts
        ]
        shown = ", ".join(f"{rate:.1f}" for rate in rates)
        yield Line(SINGLE, f"{text}, by models of {', '.join(starts.values())}", f"{shown} %")


# --- the engine ----------------------------------------------------------------------


def race(first: str, second: str, measure: str, row: Mapping) -> Line:
    """The ratio of `second` to `first`, median of many rounds: shown when all rounds are on one
    side of 1."""
    lowest, highest = row["ratios"]
    shown = lowest > 1 or highest < 1
    better, worse = (first, second) if row["ratio"] > 1 else (second, first)
    text = f"{better} ahead of {worse}" if shown else f"{first} against {second}"
    ratio = f"{second} ÷ {first}: {row['ratio']:.2f} ({lowest:.2f} to {highest:.2f})"
    return Line(SHOWN if shown else NULL, f"{text}: {measure}", ratio)


def speed_steps(content: Mapping) -> Iterable[Line]:
    """Whole training steps."""
    for precision in PRECISIONS:
        for size in SIZES:
            row = content[precision][size]
            measure = f"seconds of a step, {size}, {precision}"
            yield race("ours", "transformers", measure, row["against_transformers"])
            yield race("without SBO", "with SBO", measure, row["span_with_sbo_against_without"])


def speed_attention(content: Mapping) -> Iterable[Line]:
    """PyTorch's fused attention against its formula written out."""
    for precision in PRECISIONS:
        for shape, row in content[precision].items():
            measure = f"training of attention, {shape}, {precision}"
            yield race("maps written out", "fused attention", measure, row)


def speed_masking(content: Mapping) -> Iterable[Line]:
    """Masking all rows at once."""
    for name, row in content.items():
        if name.startswith("batch"):
            yield race("all rows at once", "a plain loop", f"seconds of masking, {name}", row)


def freed_memory(content: Mapping) -> Iterable[Line]:
    """Keeping freed memory."""
    for size in ("tiny", "mini", "base"):
        measure = f"processor time of a step, {size}"
        yield race("memory kept", "memory handed back", measure, content[size])


def memory(content: Mapping) -> Iterable[Line]:
    """Peak memory of a step."""
    yield race("transformers", "ours", "greatest memory of a step, base, n = 512", content)


def growth(content: Mapping) -> Iterable[Line]:
    """Memory with ten times the text."""
    small, large = content["added_mib"]
    text = "memory that encoding adds, and with ten times the text"
    yield Line(SINGLE, text, f"{small} and {large} MiB")


def kills(content: Mapping) -> Iterable[Line]:
    """A run that is killed again and again."""
    weights = "the same weights" if content["same_weights"] else "other weights"
    text = "a run killed at any moment and resumed, against one left alone"
    yield Line(SINGLE, text, f"{weights} after {content['kills']} kills")


SINGLE_RUNS: Mapping[str, Callable[[Mapping], Iterable[Line]]] = {
    function.__name__: function
    for function in (
        directions,
        squad_real,
        first_pair_answers,
        answer_errors,
        squad_negatives,
        shipped_losses,
        twins,
        copied_names,
        first_pair_copying,
        copying_and_answers,
        speed_steps,
        speed_attention,
        speed_masking,
        freed_memory,
        memory,
        growth,
        kills,
    )
}
