"""Hostile files of the tasks: every example is read right, or the file is refused in one sentence.
The oracle: `fuzz`."""

from fuzz import REFUSED, Door, new_folder
from fuzz_files import PACK, damaged, in_bytes, put, spoiled
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.tasks import conll, gap, relation_files, sentence_files

door = Door("task files")
counts = door.counts()

# Lines and parts of lines, right and wrong ones, that are put together at random.
SEMEVAL = [
    '1\t"The <e1>rain</e1> caused a <e2>flood</e2>."',
    "2\tA <e1>cup</e1> of <e2>tea</e2>",
    "<e1>a</e1><e2>b</e2>",
    "3\tno marks",
    "Cause-Effect(e1,e2)",
    "Content-Container ( e2 , e1 )",
    "Other",
    "Comment: rain",
    "",
    "\u2028",
    "\x85",
]
CONLL = [
    "#begin document (a); part 0",
    "# begin document b",
    "#end document",
    "# a comment",
    "a 0 0 Ola - (0)",
    "a\t0\t1\ta\xa0b\t-\t(1|(2",
    "a 0 2 mill 1)|2)",
    "a 0 3 mill - (0",
    "a 0 4 mill - *",
    "a 0 5 mill",
    "",
    "\u3000",
]
GLUE = [
    "sentence1\tsentence2\tlabel",
    "label\tsentence1\tsentence2\tlabel",
    "index\tsentence2\tsentence1\tlabel",
    "A.\tB.\tentailment",
    "A.\t\u200b\tnot_entailment",
    "0\tA.\tB.\tentailment",
    "A.\tB.\tmaybe",
    '"A.\tB.\tentailment',
    "",
    "\t\t",
]
GAP = [
    "\t".join(gap.HEADER),
    "a\tAda met Bo. She left.\tShe\t12\tAda\t0\tTRUE\tBo\t8\tFALSE\thttp://a",
    "b\tAda met Bo. She left.\tShe\t12.0\tAda\t0\tTRUE\tBo\t8\tfalse\t",
    "c\tAda met Bo.\tShe\t12\tAda\t-1\tTRUE\tBo\t99\tTRUE\t",
    "",
]
TACRED = [
    {
        "id": name,
        "token": ["Acme", "was", "founded", "by", "Ada", "Stone", "."],
        "relation": "org:founded_by",
        "subj_start": 0,
        "subj_end": 0,
        "subj_type": "ORGANIZATION",
        "obj_start": 4,
        "obj_end": 5,
        "obj_type": "PERSON",
    }
    for name in "ab"
]
packings = st.sampled_from(list(PACK))
ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])


def attempt(read, name, text, packing, data):
    """What `read` makes of a file with this text, which may be damaged."""
    content = data.draw(damaged(PACK[packing](in_bytes(text))))
    with new_folder() as folder:
        return door.call(read, put(folder, f"{name}{packing}", content))


def check_relations(found):
    for one in found:
        assert one.id and one.relation and all(word.strip() for word in one.words)
        for name in (one.subject, one.object):
            assert 0 <= name.first <= name.last < len(one.words)


@door.inputs(short=60, share=0.25)
@given(lines=st.lists(st.sampled_from(SEMEVAL), max_size=9), end=ends, packing=packings,
       data=st.data())  # fmt: skip
def test_semeval_is_read_or_refused(lines, end, packing, data):
    found = attempt(relation_files.read, "a.txt", end.join(lines), packing, data)
    if found is not REFUSED:
        check_relations(found)


@door.inputs(short=60, share=0.25)
@given(text=spoiled(TACRED), packing=packings, data=st.data())
def test_tacred_is_read_or_refused(text, packing, data):
    found = attempt(relation_files.read, "a.json", text, packing, data)
    if found is not REFUSED:
        check_relations(found)


@door.inputs(short=60, share=0.2)
@given(lines=st.lists(st.sampled_from(CONLL), max_size=9), end=ends, packing=packings,
       data=st.data())  # fmt: skip
def test_conll_is_read_or_refused(lines, end, packing, data):
    whole = end.join([CONLL[0], *lines, CONLL[2]])
    found = attempt(conll.read, "a.conll", whole, packing, data)
    if found is not REFUSED:
        for document in found:
            spans = [span for cluster in document.clusters for span in cluster]
            assert document.words and len(spans) == len(set(spans))
            assert all(0 <= first <= last < len(document.words) for first, last in spans)


@door.inputs(short=60, share=0.2)
@given(lines=st.lists(st.sampled_from(GLUE), max_size=6), end=ends, packing=packings,
       data=st.data())  # fmt: skip
def test_glue_is_read_or_refused(lines, end, packing, data):
    def read(path):
        return sentence_files.read(path, subtask="rte")

    found = attempt(read, "a.tsv", end.join([GLUE[0], *lines]), packing, data)
    if found is not REFUSED:
        for pair, label in found:
            assert all(text.strip() for text in pair) and label in sentence_files.ENTAILS


@door.inputs(short=40, share=0.1)
@given(lines=st.lists(st.sampled_from(GAP), max_size=4), end=ends, packing=packings,
       data=st.data())  # fmt: skip
def test_gap_is_read_or_refused(lines, end, packing, data):
    found = attempt(gap.read, "a.tsv", end.join([GAP[0], *lines]), packing, data)
    if found is not REFUSED:
        for row in found:
            for text, start in (row.pronoun, *row.names):
                assert text and row.text.startswith(text, start)
