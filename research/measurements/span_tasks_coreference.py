"""Coreference on LitBank and GAP: parts, settings, controls. Chapters:
`book/evidence/questions`, `book/evidence/paper_tables`.

LitBank: about 2,000 words each from the beginnings of novels (Bamman and others, 2020), with
clusters of one mention. A book is one document, so no book stands in two parts. Two pairs of books
share people: Tom Sawyer and Huckleberry Finn, and two of Sherlock Holmes; all four train.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from research.measurements import coreference_rules, gap
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.tasks import coreference, coreference_baselines
from spanbert_tutorial.tasks.conll import Document, Span
from spanbert_tutorial.tasks.coreference import CoreferenceResolver

HUCKLEBERRY_FINN = "76_"  # stands in the test's place, and Tom Sawyer in the training part
SETTINGS = coreference.PRESETS["small"]
FILES = {"litbank": "litbank/coref-conll.tar.xz", "gap": "gap/validation.tsv.xz"}


def parts(folder: Path) -> dict[str, list]:
    """LitBank by book: in the order of their numbers at Project Gutenberg, of ten books the first
    and the sixth are `test` (15), the fourth is `validation` (8), all others and Huckleberry Finn
    are `train` (57). `gap`: the rows that GAP calls validation (454)."""
    books = sorted(
        coreference.read(folder / FILES["litbank"]), key=lambda book: int(book.name.split("_")[0])
    )
    found: dict[str, list] = {"train": [], "validation": [], "test": []}
    for number, book in enumerate(books):
        place = {0: "test", 5: "test", 3: "validation"}.get(number % 10, "train")
        found["train" if book.name.startswith(HUCKLEBERRY_FINN) else place].append(book)
    return found | {"gap": gap.read(folder / FILES["gap"])}


def measured(
    encoder: BertEncoder, wordpiece: WordPiece, data: dict[str, list], seed: int
) -> dict[str, float]:
    """Figures in percent of a model that this encoder (trained in place) becomes with the training
    part."""
    resolver, _ = coreference.fine_tune(
        encoder, wordpiece, data["train"], replace(SETTINGS, seed=seed)
    )
    return figures(data["test"], resolver.predict(data["test"])) | on_gap(resolver, data["gap"])


def figures(
    documents: Sequence[Document], predictions: Sequence[list[list[Span]]]
) -> dict[str, float]:
    """F1 of each metric, of the mentions, and the averages with and without clusters of one
    mention."""
    found = coreference.score(documents, predictions)
    f1 = {name: found[name][2] for name in ("muc", "b_cubed", "ceaf_phi4", "mentions")}
    return f1 | {
        "average": found["average"],
        "average_two_or_more": found["two_or_more"]["average"],
    }


def rules(documents: Sequence[Document]) -> dict[str, dict[str, dict[str, float]]]:
    """How mentions are found (by rule, or taken from the labels) → the rule that joins them →
    figures."""
    finders = {
        "by rule": coreference_baselines.rule_mentions,
        "labeled": coreference_rules.gold_mentions,
    }
    return {
        how: {
            rule: figures(documents, [join(one, find(one)) for one in documents])
            for rule, join in coreference_rules.RULES.items()
        }
        for how, find in finders.items()
    }


def controls(data: dict[str, list]) -> dict[str, dict[str, float]]:
    """What needs no training: rules that join mentions; on GAP guesses."""
    found = {
        f"{rule}, mentions {how}": values
        for how, some in rules(data["test"]).items()
        for rule, values in some.items()
    }
    guesses = {"both": gap.both, "nearest": gap.nearest, "most often": gap.most_often}
    return found | {
        f"gap, {name}": gap_figures(data["gap"], [guess(row) for row in data["gap"]])
        for name, guess in guesses.items()
    }


# --- GAP ----------------------------------------------------------------------------


def on_gap(resolver: CoreferenceResolver, rows: Sequence[gap.Row]) -> dict[str, float]:
    """GAP's figures of a model trained on other text: the pronoun means a name when its cluster has
    a mention that lies inside the name."""
    documents = [coreference.plain(row.text, row.id) for row in rows]
    clusters = resolver.predict(documents)
    answers = [
        answer(row, document.offsets, found)
        for row, document, found in zip(rows, documents, clusters, strict=True)
    ]
    return gap_figures(rows, answers)


def answer(
    row: gap.Row, offsets: Sequence[tuple[int, int]], clusters: list[list[Span]]
) -> gap.Answer:
    """What the clusters of a text say of its pronoun. offsets: of its words, in characters."""

    def inside(mention: Span, place: tuple[str, int]) -> bool:
        text, start = place
        return start <= offsets[mention[0]][0] and offsets[mention[1]][1] <= start + len(text)

    of_it = (one for one in clusters if any(inside(mention, row.pronoun) for mention in one))
    home = next(of_it, [])
    first, second = (any(inside(mention, name) for mention in home) for name in row.names)
    return first, second


def gap_figures(rows: Sequence[gap.Row], answers: Sequence[gap.Answer]) -> dict[str, float]:
    """The figures of `gap.score`, named so that they stand beside others."""
    return {f"gap_{name}": value for name, value in gap.score(rows, answers).items()}
