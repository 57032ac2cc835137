"""Relations of the almanac in TACRED's layout, exact by construction. Chapter: `book/tasks/relation_extraction`.

Every sentence of the almanac knows the facts that it tells. Two names of a sentence are an example:
of the relation that the sentence tells of them, or of none. Training, validation and test have
different documents; validation and test share no pair of things with training.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple
from zlib import crc32

from research.almanac.documents import Document
from research.almanac.text import Mention, Sentence
from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.tasks.relation_files import NO_RELATION, Argument, Example


class Pair(NamedTuple):
    """Two names of a sentence: mention of the subject, mention of the object, relation."""

    subject: Mention
    object: Mention
    relation: str

    @property
    def things(self) -> tuple[str, str]:
        """The ids of the two, whatever their order."""
        first, second = sorted((self.subject.entity, self.object.entity))
        return first, second


def kind(mention: Mention) -> str:
    """The type of a named thing, such as PERSON; years have none in the almanac and get YEAR."""
    return mention.label or "YEAR"


def names(sentence: Sentence) -> list[Mention]:
    """The first name of each thing in a sentence, and its years."""
    found: dict[str, Mention] = {}
    for mention in sentence.mentions:
        if mention.form in ("name", "short") and (
            mention.label or mention.entity.startswith("year_")
        ):
            found.setdefault(mention.entity, mention)
    return list(found.values())


def pairs(sentence: Sentence) -> Iterator[Pair]:
    """Every two names of a sentence, with the relation that it tells of them or without one.

    The subject is that of the fact; of a pair without a fact it is the name that stands first.
    """
    told = {(subject, thing): relation for subject, relation, thing in sentence.facts}
    for one, other in combinations(names(sentence), 2):
        for subject, thing in ((one, other), (other, one)):
            if (subject.entity, thing.entity) in told:
                yield Pair(subject, thing, label(subject, told[subject.entity, thing.entity]))
                break
        else:
            yield Pair(one, other, NO_RELATION)


def label(subject: Mention, relation: str) -> str:
    """The relation with the type of its subject in front, as TACRED writes it: town:founder."""
    return f"{kind(subject).lower()}:{relation}"


def example_of(key: str, sentence: Sentence, pair: Pair) -> Example:
    """The example in words, as BERT splits them."""

    def argument(mention: Mention) -> Argument:
        first = len(split_words(sentence.text[: mention.start]))
        length = len(split_words(sentence.text[mention.start : mention.end]))
        return Argument(first, first + length - 1, kind(mention))

    return Example(
        key,
        tuple(split_words(sentence.text)),
        argument(pair.subject),
        argument(pair.object),
        pair.relation,
    )


def held_out(things: tuple[str, str]) -> bool:
    """Whether a pair of things belongs to validation and test: half of all pairs, by a checksum of
    their ids."""
    return crc32(" ".join(things).encode()) % 2 == 0


def examples(document: Document) -> Iterator[Example]:
    """The examples of a document: in training none with a held-out pair, elsewhere only these."""
    for number, sentence in enumerate(document.sentences):
        for count, pair in enumerate(pairs(sentence)):
            if held_out(pair.things) == (document.split != "train"):
                yield example_of(f"{document.id}-{number}-{count}", sentence, pair)


def entry(example: Example) -> dict:
    """An example in TACRED's layout; its document is named before the first of the last two
    hyphens."""
    (first, last, kind_of_subject), (start, end, kind_of_object) = example.subject, example.object
    return {
        "id": example.id,
        "docid": example.id.rsplit("-", 2)[0],
        "relation": example.relation,
        "token": list(example.words),
        "subj_start": first,
        "subj_end": last,
        "subj_type": kind_of_subject,
        "obj_start": start,
        "obj_end": end,
        "obj_type": kind_of_object,
    }
