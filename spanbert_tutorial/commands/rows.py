"""What `predict TASK` writes: what a fine-tuned model says of labeled files, of files without labels
and of plain text, a row for each example. Chapter: `book/workshop/your_own_data`.

Offsets count characters of the reader's own text, or words in files of words. A score is a
probability, except: S + E for answers, the mention score for mentions, the predicted number for
STS-B.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from spanbert_tutorial.engine.hooks import with_bar
from spanbert_tutorial.errors import require
from spanbert_tutorial.tasks import coreference, sentence_files, squad_files, tagging_files
from spanbert_tutorial.tasks.classification import SentencePredictor
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.relation_extraction import RelationExtractor
from spanbert_tutorial.tasks.relation_files import marked_places, read_one
from spanbert_tutorial.tasks.squad_files import Question
from spanbert_tutorial.tasks.tagging import Tagger
from spanbert_tutorial.text.lines import kind_of_file, read_text, visible
from spanbert_tutorial.text.sentences import placed_sentences

Row = dict[str, Any]


def plain_text(path: str) -> str | None:
    """The text of a .txt, its line ends unchanged: the offsets count them; None for other files."""
    if kind_of_file(path) != ".txt":
        return None
    text = read_text(path, "a text file", translate=False)
    require(visible(text), f"{path} holds no text: give a file with at least one sentence.")
    return text


def place(text: str, start: int, end: int) -> Row:
    return {"text": text[start:end], "start": start, "end": end}


def place_in_words(words: Sequence[str], first: int, last: int) -> Row:
    return {"text": " ".join(words[first : last + 1]), "first": first, "last": last}


def answers(options: argparse.Namespace, answerer: QuestionAnswerer) -> Iterator[Row]:
    texts = {path: plain_text(path) for path in options.data}
    plain = {path: text for path, text in texts.items() if text is not None}
    asking = options.question or []
    mend = "give both a .txt and a --question, or neither"
    require(bool(plain) == bool(asking), f"--question belongs to plain text: {mend}.")
    names = [Path(path).name for path in plain]
    asked = [
        Question(f"{name if names.count(name) == 1 else path}, question {number}", question, text)
        for name, (path, text) in zip(names, plain.items(), strict=True)
        for number, question in enumerate(asking, start=1)
    ]
    asked += squad_files.read(*(path for path in options.data if path not in plain), labeled=False)
    pairs = ((one.question, one.context) for one in with_bar(asked, "question"))
    found = answerer.answer_many(pairs, options.threshold, n_best=options.n_best)
    for one, answer in zip(asked, found, strict=True):
        own, *best = [
            {name: getattr(each, name) for name in ("text", "start", "end", "score")}
            for each in (answer, *answer.n_best)
        ]
        more = {"null_score": answer.null_score, "n_best": best}
        yield {"id": one.id, "question": one.question} | own | more


def clusters(
    options: argparse.Namespace, resolver: coreference.CoreferenceResolver
) -> Iterator[Row]:
    for path in options.data:
        text, name = plain_text(path), Path(path).name
        documents = coreference.read(path) if text is None else [coreference.plain(text, name)]
        for document in documents:
            words, at = document.words, document.offsets
            rows: list[list[Row]] = []
            for cluster in resolver.scored_clusters(document):
                rows.append([])
                for (first, last), score in cluster.items():
                    where = place_in_words(words, first, last)
                    if text is not None:
                        where = place(text, at[first][0], at[last][1])
                    rows[-1].append(where | {"score": score})
            yield {"name": document.name, "part": document.part, "clusters": rows}


def relations(options: argparse.Namespace, extractor: RelationExtractor) -> Iterator[Row]:
    for path in options.data:
        examples, text = read_one(Path(path), labeled=False), plain_text(path) or ""
        marked: Sequence[tuple] = marked_places(text) or [()] * len(examples)
        scores = extractor.scores(examples)
        for example, places, row in zip(examples, marked, scores, strict=True):
            score, best = row.softmax(-1).max(-1)
            names = [place(text, *one) for one in places] or [
                place_in_words(example.words, name.first, name.last)
                for name in (example.subject, example.object)
            ]
            said = {"id": example.id, "relation": extractor.facts["relations"][int(best)]}
            yield said | {"score": float(score), "subject": names[0], "object": names[1]}


def sentences(options: argparse.Namespace, predictor: SentencePredictor) -> Iterator[Row]:
    examples = sentence_files.read(*options.data, subtask=options.subtask, labeled=False)
    scores = predictor.scores(examples)
    labels = predictor.named(scores)
    for ((first, second), _), label, row in zip(examples, labels, scores, strict=True):
        said = {"text": first} if second is None else {"text": first, "text_pair": second}
        if isinstance(label, float):  # the score is what is predicted
            yield said | {"score": label}
        else:
            yield said | {"label": label, "score": float(row.softmax(-1).max())}


def entities(options: argparse.Namespace, tagger: Tagger) -> Iterator[Row]:
    """A row for each text; of a plain text one for all its sentences."""
    for path in options.data:
        examples, text = tagging_files.read(path, labeled=False), plain_text(path) or ""
        text = "" if tagging_files.tagged(text) else text
        starts = [at for at, _ in placed_sentences(text)] or [0] * len(examples)
        rows = []
        for (part, _), at, found in zip(examples, starts, tagger.predict(examples), strict=True):
            named = [
                place(text or part, at + start, at + end) | {"label": label, "score": score}
                for start, end, label, score in found
            ]
            rows.append({"text": part, "entities": named})
        if text:
            rows = [{"text": text, "entities": [one for row in rows for one in row["entities"]]}]
        yield from rows
