"""What each experiment compares, one row for each comparison. Page: `book/workshop/what_we_found`.

`COMPARISONS` maps the name of a results file to its families: comparisons that answer one question
and are corrected together. A new experiment adds its rows here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from research.experiments import span_settings, ways_of_hiding
from research.experiments.directions import ROLES
from research.experiments.span_tasks import MAIN, STARTS, by_start, mean_of_sentences
from research.lines import Comparison
from research.measurements.span_tasks_sentences import PLANS
from research.results import column
from spanbert_tutorial.engine.files import data_path

Families = list[list[Comparison]]


class Measure(NamedTuple):
    """A metric of a results file. path: the keys that lead to it in a row, "losses/span", or a
    function of the content and the condition's keys that returns one value per seed; by: the keys
    of a row that name its condition; scale: 100 for shares; test_to_train: see
    `results.paired_difference`.

    The condition's own keys fill {0}, {1}, … of the path."""

    text: str
    path: str | Callable[..., Sequence[float]]
    unit: str = "points"
    by: tuple[str, ...] = ("arm",)
    scale: float = 1
    test_to_train: float = 0.0


# Its name in rows and in sentences; or the name in sentences, then its keys in rows.
Condition = str | tuple[str, ...]


class Fixed(NamedTuple):
    """A baseline without seeds; path: the keys that lead to its metric in the file."""

    name: str
    path: str


class Row(NamedTuple):
    """One comparison. expected: whether `first` was expected to be better, None without a
    prediction."""

    first: Condition
    second: Condition | Fixed
    measure: Measure
    expected: bool | None = None


def compared(row: Row, content: Mapping) -> Comparison:
    """The row with the values of a results file."""
    measure = row.measure
    first = values_of(row.first, measure, content)
    if isinstance(row.second, Fixed):
        second = [lookup(content, row.second.path)] * len(first)
    else:
        second = values_of(row.second, measure, content)
    return Comparison(
        name_of(row.first),
        name_of(row.second),
        measure.text,
        (first, second),
        measure.unit,
        measure.unit != "points",
        row.expected,
        measure.test_to_train,
    )


def name_of(condition: Condition | Fixed) -> str:
    """As a sentence calls it."""
    return condition if isinstance(condition, str) else condition[0]


def values_of(condition: Condition, measure: Measure, content: Mapping) -> list[float]:
    """One value per seed."""
    keys = (condition,) if isinstance(condition, str) else condition[1:]
    if callable(measure.path):
        return list(measure.path(content, *keys))
    path = measure.path.format(*keys).split("/")
    chosen = dict(zip(measure.by, keys, strict=False))
    return [measure.scale * value for value in column(content, *path, **chosen)]


def lookup(content: Mapping, path: str) -> float:
    """A value of the file outside its rows."""
    value: Any = content
    for key in path.split("/"):
        value = value[key]
    return value


def families_of(name: str, content: Mapping) -> Families:
    """The comparisons of a results file, by the question that they answer. content: of the file."""
    if name == "span_tasks":
        return span_task_families(content)
    if name == "ways_of_hiding":
        content = with_core_rows(content)
    return [[compared(row, content) for row in rows] for rows in COMPARISONS.get(name, ())]


# --- Part I --------------------------------------------------------------------------

AS_MANY_TO_TEST = 826 / 812  # test cases per training case, of seed 0
TAG = Measure("the tag of each token", "tags/{0}", by=(), scale=100)
ROLE = Measure(
    "role of a town's name", "roles/{0}", by=(), scale=100, test_to_train=AS_MANY_TO_TEST
)
ALL_LAYERS = "frozen, all layers side by side"
DIRECTIONS = [
    [
        Row("fine-tuned", "from scratch", TAG),
        Row("most frequent tag", "from scratch", TAG),
        Row("frozen, below the first layer", "most frequent tag", TAG),
        Row("fine-tuned", "frozen, last layer", TAG),
        Row("fine-tuned", ALL_LAYERS, TAG),
    ],
    [Row(first, second, ROLE) for first, second in ROLES],
]

ORIGINAL = "80/10/10"
CASES = {
    "mask": "[MASK] stands there",
    "same": "the token stands there",
    "random": "another token stands there",
}
RIGHT = [
    Measure(f"share of tokens named, {text}", f"shown/{case}/accuracy", by=("variant",), scale=100)
    for case, text in CASES.items()
]
GAPS = Measure(
    "two gaps filled with a name that exists", "names/{1}/exists", by=("variant",), scale=100
)
MASKING_MINI = [
    [Row(variant, ORIGINAL, right) for variant in ("100/0/0", "80/20/0") for right in RIGHT],
    [
        Row(
            ("one gap at a time", ORIGINAL, "one at a time"),
            ("two gaps apart", ORIGINAL, "apart"),
            GAPS,
        )
    ],
]

BOOK = "as in the book"
LOSS = Measure("held-out loss", "held_out/token/mlm", "nats", ("setting",))
LEFT_AFTER = Measure("steps to leave the plateau", "left_after", "steps", ("setting",))
PLATEAU_SETTINGS = (
    "no sinusoids",
    "start 0.02",
    "peak 1e-3",
    "half the batch",
    "half, twice the steps",
    "no warm-up",
    "warm-up of 0.4",
)
LEAVING_THE_PLATEAU = [
    [
        *(Row(setting, BOOK, LOSS) for setting in PLATEAU_SETTINGS),
        Row("short blocks", BOOK, LEFT_AFTER),
        Row("warm-up of 0.4", BOOK, LEFT_AFTER),
    ]
]
WIKIPEDIA_LOSS = Measure("held-out loss on Wikipedia", "held_out/mlm", "nats")
EASY_FIRST = [[Row("almanac first", "corpus, then corpus", WIKIPEDIA_LOSS)]]

# --- Part II -------------------------------------------------------------------------

HIDDEN = {"token": "single tokens masked", "span": "spans masked"}
OF_TOKENS = ("token masking", "mlm")
OF_SPANS = ("span masking", "span")
OF_BOTH = ("span masking with SBO", "span+sbo")
TOKEN_VS_SPAN = [
    [
        Row(*pair, Measure(f"held-out loss, {text}", f"held_out/{way}/mlm", "nats", ("objective",)))
        for pair in ((OF_SPANS, OF_TOKENS), (OF_BOTH, OF_SPANS))
        for way, text in HIDDEN.items()
    ]
]


def last_losses(content: Mapping, arm: str) -> list[float]:
    """Mean of the last four points of each seed's curve, 100 steps."""
    return [float(np.mean(curve[-4:])) for curve in column(content, "curve", arm=arm)]


SPANS_ALONE = ("span masking alone", "span")
LAST_LOSSES = Measure("loss of the token head in the last 100 steps", last_losses, "nats")
PROBED = {"boundary": "outside the span", "inside": "inside it"}
BOUNDARY_PROBE = [
    [
        Row(
            OF_BOTH,
            SPANS_ALONE,
            Measure(
                f"{label} of a masked name, read from the two states {where}",
                f"probe/{states}/{label}",
                scale=100,
            ),
        )
        for states, where in PROBED.items()
        for label in ("kind", "length", "first token")
    ],
    [Row(OF_BOTH, SPANS_ALONE, LAST_LOSSES)],
]

FORMATS = (("one segment", "pairs"), ("pairs", "pairs + NSP"), ("one segment", "pairs + NSP"))
NSP_RIGHT = Measure(
    "NSP labels of held-out pairs that are right", "held_out/pairs/{1}", by=("format",), scale=100
)
PAIRS_VS_SINGLE = [
    [
        Row(
            *pair,
            Measure(
                f"held-out loss, measured on {way}", f"held_out/{way}/mlm", "nats", ("format",)
            ),
        )
        for pair in FORMATS
        for way in ("one segment", "pairs")
    ],
    [
        Row(
            ("pairs + NSP", "pairs + NSP", "nsp_accuracy"),
            ("always saying NotNext", "pairs + NSP", "not_next"),
            NSP_RIGHT,
        )
    ],
]


def over_all_names(content: Mapping, arm: str) -> list[float]:
    """Percent of all hidden names of each seed that are ranked first, wherever else they occur."""
    names = content["controls"]["names"]["frequency"]
    gaps = {where: group["gaps"] for where, group in names.items()}
    ranked = [
        np.multiply(gaps[where], column(content, "names", where, "first", arm=arm))
        for where in gaps
    ]
    return (np.sum(ranked, axis=0) / sum(gaps.values())).tolist()


TEXT_SAME = "a word and a name mean the same, AUC of a probe on the states"
NAMES = Measure("masked names that the block has once, ranked first", "names/inferred/first")
ELSEWHERE = Measure("masked names that the block repeats, ranked first", "names/elsewhere/first")
ALL_NAMES = Measure("all masked names, ranked first", over_all_names)
KIND = Measure("kind of a masked name, read from the states outside", "kinds/boundary")
KIND_INSIDE = Measure("kind of a masked name, read from the states inside", "kinds/inside")
SAME = Measure(f"{TEXT_SAME} outside", "pairs/outside")
SAME_INSIDE = Measure(f"{TEXT_SAME} inside", "pairs/inside")
ANSWERS = Measure("2,000 questions on the almanac, F1, an answer forced", "uses/questions, 2000/f1")
FEWER_ANSWERS = Measure(
    "300 questions on the almanac, F1, an answer forced", "uses/questions, 300/f1"
)
TAGS = Measure("tags of new names, F1", "uses/tags")
CLUSTERS = Measure("coreference on the almanac, average F1", "uses/coreference")
RELATIONS = Measure("relations of the almanac, F1", "uses/relations")
HELD_OUT = {
    way: Measure(f"held-out loss, {text}", f"losses/{way}", "nats") for way, text in HIDDEN.items()
}
LOST = list(HELD_OUT.values())
ABLATIONS = (("span", "token"), ("span+sbo", "span"))  # as rows of the paper's Tables 6 and 7
SPANS_AND_BOUNDARIES = [
    [
        Row("span", "token", NAMES, True),
        Row("span+sbo", "placebo", SAME, True),
        Row("span+sbo", "token", ANSWERS, True),
    ],
    [
        *(Row(*pair, measure) for pair in ABLATIONS for measure in LOST),
        Row("span", "token", ELSEWHERE),
        Row("span+sbo", "span", NAMES),
        Row("span", "token", ALL_NAMES),
        Row("span+sbo", "span", ALL_NAMES),
        Row("span+sbo", "span", SAME),
        Row("span+sbo", "placebo", SAME_INSIDE),
        Row("span+sbo", "placebo", KIND),
        Row("span+sbo", "span", KIND),
        Row("span", "token", KIND),
        Row("span+sbo", "span", KIND_INSIDE),
        Row("span+sbo", "placebo", ANSWERS),
        Row("span+sbo", "token", FEWER_ANSWERS),
        Row("span+sbo", "token", TAGS),
        Row("span+sbo", "token", CLUSTERS),
        Row("span+sbo", "token", RELATIONS),
        *(Row(*pair, measure) for pair in ABLATIONS for measure in (ANSWERS, CLUSTERS)),
    ],
]

GAP_SAME = Measure(
    "a pronoun and a name mean the same in GAP, AUC of a probe on the states outside",
    "pairs/outside",
)
LITBANK = Measure("LitBank, average F1", "coreference/average")
SPANS_ON_WIKIPEDIA = [
    [
        Row("span", "token", NAMES, True),
        Row("span+sbo", "placebo", GAP_SAME, True),
        Row("span+sbo", "token", LITBANK, True),
    ],
    [
        *(Row("span", "token", measure) for measure in LOST),
        *(Row(*pair, LITBANK) for pair in ABLATIONS),
    ],
]
WAYS_OF_HIDING = [
    [
        Row("entities", "span", NAMES, True),
        *(Row("span", other, ANSWERS, True) for other in ways_of_hiding.ARMS),
    ],
    [Row(other, "span", NAMES) for other in ways_of_hiding.ARMS if other != "entities"],
]
SETTINGS_OF_SPANS = list(span_settings.ARMS)
WITH_SBO = SETTINGS_OF_SPANS.index("span+sbo")
SPAN_SETTINGS = [
    [
        Row("at most 3 words", "span", HELD_OUT["token"], True),
        Row("SBO × 3", "span+sbo", HELD_OUT["token"], False),
    ],
    [
        *(Row(arm, "span", KIND) for arm in SETTINGS_OF_SPANS[1:WITH_SBO]),
        *(Row(arm, "span+sbo", KIND) for arm in SETTINGS_OF_SPANS[WITH_SBO + 1 :]),
    ],
]


def with_core_rows(content: Mapping) -> dict:
    """The rows of an experiment with those of `spans_and_boundaries` that have its starts and
    seeds."""
    core = json.loads(data_path("results", "spans_and_boundaries.json").read_text(encoding="utf-8"))
    seeds = {row["seed"] for row in content["rows"]}
    return {"rows": [row for row in (*core["rows"], *content["rows"]) if row["seed"] in seeds]}


# --- Part III ------------------------------------------------------------------------

HALF_TO_TEST = 0.5  # test sentences per training sentence
READ = {
    "length": "length of the sentence",
    "kind": "kind of its first name",
    "order": "order of its words",
}
MODELS = {"spanbert-tiny": "tiny", "spanbert-mini": "mini", "bert-mini": "mini"}
READ_FROM = {
    (model, label): Measure(
        text, f"{size}/{{0}}/{label}/{{1}}", by=(), scale=100, test_to_train=HALF_TO_TEST
    )
    for model, size in MODELS.items()
    for label, text in READ.items()
}
SENTENCE_STATES = [
    [
        Row((f"[CLS] of {model}", model, "C"), ("that of new weights", "new weights", "C"), measure)
        for (model, _), measure in READ_FROM.items()
    ],
    [
        Row((f"[CLS] of {model}", model, "C"), ("the mean of its states", model, "mean"), measure)
        for (model, _), measure in READ_FROM.items()
    ],
]

NEW_NAMES = Measure("F1 on names that no label has shown", "scores/{0}/f1", by=())
TAGGING_NAMES = [
    [
        Row("pre-trained", "list of words", NEW_NAMES),
        Row("pre-trained", "new weights", NEW_NAMES),
        Row("list of words", "new weights", NEW_NAMES),
    ]
]
ANSWERED = {
    "f1": "F1 over all questions",
    "forced": "F1 on answerable questions, an answer forced",
}
ALMANAC_ANSWERS = [
    [
        Row("pre-trained", other, Measure(text, f"{{0}}/{key}", by=()))
        for key, text in ANSWERED.items()
        for other in ("new weights", "only S and E")
    ]
]
CLUSTERS_TUNED = CLUSTERS._replace(path="scores/average", by=("start",))
SAME_LAST_WORD = Fixed("the rule of equal last words", "rules/by rule/same last word/average")
ALMANAC_COREFERENCE = [
    [
        Row("pre-trained", "new weights", CLUSTERS_TUNED),
        Row("pre-trained", SAME_LAST_WORD, CLUSTERS_TUNED),
    ]
]
RELATIONS_TUNED = RELATIONS._replace(path="f1", by=("way",))
WORDS_AROUND = Fixed("words around the names", "controls/words around the names")
RELATION_MARKERS = [
    [
        Row("replaced, markers", "replaced, [CLS]", RELATIONS_TUNED),
        Row("around, markers", "around, [CLS]", RELATIONS_TUNED),
        Row("replaced, markers", "around, markers", RELATIONS_TUNED),
        Row("around, markers", "new weights", RELATIONS_TUNED),
        Row("around, markers", "names alone", RELATIONS_TUNED),
        Row("around, markers", "context alone", RELATIONS_TUNED),
        Row("around, markers", WORDS_AROUND, RELATIONS_TUNED),
    ]
]
FIRST_PAIR_ANSWERS = [
    [
        Row(
            ("the first spanbert-mini", "spanbert-mini", task),
            ("the first bert-mini", "bert-mini", task),
            Measure(text, "score/f1", by=("start", "task")),
        )
        for task, text in {"squad1": "SQuAD 1.1, F1", "squad2": "SQuAD 2.0, F1"}.items()
    ]
]
MADE_FIRST = [
    [Row("made questions first", "real questions only", Measure("SQuAD 1.1, F1", "score/f1"))]
]

FINISHED = Measure("SQuAD 1.1, F1", "squad/f1", by=("start", "goes_on"))
COPYING_AND_ANSWERS = [
    [
        Row((name, start, "nothing"), ("tokens", "mlm", "nothing"), FINISHED)
        for name, start in {
            "spans with SBO": "spansbo",
            "tokens in pairs": "mlmnsp",
            "a mix of both": "mix",
        }.items()
    ],
    # the paper's comparison, SpanBERT against BERT; added when the scores were known
    [
        Row(
            ("spans with SBO", "spansbo", "nothing"),
            ("tokens in pairs", "mlmnsp", "nothing"),
            FINISHED,
        )
    ],
]
FEW_QUESTIONS_HERE = [
    [
        Row(
            "spanbert-mini",
            "bert-mini",
            Measure(f"SQuAD 1.1, F1 after {size:,} questions", f"scores/{size}/f1", by=("model",)),
        )
        for size in (128, 1_024, 4_096)
    ]
]
ONE_SEGMENT = Measure(
    "STS-B, Pearson correlation × 100", "scores/stsb pearson", by=("start", "segments")
)
SEGMENTS = [
    [
        Row(
            (f"{name}, one segment", name, "one"),
            (f"{name}, two segments", name, "two"),
            ONE_SEGMENT,
            expected,
        )
        for name, expected in (("spanbert-mini", True), ("bert-mini", None))
    ]
]

# Where spanbert-mini was expected to be better than bert-mini.
EXPECTED = ("coreference", "clusters", "relations", "rte", "stsb")
# Scores of a model that is trained on another task.
TRAINED_AS = {"gap": "coreference", "clusters": "coreference"}
TOLD = {
    "coreference": LITBANK.text,
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


def span_task_families(content: Mapping) -> Families:
    """What pre-training adds and which mini model is better, one family for each metric, as in the
    chapters; then the best baseline without an encoder. A task counts when all starts have the same
    seeds."""
    scores = {task: by_start(content, task_of(task), MAIN[task]) for task in complete(content)}
    means = {"sentences": mean_of_sentences(content)} if set(PLANS) <= set(scores) else {}
    new, bert, spanbert = STARTS
    gains = [
        [
            Comparison(
                first,
                second,
                TOLD[task],
                (by_seed[first], by_seed[second]),
                expected=expected(task, second),
            )
            for first, second in ((bert, new), (spanbert, new), (spanbert, bert))
        ]
        for task, by_seed in (means | scores).items()
    ]
    baselines = []
    for task, by_seed in scores.items():
        control, score = best_control(content, task)
        for start in (bert, spanbert):
            columns = (by_seed[start], [score] * len(by_seed[start]))
            baselines.append(Comparison(start, f"the control “{control}”", TOLD[task], columns))
    return [*gains, baselines] if baselines else gains


def expected(task: str, second: str) -> bool | None:
    """Whether the plan expected a pre-trained start to be better than the second one; it has no
    prediction for GAP."""
    return True if task != "gap" and (second == "new weights" or task in EXPECTED) else None


def task_of(task: str) -> str:
    """The task as a row names it."""
    return TRAINED_AS.get(task, task)


def complete(content: Mapping) -> list[str]:
    """The tasks with at least two seeds, the same for all starts."""

    def seeds(task: str, start: str) -> list[int]:
        pair = (task_of(task), start)
        return sorted(row["seed"] for row in content["rows"] if (row["task"], row["start"]) == pair)

    first = {task: seeds(task, STARTS[0]) for task in MAIN}
    return [
        task
        for task in MAIN
        if len(first[task]) > 1 and all(seeds(task, start) == first[task] for start in STARTS)
    ]


def best_control(content: Mapping, task: str) -> tuple[str, float]:
    """The best baseline without an encoder; in coreference, with mentions found by rule."""
    group = content["controls"].get(task_of(task), content["controls"]["sentences"])
    scores = {
        name: row[MAIN[task]]
        for name, row in group.items()
        if MAIN[task] in row and not name.endswith("labeled")
    }
    name = max(scores, key=scores.__getitem__)
    return name.removesuffix(", mentions by rule").removeprefix("gap, "), scores[name]


# --- Part IV -------------------------------------------------------------------------

NEW_MASKS = [
    Measure(f"loss on new masks, blocks {blocks}", f"new_masks/{blocks}/loss", "nats", ("way",))
    for blocks in ("held out", "trained on")
]
ROBERTA_MASKS = [
    [
        Row(way, ("dynamic masks", "dynamic"), measure)
        for way in (("ten-copies masks", "ten copies"), ("static masks", "static"))
        for measure in NEW_MASKS
    ]
]
ONE_DOCUMENT = Measure(
    "held-out loss on blocks of one document", "held_out/DOC-SENTENCES/mlm", "nats", ("format",)
)
ROBERTA_FORMATS = [
    [
        Row("FULL-SENTENCES", "DOC-SENTENCES", ONE_DOCUMENT),
        Row("SEGMENT-PAIR+NSP", "DOC-SENTENCES", ONE_DOCUMENT),
        Row("SENTENCE-PAIR+NSP", "SEGMENT-PAIR+NSP", ONE_DOCUMENT),
    ]
]
SHARED_LOSS = Measure("held-out loss", "held_out/mlm", "nats", ("sharing",))
NOTHING = ("nothing shared", "none")
ATTENTION = ("attention shared", "attention")
FEED_FORWARD = ("feed-forward shared", "feed_forward")
ALBERT_SHARING = [
    [
        Row(("all shared", "all"), NOTHING, SHARED_LOSS),
        Row(ATTENTION, NOTHING, SHARED_LOSS),
        Row(FEED_FORWARD, NOTHING, SHARED_LOSS),
        Row(ATTENTION, FEED_FORWARD, SHARED_LOSS),
    ]
]


def asked(task: str, reader: str) -> Measure:
    """How often a question of sentence order is answered right. reader: "head" or "probe"."""
    return Measure(
        f"{task}, read by the {reader}", f"asked/{task}/{reader}", by=("trained",), scale=100
    )


NEITHER = ("neither learned", "none")
NSP = ("NSP learned", "NSP")
SOP = ("SOP learned", "SOP")
ALBERT_SOP = [
    [
        Row(SOP, NSP, asked("SOP", "head")),
        Row(NSP, NEITHER, asked("SOP", "head")),
        Row(SOP, NEITHER, asked("SOP", "probe")),
        Row(NSP, NEITHER, asked("SOP", "probe")),
    ],
    [Row(NSP, SOP, asked("NSP", "head")), Row(SOP, NEITHER, asked("NSP", "probe"))],
]
ENCODER_TASKS = [
    Measure(task, f"tasks/{task}", by=("arm", "from"), scale=100)
    for task in ("tags, fine-tuned", "tags, frozen", "roles, frozen")
]
MLM = "masked language modeling"


def on_all_tasks(first: Condition, second: Condition) -> list[Row]:
    """Two conditions of `electra_mini` on each task."""
    return [Row(first, second, measure) for measure in ENCODER_TASKS]


ELECTRA_MINI = [
    [
        *on_all_tasks(
            ("ELECTRA from scratch", "electra", "scratch"),
            (f"{MLM} from scratch", "mlm", "scratch"),
        ),
        *on_all_tasks(
            ("ELECTRA, going on", "electra", "start"), (f"{MLM}, going on", "mlm", "start")
        ),
    ],
    on_all_tasks(("drawn words", "electra", "start"), ("the likeliest words", "arg-max", "start")),
    on_all_tasks(
        ("the likeliest words", "arg-max", "start"), ("their own start", "mlm", "scratch")
    ),
]
ENCODING = "auto-encoding, 15 %"
ALL_TARGETS = "auto-regressive, 100 %"
FEW_TARGETS = "auto-regressive, 15 %"


def gaps_right(text: str = "") -> Measure:
    """Accuracy at gaps; a condition is a way of training and what it sees."""
    return Measure(f"gaps named right{text}", "uses/gaps/{1}/accuracy", by=("way",), scale=100)


BEYOND_WAYS = [
    [
        Row(
            (FEW_TARGETS, FEW_TARGETS, "both, tried"),
            (ENCODING, ENCODING, "both, tried"),
            gaps_right(", both sides"),
        ),
        Row(
            (f"{FEW_TARGETS}, left side", FEW_TARGETS, "left"),
            (f"{ENCODING}, both sides", ENCODING, "both"),
            gaps_right(),
        ),
        Row(
            (ALL_TARGETS, ALL_TARGETS, "left"),
            (FEW_TARGETS, FEW_TARGETS, "left"),
            gaps_right(", left side"),
        ),
        Row(
            ("left and right sides", ALL_TARGETS, "both, tried"),
            ("left side alone", ALL_TARGETS, "left, tried"),
            gaps_right(f", {ALL_TARGETS}"),
        ),
        Row(
            ("left and right sides", ENCODING, "both"),
            ("left side alone", ENCODING, "left, no [SEP]"),
            gaps_right(f", {ENCODING}"),
        ),
    ],
    [
        Row(
            ("a second copy", way, "copy"),
            ("other text in front", way, "other"),
            Measure(f"loss of repeated random tokens, {way}", "uses/copying/{1}", "nats", ("way",)),
        )
        for way in (ENCODING, ALL_TARGETS, FEW_TARGETS)
    ],
]

COMPARISONS: Mapping[str, Sequence[Sequence[Row]]] = {
    "directions": DIRECTIONS,
    "masking_mini": MASKING_MINI,
    "leaving_the_plateau": LEAVING_THE_PLATEAU,
    "easy_first": EASY_FIRST,
    "token_vs_span": TOKEN_VS_SPAN,
    "boundary_probe": BOUNDARY_PROBE,
    "pairs_vs_single": PAIRS_VS_SINGLE,
    "spans_and_boundaries": SPANS_AND_BOUNDARIES,
    "spans_on_wikipedia": SPANS_ON_WIKIPEDIA,
    "ways_of_hiding": WAYS_OF_HIDING,
    "span_settings": SPAN_SETTINGS,
    "sentence_states": SENTENCE_STATES,
    "tagging_names": TAGGING_NAMES,
    "almanac_answers": ALMANAC_ANSWERS,
    "almanac_coreference": ALMANAC_COREFERENCE,
    "relation_markers": RELATION_MARKERS,
    "first_pair_answers": FIRST_PAIR_ANSWERS,
    "made_first": MADE_FIRST,
    "one_segment": SEGMENTS,
    "copying_and_answers": COPYING_AND_ANSWERS,
    "few_questions_here": FEW_QUESTIONS_HERE,
    "roberta_masks": ROBERTA_MASKS,
    "roberta_formats": ROBERTA_FORMATS,
    "albert_sharing": ALBERT_SHARING,
    "albert_sop": ALBERT_SOP,
    "electra_mini": ELECTRA_MINI,
    "beyond_ways": BEYOND_WAYS,
}
