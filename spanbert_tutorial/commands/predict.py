"""`predict TASK`: what a fine-tuned model says of labeled files, of files without labels and of
plain text, as JSON lines. Chapter: `book/workshop/your_own_data`.

Offsets count the characters of the reader's own text, in files of words the words; a score is a
probability, but of answers S + E and of mentions the mention score.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spanbert_tutorial.commands import squad
from spanbert_tutorial.commands.previews import plural
from spanbert_tutorial.commands.tasks import TASKS, add_tasks
from spanbert_tutorial.engine.files import write_text, writing
from spanbert_tutorial.engine.hooks import with_bar
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.checkpoints import check_output
from spanbert_tutorial.tasks import coreference, sentence_files, squad_files, tagging_files
from spanbert_tutorial.tasks.relation_files import marked_places, read_one
from spanbert_tutorial.tasks.squad_files import Question
from spanbert_tutorial.text.lines import kind_of_file, read_text

Row = dict[str, Any]
PLAIN = {
    "squad": ", or a plain .txt with --question",
    "coreference": ", or a plain .txt",
    "relations": "; a .txt may also hold a marked sentence a line",
    "sentences": "; a .txt may also hold a sentence a line, or two with a tab between",
    "tagging": ", or a plain .txt",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    does = "Predict, also where labels are missing; those there are not looked at"
    for name, task, options in add_tasks(parser, does, ROWS):
        add = options.add_argument
        add("--model", required=True, help="fine-tuned model: a folder or a hub name")
        add("--data", nargs="+", required=True, help=f"{task.data}{PLAIN.get(name, '')}")
        add("--output", required=True, help="file to write, a line of JSON for each example")
        if name == "squad":
            add("--question", action="append", help="to ask of plain text; may repeat")
            add("--threshold", type=float, default=0.0, help="as of `answer`")
            add("--n-best", type=int, default=1, help="how many answers to list (default: 1)")
            add("--max-answer-length", type=int, help=squad.LONGEST_ANSWER)


def predict(options: argparse.Namespace) -> None:
    """Reads the data, writes a line for each example, and says how many."""
    output = check_output(options.output)
    rows = list(ROWS[options.task](options))
    with writing(output):
        write_text(output, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    print(f"{plural(len(rows), TASKS[options.task].unit)}: {output}")


def is_plain(path: str) -> bool:
    return kind_of_file(path) == ".txt"


def plain_text(path: str) -> str:
    """The text of a file, its line ends unchanged: the offsets count them."""
    return read_text(path, "a text file", translate=False)


def model_of(options: argparse.Namespace) -> Any:
    return TASKS[options.task].model.from_pretrained(options.model, options.vocabulary)


def answers(options: argparse.Namespace) -> Iterator[Row]:
    plain = [path for path in options.data if is_plain(path)]
    asking = options.question or []
    mend = "give it with a .txt, and with no other file"
    require(bool(plain) == bool(asking), f"--question belongs to plain text: {mend}.")
    asked = [
        Question(f"{Path(path).name}, question {number}", question, text)
        for path in plain
        for text in [plain_text(path)]
        for number, question in enumerate(asking, start=1)
    ]
    asked += squad_files.read(*(path for path in options.data if path not in plain), labeled=False)
    pairs = ((one.question, one.context) for one in with_bar(asked, "question"))
    found = squad.open_answerer(options).answer_many(
        pairs, options.threshold, n_best=options.n_best
    )
    for one, answer in zip(asked, found, strict=True):
        place = {"text": answer.text, "start": answer.start, "end": answer.end}
        scores = {"score": answer.score, "null_score": answer.null_score}
        best = [
            {"text": each.text, "start": each.start, "end": each.end, "score": each.score}
            for each in answer.n_best
        ]
        yield {"id": one.id, "question": one.question} | place | scores | {"n_best": best}


def clusters(options: argparse.Namespace) -> Iterator[Row]:
    resolver = model_of(options)
    for path in options.data:
        if is_plain(path):
            text = plain_text(path)
            document, offsets = coreference.plain_with_offsets(text, Path(path).name)
            read = [document]
        else:
            read, offsets = coreference.read(path), []
        for document in read:
            rows: list[list[Row]] = []
            for cluster in resolver.scored_clusters(document):
                rows.append([])
                for (first, last), score in cluster.items():
                    words = document.text((first, last))
                    place: Row = {"text": words, "first": first, "last": last}
                    if offsets:
                        start, end = offsets[first][0], offsets[last][1]
                        place = {"text": text[start:end], "start": start, "end": end}
                    rows[-1].append(place | {"score": score})
            yield {"name": document.name, "part": document.part, "clusters": rows}


def relations(options: argparse.Namespace) -> Iterator[Row]:
    extractor = model_of(options)
    for path in options.data:
        examples = read_one(Path(path), labeled=False)
        text = plain_text(path) if is_plain(path) else ""
        places = marked_places(text) if text else [None] * len(examples)
        scores = extractor.scores(examples)
        for example, place, row in zip(examples, places, scores, strict=True):
            score, best = row.softmax(-1).max(-1)
            names: Row = {}
            for number, role in enumerate(("subject", "object")):
                name = getattr(example, role)
                words = " ".join(example.words[name.first : name.last + 1])
                names[role] = {"text": words, "first": name.first, "last": name.last}
                if place:
                    start, end = place[number]
                    names[role] = {"text": text[start:end], "start": start, "end": end}
            relation = extractor.facts["relations"][int(best)]
            yield {"id": example.id, "relation": relation, "score": float(score)} | names


def sentences(options: argparse.Namespace) -> Iterator[Row]:
    predictor = model_of(options)
    examples = sentence_files.read(*options.data, subtask=options.subtask, labeled=False)
    scores = predictor.scores(examples)
    labels = predictor.predict(examples)
    for ((first, second), _), label, row in zip(examples, labels, scores, strict=True):
        said = {"text": first} if second is None else {"text": first, "text_pair": second}
        if isinstance(label, float):  # the score is what is predicted
            yield said | {"score": label}
        else:
            yield said | {"label": label, "score": float(row.softmax(-1).max())}


def entities(options: argparse.Namespace) -> Iterator[Row]:
    """A row for each text; of a plain text one for all its sentences."""
    tagger = model_of(options)
    for path in options.data:
        examples = tagging_files.read(path, labeled=False)
        found = tagger.predict(examples)
        whole = plain_text(path) if is_plain(path) else ""
        places = (
            [at for at, _ in tagging_files.placed_sentences(whole)]
            if whole
            else [0] * len(examples)
        )
        named: list[Row] = []
        for (text, _), row, at in zip(examples, found, places, strict=True):
            rows = [
                {"text": text[a:b], "start": a + at, "end": b + at, "label": label, "score": score}
                for a, b, label, score in row
            ]
            named.append({"text": text, "entities": rows})
        if whole:
            named = [{"text": whole, "entities": sum((row["entities"] for row in named), [])}]
        yield from named


ROWS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "squad": answers,
    "coreference": clusters,
    "relations": relations,
    "sentences": sentences,
    "tagging": entities,
}
