"""Every check of the exercises takes right answers in two styles, names the likely mistakes that it
knows, and says of anything else what the right answer would be."""

import importlib
import math
import pkgutil
from collections import Counter
from itertools import groupby

import numpy as np
import pytest
import torch

from spanbert_tutorial import exercises
from spanbert_tutorial.bert.sentence_pairs import NOT_NEXT
from spanbert_tutorial.exercises import inputs, sentence_pairs
from spanbert_tutorial.exercises import masking as corrupting
from spanbert_tutorial.exercises.diagnosis import Diagnosis
from spanbert_tutorial.tasks.squad import normalize


def albert_right(vocabulary, embedding, hidden, layers, sharing):
    attention = 4 * hidden**2 + 6 * hidden
    feed_forward = 8 * hidden**2 + 7 * hidden
    around = (vocabulary + 512 + 2 + 2) * embedding + (embedding + 1) * hidden
    attention *= 1 if sharing in ("all", "attention") else layers
    feed_forward *= 1 if sharing in ("all", "feed_forward") else layers
    return around + attention + feed_forward


def counted(ids, pad_id):
    """The same by another way: a Counter and the sum of c/N · ln(N/c)."""
    counts = Counter(token for row in ids.tolist() for token in row if token != pad_id)
    total = sum(counts.values())
    return sum(c / total * math.log(total / c) for c in counts.values())


def beyond_right(ids, selected, sentinels):
    source = []
    target = []
    marks = iter(sentinels)
    for place, (token, hidden) in enumerate(zip(ids, selected, strict=True)):
        if hidden and not (place and selected[place - 1]):
            mark = next(marks)
            source.append(mark)
            target.append(mark)
        (target if hidden else source).append(token)
    return source, [*target, next(marks)]


CLASSIFICATION_SPECIAL = {"[CLS]", "[SEP]", "[PAD]"}


def classification_with_numpy(states, tokens):
    return np.array(states)[~np.isin(tokens, list(CLASSIFICATION_SPECIAL))].mean(0)


def coreference_sums(one, other):
    """The recall over pairs of clusters."""
    total = sum(len(cluster) for cluster in one)
    return (
        sum(len(set(a) & set(b)) ** 2 / len(a) for a in one for b in other) / total if total else 0
    )


def in_loops(name, real):
    rules = {"left-to-right": lambda i, j: j <= i, "right-to-left": lambda i, j: i <= j}
    allowed = rules.get(name, lambda i, j: i != j)
    n = len(real)
    return [[float(allowed(i, j) and bool(real[j])) for j in range(n)] for i in range(n)]


def inputs_right(pairs, longest):
    """With lists only, and by another way of cutting."""
    rows = []
    for first, second in pairs:
        for _ in range(max(0, len(first) + len(second) + 3 - longest)):
            if len(first) > len(second):
                first = first[:-1]
            else:
                second = second[:-1]
        rows.append(
            (
                [inputs.CLS, *first, inputs.SEP, *second, inputs.SEP],
                [0] * (len(first) + 2) + [1] * (len(second) + 1),
            )
        )
    n = max(len(ids) for ids, _ in rows)
    ids = [row + [inputs.PAD] * (n - len(row)) for row, _ in rows]
    segments = [row + [0] * (n - len(row)) for _, row in rows]
    return ids, segments, [[token != inputs.PAD for token in row] for row in ids]


def from_the_left(words, share):
    """The best way to cut the first so many words, from that of fewer."""
    best = [0.0]
    for end in range(1, len(words) + 1):
        parts = [(at, words[at:end]) for at in range(end) if words[at:end] != words]
        best.append(max(best[at] + math.log(share[part]) for at, part in parts))
    return math.log(share[words]) - best[-1]


def name_ranks_with_numpy(logs, candidates, true):
    """By the mean place of all with the same score."""
    scores = np.array(logs)[np.arange(len(logs)), np.array(candidates)].sum(axis=1)
    in_order = np.sort(scores)[::-1]
    return np.flatnonzero(in_order == scores[true]).mean() + 1


def from_precision_and_recall(gold, said, relation):
    right = sum(a == b and a.startswith(relation) for a, b in zip(gold, said, strict=True))
    precision = right / max(1, sum(label.startswith(relation) for label in said))
    recall = right / sum(label.startswith(relation) for label in gold)
    return 100 * 2 * precision * recall / (precision + recall) if right else 0


def with_a_loop(ids, pad_id):
    rows = []
    for row in ids.tolist():
        seen = pad_id
        numbers = []
        for token in row:
            seen += token != pad_id
            numbers.append(seen if token != pad_id else pad_id)
        rows.append(numbers)
    return torch.tensor(rows)


def sentence_tasks_with_numpy(gold, said):
    one, other = (1.0 * (np.array(row) == "1") for row in (gold, said))
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) and np.ptp(other) else 0


def greedy(word, vocabulary, *, mark="##", shortest=False, missing=None, first_mark=""):
    """Longest match first with a choice of mistakes. missing: what to do at a place without a
    match."""
    tokens = []
    start = 0
    while start < len(word):
        ends = range(len(word), start, -1)
        prefix = mark if start else first_mark
        found = [
            end
            for end in (reversed(ends) if shortest else ends)
            if prefix + word[start:end] in vocabulary
        ]
        if not found:
            return missing(tokens, word[start:]) if missing else ["[UNK]"]
        tokens.append(prefix + word[start : found[0]])
        start = found[0]
    return tokens or ["[UNK]"]


def token_by_token(ids, selected, rng, mask_id, random_ids):
    made = ids.copy()
    for place in np.flatnonzero(selected):
        draw = rng.random()
        made[place] = (
            mask_id if draw < 0.8 else rng.choice(random_ids) if draw < 0.9 else ids[place]
        )
    return made


def by_loops(windows, scores, threshold, longest):
    """As a reader may write it."""
    best = -np.inf
    span = None
    null = np.inf
    for window, (starts, ends) in zip(windows, scores, strict=True):
        null = min(null, starts[0] + ends[0])
        shift = window.first - window.start
        for i in range(window.start, window.end):
            for j in range(i, min(i + longest, window.end)):
                value = starts[i + shift] + ends[j + shift]
                if window.central[i - window.start] and value > best:
                    best = value
                    span = (i, j)
    return None if null - best > threshold else span


def attention_in_loops(query, key, value, real):
    rows = []
    for one in query.tolist():
        powers = [
            np.exp(np.dot(one, other) / len(one) ** 0.5) * float(told)
            for other, told in zip(key.tolist(), real.tolist(), strict=True)
        ]
        rows.append(np.dot(powers, value.numpy()) / sum(powers))
    return torch.tensor(np.array(rows), dtype=value.dtype)


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


def by_pairs_of_clusters(key, response):
    return coreference_sums(response, key), coreference_sums(key, response)


def electra_in_a_loop(original, selected, sampled, real):
    ids = [
        new if hidden else old for old, hidden, new in zip(original, selected, sampled, strict=True)
    ]
    return ids, [new != old for old, new in zip(original, ids, strict=True)], list(real)


# --- the table: check → a right answer in another style than the package's ----------

ANSWERS = {
    "albert.count": albert_right,
    "bert.attention": attention_in_loops,
    "beyond.span_corruption": beyond_right,
    "boundary.boundary_rows": boundary_rows_by_runs,
    "classification.mean": classification_with_numpy,
    "coreference.b_cubed": by_pairs_of_clusters,
    "directions.mask": in_loops,
    "electra.replace": electra_in_a_loop,
    "inputs.batch": inputs_right,
    "labeled_masking.pmi": from_the_left,
    "masking.corrupt": token_by_token,
    "name_ranks.rank": name_ranks_with_numpy,
    "old_notes.lower_case": lower_case_by_letters,
    "pretraining.plateau": counted,
    "pretraining_spanbert.loss": loss_token_by_token,
    "question_answering.answer": by_loops,
    "real_questions.draw": drawn_by_counts,
    "relation_extraction.directed": from_precision_and_recall,
    "roberta.positions": with_a_loop,
    "sentence_pairs.pair": pair_by_coin,
    "sentence_tasks.matthews": sentence_tasks_with_numpy,
    "single_sequence.packing": packed_greedily,
    "span_masking.cut": cut_in_a_loop,
    "squad.f1": shared_one_by_one,
    "splinter.clusters": clusters_by_striking_out,
    "wordpiece.split": greedy,
}


def every_diagnosis() -> dict:
    """MODULE.NAME → the function that gives the sentence, for each exercise of the book."""
    found = {}
    for one in pkgutil.iter_modules(exercises.__path__):
        module = importlib.import_module(f"{exercises.__name__}.{one.name}")
        names = [name for name in vars(module) if name.startswith("diagnose_")]
        found |= {f"{one.name}.{name[9:]}": getattr(module, name) for name in names}
    return found


CHECKS = every_diagnosis()
TABLES = {name: check for name, check in CHECKS.items() if isinstance(check, Diagnosis)}
MISTAKES = [
    (name, mistake, sentence)
    for name, check in TABLES.items()
    for mistake, sentence in check.mistakes
]


def test_every_check_has_a_row():
    assert sorted(ANSWERS) == sorted(CHECKS)
    assert len(CHECKS) - len(TABLES) == 2  # drawn at random: corrupt and pair


@pytest.mark.parametrize("name", ANSWERS)
def test_right_answers(name, capsys):
    module, exercise = name.split(".")
    module = importlib.import_module(f"{exercises.__name__}.{module}")
    getattr(module, f"check_{exercise}")(ANSWERS[name])
    assert capsys.readouterr().out.startswith("Correct: ")
    assert name not in TABLES or TABLES[name](TABLES[name].right).startswith("Correct: ")


@pytest.mark.parametrize("name, mistake, sentence", MISTAKES)
def test_a_likely_mistake_is_named(name, mistake, sentence):
    assert len(TABLES[name].mistakes) == 3
    assert TABLES[name](mistake) == f"Not yet: {sentence}"


@pytest.mark.parametrize("name", CHECKS)
def test_anything_else_is_not_yet(name):
    for attempt in (lambda *case: None, lambda *case: 7.5, lambda *case: [7.5], lambda: 1):
        said = CHECKS[name](attempt)
        assert said.startswith("Not yet: ") and "\n" not in said, said


def masked_share(masked, random):
    def attempt(ids, selected, rng, mask_id, random_ids):
        draw = rng.random(len(ids))
        made = np.where(selected & (draw < masked), mask_id, ids)
        replaced = selected & (draw >= masked) & (draw < masked + random)
        return np.where(replaced, rng.choice(random_ids, len(ids)), made)

    return attempt


def two_draws(ids, selected, rng, mask_id, random_ids):
    random, kept = (rng.random(len(ids)) < 0.1 for _ in range(2))
    seen = np.where(random, rng.choice(random_ids, len(ids)), np.where(kept, ids, mask_id))
    return np.where(selected, seen, ids)


@pytest.mark.parametrize(
    "attempt, sentence",
    [
        (two_draws, "drawn independently"),
        (masked_share(1, 0), "every selected token became"),
        (masked_share(0.7, 0.2), "they should be 80/10/10"),
        (lambda ids, *rest: ids[:-1], "the shape"),
        (lambda ids, *rest: ids + 1, "are not masked"),
    ],
)
def test_mistakes_of_corruption(attempt, sentence):
    assert sentence in corrupting.diagnose_corrupt(attempt)


def changed_pair(change):
    return lambda *case: change(*case[1:4], *pair_by_coin(*case))


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda n, at, stop, a, b, label, after: (a, b, label, stop), "lose the replaced part"),
        (lambda n, at, stop, a, b, label, after: (a, b, 1 - label, after), "a label is wrong"),
        (
            lambda n, at, stop, a, b, label, after: (
                (a, [sentence_pairs.DOCUMENTS[n][0]], label, after)
                if label == NOT_NEXT
                else (a, b, label, after)
            ),
            "from the same document",
        ),
    ],
)
def test_mistakes_of_pairs(change, sentence):
    assert sentence in sentence_pairs.diagnose_pair(changed_pair(change))
