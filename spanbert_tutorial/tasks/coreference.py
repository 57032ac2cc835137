"""Coreference resolution by span ranking: which spans are mentions, and which earlier mention each
one refers to. Chapter: `book/tasks/coreference`.

Sources: end-to-end coreference (Lee and others, 2017), with BERT on independent segments (Joshi and
others, 2019), which SpanBERT §4.1 uses. Left out: higher-order refinement and the coarse-to-fine
step (Lee and others, 2018); here the antecedents of a mention are the nearest mentions before it.
Shapes: B documents, S segments, n sequence, H hidden, W words, M labeled mentions, k candidate
spans, m mentions kept, a antecedents of each, G width of a span's vector.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.inputs import NO_TARGET, frame
from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.errors import reading, require
from spanbert_tutorial.tasks.conll import Document, Span, read  # noqa: F401
from spanbert_tutorial.tasks.coreference_scores import score_documents, without_singletons
from spanbert_tutorial.tasks.fine_tuning import Data, FineTuning, padded
from spanbert_tutorial.tasks.task_checkpoints import Predictor
from spanbert_tutorial.text.sentences import split_sentences

# small: its learning rate was better than 5e-4 on validation books of LitBank; spanbert: those of
# the released settings of base
PRESETS = {
    "small": FineTuning(epochs=3, batch_size=4, peak_learning_rate=1e-3, max_length=128),
    "spanbert": FineTuning(20, 4, peak_learning_rate=2e-5, task_learning_rate=1e-4, max_length=384),
}
NO_CLUSTER = "no document has a cluster: give documents with coreference labels."
MAX_WORDS = 10  # of a span, at most
RATIO = 0.25  # λ, mentions kept per word
ANTECEDENTS = 100  # of a mention, at most
# The bias of the mention score at the start: few spans are mentions, and the model need not learn
# this first.
RARE = -3.0
SEGMENTS = 4  # of a document, in one training example
FEATURES = 20  # width of a learned feature; Lee and others (2017)
HIDDEN = 150  # width of the scorers' hidden layer; Lee and others (2017)
# distances in mentions: 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, more
BUCKETS = torch.tensor([2, 3, 4, 5, 8, 16, 32, 64])


# --- documents ----------------------------------------------------------------------


def plain(
    text: str, name: str = "text", mentions: Sequence[Sequence[tuple[int, int]]] = ()
) -> Document:
    """A document from plain text. mentions: clusters of (start, end) in characters, as in the
    almanac. Raises InputError for a text without a word, and for a mention that does not begin and
    end with one."""
    sentences = [words for sentence in split_sentences(text) if (words := split_words(sentence))]
    require(sentences, "the text is empty: write at least one word.")
    offsets = []
    end = 0
    for word in chain(*sentences):  # letter by letter: an invisible sign may stand between two
        start = end = text.index(word[0], end)
        for letter in word:
            end = text.index(letter, end) + 1
        offsets.append((start, end))
    first = {start: word for word, (start, _) in enumerate(offsets)}
    last = {end: word for word, (_, end) in enumerate(offsets)}
    with reading(f"the mentions of {name}", "let each begin and end with a word"):
        clusters = [[(first[start], last[end]) for start, end in cluster] for cluster in mentions]
    return Document(name, sentences, clusters, offsets=offsets)


# --- a document as segments of tokens -----------------------------------------------


class Segmented(NamedTuple):
    """One or more segments of a document, each an input with [CLS] and [SEP]. Words are counted
    from the first word of the first segment."""

    ids: list[np.ndarray]  # S times [n]
    words: np.ndarray  # int [W,3]: segment, first and last position of each word in it
    sentences: np.ndarray  # int [W], number of each word's sentence
    mentions: np.ndarray  # int [M,3]: first and last word, number of the cluster


def segmented(
    document: Document, wordpiece: WordPiece, max_length: int, segments: int | None = None
) -> list[Segmented]:
    """The document in parts of at most `segments` segments (None: in one part).

    Segments have at most `max_length` positions and do not overlap; each ends with a sentence, and
    a longer sentence is cut between words (Joshi and others, 2019). A mention across two parts is
    left out. Raises InputError where a segment has no room for a token.
    """
    room = max_length - 2
    require(room > 0, f"a length of {max_length} has no room beside [CLS] and [SEP]: give more.")
    # a word of control characters has no token
    tokens = [(own or [wordpiece.unk_id])[:room] for own in wordpiece.encode_many(document.words)]
    sizes = np.array([*map(len, tokens)])
    lengths = [*map(len, document.sentences)]
    cuts = [0, *segment_ends(lengths, sizes.tolist(), room)]
    framed = partial(frame, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
    ids = [framed([*chain(*tokens[first:stop])])[0] for first, stop in pairwise(cuts)]
    step = segments or len(ids)
    segment = np.repeat(np.arange(len(ids)), np.diff(cuts))  # of each word
    before = np.cumsum(sizes) - sizes  # tokens of the document before each word
    first = before - before[np.array(cuts)[segment]] + 1  # [CLS] is at position 0
    words = np.stack([segment % step, first, first + sizes - 1], axis=1)
    sentences = np.repeat(np.arange(len(lengths)), lengths)
    clusters = enumerate(document.clusters)
    labeled = [(*mention, number) for number, cluster in clusters for mention in cluster]
    mentions = np.array(labeled, dtype=int).reshape(-1, 3)
    parts = []
    for at in range(0, len(ids), step):
        begin, *_, end = cuts[at : at + step + 1]
        own = mentions[(mentions[:, 0] >= begin) & (mentions[:, 1] < end)] - [begin, begin, 0]
        rows = words[begin:end], sentences[begin:end], own
        parts.append(Segmented(ids[at : at + step], *rows))
    return parts


def segment_ends(sentences: Sequence[int], tokens: Sequence[int], room: int) -> list[int]:
    """The ends of segments of at most `room` tokens, in words, from the words of each sentence and
    the tokens of each word."""
    ends = []
    end = used = 0
    for words in sentences:
        sizes = tokens[end : end + words]
        if used and used + sum(sizes) > room:
            ends.append(end)
            used = 0
        for size in sizes:
            if used + size > room:  # only in a sentence that is too long for one segment
                ends.append(end)
                used = 0
            used += size
            end += 1
    return [*ends, end]


def stacked(parts: Sequence[Segmented], pad_id: int) -> dict[str, Tensor]:
    """Tensors of parts of documents, padded: ids int64 [B,S,n], attention_mask bool [B,S,n]; words
    [B,W,3], sentences [B,W] and mentions [B,M,3] with NO_TARGET as padding."""
    segments = [segment for one in parts for segment in one.ids]  # of all documents
    counts = [len(one.ids) for one in parts]
    real = padded([np.ones_like(segment) for segment in segments], 0)
    mask = padded(real.split(counts), 0).bool()
    mask[:, :, 0] = True  # a padding segment attends to its first position
    return {
        "input_ids": padded(padded(segments, pad_id).split(counts), pad_id),
        "attention_mask": mask,
        "words": padded([one.words for one in parts], NO_TARGET),
        "sentences": padded([one.sentences for one in parts], NO_TARGET),
        "mentions": padded([one.mentions for one in parts], NO_TARGET),
    }


# --- spans: candidates, and which are kept ------------------------------------------


def candidates(sentences: Tensor, segments: Tensor, max_words: int) -> Tensor:
    """All spans of at most `max_words` words of one sentence and segment, int64 [k,2].

    (first, last word), in the order of the text. sentences, segments: the number of each word's
    sentence and segment, [W].
    """
    first = torch.arange(len(sentences), device=sentences.device)[:, None]
    last = first + torch.arange(max_words, device=sentences.device)  # [W,max_words]
    there = last.clamp(max=len(sentences) - 1)
    inside = (last == there) & (sentences[first] == sentences[there])
    inside &= segments[first] == segments[there]
    return torch.stack([first.expand_as(last), last], dim=-1)[inside]


def kept(spans: Sequence[Span], scores: Sequence[float], max_spans: int) -> list[int]:
    """The best spans that cross no better one, in text order.

    Their indices, at most `max_spans`. Lee and others (2017), §5.
    """
    # of kept spans: first word → last word of the longest, last word → first word of the longest
    furthest: dict[int, int] = {}
    earliest: dict[int, int] = {}
    chosen: list[int] = []
    for number in np.argsort(-np.asarray(scores), kind="stable").tolist():
        first, last = spans[number]
        begins = (furthest.get(word, -1) > last for word in range(first + 1, last + 1))
        ends = (earliest.get(word, first) < first for word in range(first, last))
        if len(chosen) < max_spans and not any(begins) and not any(ends):
            chosen.append(number)
            furthest[first] = max(last, furthest.get(first, -1))
            earliest[last] = min(first, earliest.get(last, first))
    return sorted(chosen, key=lambda number: spans[number])


def linked(mentions: Sequence[Span], antecedents: Sequence[int]) -> list[list[Span]]:
    """Clusters from each mention's antecedent, an earlier index; below 0: it starts a cluster."""
    clusters: list[list[Span]] = []
    cluster_of: list[list[Span]] = []  # of each mention
    for mention, antecedent in zip(mentions, antecedents, strict=True):
        if antecedent < 0:
            clusters.append([])
        cluster_of.append(clusters[-1] if antecedent < 0 else cluster_of[antecedent])
        cluster_of[-1].append(mention)
    return clusters


# --- the model ----------------------------------------------------------------------


class Scored(NamedTuple):
    """The scores of one document."""

    spans: Tensor  # [k,2], all candidates
    mention_scores: Tensor  # [k]
    chosen: Tensor  # [m], the candidates that are kept, in the order of the text
    antecedents: Tensor  # [m,a], indices of kept mentions; below 0: none
    scores: Tensor  # [m,1+a]; column 0 is the dummy ε, whose score is 0


class SpanVectors(nn.Module):
    """g = [x_first; x_last; x̂; width] of each span.

    The hidden states of its first and last token, a mean of all its tokens weighted by attention,
    and a learned vector for its width in words. Lee and others (2017), §4.2.
    """

    def __init__(self, hidden_size: int, max_words: int) -> None:
        super().__init__()
        self.attention = nn.Linear(hidden_size, 1)
        self.widths = nn.Embedding(max_words, FEATURES)
        self.size = 3 * hidden_size + FEATURES

    def forward(
        self,
        hidden: Tensor,
        words: Tensor,
        spans: Tensor,
    ) -> Tensor:
        """[k,G] of hidden [S,n,H], words [W,3] and spans [k,2].

        The spans are in text order."""
        segment, first, _ = words[spans[:, 0]].T
        last = words[spans[:, 1], 2]
        scores = self.attention(hidden)[..., 0]  # [S,n]
        token = torch.arange(hidden.shape[1], device=hidden.device)
        means = []
        # segment by segment, so that the weights take less memory;
        # spans are in text order, so their segments are, too
        for number in range(len(hidden)):
            here = segment == number
            inside = first[here, None] <= token
            inside &= token <= last[here, None]  # [k of segment, n]
            own = scores[number].expand(len(inside), -1)
            weights = own.masked_fill(~inside, -torch.inf).softmax(-1)
            means.append(weights @ hidden[number])
        width = self.widths(spans[:, 1] - spans[:, 0])
        ends = hidden[segment, first], hidden[segment, last]
        return torch.cat([*ends, torch.cat(means), width], dim=-1)


class AntecedentScorer(nn.Module):
    """s_a(i, j): a hidden layer on a pair of spans, then one score.

    On [g_i; g_j; g_i∘g_j; distance], as a sum of one linear layer per
    part, which is the same and needs no copy of g for each pair.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.mention = nn.Linear(size, HIDDEN)
        self.antecedent = nn.Linear(size, HIDDEN, bias=False)
        self.product = nn.Linear(size, HIDDEN, bias=False)
        self.distance = nn.Linear(FEATURES, HIDDEN, bias=False)
        self.distances = nn.Embedding(len(BUCKETS) + 1, FEATURES)
        self.score = nn.Linear(HIDDEN, 1)

    def forward(self, g: Tensor, antecedents: Tensor) -> Tensor:
        """[m,a] of g [m,G] and antecedents [m,a], their indices."""
        mention = torch.arange(len(g), device=g.device)[:, None]
        buckets = BUCKETS.to(g.device)
        apart = mention - antecedents
        bucket = torch.bucketize(apart, buckets, right=True)
        hidden = self.mention(g)[:, None]
        hidden = hidden + self.antecedent(g)[antecedents]
        hidden = hidden + self.product(g[:, None] * g[antecedents])
        hidden = hidden + self.distance(self.distances(bucket))
        return self.score(F.relu(hidden))[..., 0].float()


class CoreferenceModel(nn.Module):
    """An encoder with a score for each span, and one for each mention and antecedent.

    max_words: of a span. singletons: whether the labels include clusters of one mention. Only then
    the mention scores also learn from all labeled mentions; else (OntoNotes) an unlabeled span may
    be a mention, and they learn from the links alone, as in the papers.
    """

    def __init__(self, encoder: BertEncoder, max_words: int, singletons: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.max_words = max_words
        self.singletons = singletons
        self.span_vectors = SpanVectors(encoder.config.hidden_size, max_words)
        size = self.span_vectors.size
        layers = nn.Linear(size, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)
        nn.init.constant_(layers[-1].bias, RARE)
        self.mention_scorer = nn.Sequential(*layers)
        self.antecedent_scorer = AntecedentScorer(size)
        self.dropout = nn.Dropout(encoder.config.hidden_dropout_prob)

    def documents(self, batch: Mapping[str, Tensor]) -> Iterable[Scored]:
        """The scores of each document of a batch."""
        ids = batch["input_ids"]
        mask = batch["attention_mask"].flatten(0, 1)
        hidden = self.encoder(ids.flatten(0, 1), attention_mask=mask).float()
        hidden = hidden.view(*ids.shape, -1)  # [B,S,n,H]
        for number, states in enumerate(hidden):
            real = batch["sentences"][number] != NO_TARGET
            words, sentences = batch["words"][number, real], batch["sentences"][number, real]
            # in float32: on a CPU, bfloat16 compiles a kernel for each new number of spans
            with torch.autocast(ids.device.type, enabled=False):
                scored = self.scored(self.dropout(states), words, sentences)
            yield scored

    def scored(self, hidden: Tensor, words: Tensor, sentences: Tensor) -> Scored:
        """The scores of one document. hidden [S,n,H], words [W,3], sentences [W]."""
        device = hidden.device
        spans = candidates(sentences, words[:, 0], self.max_words)
        vectors = self.span_vectors(hidden, words, spans)
        mention_scores = self.mention_scorer(vectors)[:, 0]
        most = max(1, int(RATIO * len(words)))
        best = kept(spans.tolist(), mention_scores.tolist(), most)
        chosen = torch.tensor(best, device=device)
        distances = torch.arange(1, min(ANTECEDENTS, len(chosen)) + 1, device=device)
        antecedents = torch.arange(len(chosen), device=device)[:, None] - distances  # nearest first
        s_m = mention_scores[chosen]
        s_a = self.antecedent_scorer(vectors[chosen], antecedents.clamp(min=0))
        pairs = s_m[:, None] + s_m[antecedents] + s_a
        scores = F.pad(pairs.masked_fill(antecedents < 0, -torch.inf), (1, 0))  # ε in front
        return Scored(spans, mention_scores, chosen, antecedents, scores)

    def forward(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """{"loss", "antecedent", and with singletons "mention"}: nats, summed over spans and
        divided by the words of the batch. `loss` is the sum of the others."""
        antecedent, mention = torch.zeros(2, device=batch["input_ids"].device)
        for document, mentions in zip(self.documents(batch), batch["mentions"], strict=True):
            cluster = clusters_of(document.spans, mentions[mentions[:, 0] != NO_TARGET])
            antecedent = antecedent + antecedent_loss(document, cluster[document.chosen])
            both = document.mention_scores, (cluster >= 0).float()
            mention = mention + F.binary_cross_entropy_with_logits(*both, reduction="sum")
        words = (batch["sentences"] != NO_TARGET).sum()
        losses = {"antecedent": antecedent / words}
        if self.singletons:
            losses["mention"] = mention / words
        return {"loss": torch.stack([*losses.values()]).sum(), **losses}


def clusters_of(spans: Tensor, mentions: Tensor) -> Tensor:
    """The cluster of each span [k], -1 for none. mentions [M,3]: first, last word, cluster."""
    same = (spans[:, None] == mentions[None, :, :2]).all(-1)  # [k,M]
    cluster = (same * mentions[:, 2]).sum(1)
    return torch.where(same.any(1), cluster, -1)


def antecedent_loss(document: Scored, cluster: Tensor) -> Tensor:
    """−log of the probability of all gold antecedents together.

    Summed over the mentions. Gold are those of the same cluster, and ε where there are none. Lee
    and others (2017), eq. 8. cluster [m]: of the mentions, -1 for none.
    """
    gold = cluster[:, None] == cluster[document.antecedents]
    gold &= (document.antecedents >= 0) & (cluster[:, None] >= 0)
    gold = torch.cat([~gold.any(1, keepdim=True), gold], dim=1)
    gold_scores = document.scores.masked_fill(~gold, -torch.inf)
    every = document.scores.logsumexp(1)
    return (every - gold_scores.logsumexp(1)).sum()


# --- training and use ---------------------------------------------------------------


class CoreferenceData(Data):
    """Documents in parts of `SEGMENTS` segments; a batch has `batch_size` segments. facts: `max_words`
    of a mention, and whether there are `singletons`. Raises InputError when no document has a
    cluster."""

    target_field = "sentences"  # the losses are means over words
    collate = staticmethod(stacked)

    def __init__(
        self, documents: Sequence[Document], wordpiece: WordPiece, settings: FineTuning
    ) -> None:
        clusters = [cluster for document in documents for cluster in document.clusters]
        require(clusters, NO_CLUSTER)
        longest = max(last - first + 1 for cluster in clusters for first, last in cluster)
        singletons = any(len(cluster) == 1 for cluster in clusters)
        how = wordpiece, settings.max_length, SEGMENTS
        parts = [one for document in documents for one in segmented(document, *how)]
        facts = {"max_words": min(MAX_WORDS, longest), "singletons": singletons}
        super().__init__(parts, (), wordpiece, settings, **facts)

    def lengths(self) -> np.ndarray:
        return np.array([sum(map(len, one.ids)) for one in self.inputs])

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        return self.padded(rows)


class CoreferenceResolver(Predictor):
    """Finds the clusters of documents, with segments of `max_length` positions. facts: `max_words`
    and `singletons` of the model."""

    task = "coreference"
    data = CoreferenceData

    @staticmethod
    def new_model(encoder: BertEncoder, facts: Mapping[str, Any]) -> CoreferenceModel:
        return CoreferenceModel(encoder, facts["max_words"], facts["singletons"])

    def predict(self, documents: Sequence[Document]) -> list[list[list[Span]]]:
        """The predicted clusters of each document, in order; those of one mention only where the
        model was trained with such clusters."""
        return [[*map(list, self.scored_clusters(document))] for document in documents]

    @torch.no_grad()
    def scored_clusters(self, document: Document) -> list[dict[Span, float]]:
        """Clusters of mentions, each with the score that it is one. A mention joins the antecedent with
        the highest score; where that is ε, it starts a cluster."""
        segments = segmented(document, self.wordpiece, self.max_length)
        batch = self.data.collate(segments, self.wordpiece.pad_id)
        device = self.model.antecedent_scorer.score.weight.device
        batch = {name: value.to(device) for name, value in batch.items()}
        (scored,) = self.model.documents(batch)
        best = scored.scores.argmax(1, keepdim=True)
        antecedents = F.pad(scored.antecedents, (1, 0), value=-1).gather(1, best)[:, 0].tolist()
        mentions = [(first, last) for first, last in scored.spans[scored.chosen].tolist()]
        values = scored.mention_scores[scored.chosen].tolist()
        scores = dict(zip(mentions, values, strict=True))
        return [
            {mention: scores[mention] for mention in cluster}
            for cluster in linked(mentions, antecedents)
            if len(cluster) > 1 or (self.model.singletons and scores[cluster[0]] > 0)
        ]


fine_tune = CoreferenceResolver.fine_tune


def score(
    documents: Sequence[Document], predictions: Sequence[Sequence[Sequence[Span]]]
) -> dict[str, Any]:
    """The scores of `coreference_scores`, in percent: with all clusters; under `two_or_more`
    without clusters of one mention on either side (OntoNotes' rule). Raises InputError where no
    document has a cluster."""
    require(any(document.clusters for document in documents), NO_CLUSTER)
    pairs = [(one.clusters, said) for one, said in zip(documents, predictions, strict=True)]
    two_or_more = [(without_singletons(key), without_singletons(said)) for key, said in pairs]
    return score_documents(pairs) | {"two_or_more": score_documents(two_or_more)}
