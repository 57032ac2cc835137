"""The almanac's questions: the shipped files again from the seed; answers where they say, or none
where none may be."""

import re
from collections import Counter

import pytest

from research.almanac import questions as almanac_questions
from research.almanac.documents import SEED
from research.almanac.world import Entity, World
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import squad

PARTS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def shipped() -> dict[str, list[squad.Question]]:
    return {part: squad.read(data_path("almanac", f"questions-{part}.json.xz")) for part in PARTS}


def test_the_shipped_files_are_made_from_the_seed(shipped):
    """The first documents of each part; the whole command takes too long for every run of the
    tests."""
    made: dict[str, list] = {part: [] for part in PARTS}
    for number, (document, questions) in enumerate(almanac_questions.generate()):
        made[document.split] += questions
        if number == 600:
            break
    for part in PARTS:
        assert len(made[part]) > 20 and made[part] == shipped[part][: len(made[part])]


def test_half_of_the_questions_have_no_answer_for_six_reasons(shipped):
    for questions in shipped.values():
        counts = Counter(question.category for question in questions)
        assert set(counts) == {None, *almanac_questions.CATEGORIES} and min(counts.values()) > 90
        assert counts[None] * 2 == len(questions)
        assert all((q.category is None) == bool(q.answers) for q in questions)
        misled = [q for q in questions if q.category not in (None, "other_neutral")]
        assert all(q.plausible for q in misled)
        assert not any(q.plausible for q in questions if q.answers)
    assert len(shipped["train"]) > 9_000


def asked_for(world: World) -> dict[str, set[tuple[str, str]]]:
    """The text of each question that asks for a fact → the facts (subject's id, relation) that
    would answer it."""
    asked: dict[str, set[tuple[str, str]]] = {}
    for key, options in almanac_questions.wordings()["answerable"].items():
        kind, relation = key.split(".")
        for thing in world.all(kind):
            for option in options:
                text = option.format(s=almanac_questions.name_in_question(thing))
                asked.setdefault(text, set()).add((thing.id, relation))
    return asked


def test_what_has_no_answer_is_not_stated():
    """Wordings are read backwards: which facts could a question ask for? None of them stands in the
    document."""
    world = World(SEED)
    asked = asked_for(world)
    described = described_questions(world)
    seen = Counter()
    for number, (document, questions) in enumerate(almanac_questions.generate()):
        facts = almanac_questions.stated(document, world)
        for question in questions:
            # it says a second fact of its subject, and the document does, too
            if question.question in described:
                assert question.category is None and described[question.question] <= facts.keys()
                seen["described"] += 1
            elif question.category in (None, "entity_swap", "other_neutral"):
                wanted = asked[question.question] & facts.keys()
                assert bool(wanted) == (question.category is None), question
                for thing, relation in asked[question.question]:
                    assert not any(
                        fact[1:] == (relation, thing)
                        for s in document.sentences
                        for fact in s.facts
                    )
                seen[question.category] += 1
            if question.category == "mutual_exclusion":
                assert question.question not in asked and contradicted(question.question, facts)
                seen["mutual_exclusion"] += 1
            if question.category == "impossible_condition":
                assert question.question[-5:-1] not in document.text
        if number == 400:
            break
    assert min(seen[category] for category in (None, "entity_swap", "other_neutral")) > 200
    assert min(seen["described"], seen["mutual_exclusion"]) > 100


def all_described(thing: Entity, relation: str, other: str, value: Entity | str) -> set[str]:
    """Every wording that asks for a relation of a thing and says that another relation has this
    value."""
    options = almanac_questions.wordings()["described"].get(f"{thing.kind}.{relation}.{other}", [])
    names = {
        "s": almanac_questions.name_in_question(thing),
        "w": almanac_questions.name_in_question(value),
    }
    return {option.format(**names) for option in options}


def described_questions(world: World) -> dict[str, set[tuple[str, str]]]:
    """The text of each question that says a true second fact → both facts (subject's id,
    relation)."""
    found = {}
    for key in almanac_questions.wordings()["described"]:
        kind, relation, other = key.split(".")
        for thing in world.all(kind):
            if other in thing.values:
                for text in all_described(thing, relation, other, thing.values[other]):
                    found[text] = {(thing.id, relation), (thing.id, other)}
    return found


def contradicted(question: str, facts: dict) -> bool:
    """Whether the question says another value of a fact that the document states, and asks for one
    that it states."""
    for (subject, other), fact in facts.items():
        for same, relation in facts:
            options = almanac_questions.wordings()["described"].get(
                f"{fact.subject.kind}.{relation}.{other}", []
            )
            for option in options if same == subject else ():
                pattern = re.escape(option).replace(r"\{w\}", "(.+)")
                pattern = pattern.replace(
                    r"\{s\}", re.escape(almanac_questions.name_in_question(fact.subject))
                )
                if match := re.fullmatch(pattern, question):
                    value = fact.subject.values[other]
                    return match[1] != almanac_questions.name_in_question(value)
    return False
