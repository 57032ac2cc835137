"""A document is a list of sentences: how a text is split. Chapter:
`book/spanbert/single_sequence`."""

import re

Document = list[str]


# . ! or ? with closing quotes and brackets, then space, then (perhaps after an opening one) a
# letter or digit
SENTENCE_END = re.compile(r"""([.!?]["')\]”’]*)(\s+)(?=["'(\[“‘]?([^\W_]))""")


def split_sentences(text: str) -> Document:
    """Sentences of a text: a line end always divides; so does . ! or ? before a space and A to Z, a
    digit, or a letter of a script that has no capitals, such as Hangul."""

    def end(found: re.Match) -> str:
        return found[1] + ("\n" if begins_a_sentence(found[3]) else found[2])

    return [
        sentence.strip() for sentence in SENTENCE_END.sub(end, text).split("\n") if sentence.strip()
    ]


def begins_a_sentence(sign: str) -> bool:
    """Whether a letter or digit may. A capital with an accent may not: so the kept results cut
    their texts."""
    if sign.isascii():
        return sign.isupper() or sign.isdigit()
    return sign.isalpha() and sign.lower() == sign.upper()
