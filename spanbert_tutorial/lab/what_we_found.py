"""All findings of the book, from its files of results. Page: `book/workshop/what_we_found`, which
`tools/findings.py` writes.

`FOUND` holds the reports by the part of the book; a report without a file is left out, so a new
file brings its own section. `NO_FINDING` names the files that hold no finding, and says why.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.lab import (
    findings_bert,
    findings_engine,
    findings_relatives,
    findings_spanbert,
    findings_tasks,
)
from spanbert_tutorial.lab.findings import NULL, SHOWN, SINGLE, Line, Report

FOUND = {
    "Part I: BERT": findings_bert.REPORTS,
    "Part II: SpanBERT": findings_spanbert.REPORTS,
    "Part III: Tasks": findings_tasks.REPORTS,
    "Part IV: Relatives": findings_relatives.REPORTS,
    "Engine and shipped models": findings_engine.REPORTS,
}
NO_FINDING = {
    "model_in_the_page": "how fast the models run in a browser, and how often they guess there "
    "what PyTorch guesses: a "
    "check of the page “Try it”",
    "fuzz": "how many hostile inputs were tried at each way into the project",
    "spans_pilot": "which learning rate each arm of `spans_and_boundaries` gets, chosen on two "
    "seeds of their own",
    "live_run": "the recorded run that a chapter repeats",
    "roberta_real": "how two vocabularies cut, and how full inputs are: counts, and nothing that "
    "could have come out "
    "otherwise",
}
INFERRED = "hidden names that must be inferred, ranked first"
HIDDEN = "held-out loss, tokens hidden"
PROBE = "kind of a hidden name, read from the"
GIVEN = "a hidden name given back"
# In words: a sentence, the report and the line that it stands on. A line that is not there any more
# is an error.
HEADLINES = {
    "What spans do": (
        (
            "Going on from a common start past the plateau, models with span masking rank more "
            "of those hidden names "
            "first that must be inferred, as was expected.",
            "spans_and_boundaries",
            f"span better than token: {INFERRED}, as expected",
        ),
        (
            "Where spans are hidden, their loss is lower than that of models with token masking.",
            "spans_and_boundaries",
            f"span better than token: {HIDDEN} in spans",
        ),
        (
            "Where tokens are hidden one by one, it is higher.",
            "spans_and_boundaries",
            f"token better than span: {HIDDEN} one by one",
        ),
        (
            "With spans, the states beside a hidden name tell its kind better than with tokens.",
            "spans_and_boundaries",
            f"span better than token: {PROBE} states outside",
        ),
        (
            "Models trained with whole names hidden rank more of those names first than models "
            "with spans, in a test that "
            "hides names in the same way.",
            "ways_of_hiding",
            f"entities better than span: {INFERRED}, as expected",
        ),
        (
            "On Wikipedia `spanbert-mini` gives back a name that stands in the block again more "
            "often than `bert-mini`, "
            "where the whole name is hidden.",
            "copied_names",
            f"spanbert-mini better than bert-mini: {GIVEN}, all its pieces, it stands in the "
            f"block again",
        ),
        (
            "Where only its last piece is hidden, `bert-mini` gives it back far more often.",
            "copied_names",
            f"bert-mini better than spanbert-mini: {GIVEN}, its last piece, it stands in the "
            f"block again",
        ),
        (
            "A rule that copies from the block, and knows nothing, is far ahead of both where "
            "the whole name is hidden.",
            "copied_names",
            f"{GIVEN} by bert-mini, spanbert-mini and a rule, all its pieces, it stands in the "
            f"block again",
        ),
        (
            "On Wikipedia, from one start, it is not shown that models with spans rank more of "
            "the names first that must "
            "be inferred.",
            "spans_on_wikipedia",
            f"span against token: {INFERRED} (expected: span better)",
        ),
        (
            "From scratch and with a small budget they are behind, even where spans are hidden.",
            "token_vs_span",
            f"token masking better than span masking: {HIDDEN} in spans",
        ),
        (
            "That models with spans and SBO answer questions better than models with token "
            "masking is not shown.",
            "spans_and_boundaries",
            "span+sbo against token: 2,000 questions on the almanac, F1, an answer forced "
            "(expected: span+sbo better)",
        ),
    ),
    "What the span boundary objective (SBO) does": (
        (
            "After 4,500 steps past the plateau, the states beside a hidden name tell its kind "
            "(a town, a person, …) "
            "better with SBO than with spans alone.",
            "spans_and_boundaries",
            f"span+sbo better than span: {PROBE} states outside",
        ),
        (
            "They tell it better with SBO than with a placebo, too.",
            "spans_and_boundaries",
            f"span+sbo better than placebo: {PROBE} states outside",
        ),
        (
            "From other starts, after 500 steps, they tell it better with SBO than with spans "
            "alone.",
            "boundary_probe",
            f"span masking with SBO better than span masking alone: {PROBE} two states outside "
            f"the span",
        ),
        (
            "For the states inside the name, which tasks read, no gain is shown after these 500 "
            "steps.",
            "boundary_probe",
            f"span masking with SBO against span masking alone: {PROBE} two states inside it",
        ),
        (
            "That the states beside a word tell better with SBO than with a placebo whom the "
            "word means is not shown.",
            "spans_and_boundaries",
            "span+sbo against placebo: a word and a name mean the same, AUC of a probe on the "
            "states outside "
            "(expected: span+sbo better)",
        ),
        (
            "On Wikipedia, three seeds from one start, models with SBO are a little ahead of "
            "models with spans alone in "
            "coreference; this was not foretold.",
            "spans_on_wikipedia",
            "span+sbo better than span: LitBank, average F1",
        ),
        (
            "That they are ahead of models with token masking there, as was expected, is not "
            "shown.",
            "spans_on_wikipedia",
            "span+sbo against token: LitBank, average F1 (expected: span+sbo better)",
        ),
        (
            "From scratch, SBO brings span masking out of the plateau earlier; at the end its "
            "loss is lower.",
            "token_vs_span",
            f"span masking with SBO better than span masking: {HIDDEN} in spans",
        ),
        (
            "After 500 steps past the plateau a tiny model with SBO has a higher training loss "
            "of its token head.",
            "boundary_probe",
            "span masking alone better than span masking with SBO: loss of the token head in the "
            "last 100 steps",
        ),
        (
            "After 4,500 steps its loss on tokens hidden one by one is higher than with spans "
            "alone.",
            "spans_and_boundaries",
            f"span better than span+sbo: {HIDDEN} one by one",
        ),
        (
            "With three times the weight on SBO it is higher again, as was expected (after 1,000 "
            "steps).",
            "span_settings",
            f"span+sbo better than SBO × 3: {HIDDEN} one by one, as expected",
        ),
    ),
    "What one sequence does, and masks": (
        (
            "With the NSP loss the masked-token loss is higher at the end of a small budget; no "
            "task was measured.",
            "pairs_vs_single",
            "pairs better than pairs + NSP: held-out loss, measured on one segment",
        ),
        (
            "That one segment is better than pairs without NSP is not shown.",
            "pairs_vs_single",
            "one segment against pairs: held-out loss, measured on one segment",
        ),
        (
            "A mask that never changes is learned by heart.",
            "roberta_masks",
            "dynamic masks better than static masks: loss on new masks, blocks held out",
        ),
    ),
    "What pre-training brings to tasks": (
        (
            "On SQuAD 1.1 `bert-mini` is ahead of `spanbert-mini`; the paper's models have the "
            "other order.",
            "squad_real",
            "bert-mini better than spanbert-mini: SQuAD 1.1, F1",
        ),
        (
            "Both are far ahead there of a program that counts words, which new weights are not.",
            "squad_real",
            "SQuAD 1.1, F1: the weakest run of the twins, the better of two programs that count "
            "words, new weights (one "
            "run)",
        ),
        (
            "On SQuAD 2.0 all runs are near a system that never answers.",
            "squad_real",
            "SQuAD 2.0, F1: the weakest and the best run of the twins, never answering, new "
            "weights (one run)",
        ),
        (
            "`spanbert-mini` answers better when half of a small budget goes into made "
            "questions, before the real ones.",
            "made_first",
            "made questions first better than real questions only: SQuAD 1.1, F1",
        ),
        (
            "In coreference on novels pre-training brings `spanbert-mini` much where mentions "
            "without a partner count.",
            "span_tasks",
            "spanbert-mini better than new weights: LitBank, average F1, as expected",
        ),
        (
            "Where mentions without a partner do not count, it brings about half as much.",
            "span_tasks",
            "spanbert-mini better than new weights: LitBank without singletons, average F1, as "
            "expected",
        ),
        (
            "In relations pre-training brings `spanbert-mini` much.",
            "span_tasks",
            "spanbert-mini better than new weights: SemEval-2010 task 8, macro F1, as expected",
        ),
        (
            "There `spanbert-mini` is a little better than `bert-mini`. But corrected together "
            "with the eight other "
            "measures of this experiment, no difference between the two is shown.",
            "span_tasks",
            "spanbert-mini better than bert-mini: SemEval-2010 task 8, macro F1, as expected",
        ),
        (
            "Which of the two is better in coreference on novels, three seeds do not tell.",
            "span_tasks",
            "spanbert-mini against bert-mini: LitBank, average F1 (expected: spanbert-mini better)",
        ),
        (
            "On GAP, a pronoun and two names, `spanbert-mini` is ahead of `bert-mini`.",
            "span_tasks",
            "spanbert-mini better than bert-mini: GAP, F1",
        ),
        (
            "There a program that counts names is far ahead of both; here, of `spanbert-mini`.",
            "span_tasks",
            "the control “most often” better than spanbert-mini: GAP, F1",
        ),
        (
            "On the mean of five sentence tasks `bert-mini` is ahead of `spanbert-mini`; STS-B "
            "brings all of it.",
            "span_tasks",
            "bert-mini better than spanbert-mini: five sentence tasks, mean of their figures",
        ),
        (
            "On STS-B, pairs of sentences, `bert-mini` is ahead of `spanbert-mini`; why was not "
            "tested.",
            "span_tasks",
            "bert-mini better than spanbert-mini: STS-B, Pearson correlation × 100, against what "
            "was expected",
        ),
        (
            "There a program that counts shared words is ahead of `bert-mini`, too.",
            "span_tasks",
            "the control “overlap” better than bert-mini: STS-B, Pearson correlation × 100",
        ),
        (
            "In seven of nine comparisons the state of [CLS] tells less of a sentence than the "
            "mean of all states; for "
            "example, of `spanbert-mini`, the kind of the first name.",
            "sentence_states",
            "the mean of its states better than [CLS] of spanbert-mini: kind of its first name",
        ),
    ),
    "Relatives": (
        (
            "At this size ELECTRA is behind masked language modeling when both start from "
            "scratch; the settings were "
            "chosen for the masked model.",
            "electra_mini",
            "masked language modeling from scratch better than ELECTRA from scratch: tags, "
            "fine-tuned",
        ),
    ),
}


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
        return len(
            {
                row.get("seed", row.get("run", {}).get("seed"))
                for row in self.content.get("rows", [])
            }
        )


def sections(folder: Path | None = None) -> Iterator[Section]:
    """The reports whose file is there, in the order of the book. folder: of the files, if not the
    project's own."""
    for part, reports in FOUND.items():
        for report in reports:
            file = (folder or data_path("results")) / f"{report.name}.json"
            if file.is_file():
                yield Section(part, report, json.loads(file.read_text(encoding="utf-8")))


def headlines(found: list[Section]) -> dict[str, list[tuple[str, Line]]]:
    """Group → each sentence with the line that it stands on. Raises InputError for a line that is
    not there: then the sentence does not hold any more."""
    lines = {(section.report.name, line.text): line for section in found for line in section.lines}
    for sentence, *place in chain(*HEADLINES.values()):
        if tuple(place) not in lines:
            raise InputError(
                f"the files do not say “{place[1]}” any more: look at “{sentence}” again."
            )
    return {
        group: [(sentence, lines[name, text]) for sentence, name, text in told]
        for group, told in HEADLINES.items()
    }


def counts(found: list[Section]) -> dict[str, int]:
    """How many findings there are of each verdict."""
    verdicts = [line.verdict for section in found for line in section.lines]
    return {verdict: verdicts.count(verdict) for verdict in (SHOWN, NULL, SINGLE)}
