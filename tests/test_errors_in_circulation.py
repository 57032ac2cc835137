"""The page of errors in circulation: each is settled in a section that is there, and no chapter's
error is missing."""

import re

import pytest
from page_links import BOOK, dead_links, links, markdown, plain, unknown_numbers

PAGE = BOOK / "workshop" / "errors_in_circulation.md"
TEXT = PAGE.read_text(encoding="utf-8")
ENTRIES = re.findall(r"^- (.+?)(?=^- |^#|\Z)", TEXT, flags=re.MULTILINE | re.DOTALL)
MARK = re.compile(r"in circulation|often repeated|some notes say|many notes say", re.IGNORECASE)
CORRECTING = [path for path in sorted(BOOK.glob("*/*.ipynb")) if MARK.search(markdown(path))]


def words(text: str) -> str:
    """The text in small letters, without marks of any kind: to find a sentence again."""
    return " ".join(re.findall(r"\w+", plain(text).lower()))


def test_the_page_has_all_that_the_book_knows():
    assert len(ENTRIES) >= 35


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: words(entry)[:40])
def test_an_entry_has_a_claim_a_correction_and_the_section_that_settles_it(entry):
    claim, _, settled = entry.partition("→")
    assert re.match(r"\*\*.+?\*\*|`", claim) and len(words(claim).split()) > 10
    assert links(settled) and all("#" in target for _, target in links(settled))
    assert unknown_numbers(entry, PAGE) == set()


def test_links_lead_to_the_sections_that_they_name():
    assert dead_links(PAGE) == []


def test_no_chapter_has_a_list_of_errors_of_its_own():
    """They have one home, this page; a chapter links to it."""
    assert [path.stem for path in CORRECTING] == []


CLAIMS = (  # what is often written of ALBERT and ELECTRA
    "ALBERT is faster, because it has fewer parameters",
    "SOP removes what makes NSP easy",
    "taking ALBERT's embeddings of a text is called fine-tuning",
    "ELECTRA takes the generator's most likely word",
    "the generator is trained first, then copied into the discriminator",
    "ELECTRA is a generative adversarial network for text",
    "ELECTRA-Small beats BERT-Large by 5 GLUE points",
    "ELECTRA-Small needs 1/20 of the parameters and 1/4 of the computation",
    "the reason for replaced token detection is the `[MASK]` mismatch",
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_claims_about_the_relatives_are_corrected_here(claim):
    assert words(claim) in words(TEXT)
