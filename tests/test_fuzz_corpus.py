"""Hostile texts: every corpus is read whole, or refused in one sentence. The oracle: `fuzz`."""

import json

from fuzz import REFUSED, Door, new_folder
from fuzz_files import PACK, damaged, in_bytes, places, put, spoiled, texts
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.tasks import squad
from spanbert_tutorial.text import corpora
from spanbert_tutorial.text.lines import visible

door = Door("corpus")
counts = door.counts()

SENTENCES = [
    "The river rose in the night.",
    "Anna Weller sold the old mill to her brother in 1904.",
    "Why? Nobody!",
]
LINE = {"title": "Mill", "text": " ".join(SENTENCES)}
words = st.sampled_from(
    [*SENTENCES, "\n", "\n\n", " ", "\t", "\r\n", "\x0b", "\x85", "\u2028", ". A", "!" * 50]
)
running = st.lists(words | texts, max_size=12).map("".join)
packings = st.sampled_from(list(PACK))


def letters(documents: list[list[str]]) -> str:
    """All that can be seen, in order."""
    return seen("".join("".join(document) for document in documents))


def seen(text: str) -> str:
    return "".join(letter for letter in text if visible(letter))


def check_documents(documents: list[list[str]]) -> None:
    for document in documents:
        assert document and all(sentence.strip() and "\n" not in sentence for sentence in document)
        "".join(document).encode()


@door.inputs(short=60, share=0.4)
@given(text=running, packing=packings, data=st.data())
def test_running_text_is_read_to_the_last_letter_or_refused(text, packing, data):
    whole = in_bytes(text)
    content = data.draw(damaged(PACK[packing](whole)))
    with new_folder() as folder:
        path = put(folder, f"a.txt{packing}", content)
        found = door.call(lambda: list(corpora.documents(path)))
    if found is not REFUSED:
        check_documents(found)
        if content == PACK[packing](whole):
            assert letters(found) == seen(whole.decode("utf-8-sig"))
    else:
        assert content != PACK[packing](whole) or not readable(whole)


def readable(data: bytes) -> bool:
    """Whether these bytes are UTF-8 with something to see."""
    try:
        return visible(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return False


@door.inputs(short=60, share=0.4)
@given(
    lines=st.lists(spoiled(LINE) | texts, min_size=1, max_size=3),
    packing=packings,
    titles=st.sets(st.sampled_from(["Mill", "5", "", "None"])),
    data=st.data(),
)
def test_lines_of_json_are_read_or_refused(lines, packing, titles, data):
    whole = in_bytes("\n".join(line.replace("\n", " ").replace("\r", " ") for line in lines))
    content = data.draw(damaged(PACK[packing](whole)))
    with new_folder() as folder:
        path = put(folder, f"a.jsonl{packing}", content)
        found = door.call(lambda: list(corpora.documents(path, titles)))
    if found is not REFUSED:
        check_documents(found)
        if content == PACK[packing](whole):
            entries = [
                json.loads(line) for line in whole.decode("utf-8-sig").split("\n") if line.strip()
            ]
            kept = [[entry["text"]] for entry in entries if entry.get("title") not in list(titles)]
            assert letters(found) == letters(kept)


@door.inputs(short=8, share=0.2)
@given(
    text=running | st.lists(spoiled(LINE), max_size=4).map("\n".join),
    form=st.sampled_from([".txt", ".jsonl"]),
    packing=packings,
    data=st.data(),
)
def test_questions_are_made_of_it_or_it_is_refused(text, form, packing, data):
    with new_folder() as folder:
        name = f"corpus{form}{packing}"
        put(folder, name, data.draw(damaged(PACK[packing](in_bytes(text)))))
        outcome = door.command(
            ["make-questions", "--corpus", name, "--output", "made.json"], folder
        )
        if not outcome.code:
            assert squad.read(folder / "made.json")


def test_what_is_spoiled_was_whole_before():
    """Else the suites would try only what is refused at once."""
    assert len(places(LINE)) == 2 and json.loads(json.dumps(LINE)) == LINE
    with new_folder() as folder:
        found = list(corpora.documents(put(folder, "a.jsonl", in_bytes(json.dumps(LINE)))))
    assert letters(found) == letters([SENTENCES])
