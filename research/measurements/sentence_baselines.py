"""What a sentence task gives away without an encoder: controls for `tasks.classification`. Chapter:
`book/tasks/classification`.

Each learns from the same examples as a model does and predicts the same test examples: `majority`
looks at no text; `bag of words` counts words; of a pair `second only` counts those of the second
sentence, and `overlap` looks at three numbers, how many words both share.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.tasks.sentence_files import Example

FEWEST = 2  # examples that a word must be in to be counted


def controls(train: Sequence[Example], test: Sequence[Example]) -> dict[str, list]:
    """What each control predicts for the test examples, by its name."""
    wanted = [label for _, label in train]
    is_label = isinstance(wanted[0], str)
    is_pair = train[0][0][1] is not None
    chance = DummyClassifier() if is_label else DummyRegressor()
    found = {
        "majority" if is_label else "mean": chance.fit(np.zeros((len(train), 1)), wanted)
        .predict(np.zeros((len(test), 1)))
        .tolist()
    }
    readings = {"bag of words": words_of_each if is_pair else words_of_first}
    readings |= {"second only": words_of_second, "overlap": overlap} if is_pair else {}
    for name, reading in readings.items():
        seen, asked = reading(train, test)
        learner = LogisticRegression(max_iter=2_000) if is_label else Ridge()
        found[name] = (
            make_pipeline(MaxAbsScaler(), learner).fit(seen, wanted).predict(asked).tolist()
        )
    return found


def counted(train: Sequence[str], test: Sequence[str]) -> tuple[csr_matrix, csr_matrix]:
    """How often each text has each word of the training texts, in small letters: [examples, words]
    twice."""
    counter = CountVectorizer(tokenizer=split_words, token_pattern=None, min_df=FEWEST)
    return counter.fit_transform(train), counter.transform(test)


def words_of_first(
    train: Sequence[Example], test: Sequence[Example]
) -> tuple[csr_matrix, csr_matrix]:
    """Words of the (first) sentence."""
    return counted(*([first for (first, _), _ in part] for part in (train, test)))


def words_of_second(
    train: Sequence[Example], test: Sequence[Example]
) -> tuple[csr_matrix, csr_matrix]:
    """Words of the second sentence; what the first one says is not seen."""
    return counted(*([str(second) for (_, second), _ in part] for part in (train, test)))


def words_of_each(
    train: Sequence[Example], test: Sequence[Example]
) -> tuple[csr_matrix, csr_matrix]:
    """Words of both sentences, counted apart: no word is compared with one of the other
    sentence."""
    both = zip(words_of_first(train, test), words_of_second(train, test), strict=True)
    first, second = (hstack(features).tocsr() for features in both)
    return first, second


def overlap(train: Sequence[Example], test: Sequence[Example]) -> tuple[np.ndarray, np.ndarray]:
    """`shared` of each pair: [examples, 3] twice."""
    seen, asked = (
        np.array([shared(first, second or "") for (first, second), _ in part])
        for part in (train, test)
    )
    return seen, asked


def shared(first: str, second: str) -> tuple[float, float, float]:
    """Share of all words of a pair that stand in both; share of the second's words that stand in
    the first; how much longer the first is, in its own length."""
    one, other = (split_words(text.lower()) for text in (first, second))
    words = set(one)
    others = set(other)
    return (
        len(words & others) / len(words | others),
        len(words & others) / len(others),
        (len(one) - len(other)) / max(len(one), len(other)),
    )
