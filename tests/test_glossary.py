"""The glossary: required terms, Korean in every row, agreement with the notation, links that lead
somewhere."""

import re

import pytest

from environment import ROOT

PAGE = ROOT / "book" / "workshop" / "glossary.md"
REQUIRED = """
    pre-trained model, fine-tuning, downstream task, feature-based, distant supervision, negative example, cloze,
    auto-encoding, auto-regressive, mention, entity, boundary token, budget, plateau,
    WordPiece, word start, vocabulary, segment embedding, position embedding, encoder, self-attention, attention head,
    GELU, layer normalization, masked language model, next sentence prediction, whole-word masking, token masking,
    80/10/10, bidirectional, left-to-right, context-free vector, contextual vector, probe, control, span,
    span masking, geometric distribution, span boundary objective, boundary row, relative position,
    single-sequence training, unigram entropy, held out, warm-up, weight decay, tied weights, cross-entropy, softmax,
    logits, checkpoint, static masking, dynamic masking, continued pre-training, seed, confidence interval,
    coreference resolution
"""
HANGUL = re.compile("[가-힣]")


def table(heading: str) -> list[list[str]]:
    """Rows of the table under a heading, without its first two lines."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


TERMS = table("Terms")
NAMES = [row[0].strip("*") for row in TERMS]
PARTS = {part.strip() for name in NAMES for part in name.split(",")}


def test_the_required_terms_are_there():
    wanted = {" ".join(term.split()) for term in REQUIRED.split(",")}
    assert not wanted - PARTS and len(TERMS) >= 60


def test_terms_are_sorted_and_stand_once():
    keys = [re.sub(r"[\[\]]", "", name).lower() for name in NAMES]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)


@pytest.mark.parametrize("row", TERMS, ids=NAMES)
def test_a_row_has_korean_one_sentence_and_a_chapter(row):
    name, korean, meaning, chapter = row
    assert HANGUL.search(korean), f"{name} has no Korean"
    assert meaning.endswith(".") and len(meaning) > 15
    links = re.findall(r"\]\(([^)]+)\)", chapter)
    assert links or chapter == "a later part"


def listed_pages() -> set[str]:
    return {
        line.split(":")[1].strip()
        for line in (ROOT / "_toc.yml").read_text(encoding="utf-8").splitlines()
        if "file:" in line or "root:" in line
    }


def test_links_lead_to_pages_of_the_book():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8")):
        page = (PAGE.parent / target).resolve()
        assert page.relative_to(ROOT).with_suffix("").as_posix() in listed_pages(), (
            f"{target} is not in _toc.yml"
        )
        assert page.is_file(), f"{target} does not exist"


def test_words_of_the_notation_have_the_same_meaning():
    notation = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
    words = notation.split("## Words", 1)[1].split("\n## ", 1)[0]
    meanings = {row[0].strip("*"): row[2] for row in TERMS}
    found = re.findall(r"^\| (\*.+?\*) \| (.+?) \|$", words, re.MULTILINE)
    assert len(found) >= 10
    for names, meaning in found:
        name = ", ".join(re.findall(r"\*([^*]+)\*", names))
        assert name in meanings, f"the glossary lacks {name}"
        core = meaning.removeprefix(
            "one such span: "
        )  # only there does a line stand above it that says which
        here = meanings[name].removesuffix(".")
        assert core in (here, here[0].lower() + here[1:]) or here.endswith(core), (
            f"{name} differs from notation.md"
        )


def test_every_term_stands_in_the_korean_index():
    index = {english: korean for korean, english in table("찾아보기")}
    assert index == {name: row[1] for name, row in zip(NAMES, TERMS, strict=True)}
    korean = [row[0] for row in table("찾아보기") if HANGUL.match(row[0])]
    assert korean == sorted(korean)
