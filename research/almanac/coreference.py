"""Which words of the almanac mean the same thing, exact by construction. The task:
`book/tasks/coreference`.

The writer of a sentence knows whom each name, short name, "the club" and "he" stands for. Some
patterns also hold pronouns of their own, such as "its" in "for its lamps", of which the writer
knows nothing. Documents with such a word are left out, so in those that stay every mention is
labeled.
"""

import json
import lzma
import re
from collections import defaultdict
from pathlib import Path

from research.almanac import documents
from research.almanac.documents import Document
from spanbert_tutorial.engine.files import whole_file
from spanbert_tutorial.errors import InputError

FILE = "coreference.jsonl.xz"
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


def write(folder: str | Path, seed: int = documents.SEED, count: int = documents.DOCUMENTS) -> Path:
    """Writes `coreference.jsonl.xz` into the folder, whole or not at all; returns its path. Raises
    InputError when the folder cannot be written."""
    path = Path(folder) / FILE
    labeled = ((document.id, clusters(document)) for document in documents.generate(seed, count))
    records = ({"id": name, "clusters": found} for name, found in labeled if found is not None)
    text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as part:
            part.write_bytes(lzma.compress(text.encode("ascii"), preset=6))
    except OSError as error:
        wrong = f"the labels cannot be written to {path} ({error.strerror})"
        raise InputError(f"{wrong}: give a folder that can be written.") from error
    return path
