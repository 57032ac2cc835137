"""Sentences from patterns: fill the slots, choose full or short names and pronouns, note the facts.

Chapter: `book/welcome`. The patterns stand in `data/almanac/patterns.txt`; its head explains the
signs.
"""

import re
from typing import NamedTuple

import numpy as np

from research.almanac.world import Entity
from spanbert_tutorial.engine.files import data_path

PRONOUNS = {
    "he": {"he": "he", "him": "him", "his": "his"},
    "she": {"he": "she", "him": "her", "his": "her"},
    "it": {"he": "it", "him": "it", "his": "its"},
    "they": {"he": "they", "him": "them", "his": "their"},
}
TOKEN = re.compile(
    r"\{(a )?([a-z_.]+)(?:([':]\w+))?\}|<(?:([a-z_.]+):)?([^|>]*)\|([^>]*)>|([\[|\]])"
)


class Mention(NamedTuple):
    """Characters start to end of a sentence or text name an entity (or give a value). `form`: name,
    short, nominal, pronoun or value; `label` is empty for years and values."""

    start: int
    end: int
    form: str
    label: str
    entity: str


class Sentence(NamedTuple):
    """A sentence, its mentions, the facts (subject, relation, object) that it states, and its
    pattern's name."""

    text: str
    mentions: list[Mention]
    facts: list[tuple[str, str, str]]
    pattern: str


def parse(pattern: str) -> list:
    """A pattern as a list of texts, slots `("slot", path, form, with_a)`, agreements `("verb",
    owner, one, many)` and choices `("choice", [alternatives])`. In the file: `{club's}`,
    `<was|were>` or `<club:was|were>`, `[a|b]`."""
    stack: list[list[list]] = [[[]]]
    position = 0
    for match in TOKEN.finditer(pattern):
        stack[-1][-1].append(pattern[position : match.start()])
        position = match.end()
        article, path, form, owner, one, many, bracket = match.groups()
        if path:
            stack[-1][-1].append(
                ("slot", tuple(path.split(".")), (form or ":name")[1:], bool(article))
            )
        elif bracket == "[":
            stack.append([[]])
        elif bracket == "|" and len(stack) > 1:
            stack[-1].append([])
        elif bracket == "]":
            choice = ("choice", stack.pop())
            stack[-1][-1].append(choice)
        else:
            stack[-1][-1].append(("verb", owner or "", one, many))
    return stack[0][0] + [pattern[position:]]


def relations(nodes: list) -> set[str]:
    """All relations that a pattern may state."""
    found = set()
    for node in nodes:
        if node and node[0] == "slot":
            found.update(node[1])
        elif node and node[0] == "choice":
            found.update(*map(relations, node[1]))
    return found


def patterns() -> dict[str, list[tuple[str, list, set[str]]]]:
    """All patterns by section: section name to a list of (pattern name, parsed pattern, its
    relations)."""
    sections: dict[str, list[tuple[str, list, set[str]]]] = {}
    section = ""
    for line in data_path("almanac", "patterns.txt").read_text(encoding="ascii").splitlines():
        if line.startswith("=="):
            section = line.strip("= ")
            sections[section] = []
        elif line and not line.startswith("#"):
            pattern = parse(line)
            sections[section].append(
                (f"{section}.{len(sections[section])}", pattern, relations(pattern))
            )
    return sections


class Unfit(Exception):
    """The pattern asks for what the entity does not have, or would name one entity twice."""


class Writer:
    """Writes the sentences of one document and remembers who was named, so that later mentions may
    be shorter."""

    def __init__(self, rng: np.random.Generator, topic: Entity):
        self.rng = rng
        self.topic = topic
        self.seen: set[str] = set()
        self.shorts: dict[str, str] = {}
        self.before: list[Entity] = []  # entities of the previous sentence
        self.used: set[str] = set()
        self.told: set[tuple[str, str, str]] = set()
        self._begin()

    def _begin(self) -> None:
        """A new sentence: its text, its mentions and facts, the entities in it, and which of the
        slots stand for many."""
        self.text = ""
        self.mentions: list[Mention] = []
        self.facts: list[tuple[str, str, str]] = []
        self.here: list[Entity] = []
        self.many: dict[str, bool] = {}

    def sentence(
        self, section: list, bindings: dict[str, Entity], must: tuple = ()
    ) -> Sentence | None:
        """A sentence from the first pattern of the shuffled section that fits, tells enough that is
        new, and states the fact `must` if one is given; None when there is none."""
        for number in self.rng.permutation(len(section)):
            name, pattern, stated = section[number]
            if name in self.used or (must and must[1] not in stated):
                continue
            self._begin()
            try:
                self._fill(pattern, bindings)
            except Unfit:
                continue
            known = sum(fact in self.told for fact in self.facts)
            stale = known > len(self.facts) - known and ".close" not in name
            if stale or (must and must not in self.facts):
                continue
            self.used.add(name)
            self.told.update(self.facts)
            self.before = self.here
            self.seen.update(entity.id for entity in self.here)
            self.shorts |= {
                e.short: e.id for e in self.here if e.short and e.short not in self.shorts
            }
            return Sentence(self.text[0].upper() + self.text[1:], self.mentions, self.facts, name)
        return None

    def _fill(self, nodes: list, bindings: dict[str, Entity]) -> None:
        for node in nodes:
            if isinstance(node, str):
                self.text += node
            elif node[0] == "verb":
                self.text += node[3] if self.many[node[1]] else node[2]
            elif node[0] == "slot":
                path, form, with_a = node[1:]
                self._slot(path, form, with_a, bindings)
            else:
                choices = [choice for choice in node[1] if self._fits(choice, bindings)]
                if not choices:
                    raise Unfit
                self._fill(choices[int(self.rng.integers(len(choices)))], bindings)

    def _fits(self, nodes: list, bindings: dict[str, Entity]) -> bool:
        try:
            values = [
                self._find(node[1], bindings)[-1] for node in nodes if node and node[0] == "slot"
            ]
        except Unfit:
            return False
        return not any(value in self.here for value in values if isinstance(value, Entity))

    def _find(self, path: tuple[str, ...], bindings: dict[str, Entity]) -> list:
        """The chain of values along a path such as `club.town`; it begins at a binding or at an
        attribute of self."""
        chain = [bindings[path[0]]] if path[0] in bindings else [bindings["self"]]
        for relation in path[1:] if path[0] in bindings else path:
            if not isinstance(chain[-1], Entity) or relation not in chain[-1].values:
                raise Unfit
            chain.append(chain[-1].values[relation])
        return chain

    def _slot(
        self, path: tuple[str, ...], form: str, article: bool, bindings: dict[str, Entity]
    ) -> None:
        chain = self._find(path, bindings)
        value = chain[-1]
        if len(chain) > 1:
            fact = (chain[-2].id, path[-1], value.id if isinstance(value, Entity) else value)
            self.facts += [fact] if fact not in self.facts else []
        if not isinstance(value, Entity):
            self.many[""] = value.endswith("s") and value != "glass"
            lead = ("an " if value[0] in "aeiou" else "a ") if article else ""
            self._mention(lead, value, "value", "", value)
            return
        again = form.isupper()
        if value in self.here and not again:
            raise Unfit
        lead, text, shape = self._refer(value, form.lower(), nominal=path == ("self",))
        if form in ("bare", "full"):
            lead = "the " if value.article and form == "full" else ""
            text = value.name
            shape = "name"
        self._mention(lead, text, shape, value.label, value.id)
        if form in ("s", "S") and shape != "pronoun":
            self.text += "'" if text.endswith("s") and value.kind != "person" else "'s"
        if not again:
            self.here.append(value)
        self.many[""] = self.many[".".join(path)] = value.pronoun == "they" and shape != "nominal"

    def _mention(self, lead: str, text: str, shape: str, label: str, key: str) -> None:
        self.text += lead
        start = len(self.text)
        self.text += text
        self.mentions.append(Mention(start, len(self.text), shape, label, key))

    def _refer(self, entity: Entity, form: str, nominal: bool) -> tuple[str, str, str]:
        """How to refer to the entity now: (words before the mention, mention, form of the
        mention)."""
        case = {"s": "his", "he": "he", "him": "him", "his": "his"}.get(form)
        full = ("the " if entity.article else "", entity.name, "name")
        if entity in self.here and case:
            if entity.kind == "person" and any(
                o.pronoun == entity.pronoun for o in self.here if o is not entity
            ):
                raise Unfit
            return "", PRONOUNS[entity.pronoun][case], "pronoun"
        if entity.id not in self.seen or entity.kind in ("year", "ground", "region"):
            return full
        near = self.before + self.here
        rivals = [other for other in near if other is not entity]
        clear = entity in near and all(other.pronoun != entity.pronoun for other in rivals)
        if entity.pronoun == "it":
            clear = bool(self.before) and self.before[0] is entity and not self.here
        if case and clear and self.rng.random() < 0.6:
            return "", PRONOUNS[entity.pronoun][case], "pronoun"
        chance = self.rng.random()
        alone = all(other.kind != entity.kind for other in rivals)
        if (
            nominal
            and entity.nominal
            and alone
            and (entity in near or entity is self.topic)
            and chance < 0.35
        ):
            return "", entity.nominal, "nominal"
        if entity.short and self.shorts.get(entity.short) == entity.id and self.rng.random() < 0.7:
            lead = "the " if entity.kind in ("river", "club") else ""
            return lead, entity.short, "short"
        return full
