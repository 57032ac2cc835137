"""The almanac, a small fictional world: its facts (`world`), sentences (`text`), documents and
questions.

`almanac.read("train")` gives the shipped documents. Chapter: `book/welcome`.
"""

from spanbert_tutorial.almanac.documents import generate, name_inference, sentence_entities, write
from spanbert_tutorial.text.corpora import read_almanac as read

__all__ = ["generate", "name_inference", "read", "sentence_entities", "write"]
