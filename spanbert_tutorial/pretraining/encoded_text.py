"""Text encoded once, to train on and to measure on. Chapter:
`book/spanbert/pretraining_spanbert`."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, islice
from pathlib import Path

import numpy as np

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.hooks import with_bar
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary
from spanbert_tutorial.text.corpora import documents, read_almanac
from spanbert_tutorial.text.encoding import EncodedCorpus, encode_corpus
from spanbert_tutorial.text.sentences import Document, split_sentences

# of the documents of a user's corpus, one in fifty is kept for measuring, if nobody asks otherwise
HELD_OUT_EVERY = 50
PARTS = ("train", "held_out")
VOCABULARY_SENTENCES = 1_000_000  # enough to learn a vocabulary from, and they fit into memory


@dataclass(frozen=True)
class EncodedText:
    """Encoded text to train on and to measure on, with the vocabulary that encoded it."""

    train: EncodedCorpus
    held_out: EncodedCorpus
    wordpiece: WordPiece

    @cached_property
    def unigram_entropy(self) -> float:
        """Entropy in nats of the frequencies of the training text's tokens: the loss of a model
        that knows these and nothing else."""
        ids, V = self.train.ids, len(self.wordpiece)
        # in parts: bincount makes eight bytes of each id
        starts = range(0, len(ids), 2**24)
        counted = [np.bincount(ids[start : start + 2**24], minlength=V) for start in starts]
        counts = np.sum(counted, axis=0)
        p = counts[counts > 0] / len(ids)
        return float(-(p * np.log(p)).sum())


def parts(
    source: str, held_out: bool, leave_out: Collection[str] = (), every: int = HELD_OUT_EVERY
) -> Iterator[Document]:
    """The training or the held-out documents of the almanac or of a path (there one in `every` is
    held out), without those with a title in `leave_out`."""
    if source == "almanac":
        for entry in read_almanac("validation" if held_out else "train"):
            yield split_sentences(entry["text"])
    else:
        number = 0
        for number, document in enumerate(with_bar(documents(source, leave_out), " documents"), 1):
            if (number % every == 0) == held_out:
                yield document
        told = f"{source} is too short, as one document in {every} is kept for measuring"
        require(number >= every, f"{told}: give at least {every} documents.")


def word_by_word(wordpiece: WordPiece) -> Callable[[list[str]], list[list[int]]]:
    """`encode_many`, three times as fast, for the almanac: a million words, but few different ones,
    and each is encoded once. BERT's rules, which its vocabulary has, cut at every space."""
    ids = cache(lambda word: wordpiece.encode(word).tolist())
    return lambda texts: [[i for word in text.split() for i in ids(word)] for text in texts]


def open_text(
    source: str,
    folder: str | Path,
    vocabulary: str | Path | None = None,
    vocab_size: int = 8_000,
    leave_out: Collection[str] = (),
    every: int = HELD_OUT_EVERY,
) -> EncodedText:
    """Encodes the shipped almanac (`source="almanac"`) or the corpus at a path into `folder`, once.

    vocabulary: a vocab.txt, a tokenizer.json, or a checkpoint that holds one; None means the
    almanac's own, or for a path a new one of `vocab_size`. leave_out: titles of documents that are
    neither trained nor measured on (of `.jsonl` files and sets of the hub). every: of the documents
    of a path, one in so many is held out. Raises InputError; OSError when it cannot be written.
    """
    own = vocabulary is None and source == "almanac"
    if own:
        vocabulary = data_path("almanac", "vocab.txt")
    if vocabulary is not None:
        wordpiece = read_vocabulary(vocabulary)
    else:
        sentences = chain.from_iterable(parts(source, False, leave_out, every))
        wordpiece = WordPiece.train(islice(sentences, VOCABULARY_SENTENCES), vocab_size)
    encode = word_by_word(wordpiece) if own else wordpiece.encode_many
    for held_out, name in enumerate(PARTS):
        some = parts(source, bool(held_out), leave_out, every)
        encode_corpus(some, encode, len(wordpiece), Path(folder, name))
    wordpiece.save(folder)  # last: the sign that the text is whole
    return reopen_text(folder)


def reopen_text(folder: str | Path) -> EncodedText:
    """The text that `open_text` encoded into `folder`, without the files that it came from."""
    file = Path(folder, "tokenizer.json")
    require(file.is_file(), f"{folder} is no whole text: remove {Path(folder).parent}, start anew.")
    train, held_out = (EncodedCorpus.load(Path(folder, name)) for name in PARTS)
    return EncodedText(train, held_out, WordPiece.from_file(file))
