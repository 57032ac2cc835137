"""The four arms of `spans_and_boundaries` on real text, from one start. Chapter:
`book/evidence/spans_and_boundaries`.

All arms of all seeds go on from one model of Wikipedia, token-masked and well past the plateau
(`--start`: `mini- start`, whose commands are in the cards of the twins). So a seed draws the order
of the blocks and the masks, and not the first weights: an interval says less than one over five
starts. Nobody has labeled the names of Wikipedia. A name is here a run of words with a capital
that does not begin a sentence, and two names with the same last word are taken for one thing. Whom
a pronoun means is known in GAP.

What decides each claim, and the sign that was expected, stood here before the first run: `CLAIMS`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from research import placebo  # noqa: F401, the row span+placebo
from research.experiments import spans_and_boundaries as core
from research.experiments.boundary_probe import go_on
from research.experiments.spans_and_boundaries import kept_or_trained
from research.grid import CURVES, as_json, fingerprint, rounded, text_facts
from research.measurements import gap, name_ranks, pair_probe, span_tasks_coreference
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.baselines import unigram_baselines
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text, parts
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.presets import RUNS, Run
from spanbert_tutorial.spanbert.name_ranks import Gap, Known, known_names
from spanbert_tutorial.spanbert.name_ranks import asked as asked_gaps
from spanbert_tutorial.spanbert.names import named_blocks
from spanbert_tutorial.text.corpora import documents
from spanbert_tutorial.text.encoding import encode_corpus
from spanbert_tutorial.text.sentences import Document

NAME = re.compile(r"(?<![\w'’.-])[A-Z][a-z]+(?: [A-Z][a-z]+)*(?![\w-]| [A-Z])")
BEFORE = re.compile(r"[a-z,;] ")  # a name that does not begin a sentence
BATCHES = 100  # of unseen text, for the losses
SEEDS = 3
ARMS = {"token": "mlm", "span": "span", "span+sbo": "span+sbo", "placebo": "span+placebo"}
RUN = replace(RUNS["mini"], steps=1_500, max_length=128, batch_size=32, peak_learning_rate=3e-4)
CLAIMS = {
    "spans": "names that must be inferred, true name ranked first, %: span above token",
    "boundary": "pronoun and name in GAP, AUC of a probe on the tokens right outside: span+sbo "
    "above placebo",
    "use": "LitBank, average F1: span+sbo above token",
}
SETTINGS = {
    "run": RUN,
    "named_in": 3_000,  # training documents whose names are candidates
    "times": 10,  # that a name must stand in them
    "asked": 60,  # documents whose names are hidden
    "batches": BATCHES,
    "claims": CLAIMS,
    **CURVES,
    "coreference": span_tasks_coreference.SETTINGS,
}


class Asked(NamedTuple):
    """What every model is measured on. start: the folder of the model that all arms go on from."""

    text: EncodedText
    start: Path
    known: Known
    gaps: list[Gap]
    pairs: tuple[pair_probe.Pairs, pair_probe.Pairs]
    books: dict[str, list]


def prepare(
    folder: Path,
    settings: Mapping,
    corpus: Path,
    valid: Path,
    start: Path,
    data: Path,
    models: Path,
) -> tuple[dict, tuple]:
    """Text to train on, another file to measure on, and what is asked. data: a folder with litbank/
    and gap/."""
    text = open_wikipedia(folder, corpus, valid, start)
    train = islice(parts(corpus.as_posix(), False, left_out()), settings["named_in"])
    asked = questions(text, start, (train, documents(valid)), data, settings)
    counts = {"gaps": len(asked.gaps), "pairs": [len(some.same) for some in asked.pairs]}
    facts = {"begun_from": begun_from(start), "asked_of_each": counts}
    return text_facts(text) | facts, (asked, models)


def open_wikipedia(folder: Path, corpus: Path, valid: Path, start: Path) -> EncodedText:
    """A corpus in the vocabulary of `start`, without the titles of SQuAD's development set, and
    another one to measure on."""
    text = open_text(corpus.as_posix(), folder / "corpus", start, leave_out=left_out())
    encode = text.wordpiece.encode_many, len(text.wordpiece)
    return replace(text, held_out=encode_corpus(documents(valid), *encode, folder / "valid"))


def left_out() -> set[str]:
    """The titles of SQuAD's development set."""
    return set(data_path("squad_dev_titles.txt").read_text(encoding="utf-8").splitlines())


def begun_from(start: Path) -> str:
    """Twelve digits of the weights in a folder."""
    return fingerprint((start / "model.safetensors").read_bytes())


def questions(
    text: EncodedText,
    start: Path,
    parts: tuple[Iterable[Document], Iterable[Document]],
    data: Path,
    settings: Mapping,
) -> Asked:
    """Names of several tokens in unseen documents to rank among those of training documents;
    pronouns and names; books. parts: documents of both kinds."""
    room, wordpiece, (train, valid) = settings["run"].max_length - 2, text.wordpiece, parts
    known = known_names(often(list(map(with_names, train)), settings["times"]), wordpiece)
    unseen = map(with_names, islice(valid, settings["asked"]))
    # a long sentence is a block of its own
    gaps = [
        one
        for one in asked_gaps(named_blocks(unseen, wordpiece, room), known)
        if len(one.tokens) > 1 and len(one.block.ids) <= room
    ]

    def pairs(part: str) -> pair_probe.Pairs:
        rows = gap.read(data / "gap" / f"{part}.tsv.xz")
        return pair_probe.pairs(map(as_clusters, rows), wordpiece, room)

    pronouns = (pairs("development"), pairs("validation"))
    return Asked(text, start, known, gaps, pronouns, span_tasks_coreference.parts(data))


def with_names(document: Document) -> dict:
    """A document as those of the almanac are: its text, and `entities`, each with its last word as
    what it names."""
    text = " ".join(document)
    found = [
        (match.start(), match.end(), "NAME", match[0].split()[-1])
        for match in NAME.finditer(text)
        if BEFORE.fullmatch(text, max(0, match.start() - 2), match.start())
    ]
    return {"text": text, "entities": found}


def often(some: list[dict], times: int) -> Iterator[dict]:
    """The documents with those names only that stand `times` times in all of them."""
    counts = Counter(one["text"][start:end] for one in some for start, end, *_ in one["entities"])
    for one in some:
        yield one | {
            "entities": [
                name for name in one["entities"] if counts[one["text"][name[0] : name[1]]] >= times
            ]
        }


def as_clusters(row: gap.Row) -> dict:
    """A row of GAP as a document of the almanac's coreference: two names, one of them perhaps with
    the pronoun."""
    (said, at), places = row.pronoun, [(start, start + len(name)) for name, start in row.names]
    pronoun = at, at + len(said)
    clusters = [
        [place, pronoun] if right else [place]
        for place, right in zip(places, row.right, strict=True)
    ]
    names = [[*place, "PERSON", letter] for place, letter in zip(places, "AB", strict=True)]
    return {"text": row.text, "entities": names, "clusters": clusters}


def beside(settings: Mapping, asked: Asked, models: Path) -> dict:
    """What reads no state, and the start."""
    tables = unigram_baselines(runs.training_data(settings["run"], asked.text))
    ranks = name_ranks.control_ranks(asked.gaps, asked.known, tables)
    names = {name: name_ranks.figures(asked.gaps, one) for name, one in ranks.items()}
    controls = {"names": names, "pairs": pair_probe.area(asked.pairs[1], asked.pairs[1].near)}
    return rounded(
        {
            "controls": controls,
            "start": measured(load_checkpoint(asked.start)[0], settings["run"], asked),
        }
    )


def one(arm: str, seed: int, settings: Mapping, asked: Asked, models: Path) -> dict:
    """A model, trained or kept, and all figures of it."""
    run = replace(settings["run"], objective=ARMS[arm], seed=seed)
    facts = as_json({"run": run, "begun_from": begun_from(asked.start), **text_facts(asked.text)})
    begun = load_checkpoint(asked.start)[0]
    model, losses = kept_or_trained(
        models / f"{arm}-{seed}",
        facts,
        lambda: go_on(begun, run, asked.text),
        asked.text.wordpiece,
        run.objective,
    )
    found = measured(model, settings["run"], asked)
    # trains it
    used = span_tasks_coreference.measured(model.encoder, asked.text.wordpiece, asked.books, seed)
    return rounded(found | {"coreference": used}) | {"curve": losses}


def measured(model: PretrainingModel, run: Run, asked: Asked) -> dict:
    """Losses under both ways of hiding, names, pairs."""
    wordpiece: WordPiece = asked.text.wordpiece
    ranks = name_ranks.model_ranks(model.eval(), wordpiece, asked.gaps, asked.known)
    return {
        "losses": core.losses(model, run, asked.text, BATCHES),
        "names": name_ranks.figures(asked.gaps, ranks),
        "pairs": pair_probe.scores(model.encoder, *asked.pairs, wordpiece),
    }


place = core.place
