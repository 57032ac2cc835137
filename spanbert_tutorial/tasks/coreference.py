"""Coreference resolution by span ranking: which spans are mentions, and which earlier one each
belongs to. Chapter: `book/tasks/coreference`.

Sources: end-to-end coreference (Lee and others, 2017), BERT in it with independent segments (Joshi
and others, 2019), which SpanBERT §4.1 uses. Left out: higher-order refinement and the
coarse-to-fine step (Lee and others, 2018); here each mention looks at the nearest mentions before
it. Shapes: B documents, S segments, n sequence, H hidden, W words, M labeled mentions, k candidate
spans, m mentions kept, a antecedents of each, G width of a span's vector.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.inputs import NO_TARGET, frame
from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.engine.loop import History
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import conll, coreference_scores, task_checkpoints
from spanbert_tutorial.tasks.conll import Document, Span
from spanbert_tutorial.tasks.fine_tuning import FineTuning, check_start, fit
from spanbert_tutorial.text.sentences import split_sentences

# small: of 5e-4 and 1e-3 the better one on validation books of LitBank; spanbert: the settings of
# the released command, with one learning rate for both parts
PRESETS = {
    "small": FineTuning(epochs=3, batch_size=4, peak_learning_rate=1e-3, max_length=128),
    "spanbert": FineTuning(epochs=20, batch_size=4, peak_learning_rate=2e-5, max_length=384),
}
TASK = "coreference"
FACTS = {
    "max_words": int,
    "singletons": bool,
    "length": int,
}  # what a checkpoint says beside its weights
MAX_WORDS, RATIO, ANTECEDENTS = (
    10,
    0.25,
    100,
)  # longest span at most; λ, mentions kept per word; antecedents looked at
RARE = (
    -3.0
)  # where the score of a mention starts: few spans are mentions, and this need not be learned first
SEGMENTS = 4  # how many segments of a document are trained on at a time
FEATURES, HIDDEN = (
    20,
    150,
)  # width of a learned feature, and of the scorers' hidden layer; Lee and others (2017)
BUCKETS = torch.tensor(
    [2, 3, 4, 5, 8, 16, 32, 64]
)  # distances, in mentions: 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, more


# --- documents ----------------------------------------------------------------------


def read(*paths: str | Path) -> list[Document]:
    """The documents of files in CoNLL's format, of folders and archives of such; `conll.read` says
    more."""
    return [document for path in paths for document in conll.read(path)]


def plain(
    text: str, name: str = "text", mentions: Sequence[Sequence[tuple[int, int]]] = ()
) -> Document:
    """A document from plain text. mentions: clusters of (start, end) in characters, as the almanac
    gives them. Raises InputError for a text without a word and for a mention that does not begin
    and end with a word."""
    document, offsets = plain_with_offsets(text, name)
    first, last = ({place[side]: number for number, place in enumerate(offsets)} for side in (0, 1))
    wrong = [
        span
        for cluster in mentions
        for span in cluster
        if span[0] not in first or span[1] not in last
    ]
    if wrong:
        raise InputError(
            f"the mention {wrong[0]} of {name} does not begin and end with a word: mend it."
        )
    return Document(
        name,
        document.sentences,
        [[(first[start], last[end]) for start, end in one] for one in mentions],
    )


def plain_with_offsets(text: str, name: str = "text") -> tuple[Document, list[tuple[int, int]]]:
    """A document without labels, and where each of its words stands in the text: (start, end) in
    characters."""
    sentences = []
    offsets = []
    at = 0
    for sentence in split_sentences(text):
        sentences.append(split_words(sentence))
        for word in sentences[-1]:
            begin = text.find(word, at)
            at = begin + len(word)
            offsets.append((begin, at))
    if not offsets:
        raise InputError("the text is empty: write at least one word.")
    return Document(name, sentences), offsets


# --- a document as segments of tokens -----------------------------------------------


class Segmented(NamedTuple):
    """Some segments of a document, each an input with [CLS] and [SEP]; words are counted from their
    first."""

    ids: list[np.ndarray]  # S times [n]
    words: np.ndarray  # int [W,3]: segment, first and last position of each word in it
    sentences: np.ndarray  # int [W], the number of each word's sentence
    mentions: np.ndarray  # int [M,3]: first and last word, number of the cluster

    @property
    def tokens(self) -> int:
        return sum(map(len, self.ids))


def segmented(
    document: Document, wordpiece: WordPiece, max_length: int, segments: int | None = None
) -> list[Segmented]:
    """The document in parts of at most `segments` segments (None: in one part). Segments are
    independent of one another, as in Joshi and others (2019): they do not overlap, and each ends
    with a sentence; a sentence that is longer than a segment is cut between words. A mention across
    two parts is left out."""
    if max_length < 3:
        raise InputError(f"a length of {max_length} has no room beside [CLS] and [SEP]: give more.")
    tokens = wordpiece.encode_many(document.words)
    unknown = wordpiece.unk_id
    tokens = [
        (some or [unknown])[: max_length - 2] for some in tokens
    ]  # a word of control characters has no token
    cuts = segment_ends(
        [len(sentence) for sentence in document.sentences], list(map(len, tokens)), max_length - 2
    )
    step = segments or len(cuts)
    return [
        part(
            document,
            wordpiece,
            tokens,
            cuts[max(at - 1, 0) : at + step] if at else [0, *cuts[:step]],
        )
        for at in range(0, len(cuts), step)
    ]


def segment_ends(sentences: Sequence[int], tokens: Sequence[int], room: int) -> list[int]:
    """Where segments of at most `room` tokens end, in words. sentences: their words; tokens: of
    each word."""
    ends = []
    end = 0
    used = 0
    for words in sentences:
        begin = end
        end = end + words
        total = sum(tokens[begin:end])
        if used and used + total > room:
            ends.append(begin)
            used = 0
        if total <= room:
            used += total
            continue
        for word in range(begin, end):  # a sentence that is too long for one segment
            if used + tokens[word] > room:
                ends.append(word)
                used = 0
            used += tokens[word]
    return [*ends, end]


def part(
    document: Document, wordpiece: WordPiece, tokens: list[list[int]], cuts: list[int]
) -> Segmented:
    """The words from cuts[0] to cuts[-1], a segment between each two cuts."""
    ids = []
    words = []
    begin = cuts[0]
    end = cuts[-1]
    for segment, (first, stop) in enumerate(zip(cuts, cuts[1:], strict=False)):
        ends = np.cumsum(
            [len(tokens[word]) for word in range(first, stop)]
        )  # [CLS] stands in front
        starts = np.concatenate([[0], ends[:-1]]) + 1
        words.append(np.stack([np.full(len(ends), segment), starts, ends], axis=1))
        inside = [token for word in range(first, stop) for token in tokens[word]]
        ids.append(frame(inside, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)[0])
    sentences = np.repeat(
        np.arange(len(document.sentences)), [len(sentence) for sentence in document.sentences]
    )
    mentions = [
        (first - begin, last - begin, number)
        for number, cluster in enumerate(document.clusters)
        for first, last in cluster
        if begin <= first and last < end
    ]
    return Segmented(
        ids, np.concatenate(words), sentences[begin:end], np.array(mentions).reshape(-1, 3)
    )


def stacked(parts: Sequence[Segmented], pad_id: int) -> dict[str, Tensor]:
    """Tensors of parts of documents, padded: ids int64 [B,S,n], attention_mask bool [B,S,n]; words
    [B,W,3], sentences [B,W] and mentions [B,M,3] with NO_TARGET where there is none."""
    rows = max(len(one.ids) for one in parts)
    longest = max(len(row) for one in parts for row in one.ids)
    ids = np.full((len(parts), rows, longest), pad_id)
    mask = np.zeros((len(parts), rows, longest), dtype=bool)
    for number, one in enumerate(parts):
        for row, segment in enumerate(one.ids):
            ids[number, row, : len(segment)], mask[number, row, : len(segment)] = segment, True
        mask[number, len(one.ids) :, 0] = True  # a segment of padding looks at its first position
    arrays = {"ids": ids, "attention_mask": mask}
    arrays |= {
        name: padded([getattr(one, name) for one in parts])
        for name in ("words", "sentences", "mentions")
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def padded(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """int64 [B, longest, …], with NO_TARGET below the rows of each."""
    full = np.full(
        (len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), NO_TARGET, dtype=np.int64
    )
    for row, array in enumerate(arrays):
        full[row, : len(array)] = array
    return full


# --- spans: candidates, and which are kept ------------------------------------------


def candidates(sentences: Tensor, segments: Tensor, most: int) -> Tensor:
    """All spans of at most `most` words inside one sentence and one segment, int64 [k,2] (first,
    last word), in order. sentences, segments: the number of each word's, [W]."""
    first = torch.arange(len(sentences), device=sentences.device).repeat_interleave(most)
    last = first + torch.arange(most, device=sentences.device).repeat(len(sentences))
    inside = last < len(sentences)
    first = first[inside]
    last = last[inside]
    together = (sentences[first] == sentences[last]) & (segments[first] == segments[last])
    return torch.stack([first, last], dim=1)[together]


def kept(spans: Sequence[Span], scores: Sequence[float], most: int) -> list[int]:
    """Which spans stay as mentions: the best `most`, without one that crosses a better one. Lee and
    others (2017), §5. Numbers of the spans, in the order of the text."""
    furthest: dict[
        int, int
    ] = {}  # first word of a kept span → last word of the longest that begins there
    earliest: dict[int, int] = {}  # last word → first word of the longest that ends there
    chosen: list[int] = []
    for number in np.argsort(-np.asarray(scores), kind="stable").tolist():
        if len(chosen) == most:
            break
        first, last = spans[number]
        crosses = any(furthest.get(word, -1) > last for word in range(first + 1, last + 1)) or any(
            earliest.get(word, first) < first for word in range(first, last)
        )
        if not crosses:
            chosen.append(number)
            furthest[first] = max(last, furthest.get(first, -1))
            earliest[last] = min(first, earliest.get(last, first))
    return sorted(chosen, key=lambda number: spans[number])


def linked(mentions: Sequence[Span], antecedents: Sequence[int | None]) -> list[list[Span]]:
    """Clusters from each mention's antecedent (its number, always an earlier one; None: it begins a
    cluster)."""
    clusters: list[list[Span]] = []
    home: list[list[Span]] = []
    for mention, antecedent in zip(mentions, antecedents, strict=True):
        if antecedent is None:
            clusters.append([])
        home.append(clusters[-1] if antecedent is None else home[antecedent])
        home[-1].append(mention)
    return clusters


# --- the model ----------------------------------------------------------------------


class Scored(NamedTuple):
    """What the model says of one document."""

    spans: Tensor  # [k,2], all candidates
    mention_scores: Tensor  # [k]
    chosen: Tensor  # [m], the candidates that are kept, in the order of the text
    antecedents: Tensor  # [m,a], which kept mention each column is; below 0: none
    scores: Tensor  # [m,1+a]; column 0 is the dummy ε, whose score is 0


def scorer(inputs: int) -> nn.Sequential:
    """A hidden layer, then one score."""
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))


class SpanVectors(nn.Module):
    """g = [x_first; x_last; x̂; width]: the states of a span's first and last token, a weighted
    mean of all its tokens (the weights by attention), and a learned vector for its width in words.
    Lee and others (2017), §4.2."""

    def __init__(self, hidden_size: int, max_words: int, features: int = FEATURES):
        super().__init__()
        self.attention = nn.Linear(hidden_size, 1)
        self.widths = nn.Embedding(max_words, features)
        self.size = 3 * hidden_size + features

    def forward(self, hidden: Tensor, words: Tensor, spans: Tensor) -> Tensor:
        """[k,G]. hidden [S,n,H]; words [W,3]: segment, first and last position of each; spans
        [k,2]."""
        segment = words[spans[:, 0], 0]
        first = words[spans[:, 0], 1]
        last = words[spans[:, 1], 2]
        weights = self.attention(hidden)[..., 0]
        vectors = []
        places = torch.arange(hidden.shape[1], device=hidden.device)
        for number in range(
            len(hidden)
        ):  # segment by segment, so that the table of weights stays small
            here = segment == number
            inside = (first[here, None] <= places) & (
                places <= last[here, None]
            )  # [k of the segment, n]
            head = (
                weights[number].expand(len(inside), -1).masked_fill(~inside, -torch.inf).softmax(-1)
            )
            vectors.append(
                head @ hidden[number]
            )  # spans come in the order of the text, so segments do, too
        width = self.widths(spans[:, 1] - spans[:, 0])
        return torch.cat(
            [hidden[segment, first], hidden[segment, last], torch.cat(vectors), width], dim=-1
        )


class AntecedentScorer(nn.Module):
    """s_a(i, j): a hidden layer on [g_i; g_j; g_i∘g_j; distance], then one score. The first layer
    is written as a sum of one for each part, which is the same and needs no copy of g for each
    pair."""

    def __init__(self, size: int, features: int = FEATURES):
        super().__init__()
        self.mention = nn.Linear(size, HIDDEN)
        self.antecedent = nn.Linear(size, HIDDEN, bias=False)
        self.product = nn.Linear(size, HIDDEN, bias=False)
        self.distance = nn.Linear(features, HIDDEN, bias=False)
        self.distances = nn.Embedding(len(BUCKETS) + 1, features)
        self.score = nn.Linear(HIDDEN, 1)

    def forward(self, vectors: Tensor, antecedents: Tensor) -> Tensor:
        """[m,a]. vectors [m,G]; antecedents [m,a]: numbers of mentions."""
        here = torch.arange(len(vectors), device=vectors.device)[:, None]
        bucket = torch.bucketize(here - antecedents, BUCKETS.to(vectors.device), right=True)
        hidden = self.mention(vectors)[:, None] + self.antecedent(vectors)[antecedents]
        hidden = (
            hidden
            + self.product(vectors[:, None] * vectors[antecedents])
            + self.distance(self.distances(bucket))
        )
        return self.score(F.relu(hidden))[..., 0].float()


class CoreferenceModel(nn.Module):
    """An encoder with a score for each span, and one for each mention and antecedent.

    max_words: of the longest span that is looked at. singletons: whether the labels name mentions
    that nothing else refers to. If so, the mention scores learn from all labeled mentions
    directly, too; if not (OntoNotes), a span without a partner may well be a mention, and they
    learn from the links alone, as in the papers.
    """

    def __init__(self, encoder: BertEncoder, max_words: int, singletons: bool):
        super().__init__()
        self.encoder = encoder
        self.max_words = max_words
        self.singletons = singletons
        self.span_vectors = SpanVectors(encoder.config.hidden_size, max_words)
        self.mention_scorer = scorer(self.span_vectors.size)
        self.antecedent_scorer = AntecedentScorer(self.span_vectors.size)
        self.dropout = nn.Dropout(encoder.config.hidden_dropout_prob)
        nn.init.constant_(self.mention_scorer[-1].bias, RARE)

    def documents(self, batch: Mapping[str, Tensor]) -> Iterable[Scored]:
        """What it says of each document of a batch."""
        ids = batch["ids"]
        hidden = self.encoder(
            ids.flatten(0, 1), None, batch["attention_mask"].flatten(0, 1)
        ).float()
        documents = zip(
            hidden.view(*ids.shape, -1), batch["words"], batch["sentences"], strict=True
        )
        for states, words, sentences in documents:
            real = sentences != NO_TARGET
            yield self.scored(self.dropout(states), words[real], sentences[real])

    def scored(self, hidden: Tensor, words: Tensor, sentences: Tensor) -> Scored:
        """hidden [S,n,H], words [W,3], sentences [W] of one document."""
        spans = candidates(sentences, words[:, 0], self.max_words)
        vectors = self.span_vectors(hidden, words, spans)
        mention_scores = self.mention_scorer(vectors)[:, 0].float()
        most = max(1, int(RATIO * len(words)))
        chosen = torch.tensor(
            kept(spans.tolist(), mention_scores.tolist(), most), device=hidden.device
        )
        here = torch.arange(len(chosen), device=hidden.device)[:, None]
        antecedents = here - torch.arange(
            1, min(ANTECEDENTS, len(chosen)) + 1, device=hidden.device
        )  # nearest first
        s_m = mention_scores[chosen]
        pairs = (
            s_m[:, None]
            + s_m[antecedents]
            + self.antecedent_scorer(vectors[chosen], antecedents.clamp(min=0))
        )
        pairs = pairs.masked_fill(antecedents < 0, -torch.inf)
        return Scored(
            spans,
            mention_scores,
            chosen,
            antecedents,
            torch.cat([torch.zeros_like(pairs[:, :1]), pairs], 1),
        )

    def forward(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """{"loss", "antecedent", and with singletons "mention"}: nats, summed over spans and
        divided by the words of the batch. `loss` is the sum of the others."""
        losses: dict[str, list[Tensor]] = {"antecedent": [], "mention": []}
        for document, mentions in zip(self.documents(batch), batch["mentions"], strict=True):
            cluster = clusters_of(document.spans, mentions[mentions[:, 0] != NO_TARGET])
            losses["antecedent"].append(antecedent_loss(document, cluster[document.chosen]))
            wanted = (cluster >= 0).float()
            mention = F.binary_cross_entropy_with_logits(
                document.mention_scores, wanted, reduction="sum"
            )
            losses["mention"].append(mention)
        if not self.singletons:
            del losses["mention"]
        words = (batch["sentences"] != NO_TARGET).sum()
        parts = {name: sum(values) / words for name, values in losses.items()}
        return {"loss": sum(parts.values()), **parts}


def clusters_of(spans: Tensor, mentions: Tensor) -> Tensor:
    """The cluster of each span [k], -1 where it is no mention. mentions [M,3]: first, last word,
    cluster."""
    same = (spans[:, None] == mentions[None, :, :2]).all(-1)  # [k,M]
    return torch.where(same.any(1), (same * mentions[:, 2]).sum(1), -1)


def antecedent_loss(document: Scored, cluster: Tensor) -> Tensor:
    """-log of the probability of all right antecedents together, summed over the mentions: right is
    each one of the same cluster, and ε where there is none. Lee and others (2017), eq. 8. cluster
    [m]: of the mentions, -1 for none."""
    right = (
        (cluster[:, None] == cluster[document.antecedents])
        & (document.antecedents >= 0)
        & (cluster[:, None] >= 0)
    )
    right = torch.cat([~right.any(1, keepdim=True), right], dim=1)
    return (
        document.scores.logsumexp(1) - document.scores.masked_fill(~right, -torch.inf).logsumexp(1)
    ).sum()


# --- training and use ---------------------------------------------------------------


class CoreferenceData:
    """Documents in parts of `SEGMENTS` segments, in the form that `batches.Batches` draws from."""

    by_length = True

    def __init__(self, documents: Sequence[Document], wordpiece: WordPiece, settings: FineTuning):
        self.wordpiece = wordpiece
        self.batch_size = settings.batch_size
        self.max_length = settings.max_length
        self.parts = [
            one
            for document in documents
            for one in segmented(document, wordpiece, self.max_length, SEGMENTS)
        ]

    def __len__(self) -> int:
        return len(self.parts)

    def lengths(self) -> np.ndarray:
        return np.array([one.tokens for one in self.parts])

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        """Tensors of these parts; nothing is drawn at random."""
        return stacked([self.parts[row] for row in rows], self.wordpiece.pad_id)


def fine_tune(
    encoder: BertEncoder,
    wordpiece: WordPiece,
    documents: Sequence[Document],
    settings: FineTuning,
    snapshots: Snapshots | None = None,
) -> tuple["CoreferenceResolver", History]:
    """Trains encoder (in place) and a new head. settings: `max_length` of a segment, `batch_size`
    segments in a batch; `doc_stride` has no meaning here. Raises InputError when no document has a
    cluster."""
    check_start(encoder, wordpiece, settings)
    if not any(document.clusters for document in documents):
        raise InputError("no document has a cluster: give documents with coreference labels.")
    clusters = [cluster for document in documents for cluster in document.clusters]
    max_words = min(
        MAX_WORDS, max(last - first + 1 for cluster in clusters for first, last in cluster)
    )
    singletons = any(len(cluster) == 1 for cluster in clusters)
    data = CoreferenceData(documents, wordpiece, settings)
    model, history = fit(
        lambda: CoreferenceModel(encoder, max_words, singletons), data, settings, snapshots
    )
    return CoreferenceResolver(model, wordpiece, settings.max_length), history


class CoreferenceResolver:
    """Finds the clusters of documents. length: of its segments."""

    def __init__(self, model: CoreferenceModel, wordpiece: WordPiece, max_length: int = 128):
        self.model = model.eval()
        self.wordpiece = wordpiece
        self.max_length = max_length

    @classmethod
    def from_pretrained(
        cls, source: str | Path, tokenizer: str | Path | None = None
    ) -> "CoreferenceResolver":
        """Opens a folder that `save` wrote. Raises InputError for one of another task."""
        encoder, head, facts, wordpiece = task_checkpoints.load(source, TASK, tokenizer)
        wrong = [name for name, kind in FACTS.items() if not isinstance(facts.get(name), kind)]
        if wrong:
            raise InputError(
                f"config.json of {source} does not say {', '.join(wrong)}: copy the checkpoint "
                f"again."
            )
        model = CoreferenceModel(encoder, facts["max_words"], facts["singletons"])
        task_checkpoints.fill(model, head, source)
        return cls(model, wordpiece, facts["length"])

    def save(self, folder: str | Path, texts: Mapping[str, str]) -> None:
        """Writes a folder that `from_pretrained` opens. texts: further files by name, such as
        README.md."""
        facts = {
            "max_words": self.model.max_words,
            "singletons": self.model.singletons,
            "length": self.max_length,
        }
        task_checkpoints.save(folder, TASK, self.model, facts, self.wordpiece, texts)

    def predict(self, documents: Sequence[Document]) -> list[list[list[Span]]]:
        """The clusters of each document, in order; labels that a document may have are not looked
        at. Clusters of one mention are among them where the model has learned from such."""
        return [self.clusters(document) for document in documents]

    @torch.no_grad()
    def clusters(self, document: Document) -> list[list[Span]]:
        """Each mention goes to the antecedent of the best score, and begins a cluster where ε has
        it."""
        batch = stacked(segmented(document, self.wordpiece, self.max_length), self.wordpiece.pad_id)
        device = self.model.antecedent_scorer.score.weight.device
        found = next(
            iter(self.model.documents({name: value.to(device) for name, value in batch.items()}))
        )
        best = found.scores.argmax(1)
        antecedents = [
            int(found.antecedents[row, column - 1]) if column else None
            for row, column in enumerate(best)
        ]
        mentions = [tuple(span) for span in found.spans[found.chosen].tolist()]
        own = found.mention_scores[found.chosen].tolist()
        sure = {mention for mention, value in zip(mentions, own, strict=True) if value > 0}
        return [
            cluster
            for cluster in linked(mentions, antecedents)
            if len(cluster) > 1 or (self.model.singletons and cluster[0] in sure)
        ]


def score(documents: Sequence[Document], predictions: Sequence[Sequence[Sequence[Span]]]) -> dict:
    """The scores of `coreference_scores`, in percent, with all clusters, under `two_or_more`
    without clusters of one mention on both sides (OntoNotes' rule), and under `mentions` those of
    the mentions alone. Raises InputError unless there is one prediction for each document."""
    if len(documents) != len(predictions):
        raise InputError(
            f"{len(documents)} documents and {len(predictions)} predictions: give one for each."
        )
    pairs = [
        (document.clusters, [[tuple(mention) for mention in cluster] for cluster in clusters])
        for document, clusters in zip(documents, predictions, strict=True)
    ]
    fewer = [tuple(map(coreference_scores.without_singletons, pair)) for pair in pairs]
    return coreference_scores.score_documents(pairs) | {
        "two_or_more": coreference_scores.score_documents(fewer),
        "mentions": coreference_scores.mention_score(pairs),
    }
