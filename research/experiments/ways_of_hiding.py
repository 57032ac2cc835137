"""The other rows of SpanBERT's Tables 6 and 7, beside the arms of `spans_and_boundaries`. Chapter:
`book/evidence/spans_and_boundaries`.

Four ways of hiding besides tokens and spans: whole words; the almanac's entities; its noun phrases,
which its writer knows; collocations found by counting, which came after the paper (PMI-masking).
And spans in pairs of segments with next sentence prediction. All go on from the starts of
`spans_and_boundaries`, for as many tokens (pairs hold more, so they take fewer steps), at the rate
that was chosen for the arms there, and with the same seeds. So a row stands beside those of "token"
and "span" in the file of that experiment (give the same `--models`).

What decides each claim, and the sign that was expected, stood here before the first run: `CLAIMS`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from research.almanac.documents import Document, generate
from research.experiments import spans_and_boundaries as core
from research.experiments.boundary_probe import go_on
from research.grid import CURVES, as_json, rounded, text_facts
from research.measurements import span_uses
from research.measurements.names import named_sentences
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.masking import MaskingScheme
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.spanbert import collocations
from spanbert_tutorial.spanbert.labeled_masking import (
    COLLOCATION,
    ENTITY,
    NOUN_PHRASE,
    LabeledMasking,
)
from spanbert_tutorial.text.encoding import EncodedCorpus

COLLOCATIONS = 2_000  # how many are hidden as one
DRAWN = 200  # batches, to see how many tokens a step reads
# right before a mention
DETERMINER = re.compile(r"\b(?:the|an?|his|her|its|their) $", re.IGNORECASE)
SEEDS = core.SEEDS


@dataclass(frozen=True)
class Way:
    """objective: a row of the table of objectives; masking: a scheme in the place of that row's
    own."""

    objective: str
    masking: MaskingScheme | None = None

    def row(self) -> Objective:
        """What a run predicts."""
        found = Objective.named(self.objective)
        return replace(found, masking=self.masking or found.masking)


ARMS = {
    "words": Way("mlm-wholeword"),
    "entities": Way("span", LabeledMasking(kind=ENTITY)),
    "noun phrases": Way("span", LabeledMasking(kind=NOUN_PHRASE)),
    "collocations": Way("span", LabeledMasking(kind=COLLOCATION, share=None)),
    "pairs": Way("span+nsp"),
}
CLAIMS = {
    "names": "names that must be inferred, true name ranked first, %: entities above span, which "
    "hides them less often",
    "use": "F1 after fine-tuning on 2,000 questions, an answer forced: span above each of the "
    "others",
}
SETTINGS = {
    "vocabulary": core.VOCABULARY,
    "start": core.START,
    "go_on": core.GO_ON,
    "collocations": COLLOCATIONS,
    "claims": CLAIMS,
    **CURVES,
    "fit_documents": core.FIT_DOCUMENTS,
    "uses": span_uses.SETTINGS,
}


def prepare(folder: Path, settings: Mapping, models: Path) -> tuple[dict, tuple]:
    """The almanac in a small vocabulary with its labeled spans, and what is asked of the
    models."""
    text = core.small_tokens(folder, settings["vocabulary"])
    asked = core.questions(text, settings["start"].max_length - 2, settings["fit_documents"])
    spans = labeled_spans(text, settings["collocations"])
    labeled = np.concatenate(list(spans.values()))
    labeled = labeled[np.lexsort((labeled[:, 1], labeled[:, 0]))]
    shares = {
        kind: round(float(np.diff(some[:, :2]).sum() / len(text.train.ids)), 4)
        for kind, some in spans.items()
    }
    with_spans = replace(text, train=replace(text.train, labeled=labeled))
    return text_facts(text) | {"share_of_tokens": shares}, (asked, with_spans, models)


# --- labeled spans -----------------------------------------------------------------


def labeled_spans(text: EncodedText, number: int) -> dict[str, np.ndarray]:
    """Where entities, noun phrases and the `number` best collocations stand in the training text,
    int [m,3] each."""
    corpus = text.train
    wordpiece = text.wordpiece
    counts = collocations.counted(
        words for _, _, words in collocations.sentences(corpus, wordpiece)
    )
    written = (record(one) for one in generate() if one.split == "train")
    return {
        "entities": placed(almanac.read("train"), corpus, wordpiece, ENTITY),
        "noun phrases": placed(written, corpus, wordpiece, NOUN_PHRASE),
        "collocations": collocations.labeled(
            corpus, wordpiece, collocations.collocations(counts, number)
        ),
    }


def placed(
    documents: Iterable[dict], corpus: EncodedCorpus, wordpiece: WordPiece, kind: int
) -> np.ndarray:
    """Where the entities of documents stand in the corpus that was encoded from them, int [m,3]."""
    found = []
    start = 0
    ends = iter(corpus.sentence_ends.tolist())
    for sentence, names in (
        one for document in documents for one in named_sentences(document, wordpiece)
    ):
        found += [(start + name.first, start + name.last + 1, kind) for name in names]
        start += len(sentence)
        assert start == next(ends)  # the same sentences, in the same order
    return np.array(found, dtype=np.int64)


def record(document: Document) -> dict:
    """A document with its noun phrases in the place of its entities: names, descriptions and
    values, each with the article or the possessive before it. Pronouns are left out."""
    return {"text": document.text, "entities": list(noun_phrases(document))}


def noun_phrases(document: Document) -> Iterator[tuple[int, int, str, str]]:
    """As `almanac.read` gives entities: (start, end) in characters of the text, label, id."""
    offset = 0
    for sentence in document.sentences:
        for mention in sentence.mentions:
            if mention.form != "pronoun":
                before = DETERMINER.search(sentence.text[: mention.start])
                start = before.start() if before else mention.start
                yield start + offset, mention.end + offset, mention.form, mention.entity
        offset += len(sentence.text) + 1


# --- runs ---------------------------------------------------------------------------


def equal_steps(run: Run, text: EncodedText) -> int:
    """In how many steps a run reads as many tokens as one on single blocks does in `run.steps`."""

    def tokens(objective: str) -> float:
        batches = runs.training_data(replace(run, objective=objective), text).batches(
            np.random.default_rng(0)
        )
        return sum(int(batch["attention_mask"].sum()) for batch in islice(batches, DRAWN))

    if "nsp" not in run.objective:
        return run.steps
    return round(run.steps * tokens("span") / tokens(run.objective))


def one(
    arm: str, seed: int, settings: Mapping, asked: core.Asked, labeled: EncodedText, models: Path
) -> dict:
    """A model, trained or kept, and all figures of it."""
    way = ARMS[arm]
    run = replace(settings["go_on"], objective=way.objective, seed=seed)
    run = replace(run, steps=equal_steps(run, asked.text))
    facts = as_json({"run": run, "way": way, **text_facts(asked.text)})
    begun, _ = core.trained("start", seed, settings, asked.text, models)
    model, losses = core.kept_or_trained(
        models / f"{arm}-{seed}",
        facts,
        lambda: go_on(begun, run, labeled, way.row()),
        labeled.wordpiece,
        way.objective,
    )
    found = core.measured(model, settings["start"], asked)
    uses = span_uses.measured(model.encoder, asked.text.wordpiece, asked.uses, seed)
    return rounded(found | {"uses": uses}) | {"curve": losses}
