"""All findings of the book, from its files of results. Page: `book/workshop/what_we_found`, which `tools/findings.py`
writes.

`FOUND` holds the reports by the part of the book; a report without a file is left out, so a new file brings its own
section. `NO_FINDING` names the files that hold no finding, and says why.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.experiments import (
    findings_bert,
    findings_engine,
    findings_relatives,
    findings_spanbert,
    findings_tasks,
)
from spanbert_tutorial.experiments.findings import NULL, SHOWN, SINGLE, Line, Report

FOUND = {
    "Part I: BERT": findings_bert.REPORTS,
    "Part II: SpanBERT": findings_spanbert.REPORTS,
    "Part III: Tasks": findings_tasks.REPORTS,
    "Part IV: Relatives": findings_relatives.REPORTS,
    "Engine and shipped models": findings_engine.REPORTS,
}
NO_FINDING = {
    "model_in_the_page": "how fast the models run in a browser, and how often they guess there what PyTorch guesses: a "
    "check of the page “Try it”",
    "fuzz": "how many hostile inputs were tried at each way into the project",
    "spans_pilot": "which learning rate each arm of `spans_and_boundaries` gets, chosen on two seeds of their own",
    "live_run": "the recorded run that a chapter repeats",
    "roberta_real": "how two vocabularies cut, and how full inputs are: counts, and nothing that could have come out "
    "otherwise",
}  # fmt: skip
# In words: a sentence, the report and the line that it stands on. A line that is not there any more is an error.
HEADLINES = (
    ("From common starts past the plateau, span masking ranks more of those hidden names first that must be inferred, "
     "as was expected.",
     "spans_and_boundaries", "span better than token: hidden names that must be inferred, ranked first, as expected"),
    ("From the same starts, after 4,500 steps, the tokens outside a hidden name tell its kind better with SBO than "
     "with a placebo.",
     "spans_and_boundaries", "span+sbo better than placebo: kind of a hidden name, read from the states outside"),
    ("That SBO makes such tokens tell better than a placebo whom a word means is not shown.", "spans_and_boundaries",
     "span+sbo against placebo: a word and a name mean the same, AUC of a probe on the states outside "
     "(expected: span+sbo better)"),
    ("That spans with SBO answer questions better than tokens do is not shown.",
     "spans_and_boundaries",
     "span+sbo against token: 2,000 questions on the almanac, F1, an answer forced (expected: span+sbo better)"),
    ("From scratch, span masking is behind token masking at the end of a small budget, even where spans are hidden.",
     "token_vs_span", "token masking better than span masking: held-out loss, tokens hidden in spans"),
    ("From scratch, SBO brings span masking out of the plateau earlier.",
     "token_vs_span", "span masking with SBO better than span masking: held-out loss, tokens hidden in spans"),
    ("From other starts, after 500 steps, the tokens outside a hidden name tell its kind a little better with SBO than "
     "with spans alone.", "boundary_probe",
     "span masking with SBO better than span masking alone: kind of a hidden name, read from the two states outside "
     "the span"),
    ("For those inside, where tasks look, no gain is shown.", "boundary_probe",
     "span masking with SBO against span masking alone: kind of a hidden name, read from the two states inside it"),
    ("From a common start that has left the plateau, a small model pays for SBO with a higher loss of its token head.",
     "boundary_probe",
     "span masking alone better than span masking with SBO: loss of the token head in the last 100 steps"),
    ("With the NSP loss the masked-token loss is higher at the end of a small budget; no task was measured.",
     "pairs_vs_single",
     "pairs better than pairs + NSP: held-out loss, measured on one segment"),
    ("Whether reading pairs costs anything is not shown.", "pairs_vs_single",
     "one segment against pairs: held-out loss, measured on one segment"),
    ("A mask that never changes is learned by heart.", "roberta_masks",
     "dynamic masks better than static masks: loss on new masks, blocks held out"),
    ("Pre-training brings spanbert-mini much on SQuAD 1.1.", "squad_real",
     "spanbert-mini better than new weights: SQuAD 1.1, F1"),
    ("What it brings bert-mini there, three seeds do not tell: one run lies apart.", "squad_real",
     "bert-mini against new weights: SQuAD 1.1, F1"),
    ("Which of the twins is better at it, three seeds do not tell.", "squad_real",
     "spanbert-mini against bert-mini: SQuAD 1.1, F1"),
    ("In coreference (with singletons) and relations on real text pre-training brings both twins much.", "span_tasks",
     "spanbert-mini better than new weights: LitBank, average F1, as expected"),
    ("Which of the twins is better at them, three seeds do not tell.", "span_tasks",
     "spanbert-mini against bert-mini: LitBank, average F1 (expected: spanbert-mini better)"),
    ("On STS-B, pairs of sentences, bert-mini is ahead of spanbert-mini; why was not tested.", "span_tasks",
     "bert-mini better than spanbert-mini: STS-B, Pearson correlation × 100, against what was expected"),
    ("Counting shared words is ahead of both there.", "span_tasks",
     "the control “overlap” better than bert-mini: STS-B, Pearson correlation × 100"),
    ("In seven of nine comparisons the state of [CLS] tells less of a sentence than the mean of all states; for "
     "example, the kind of the first name with spanbert-mini.", "sentence_states",
     "[CLS] of spanbert-mini − the mean of its states: kind of its first name"),
    ("At this size ELECTRA is behind masked language modelling when both start from scratch; the settings were chosen "
     "for the masked model.", "electra_mini",
     "masked language modelling from scratch better than ELECTRA from scratch: tags, fine-tuned"),
)  # fmt: skip


class Section(NamedTuple):
    """A report with the content of its file."""

    part: str
    report: Report
    content: Mapping

    @property
    def lines(self) -> list[Line]:
        """Its findings."""
        return self.report.lines(self.content)

    @property
    def seeds(self) -> int:
        """How many seeds the file has; 0 where nothing is repeated."""
        return len({row.get("seed", row.get("run", {}).get("seed")) for row in self.content.get("rows", [])})


def sections(folder: Path | None = None) -> Iterator[Section]:
    """The reports whose file is there, in the order of the book. folder: of the files, if not the project's own."""
    for part, reports in FOUND.items():
        for report in reports:
            file = (folder or data_path("results")) / f"{report.name}.json"
            if file.is_file():
                yield Section(part, report, json.loads(file.read_text(encoding="utf-8")))


def headlines(found: list[Section]) -> list[tuple[str, Line]]:
    """Each sentence with the line that it stands on. Raises InputError for a line that is not there: then the sentence
    does not hold any more."""
    lines = {(section.report.name, line.text): line for section in found for line in section.lines}
    for sentence, *place in HEADLINES:
        if tuple(place) not in lines:
            raise InputError(f"the files do not say “{place[1]}” any more: look at “{sentence}” again.")
    return [(sentence, lines[name, text]) for sentence, name, text in HEADLINES]


def counts(found: list[Section]) -> dict[str, int]:
    """How many findings there are of each verdict."""
    verdicts = [line.verdict for section in found for line in section.lines]
    return {verdict: verdicts.count(verdict) for verdict in (SHOWN, NULL, SINGLE)}
