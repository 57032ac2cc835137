"""Relation extraction: which relation holds between two marked names? Chapter:
`book/tasks/relation_extraction`.

Two ways to mark the names and two heads to read them. Sources: SpanBERT §4.1 and its released code
(names replaced by one token that tells role and type, [CLS] is read), Baldini Soares and others
2019 (markers around the names, the states of the first markers are read). Shapes: B batch, n
sequence, H hidden, R relations.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, initialize
from spanbert_tutorial.bert.inputs import frame
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import InputError, require
from spanbert_tutorial.tasks.fine_tuning import Data, FineTuning, shares, stacked
from spanbert_tutorial.tasks.relation_files import DIRECTION, NO_RELATION, OTHER, Example, read  # noqa: F401
from spanbert_tutorial.tasks.task_checkpoints import Predictor

PRESETS = {
    "small": FineTuning(epochs=8, batch_size=32, peak_learning_rate=3e-4, max_length=64),
    "spanbert": FineTuning(epochs=10, batch_size=32, peak_learning_rate=2e-5, max_length=128),
}  # the second: the released code's command for TACRED
MARKINGS = ("replaced", "around")
HEADS = ("cls", "entities")


# --- scores -------------------------------------------------------------------------


def score(
    gold: Sequence[str],
    predicted: Sequence[str],
    negative: str = NO_RELATION,
) -> dict[str, float]:
    """precision, recall, f1 in percent over all but `negative`.

    Counted together (micro), as TACRED does. A share of nothing is 0 (TACRED's own scorer prints a
    precision of 100 where nothing is predicted; the F1 is 0 in both)."""
    pairs = list(zip(gold, predicted, strict=True))
    right = sum(one == other != negative for one, other in pairs)
    wanted = sum(one != negative for one, _ in pairs)
    said = sum(other != negative for _, other in pairs)
    return shares(right, said, wanted)


def directed_score(
    gold: Sequence[str], predicted: Sequence[str], other: str = OTHER
) -> dict[str, float]:
    """precision, recall, f1 in percent, each the mean over the relations that `gold` has (macro),
    without `other`: the official figures of SemEval-2010 Task 8.

    Cause-Effect(e1,e2) and Cause-Effect(e2,e1) are one relation; an answer with the wrong direction
    counts among what was said and was wanted, not among what was right. Gold without a relation
    raises InputError."""
    wanted, said = ([DIRECTION.sub("", label) for label in row] for row in (gold, predicted))
    relations = sorted({*wanted} - {other})
    require(relations, f"no gold label is a relation other than {other}: nothing can be averaged.")
    hits = zip(wanted, gold, predicted, strict=True)
    right = [relation for relation, label, answer in hits if label == answer]
    figures = [shares(right.count(one), said.count(one), wanted.count(one)) for one in relations]
    return {name: float(np.mean([each[name] for each in figures])) for name in figures[0]}


def figures(examples: Sequence[Example], predicted: Sequence[str]) -> dict[str, dict[str, float]]:
    """What `evaluate relations` prints: micro, and for labels with a direction macro figures."""
    gold = [example.relation for example in examples]
    negative = OTHER if OTHER in (*gold, *predicted) else NO_RELATION
    found = {"micro": score(gold, predicted, negative)}
    if any(DIRECTION.search(label) for label in gold):
        found["macro, directed"] = directed_score(gold, predicted, negative)
    return found


# --- marked names -------------------------------------------------------------------


class Marker(str):
    """A token that no text has, such as [SUBJ-PERSON]; a word spelt the same stays a word."""


def marked(example: Example, marking: str) -> list[str]:
    """The words of a sentence with markers for its two names.

    "replaced", as SpanBERT: one marker with role and type in place of each name. "around": a marker
    before each name and one after it, and the name stays.
    """
    roles = {"SUBJ": example.subject, "OBJ": example.object}
    row: list[str] = []
    for place, word in enumerate(example.words):
        for role, name in roles.items():
            if place == name.first:
                row.append(first_marker(role, name.type, marking))
        if marking == "around" or not any(
            name.first <= place <= name.last for name in roles.values()
        ):
            row.append(word)
        for role, name in roles.items():
            if marking == "around" and place == name.last:
                row.append(Marker(f"[/{role}]"))
    return row


def first_marker(role: str, kind: str, marking: str) -> Marker:
    """The marker that stands for a name, or the one before it."""
    typed = marking == "replaced" and kind
    return Marker(f"[{role}-{kind}]" if typed else f"[{role}]")


def markers(examples: Sequence[Example], marking: str) -> list[str]:
    """All markers of examples, each once, sorted: ids must not depend on the order of files."""
    words = [word for example in examples for word in marked(example, marking)]
    return sorted({str(word) for word in words if isinstance(word, Marker)})


class Marked(NamedTuple):
    """An example as input, with [CLS] and [SEP]."""

    ids: np.ndarray  # [n]
    segments: np.ndarray  # [n], all 0
    places: np.ndarray  # [2], positions of the subject's and the object's first marker

    @classmethod
    def of(cls, example: Example, wordpiece: WordPiece, marking: str, max_length: int) -> "Marked":
        """At most `max_length` positions: of a longer sentence the end goes, or as much of the front as
        is needed to keep both first markers. Raises InputError where these stand too far apart, and
        for a marker without an id, such as one of a new type."""
        ids: list[int] = []
        places = {}
        row = marked(example, marking)
        for word, tokens in zip(row, wordpiece.encode_many(row), strict=True):
            if not isinstance(word, Marker):
                ids += tokens
                continue
            if not word.startswith("[/"):
                places[word[1]] = len(ids)  # S or O
            number = wordpiece.library.token_to_id(word)
            if number is None:
                mend = "fine-tune on examples with this type first"
                raise InputError(f"the vocabulary has no {word}: {mend}.")
            ids.append(number)
        room = max_length - 2
        begin = max(0, max(places.values()) + 1 - room)
        wrong = f"the two names of example {example.id} stand more than {room} tokens apart"
        require(min(places.values()) >= begin, f"{wrong}: give a greater length.")
        part = ids[begin : begin + room]
        framed = frame(part, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
        return cls(*framed, np.array([places["S"], places["O"]]) - begin + 1)


# --- model --------------------------------------------------------------------------


class RelationModel(nn.Module):
    """One linear layer on [CLS], or on the two opening markers.

    head: "cls", or "entities", where the states of the subject's and
    the object's first marker stand side by side.
    """

    def __init__(self, encoder: BertEncoder, relations: int, head: str):
        super().__init__()
        config = encoder.config
        states = 2 if head == "entities" else 1
        self.encoder = encoder
        self.head = head
        width = states * config.hidden_size
        self.classifier = nn.Linear(width, relations)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        initialize(self.classifier, config.initializer_range)

    def scores(self, batch: dict[str, Tensor]) -> Tensor:
        """[B,R]."""
        hidden = self.encoder.of(batch)  # [B,n,H]
        if self.head == "cls":
            states = hidden[:, 0]  # [B,H]
        else:
            rows = torch.arange(len(hidden), device=hidden.device)
            states = hidden[rows[:, None], batch["places"]].flatten(1)
        return self.classifier(self.dropout(states)).float()

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean cross-entropy of the relations, in nats}."""
        scores = self.scores(batch)
        return {"loss": F.cross_entropy(scores, batch["relation"])}


def tensors(some: Sequence[Marked], pad_id: int) -> dict[str, Tensor]:
    """ids, segments, attention_mask [B,n] and places [B,2] of inputs."""
    places = np.stack([one.places for one in some])
    return stacked(some, pad_id) | {"places": torch.from_numpy(places)}


class RelationData(Data):
    """Marked examples, with a vocabulary that has the markers. marking, head: of MARKINGS and
    HEADS. facts: both, and `relations`, those that occur."""

    target_field = "relation"
    collate = staticmethod(tensors)

    def __init__(
        self,
        examples: Sequence[Example],
        wordpiece: WordPiece,
        settings: FineTuning,
        marking: str = "around",
        head: str = "entities",
    ) -> None:
        known = marking in MARKINGS and head in HEADS
        require(known, f"{marking} or {head} is unknown: use one of {MARKINGS} and one of {HEADS}.")
        larger = wordpiece.with_tokens(markers(examples, marking))
        inputs = [Marked.of(one, larger, marking, settings.max_length) for one in examples]
        found = [example.relation for example in examples]
        relations, targets = np.unique(found, return_inverse=True)
        facts = {"relations": relations.tolist(), "head": head, "marking": marking}
        super().__init__(inputs, targets, larger, settings, **facts)


class RelationExtractor(Predictor):
    """Names the likeliest relation. facts: those of `RelationData`."""

    task = "relations"
    data = RelationData

    @staticmethod
    def new_model(encoder: BertEncoder, facts: Mapping[str, Any]) -> RelationModel:
        return RelationModel(encoder, len(facts["relations"]), facts["head"])

    def predict(self, examples: Sequence[Example]) -> list[str]:
        """One relation each, in order; the examples' own are not looked at."""
        return [self.facts["relations"][int(row.argmax())] for row in self.scores(examples)]

    def scores(self, examples: Sequence[Example]) -> list[Tensor]:
        """The score of each relation [R] for each example."""
        how = self.wordpiece, self.facts["marking"], self.max_length
        return self.logits([Marked.of(example, *how) for example in examples])


fine_tune = RelationExtractor.fine_tune
