"""CoNLL's format is read."""

import gzip
import lzma
import tarfile

import pytest

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import conll

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
    file.write_text(TEXT.replace("(1)", "(1)|(2)"), encoding="utf-8")
    with pytest.raises(InputError, match="line 8: two mentions have the same words"):
        conll.read(file)


def test_packed_files_folders_and_archives(file, tmp_path):
    wanted = conll.read(file)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "b.conll.xz").write_bytes(lzma.compress(TEXT.encode()))
    (tmp_path / "x" / "a.conll.GZ").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "x" / "notes.txt").write_text("no rows", encoding="utf-8")
    found = conll.read(tmp_path / "x")
    assert found == wanted and found.skipped == 1
    with tarfile.open(tmp_path / "all.tar.xz", "w:xz") as archive:
        archive.add(file, "inside/made.conll")
    assert conll.read(tmp_path / "all.tar.xz") == wanted
