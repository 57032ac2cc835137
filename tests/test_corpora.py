"""Documents from every form of file, bad input named, and the encoded corpus equal to encoding by
hand."""

import gc
import gzip
import json
import lzma
import re
import tempfile
from pathlib import Path

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.text import corpora
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


def complaint(path: Path) -> str:
    """The sentence that reading the corpus at `path` raises: one line that names the path."""
    with pytest.raises(InputError) as caught:
        list(documents(path))
    assert (
        str(path) in str(caught.value)
        and "\n" not in str(caught.value)
        and str(caught.value).endswith(".")
    )
    return str(caught.value)


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


def test_jsonl_skips_blank_lines_and_the_mark_in_front(tmp_path):
    text = "\ufeff" + JSONL.replace("\n", "\n\n") + "\n" + json.dumps({"text": " \n "}) + "\n"
    assert list(documents(write(tmp_path / "a.jsonl", text))) == STORIES


def test_the_last_document_counts_without_a_blank_line_after_it(tmp_path):
    # SpanBERT's released code loses it
    assert len(list(documents(write(tmp_path / "a.txt", "One.\n\nTwo.")))) == 2


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
        ("It rained. Évian lies there.", ["It rained. Évian lies there."]),
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


# --- bad input ----------------------------------------------------------------------


def test_a_missing_corpus(tmp_path):
    assert "does not exist" in complaint(tmp_path / "none.txt")


def test_a_folder_without_files_and_a_file_of_another_kind(tmp_path):
    (tmp_path / "folder").mkdir()
    assert "holds no .txt or .jsonl file" in complaint(tmp_path / "folder")
    assert "holds no .txt or .jsonl file" in complaint(write(tmp_path / "a.pdf", "text"))
    assert "holds no .txt or .jsonl file" in complaint(write(tmp_path / "README", "text"))


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize(
    ("form", "text"),
    [(".txt", ""), (".txt", " \n\n\t\n"), (".jsonl", ""), (".jsonl", '{"text": " "}\n')],
)
def test_no_text(tmp_path, form, packing, text):
    assert "holds no text" in complaint(write(tmp_path / f"a{form}{packing}", text, packing))


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize(
    "before", ["", "Zoë.\n", "Zoë.\n" * 5_000]
)  # the last is longer than one read
def test_not_utf8_names_the_byte(tmp_path, packing, before):
    bad = before.encode() + b"caf\xe9 au lait\nmore"
    place = len(before.encode()) + 3
    message = complaint(write(tmp_path / f"a.txt{packing}", bad, packing))
    assert f"is not UTF-8 at byte {place:,}:" in message and "convert" in message


def test_utf16_and_a_character_cut_at_the_end_are_not_utf8(tmp_path):
    assert "at byte 0:" in complaint(write(tmp_path / "a.txt", "Text.".encode("utf-16")))
    assert "at byte 4:" in complaint(write(tmp_path / "b.txt", "Text€".encode()[:-1]))


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "no",
        "[1]",
        "3",
        "null",
        '{"title": "a"}',
        '{"text": 3}',
        '{"text": null}',
        '{"text": ["a"]}',
        '{"text": "\\ud83d"}',
        '{"text": ' + "1" * 5_000 + "}",
        "[" * 200_000,
        '{"text": ' + '{"a":' * 200_000,
    ],
)
def test_a_bad_json_line_is_named(tmp_path, line):
    path = write(tmp_path / "a.jsonl", '{"text": "Good."}\n\n' + line + "\n")
    assert f"{path}, line 3: " in complaint(path)


@pytest.mark.parametrize("title", [["t"], {"t": 1}, 7, True, [[]]])
def test_a_title_of_another_type_cannot_be_left_out(tmp_path, title):
    path = write(tmp_path / "a.jsonl", json.dumps({"text": "Good.", "title": title}))
    assert list(documents(path)) == [["Good."]]  # nobody asked for titles
    with pytest.raises(InputError, match=re.escape(f"{path}, line 1: the title is no string")):
        list(documents(path, {"t"}))


def test_a_document_without_a_title_is_not_left_out(tmp_path):
    for document in (
        {"text": "Good."},
        {"text": "Good.", "title": None},
        {"text": "Good.", "title": "\ud800"},
    ):
        assert list(documents(write(tmp_path / "a.jsonl", json.dumps(document)), {"t"})) == [
            ["Good."]
        ]


@pytest.mark.parametrize("packing", [".xz", ".gz"])
def test_truncated_damaged_or_mislabeled_packing(tmp_path, packing):
    rng = np.random.default_rng(0)
    text = "".join(rng.choice(list("abc \n"), 20_000))
    whole = PACK[packing](text.encode())
    middle = len(whole) // 2
    damaged = (
        whole[:middle]
        + bytes(byte ^ 0xFF for byte in whole[middle : middle + 50])
        + whole[middle + 50 :]
    )
    cases = {"half": whole[:middle], "damaged": damaged, "not_packed": b"Plain text."}
    for name, data in cases.items():
        message = complaint(write(tmp_path / f"{name}.txt{packing}", data))
        assert f"is not a whole {packing} file" in message, name


@pytest.mark.parametrize("packing", [".xz", ".gz"])
def test_a_packed_file_that_is_not_utf8_and_breaks_off(tmp_path, packing):
    whole = PACK[packing](b"caf\xe9 au lait")
    for cut in range(1, len(whole)):
        said = complaint(write(tmp_path / f"a.txt{packing}", whole[:cut]))
        assert f"is not a whole {packing} file" in said or "is not UTF-8 at byte 3" in said


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = write(
        tmp_path / "a.txt", "Text."
    )  # the test may run as root, whom permissions do not stop

    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setitem(corpora.OPENERS, "", refuse)
    assert "may not be read" in complaint(path)


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


def test_more_documents_than_are_encoded_at_once(tmp_path):
    corpus = [[f"{number:04d}", "12"] for number in range(1_203)]
    encoded = encode_corpus(iter(corpus), encode_digits, 10, tmp_path / "new" / "folder")
    assert encoded.ids.tolist() == [
        int(digit) for document in corpus for sentence in document for digit in sentence
    ]
    assert encoded.document_ends.tolist() == list(range(6, 6 * 1_203 + 1, 6))


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


@pytest.mark.parametrize(("vocabulary", "kind"), [(2**16, np.uint16), (2**16 + 1, np.int32)])
def test_integers_are_as_narrow_as_the_vocabulary_allows(tmp_path, vocabulary, kind):
    encoded = encode_corpus([["last"]], lambda sentences: [[vocabulary - 1]], vocabulary, tmp_path)
    assert encoded.ids.dtype == kind and encoded.ids.tolist() == [vocabulary - 1]


def test_an_id_that_the_integers_cannot_hold_is_no_silent_overflow(tmp_path):
    with pytest.raises(OverflowError):
        encode_corpus([["a"]], lambda sentences: [[2**16]], 100, tmp_path)
    assert (
        gc.get_freeze_count() == 0
    )  # also after an error the garbage collector sees everything again


def test_the_garbage_collector_skips_what_exists_while_text_is_encoded(tmp_path):
    seen = []

    def encode(sentences):
        seen.append(gc.get_freeze_count())
        return [[1] for _ in sentences]

    encode_corpus(STORIES, encode, 9, tmp_path)
    assert min(seen) > 1_000 and gc.get_freeze_count() == 0


def test_loading_what_is_not_there_or_cut_off(tmp_path):
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "none"))):
        EncodedCorpus.load(tmp_path / "none")
    encode_corpus(STORIES, lambda sentences: [[1]] * len(sentences), 100, tmp_path)
    ids = tmp_path / "ids.npy"
    ids.write_bytes(ids.read_bytes()[:-4])
    with pytest.raises(InputError, match="encode the text again"):
        EncodedCorpus.load(tmp_path)


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


def test_a_set_that_the_hub_does_not_give_is_one_sentence(monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        InputError, match=r"owner/no-such-set .* cannot be read .*: check name and network"
    ):
        list(documents("owner/no-such-set"))


@pytest.mark.parametrize(
    "error", [ConnectionError("gone"), datasets.exceptions.DatasetGenerationError("broken")]
)
def test_a_set_of_the_hub_that_breaks_off_is_named(monkeypatch, error):
    def rows():
        yield {"text": "One. Two."}
        raise error

    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: rows())
    with pytest.raises(
        InputError, match=r"the set a/b of the Hugging Face hub broke off .* check the network"
    ):
        list(documents("a/b"))
