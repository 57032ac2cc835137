"""What relation extraction is compared with: guesses that know less than the sentence. Chapter:
`book/tasks/relation_extraction`.

They are tables and word counts, without an encoder.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from spanbert_tutorial.tasks.relation_files import Example

# Of the squared weights, beside the mean loss of the regression; chosen on the validation part of
# SemEval-2010 Task 8.
DECAY = 3e-5


def most_frequent(train: Sequence[Example], test: Sequence[Example], negative: str) -> list[str]:
    """The most frequent relation of training but `negative`, for each example of the test."""
    counts = Counter(example.relation for example in train if example.relation != negative)
    return [counts.most_common(1)[0][0]] * len(test)


def by_types(train: Sequence[Example], test: Sequence[Example]) -> list[str]:
    """What these two types most often have in training; over all where the two types are new."""

    def types(example: Example) -> tuple[str, str]:
        return example.subject.type, example.object.type

    everywhere = Counter(example.relation for example in train)
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for example in train:
        counts[types(example)][example.relation] += 1
    return [counts.get(types(one), everywhere).most_common(1)[0][0] for one in test]


def context_words(example: Example) -> list[str]:
    """The words around the names, each with its side: before both, between them, or behind both."""
    left, right = sorted([example.subject, example.object])
    sides = {
        "before": (0, left.first),
        "between": (left.last + 1, right.first),
        "behind": (right.last + 1, None),
    }
    return [
        f"{side} {word.lower()}"
        for side, (start, end) in sides.items()
        for word in example.words[start:end]
    ]


def by_words(
    train: Sequence[Example], test: Sequence[Example], words_of: Callable[[Example], list[str]]
) -> list[str]:
    """What a logistic regression on the words that `words_of` gives predicts, without their order;
    trained on all examples at once, so nothing is drawn at random."""
    # the library weighs the sum of the losses, not the squares
    strength = 1 / (2 * DECAY * len(train))
    regression = LogisticRegression(C=strength, fit_intercept=False, max_iter=2_000)
    learner = make_pipeline(CountVectorizer(analyzer=words_of, binary=True), regression)
    return learner.fit(train, [example.relation for example in train]).predict(test).tolist()
