"""Questions on the almanac in SQuAD 2.0 format, exact by construction. The task:
`book/tasks/squad`.

Every sentence of the almanac knows the facts that it states. A fact makes an answerable question; a
fact that the document does not state makes one without an answer. Wordings:
`data/almanac/questions.json`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from research.almanac.documents import SEED, Document
from research.almanac.world import Entity, World
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks.squad_files import GoldAnswer, Question

CATEGORIES = (
    "entity_swap",
    "other_neutral",
    "mutual_exclusion",
    "negation",
    "antonym",
    "impossible_condition",
)
MOST = 4  # questions with an answer on one document, and as many without
# the small ones stand in nearly every document
WORD = re.compile(r"\w+")
SMALL_WORDS = {"and", "of", "the"}


@cache
def wordings() -> dict[str, dict[str, list[str]]]:
    """Kind of question → "kind.relation" → its wordings; `{s}` is the subject, `{y}` a year that
    the text lacks. Of `described` the keys are "kind.relation.other", and `{w}` is a value of the
    other relation."""
    return json.loads(data_path("almanac", "questions.json").read_text(encoding="utf-8"))


@cache
def _second_fact() -> re.Pattern:
    """The wordings under `described`, each with any names."""
    forms = (re.escape(text) for texts in wordings()["described"].values() for text in texts)
    return re.compile(
        "|".join(form.replace(r"\{s\}", ".+").replace(r"\{w\}", ".+") for form in forms)
    )


def says_a_second_fact(question: str) -> bool:
    """Whether the wording also says something of its subject, as in "Where did the baker Ann Hill
    live?"."""
    return bool(_second_fact().fullmatch(question))


@dataclass(frozen=True)
class Fact:
    """A fact that a document states: subject, relation, `thing` (the object's id or text), and
    every place where the stating sentences name the object."""

    subject: Entity
    relation: str
    thing: str
    answers: tuple[GoldAnswer, ...]

    @property
    def key(self) -> str:
        return f"{self.subject.kind}.{self.relation}"


def stated(document: Document, world: World) -> dict[tuple[str, str], Fact]:
    """The facts of a document by (subject's id, relation)."""
    found: dict[tuple[str, str, str], dict[GoldAnswer, None]] = {}
    offset = 0
    for sentence in document.sentences:
        for subject, relation, thing in sentence.facts:
            places = found.setdefault((subject, relation, thing), {})
            for mention in sentence.mentions:
                if mention.entity == thing and mention.form in ("name", "short", "value"):
                    text = sentence.text[mention.start : mention.end]
                    places[GoldAnswer(text, offset + mention.start)] = None
        offset += len(sentence.text) + 1
    return {
        (subject, relation): Fact(world.entities[subject], relation, thing, tuple(places))
        for (subject, relation, thing), places in found.items()
    }


def name_in_question(thing: Entity | str) -> str:
    """The name with "the" where the almanac's sentences say it so; a plain text as it is."""
    if not isinstance(thing, Entity):
        return thing
    return f"the {thing.name}" if thing.article else thing.name


def absent(value: Entity | str, document: Document) -> bool:
    """Whether the document does not name the thing, not even by one word of its short name, or does
    not say the text; in small letters or in capitals ("Wool Works" says that wool is made)."""
    if not isinstance(value, Entity):
        return value.casefold() not in document.text.casefold()
    return not words_of(document.text) & (words_of(value.short or value.name) - SMALL_WORDS)


@lru_cache(maxsize=1000)
def words_of(text: str) -> frozenset[str]:
    """Its words in small letters, without punctuation."""
    return frozenset(WORD.findall(text.casefold()))


def said_of(facts: dict[tuple[str, str], Fact], relation: str) -> set[str]:
    """The things of which a document says the relation in either direction: who says that A is a
    friend of B says it of B, too."""
    return {
        thing
        for fact in facts.values()
        if fact.relation == relation
        for thing in (fact.subject.id, fact.thing)
    }


def kind_of(value: object, relation: str) -> str:
    """What kind of thing a relation leads to: the kind of the entity, or of a plain text the
    relation itself."""
    return value.kind if isinstance(value, Entity) else relation


class Asker:
    """Writes the questions of documents. The same seed gives the same questions for the same
    documents."""

    def __init__(self, world: World, rng: np.random.Generator):
        self.world = world
        self.rng = rng
        self.things = {thing.kind: world.all(thing.kind) for thing in world.entities.values()}
        # (part, wording) that answerable questions have still to use
        self.owed: Counter[tuple[str, str]] = Counter()

    def pick(self, things: list) -> Any:
        return things[int(self.rng.integers(len(things)))]

    def ask(self, document: Document) -> list[Question]:
        """Up to `MOST` questions with an answer and as many without, whose categories take
        turns."""
        facts = stated(document, self.world)
        # "B is a friend of A" would answer for A, too
        usable = [
            fact
            for fact in facts.values()
            if fact.answers
            and fact.key in wordings()["answerable"]
            and not any(
                other.thing == fact.subject.id and other.relation == fact.relation
                for other in facts.values()
            )
        ]
        usable = [usable[i] for i in self.rng.permutation(len(usable))[:MOST]]
        made: list[tuple[Any, Fact, str | None]] = [
            (self.answerable(fact, facts, document.split), fact, None) for fact in usable
        ]
        first = int(self.rng.integers(len(CATEGORIES)))
        for number, fact in enumerate(usable):
            turn = (first + number) % len(CATEGORIES)
            # its draws may repeat others
            for category in (CATEGORIES[turn], *CATEGORIES[:0:-1], *CATEGORIES[:1] * 3):
                text, misleading = getattr(self, f"_{category}")(fact, facts, document)
                if text and text not in [other for other, _, _ in made]:
                    made.append((text, misleading, category))
                    break
        return [self.question(document, number, *each) for number, each in enumerate(made)]

    def wording(
        self, kind: str, fact: Fact, subject: Entity | None = None, **more: object
    ) -> str | None:
        """A question of this kind on the fact, or None where the kind has no wording for it."""
        options = wordings()[kind].get(fact.key)
        if not options:
            return None
        return self.pick(options).format(s=name_in_question(subject or fact.subject), **more)

    def answerable(self, fact: Fact, facts: dict, split: str) -> str | None:
        """A question on the fact; in a wording that says a second fact, too, where one without an
        answer has used it before. So such a wording tells nothing."""
        due = [
            (text, relation)
            for text, relation in self.descriptions(fact, facts)
            if self.owed[split, text]
        ]
        if not due:
            return self.wording("answerable", fact)
        text, relation = self.pick(due)
        self.owed[split, text] -= 1
        return text.format(
            s=name_in_question(fact.subject), w=name_in_question(fact.subject.values[relation])
        )

    def descriptions(self, fact: Fact, facts: dict) -> list[tuple[str, str]]:
        """(wording, relation): the wordings for the fact that also say another relation of its
        subject which the document states."""
        keys = {
            key.removeprefix(f"{fact.key}."): texts
            for key, texts in wordings()["described"].items()
            if key.startswith(f"{fact.key}.")
        }
        return [
            (text, relation)
            for relation, texts in keys.items()
            if (fact.subject.id, relation) in facts
            for text in texts
        ]

    def another(self, thing: Entity, relation: str, document: Document) -> Entity | str | None:
        """A value that the relation has for another thing of the kind, and that the document does
        not name."""
        values = (other.values.get(relation) for other in self.things[thing.kind])
        options = {
            name_in_question(value): value for value in values if value and absent(value, document)
        }
        return self.pick(list(options.values())) if options else None

    def question(
        self, document: Document, number: int, text: str, fact: Fact, category: str | None
    ) -> Question:
        """The question in the form of `squad`; where it has no answer, the places of the fact
        mislead."""
        answers = {"plausible": fact.answers} if category else {"answers": fact.answers}
        return Question(
            f"{document.id}-{number}",
            text,
            document.text,
            document.title,
            category=category,
            **answers,
        )

    # Each returns a question that the document does not answer, or None, and a fact of which the
    # place may mislead.

    def _entity_swap(self, fact: Fact, facts: dict, document: Document) -> tuple[str | None, Fact]:
        """The same question on another thing of its kind, of which the document does not state
        it."""
        said = said_of(facts, fact.relation)
        others = [
            other
            for other in self.things[fact.subject.kind]
            if fact.relation in other.values
            and other.id not in said
            and absent(other.values[fact.relation], document)
        ]
        return self.wording("answerable", fact, self.pick(others)) if others else None, fact

    def _other_neutral(
        self, fact: Fact, facts: dict, document: Document
    ) -> tuple[str | None, Fact]:
        """Another question on the same thing, on which the document says nothing."""
        kind = fact.subject.kind
        thing = fact.subject
        told = [key.split(".")[1] for key in wordings()["answerable"] if key.startswith(f"{kind}.")]
        silent = [
            relation
            for relation in told
            if relation in thing.values
            and thing.id not in said_of(facts, relation)
            and absent(thing.values[relation], document)
        ]
        if not silent:
            return None, fact
        asked = Fact(thing, self.pick(silent), "", ())
        wanted = kind_of(thing.values[asked.relation], asked.relation)
        alike = [
            other
            for other in facts.values()
            if other.answers
            and kind_of(self.world.entities.get(other.thing), other.relation) == wanted
        ]
        return self.wording("answerable", asked), next(iter(alike), asked)

    def _mutual_exclusion(
        self, fact: Fact, facts: dict, document: Document
    ) -> tuple[str | None, Fact]:
        """The same question, but it says of its subject what the document contradicts."""
        options = [
            (text, value)
            for text, relation in self.descriptions(fact, facts)
            if (value := self.another(fact.subject, relation, document))
        ]
        if not options:
            return None, fact
        text, value = self.pick(options)
        self.owed[document.split, text] += 1
        return text.format(s=name_in_question(fact.subject), w=name_in_question(value)), fact

    def _negation(self, fact: Fact, facts: dict, document: Document) -> tuple[str | None, Fact]:
        return self.wording("negation", fact), fact

    def _antonym(self, fact: Fact, facts: dict, document: Document) -> tuple[str | None, Fact]:
        return self.wording("antonym", fact), fact

    def _impossible_condition(
        self, fact: Fact, facts: dict, document: Document
    ) -> tuple[str | None, Fact]:
        """With a year that stands nowhere in the document."""
        text = document.text
        years = [str(year) for year in range(1600, 1950) if str(year) not in text]
        return self.wording("impossible_condition", fact, y=self.pick(years)), fact


def generate(documents: Iterable[Document]) -> Iterator[tuple[Document, list[Question]]]:
    """Documents of the almanac, from the first one on, each with its questions."""
    asker = Asker(World(SEED), np.random.default_rng([0, 2]))
    for document in documents:
        yield document, asker.ask(document)
