"""All files of the almanac, written from the seed. Chapters: `book/welcome`, `book/bert/wordpiece`."""

import json
import lzma
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from research.almanac import coreference, documents, pairs, questions, relations
from research.almanac.documents import Document
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import whole_file
from spanbert_tutorial.tasks import squad_files
from spanbert_tutorial.text.sentences import split_sentences

VOCABULARY = 2_000  # tokens
TRAINING_DOCUMENTS = 1_200  # of which there are questions and relations


def write(folder: Path) -> None:
    """Writes documents, vocabulary, questions and labels, the same as the shipped ones."""
    made = list(documents.generate())
    pack(folder / "documents.jsonl.xz", json_lines(document.record() for document in made))
    sentences = [s for one in made if one.split == "train" for s in split_sentences(one.text)]
    WordPiece.train(sentences, VOCABULARY).save_vocabulary(folder / "vocab.txt")
    labeled = ({"id": one.id, "clusters": coreference.clusters(one)} for one in made)
    labeled = (record for record in labeled if record["clusters"] is not None)
    pack(folder / "coreference.jsonl.xz", json_lines(labeled))
    for part, some in by_part(questions.generate(made)):
        squad_files.write(folder / f"questions-{part}.json.xz", some, "almanac-1")
    for part, some in by_part((document, relations.examples(document)) for document in made):
        entries = [relations.entry(example) for example in some]
        pack(folder / f"relations-{part}.json.xz", json.dumps(entries, separators=(",", ":")))
    for task, parts in pairs.generate().items():
        for part, rows in parts.items():
            lines = ["sentence1\tsentence2\tlabel", *("\t".join(map(str, row)) for row in rows)]
            pack(folder / f"{task}-{part}.tsv.xz", "".join(f"{line}\n" for line in lines))


def json_lines(records: Iterable[dict]) -> str:
    return "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)


def pack(path: Path, text: str) -> None:
    """Writes a compressed file, whole or not at all."""
    with whole_file(path) as part:
        part.write_bytes(lzma.compress(text.encode("ascii"), preset=6))


def by_part(made: Iterable[tuple[Document, Iterable]]) -> Iterator[tuple[str, Iterator]]:
    """What was made of the documents of each part; of `TRAINING_DOCUMENTS` of those to train on."""
    parts: dict[str, list[list]] = {"train": [], "validation": [], "test": []}
    for document, some in made:
        part = parts[document.split]
        if document.split != "train" or len(part) < TRAINING_DOCUMENTS:
            part.append(list(some))
    return ((name, chain.from_iterable(found)) for name, found in parts.items())
