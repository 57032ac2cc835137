"""What hiding spans, and predicting them from their boundaries, is good for. Chapters:
`book/evidence/spans_and_boundaries`, `book/spanbert/name_ranks`, `book/spanbert/boundary`.

Each seed trains one tiny model with token masking, well past the plateau. From there four models go
on, for the same number of tokens: hidden tokens, hidden spans, spans with the span boundary
objective (SBO), and a placebo, SBO rows that read the neighbors of another span. The text is the
almanac in a small vocabulary, so that a name has several tokens; that makes names longer in tokens,
and single tokens less telling, than in a vocabulary of 30,000.

What is asked, the figure that decides each claim, and the sign that was expected stood here before
the first run: `CLAIMS`. Trained models are kept in `--models`, so that another figure can be
measured without training again.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from research import placebo  # noqa: F401, the row span+placebo
from research.experiments import boundary_probe
from research.experiments.boundary_probe import Trained, go_on
from research.grid import CURVES, as_json, curve, rounded, text_facts
from research.measurements import name_ranks, pair_probe, span_uses
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.baselines import unigram_baselines
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint, save_checkpoint
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.spanbert.boundary_probe import MaskedNames, mask_names
from spanbert_tutorial.spanbert.name_ranks import Gap, Known, known_names
from spanbert_tutorial.spanbert.name_ranks import asked as asked_gaps
from spanbert_tutorial.spanbert.names import named_blocks
from spanbert_tutorial.text.sentences import split_sentences

VOCABULARY = 800  # tokens
FACTS = "run.json"  # beside a kept model
FIT_DOCUMENTS = 1_000  # for the probes
# to measure how long a step takes
ROUNDS = 7
SEEDS = 5
ARMS = {
    "start": "mlm",
    "token": "mlm",
    "span": "span",
    "span+sbo": "span+sbo",
    "placebo": "span+placebo",
}
START = Run(objective="mlm", steps=2_500, max_length=128)
GO_ON = replace(START, steps=4_500)  # a pilot chose the rate for every arm
CLAIMS = {
    "spans": "names that must be inferred, true name ranked first, %: span above token",
    "boundary": "pairs of a word and a name, AUC of a probe on the tokens right outside: "
    "span+sbo above placebo",
    "use": "F1 after fine-tuning on 2,000 questions, an answer forced: span+sbo above token",
}
SETTINGS = {
    "vocabulary": VOCABULARY,
    "start": START,
    "go_on": GO_ON,
    "claims": CLAIMS,
    **CURVES,
    "fit_documents": FIT_DOCUMENTS,
    "uses": span_uses.SETTINGS,
}


class Asked(NamedTuple):
    """What every model is measured on."""

    text: EncodedText
    known: Known
    gaps: list[Gap]
    pairs: tuple[pair_probe.Pairs, pair_probe.Pairs]
    kinds: tuple[MaskedNames, MaskedNames]
    uses: span_uses.Uses


def prepare(folder: Path, settings: Mapping, models: Path) -> tuple[dict, tuple]:
    """The almanac in a small vocabulary, and what is asked of the models."""
    text = small_tokens(folder, settings["vocabulary"])
    asked = questions(text, settings["start"].max_length - 2, settings["fit_documents"])
    counts = {
        "gaps": len(asked.gaps),
        "pairs": [len(some.same) for some in asked.pairs],
        "kinds": [len(some.spans) for some in asked.kinds],
    }
    return text_facts(text) | {"asked": counts}, (asked, models)


def small_tokens(folder: Path, tokens: int) -> EncodedText:
    """The almanac, cut by a vocabulary of so many tokens that is learned from its training part."""
    vocabulary = folder / "vocab.txt"
    sentences = [
        sentence
        for document in almanac.read("train")
        for sentence in split_sentences(document["text"])
    ]
    WordPiece.train(sentences, tokens).save_vocabulary(vocabulary)
    return open_text("almanac", folder, vocabulary)


def names_to_rank(wordpiece: WordPiece, room: int, part: str) -> tuple[Known, list[Gap]]:
    """The names of training text, and hidden ones of another part of the almanac."""
    known = known_names(almanac.read("train"), wordpiece)
    return known, asked_gaps(named_blocks(almanac.read(part), wordpiece, room), known)


def questions(text: EncodedText, room: int, fit: int) -> Asked:
    """Names to rank (test documents), pairs and kinds (some training documents to fit, others to
    test)."""
    wordpiece, (known, gaps) = text.wordpiece, names_to_rank(text.wordpiece, room, "test")
    unseen = [document for part in ("validation", "test") for document in almanac.coreference(part)]
    pairs = (
        pair_probe.pairs(islice(almanac.coreference("train"), fit), wordpiece, room),
        pair_probe.pairs(unseen, wordpiece, room),
    )
    labels = sorted({label for label, _ in known.candidates})

    def hidden(documents: Iterable[dict], seed: int) -> MaskedNames:
        blocks = named_blocks(documents, wordpiece, room)
        return mask_names(blocks, wordpiece, labels, seed)

    kinds = (
        hidden(islice(almanac.read("train"), fit), seed=1),
        hidden(almanac.read("test"), seed=2),
    )
    return Asked(text, known, gaps, pairs, kinds, span_uses.uses())


def beside(settings: Mapping, asked: Asked, models: Path) -> dict:
    """What reads no state."""
    tables = unigram_baselines(runs.training_data(settings["start"], asked.text))
    ranks = name_ranks.control_ranks(asked.gaps, asked.known, tables)
    names = {name: name_ranks.figures(asked.gaps, one) for name, one in ranks.items()}
    controls = {
        "names": names,
        "pairs": pair_probe.area(asked.pairs[1], asked.pairs[1].near),
        "untrained": untrained(settings, asked),
    }
    own = WordPiece.from_file(data_path("almanac", "vocab.txt"))  # what the other chapters use
    gaps = {
        "here": asked.gaps,
        "own vocabulary": names_to_rank(own, settings["start"].max_length - 2, "test")[1],
    }
    tokens = {
        name: float(np.mean([len(gap.tokens) for gap in some])) for name, some in gaps.items()
    }
    return rounded(
        {
            "controls": controls,
            "tokens_of_a_name": tokens,
            "step_cost": step_costs(settings, asked.text),
        }
    )


def untrained(settings: Mapping, asked: Asked) -> dict[str, list[float]]:
    """What the probes read outside, in percent, from encoders that have learned nothing; and how
    often the most frequent kind is right."""
    labels = [part.labels["kind"] for part in asked.kinds]
    found: dict[str, list[float]] = {"pairs": [], "kinds": []}
    for seed in range(SEEDS):
        encoder = runs.new_model(replace(settings["start"], seed=seed), asked.text).eval().encoder
        found["pairs"].append(
            pair_probe.scores(encoder, *asked.pairs, asked.text.wordpiece)["outside"]
        )
        found["kinds"].append(
            100 * boundary_probe.probes(encoder, *asked.kinds)["boundary"]["kind"]
        )
    often = labels[0].bincount().argmax()
    return found | {"most frequent kind": [100 * (labels[1] == often).double().mean().item()]}


def step_costs(settings: Mapping, text: EncodedText) -> dict[str, float]:
    """How long a step of each arm takes, where one of "token" takes 1: medians of rounds that
    measure all arms."""
    seconds: dict[str, list[float]] = {arm: [] for arm in ARMS if arm != "start"}
    for _ in range(ROUNDS):
        for arm, found in seconds.items():
            run = run_of(arm, 0, settings)
            found.append(runs.rehearse(run, text, runs.new_model(run, text))[1])
    return {
        arm: float(np.median(np.divide(found, seconds["token"]))) for arm, found in seconds.items()
    }


# --- training -----------------------------------------------------------------------


def one(arm: str, seed: int, settings: Mapping, asked: Asked, models: Path) -> dict:
    """A model, trained or kept, and all figures of it."""
    model, losses = trained(arm, seed, settings, asked.text, models)
    found = measured(model, settings["start"], asked) | {
        "uses": span_uses.measured(model.encoder, asked.text.wordpiece, asked.uses, seed)
    }
    return rounded(found) | {"curve": losses}


def trained(
    arm: str, seed: int, settings: Mapping, text: EncodedText, models: Path
) -> tuple[PretrainingModel, list[float]]:
    """The model of an arm and its curve, from its folder in `models` if it is there; else it is
    kept there."""
    run = run_of(arm, seed, settings)
    facts = as_json(
        {"run": run, "start": replace(settings["start"], seed=seed), **text_facts(text)}
    )

    def train() -> Trained:
        if arm == "start":
            return runs.pretrain(run, text)
        return go_on(trained("start", seed, settings, text, models)[0], run, text)

    return kept_or_trained(models / f"{arm}-{seed}", facts, train, text.wordpiece, run.objective)


def kept_or_trained(
    folder: Path, facts: dict, train: Callable[[], Trained], wordpiece: WordPiece, objective: str
) -> tuple[PretrainingModel, list[float]]:
    """The model of a folder and its curve; if there is no such folder, it is trained and kept
    there."""
    if folder.exists():
        return load_checkpoint(folder)[0], kept_curve(folder, facts)
    model, history = train()
    losses = curve(history.losses["mlm"])
    more = {"README.md": f"# {folder.name}\n", FACTS: json.dumps({"facts": facts, "curve": losses})}
    save_checkpoint(folder, model.eval(), wordpiece, objective, more)
    return model, losses


def run_of(arm: str, seed: int, settings: Mapping) -> Run:
    """The run of an arm and a seed."""
    run = settings["start" if arm == "start" else "go_on"]
    return replace(run, objective=ARMS[arm], seed=seed)


def kept_curve(folder: Path, facts: Mapping) -> list[float]:
    """The curve of a kept model. Raises InputError for a model of other settings or another
    text."""
    kept = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    told = f"{folder} holds a model of other settings: give another --models, or remove it."
    require(kept["facts"] == facts, told)
    return kept["curve"]


# --- figures ------------------------------------------------------------------------


def measured(model: PretrainingModel, run: Run, asked: Asked) -> dict:
    """Losses under both ways of hiding, names, pairs, kinds."""
    wordpiece = asked.text.wordpiece
    ranks = name_ranks.model_ranks(model.eval(), wordpiece, asked.gaps, asked.known)
    kinds = boundary_probe.probes(model.encoder, *asked.kinds)
    return {
        "losses": losses(model, run, asked.text),
        "names": name_ranks.figures(asked.gaps, ranks),
        "pairs": pair_probe.scores(model.encoder, *asked.pairs, wordpiece),
        "kinds": {place: 100 * found["kind"] for place, found in kinds.items()},
    }


def losses(
    model: PretrainingModel, run: Run, text: EncodedText, batches: int | None = None
) -> dict[str, float]:
    """Of the masked language model head on unseen text, in nats, by kind of mask."""
    found = held_out_metrics(model, replace(run, objective="mlm"), text, batches)
    return {kind: one["mlm"] for kind, one in found.items()}


def place(path: tuple) -> tuple | None:
    """A control is a condition."""
    ranks = path[:2] == ("controls", "names")
    return (f"control: {path[2]}", ("names", *path[3:])) if ranks else None
