"""What the states of an encoder hold, frozen and fine-tuned. Chapter:
`book/evidence/questions`.

Two tasks on almanac documents that no model here was pre-trained on (most of their sentences stand
word for word in some training document, too: see `in_training_text`). `roles`: is a town's name the
town itself, or only the beginning of a longer name? `tags`: which kind of name is each token part
of? Sources: BERT §5.3; the almanac. Shapes: B batch, n sequence, H hidden, L layers.
"""

import copy
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from research.almanac.world import LABELS
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder, initialize
from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining.directions import (
    direction_mask,
    new_language_model,
    padded_batch,
)
from spanbert_tutorial.pretraining.train import TrainingConfig, train
from spanbert_tutorial.tasks.tagging import labeled_sentences
from spanbert_tutorial.text.sentences import split_sentences


@dataclass(frozen=True)
class Mention:
    """A town's name in a sentence of the almanac. ids: the sentence; position: the last token of
    the town's name, counted in the model's input with [CLS]; longer: whether it is only the
    beginning of the name of something else."""

    document: str
    ids: np.ndarray
    position: int
    town: str
    longer: bool


def town_mentions(documents: Iterable[dict], tokens: WordPiece) -> list[Mention]:
    """Every town's name in the documents that stands for itself or begins the name of a club,
    company or work.

    A sentence that stands in several documents counts once, so that no test repeats what was
    learned from."""
    documents = list(documents)
    found = []
    known = set()
    towns = {
        d["text"][a:b] for d in documents for a, b, label, _ in d["entities"] if label == "TOWN"
    }
    for document in documents:
        for sentence, entities in labeled_sentences(document):
            if sentence in known:
                continue
            known.add(sentence)
            for start, end, label in entities:
                words = sentence[start:end].split()
                own = len(words) if label == "TOWN" else len(words) - 1
                heads = [
                    " ".join(words[:k]) for k in range(own, 0, -1) if " ".join(words[:k]) in towns
                ]
                if label in ("TOWN", "CLUB", "COMPANY", "WORK") and heads:
                    position = len(tokens.encode(sentence[: start + len(heads[0])]))
                    ids = tokens.encode(sentence)
                    found.append(Mention(document["id"], ids, position, heads[0], label != "TOWN"))
    return found


def balanced(mentions: list[Mention], rng: np.random.Generator) -> list[Mention]:
    """For each town as many mentions of the one role as of the other, so that the name alone says
    nothing."""
    groups: defaultdict[str, tuple[list[Mention], list[Mention]]] = defaultdict(lambda: ([], []))
    kept = []
    for mention in mentions:
        groups[mention.town][mention.longer].append(mention)
    for pair in groups.values():
        for group in pair:
            kept += [group[i] for i in rng.permutation(len(group))[: min(map(len, pair))]]
    return kept


@torch.no_grad()
def layer_states(
    encoder: BertEncoder, ids: Tensor, allowed: Tensor, segments: Tensor | None = None
) -> list[Tensor]:
    """The states [B,n,H] below the first layer and after each layer: L + 1 of them. allowed: bool
    [B,n,n]."""
    states = [encoder.embeddings(ids, segments)]
    for layer in encoder.layers:
        states.append(layer(states[-1], allowed[:, None]))
    return states


def linear_probe(train_x: Tensor, train_y: Tensor, penalty: float = 1e-3) -> nn.Linear:
    """Multinomial logistic regression on standardized columns, fitted to the end; returned for raw
    columns [.,H].

    penalty: half the factor of the squared weights beside the mean loss."""
    mean = train_x.mean(dim=0)
    deviation = train_x.std(dim=0) + 1e-6
    x = (train_x - mean) / deviation
    classes = int(train_y.max()) + 1
    layer = nn.Linear(x.shape[1], classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(layer(x), train_y) + penalty * layer.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        layer.weight /= deviation
        layer.bias.sub_(layer.weight @ mean)
    return layer


TAGS = ("O", *sorted(set(LABELS.values())))  # what a token can be part of; O: of no name


def tagged_sentences(
    documents: Iterable[dict], tokens: WordPiece
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each sentence as its tokens and, for each token, the number of its tag in TAGS."""
    rows = []
    for document in documents:
        for sentence, entities in labeled_sentences(document):
            ids = tokens.encode(sentence)
            tags = np.zeros(len(ids), dtype=np.int64)
            for start, end, label in entities:
                tags[len(tokens.encode(sentence[:start])) : len(tokens.encode(sentence[:end]))] = (
                    TAGS.index(label)
                )
            rows.append((ids, tags))
    return rows


def tag_batch(rows: list[tuple[np.ndarray, np.ndarray]], tokens: WordPiece) -> dict[str, Tensor]:
    """ids [B,n], real [B,n] and tags [B,n] of some sentences; NO_TARGET at [CLS], [SEP] and
    padding."""
    batch = padded_batch([ids for ids, _ in rows], tokens)
    batch["tags"] = torch.full_like(batch["input_ids"], NO_TARGET)
    for row, (_, tags) in enumerate(rows):
        batch["tags"][row, 1 : len(tags) + 1] = torch.from_numpy(tags)
    return batch


class LinearTagger(nn.Module):
    """An encoder and one linear layer on its last states: a tag for each token."""

    def __init__(self, encoder: BertEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(encoder.config.hidden_size, len(TAGS))
        initialize(self.classifier)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """batch: that of `tag_batch`. Returns the mean loss over its tokens."""
        logits = self.classifier(
            self.encoder(batch["input_ids"], attention_mask=batch["attention_mask"])
        )
        return {
            "loss": F.cross_entropy(
                logits.flatten(0, 1), batch["tags"].flatten(), ignore_index=NO_TARGET
            )
        }


# --- both tasks, every seed ---------------------------------------------------------


def role_split(mentions: list[Mention], seed: int) -> tuple[list[Mention], list[Mention]]:
    """Mentions to learn from and to test on, from different documents, each balanced."""
    rng = np.random.default_rng(seed)
    documents = sorted({mention.document for mention in mentions})
    half = set(rng.permutation(documents)[: len(documents) // 2].tolist())
    parts = [[m for m in mentions if (m.document in half) == wanted] for wanted in (True, False)]
    return balanced(parts[0], rng), balanced(parts[1], rng)


def states_at(
    encoder: BertEncoder, mentions: list[Mention], tokens: WordPiece, pattern: str = "both ways"
) -> Tensor:
    """The last layer's states [t,H] of the towns' last tokens."""
    found = []
    for start in range(0, len(mentions), 64):
        part = mentions[start : start + 64]
        batch = padded_batch([mention.ids for mention in part], tokens)
        states = layer_states(
            encoder, batch["input_ids"], direction_mask(pattern, batch["attention_mask"])
        )[-1]
        found.append(
            states[torch.arange(len(part)), torch.tensor([mention.position for mention in part])]
        )
    return torch.cat(found)


def words_at(encoder: BertEncoder, mentions: list[Mention]) -> Tensor:
    """The word embeddings [t,H] of the same tokens: the same vector in every sentence."""
    return encoder.embeddings.word_embeddings.weight[
        [int(m.ids[m.position - 1]) for m in mentions]
    ].detach()


def roles_of(mentions: list[Mention]) -> Tensor:
    """0 where the town stands for itself, 1 where a longer name goes on: int64 [t]."""
    return torch.tensor([int(mention.longer) for mention in mentions])


def accuracy(probe: nn.Linear, states: Tensor, labels: Tensor) -> float:
    """Share of the rows [t,H] for which the probe's highest score is at the label."""
    return (probe(states).argmax(dim=-1) == labels).double().mean().item()


def next_token_list(seen: list[Mention], unseen: list[Mention]) -> float:
    """The control without a model: accuracy of a list that knows, for each token behind a town, its
    more frequent role.

    A token that the list does not know counts as "the town itself"."""
    counts: defaultdict[tuple[int, ...], Counter[bool]] = defaultdict(Counter)
    for mention in seen:
        counts[_behind(mention)][mention.longer] += 1
    best = {token: counter.most_common(1)[0][0] for token, counter in counts.items()}
    return float(
        np.mean([best.get(_behind(mention), False) == mention.longer for mention in unseen])
    )


def _behind(mention: Mention) -> tuple[int, ...]:
    """The token behind the town; nothing where the sentence ends. `position` counts [CLS], `ids`
    has none."""
    return tuple(mention.ids[mention.position : mention.position + 1].tolist())


def tag_states(encoder: BertEncoder, rows: list, tokens: WordPiece) -> tuple[Tensor, Tensor]:
    """States below the first layer and after each layer [L + 1,t,H], and tags [t], of all tokens of
    some sentences."""
    states = []
    tags = []
    for start in range(0, len(rows), 64):
        batch = tag_batch(rows[start : start + 64], tokens)
        inside = batch["tags"] != NO_TARGET
        layers = layer_states(
            encoder, batch["input_ids"], direction_mask("both ways", batch["attention_mask"])
        )
        states.append(torch.stack([layer[inside] for layer in layers]))
        tags.append(batch["tags"][inside])
    return torch.cat(states, dim=1), torch.cat(tags)


def tag_batches(
    rows: list, tokens: WordPiece, rng: np.random.Generator
) -> Iterator[dict[str, Tensor]]:
    """Batches of 16 sentences, drawn at random, without end."""
    while True:
        yield tag_batch([rows[i] for i in rng.permutation(len(rows))[:16]], tokens)


def tune(
    encoder: BertEncoder, rows: list, tokens: WordPiece, seed: int, steps: int = 100
) -> nn.Linear:
    """Trains the encoder, in place, together with a new linear layer, and returns that layer."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        tagger = LinearTagger(encoder)
    train(
        tagger,
        tag_batches(rows, tokens, np.random.default_rng(seed)),
        TrainingConfig(steps, 2e-3, warmup_steps=10),
    )
    return tagger.cpu().classifier


def four_ways(
    shipped: BertEncoder, rows: list, tests: list, tokens: WordPiece, seed: int
) -> dict[str, float]:
    """Share of the tokens of `tests` that get the right tag: frozen in three ways, fine-tuned, from
    scratch."""
    states, tags = tag_states(shipped, rows, tokens)
    test_states, test_tags = tag_states(shipped, tests, tokens)
    uses = {
        "below the first layer": [0],
        "last layer": [-1],
        "all layers side by side": list(range(len(states))),
    }
    found = {}
    for name, layers in uses.items():
        seen, unseen = (torch.cat(list(x[layers]), dim=-1) for x in (states, test_states))
        found[f"frozen, {name}"] = accuracy(linear_probe(seen, tags), unseen, test_tags)
    fresh = new_language_model("both ways", len(tokens), seed).encoder
    for name, encoder in {"fine-tuned": copy.deepcopy(shipped), "from scratch": fresh}.items():
        classifier = tune(encoder, rows, tokens, seed)
        found[name] = accuracy(classifier, tag_states(encoder, tests, tokens)[0][-1], test_tags)
    return found


def most_frequent_tag(rows: list, tests: list) -> float:
    """The control without a model: each token gets the tag that it had most often, a new token gets
    O."""
    counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for ids, tags in rows:
        for token, tag in zip(ids.tolist(), tags.tolist(), strict=True):
            counts[token][tag] += 1
    best = {token: counter.most_common(1)[0][0] for token, counter in counts.items()}
    return float(
        np.mean(
            np.concatenate([[best.get(p, 0) for p in ids.tolist()] == tags for ids, tags in tests])
        )
    )


def samples(
    tokens: WordPiece, seed: int, to_learn: int = 100, to_test: int = 400
) -> tuple[list, list]:
    """Sentences to learn tags from and others to test on, from the validation and from the test
    documents."""
    rng = np.random.default_rng(seed)
    pools = [tagged_sentences(almanac.read(split), tokens) for split in ("validation", "test")]
    orders = [rng.permutation(len(pool)) for pool in pools]
    rows = [pools[0][i] for i in orders[0][:to_learn]]
    known = {ids.tobytes() for ids, _ in rows}
    return rows, [pools[1][i] for i in orders[1] if pools[1][i][0].tobytes() not in known][:to_test]


def in_training_text(rows: list, tokens: WordPiece) -> np.ndarray:
    """Whether each sentence of `rows` stands word for word in some training document of the
    almanac: bool [rows]."""
    sentences = {
        sentence
        for document in almanac.read("train")
        for sentence in split_sentences(document["text"])
    }
    known = {tuple(ids) for ids in tokens.encode_many(sorted(sentences))}
    return np.array([tuple(ids.tolist()) in known for ids, _ in rows])
