"""Ways beyond BERT: what XLNet, BART, T5, DeBERTa and GPT-3 change. Chapter:
`book/relatives/beyond`.

First one encoder trained and used in two ways, auto-encoding and auto-regressive. Then the changes,
each as small as it can be shown: an order as attention patterns, two formats for hidden spans,
attention by content and by distance. All systems side by side: `systems`. Several seeds of both
ways: `experiments.beyond_ways`. Sources: XLNet §2, T5 §3.1.4, BART §2.2, DeBERTa §3.1. Shapes: B
batch, n sequence, d width of a head, V vocabulary, k spans, t chosen tokens.
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.inputs import NO_TARGET, masked_labels
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.spanbert.span_masking import spans_of

CANDIDATES = (
    250  # texts that are scored in one pass when every token of the vocabulary is tried in a gap
)

# --- any order, as attention patterns ------------------------------------------------


def order_patterns(order: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Who may look at whom when the places are predicted in this order: (content, query), bool
    [n,n] each.

    content: a token looks at itself and at all that come earlier in the order. query: what predicts
    a token looks only at those that come earlier, so the first sees nothing. The order 0, 1, 2, …
    gives left-to-right. XLNet §2.3. Raises InputError unless every place 0 to n - 1 stands there
    once.
    """
    places = torch.as_tensor(list(order), dtype=torch.long)
    n = len(places)
    if not torch.equal(places.sort().values, torch.arange(n)):
        raise InputError(
            f"the order {places.tolist()} is no order of {n} places: name each of 0 to {n - 1} "
            f"once."
        )
    rank = torch.empty(n, dtype=torch.long)
    rank[places] = torch.arange(n)
    return rank[:, None] >= rank, rank[:, None] > rank


# --- one encoder, two ways ----------------------------------------------------------


class LeftToRight(nn.Module):
    """Encoder and head of a masked language model (they are shared, not copied) as an
    auto-regressive model: the text stands there undamaged, nobody looks to the right, the state of
    token i names token i + 1.

    Called with a batch of the objective `mlm`, whose originals it puts back, it returns its loss.
    every: whether every token is a target, or only those that the batch has chosen for masking, so
    that both ways have as many targets.
    """

    def __init__(self, model: PretrainingModel, every: bool = True) -> None:
        super().__init__()
        self.encoder = model.encoder
        self.masked_language_model = model.masked_language_model
        self.every = every

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean over the targets in nats}; [CLS], before which nothing stands, is never a
        target."""
        ids = batch["input_ids"].clone()
        rows, places = (batch["labels"] != NO_TARGET).nonzero(as_tuple=True)
        ids[rows, places] = masked_labels(batch)
        if self.every:
            rows, before = batch["attention_mask"].bool()[:, 1:].nonzero(as_tuple=True)
            places = before + 1
        logits = self.masked_language_model(self.states(ids)[rows, places - 1])  # [t,V]
        return {"loss": F.cross_entropy(logits, ids[rows, places])}

    def states(self, ids: Tensor) -> Tensor:
        """[B,n] -> [B,n,H]; padding stands on the right, where no token looks."""
        content, _ = order_patterns(range(ids.shape[1]))
        return self.encoder(ids, attention_mask=content.to(ids.device).expand(len(ids), -1, -1))

    @torch.no_grad()
    def chain_rule(self, ids: Tensor, first: int = 1) -> Tensor:
        """log P(token | all tokens before it) in nats for the places `first` to n - 1, [B,n-first].
        The sum of a row from place 1 on is the log-probability of its whole text after [CLS]."""
        log_p = self.masked_language_model(self.states(ids)[:, first - 1 : -1]).log_softmax(
            -1
        )  # [B,n-first,V]
        return log_p.gather(-1, ids[:, first:, None]).squeeze(-1)


@torch.no_grad()
def pseudo_log_likelihood(model: PretrainingModel, ids: Tensor, mask_id: int) -> Tensor:
    """log P(token | all other tokens) in nats, [n-2], each token in turn behind [MASK], [CLS] and
    [SEP] left out.

    ids: [n], one sequence. The sum is the pseudo-log-likelihood: it compares texts, but it is not
    the logarithm of a probability. It costs n - 2 passes, where the chain rule costs one.
    """
    places = torch.arange(1, len(ids) - 1)
    rows = ids.repeat(len(places), 1)
    rows[torch.arange(len(places)), places] = mask_id
    log_p = model.masked_language_model(
        model.encoder(rows)[torch.arange(len(places)), places]
    ).log_softmax(-1)
    return log_p.gather(-1, ids[places, None]).squeeze(-1)


@torch.no_grad()
def gap_by_chain_rule(model: LeftToRight, ids: Tensor, place: int) -> Tensor:
    """P(token at `place` | all other tokens), [V], of a model that only looks left: the whole text
    is scored with each of the V tokens in the gap, and the scores are divided by their sum (Bayes'
    rule). ids: [n]; place: 1 to n - 1."""
    vocabulary = len(model.masked_language_model.bias)
    scores = []
    for tokens in torch.arange(vocabulary).split(CANDIDATES):
        rows = ids.repeat(len(tokens), 1)
        rows[:, place] = tokens
        scores.append(
            model.chain_rule(rows, place).sum(dim=1)
        )  # what stands before the gap is the same for all
    return torch.cat(scores).softmax(-1)


@torch.no_grad()
def continued(model: LeftToRight, ids: Tensor, end: int, most: int) -> Tensor:
    """ids [n] with at most `most` further tokens, each the likeliest one; it stops behind the token
    `end`."""
    for _ in range(most):
        following = model.masked_language_model(model.states(ids[None])[0, -1]).argmax()
        ids = torch.cat([ids, following[None]])
        if following == end:
            break
    return ids


# --- two formats for hidden spans ---------------------------------------------------


def span_corruption(
    ids: np.ndarray, masked: np.ndarray, sentinels: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """T5's (input, target), int each: a sentinel of its own stands for each span; the target is
    each sentinel and what it stands for, and one more sentinel at the end. T5 §3.1.4.

    ids: int [n]; masked: bool [n], as from `SpanMasking`; sentinels: ids that stand nowhere in
    the text. Raises InputError when there are fewer than k + 1 of them.
    """
    spans = spans_of(masked)
    if len(sentinels) < len(spans) + 1:
        raise InputError(
            f"{len(spans)} spans need {len(spans) + 1} sentinels, not {len(sentinels)}: add some."
        )
    parts = [
        np.concatenate([[mark], ids[a : b + 1]])
        for mark, (a, b) in zip(sentinels, spans, strict=False)
    ]
    target = np.concatenate([*parts, [sentinels[len(spans)]]]).astype(np.int64)
    return _with_marks(ids, spans, sentinels[: len(spans)]), target


def text_infilling(ids: np.ndarray, masked: np.ndarray, mask_id: int) -> np.ndarray:
    """BART's input: one [MASK] for each span, however long it is. The target is the whole text.
    BART §2.2 (which also puts [MASK] where nothing is missing; not here). ids: int [n]; masked:
    bool [n]."""
    spans = spans_of(masked)
    return _with_marks(ids, spans, [mask_id] * len(spans))


def _with_marks(ids: np.ndarray, spans: np.ndarray, marks: Sequence[int]) -> np.ndarray:
    """The ids with one mark in the place of each span. spans: int [k,2]; marks: k of them."""
    kept = []
    start = 0
    for mark, (first, last) in zip(marks, spans.tolist(), strict=True):
        kept += [ids[start:first], [mark]]
        start = last + 1
    return np.concatenate([*kept, ids[start:]]).astype(np.int64)


# --- attention by content and by distance -------------------------------------------


def distance_rows(n: int, farthest: int) -> Tensor:
    """Row of the distance table for each pair, int64 [n,n]: i - j + farthest, cut off to 0 …
    2·farthest - 1. DeBERTa §3.1, δ(i,j); `farthest` is its k."""
    place = torch.arange(n)
    return (place[:, None] - place + farthest).clamp(0, 2 * farthest - 1)


def disentangled_scores(
    query: Tensor,
    key: Tensor,
    distance_query: Tensor,
    distance_key: Tensor,
    as_released: bool = False,
) -> dict[str, Tensor]:
    """The three parts of DeBERTa's attention scores for one head, [n,n] each; the weights are the
    softmax of (their sum) / √(3d). DeBERTa §3.1, equation 4.

    query, key: [n,d] of the contents; distance_query, distance_key: [2·farthest,d]. as_released:
    the third part takes δ(i,j), as the code in transformers does; the paper writes δ(j,i).
    """
    rows = distance_rows(len(query), len(distance_key) // 2)
    asked = distance_query[rows if as_released else rows.T]  # [n,n,d]
    return {
        "content to content": query @ key.T,
        "content to position": (query[:, None] * distance_key[rows]).sum(-1),
        "position to content": (key[None] * asked).sum(-1),
    }
