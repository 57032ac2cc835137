"""Which words of the almanac mean the same thing, exact by construction. The task:
`book/tasks/coreference`.

The writer of a sentence knows whom each name, short name, "the club" and "he" stands for. Some
patterns also hold pronouns of their own, such as "its" in "for its lamps", of which the writer
knows nothing. Documents with such a word are left out, so in those that stay every mention is
labeled.
"""

import re
from collections import defaultdict

from research.almanac.documents import Document

# words that always mean something that stands elsewhere in the text
PRONOUNS = "he she it they him her them his hers its their theirs himself herself itself themselves"
DESCRIPTIONS = (
    "author book bridge club college company competition festival founder ground mayor museum "
    "place player region river season team town village works"
)
POINTING = re.compile(
    rf"\b(?:{'|'.join(PRONOUNS.split())}|the (?:{'|'.join(DESCRIPTIONS.split())}))\b", re.I
)


def clusters(document: Document) -> list[list[tuple[int, int]]] | None:
    """The mentions of each entity, (start, end) in characters of the text, in order; None where a
    pronoun or a description is no labeled mention. Years and values are not entities. Things named
    once are clusters of one."""
    found = defaultdict(list)
    offset = 0
    for sentence in document.sentences:
        mentions = [mention for mention in sentence.mentions if mention.label]
        for word in POINTING.finditer(sentence.text):
            if not any(
                mention.start < word.end() and word.start() < mention.end for mention in mentions
            ):
                return None
        for mention in mentions:
            found[mention.entity].append((mention.start + offset, mention.end + offset))
        offset += len(sentence.text) + 1
    return sorted(map(sorted, found.values()))
