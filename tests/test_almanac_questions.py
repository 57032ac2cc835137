"""The almanac's questions: the shipped files again from the seed; answers where they say, or none
where none may be."""

import re
from collections import Counter

import pytest

from research.almanac import questions as almanac_questions
from research.almanac.documents import SEED, generate
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
        assert all(q.plausible for q in misled) and not any(
            q.plausible for q in questions if q.answers
        )
    assert len(shipped["train"]) > 9_000


def test_a_plausible_answer_is_of_the_kind_that_the_question_asks_for(shipped):
    neutral = [
        q for questions in shipped.values() for q in questions if q.category == "other_neutral"
    ]
    plausible = [(q.question, answer.text) for q in neutral for answer in q.plausible[:1]]
    assert (
        0.4 < sum(bool(q.plausible) for q in neutral) / len(neutral) < 0.6
    )  # other texts state nothing of that kind
    years = [
        text
        for question, text in plausible
        if question.startswith(("When was", "In which year"))
        if not question.startswith("When was market")
    ]
    assert len(years) > 50 and all(text.isdigit() or text.endswith("day") for text in years)
    people = [text for question, text in plausible if question.startswith("Who ")]
    assert len(people) > 100 and all(text[0].isupper() for text in people)


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


def test_the_text_does_not_name_what_a_question_without_an_answer_asks_for(shipped):
    """Of all shipped questions that a fact of the world would answer; in small letters or in
    capitals."""
    world = World(SEED)
    asked = asked_for(world)
    seen = Counter()
    for question in (q for questions in shipped.values() for q in questions):
        if question.category in ("entity_swap", "other_neutral"):
            for thing, relation in asked[question.question]:
                value = world.entities[thing].values[relation]
                names = (
                    {value.name, value.short or value.name}
                    if isinstance(value, Entity)
                    else {value}
                )
                for name in names:
                    assert not re.search(
                        rf"\b{re.escape(name)}\b", question.context, re.IGNORECASE
                    ), question
            seen[question.category] += 1
    assert min(seen.values()) > 1_500


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
            if (
                question.question in described
            ):  # it says a second fact of its subject, and the document does, too
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


def test_answers_name_the_object_of_the_fact():
    world = World(SEED)
    document = next(generate())
    for fact in almanac_questions.stated(document, world).values():
        for answer in fact.answers:
            assert document.text[answer.start : answer.start + len(answer.text)] == answer.text
            thing = world.entities.get(fact.thing)
            assert (
                answer.text in ((thing.name, thing.short) if thing else (fact.thing,))
                or thing is None
            )


def test_every_wording_fits_a_relation_of_the_world():
    world = World(SEED)
    keys = set()
    for thing in world.entities.values():
        keys |= {f"{thing.kind}.{relation}" for relation in thing.values}
    described = dict(almanac_questions.wordings())
    for key, texts in described.pop("described").items():
        kind, relation, other = key.split(".")
        assert {f"{kind}.{relation}", f"{kind}.{other}"} <= keys and relation != other, key
        assert f"{kind}.{relation}" in described["answerable"]
        assert all(text.endswith("?") and "{s}" in text and "{w}" in text for text in texts)
    for kind, options in described.items():
        assert options.keys() <= keys, kind
        assert options.keys() <= almanac_questions.wordings()["answerable"].keys()
        for text in (text for texts in options.values() for text in texts):
            assert (
                text.endswith("?")
                and "{s}" in text
                and ("{y}" in text) == (kind == "impossible_condition")
            )


def test_only_mutual_exclusions_and_questions_with_an_answer_say_a_second_fact(shipped):
    """Among the questions with such a wording about half have an answer, in every part."""
    for questions in shipped.values():
        kinds = Counter(
            q.category for q in questions if almanac_questions.says_a_second_fact(q.question)
        )
        assert set(kinds) == {None, "mutual_exclusion"} and 0.45 < kinds[None] / kinds.total() < 0.5
        assert kinds["mutual_exclusion"] == sum(q.category == "mutual_exclusion" for q in questions)


def test_a_second_fact_in_a_question_does_not_give_its_kind_away(shipped):
    """In each part answerable questions use each such wording about as often as those without an
    answer do, and colors are said truly and falsely."""
    for questions in shipped.values():
        for option in (
            text for texts in almanac_questions.wordings()["described"].values() for text in texts
        ):
            form = re.compile(re.escape(option).replace(r"\{s\}", ".+").replace(r"\{w\}", ".+"))
            used = [q for q in questions if form.fullmatch(q.question)]
            false, true = (sum(bool(q.answers) == kind for q in used) for kind in (False, True))
            assert abs(true - false) <= 3 + 0.3 * false, (option, true, false)
    colors = re.compile(r"Who coaches the .+ in (.+)\?|Who is the captain of the .+ in (.+)\?")
    said = {True: set(), False: set()}
    for question in (q for questions in shipped.values() for q in questions):
        if match := colors.fullmatch(question.question):
            said[bool(question.answers)].add(match[1] or match[2])
    assert len(said[True] & said[False]) >= 5
