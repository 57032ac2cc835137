"""The world that the almanac describes: entities, their names and facts. Chapter: `book/welcome`.

Everything is fictional and consistent: each attribute of an entity has one value, and that value is
a fact. Name parts come from `data/almanac/names.json` and are shared on purpose, so that they
cannot be guessed one by one.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanbert_tutorial.engine.files import data_path

LABELS = {
    "person": "PERSON",
    "town": "TOWN",
    "river": "RIVER",
    "region": "REGION",
    "club": "CLUB",
    "ground": "GROUND",
    "season": "SEASON",
    "company": "COMPANY",
    "bridge": "WORK",
    "museum": "WORK",
    "book": "WORK",
    "festival": "WORK",
    "college": "WORK",
}
NOMINALS = {"season": "the competition", "college": "the college"}  # otherwise "the" and the kind


@dataclass(eq=False)
class Entity:
    """One thing of the world. `values` maps each attribute to another entity or to a plain text."""

    id: str
    kind: str
    name: str
    short: str = ""
    pronoun: str = "it"
    article: bool = False
    values: dict = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Entity label, such as PERSON; empty for years, which are not labeled."""
        return LABELS.get(self.kind, "")

    @property
    def nominal(self) -> str:
        """How the text may speak of it without its name, e.g. "the town"; empty for people."""
        return (
            "" if self.kind in ("person", "year") else NOMINALS.get(self.kind, f"the {self.kind}")
        )


class World:
    """All entities and facts, drawn from one seed. `entities` by id; `facts` as (subject, relation,
    object) texts."""

    def __init__(self, seed: int = 0):
        parts = json.loads(data_path("almanac", "names.json").read_text(encoding="utf-8"))
        self.parts = {
            key: text.split(";") if ";" in text else text.split() for key, text in parts.items()
        }
        self.rng = np.random.default_rng(seed)
        self.entities: dict[str, Entity] = {}
        self.names: set[str] = set()
        for step in (
            self._places,
            self._first_people,
            self._colleges,
            self._people,
            self._clubs,
            self._companies,
            self._public_works,
            self._seasons,
            self._private_lives,
        ):
            step()
        self.inverse = defaultdict(list)
        for entity in self.entities.values():
            for relation, value in entity.values.items():
                if isinstance(value, Entity):
                    self.inverse[value.id, relation].append(entity)

    @property
    def facts(self) -> set[tuple[str, str, str]]:
        """Every fact; the object is an entity's id, or the text itself where it is not an
        entity."""
        return {
            (entity.id, relation, value.id if isinstance(value, Entity) else value)
            for entity in self.entities.values()
            for relation, value in entity.values.items()
        }

    def all(self, kind: str) -> list[Entity]:
        """Entities of a kind, in the order in which they were made."""
        return [entity for entity in self.entities.values() if entity.kind == kind]

    def pointing_at(self, entity: Entity, relation: str, kind: str) -> list[Entity]:
        """Entities of a kind that have `entity` as the value of `relation`."""
        return [other for other in self.inverse[entity.id, relation] if other.kind == kind]

    # --- drawing ---------------------------------------------------------------------

    def draw(self, things: Iterable) -> Any:
        """One of the things, or of the name parts under a key, uniformly."""
        things = self.parts[things] if isinstance(things, str) else list(things)
        return things[int(self.rng.integers(len(things)))]

    def year(self, first: int, last: int) -> Entity:
        """The year (an entity without a label), uniform between first and last."""
        number = int(self.rng.integers(first, last + 1))
        key = f"year_{number}"
        if key not in self.entities:
            self.entities[key] = Entity(key, "year", str(number))
        return self.entities[key]

    def add(self, kind: str, name: str, **details: Any) -> Entity | None:
        """A new entity, or None when the name is taken."""
        if name in self.names:
            return None
        self.names.add(name)
        key = f"{kind}_{sum(entity.kind == kind for entity in self.entities.values()):03d}"
        self.entities[key] = Entity(key, kind, name, **details)
        return self.entities[key]

    def _new(self, kind: str, name: str, **details: Any) -> Entity:
        """A new entity under a name that is free."""
        entity = self.add(kind, name, **details)
        if entity is None:
            raise ValueError(f'the name "{name}" is taken.')
        return entity

    def _add_new(self, kind: str, make_name: Callable[..., str], **details: Any) -> Entity:
        while (entity := self.add(kind, make_name(), **details)) is None:
            pass
        return entity

    # --- the steps -------------------------------------------------------------------

    def _places(self) -> None:
        regions = [self._new("region", name) for name in self.parts["regions"]]
        rivers = [
            self._new("river", f"River {name}", short=name, article=True)
            for name in self.parts["rivers"]
        ]
        for number, river in enumerate(rivers):
            river.values |= {"rises": regions[number % 8], "fish": self.draw("fish")}
            river.values["length"] = f"{self.draw(self.parts['numbers'][12:])} miles"
        forms = [lambda: self.draw("town_words")] * 3 + [
            lambda: f"{self.draw('town_words')} {self.draw('town_ends')}",
            lambda: f"{self.draw('town_words')} {self.draw('town_ends')}",
            lambda: f"{self.draw('town_starts')} {self.draw('town_words')}",
        ]
        for number in range(120):
            river = rivers[number % 24]
            here = river.values["rises"] if number % 5 < 3 else regions[(number + number // 24) % 8]
            town = self._add_new("town", lambda: self.draw(forms)())
            town.values |= {"region": here, "river": river, "product": self.draw("products")}
            town.values |= {"market": self.draw("weekdays"), "sight": self.draw("sights")}
            town.values |= {"people": f"{self.draw(self.parts['numbers'][:14])} thousand"}
        for town in self.all("town"):
            near = [
                t
                for t in self.all("town")
                if t.values["region"] is town.values["region"] and t is not town
            ]
            town.values |= {
                "neighbour": self.draw(near),
                "distance": f"{self.draw(self.parts['numbers'][:12])} miles",
            }
        for river in rivers:
            river.values["mouth"] = self.draw(
                t for t in self.all("town") if t.values["river"] is river
            )
        for region, landscape in zip(regions, self.parts["landscapes"], strict=True):
            region.values["capital"] = self.draw(
                t for t in self.all("town") if t.values["region"] is region
            )
            region.values["landscape"] = landscape
        pools = {key: self.parts[key] for key in ("men", "women", "surnames")}
        sizes = {"men": 9, "women": 9, "surnames": 12}
        # people of one region share a few names, so first and last names go together
        self.families = {
            region.id: {key: list(self.rng.permutation(pools[key])[: sizes[key]]) for key in pools}
            for region in regions
        }

    def _person(self, region: Entity, generation: str) -> Entity:
        family = self.families[region.id]
        sex = self.draw(("men", "women"))

        def name() -> str:
            self.last = str(self.draw(family["surnames"]))
            first, second = self.rng.permutation(family[sex])[:2]
            return (
                f"{first} {second} {self.last}"
                if self.rng.random() < 0.15
                else f"{first} {self.last}"
            )

        person = self._add_new("person", name, pronoun={"men": "he", "women": "she"}[sex])
        person.short = self.last
        person.values["trade"] = self.draw("trades")
        self.generations[generation].append(person)
        return person

    def _someone(self, generation: str, region: Entity) -> Entity:
        """Anyone of a generation, mostly of the region, and those with few tasks first."""
        people = self.generations[generation]
        local = [person for person in people if person.values["home"].values["region"] is region]
        pool = local if local and self.rng.random() < 0.8 else people
        least = min(self.tasks[person.id] for person in pool)
        person = self.draw(p for p in pool if self.tasks[p.id] <= least + 1)
        self.tasks[person.id] += 1
        return person

    def _prime(self, person: Entity) -> Entity:
        """A year in which the person was between 24 and 50 years old, not after 1912."""
        born = int(person.values["born"].name)
        return self.year(born + 24, min(born + 50, 1912))

    def _first_people(self) -> None:
        self.generations: dict[str, list[Entity]] = defaultdict(list)
        self.tasks: dict[str, int] = defaultdict(int)
        for number in range(64):
            region = self.all("region")[number % 8]
            self._person(region, "first").values["origin"] = region
        for town in self.all("town"):
            region = town.values["region"]
            year = 1600 + 5 * int(self.rng.integers(25))
            town.values["founder"] = self.draw(
                p for p in self.generations["first"] if p.values["origin"] is region
            )
            town.values["founded"] = self.year(year, year)

    def _colleges(self) -> None:
        for number in range(12):
            region = self.all("region")[number % 8]
            town = self.draw(t for t in self.all("town") if t.values["region"] is region)
            college = self.add("college", f"{town.name} College")
            if college:
                college.values |= {
                    "town": town,
                    "opened": self.year(1790, 1830),
                    "subject": self.draw("subjects"),
                }

    def _people(self) -> None:
        for number in range(336):
            region = self.all("region")[number % 8]
            old = number % 5 < 2
            person = self._person(region, "second" if old else "third")
            born = self.year(1840, 1868) if old else self.year(1885, 1906)
            towns = [t for t in self.all("town") if t.values["region"] is region]
            home = self.draw(towns) if self.rng.random() < 0.75 else self.draw(self.all("town"))
            person.values |= {"born": born, "birthplace": self.draw(towns), "home": home}
            person.values |= {
                "school": self.draw(self.all("college")),
                "hobby": self.draw("hobbies"),
            }
            if old:
                person.values["died"] = self.year(1915, min(1934, int(born.name) + 88))

    def _clubs(self) -> None:
        sports = [text.split(":")[0] for text in self.parts["cups"]]
        firsts = self.parts["ground_firsts"]
        seconds = self.parts["ground_seconds"]
        grounds = self.rng.permutation(
            [f"{first} {second}" for first in firsts for second in seconds]
        )
        for number, ground in zip(range(60), grounds, strict=True):
            town = self.draw(self.all("town"))
            club = self._add_new(
                "club", lambda t=town: f"{t.name} {self.draw('nicknames')}", pronoun="they"
            )
            club.short = club.name.split()[-1]
            region = town.values["region"]
            founder = self._someone("second", region)
            club.values |= {
                "town": town,
                "sport": sports[number % 3],
                "founded": self._prime(founder),
            }
            club.values |= {
                "ground": self.add("ground", str(ground)),
                "colours": self.draw("colours"),
            }
            club.values |= {"founder": founder, "coach": self._someone("third", region)}
            club.values |= {"captain": self._someone("third", region)}
        for club in self.all("club"):
            same = [
                c
                for c in self.all("club")
                if c.values["sport"] == club.values["sport"] and c is not club
            ]
            club.values["rival"] = self.draw(same)

    def _companies(self) -> None:
        for number in range(40):
            town = self.draw(self.all("town"))
            founder = self._someone("second", town.values["region"])
            product = self.draw("products")
            company = number % 4 == 0 and self.add(
                "company", f"{founder.short} and {self.draw('company_family')}"
            )
            goods = (
                product.capitalize()
                if product == "glass"
                else product.capitalize().removesuffix("s")
            )
            company = company or self._add_new(
                "company", lambda t=town, g=goods: f"{t.name} {g} {self.draw('company_ends')}"
            )
            town.values["product"] = product
            company.values |= {
                "town": town,
                "founder": founder,
                "product": product,
                "founded": self._prime(founder),
            }
            company.values["leader"] = self._someone("third", town.values["region"])
            company.values["shop"] = self.draw(
                other for other in self.all("town") if other is not town
            )
            company.values["workers"] = f"{self.draw(self.parts['numbers'][12:])} people"

    def _public_works(self) -> None:
        for _ in range(32):
            town = self.draw(self.all("town"))
            designer = self._someone("second", town.values["region"])
            bridge = self.add("bridge", f"{designer.short} Bridge", article=True)
            if bridge:
                bridge.values |= {"town": town, "river": town.values["river"], "designer": designer}
                bridge.values |= {
                    "opened": self._prime(designer),
                    "material": self.draw("materials"),
                }
        for _ in range(26):
            town = self.draw(self.all("town"))
            collection = self.draw("collections")
            museum = self.add("museum", f"{town.name} Museum", article=True)
            if museum:
                founder = self._someone("second", town.values["region"])
                museum.values |= {"town": town, "collection": collection}
                museum.values |= {"founder": founder, "opened": self._prime(founder)}
        for _ in range(24):
            town = self.draw(self.all("town"))
            festival = self.add(
                "festival", f"{town.name} {self.draw('festivals')} Festival", article=True
            )
            if festival:
                founder = self._someone("second", town.values["region"])
                festival.values |= {"town": town, "month": self.draw("months")}
                festival.values |= {"founder": founder, "begun": self._prime(founder)}
        for _ in range(60):
            author = self._someone(self.draw(("second", "third")), self.draw(self.all("region")))
            book = self.add("book", f"{self.draw('book_starts')} {self.draw('book_ends')}")
            if book:
                born = int(author.values["born"].name)
                book.values |= {
                    "author": author,
                    "published": self.year(born + 26, min(born + 46, 1934)),
                }
                book.values |= {
                    "genre": self.draw("genres"),
                    "setting": self.draw(self.all("town")),
                }
        for town in self.all("town"):
            town.values["mayor"] = self._someone("third", town.values["region"])

    def _seasons(self) -> None:
        for text in self.parts["cups"]:
            sport, cup = text.split(":")
            clubs = [club for club in self.all("club") if club.values["sport"] == sport]
            for number in range(10):
                year = self.year(1925 + number, 1925 + number)
                champion, loser = (clubs[i] for i in self.rng.permutation(len(clubs))[:2])
                host = self.draw(c for c in clubs if c not in (champion, loser))
                season = self._new("season", f"{year.name} {cup}", article=True)
                season.values |= {
                    "year": year,
                    "sport": sport,
                    "champion": champion,
                    "loser": loser,
                }
                season.values |= {"score": self.draw("scores"), "ground": host.values["ground"]}
                crowd = f"{self.draw(self.parts['numbers'][:14])} thousand"
                season.values |= {"town": host.values["town"], "crowd": crowd}
                season.values |= {
                    "scorer": self._someone("third", champion.values["town"].values["region"])
                }
                season.values |= {
                    "referee": self._someone("third", host.values["town"].values["region"])
                }

    def _private_lives(self) -> None:
        for person in self.generations["second"] + self.generations["third"]:
            old = "died" in person.values
            mates = [p for p in self.generations["second" if old else "third"] if p is not person]
            person.values["friend"] = self.draw(mates)
            for relation, kind, share, age in (
                ("club", "club", 0.6, 30),
                ("employer", "company", 0.7, 45),
            ):
                latest = int(person.values["born"].name) + age
                known = [
                    thing for thing in self.all(kind) if int(thing.values["founded"].name) <= latest
                ]
                if known and self.rng.random() < share:
                    person.values[relation] = self.draw(known)
            same = [
                p for p in self.generations["second"] if p.values["trade"] == person.values["trade"]
            ]
            if not old and same:
                person.values["teacher"] = self.draw(same)
