"""Pairs of sentences on one thing of the almanac, labeled by the facts that both state. Chapter:
`book/evidence/questions`.

Every thing is described in two versions of the world: the true one, and one in which it has other
values. So a pair can agree on what is false and disagree on what is true, and what is true in the
almanac tells no label. Every second sentence stands once with each label, so it alone tells nothing
either.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from research.almanac.documents import SEED
from research.almanac.text import Writer, patterns
from research.almanac.world import Entity, World

KINDS = (
    "town",
    "person",
    "club",
    "company",
    "river",
    "season",
    "book",
    "bridge",
    "museum",
    "festival",
    "college",
)
# of these a thing has one value: who says another one contradicts
ONE_VALUE = frozenset(
    "founder founded region capital mouth rises length people market mayor born died birthplace "
    "home ground colours "
    "captain coach leader workers champion loser score scorer referee year opened published "
    "begun author designer "
    "month".split()
)
# how many things, and in which shares
THINGS = 500
PARTS = {"train": 14, "validation": 3, "test": 3}
Fact = tuple[str, str]  # relation and value, of the thing that the pair is about
Pair = tuple[str, str, str | float]  # two sentences and their label


@dataclass(frozen=True)
class Statement:
    """A sentence that states facts of one thing and of no other."""

    text: str
    facts: frozenset[Fact]
    pattern: str

    @property
    def relations(self) -> frozenset[str]:
        return frozenset(relation for relation, _ in self.facts)


def label(one: Statement, other: Statement) -> str | None:
    """`same`: both state the same facts; `contradiction`: facts of the same relations, with another
    value for one that has one value only; `neither`: no relation is in both; None for all
    others."""
    if one.facts == other.facts:
        return "same"
    if one.relations == other.relations:
        changed = {relation for relation, _ in one.facts ^ other.facts}
        return "contradiction" if changed & ONE_VALUE else None
    return None if one.relations & other.relations else "neither"


def shared(one: Statement, other: Statement) -> float:
    """How many facts stand in both, as a share of all that stand in either."""
    return round(len(one.facts & other.facts) / len(one.facts | other.facts), 3)


def some_or_all(one: Statement, other: Statement) -> str:
    """Whether both share none of their facts, some or all."""
    share = shared(one, other)
    return "none" if share == 0 else "all" if share == 1 else "some"


def other_values(thing: Entity, world: World, rng: np.random.Generator) -> Entity:
    """The same thing in another version of the world: with other values where it has one value
    only."""
    values = dict(thing.values)
    for relation in sorted(ONE_VALUE & set(values)):
        others = [
            one.values[relation]
            for one in world.all(thing.kind)
            if relation in one.values and one.values[relation] not in (values[relation], thing)
        ]
        if others:
            values[relation] = others[int(rng.integers(len(others)))]
    return replace(thing, values=values)


@cache
def sections(kind: str) -> list[tuple]:
    """All patterns of sentences about a kind of thing."""
    return [
        pattern
        for name, some in patterns().items()
        if name.startswith(f"{kind}.") or name == f"open.{kind}"
        for pattern in some
    ]


def statements(thing: Entity, rng: np.random.Generator) -> list[Statement]:
    """A sentence of each pattern that fits the thing, has its name and states facts of it alone."""
    found = []
    for pattern in sections(thing.kind):
        sentence = Writer(rng, thing).sentence([pattern], {"self": thing})
        if sentence and sentence.facts and thing.name in sentence.text:
            facts = frozenset(
                (relation, value)
                for subject, relation, value in sentence.facts
                if subject == thing.id
            )
            if len(facts) == len(sentence.facts):
                found.append(Statement(sentence.text, facts, sentence.pattern))
    return found


def partners(
    second: Statement, some: Sequence[Statement], kind_of: Callable
) -> dict[str, list[Statement]]:
    """First sentences for a second one, of other patterns, by what `kind_of` says of the pair."""
    found: dict[str, list[Statement]] = {}
    for first in some:
        if first.pattern != second.pattern and (kind := kind_of(first, second)):
            found.setdefault(kind, []).append(first)
    return found


def pairs(
    some: Sequence[Statement],
    rng: np.random.Generator,
    kind_of: Callable,
    label_of: Callable,
    most: int = 2,
) -> Iterator[Pair]:
    """Up to `most` second sentences about a thing, each with three first ones, one of every
    kind."""
    made = 0
    for number in rng.permutation(len(some)):
        if made == most:
            return
        found = partners(some[number], some, kind_of)
        if len(found) == 3:
            made += 1
            for kind in sorted(found):
                first = found[kind][int(rng.integers(len(found[kind])))]
                yield first.text, some[number].text, label_of(first, some[number])


def generate() -> dict[str, dict[str, list[Pair]]]:
    """Task ("pairs", "shared") → part → its pairs, always the same; no thing is in two parts."""
    world = World(SEED)
    rng = np.random.default_rng([SEED, 3])
    known = [thing for kind in KINDS for thing in world.all(kind)]
    part_of = np.repeat(list(PARTS), list(PARTS.values()))
    found: dict[str, dict[str, list[Pair]]] = {
        task: {part: [] for part in PARTS} for task in ("pairs", "shared")
    }
    for place, number in enumerate(rng.permutation(len(known))[:THINGS]):
        thing = known[number]
        part = str(part_of[place % len(part_of)])
        some = statements(thing, rng) + statements(other_values(thing, world, rng), rng)
        for task, functions in (("pairs", (label, label)), ("shared", (some_or_all, shared))):
            found[task][part] += pairs(some, rng, *functions)
    return found
