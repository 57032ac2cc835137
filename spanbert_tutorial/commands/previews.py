"""What the files of a task hold, in words: a line of counts, and single examples as the model sees
them, so that a misread file is noticed before any training. Chapter: `book/workshop/your_own_data`.

A `summary` says what a list of examples holds beside their number, a `preview` is (an example as
tokens, its label in words).
"""

from collections.abc import Sequence

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks import relation_extraction as relations
from spanbert_tutorial.tasks import sentence_files
from spanbert_tutorial.tasks.classification import Framed
from spanbert_tutorial.tasks.conll import Document
from spanbert_tutorial.tasks.coreference import segmented
from spanbert_tutorial.tasks.relation_files import Example
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.tagging import Words
from spanbert_tutorial.tasks.tagging_files import LabeledText
from spanbert_tutorial.tasks.windows import encode, windows

Preview = tuple[list[str], str]


def plural(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def question_preview(question: Question, wordpiece: WordPiece, max_length: int) -> Preview:
    """The first window that holds the answer, or the first of all."""
    encoded = encode(wordpiece, question.question, question.context)
    answer = qa.answer_tokens(encoded, question)
    found = windows(encoded, wordpiece, max_length, qa.PRESETS["small"].doc_stride)
    holding = [one for one in found if qa.target(one, answer) != qa.NO_ANSWER]
    window = (holding or found)[0]
    first, last = qa.target(window, answer)
    tokens = wordpiece.tokens(window.ids.tolist())
    if not question.answers:
        return tokens, "no answer"
    here = f"here {' '.join(tokens[first : last + 1])}" if last else "not complete in any window"
    return tokens, f'"{question.answers[0].text}", {here}'


def document_preview(document: Document, wordpiece: WordPiece, max_length: int) -> Preview:
    """The first segment, and the first clusters."""
    ids = segmented(document, wordpiece, max_length)[0].ids[0]
    clusters = [" = ".join(map(document.text, cluster)) for cluster in document.clusters]
    more = f"; and {len(clusters) - 3:,} more" if len(clusters) > 3 else ""
    return wordpiece.tokens(ids.tolist()), f"{'; '.join(clusters[:3]) or 'no cluster'}{more}"


def relation_preview(example: Example, wordpiece: WordPiece, max_length: int) -> Preview:
    """The sentence with its markers around the names, as `finetune relations` trains on it."""
    larger = wordpiece.with_tokens(relations.markers([example], "around"))
    ids = relations.Marked.of(example, larger, "around", max_length).ids
    places = example.subject, example.object
    names = [" ".join(example.words[place.first : place.last + 1]) for place in places]
    return larger.tokens(ids.tolist()), f"{example.relation} of {names[0]} to {names[1]}"


def sentences_summary(examples: Sequence[sentence_files.Example]) -> str:
    labels = {label for _, label in examples}
    if scores := [label for label in labels if isinstance(label, float)]:
        return f"scores from {min(scores):g} to {max(scores):g}"
    return plural(len(labels), "label")


def sentence_preview(
    example: sentence_files.Example, wordpiece: WordPiece, max_length: int
) -> Preview:
    sentences, label = example
    ids = Framed.of(sentences, wordpiece, max_length).ids
    return wordpiece.tokens(ids.tolist()), str(label)


def tagging_summary(texts: Sequence[LabeledText]) -> str:
    labels = [label for _, entities in texts for *_, label in entities]
    return f"{len(labels):,} entities of {plural(len(set(labels)), 'label')}"


def tagging_preview(example: LabeledText, wordpiece: WordPiece, max_length: int) -> Preview:
    text, entities = example
    ids = Words.of(text, wordpiece).parts(max_length)[0].ids
    named = "; ".join(f"{text[start:end]} = {label}" for start, end, label in entities)
    return wordpiece.tokens(ids.tolist()), named or "nothing named"
