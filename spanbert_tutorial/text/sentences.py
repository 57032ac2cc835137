"""A document is a list of sentences: how a text is split. Chapter:
`book/spanbert/single_sequence`."""

import re
from collections.abc import Iterator

from spanbert_tutorial.text.lines import visible

Document = list[str]


CLOSING = r"""["')\]”’“»›」』》）]*"""
# a mark with closing quotes and brackets, then space, then (perhaps after an opening one) a letter
# or digit; or a mark of a script that writes no space behind it
SENTENCE_END = re.compile(
    rf"""([.!?؟۔։።။។]{CLOSING})(\s+)(?=["'(\[“‘«‹„‚¿¡]*([^\W_]))|([。！？｡।॥]+{CLOSING})\s*"""
)


def split_sentences(text: str) -> Document:
    """Sentences of a text: a line end always divides; so does . ! ? or another script's mark before
    a space and a capital of any script, a digit, or a letter of a script that has no capitals; and
    a mark that needs no space, such as 。 or ।."""

    def end(found: re.Match) -> str:
        if found[4]:
            return f"{found[4]}\n"
        return found[1] + ("\n" if begins_a_sentence(found[3]) else found[2])

    return [
        sentence.strip() for sentence in SENTENCE_END.sub(end, text).split("\n") if sentence.strip()
    ]


def begins_a_sentence(sign: str) -> bool:
    """Whether a letter or digit may: all but a small letter."""
    return sign.isdigit() or sign.isalpha() and (sign.isupper() or sign.lower() == sign.upper())


def placed_sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text that hold something to see, and where each begins in it."""
    at = 0
    for sentence in filter(visible, split_sentences(text)):
        at = text.index(sentence, at)
        yield at, sentence
        at += len(sentence)


def named_sentences(document: dict) -> Iterator[tuple[str, list[tuple[int, int, str, str]]]]:
    """The sentences of a document of the almanac, each with its names: (start, end, label, entity
    id), in characters of the sentence."""
    for begin, text in placed_sentences(document["text"]):
        yield (
            text,
            [
                (start - begin, stop - begin, label, entity)
                for start, stop, label, entity in document["entities"]
                if begin <= start < begin + len(text)
            ],
        )
