"""CoNLL's format: read, written, and files that are wrong in one place."""

import gzip
import lzma
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbert_tutorial.errors import InputError
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


def test_columns_may_stand_between_tabs_and_the_last_may_be_empty(tmp_path):
    row = "book\t0\t{}\t{}" + "\t_" * 8 + "\t{}\n"
    rows = row.format(0, "Nora", "(0)") + row.format(1, "ran", "") + row.format(2, "home", "_")
    (tmp_path / "a.conll").write_text(
        f"#begin document (book); part 0\n{rows}#end document\n", encoding="utf-8"
    )
    assert conll.read(tmp_path / "a.conll") == [
        Document("book", [["Nora", "ran", "home"]], [[(0, 0)]])
    ]


def test_packed_files_folders_and_archives(file, tmp_path):
    wanted = conll.read(file)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "b.conll.xz").write_bytes(lzma.compress(TEXT.encode()))
    (tmp_path / "x" / "a.conll.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "x" / "notes.txt").write_text("no rows", encoding="utf-8")
    assert conll.read(tmp_path / "x") == 2 * wanted
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
    path = tmp_path_factory.mktemp("conll") / "again.conll"
    conll.write(path, some)
    assert conll.read(path) == some


def test_crossing_mentions_of_one_cluster_cannot_be_written(tmp_path):
    document = Document("made", [["a", "b", "c", "d"]], [[(0, 2), (1, 3)]])
    with pytest.raises(InputError, match='"a b c" and "b c d" of made cross in one cluster'):
        conll.write(tmp_path / "x.conll", [document])
    assert not (tmp_path / "x.conll").exists()


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("#begin document (bc/made/up); part 000\n", "", 1, "a row outside of a document"),
        (
            "#begin document (bc/made/up); part 000",
            "#begin the document",
            1,
            "not a begin of a document",
        ),
        ("bc/made/up 0 2 lost VBD * - - - - * -", "bc/made/up 0 2 lost", 4, "at least 5 columns"),
        ("* (1|(3)", "* (1|3", 5, '"3" is no mention'),
        ("* 1)\n", "* 2)\n", 6, "cluster 2 ends that has not begun"),
        ("* 1)\n", "* -\n", 5, "cluster 1 begins that never ends"),
        ("* (1)\n", "* (1)|(2)\n", 8, 'the mention "It" is given twice'),
        (
            "\nbc/made/up 0 0 It",
            "#begin document (b); part 0\nbc/made/up 0 0 It",
            7,
            "begins before bc/made/up has",
        ),
        ("#end document\n", "#end document\n#end document\n", 12, "ends that has not begun"),
    ],
)
def test_a_bad_file_names_line_and_reason(file, old, new, line, reason):
    assert TEXT.count(old) == 1
    file.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        conll.read(file)
    assert f"{file}, line {line}: " in str(raised.value) and reason in str(raised.value)


def test_other_bad_files(file, tmp_path):
    file.write_text(TEXT.replace("#end document\n", ""), encoding="utf-8")
    with pytest.raises(InputError, match="the file ends inside the document bc/made/up"):
        conll.read(file)
    file.write_text("#begin document (a); part 0\n\n#end document\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3: the document a holds no words"):
        conll.read(file)
    file.write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds no document"):
        conll.read(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        conll.read(file)
    (tmp_path / "cut.conll.xz").write_bytes(lzma.compress(TEXT.encode())[:60])
    (tmp_path / "cut.tar.xz").write_bytes(lzma.compress(TEXT.encode()))
    for name in ("absent.conll", "cut.conll.xz", "cut.tar.xz"):
        with pytest.raises(InputError, match="cannot be read|does not exist"):
            conll.read(tmp_path / name)
