"""Checks for the exercises of Part I. Chapters: `book/bert/wordpiece`, `book/bert/bert`,
`book/bert/directions`, `book/bert/masking`, `book/bert/sentence_pairs`, `book/bert/pretraining`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.special import entr
from torch import Tensor

from spanbert_tutorial.bert.fast_attention import attention_probs
from spanbert_tutorial.bert.inputs import frame
from spanbert_tutorial.bert.sentence_pairs import IS_NEXT, NOT_NEXT
from spanbert_tutorial.bert.wordpiece import split_word
from spanbert_tutorial.exercises.diagnosis import Check, plain, say, stopped
from spanbert_tutorial.pretraining.directions import direction_mask
from spanbert_tutorial.tasks.classification import Framed, shortened
from spanbert_tutorial.tasks.fine_tuning import stacked

# --- wordpiece: the longest match first ---------------------------------------------

# Small vocabularies in which common mistakes give answers of their own.
ROWS = {"row", "rower", "r", "s", "##o", "##w", "##e", "##r", "##s", "##er", "##ers", "##rs"}

#: Prints whether `attempt(word, vocabulary)` divides a word, longest match first.
check_split = Check(
    [
        ("rowers", ROWS),
        ("row", ROWS),
        ("sow", {"s", "so", "##w", "w", "##ow"}),
        ("rowing", ROWS),  # nothing covers the i
        ("unable", {"un", "una", "##able", "##bl"}),  # the longest match comes first
        ("able", {"##able", "##ble"}),  # "able" only goes on
        ("sand", {"s", "and", "##n"}),  # "and" only begins words
        ("", ROWS),
    ],
    split_word,
    {
        "you left out ##: those that do not begin the word carry ##.": lambda *case: [
            token.strip("#") for token in split_word(*case)
        ],
        "the empty word has no tokens, so it is unknown: return [UNK].": lambda word, vocabulary: (
            split_word(word, vocabulary) if word else []
        ),
        "you only look up whole words. Look for the longest match at "
        "each position.": lambda word, vocabulary: [word if word in vocabulary else "[UNK]"],
    },
    "the longest match first, ## inside the word, and [UNK] for the whole word when a match is "
    "missing.",
    returns="a list of tokens, such as ['rower', '##s']",
)

# --- bert: attention of one head, and a batch of pairs ------------------------------

FIVE, WIDTH = 5, 4  # tokens, the last of them padding; width of the head
DRAWN = torch.randn(3, FIVE, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

#: Prints whether `attempt(query, key, value: [n,d], real: bool[n]) -> [n,d]` is attention.
check_attention = Check(
    [(*DRAWN, torch.arange(FIVE) < FIVE - 1)],
    lambda query, key, value, real: attention_probs(query, key, real) @ value,
    {
        "you mask padding after softmax, so the other weights no longer sum to 1: "
        "set its scores to -inf before softmax.": lambda query, key, value, real: (
            (attention_probs(query, key, None) * real) @ value
        ),
        "you do not divide the scores by √d, so the weights are too sharp: "
        "d is query.shape[-1].": lambda query, key, value, real: (
            attention_probs(query * WIDTH**0.5, key, real) @ value
        ),
        "you do not mask padding: its tokens still get weight.": lambda query, key, value, real: (
            attention_probs(query, key, None) @ value
        ),
    },
    "scaled, masked before softmax, one distribution for each query.",
    returns="a tensor of the shape [n,d]",
)


def batch(pairs: list, longest: int, *, last_segment: int = 1) -> tuple[Tensor, ...]:
    """The exercise's answer. last_segment: of the final [SEP]."""
    rows = []
    for pair in pairs:
        rows.append(Framed(*frame(*shortened(pair, longest - 3), cls_id=101, sep_id=102)))
        rows[-1].segments[-1] = last_segment
    return tuple(stacked(rows, pad_id=0).values())


#: Prints whether `attempt(pairs, longest)` gives ids, segments and mask [B,n] of a batch of pairs.
check_batch = Check(
    [  # rows of different length, pairs to cut (a tie among them), one that just fits
        ([([11, 12, 13, 14], [21, 22, 23]), ([31, 32], [41]), ([51], [61, 62, 63, 64])], 512),
        ([([11, 12, 13, 14, 15, 16], [21, 22, 23]), ([31], [41, 42]), ([51, 52], [61] * 8)], 9),
        ([([11, 12, 13, 14], [21, 22, 23, 24]), ([31, 32, 33], [41])], 8),
        ([([11, 12], [21, 22, 23])], 8),
    ],
    batch,
    {
        "you cut the row after framing, so a [SEP] is lost. Cut the sentences first, then frame "
        "them.": lambda pairs, longest: [part[:, :longest] for part in batch(pairs, 10_000)],
        "you put the final [SEP] in segment 0. It closes the second sentence, "
        "in segment 1.": lambda *case: batch(*case, last_segment=0),
        "you inverted the mask. It is 1 at real tokens and 0 at padding.": lambda *case: (
            *batch(*case)[:2],
            ~batch(*case)[2],
        ),
    },
    "one [CLS], two [SEP], each in its own segment; the mask is 1 at real tokens.",
    returns="three arrays [B,n]: ids, segments, mask",
    read=lambda value: [plain(np.asarray(part).astype(int)) for part in value],
)

# --- directions: who may look at whom, with padding ---------------------------------

REAL = torch.tensor([False] + [True] * 4 + [False] * 2)  # four tokens, padding on either side


def direction(name: str, real: Tensor) -> Tensor:
    return direction_mask(name, real[None])[0]


def rows_of_tokens(answer: Any) -> list:
    """The rows of real tokens; what padding looks at does not count."""
    pattern = np.asarray(answer).astype(float)
    assert pattern.shape == (len(REAL), len(REAL))
    return pattern[REAL.numpy()].tolist()


#: Prints whether `attempt(name, real: bool[n])` gives the mask bool[n,n] for each of three names.
check_mask = Check(
    [(name, REAL) for name in ("left-to-right", "right-to-left", "all but yourself")],
    direction,
    {
        "your diagonal is missing: a token may look at itself, and the first would "
        "see nothing at all (a strict triangle).": lambda name, real: (
            direction(name, real) & ~torch.eye(len(real), dtype=torch.bool)
        ),
        "you let tokens look at padding. Close the columns "
        "where `real` is False.": lambda name, real: direction(name, torch.ones_like(real)),
        "rows and columns are swapped: row i is for the token that looks.": lambda name, real: (
            direction(name, real).T & real
        ),
    },
    "rows attend, columns are attended to, and nobody attends to padding.",
    returns="a mask [n,n]: one row per token that looks",
    read=rows_of_tokens,
)

# --- masking: 80/10/10 --------------------------------------------------------------

MASK_ID = 4
TOKENS = 60_000
RANDOM_IDS = np.arange(5, 100)  # never an original id, so each token shows what happened to it
WANTED = (0.8, 0.1, 0.1)
INDEPENDENT = (
    "unchanged and random were drawn independently, one after the other. "
    "Draw once for each token and cut that one number at 0.8 and 0.9"
)
ALL = "every selected token became [MASK]. One in ten gets a random token, one in ten stays"
# (masked, random, kept) as common mistakes give them, and what to say.
MISTAKES = {(0.81, 0.10, 0.09): INDEPENDENT, (0.81, 0.09, 0.10): INDEPENDENT, (1, 0, 0): ALL}


def check_corrupt(attempt: Callable[..., np.ndarray]) -> None:
    """Prints whether `attempt(ids, selected, rng, mask_id, random_ids)` does 80/10/10 token by
    token."""
    say(diagnose_corrupt(attempt))


def diagnose_corrupt(attempt: Callable[..., np.ndarray]) -> str:
    """One sentence: correct, or the likely mistake."""
    ids = np.arange(100, 100 + 2 * TOKENS)
    selected = ids % 2 == 0
    rng = np.random.default_rng(0)
    try:
        made = np.asarray(attempt(ids.copy(), selected, rng, MASK_ID, RANDOM_IDS))
    except Exception as error:  # whatever the reader's code raises
        return stopped(error)
    if made.shape != ids.shape:
        return f"Not yet: {len(ids)} ids went in and the shape {made.shape} came out."
    if (made != ids)[~selected].any():
        return "Not yet: tokens that are not masked have changed."
    masked, kept = (made[selected] == MASK_ID).mean(), (made == ids)[selected].mean()
    shares = (masked, 1 - masked - kept, kept)
    said = "/".join(f"{100 * share:.1f}" for share in shares)
    for known, sentence in MISTAKES.items():
        if np.abs(np.subtract(shares, known)).max() < 0.005:
            return f"Not yet: your shares are {said}: {sentence}."
    if np.abs(np.subtract(shares, WANTED)).max() > 0.005:
        return f"Not yet: your shares are {said}; they should be 80/10/10 for [MASK], random, kept."
    others = made[selected & (made != MASK_ID) & (made != ids)]
    if not np.isin(others, RANDOM_IDS).all() or len(np.unique(others)) == 1:
        return "Not yet: each random token needs a draw of its own, from `random_ids`."
    return f"Correct: {said} for [MASK], random and kept."


# --- sentence_pairs: one pair from a chunk ------------------------------------------

# Every sentence is another one, so that a sentence tells where it comes from.
DOCUMENTS = [[f"{name}{i}" for i in range(1, 8)] for name in "abcd"]
CHUNKS = [(1, 0, 5), (0, 2, 6), (2, 3, 7), (3, 4, 6)]  # document, first sentence, end
DRAWS = 100  # times each chunk is tried
FAIR = (0.35, 0.65)  # 400 tosses of a fair coin are outside less than once in a billion times


def check_pair(attempt: Callable[..., tuple]) -> None:
    """Prints whether `attempt(documents, number, at, stop, rng)` makes a pair from one chunk as
    BERT does: (first, second, label, next_at)."""
    say(diagnose_pair(attempt))


def diagnose_pair(attempt: Callable[..., tuple]) -> str:
    """One sentence: correct, or the likely mistake. The chunk is `documents[number][at:stop]`."""
    rng = np.random.default_rng(0)
    labels, splits = [], set()
    for number, at, stop in CHUNKS * DRAWS:
        try:
            first, second, label, next_at = attempt(DOCUMENTS, number, at, stop, rng)
            problem = wrong_pair(number, at, stop, list(first), list(second), label, next_at)
        except Exception as error:  # whatever the reader's code raises
            return stopped(error)
        if problem:
            return f"Not yet: {problem}."
        labels.append(label)
        splits.add((number, len(first)))
    share = float(np.mean(labels))
    if not FAIR[0] < share < FAIR[1]:
        return f"Not yet: {share:.0%} of the pairs are NotNext. Toss a fair coin for each pair."
    if len(splits) < sum(stop - at - 1 for _, at, stop in CHUNKS):
        return "Not yet: some splits of a chunk never occur. Draw from at + 1 to stop − 1."
    return "Correct: a random split, a fair coin, and no sentence lost."


def wrong_pair(
    number: int, at: int, stop: int, first: list, second: list, label: int, next_at: int
) -> str:
    """What is wrong with one pair; "" if nothing is."""
    chunk = DOCUMENTS[number][at:stop]
    run = " ".join(map(str, second))
    homes = [i for i, document in enumerate(DOCUMENTS) if run in " ".join(document)]
    replaced = second != chunk[len(first) :]
    after = at + len(first) if replaced else stop
    problems = {
        "a pair is the chunk's beginning, then its rest or a run of sentences of another document": (
            first not in [chunk[:size] for size in range(1, len(chunk))] or len(homes) != 1
        ),
        "you take a NotNext segment from the same document. Draw it from another one": (
            replaced and homes == [number]
        ),
        "a label is wrong. Here, as in transformers, 0 is IsNext and 1 is NotNext": (
            label != (NOT_NEXT if replaced else IS_NEXT)
        ),
        "you lose the replaced part of the chunk after a NotNext pair. It is in no pair yet, so "
        "the next chunk begins with it": replaced and next_at == stop,
        f"the next chunk begins at {next_at}; it should be {after}": next_at != after,
    }
    return next((sentence for sentence, found in problems.items() if found), "")


# --- pretraining: the unigram entropy -----------------------------------------------

VOCABULARY = 10
BLOCKS = (  # of ids, padded on the right with 0
    [[5, 6, 5, 7], [5, 6, 0, 0]],
    [[3, 3, 3, 3]],
    [[4, 9, 4, 4, 8], [9, 4, 0, 0, 0], [4, 0, 0, 0, 0]],
)


def entropy(ids: np.ndarray, pad_id: int) -> float:
    counts = np.bincount(ids[ids != pad_id])
    return entr(counts / counts.sum()).sum()  # in nats


#: Prints whether `attempt(ids, pad_id)` is the unigram entropy in nats of the real tokens in ids.
check_plateau = Check(
    [(np.array(ids), 0) for ids in BLOCKS],
    entropy,
    {
        "you count padding as a token. Take the real tokens only.": lambda ids, pad: entropy(
            ids, -1
        ),
        "this is in bits. A loss in nats needs the natural logarithm.": lambda *case: (
            entropy(*case) / np.log(2)
        ),
        "you take the frequencies block by block. Count over the whole text, then take "
        "the entropy once.": lambda ids, pad: np.mean([entropy(row, pad) for row in ids]),
    },
    "frequencies alone get no lower.",
    returns="one number",
)
