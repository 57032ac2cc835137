"""Documents from every form of file, bad input named, and the encoded corpus equal to encoding by
hand."""

import gzip
import json
import lzma
import tempfile
from pathlib import Path

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.text.corpora import corpus_files, documents
from spanbert_tutorial.text.encoding import EncodedCorpus, encode_corpus
from spanbert_tutorial.text.sentences import split_sentences

STORIES = [["The river rose.", "It fell again."], ["Zoë asked why."], ["One.", "Two!", "Three?"]]
TXT = "\n\n".join("\n".join(story) for story in STORIES)
JSONL = "\n".join(json.dumps({"text": " ".join(story), "title": "t"}) for story in STORIES)
PACK = {"": lambda data: data, ".xz": lzma.compress, ".gz": gzip.compress}


def write(path: Path, text: str | bytes, packing: str = "") -> Path:
    path.write_bytes(PACK[packing](text.encode() if isinstance(text, str) else text))
    return path


# --- reading ------------------------------------------------------------------------


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize(("form", "text"), [(".txt", TXT), (".jsonl", JSONL)])
def test_every_form_and_packing_gives_the_same_documents(tmp_path, form, packing, text):
    assert list(documents(write(tmp_path / f"corpus{form}{packing}", text, packing))) == STORIES


def test_a_folder_is_read_in_the_order_of_names_below_it_too(tmp_path):
    (tmp_path / "b").mkdir()
    write(tmp_path / "b" / "second.jsonl.gz", json.dumps({"text": "Second."}), ".gz")
    write(tmp_path / "a.txt", "First.")
    write(tmp_path / "c.txt.xz", "Third.", ".xz")
    write(tmp_path / "notes.md", "Not text for training.")
    write(tmp_path / "empty.txt", "")  # an empty file among others does no harm
    assert list(documents(str(tmp_path))) == [["First."], ["Second."], ["Third."]]
    assert [file.name for file in corpus_files(tmp_path)] == [
        "a.txt",
        "second.jsonl.gz",
        "c.txt.xz",
        "empty.txt",
    ]


@pytest.mark.parametrize(
    "text",
    [
        TXT + "\n",
        "\n \n"
        + TXT.replace("\n\n", "\n\t\n\n\n")
        + "\n\n\n",  # blank lines at the ends, several, with spaces
        TXT.replace("\n", "\r\n"),
        "\ufeff" + TXT,  # the mark that some editors put in front of UTF-8
    ],
)
def test_blank_lines_line_ends_and_the_mark_in_front(tmp_path, text):
    assert list(documents(write(tmp_path / "a.txt", text))) == STORIES


# --- sentences ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? 4 is next.", ["One.", "Two!", "Three?", "4 is next."]),
        ("It is 3.5 km. and more", ["It is 3.5 km. and more"]),
        ("A line\nanother line", ["A line", "another line"]),
        (
            '"Go." She went. (He stayed.) [No.] End',
            ['"Go."', "She went.", "(He stayed.)", "[No.]", "End"],
        ),
        ("“Go.” “Why?” ‘So.’ End", ["“Go.”", "“Why?”", "‘So.’", "End"]),
        ("What?! Yes... No", ["What?!", "Yes...", "No"]),
        ("It rained. Évian lies there.", ["It rained.", "Évian lies there."]),
        ("诺拉买了船。她说：“好。”然后走了", ["诺拉买了船。", "她说：“好。”", "然后走了"]),
        ("هل جاء؟ نعم.", ["هل جاء؟", "نعم."]),
        ("राम आया।वह गया।", ["राम आया।", "वह गया।"]),
        ("¿Qué? ¡Así! „Ja.“ Äh", ["¿Qué?", "¡Así!", "„Ja.“", "Äh"]),
        ("It rained. 비가 왔다. 길이 젖었다.", ["It rained.", "비가 왔다.", "길이 젖었다."]),
        ("  \n\n ", []),
        ("", []),
    ],
)
def test_split_sentences(text, sentences):
    assert split_sentences(text) == sentences


@given(st.text(alphabet="Ab1.!?\"')]([ \n\té”", max_size=60))
def test_splitting_keeps_every_character_but_space(text):
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(
        sentence and sentence == sentence.strip() and "\n" not in sentence for sentence in sentences
    )


# --- the encoded corpus -------------------------------------------------------------

words_to_ids = st.lists(st.integers(0, 9), max_size=5)  # a sentence; may encode to nothing
corpus_of_ids = st.lists(st.lists(words_to_ids, min_size=1, max_size=4), min_size=1, max_size=8)


def encode_digits(sentences: list[str]) -> list[list[int]]:
    return [[int(digit) for digit in sentence] for sentence in sentences]


@given(corpus_of_ids)
def test_encoding_equals_encoding_sentence_by_sentence(corpus):
    written = [["".join(map(str, sentence)) for sentence in document] for document in corpus]
    lists = [[sentence for sentence in document if sentence] for document in corpus]
    flat = [i for document in lists for sentence in document for i in sentence]
    with tempfile.TemporaryDirectory() as folder:
        if not flat:
            with pytest.raises(InputError, match="holds no text after encoding"):
                encode_corpus(written, encode_digits, 10, folder)
            assert list(Path(folder).iterdir()) == []
            return
        encoded = encode_corpus(written, encode_digits, 10, folder)
        assert encoded.ids.tolist() == flat
        sentence_lengths = [len(sentence) for document in lists for sentence in document]
        document_lengths = [sum(map(len, document)) for document in lists if document]
        assert np.diff(encoded.sentence_ends, prepend=0).tolist() == sentence_lengths
        assert np.diff(encoded.document_ends, prepend=0).tolist() == document_lengths
        assert set(encoded.document_ends.tolist()) <= set(encoded.sentence_ends.tolist())
        assert encoded.document_ends[-1] == encoded.sentence_ends[-1] == len(encoded.ids)


def test_arrays_are_memory_mapped_and_open_again(tmp_path):
    first = encode_corpus(STORIES, lambda sentences: [[len(s)] for s in sentences], 100, tmp_path)
    again = EncodedCorpus.load(tmp_path)
    for name in ("ids", "sentence_ends", "document_ends"):
        one = getattr(first, name)
        other = getattr(again, name)
        assert isinstance(other, np.memmap) and not other.flags.writeable
        assert np.array_equal(one, other)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "document_ends.npy",
        "ids.npy",
        "sentence_ends.npy",
    ]


def test_titles_to_leave_out(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [
        {"title": "Oxygen", "text": "A gas."},
        {"title": "Oxygen mask", "text": "A mask."},
        {"text": "No title."},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    assert list(documents(path, leave_out={"Oxygen"})) == [["A mask."], ["No title."]]
    with pytest.raises(InputError, match="holds no text"):
        list(documents(path, leave_out={"Oxygen", "Oxygen mask", None}))


def test_a_set_of_the_hub_is_read_as_it_arrives(monkeypatch, tmp_path):
    asked = []

    def load(name, configuration, split, streaming):
        asked.append((name, configuration, split, streaming))
        rows = [
            {"title": "A", "text": "One. Two."},
            {"title": "B", "text": "Three."},
            {"title": "C", "text": " "},
        ]
        return datasets.IterableDataset.from_generator(lambda: iter(rows))

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert list(documents("owner/name")) == [["One.", "Two."], ["Three."]]
    assert list(documents("owner/name:part-1", {"A"})) == [["Three."]]
    assert asked == [("owner/name", None, "train", True), ("owner/name", "part-1", "train", True)]
    monkeypatch.setattr(
        datasets,
        "load_dataset",
        lambda *_, **__: datasets.IterableDataset.from_generator(
            lambda: iter([{"sentence": "One."}])
        ),
    )
    with pytest.raises(InputError, match="owner/name has no column of strings called text"):
        list(documents("owner/name"))
    (tmp_path / "owner").mkdir()
    (tmp_path / "owner" / "name").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="holds no .txt"):  # what is there as a path is a path
        list(documents("owner/name"))
