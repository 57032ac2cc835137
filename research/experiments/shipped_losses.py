"""Losses of the shipped models of Wikipedia on text that they have not read, beside what
frequencies alone reach on the same tokens. Chapter: `book/evidence/spans_and_boundaries`.

`--corpus` is the folder of `.jsonl` files that the models were trained on, `--valid` another such
file; this project ships neither, only figures are kept. The tables without context (`unigram_baselines`)
are fitted on the training text.
"""

from collections.abc import Mapping
from pathlib import Path

from research.grid import rounded
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint, read_vocabulary
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.tasks.squad import read
from spanbert_tutorial.text.corpora import documents
from spanbert_tutorial.text.encoding import EncodedCorpus, encode_corpus
from spanbert_tutorial.text.sentences import split_sentences

OBJECTIVES = {"bert-mini": "mlm+nsp", "spanbert-mini": "span+sbo"}
MOST = {"held out": 100, "valid": 20, "reader": 2}  # batches of each text


def run_of(name: str) -> Run:
    """The run of a shipped model, as far as measuring needs it: what it predicts, and batches of 16
    × 256."""
    return Run(objective=OBJECTIVES[name], max_length=256, batch_size=16)


def reader_articles() -> list[list[str]]:
    """The sentences of each of the book's own short articles."""
    articles: dict[str, dict[str, list[str]]] = {}
    for question in read(data_path("reader", "reader.json")):
        paragraphs = articles.setdefault(question.title, {})
        paragraphs[question.context] = split_sentences(question.context)
    return [sum(paragraphs.values(), []) for paragraphs in articles.values()]


def losses(name: str, train: EncodedCorpus, texts: Mapping[str, EncodedCorpus]) -> dict[str, dict]:
    """text → way of hiding → figures, as `evaluation.held_out_metrics` gives them with tables that
    are fitted on `train`."""
    model, wordpiece = load_checkpoint(data_path("checkpoints", name))
    return {
        part: held_out_metrics(
            model, run_of(name), EncodedText(train, text, wordpiece), MOST[part], tables=True
        )
        for part, text in texts.items()
    }


def content(folder: Path, corpus: Path, valid: Path) -> dict:
    """Encodes the texts and measures every model on each."""
    vocabulary = data_path("checkpoints", "bert-mini")  # that of both
    wordpiece = read_vocabulary(vocabulary)
    left_out = set(data_path("squad_dev_titles.txt").read_text(encoding="utf-8").splitlines())
    encode = wordpiece.encode_many, len(wordpiece)
    text = open_text(str(corpus), folder / "corpus", vocabulary, 0, left_out)
    texts = {"held out": text.held_out}
    texts["valid"] = encode_corpus(documents(valid), *encode, folder / "valid")
    texts["reader"] = encode_corpus(reader_articles(), *encode, folder / "reader")
    return {
        "train": {"documents": len(text.train.document_ends), "tokens": len(text.train.ids)},
        "texts": {
            name: {
                "documents": len(part.document_ends),
                "tokens": len(part.ids),
                "batches": MOST[name],
            }
            for name, part in texts.items()
        },
        "losses": {name: rounded(losses(name, text.train, texts)) for name in OBJECTIVES},
    }


def place(path: tuple) -> tuple | None:
    """The model is the condition."""
    return (path[1], path[2:]) if path[0] == "losses" else None
