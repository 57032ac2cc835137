"""Every check of the exercises takes right answers in two styles, and tells three typical mistakes
apart.

One table for all, so that a check without a row is refused. Further mistakes of a check stand in
the file of its own, `test_…_exercise.py`.
"""

import importlib
import inspect
import pkgutil
from collections import Counter
from itertools import groupby

import numpy as np
import pytest
import test_albert_exercise
import test_bert_exercise
import test_bert_pretraining_exercise
import test_beyond_exercise
import test_classification_exercise
import test_coreference_exercise
import test_directions_exercise
import test_electra_exercise
import test_inputs_exercise
import test_labeled_masking_exercise
import test_masking
import test_name_ranks_exercise
import test_question_answering_exercise
import test_relation_extraction_exercise
import test_relatives_roberta_exercise
import test_sentence_pairs_exercise
import test_sentence_tasks_exercise
import test_single_sequence_exercise
import test_squad_exercise
import test_wordpiece_exercise
import torch

from spanbert_tutorial import exercises
from spanbert_tutorial.bert.wordpiece import pair_scores, split_word
from spanbert_tutorial.exercises import (
    albert,
    boundary,
    classification,
    coreference,
    electra,
    inputs,
    labeled_masking,
    name_ranks,
    old_notes,
    pretraining,
    pretraining_spanbert,
    question_answering,
    real_questions,
    relation_extraction,
    roberta,
    sentence_tasks,
    single_sequence,
    splinter,
)
from spanbert_tutorial.spanbert.span_masking import clipped_geometric
from spanbert_tutorial.tasks.squad import f1, normalize

# --- right answers in a second style, where the check's own file has one only --------


def attention_in_loops(query, key, value, real):
    rows = []
    for one in query.tolist():
        powers = [
            np.exp(np.dot(one, other) / len(one) ** 0.5) * float(told)
            for other, told in zip(key.tolist(), real.tolist(), strict=True)
        ]
        rows.append(np.dot(powers, value.numpy()) / sum(powers))
    return torch.tensor(np.array(rows), dtype=value.dtype)


def law_in_a_loop(p, max_words):
    shares = []
    while len(shares) < max_words:
        shares.append(shares[-1] * (1 - p) if shares else p)
    return [share / sum(shares) for share in shares]


def cut_in_a_loop(sizes, left):
    words = 0
    for size in sizes:
        left -= size
        if left < 0:
            break
        words += 1
    return words


def boundary_rows_by_runs(spans, n):
    hidden = [any(first <= place <= last for first, last in spans) for place in range(n)]
    rows = []
    for masked, run in groupby(range(n), key=lambda place: hidden[place]):
        run = list(run)
        if masked and 0 < run[0] and run[-1] < n - 1:
            rows.append((run[0], run[-1] + 2, [1 + place for place in range(len(run))]))
    return rows


def loss_token_by_token(mlm, sbo):
    return sum(
        one + (0 if other is None else other) for one, other in zip(mlm, sbo, strict=True)
    ) / len(mlm)


def packed_greedily(documents, n):
    blocks = []
    for document in documents:
        blocks.append([])
        for sentence in document:
            if len(blocks[-1]) + len(sentence) > n - 2:
                blocks.append([])
            blocks[-1] += sentence
    return blocks


def shared_one_by_one(prediction, gold):
    words = normalize(prediction).split()
    rest = normalize(gold).split()
    both = len(words) + len(rest)
    shared = sum(rest.remove(word) is None for word in words if word in rest)
    return 2 * shared / both if both else 1


def squad_exact(prediction, gold):
    """A typical mistake: the other score."""
    return float(normalize(prediction) == normalize(gold))


def drawn_by_counts(values, titles, drawn):
    often = np.array([Counter(drawn)[title] for title in titles])
    return (often * np.array(values)).sum() / often.sum()


def lower_case_by_letters(tokens, told):
    letters = "".join(token for token in tokens if not (token[:1] == "[" and token[-1:] == "]"))
    return told if told is not None else letters == letters.lower()


def pair_by_coin(documents, number, at, stop, rng):
    text = list(documents[number])
    cut = int(rng.choice(np.arange(1, stop - at)))
    if rng.random() < 0.5:
        return text[at : at + cut], text[at + cut : stop], 0, stop
    other = documents[(number + 1 + int(rng.integers(3))) % 4]
    return text[at : at + cut], [other[int(rng.integers(7))]], 1, at + cut


# --- the table: check → right answers, typical mistakes -----------------------------


def first_three(mistakes) -> list:
    """The attempts of a list of (attempt, sentence)."""
    return [attempt for attempt, _ in mistakes[:3]]


def with_settings(answer, right: dict, mistakes) -> list:
    """An attempt for each of three wrong settings of `answer(*case, **settings)`."""
    return [
        lambda *case, wrong=dict([one]): answer(*case, **{**right, **wrong})
        for one in list(mistakes)[:3]
    ]


def of_name(name, answer):
    """An attempt at the patterns that is wrong for one name."""
    return test_directions_exercise.only(name, answer)


words = test_wordpiece_exercise
masks = test_masking
pairs = test_sentence_pairs_exercise
packing = test_single_sequence_exercise
questions = test_question_answering_exercise
square = test_directions_exercise.SQUARE


def clusters_by_striking_out(words, stop):
    """Longest runs first; what is taken is struck out."""
    left = list(words)
    clusters = []
    for size in range(10, 0, -1):
        for first in range(len(words) - size + 1):
            run = words[first : first + size]
            if not "".join(run).isalnum() or {word.lower() for word in run} <= stop:
                continue
            starts = []
            for at in range(len(words) - size + 1):
                if left[at : at + size] == run and not (starts and at < starts[-1] + size):
                    starts.append(at)
            if len(starts) > 1:
                clusters.append([(at, at + size - 1) for at in starts])
                for at in starts:
                    left[at : at + size] = [None] * size
    return clusters


ANSWERS = {
    "albert.count": ([test_albert_exercise.right, albert.counted()], first_three(albert.MISTAKES)),
    "bert.attention": (
        [test_bert_exercise.right, attention_in_loops],
        first_three(test_bert_exercise.MISTAKES),
    ),
    "beyond.span_corruption": (
        [test_beyond_exercise.right, test_beyond_exercise.by_spans],
        first_three(test_beyond_exercise.MISTAKES),
    ),
    "boundary.boundary_rows": (
        [
            lambda spans, n: boundary.boundary_rows_with(spans, n, **boundary.RIGHT),
            boundary_rows_by_runs,
        ],
        with_settings(boundary.boundary_rows_with, boundary.RIGHT, boundary.MISTAKES),
    ),
    "classification.mean": (
        [test_classification_exercise.with_lists, test_classification_exercise.with_numpy],
        first_three(classification.MISTAKES),
    ),
    "coreference.b_cubed": (
        [
            coreference.b_cubed,
            lambda key, response: (
                test_coreference_exercise.sums(response, key),
                test_coreference_exercise.sums(key, response),
            ),
        ],
        first_three(coreference.MISTAKES),
    ),
    "directions.pattern": (
        [test_directions_exercise.right, test_directions_exercise.in_loops],
        [
            of_name("left-to-right", lambda real: square.tril()),
            of_name("left-to-right", lambda real: square & real),
            of_name("all but yourself", lambda real: square & real),
        ],
    ),
    "electra.replace": (
        [test_electra_exercise.right, test_electra_exercise.answering()],
        with_settings(electra.replace_with, electra.RIGHT, electra.MISTAKES),
    ),
    "inputs.batch": (
        [test_inputs_exercise.right, lambda *case: inputs.batch_with(*case, **inputs.RIGHT)],
        with_settings(inputs.batch_with, inputs.RIGHT, inputs.MISTAKES),
    ),
    "labeled_masking.pmi": (
        [labeled_masking.best_cut, test_labeled_masking_exercise.from_the_left],
        first_three(labeled_masking.MISTAKES),
    ),
    "masking.corrupt": (
        [masks.by_shares(0.8, 0.1), masks.token_by_token],
        [masks.one_draw_for_the_block, masks.random_over_masks, masks.by_shares(1, 0)],
    ),
    "name_ranks.rank": (
        [name_ranks.rank, test_name_ranks_exercise.with_numpy],
        first_three(name_ranks.MISTAKES),
    ),
    "old_notes.lower_case": (
        [old_notes.lower_case, lower_case_by_letters],
        first_three(old_notes.MISTAKES),
    ),
    "pretraining.plateau": (
        [pretraining.entropy, test_bert_pretraining_exercise.counted],
        first_three(pretraining.PLATEAU_MISTAKES),
    ),
    "pretraining.schedule": (
        [pretraining.rate, test_bert_pretraining_exercise.bent],
        first_three(pretraining.SCHEDULE_MISTAKES),
    ),
    "pretraining_spanbert.loss": (
        [pretraining_spanbert.paper_loss, loss_token_by_token],
        first_three(pretraining_spanbert.MISTAKES),
    ),
    "question_answering.answer": (
        [questions.with_decode, questions.by_loops],
        with_settings(question_answering.answer_with, {}, question_answering.MISTAKES),
    ),
    "real_questions.draw": (
        [real_questions.drawn_mean, drawn_by_counts],
        [real_questions.each_once, real_questions.mean_of_means, real_questions.over_all],
    ),
    "relation_extraction.directed": (
        [
            relation_extraction.directed_f1,
            test_relation_extraction_exercise.from_precision_and_recall,
        ],
        first_three(relation_extraction.MISTAKES),
    ),
    "roberta.positions": (
        [test_relatives_roberta_exercise.right, test_relatives_roberta_exercise.with_a_loop],
        first_three(roberta.MISTAKES),
    ),
    "sentence_pairs.pair": (
        [pairs.pair, pair_by_coin],
        [pairs.from_the_same_document, pairs.consumes_the_replaced_part, pairs.reads_twice],
    ),
    "sentence_tasks.matthews": (
        [sentence_tasks.matthews, test_sentence_tasks_exercise.with_numpy],
        first_three(sentence_tasks.MISTAKES),
    ),
    "single_sequence.packing": (
        [single_sequence.pack, packed_greedily],
        [packing.across_documents, packing.splits, packing.without_full_test],
    ),
    "span_masking.length_law": (
        [clipped_geometric, law_in_a_loop],
        [
            lambda p, most: p * (1 - p) ** np.arange(most),
            lambda p, most: p * (1 - p) ** np.arange(1, most + 1),
            lambda p, most: np.append(p * (1 - p) ** np.arange(most - 1), (1 - p) ** (most - 1)),
        ],
    ),
    "span_masking.cut": (
        [lambda sizes, left: int((np.cumsum(sizes) <= left).sum()), cut_in_a_loop],
        [
            lambda sizes, left: int((np.cumsum(sizes) < left).sum()),
            lambda sizes, left: min(left, sum(sizes)),
            lambda sizes, left: int((np.cumsum(sizes) - sizes < left).sum()),
        ],
    ),
    "squad.f1": (
        [f1, shared_one_by_one],
        [test_squad_exercise.as_sets, lambda *both: 100 * f1(*both), squad_exact],
    ),
    "splinter.clusters": (
        [splinter.clusters_with, clusters_by_striking_out],
        with_settings(splinter.clusters_with, splinter.RIGHT, splinter.MISTAKES),
    ),
    "wordpiece.split": (
        [split_word, words.greedy],
        [
            lambda *given: words.greedy(*given, mark=""),
            lambda *given: words.greedy(*given, shortest=True),
            words.any_division,
        ],
    ),
    "wordpiece.score": (
        [words.score, lambda counts, pair: pair_scores(counts)[pair]],
        [
            words.count,
            lambda counts, pair: words.count(counts, pair) / words.count(counts, pair[0]),
            lambda counts, pair: words.score(dict.fromkeys(counts, 1), pair),
        ],
    ),
}


def every_check() -> list[str]:
    """MODULE.NAME of each `check_NAME` of the exercises' room."""
    modules = [
        importlib.import_module(f"{exercises.__name__}.{one.name}")
        for one in pkgutil.iter_modules(exercises.__path__)
    ]
    return [
        f"{module.__name__.rsplit('.', 1)[1]}.{name.removeprefix('check_')}"
        for module in modules
        for name, _ in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("check_")
    ]


def said_to(check: str, attempt) -> str:
    """What the check of this name says."""
    module, name = check.split(".")
    return getattr(importlib.import_module(f"{exercises.__name__}.{module}"), f"diagnose_{name}")(
        attempt
    )


def test_every_check_has_a_row():
    assert sorted(ANSWERS) == sorted(every_check())


@pytest.mark.parametrize("check", ANSWERS)
def test_right_answers_in_two_styles(check):
    attempts, _ = ANSWERS[check]
    assert len(attempts) == 2 and attempts[0] is not attempts[1]
    for attempt in attempts:
        said = said_to(check, attempt)
        assert said.startswith("Correct: "), said


@pytest.mark.parametrize("check", ANSWERS)
def test_three_mistakes_have_three_messages(check):
    _, mistakes = ANSWERS[check]
    told = [said_to(check, attempt) for attempt in mistakes]
    assert len(mistakes) == 3 and all(said.startswith("Not yet: ") for said in told), told
    assert len(set(told)) == 3, told
    assert not any(
        "the function returns nothing" in said or "the function stopped" in said for said in told
    ), told
