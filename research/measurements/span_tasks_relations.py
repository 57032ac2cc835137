"""Relation extraction on SemEval-2010 Task 8, for the table over all tasks: parts, controls, one
run. Chapters: `book/evidence/questions`, `book/evidence/paper_tables`.

Only the task's training file is at hand, so validation and test are cut from it: sentences that
share a phrase of six words go together, and a checksum of the group gives about 15 % to the test
and 10 % to validation. Markers stand around the names: the task does not tell types, and half of it
is in the names. The score is the task's own.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.tasks import relation_baselines as controls_
from spanbert_tutorial.tasks.relation_extraction import PRESETS, directed_score, fine_tune
from spanbert_tutorial.tasks.relation_files import OTHER, Example, read

Parts = Mapping[str, Sequence[Example]]
FILE = Path("semeval2010-task8", "train.txt.xz")
PHRASE = 6  # words in a row that no two parts may share
FINE_TUNING = PRESETS["small"]  # chosen on the validation part, with `spanbert-mini`


def parts(folder: str | Path) -> dict[str, list[Example]]:
    """The examples of train, validation and test. folder: of the real data."""
    return split(read(Path(folder, FILE)))


def split(examples: Sequence[Example]) -> dict[str, list[Example]]:
    """Whole groups of sentences, each in the part that the checksum of its first id gives it."""
    found: dict[str, list[Example]] = {"train": [], "validation": [], "test": []}
    for example, first in zip(examples, groups(examples), strict=True):
        turn = crc32(examples[first].id.encode()) % 20
        found["test" if turn < 3 else "validation" if turn < 5 else "train"].append(example)
    return found


def phrases(example: Example) -> set[tuple[str, ...]]:
    """Every run of PHRASE words in small letters; of a shorter sentence the whole."""
    words = tuple(word.lower() for word in example.words)
    return {words[start : start + PHRASE] for start in range(max(1, len(words) - PHRASE + 1))}


def groups(examples: Sequence[Example]) -> list[int]:
    """For each example the place of the first one of its group: two examples that share a phrase
    are in one group."""
    leaders = list(range(len(examples)))

    def leader(place: int) -> int:
        while leaders[place] != place:
            place = leaders[place]
        return place

    holders = defaultdict(list)
    for place, example in enumerate(examples):
        for phrase in phrases(example):
            holders[phrase].append(place)
    for first, *others in holders.values():
        for other in others:
            low, high = sorted((leader(first), leader(other)))
            leaders[high] = low
    return [leader(place) for place in range(len(examples))]


def measured(
    encoder: BertEncoder, wordpiece: WordPiece, given: Parts, seed: int
) -> dict[str, float]:
    """Fine-tunes the encoder, in place: precision, recall and f1 on the test, macro and directed, in
    percent."""
    extractor, _ = fine_tune(encoder, wordpiece, given["train"], replace(FINE_TUNING, seed=seed))
    return directed_score(labels(given["test"]), extractor.predict(given["test"]))


def controls(given: Parts) -> dict[str, dict[str, float]]:
    """The same figures for guesses without an encoder."""
    train, test = given["train"], given["test"]
    predictions = {
        "most frequent relation": controls_.most_frequent(train, test, OTHER),
        "words of the names": controls_.by_words(train, test, name_words),
        "words around the names": controls_.by_words(train, test, controls_.context_words),
        "all words": controls_.by_words(train, test, all_words),
    }
    return {name: directed_score(labels(test), guess) for name, guess in predictions.items()}


def name_words(example: Example) -> list[str]:
    """The words of the names, each with its role."""
    return [
        f"{role} {word.lower()}"
        for role, (first, last, _) in (("subject", example.subject), ("object", example.object))
        for word in example.words[first : last + 1]
    ]


def all_words(example: Example) -> list[str]:
    """Those of the names and those around them."""
    return name_words(example) + controls_.context_words(example)


def labels(examples: Sequence[Example]) -> list[str]:
    """The relations of examples."""
    return [example.relation for example in examples]
