"""CoNLL's format: read, written, and files that are wrong in one place."""

import gzip
import lzma
import tarfile
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbert_tutorial.tasks import conll
from spanbert_tutorial.tasks.conll import Document

# columns as OntoNotes has them, apart by spaces
TEXT = """#begin document (bc/made/up); part 000
bc/made/up 0 0 Nora NNP * - - - - * (3
bc/made/up 0 1 Lund NNP * - - - - * 3)|(0)
bc/made/up 0 2 lost VBD * - - - - * -
bc/made/up 0 3 her PRP * - - - - * (1|(3)
bc/made/up 0 4 key NN * - - - - * 1)

bc/made/up 0 0 It PRP * - - - - * (1)
bc/made/up 0 1 lay VBD * - - - - * -

#end document
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "made.conll"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_document_is_read(file):
    (document,) = conll.read(file)
    assert document.name == "bc/made/up" and document.part == "000"
    assert document.sentences == [["Nora", "Lund", "lost", "her", "key"], ["It", "lay"]]
    assert document.clusters == [[(0, 1), (3, 3)], [(1, 1)], [(3, 4), (5, 5)]]
    assert document.text((3, 4)) == "her key"


def test_packed_files_folders_and_archives(file, tmp_path):
    wanted = conll.read(file)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "b.conll.xz").write_bytes(lzma.compress(TEXT.encode()))
    (tmp_path / "x" / "a.conll.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "x" / "notes.txt").write_text("no rows", encoding="utf-8")
    found = conll.read(tmp_path / "x")
    assert found == wanted and found.skipped == 1
    with tarfile.open(tmp_path / "all.tar.xz", "w:xz") as archive:
        archive.add(file, "inside/made.conll")
    assert conll.read(tmp_path / "all.tar.xz") == wanted


def spans(words):
    return st.tuples(st.integers(0, words - 1), st.integers(0, 2)).map(
        lambda one: (one[0], min(sum(one), words - 1))
    )


@st.composite
def documents(draw):
    """A document with mentions that may be nested, also in their own cluster, but cross only those
    of another."""
    sentence = st.lists(st.sampled_from(["a", "b.", "é"]), min_size=1, max_size=4)
    sentences = draw(st.lists(sentence, min_size=1, max_size=3))
    clusters = {}
    for span in draw(st.lists(spans(sum(map(len, sentences))), max_size=8, unique=True)):
        home = draw(st.integers(0, 2))
        crossing = any(
            min(span, other)[0] < max(span, other)[0] <= min(span, other)[1] < max(span, other)[1]
            for other in clusters.get(home, ())
        )
        if not crossing:
            clusters.setdefault(home, []).append(span)
    return Document("made", sentences, sorted(sorted(cluster) for cluster in clusters.values()))


@given(st.lists(documents(), min_size=1, max_size=3))
@settings(max_examples=80)
def test_what_is_written_is_read_again(tmp_path_factory, some):
    some = [replace(one, name=f"made{number}") for number, one in enumerate(some)]
    path = tmp_path_factory.mktemp("conll") / "again.conll"
    conll.write(path, some)
    assert conll.read(path) == some
