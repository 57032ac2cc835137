"""Documents encoded once and memory-mapped. Chapter: `book/spanbert/single_sequence`."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.text.sentences import Document


@dataclass(frozen=True)
class EncodedCorpus:
    """Tokens of all documents one after another. Arrays on disk are memory-mapped, so a large
    corpus costs no memory.

    ids: [N] tokens, uint16 where the vocabulary allows. sentence_ends: [S] and document_ends: [D],
    positions in `ids` just after each sentence and document; every document end is also a sentence
    end. labeled: [m, 3], spans of a known kind, such as entities: (first, one past the last,
    kind), in the order of the text; none unless they are given.
    """

    ids: np.ndarray
    sentence_ends: np.ndarray
    document_ends: np.ndarray
    labeled: np.ndarray = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))

    @classmethod
    def load(cls, folder: str | Path) -> "EncodedCorpus":
        """Opens the arrays that `encode_corpus` wrote. Raises InputError when one is missing or cut
        off."""
        try:
            names = ("ids", "sentence_ends", "document_ends")
            return cls(*(np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in names))
        except (OSError, ValueError, EOFError):
            told = f"{folder} holds no whole encoded corpus: encode the text again."
            raise InputError(told) from None


def encode_corpus(
    documents: Iterable[Document],
    encode_many: Callable[[list[str]], list[list[int]]],
    vocabulary: int,
    folder: str | Path,
) -> EncodedCorpus:
    """Encodes documents once into `folder` (created) and opens the result.

    encode_many: list of sentences → list of lists of ids, e.g. `WordPiece.encode_many`. vocabulary:
    V, sets the width of the integers. Sentences that encode to nothing are left out. Raises
    InputError when nothing is left.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kind = np.uint16 if vocabulary <= 2**16 else np.int32
    # eight bytes a number
    sentence_lengths = array("q")
    document_lengths = array("q")
    stream = iter(documents)
    raw = folder / "ids.bin"
    with raw.open("wb") as file:
        while chunk := list(islice(stream, 500)):
            encoded = iter(encode_many([sentence for document in chunk for sentence in document]))
            for document in chunk:
                lists = [ids for ids in islice(encoded, len(document)) if ids]
                sentence_lengths.extend(len(ids) for ids in lists)
                document_lengths.extend([sum(map(len, lists))] if lists else [])
                file.write(np.array([i for ids in lists for i in ids], dtype=kind).tobytes())
    if not sentence_lengths:
        raw.unlink()
        raise InputError("the corpus holds no text after encoding: give at least one sentence.")
    mapped = np.memmap(raw, kind, "r")
    np.save(folder / "ids.npy", mapped)  # from the disk, never whole in memory
    del mapped  # Windows could not remove an open file
    raw.unlink()
    np.save(folder / "sentence_ends.npy", np.cumsum(sentence_lengths, dtype=np.int64))
    np.save(folder / "document_ends.npy", np.cumsum(document_lengths, dtype=np.int64))
    return EncodedCorpus.load(folder)
