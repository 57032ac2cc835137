"""What the experiments of Part III found. Page: `book/workshop/what_we_found`."""

from collections.abc import Mapping

from spanbert_tutorial.lab.experiments.span_tasks import MAIN, STARTS, by_start, mean_of_sentences
from spanbert_tutorial.lab.findings import SINGLE, Comparison, Families, Line, Report, interval_line
from spanbert_tutorial.lab.measurements.span_tasks_sentences import PLANS
from spanbert_tutorial.lab.results import column

A_THIRD_TO_TEST = 0.5  # sentences to test on for each to learn from
EXPECTED = (
    "coreference",
    "clusters",
    "relations",
    "rte",
    "stsb",
)  # where spanbert-mini was expected above bert-mini
TRAINED_AS = {
    "gap": "coreference",
    "clusters": "coreference",
}  # what is asked of a model of another task
TOLD = {
    "coreference": "LitBank, average F1",
    "clusters": "LitBank without singletons, average F1",
    "gap": "GAP, F1",
    "relations": "SemEval-2010 task 8, macro F1",
    "sentences": "five sentence tasks, mean of their figures",
    "sst2": "SST-2, accuracy",
    "cola": "CoLA, Matthews correlation × 100",
    "rte": "RTE, accuracy",
    "mrpc": "MRPC, accuracy",
    "stsb": "STS-B, Pearson correlation × 100",
}


def sentence_states(content: Mapping) -> Families:
    """[CLS] against that of new weights, and against the mean of the states; every seed splits the
    same sentences."""

    def pair(
        name: str, size: str, asked: str, told: str, other: tuple[str, str], second: str
    ) -> Comparison:
        columns = tuple(
            [100 * row[size][who][asked][read] for row in content["rows"]]
            for who, read in ((name, "C"), other)
        )
        return Comparison(f"[CLS] of {name}", second, told, columns, test_to_train=A_THIRD_TO_TEST)

    sizes = {"spanbert-tiny": "tiny", "spanbert-mini": "mini", "bert-mini": "mini"}
    asks = {
        "length": "length of the sentence",
        "kind": "kind of its first name",
        "order": "order of its words",
    }
    every = [(name, size, *ask) for name, size in sizes.items() for ask in asks.items()]
    return [
        [pair(*one, ("new weights", "C"), "that of new weights") for one in every],
        [pair(*one, (one[0], "mean"), "the mean of its states") for one in every],
    ]


def tagging_names(content: Mapping) -> Families:
    """Names that no label has shown."""
    f1 = {who: column(content, "scores", who, "f1") for who in content["rows"][0]["scores"]}
    pairs = (
        ("pre-trained", "list of words"),
        ("pre-trained", "new weights"),
        ("list of words", "new weights"),
    )
    return [
        [
            Comparison(one, other, "F1 on names that no label has shown", (f1[one], f1[other]))
            for one, other in pairs
        ]
    ]


def almanac_answers(content: Mapping) -> Families:
    """Questions on the almanac."""
    measures = {
        "f1": "F1 over all questions",
        "forced": "F1 on answerable questions, an answer forced",
    }
    return [
        [
            Comparison(
                "pre-trained",
                other,
                told,
                tuple(column(content, arm, key) for arm in ("pre-trained", other)),
            )
            for key, told in measures.items()
            for other in ("new weights", "only S and E")
        ]
    ]


def almanac_coreference(content: Mapping) -> Families:
    """Coreference on the almanac, against new weights and a rule."""
    average = {
        start: column(content, "scores", "average", start=start)
        for start in ("pre-trained", "new weights")
    }
    rule = content["rules"]["by rule"]["same last word"]["average"]
    told = "coreference on the almanac, average F1"
    trained = average["pre-trained"]
    return [
        [
            Comparison("pre-trained", "new weights", told, (trained, average["new weights"])),
            Comparison(
                "pre-trained",
                "the rule of equal last words",
                told,
                (trained, [rule] * len(trained)),
            ),
        ]
    ]


def relation_markers(content: Mapping) -> Families:
    """Markings, heads, and what is read."""
    f1 = {
        way: column(content, "f1", way=way)
        for way in dict.fromkeys(row["way"] for row in content["rows"])
    }
    pairs = [
        ("replaced, markers", "replaced, [CLS]"),
        ("around, markers", "around, [CLS]"),
        ("replaced, markers", "around, markers"),
    ]
    words = "words around the names"
    f1[words] = [content["controls"][words]] * len(f1["new weights"])  # a fit without a seed
    pairs += [
        ("around, markers", less) for less in ("new weights", "names alone", "context alone", words)
    ]
    return [
        [
            Comparison(one, other, "relations of the almanac, F1", (f1[one], f1[other]))
            for one, other in pairs
        ]
    ]


def squad_real(content: Mapping) -> Families:
    """The twins on SQuAD 1.1 and on parts of 2.0, as one family."""
    twins = "spanbert-mini", "bert-mini"
    told = {"squad1": "SQuAD 1.1, F1", "squad2": "SQuAD 2.0, F1"}
    return [
        [
            Comparison(
                *twins,
                text,
                tuple(column(content, "score", "f1", start=start, task=task) for start in twins),
            )
            for task, text in told.items()
        ]
    ]


def programs(content: Mapping) -> list[Line]:
    """The twins beside what has learned less: new weights, counting words, silence."""

    def of(start: str, task: str) -> list[float]:
        return column(content, "score", "f1", start=start, task=task)

    base = content["baselines"]
    twins = {
        task: of("spanbert-mini", task) + of("bert-mini", task) for task in ("squad1", "squad2")
    }
    new = {task: of("new weights", task)[0] for task in twins}
    counting = max(base[name]["squad1"]["f1"] for name in ("lexical", "type"))
    silent = base["always abstain"]["squad2"]["f1"]
    return [
        Line(
            SINGLE,
            "SQuAD 1.1, F1: the weakest run of the twins, the better of two programs that count "
            "words, "
            "new weights (one run)",
            f"{min(twins['squad1']):.1f}, {counting:.1f}, {new['squad1']:.1f}",
        ),
        Line(
            SINGLE,
            "SQuAD 2.0, F1: the weakest and the best run of the twins, never answering, new "
            "weights (one "
            "run)",
            f"{min(twins['squad2']):.1f}, {max(twins['squad2']):.1f}, {silent:.1f}, "
            f"{new['squad2']:.1f}",
        ),
    ]


def made_first(content: Mapping) -> Families:
    """Made questions first, or real ones only."""
    arms = "made questions first", "real questions only"
    return [
        [
            Comparison(
                *arms,
                "SQuAD 1.1, F1",
                tuple(column(content, "score", "f1", arm=arm) for arm in arms),
            )
        ]
    ]


def answer_errors(content: Mapping) -> list[Line]:
    """Differences with intervals over articles; silence."""
    half = content["squad1"]
    lines = [
        interval_line(f"{name}: SQuAD 1.1, F1", *row["interval"], row["mean"])
        for name, row in half["differences"].items()
    ]
    lines += [
        interval_line(
            f"{name} given the sentence with the answer, gain in F1",
            *half["systems"][name]["gain"]["interval"],
            half["systems"][name]["gain"]["mean"],
        )
        for name in ("spanbert-mini", "bert-mini")
    ]
    silent = content["squad2"]["systems"]
    abstain = 100 * content["squad2"]["without"] / content["squad2"]["questions"]
    told = "SQuAD 2.0, F1 with a threshold, against never answering"
    return lines + [
        Line(SINGLE, f"{name}: {told}", f"{silent[name]['tuned']['f1']:.1f} against {abstain:.1f}")
        for name in ("spanbert-mini", "bert-mini")
    ]


def squad_negatives(content: Mapping) -> list[Line]:
    """Which questions without an answer are found by shared words."""
    lines = []
    for kind, row in content["results"]["lexical"].items():
        low, high = (100 * (edge - 0.5) for edge in row["interval"])
        lines.append(
            interval_line(
                f"A program that counts shared words finds questions without an answer, {kind}: "
                "AUC above chance",
                low,
                high,
                100 * (row["auc"] - 0.5),
            )
        )
    return lines


def span_tasks(content: Mapping) -> Families:
    """What pre-training brings and which twin, one family for each figure, as in the chapters; then
    the best guess without an encoder. A task counts when all starts have the same seeds."""
    figures = {asked: by_start(content, task_of(asked), MAIN[asked]) for asked in complete(content)}
    means = {"sentences": mean_of_sentences(content)} if set(PLANS) <= set(figures) else {}
    pairs = (
        ("bert-mini", "new weights"),
        ("spanbert-mini", "new weights"),
        ("spanbert-mini", "bert-mini"),
    )
    gains = [
        [
            Comparison(
                one, other, TOLD[asked], (found[one], found[other]), expected=expected(asked, other)
            )
            for one, other in pairs
        ]
        for asked, found in (means | figures).items()
    ]
    beaten = []
    for task, found in figures.items():
        control, figure = best_control(content, task)
        for start in STARTS[1:]:
            fixed = [figure] * len(found[start])
            beaten.append(
                Comparison(start, f"the control “{control}”", TOLD[task], (found[start], fixed))
            )
    return [*gains, *([beaten] if beaten else [])]


def expected(asked: str, other: str) -> bool | None:
    """Whether the plans expected a pre-trained start to be ahead of the other one; of GAP they say
    nothing."""
    return True if asked != "gap" and (other == "new weights" or asked in EXPECTED) else None


def task_of(asked: str) -> str:
    """The task as a row names it."""
    return TRAINED_AS.get(asked, asked)


def complete(content: Mapping) -> list[str]:
    """What is asked of tasks with at least two seeds, the same for all starts."""

    def seeds(task: str, start: str) -> list[int]:
        return sorted(
            row["seed"] for row in content["rows"] if (row["task"], row["start"]) == (task, start)
        )

    wanted = {asked: seeds(task_of(asked), STARTS[0]) for asked in MAIN}
    return [
        asked
        for asked, first in wanted.items()
        if len(first) > 1 and all(seeds(task_of(asked), start) == first for start in STARTS)
    ]


def best_control(content: Mapping, task: str) -> tuple[str, float]:
    """The highest figure without an encoder; of coreference, with mentions found by rule."""
    group = content["controls"].get(task_of(task), content["controls"]["sentences"])
    found = {
        name: row[MAIN[task]]
        for name, row in group.items()
        if MAIN[task] in row and not name.endswith("labeled")
    }
    name = max(found, key=found.__getitem__)
    return name.removesuffix(", mentions by rule").removeprefix("gap, "), found[name]


PRETRAINED = "the new head and the order; all start from the same pre-trained weights"
OVER_ARTICLES = "No seeds: the intervals run over articles"
REPORTS = (
    Report(
        "sentence_states",
        "what does the state of [CLS] say about a sentence?",
        "tasks/classification",
        "the names to test on, new weights and order",
        "new weights, a bag of words, labels dealt at random",
        "One pre-trained model of each kind.",
        sentence_states,
    ),
    Report(
        "tagging_names",
        "can names be tagged that no label has shown?",
        "tasks/tagging",
        PRETRAINED,
        "new weights, a list of names, a list of their words",
        "All these names stand in the pre-training text.",
        tagging_names,
    ),
    Report(
        "almanac_answers",
        "what does pre-training bring to question answering on the almanac?",
        "tasks/question_answering",
        PRETRAINED,
        "new weights; an encoder that does not learn",
        "One world.",
        almanac_answers,
    ),
    Report(
        "squad_real",
        "what do the shipped starts bring on SQuAD?",
        "tasks/real_questions",
        PRETRAINED,
        "new weights, one run; programs that count words; people",
        "One pre-training run of each twin: an interval says how far fine-tuning varies.",
        squad_real,
        programs,
    ),
    Report(
        "made_first",
        "do made questions before real ones help?",
        "tasks/real_questions",
        PRETRAINED,
        "real questions for the whole budget",
        "A small budget: 4 million pieces, 8,000 real questions.",
        made_first,
    ),
    Report(
        "answer_errors",
        "where do the shipped models err on real questions?",
        "tasks/real_questions",
        OVER_ARTICLES,
        "programs that count words, never answering",
        "One model of each kind.",
        told=answer_errors,
    ),
    Report(
        "squad_negatives",
        "which questions without an answer are easy to find?",
        "tasks/squad",
        OVER_ARTICLES,
        "chance",
        "Questions by one program's rules.",
        told=squad_negatives,
    ),
    Report(
        "almanac_coreference",
        "what does pre-training bring to coreference on the almanac?",
        "tasks/coreference",
        PRETRAINED,
        "new weights; rules that join names",
        "The learning rate was chosen on the test documents.",
        almanac_coreference,
    ),
    Report(
        "relation_markers",
        "how are names marked and read for relation extraction?",
        "tasks/relation_extraction",
        PRETRAINED,
        "new weights; names alone, context alone; words without an encoder",
        "Two passes.",
        relation_markers,
    ),
    Report(
        "span_tasks",
        "what do the shipped starts bring on coreference, relations and sentence tasks?",
        "tasks/results",
        PRETRAINED,
        "new weights; rules and words without an encoder",
        "One pre-training run of each kind: an interval says how far fine-tuning varies.",
        span_tasks,
    ),
)
