"""Files as people have them: each kind that public reports of other projects describe is read as it
is meant, or refused in one sentence that names file, place and remedy. Nothing is guessed."""

import json

import pytest

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import conll, relation_files, sentence_files, squad_files

SEMEVAL = (
    '1\t"The heaviest <e1>rain</e1> caused a <e2>flood</e2>."\n'
    "Cause-Effect(e1,e2)\n"
    "Comment: the usual kind\n"
    '2\t"A <e1>cup</e1> of <e2>tea</e2> stood there."\n'
    "Content-Container( e2 , e1 )\n"
    "Comment:\n"
    '3\t"He sold the <e1>mill</e1>\u2028to the <e2>town</e2>\x85at last."\n'
    "Other\n"
)
TACRED = {
    "id": "a",
    "token": ["Acme", "was", "founded", "by", "Ada", "Stone", "."],
    "relation": "org:founded_by",
    "subj_start": 0,
    "subj_end": 0,
    "subj_type": "ORGANIZATION",
    "obj_start": 4,
    "obj_end": 5,
    "obj_type": "PERSON",
}
CONLL = [
    "#begin document (a); part 000",
    "a 0 0 Ola - - - - - - - (0)",
    "a 0 1 sold - - - - - - - -",
    "a 0 2 the - - - - - - - (1",
    "a 0 3 mill - - - - - - - 1)",
    "#end document",
]


def put(folder, name, text, newline="\n"):
    path = folder / name
    path.write_bytes(text.replace("\n", newline).encode())
    return path


def refused(read, *arguments):
    """The sentence with which something is refused."""
    with pytest.raises(InputError) as caught:
        read(*arguments)
    return str(caught.value)


# --- SemEval ------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_blocks_of_semeval_need_no_blank_lines(tmp_path, newline):
    found = relation_files.read(put(tmp_path, "a.txt", SEMEVAL, newline))
    assert [example.relation for example in found] == [
        "Cause-Effect(e1,e2)",
        "Content-Container(e2,e1)",
        "Other",
    ]
    assert "\u2028" not in found[2].words and len(found[2].words) == 10
    assert [example.id for example in found] == ["1", "2", "3"]


def test_a_comment_of_semeval_may_quote_a_marked_sentence(tmp_path):
    quoted = "Comment: better is <e1>flood</e1> with <e2>ruin</e2>."
    text = SEMEVAL.replace("Cause-Effect(e1,e2)\n", f"Cause-Effect(e1,e2)\n{quoted}\n")
    assert relation_files.read(put(tmp_path, "a.txt", text)) == relation_files.read(
        put(tmp_path, "b.txt", SEMEVAL)
    )


def test_a_test_file_of_semeval_without_labels_is_refused(tmp_path):
    bare = "\n".join(line for line in SEMEVAL.split("\n") if line[:1].isdigit())
    path = put(tmp_path, "test.txt", bare)
    assert refused(relation_files.read, path).startswith(f"{path}, line 1: the relation is missing")


# --- CoNLL --------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("gap", [" ", "\t", "   "])
@pytest.mark.parametrize("word", ["10\xa0000", "a\u3000b", "a\u2028b", "a\x85b"])
def test_columns_of_conll_are_parted_at_spaces_and_tabs_only(tmp_path, newline, gap, word):
    lines = [line.replace("mill", word) for line in CONLL]
    rows = [line if line[0] == "#" else line.replace(" ", gap) for line in lines]
    (document,) = conll.read(put(tmp_path, "a.conll", "\n".join(rows) + "\n", newline))
    assert document.words == ["Ola", "sold", "the", word]
    assert document.clusters == [[(0, 0)], [(2, 3)]]


def test_comments_inside_of_a_document_are_skipped(tmp_path):
    lines = [*CONLL[:2], "# sentence 7", "#", *CONLL[2:]]
    assert conll.read(put(tmp_path, "a.conll", "\n".join(lines))) == conll.read(
        put(tmp_path, "b.conll", "\n".join(CONLL))
    )


def test_two_clusters_may_meet_in_a_word_and_mentions_may_cross(tmp_path):
    ends = ["(0|(1)", "(2", "0)", "2)"]
    rows = [f"a 0 {i} w{i} - - - {end}" for i, end in enumerate(ends)]
    (document,) = conll.read(put(tmp_path, "a.conll", "\n".join([CONLL[0], *rows, CONLL[-1]])))
    assert document.clusters == [[(0, 0)], [(0, 2)], [(1, 3)]]


# --- columns ------------------------------------------------------------------------


def test_two_columns_of_one_name_are_refused_everywhere(tmp_path):
    glue = put(tmp_path, "a.tsv", "sentence1\tsentence2\tlabel\tlabel\nA.\tB.\tentailment\t0\n")
    table = put(tmp_path, "a.csv", "question,context,answer,answer\nWho?,Ada.,Ada,\n")
    assert '"label"' in refused(lambda: sentence_files.read(glue, subtask="rte"))
    assert '"answer"' in refused(squad_files.read, table)
    for whole in ('{"version": "1", "version": "2", "data": []}', '{"data": [], "data": []}'):
        assert "twice" in refused(squad_files.read, put(tmp_path, "a.json", whole))
    twice = json.dumps([TACRED]).replace('"relation"', '"relation": "x", "relation"')
    assert '"relation" twice' in refused(relation_files.read, put(tmp_path, "b.json", twice))


# --- tables without ids -------------------------------------------------------------


def test_tables_without_ids_can_be_read_together(tmp_path):
    tables = [
        put(tmp_path, f"{name}.csv", f"question,context,answer\nWho?,{name} left.,{name}\n")
        for name in ("Ada", "Bo")
    ]
    found = squad_files.read(*tables)
    assert [question.answers[0].text for question in found] == ["Ada", "Bo"]
    assert len({question.id for question in found}) == 2 and not found.skipped
    (tmp_path / "more").mkdir()
    same = put(tmp_path / "more", "Ada.csv", "question,context,answer\nWho?,Cy left.,Cy\n")
    assert len(squad_files.read(*tables, same)) == 3


# --- small things -------------------------------------------------------------------


def test_offsets_that_a_spreadsheet_wrote_and_lines_as_an_editor_counts(tmp_path):
    header = "question,context,answer,answer_start\n"
    path = put(tmp_path, "a.csv", f"{header}Who?,It was Ada.,Ada,7.0\n")
    assert squad_files.read(path)[0].answers[0].start == 7
    cell = '"one\rtwo\r\nthree\nfour"'
    path = put(tmp_path, "b.csv", f"{header}Who?,{cell},two,4\nWho?,Ada.,Bo,\n")
    assert f"{path}, line 6: the answer 'Bo'" in refused(squad_files.read, path)
