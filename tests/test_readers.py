"""Readers of data files: what does not change the meaning of a file does not change what is read.

For each format examples are written in a file, which is then disturbed: other line ends, blank
lines, comments, a byte-order mark, packing, another order of keys or columns."""

import ast
import csv
import io
import json
import warnings
from pathlib import Path

import pytest
from fuzz import new_folder
from fuzz_files import PACK
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spanbert_tutorial
from spanbert_tutorial.tasks import conll, gap, relation_files, sentence_files, squad_files
from spanbert_tutorial.text import corpora

ROOT = Path(spanbert_tutorial.__file__).parent
LETTERS = "aBé떡東😀\u0301\u05d0\u2028\u2029\x85\x0b\x0c\xa0\u3000\u200b"
often = settings(max_examples=60, deadline=None, derandomize=True, database=None,
                 suppress_health_check=list(HealthCheck))  # fmt: skip
# a word that can be seen, with signs inside at which a careless reader would cut
words = st.text(st.sampled_from(LETTERS), max_size=4).map(lambda inside: f"x{inside}y")
sentences = st.lists(words, min_size=1, max_size=5).map(" ".join)
names = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)
ends = st.sampled_from(["\n", "\r\n", "\r"])
marks = st.sampled_from(["", "\ufeff"])
packings = st.sampled_from(list(PACK))


def put(folder: Path, name: str, text: str, packing: str, end: str = "\n", mark: str = "") -> Path:
    """A file of this text, with other line ends, packed, with a byte-order mark or without."""
    path = folder / f"{name}{packing}"
    path.write_bytes(PACK[packing]((mark + text.replace("\n", end)).encode()))
    return path


def shuffled(draw: st.DrawFn, content: object) -> object:
    """JSON with the keys of every object in another order."""
    if isinstance(content, dict):
        keys = draw(st.permutations(list(content)))
        return {key: shuffled(draw, content[key]) for key in keys}
    return [shuffled(draw, one) for one in content] if isinstance(content, list) else content


@st.composite
def json_text(draw: st.DrawFn, content: object) -> str:
    """The content as JSON: other keys first, other spaces, other escapes."""
    return json.dumps(
        shuffled(draw, content),
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 0, 2, "\t"])),
    )


@st.composite
def with_blank_lines(draw: st.DrawFn, lines: list[str], blank: tuple[str, ...] = ("",)) -> str:
    """The lines with further ones between and behind them that mean nothing."""
    found = []
    for line in lines:
        found += [line, *draw(st.lists(st.sampled_from(blank), max_size=2))]
    return "\n".join(found) + draw(st.sampled_from(["", "\n"]))


# --- questions ----------------------------------------------------------------------


@st.composite
def questions(draw: st.DrawFn) -> list[squad_files.Question]:
    found = []
    for number in range(draw(st.integers(1, 3))):
        context = draw(sentences)
        start = draw(st.integers(0, len(context) - 1))
        end = draw(st.integers(start + 1, len(context)))
        answer = (squad_files.GoldAnswer(context[start:end], start),)
        if draw(st.booleans()) or not any(map(str.isalpha, context[start:end])):
            answer = ()
        found.append(squad_files.Question(f"q{number}", draw(sentences), context, "T", answer))
    return found


@often
@given(made=questions(), packing=packings, end=ends, mark=marks, data=st.data())
def test_squad(made, packing, end, mark, data):
    text = data.draw(json_text(squad_files.squad_format(made, "v2.0")))
    with new_folder() as folder:
        assert squad_files.read(put(folder, "a.json", text, packing, end, mark)) == made


@often
@given(
    made=questions(),
    columns=st.permutations(["id", "question", "context", "answer", "answer_start", "title"]),
    separator=st.sampled_from(",;\t"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    packing=packings,
    end=ends,
    mark=marks,
    data=st.data(),
)
def test_tables_of_questions(made, columns, separator, quoting, packing, end, mark, data):
    file = io.StringIO()
    table = csv.writer(file, delimiter=separator, quoting=quoting, lineterminator="\n")
    table.writerow(columns)
    for one in made:
        answer, start = next(((a.text, a.start) for a in one.answers), ("", ""))
        spreadsheet = data.draw(st.sampled_from(["{}", "{}.0"])).format(start) if answer else ""
        cells = {"id": one.id, "question": one.question, "context": one.context, "title": "T"}
        cells |= {"answer": answer, "answer_start": spreadsheet}
        table.writerow([cells[name] for name in columns])
        for _ in range(data.draw(st.integers(0, 2))):
            file.write(separator * 5 + "\n")
    with new_folder() as folder, warnings.catch_warnings(action="ignore"):
        assert squad_files.read(put(folder, "a.csv", file.getvalue(), packing, end, mark)) == made


# --- sentences ----------------------------------------------------------------------


@often
@given(
    made=st.lists(
        st.tuples(st.tuples(sentences, sentences), st.sampled_from(sentence_files.ENTAILS)),
        min_size=1,
        max_size=3,
    ),
    columns=st.permutations(["index", "sentence1", "sentence2", "label"]),
    packing=packings,
    end=ends,
    mark=marks,
    data=st.data(),
)
def test_glue(made, columns, packing, end, mark, data):
    lines = ["\t".join(columns)]
    for number, ((first, second), label) in enumerate(made):
        cells = {"index": number, "sentence1": first, "sentence2": second, "label": label}
        lines.append("\t".join(str(cells[name]) for name in columns))
    text = data.draw(with_blank_lines(lines, ("", " ", "\xa0")))
    with new_folder() as folder:
        path = put(folder, "a.tsv", text, packing, end, mark)
        assert list(sentence_files.read(path, subtask="rte")) == made


# --- relations ----------------------------------------------------------------------


@st.composite
def relations(draw: st.DrawFn, typed: bool) -> list[relation_files.Example]:
    """typed: with the types of TACRED; without, the subject stands first, as SemEval's e1."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        tokens = draw(st.lists(names, min_size=4, max_size=8))
        cuts = sorted(draw(st.sets(st.integers(0, len(tokens)), min_size=4, max_size=4)))
        first, second = (cuts[0], cuts[1] - 1), (cuts[2], cuts[3] - 1)
        if typed and draw(st.booleans()):
            first, second = second, first
        kinds = (draw(names), draw(names)) if typed else ("", "")
        relation = draw(st.sampled_from(["Other", "Cause-Effect(e1,e2)", "Message-Topic(e2,e1)"]))
        found.append(
            relation_files.Example(
                str(number + 1),
                tuple(tokens),
                relation_files.Argument(*first, kinds[0]),
                relation_files.Argument(*second, kinds[1]),
                relation,
            )
        )
    return found


@often
@given(made=relations(typed=False), packing=packings, end=ends, mark=marks, data=st.data())
def test_semeval(made, packing, end, mark, data):
    lines = []
    for one in made:
        tokens = list(one.words)
        for name, role in ((one.subject, "e1"), (one.object, "e2")):
            tokens[name.first] = f"<{role}>{tokens[name.first]}"
            tokens[name.last] += f"</{role}>"
        quote = data.draw(st.sampled_from(['"', ""]))
        lines.append(f"{one.id}\t{quote}{' '.join(tokens)}{quote}")
        spaced = data.draw(st.sampled_from(["(e1,e2)", " ( e1 , e2 )", "(e1, e2) "]))
        turned = spaced.replace("e1", "?").replace("e2", "e1").replace("?", "e2")
        lines.append(one.relation.replace("(e1,e2)", spaced).replace("(e2,e1)", turned))
        lines += data.draw(st.sampled_from([[], ["Comment:"], ["Comment: 7\tOther"], [""]]))
    text = data.draw(with_blank_lines(lines, ("", "  ", "\t")))
    with new_folder() as folder:
        assert relation_files.read(put(folder, "a.txt", text, packing, end, mark)) == made


@often
@given(made=relations(typed=True), packing=packings, end=ends, mark=marks, data=st.data())
def test_tacred(made, packing, end, mark, data):
    entries = []
    for one in made:
        entry = {"id": one.id, "relation": one.relation, "token": list(one.words)}
        for role, name in (("subj", one.subject), ("obj", one.object)):
            entry |= {f"{role}_start": name.first, f"{role}_end": name.last}
            entry[f"{role}_type"] = name.type
        entries.append(entry | data.draw(st.dictionaries(st.just("stanford_pos"), st.just([]))))
    text = data.draw(json_text(entries))
    with new_folder() as folder:
        assert relation_files.read(put(folder, "a.json", text, packing, end, mark)) == made


# --- coreference --------------------------------------------------------------------


@st.composite
def documents(draw: st.DrawFn) -> list[conll.Document]:
    token = words.filter(lambda word: not {" ", "\t"} & set(word))
    found = []
    for number in range(draw(st.integers(1, 2))):
        text = draw(st.lists(st.lists(token, min_size=1, max_size=3), min_size=1, max_size=3))
        count = sum(map(len, text))
        spans = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, 2)), max_size=3))
        mentions = sorted({(first, min(first + more, count - 1)) for first, more in spans})
        clusters = [[span] for span in mentions]  # of one mention: any two of these may cross
        found.append(conll.Document(f"d{number}", text, clusters, "0"))
    return found


@often
@given(made=documents(), packing=packings, end=ends, mark=marks, data=st.data())
def test_conll(made, packing, end, mark, data):
    gap_ = data.draw(st.sampled_from(["\t", " ", "   ", " \t"]))
    nothing = data.draw(st.sampled_from("-_*"))
    lines = []
    for document in made:
        for line in conll.rows(document):
            if line and line[0] != "#":
                *cells, last = line.split("\t")
                line = gap_.join([*cells, nothing if last == "-" else last])
            lines.append(line)
            lines += data.draw(st.sampled_from([[], ["# a comment"], ["#"]])) if line else [""]
    text = "\n".join(lines) + data.draw(st.sampled_from(["", "\n", "\n\n"]))
    with new_folder() as folder:
        assert conll.read(put(folder, "a.conll", text, packing, end, mark)) == made


@often
@given(text=st.lists(words, min_size=1, max_size=4), packing=packings, end=ends, mark=marks,
       data=st.data())  # fmt: skip
def test_gap(text, packing, end, mark, data):
    text = " ".join(["Ada met Bo .", *text, "She left ."])
    places = [text.index(name) for name in ("She", "Ada", "Bo")]
    cells = ["t-1", text, "She", places[0], "Ada", places[1], "TRUE", "Bo", places[2], "FALSE"]
    lines = ["\t".join(gap.HEADER), "\t".join(map(str, [*cells, "http://a"]))]
    with new_folder() as folder:
        path = put(folder, "a.tsv", data.draw(with_blank_lines(lines)), packing, end, mark)
        (row,) = gap.read(path)
    assert (row.text, row.pronoun, row.names) == (
        text,
        ("She", places[0]),
        (("Ada", places[1]), ("Bo", places[2])),
    )
    assert row.right == (True, False)


# --- corpora ------------------------------------------------------------------------

running = st.lists(st.lists(names, min_size=2, max_size=4).map(lambda some: " ".join(some) + "."),
                   min_size=1, max_size=3)  # fmt: skip


@often
@given(made=st.lists(running, min_size=1, max_size=3), packing=packings, end=ends, mark=marks,
       data=st.data())  # fmt: skip
def test_corpora(made, packing, end, mark, data):
    blank = data.draw(st.lists(st.sampled_from(["", " ", "\t"]), min_size=1, max_size=3))
    lines = [line for document in made for line in (*document, *blank)]
    rows = data.draw(
        with_blank_lines([json.dumps({"text": "\n".join(document)}) for document in made])
    )
    with new_folder() as folder:
        plain = put(folder, "a.txt", "\n".join(lines), packing, end, mark)
        objects = put(folder, "a.jsonl", rows, packing, end, mark)
        for path in (plain, objects):
            found = list(corpora.documents(path))
            assert [" ".join(document) for document in found] == [" ".join(one) for one in made]


# --- what lets errors in ------------------------------------------------------------

READERS = [
    *sorted((ROOT / "tasks").glob("*_files.py")),
    ROOT / "tasks" / "conll.py",
    ROOT / "tasks" / "gap.py",
    ROOT / "text" / "corpora.py",
    ROOT / "text" / "lines.py",
    ROOT / "relatives" / "byte_bpe.py",
    ROOT / "commands" / "run_state.py",
    ROOT / "commands" / "squad.py",
]


@pytest.mark.parametrize("path", READERS, ids=lambda path: path.name)
def test_readers_cut_at_named_signs_only(path):
    """`splitlines` cuts at ten signs, `split()` and `strip()` without an argument at all that is
    space: for a line end or a column that is too much."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            call = node.func.attr
            assert call != "splitlines", f"{path.name}, line {node.lineno}: use lines_of"
            bare = call in ("split", "rsplit", "strip", "lstrip", "rstrip") and not node.args
            assert not bare, f"{path.name}, line {node.lineno}: name the signs"
