"""Beat the boundary, a game: a span is masked, only its two neighbors can be read. Page:
`book/workshop/try_it`. In a clone `python -m research.game` draws its rounds again.
"""

import json
from typing import Any

from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures.part import Part

FILE = "beat_the_boundary.json"


def stored() -> dict[str, Any]:
    """The rounds of the file, with their source."""
    return json.loads(data_path(FILE).read_text(encoding="utf-8"))


class Sentence:
    """What stands where the game cannot be played."""

    def __repr__(self) -> str:
        return "Beat the boundary: a span of a sentence is masked. Which words are missing?"

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>"


def game() -> Part:
    kept = stored()
    for one in kept["rounds"]:
        one["words"] = split_words(one["text"])
    return Part("game", Sentence(), "play ten rounds against both heads", kept)
