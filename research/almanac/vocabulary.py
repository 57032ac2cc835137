"""The almanac's documents and the vocabulary learned from them, written together. Chapter:
`book/bert/wordpiece`."""

import json
import lzma
from pathlib import Path

from research.almanac import documents
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.text.sentences import split_sentences

ALMANAC_VOCAB_SIZE = 2_000  # vocabulary of the almanac


def write_almanac(folder: str | Path) -> None:
    """Writes the almanac and its vocabulary from the seed. Raises InputError when the folder cannot
    be written."""
    path = documents.write(folder)
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        written = [json.loads(line) for line in lines]
    sentences = [s for d in written if d["split"] == "train" for s in split_sentences(d["text"])]
    WordPiece.train(sentences, ALMANAC_VOCAB_SIZE).save_vocabulary(Path(folder) / "vocab.txt")
