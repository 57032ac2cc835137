"""The almanac: documents about a small fictional world, with exact entity labels. Chapter:
`book/welcome`.

`World(seed)` holds the facts (`almanac.world`). Sentence patterns stand in
`data/almanac/patterns.txt`, the plan of each kind of document in `data/almanac/kinds.json`. A
pattern names its slots; filling them (`almanac.text`) gives the sentence, its mentions and the
facts that it states, so labels and later questions are exact by construction.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from research.almanac.text import Sentence, Writer, parse, patterns
from research.almanac.world import Entity, World
from spanbert_tutorial.engine.files import data_path

SEED = 7
DOCUMENTS = 13_000
POPULARITY = 1.6


@dataclass
class Document:
    """An article of one kind. `text` joins the sentences by one space."""

    id: str
    kind: str
    title: str
    split: str
    sentences: list[Sentence] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    def record(self) -> dict:
        """The line of `documents.jsonl`: entities are labeled names with character offsets into
        the text."""
        entities = []
        offset = 0
        for sentence in self.sentences:
            named = (m for m in sentence.mentions if m.label and m.form in ("name", "short"))
            entities += [[m.start + offset, m.end + offset, m.label, m.entity] for m in named]
            offset += len(sentence.text) + 1
        head = {"id": self.id, "kind": self.kind, "title": self.title, "split": self.split}
        return head | {"text": self.text, "entities": entities}


# --- documents ----------------------------------------------------------------------


class Author:
    """Plans and writes documents of every kind from the world's facts."""

    def __init__(self, world: World, rng: np.random.Generator):
        self.world = world
        self.rng = rng
        self.sections = patterns()
        self.plans = json.loads(data_path("almanac", "kinds.json").read_text(encoding="ascii"))
        self.runs = self.plans.pop("runs")
        self.topics = {
            kind: {
                what: [e for e in world.all(what) if self._suits(e, plan)] for what in plan["topic"]
            }
            for kind, plan in self.plans.items()
        }
        self.bound = {
            kind: {
                name: [e for e in world.all(what["kind"]) if self._suits(e, what)]
                for name, what in bind.items()
            }
            for kind, bind in ((kind, plan.get("bind", {})) for kind, plan in self.plans.items())
        }

    def pick(self, things: list) -> Any:
        """One of the things; the first are met more often than the last, as in a real
        encyclopaedia."""
        return things[int(len(things) * self.rng.random() ** POPULARITY)]

    def write(self, kind: str) -> tuple[str, list[Sentence]]:
        """Title and sentences of a new document of a kind."""
        plan = self.plans[kind]
        topic = self.pick(self.topics[kind][self.pick(plan["topic"])])
        bindings = {"self": topic} | {
            name: self.pick(things) for name, things in self.bound[kind].items()
        }
        writer = Writer(self.rng, topic)
        length = int(self.rng.integers(6, 16))
        sentences = self._beat(writer, self._own(plan["open"], topic), bindings, topic, 1)
        queue = [item for stage in plan["body"] for item in self._shuffled(stage)]
        skipped = [item for item in queue if self.rng.random() < plan.get("skip", 0.25)]
        closing = plan.get("close") and self.rng.random() < 0.6
        for item in [item for item in queue if item not in skipped] + skipped:
            room = length - len(sentences) - bool(closing)
            if room > 0 and (item not in skipped or len(sentences) < length):
                sentences += self._beat(writer, item, bindings, topic, room)
        if closing:
            sentences += self._beat(writer, self._own(plan["close"], topic), bindings, topic, 1)
        title = Writer(self.rng, topic).sentence(
            [("title", parse(self.pick(plan["title"])), set())], bindings
        )
        assert title is not None  # a title asks for nothing that its topic lacks
        return title.text, sentences

    def _own(self, section: str, topic: Entity) -> str:
        return section.replace("*", topic.kind)

    def _suits(self, entity: Entity, plan: dict) -> bool:
        values = entity.values
        if any(key not in values for key in plan.get("has", [])) or any(
            key in values for key in plan.get("not", [])
        ):
            return False
        pointers = sum(
            len(self.world.inverse[entity.id, relation]) for relation in plan.get("pointed", [])
        )
        return pointers >= plan.get("at_least", 0)

    def _shuffled(self, things: list) -> list:
        return [things[i] for i in self.rng.permutation(len(things))]

    def _beat(
        self, writer: Writer, item: str, bindings: dict, topic: Entity, room: int
    ) -> list[Sentence]:
        """Sentences for one item of a plan: a section about the topic, or a run about something
        related to it: `run<relation` (something whose relation is the topic), `run>relation` (the
        topic's own value)."""
        if not re.search("[<>]", item):
            sentence = writer.sentence(self.sections.get(self._own(item, topic), []), bindings)
            return [sentence] if sentence else []
        name, arrow, relation = re.split("([<>])", item)
        run = self.runs[name]
        if arrow == "<":
            things = self.world.pointing_at(topic, relation, run["kind"])
        else:
            things = [topic.values[relation]] if relation in topic.values else []
        things = [
            t
            for t in things
            if t.kind == run["kind"] and t.id not in writer.used and self._suits(t, run)
        ]
        if not things:
            return []
        thing = self.pick(things)
        writer.used.add(thing.id)
        fact = (thing.id, relation, topic.id) if arrow == "<" else (topic.id, relation, thing.id)
        most = min(room, int(self.rng.integers(1, run["most"] + 1)))
        return self._run(writer, run, bindings, bindings | {"self": thing}, fact, most)

    def _run(
        self, writer: Writer, run: dict, outside: dict, inside: dict, fact: tuple, most: int
    ) -> list[Sentence]:
        """One to `most` sentences about a thing; the first states `fact`, how the thing belongs to
        the topic, unless that has been said. `outside` and `inside` bind `self` to the topic and to
        the thing."""
        written: list[Sentence | None] = []
        if "first" in run:
            written.append(writer.sentence(self.sections[run["first"]], inside))
        elif fact not in writer.told:
            bindings = inside if fact[0] == inside["self"].id else outside
            own = [name for name in self.sections if name.startswith(f"{outside['self'].kind}.")]
            names = dict.fromkeys(run["sections"] if bindings is inside else own)
            linking = [pattern for name in names for pattern in self.sections[name]]
            written.append(writer.sentence(linking, bindings, fact))
        if written == [None]:
            return []
        for section in self._shuffled(run["sections"]):
            sentence = len(written) < most and writer.sentence(self.sections[section], inside)
            written += [sentence] if sentence else []
        return [sentence for sentence in written if sentence]


def generate() -> Iterator[Document]:
    """The documents of the almanac, each with its sentences, mentions and facts; always the same."""
    world = World(SEED)
    rng = np.random.default_rng([SEED, 1])
    author = Author(world, rng)
    kinds = list(author.plans)
    weights = np.array([author.plans[kind]["weight"] for kind in kinds], float)
    seen: set[str] = set()
    while len(seen) < DOCUMENTS:
        kind = kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]
        title, sentences = author.write(kind)
        text = " ".join(sentence.text for sentence in sentences)
        if len(sentences) < 6 or text in seen:
            continue
        split = ("train", "validation", "test")[int(np.searchsorted([0.94, 0.97], rng.random()))]
        yield Document(f"almanac-{len(seen):05d}", kind, title, split, sentences)
        seen.add(text)
