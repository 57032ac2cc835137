"""The chapters teach: they are short, they report a result once, and nothing is said twice. What
the evidence pages need (intervals, p-values, commands) has no place in them."""

import json
import re
from collections import defaultdict

import pytest

from environment import ROOT
from notebooks import book_notebooks

CHAPTERS = [
    path for path in book_notebooks(ROOT) if path.parent.name not in ("evidence", "workshop")
]
PHRASES = """
    not shown, is shown, are shown, just so, foretold, written down, became of, by rule, came out,
    no result, in circulation, likeliest, must be inferred, by the means, one start, new weights,
    stands, brings, anew, seldom
"""
RETIRED = re.compile(
    r"\b(" + "|".join(phrase.strip() for phrase in PHRASES.split(",")) + r")\b", re.IGNORECASE
)
BRITISH = re.compile(r"\b\w*(?:neighbour|colour|labelled|labelling|behaviour|centre|favour)\w*\b")
RUN = 12  # words


def words_of(path) -> str:
    """The Markdown of a chapter without its code."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


TEXTS = {path.relative_to(ROOT / "book").as_posix(): words_of(path) for path in CHAPTERS}
EACH = pytest.mark.parametrize("name", TEXTS)


def test_all_chapters_together_are_a_book_that_people_finish():
    assert sum(len(text.split()) for text in TEXTS.values()) <= 45_000


@EACH
def test_a_chapter_is_short_and_leaves_the_statistics_to_the_evidence(name):
    text = TEXTS[name]
    assert len(text.split()) <= 2_800
    assert text.count("±") <= 3 and not re.search(r"\bp\*?\*? [=<≈]", text)
    assert "Holm" not in text and not re.search(r"\w\.json\b(?<!config.json)", text)


@EACH
def test_a_chapter_speaks_plain_american_english(name):
    assert RETIRED.findall(TEXTS[name]) == [] == BRITISH.findall(TEXTS[name])
    assert " %" not in TEXTS[name]


@EACH
def test_a_section_has_at_most_two_bold_phrases(name):
    for section in re.split(r"^#+ ", TEXTS[name], flags=re.MULTILINE):
        prose = "\n".join(line for line in section.splitlines() if not line.startswith("|"))
        assert len(re.findall(r"\*\*[^*]+\*\*", prose)) <= 2, section[:60]


def test_no_run_of_twelve_words_is_in_two_chapters():
    places = defaultdict(set)
    for name, text in TEXTS.items():
        prose = re.sub(r"<summary>.*?</summary>", "", text.split("## References")[0])
        words = re.findall(r"[\w'%]+", re.sub(r"\]\([^)]*\)", "]", prose).lower())
        for at in range(len(words) - RUN + 1):
            places[" ".join(words[at : at + RUN])].add(name)
    assert {run: names for run, names in places.items() if len(names) > 1} == {}
