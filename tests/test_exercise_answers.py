"""Every check of the exercises takes right answers in two styles, and tells three typical mistakes
apart.

One table for all, so that a check without a row is refused."""

import importlib
import inspect
import math
import pkgutil
from collections import Counter
from itertools import groupby

import numpy as np
import pytest
import torch

from spanbert_tutorial import exercises
from spanbert_tutorial.bert.wordpiece import pair_scores, split_word
from spanbert_tutorial.exercises import (
    albert,
    bert,
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
from spanbert_tutorial.spanbert.span_masking import clipped_geometric, spans_of
from spanbert_tutorial.tasks.squad import f1, normalize
from spanbert_tutorial.tasks.windows import decode


def albert_right(vocabulary, embedding, hidden, layers, sharing):
    attention = 4 * hidden**2 + 6 * hidden
    feed_forward = 8 * hidden**2 + 7 * hidden
    around = (vocabulary + 512 + 2 + 2) * embedding + (embedding + 1) * hidden
    attention *= 1 if sharing in ("all", "attention") else layers
    feed_forward *= 1 if sharing in ("all", "feed_forward") else layers
    return around + attention + feed_forward


def bert_right(query, key, value, real):
    scores = (query @ key.T / math.sqrt(query.shape[-1])).masked_fill(~real, -1e9)
    return scores.softmax(-1) @ value


def counted(ids, pad_id):
    """The same by another way: a Counter and the sum of c/N · ln(N/c)."""
    counts = Counter(token for row in ids.tolist() for token in row if token != pad_id)
    total = sum(counts.values())
    return sum(c / total * math.log(total / c) for c in counts.values())


def bent(step, peak, warmup, steps):
    """The same by another way: the lower of two straight lines."""
    return peak * max(0.0, min((step - 1) / warmup, (steps - step + 1) / (steps - warmup)))


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


def by_spans(ids, selected, sentinels):
    source = []
    target = []
    start = 0
    spans = spans_of(np.array(selected)).tolist()
    for mark, (a, b) in zip(sentinels, spans, strict=False):
        source += [*ids[start:a], mark]
        target += [mark, *ids[a : b + 1]]
        start = b + 1
    return np.array([*source, *ids[start:]]), np.array([*target, sentinels[len(spans)]])


def source_of(change):
    return lambda ids, selected, marks: (
        change(ids, selected, marks),
        beyond_right(ids, selected, marks)[1],
    )


def target_of(change):
    return lambda ids, selected, marks: (
        beyond_right(ids, selected, marks)[0],
        change(ids, selected, marks),
    )


def behind(ids, selected, marks):
    parts = zip(marks, spans_of(np.array(selected)).tolist(), strict=False)
    return [token for mark, (a, b) in parts for token in (*ids[a : b + 1], mark)]


def too_short(ids, selected, marks):
    spans = spans_of(np.array(selected)).tolist()
    parts = zip(marks, spans, strict=False)
    return [*(token for mark, (a, b) in parts for token in (mark, *ids[a:b])), marks[len(spans)]]


def one_each(ids, selected, marks):
    each = iter(marks)
    return [next(each) if hidden else token for token, hidden in zip(ids, selected, strict=True)]


BEYOND_MISTAKES = [
    (source_of(one_each), "replaces the whole span"),
    (
        source_of(
            lambda ids, selected, _: [
                i for i, hidden in zip(ids, selected, strict=True) if not hidden
            ]
        ),
        "no sentinels: put one",
    ),
    (
        source_of(lambda *given: [90 if i >= 90 else i for i in beyond_right(*given)[0]]),
        "every span the same",
    ),
    (source_of(lambda ids, *_: ids), "cut the spans out"),
    (
        source_of(lambda *given: [i + (i >= 90) for i in beyond_right(*given)[0]]),
        "begin with sentinels",
    ),
    (
        source_of(lambda *given: beyond_right(*given)[0] + beyond_right(*given)[1][-1:]),
        "closing sentinel is in the input",
    ),
    (source_of(lambda *given: beyond_right(*given)[0][::-1]), "the input should be"),
    (target_of(lambda *given: beyond_right(*given)[1][:-1]), "no closing sentinel"),
    (
        target_of(
            lambda ids, selected, _: [i for i, hidden in zip(ids, selected, strict=True) if hidden]
        ),
        "ends of the spans are lost",
    ),
    (target_of(behind), "after their spans"),
    (target_of(lambda *given: [*behind(*given), beyond_right(*given)[1][-1]]), "after their spans"),
    (target_of(too_short), "last token of each span"),
    (target_of(lambda ids, *_: ids), "whole text"),
    (target_of(lambda *given: beyond_right(*given)[1][::-1]), "the target should be"),
    (lambda *given: beyond_right(*given)[::-1], "are swapped"),
    (lambda *_: None, "returns nothing"),
    (lambda ids, *_: ids, "Return a pair, the input and the target"),
    (lambda *given: ([beyond_right(*given)[0]], beyond_right(*given)[1]), "flat list"),
    (lambda ids, *_: ids[99], "IndexError"),
]


CLASSIFICATION_SPECIAL = {"[CLS]", "[SEP]", "[PAD]"}


def with_lists(states, tokens):
    rows = [
        state
        for state, token in zip(states, tokens, strict=True)
        if token not in CLASSIFICATION_SPECIAL
    ]
    return tuple(sum(values) / len(rows) for values in zip(*rows, strict=True))


def classification_with_numpy(states, tokens):
    return np.array(states)[~np.isin(tokens, list(CLASSIFICATION_SPECIAL))].mean(0)


def coreference_sums(one, other):
    """The recall over pairs of clusters."""
    total = sum(len(cluster) for cluster in one)
    return (
        sum(len(set(a) & set(b)) ** 2 / len(a) for a in one for b in other) / total if total else 0
    )


def directions_right(name, real):
    n = len(real)
    square = torch.ones(n, n, dtype=torch.bool)
    shape = {"left-to-right": square.tril(), "right-to-left": square.triu()}.get(
        name, ~torch.eye(n, dtype=torch.bool)
    )
    return shape & real


def in_loops(name, real):
    rules = {"left-to-right": lambda i, j: j <= i, "right-to-left": lambda i, j: i <= j}
    allowed = rules.get(name, lambda i, j: i != j)
    n = len(real)
    return [[float(allowed(i, j) and bool(real[j])) for j in range(n)] for i in range(n)]


def directions_only(name, answer):
    """Right but for one name."""
    return lambda wanted, real: answer(real) if wanted == name else directions_right(wanted, real)


DIRECTIONS_N = 7

DIRECTIONS_SQUARE = torch.ones(DIRECTIONS_N, DIRECTIONS_N, dtype=torch.bool)


def electra_right(original, selected, sampled, real):
    ids = np.where(selected, sampled, original)
    return ids, ids != original, real


def answering(**changes):
    return lambda *given: electra.replace_with(*given, **electra.RIGHT | changes)


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


def relatives_roberta_right(ids, pad_id):
    real = (ids != pad_id).long()
    return real.cumsum(1) * real + pad_id


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


def as_sets(prediction, gold):
    words = set(normalize(prediction).split())
    wanted = set(normalize(gold).split())
    if not words or not wanted:
        return float(words == wanted)
    return 2 * len(words & wanted) / (len(words) + len(wanted))


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


def any_division(word, vocabulary):
    if not word:
        return ["[UNK]"]

    def rest(start):
        if start == len(word):
            return []
        for end in range(len(word), start, -1):
            token = ("##" if start else "") + word[start:end]
            if token in vocabulary and (after := rest(end)) is not None:
                return [token, *after]
        return None

    return rest(0) or ["[UNK]"]


def wordpiece_count(words, thing):
    if isinstance(thing, tuple):
        return sum(n * list(zip(w, w[1:], strict=False)).count(thing) for w, n in words.items())
    return sum(n * w.count(thing) for w, n in words.items())


def wordpiece_score(words, pair):
    return (
        wordpiece_count(words, pair)
        / wordpiece_count(words, pair[0])
        / wordpiece_count(words, pair[1])
    )


def by_shares(masked: float, random: float, *, in_place=False, everywhere=False, one_token=False):
    """An attempt with other shares, or with one of the mistakes."""

    def attempt(ids, selected, rng, mask_id, random_ids):
        made = ids if in_place else ids.copy()
        draw = rng.random(len(ids))
        where = np.ones(len(ids), dtype=bool) if everywhere else selected
        replaced = where & (draw >= masked) & (draw < masked + random)
        made[where & (draw < masked)] = mask_id
        made[replaced] = random_ids[0] if one_token else rng.choice(random_ids, replaced.sum())
        return made

    return attempt


def token_by_token(ids, selected, rng, mask_id, random_ids):
    made = ids.copy()
    for place in np.flatnonzero(selected):
        draw = rng.random()
        made[place] = (
            mask_id if draw < 0.8 else rng.choice(random_ids) if draw < 0.9 else ids[place]
        )
    return made


def one_draw_for_the_block(ids, selected, rng, mask_id, random_ids):
    draw = rng.random()
    shown = (
        np.full(len(ids), mask_id)
        if draw < 0.8
        else rng.choice(random_ids, len(ids))
        if draw < 0.9
        else ids
    )
    return np.where(selected, shown, ids)


def random_over_masks(ids, selected, rng, mask_id, random_ids):
    draw = rng.random(len(ids))
    made = np.where(selected & (draw < 0.8), mask_id, ids)
    return np.where(selected & (draw < 0.9), rng.choice(random_ids, len(ids)), made)


IS_NEXT = 0

NOT_NEXT = 1


def sentence_pairs_pair(
    documents, number, at, stop, rng, *, lowest=1, share=0.5, labels=(IS_NEXT, NOT_NEXT), home=None
):
    """A right attempt with knobs for the wrong ones."""
    middle = int(rng.integers(at + lowest, stop))
    first = documents[number][at:middle]
    rest = documents[number][middle:stop]
    if rng.random() >= share:
        return first, rest, labels[0], stop
    others = [document for i, document in enumerate(documents) if i != number]
    other = documents[home] if home is not None else others[rng.integers(len(others))]
    begin = int(rng.integers(len(other)))
    return first, other[begin : begin + 2], labels[1], middle


def from_the_same_document(documents, number, at, stop, rng):
    first, second, label, next_at = sentence_pairs_pair(documents, number, at, stop, rng)
    return first, [documents[number][0]] if label == NOT_NEXT else second, label, next_at


def consumes_the_replaced_part(*given):
    return *sentence_pairs_pair(*given)[:3], given[3]


def reads_twice(documents, number, at, stop, rng):
    first, second, label, _ = sentence_pairs_pair(documents, number, at, stop, rng)
    return first, second, label, at + len(first)


def single_sequence_flat(documents):
    return [token for document in documents for sentence in document for token in sentence]


def across_documents(documents, n):
    return single_sequence.pack([[sentence for document in documents for sentence in document]], n)


def splits(documents, n):
    whole = [single_sequence_flat([document]) for document in documents]
    return [text[i : i + n - 2] for text in whole for i in range(0, len(text), n - 2)]


def without_full_test(documents, n):  # closes a block when it is full, and forgets what is left
    blocks = []
    block = []
    for sentence in (sentence for document in documents for sentence in document):
        if len(block) + len(sentence) > n - 2:
            blocks.append(block)
            block = []
        block = block + sentence
    return blocks


def with_decode(windows, scores, threshold, longest):
    """By the package."""
    (best, *_), null = decode(windows, iter(scores), max_answer_length=longest)
    return None if null - best.score > threshold else (best.first, best.last)


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
    return directions_only(name, answer)


square = DIRECTIONS_SQUARE


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
    "albert.count": ([albert_right, albert.counted()], first_three(albert.MISTAKES)),
    "bert.attention": (
        [bert_right, attention_in_loops],
        first_three(bert.MISTAKES),
    ),
    "beyond.span_corruption": (
        [beyond_right, by_spans],
        first_three(BEYOND_MISTAKES),
    ),
    "boundary.boundary_rows": (
        [
            lambda spans, n: boundary.boundary_rows_with(spans, n, **boundary.RIGHT),
            boundary_rows_by_runs,
        ],
        with_settings(boundary.boundary_rows_with, boundary.RIGHT, boundary.MISTAKES),
    ),
    "classification.mean": (
        [with_lists, classification_with_numpy],
        first_three(classification.MISTAKES),
    ),
    "coreference.b_cubed": (
        [
            coreference.b_cubed,
            lambda key, response: (
                coreference_sums(response, key),
                coreference_sums(key, response),
            ),
        ],
        first_three(coreference.MISTAKES),
    ),
    "directions.pattern": (
        [directions_right, in_loops],
        [
            of_name("left-to-right", lambda real: square.tril()),
            of_name("left-to-right", lambda real: square & real),
            of_name("all but yourself", lambda real: square & real),
        ],
    ),
    "electra.replace": (
        [electra_right, answering()],
        with_settings(electra.replace_with, electra.RIGHT, electra.MISTAKES),
    ),
    "inputs.batch": (
        [inputs_right, lambda *case: inputs.batch_with(*case, **inputs.RIGHT)],
        with_settings(inputs.batch_with, inputs.RIGHT, inputs.MISTAKES),
    ),
    "labeled_masking.pmi": (
        [labeled_masking.best_cut, from_the_left],
        first_three(labeled_masking.MISTAKES),
    ),
    "masking.corrupt": (
        [by_shares(0.8, 0.1), token_by_token],
        [one_draw_for_the_block, random_over_masks, by_shares(1, 0)],
    ),
    "name_ranks.rank": (
        [name_ranks.rank, name_ranks_with_numpy],
        first_three(name_ranks.MISTAKES),
    ),
    "old_notes.lower_case": (
        [old_notes.lower_case, lower_case_by_letters],
        first_three(old_notes.MISTAKES),
    ),
    "pretraining.plateau": (
        [pretraining.entropy, counted],
        first_three(pretraining.PLATEAU_MISTAKES),
    ),
    "pretraining.schedule": (
        [pretraining.rate, bent],
        first_three(pretraining.SCHEDULE_MISTAKES),
    ),
    "pretraining_spanbert.loss": (
        [pretraining_spanbert.paper_loss, loss_token_by_token],
        first_three(pretraining_spanbert.MISTAKES),
    ),
    "question_answering.answer": (
        [with_decode, by_loops],
        with_settings(question_answering.answer_with, {}, question_answering.MISTAKES),
    ),
    "real_questions.draw": (
        [real_questions.drawn_mean, drawn_by_counts],
        [real_questions.each_once, real_questions.mean_of_means, real_questions.over_all],
    ),
    "relation_extraction.directed": (
        [
            relation_extraction.directed_f1,
            from_precision_and_recall,
        ],
        first_three(relation_extraction.MISTAKES),
    ),
    "roberta.positions": (
        [relatives_roberta_right, with_a_loop],
        first_three(roberta.MISTAKES),
    ),
    "sentence_pairs.pair": (
        [sentence_pairs_pair, pair_by_coin],
        [from_the_same_document, consumes_the_replaced_part, reads_twice],
    ),
    "sentence_tasks.matthews": (
        [sentence_tasks.matthews, sentence_tasks_with_numpy],
        first_three(sentence_tasks.MISTAKES),
    ),
    "single_sequence.packing": (
        [single_sequence.pack, packed_greedily],
        [across_documents, splits, without_full_test],
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
        [as_sets, lambda *both: 100 * f1(*both), squad_exact],
    ),
    "splinter.clusters": (
        [splinter.clusters_with, clusters_by_striking_out],
        with_settings(splinter.clusters_with, splinter.RIGHT, splinter.MISTAKES),
    ),
    "wordpiece.split": (
        [split_word, greedy],
        [
            lambda *given: greedy(*given, mark=""),
            lambda *given: greedy(*given, shortest=True),
            any_division,
        ],
    ),
    "wordpiece.score": (
        [wordpiece_score, lambda counts, pair: pair_scores(counts)[pair]],
        [
            wordpiece_count,
            lambda counts, pair: wordpiece_count(counts, pair) / wordpiece_count(counts, pair[0]),
            lambda counts, pair: wordpiece_score(dict.fromkeys(counts, 1), pair),
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
