"""Splinter: words said again are masked, and the model points at the copy that is left. Chapter:
`book/tasks/released_spanbert`.

The same weights give the same numbers as transformers' Splinter models (tested). Source: Ram and
others, 2021 (arXiv 2101.00438), and the released code; where the two differ, the code. Shapes: B
batch, n sequence, H hidden, k questions.
"""

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import (
    BertEncoder,
    EncoderConfig,
    initialize,
)
from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.bert.masking import check_generator
from spanbert_tutorial.bert.weights import (
    NAME_PAIRS,
    Layout,
    from_huggingface_names,
    load_weights,
)
from spanbert_tutorial.errors import require, shown

QUESTION = "[QUESTION]"
MAX_TOKENS = 10  # of a span
# of a passage; questions for each of its tokens
MOST_QUESTIONS, SHARE = 30, 0.15

# A span of these alone is no question. The released code has 130 words.
STOP_WORDS = frozenset(
    """a about after all also an and any are as at be because been before both but by can could did
    do does for from had has have he her here hers him his how i if in into is it its may me more
    most my no nor not of on one only or other our out over s she so some such t than that the their
    them then there these they this those through to too under up upon was we were what when where
    which while who whom whose why will with would you your""".split()
)

Span = tuple[int, int]  # its first and its last token


# --- what is asked ------------------------------------------------------------------


def recurring_spans(tokens: Sequence[str]) -> list[list[Span]]:
    """Clusters of a passage: each lists the (first, last) of one run of words that is said at least
    twice, from left to right.

    tokens: WordPiece tokens, "##" inside a word. A span has 1 to MAX_TOKENS of them; copies agree
    letter by letter. Longest spans choose first, then those that begin first; no token is in two.
    """
    told = f"tokens is {shown(tokens)}: give a list of tokens."
    require(not isinstance(tokens, str), told)
    runs = runs_of(tokens)
    # stable: equal lengths as they begin
    return disjoint(runs, sorted(runs, key=len, reverse=True))


Runs = dict[tuple[str, ...], list[int]]  # tokens -> where they begin


def runs_of(
    tokens: Sequence[str], stop_words: Set[str] = STOP_WORDS
) -> Runs:
    """Whole words without punctuation (so no special token), and not stop words alone. The released
    code looks up tokens; whole words are the same for a vocabulary that cuts "into" in two."""
    starts = [not token.startswith("##") for token in tokens]
    starts.append(True)  # the end ends a word
    counts = Counter(tokens)
    found: Runs = defaultdict(list)
    for first in np.flatnonzero(starts[:-1]).tolist():
        last = min(first + MAX_TOKENS, len(tokens))
        for end in range(first + 1, last + 1):
            token = tokens[end - 1]
            # nor can anything longer be said twice
            if counts[token] == 1:
                break
            if not token.removeprefix("##").isalnum():
                break
            run = tuple(tokens[first:end])
            words = " ".join(run).replace(" ##", "").lower().split()
            if starts[end] and not stop_words >= {*words}:
                found[run].append(first)
    return found


def disjoint(
    runs: Runs, order: Sequence[tuple[str, ...]]
) -> list[list[Span]]:
    """The clusters of two and more spans that are left when runs choose in this order."""
    clusters = []
    taken: set[int] = set()
    for run in order:
        spans: list[Span] = []
        used: set[int] = set()
        for first in runs[run]:
            places = range(first, first + len(run))
            if not (taken | used).intersection(places):
                spans.append((first, places[-1]))
                used.update(places)
        if len(spans) > 1:
            clusters.append(spans)
            taken |= used
    return clusters


class Questions(NamedTuple):
    """A masked passage. tokens: what the model sees; positions: int64 [k], where each [QUESTION]
    is; answers: int64 [k,2], the first and last token of its answer. Both count in `tokens`."""

    tokens: list[str]
    positions: np.ndarray
    answers: np.ndarray


def ask_questions(
    tokens: Sequence[str],
    rng: np.random.Generator,
) -> Questions:
    """Of each cluster one span stays; the others become [QUESTION].

    The span that stays is the answer, drawn uniformly; every other becomes one [QUESTION], whatever
    its length. Clusters come in random order until there are min(MOST_QUESTIONS, round(SHARE · n))
    questions; later copies stay visible. (The released code turns a span into [QUESTION] and
    padding that nobody attends to, which gives the same states.) Raises InputError as
    `recurring_spans`, and for an rng that is no numpy Generator.
    """
    check_generator(rng)
    clusters = recurring_spans(tokens)
    budget = min(MOST_QUESTIONS, round(SHARE * len(tokens)))
    pairs: list[tuple[Span, Span]] = []  # a masked span, its answer
    for number in rng.permutation(len(clusters)):
        spans = list(clusters[number])
        answer = spans.pop(rng.integers(len(spans)))
        room = budget - len(pairs)
        pairs += [(span, answer) for span in spans[:room]]
    pairs.sort()

    visible = list(tokens)
    stays = np.ones(len(tokens), dtype=bool)
    for (first, last), _ in pairs:
        visible[first] = QUESTION
        stays[first + 1 : last + 1] = False
    # of each token once the others are dropped
    position = stays.cumsum() - 1
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2, 2)
    return Questions(
        [visible[i] for i in np.flatnonzero(stays)],
        position[both[:, 0, 0]],
        position[both[:, 1]],
    )


# --- pointing -----------------------------------------------------------------------


def transform(H: int) -> nn.Sequential:
    """g(x) = LayerNorm(GELU(W x + b))."""
    # epsilon 1e-5, as in transformers, not the encoder's
    return nn.Sequential(nn.Linear(H, H), nn.GELU(), nn.LayerNorm(H))


class SpanSelectionHead(nn.Module):
    """Question-aware span selection (QASS), two bilinear forms.

    start = g_qs(q) · S · g_ks(X)ᵀ for a [QUESTION]'s state q and the states X of all tokens, S being
    `start.weight` transposed; the end likewise, independently.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.query_start = transform(hidden_size)
        self.query_end = transform(hidden_size)
        self.key_start = transform(hidden_size)
        self.key_end = transform(hidden_size)
        H = hidden_size
        self.start = nn.Linear(H, H, bias=False)
        self.end = nn.Linear(H, H, bias=False)
        initialize(self)

    def forward(
        self,
        hidden_states: Tensor,
        positions: Tensor,
        attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Start and end logits, [B,k,n] each; −∞ at padding.

        hidden_states: [B,n,H]; positions: int [B,k], where the questions are; attention_mask:
        [B,n], 0 at padding."""
        row = torch.arange(len(positions))[:, None]
        q = hidden_states[row, positions]  # [B,k,H]
        start = self.start(self.query_start(q))  # [B,k,H]
        end = self.end(self.query_end(q))
        start = start @ self.key_start(hidden_states).mT  # [B,k,n]
        end = end @ self.key_end(hidden_states).mT
        if attention_mask is None:
            return start, end
        padding = attention_mask[:, None] == 0
        return (
            start.masked_fill(padding, -math.inf),
            end.masked_fill(padding, -math.inf),
        )


def selection_loss(
    start: Tensor,
    end: Tensor,
    answers: Tensor,
) -> Tensor:
    """Mean over the questions of ½ (CE start + CE end), in nats.

    0 without a question. start, end: [B,k,n]; answers: int [B,k,2], −100 where a row has fewer
    questions."""
    asked = answers[..., 0] != NO_TARGET  # [B,k]
    first, last = answers[asked].T  # [questions] each
    start, end = start[asked].float(), end[asked].float()
    total = F.cross_entropy(start, first, reduction="sum")
    total = total + F.cross_entropy(end, last, reduction="sum")
    return total / 2 / asked.sum().clamp(min=1)


# --- the model ----------------------------------------------------------------------

QASS = "splinter_qass"
HEAD_PAIRS = (
    ("query_start.0", f"{QASS}.query_start_transform.dense"),
    ("query_start.2", f"{QASS}.query_start_transform.LayerNorm"),
    ("query_end.0", f"{QASS}.query_end_transform.dense"),
    ("query_end.2", f"{QASS}.query_end_transform.LayerNorm"),
    ("key_start.0", f"{QASS}.start_transform.dense"),
    ("key_start.2", f"{QASS}.start_transform.LayerNorm"),
    ("key_end.0", f"{QASS}.end_transform.dense"),
    ("key_end.2", f"{QASS}.end_transform.LayerNorm"),
    ("start", f"{QASS}.start_classifier"),
    ("end", f"{QASS}.end_classifier"),
)
HEAD = Layout("splinter", HEAD_PAIRS)


@dataclass(frozen=True)
class SplinterConfig(EncoderConfig):
    """Sizes, named as in transformers."""

    layout: ClassVar[Layout] = Layout("splinter", NAME_PAIRS)


class SplinterEncoder(BertEncoder):
    """BERT's encoder; only the checkpoint says `splinter`."""

    config_class = SplinterConfig


class Splinter(nn.Module):
    """An encoder with the head: (input_ids [B,n], positions [B,k], attention_mask [B,n]) -> start
    and end logits [B,k,n]."""

    def __init__(self, encoder: BertEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = SpanSelectionHead(encoder.config.hidden_size)

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        hidden_states = self.encoder(
            input_ids, attention_mask=attention_mask
        )
        return self.head(hidden_states, positions, attention_mask)

    @classmethod
    def from_huggingface(
        cls, model_or_path: nn.Module | str | Path
    ) -> Self:
        """As `BertEncoder.from_huggingface`, such as `tau/splinter-base-qass`. A checkpoint without
        the head, such as `tau/splinter-base`, gets an untrained one and a warning; half a head
        raises InputError."""
        encoder, others, source = SplinterEncoder.read(model_or_path)
        model = cls(encoder).eval()
        # its float type
        model.head.to(encoder.embeddings.word_embeddings.weight)
        found, _ = from_huggingface_names(others, HEAD)
        if found:
            load_weights(model.head, found, source, HEAD)
        else:
            told = f"{source} has no {QASS}: the head starts untrained."
            warnings.warn(told, stacklevel=2)
        return model
