"""`answer`, `make-questions` and the scores of `evaluate squad`. Chapter: `book/tasks/squad`."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tqdm import tqdm

from spanbert_tutorial.commands.options import add, open_model
from spanbert_tutorial.commands.run_state import read_titles
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.checkpoints import check_output
from spanbert_tutorial.tasks import made_questions as made
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks import squad, squad_files
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.windows import encode
from spanbert_tutorial.text.corpora import documents
from spanbert_tutorial.text.lines import kind_of_file, read_text

ENGLISH = {"the", "of", "and", "is", "was", "to"}  # every sixth word or so


def answer_options(parser: argparse.ArgumentParser) -> None:
    add(parser, "model", required=True)
    add(parser, "vocabulary", help="its vocabulary, if it is not in that folder")
    add(parser, "question", required=True, help="the question to answer")
    add(parser, "context-file", required=True, help="text file (UTF-8)")
    add(parser, "threshold", "n-best", "max-answer-length")


def make_questions_options(parser: argparse.ArgumentParser) -> None:
    corpus = "a .txt or .jsonl file, a folder of them, or a hub name"
    add(parser, "corpus", required=True, help=corpus)
    add(parser, "leave-out", "easy", "seed")
    add(parser, "output", required=True, help="SQuAD file to write (.json, also .xz, .gz)")


def tuning_questions(options: argparse.Namespace, questions: Sequence[Question]) -> list[Question]:
    """The questions of `--tune-on`. Raises InputError unless a threshold can be chosen on them for
    `questions`."""

    def identities(given: Sequence[Question]) -> set[Any]:
        """What two questions that are the same share: their ids, or their texts with contexts."""
        texts = {(squad_files.asked(question), question.context) for question in given}
        return {question.id for question in given} | texts

    data = ", ".join(options.data)
    open_ones = not all(question.answers for question in questions)
    require(open_ones, f"all questions of {data} have answers: leave out --tune-on.")
    other = squad.read(options.tune_on)
    require(
        len({bool(question.answers) for question in other}) == 2,
        f"{options.tune_on} needs questions with an answer and questions without one: mend that.",
    )
    told = f"{options.tune_on} contains questions of {data}: give others, or no --tune-on."
    require(not identities(questions) & identities(other), told)
    return other


def results(
    options: argparse.Namespace, questions: Sequence[Question], answerer: qa.QuestionAnswerer
) -> dict[str, Any]:
    """Predictions in the official format and scores, by the name of their file. Unanswerable
    questions need a threshold."""
    other = tuning_questions(options, questions) if options.tune_on else []
    texts, odds = answerer.predict(questions)
    final = texts
    print_notes(questions, answerer, options.characters)
    if all(question.answers for question in questions):
        result: dict[str, Any] = squad.score(texts, questions)
    else:
        threshold = 0.0
        if other:
            other_texts, other_odds = answerer.predict(other)
            threshold = squad.chosen_threshold(other_texts, other, other_odds)
        result = {"threshold": threshold, **squad.score(texts, questions, odds, threshold)}
        tuned = result["tuned_on_the_same_questions"] = {}
        for measure in ("exact", "f1"):  # official names
            best, at = squad.best_threshold(texts, questions, odds, measure)
            tuned |= {f"best_{measure}": best, f"best_{measure}_thresh": at}
        final = {number: "" if odds[number] > threshold else text for number, text in texts.items()}
    if options.characters:
        best_of = [
            max(squad.character_f1(final[q.id], g) for g in squad.golds(q)) for q in questions
        ]
        result["character_f1"] = 100 * sum(best_of) / len(best_of)
    if drawn := squad.intervals(final, questions):  # 95 %; none without an answer
        result["intervals"] = drawn
    # the official evaluation takes null_odds.json together with the texts, none of them left out
    return {"predictions": final, "texts": texts, "null_odds": odds, "score": result}


def print_notes(
    questions: Sequence[Question], answerer: qa.QuestionAnswerer, characters: bool
) -> None:
    """Says what one has to know of these questions to read their scores."""
    answered = [question for question in questions if question.answers]
    encoded = ((encode(answerer.wordpiece, q.question, q.context), q) for q in answered)
    tokens = (qa.answer_tokens(*pair) for pair in encoded)
    notes = [qa.never_given(tokens, answerer.max_answer_length)]
    if not answered:
        notes.append("No question has an answer, so the scores say nothing about answers.")
    elif not characters and squad.unspaced(q.answers[0].text for q in answered):
        notes.append(
            "Exact match and F1 have the rules of English SQuAD, with spaces between words and ASCII "
            "punctuation; --characters adds an F1 over characters."
        )
    for note in filter(None, notes):
        print(note, file=sys.stderr)


def answer(options: argparse.Namespace) -> None:
    question, *more = options.question
    require(not more, "answer takes one --question: give several to predict squad.")
    # line ends unchanged, because the offsets count them
    context = read_text(options.context_file, "a text file", translate=False)
    answerer = open_model(qa.QuestionAnswerer, options)
    best = answerer.answer(question, context, options.threshold, options.n_best)
    scores = f"score {best.score:.2f}, null score {best.null_score:.2f}"
    print(best.text or "(no answer)")
    print(f"{scores}, characters {best.start} to {best.end}")
    for number, other in enumerate(best.n_best if options.n_best > 1 else (), start=1):
        place = f"characters {other.start} to {other.end}"
        print(f"{number}. {other.text} (score {other.score:.2f}, {place})")


def make_questions(options: argparse.Namespace) -> None:
    """Generates questions from the documents of a corpus and writes a SQuAD file."""
    output = check_output(options.output)
    mend = "give one that ends in .json (also .xz, .gz)"
    require(kind_of_file(output) in ("", ".json"), f"{output} would hold JSON: {mend}.")
    words: Counter[bool] = Counter()  # whether each is one of ENGLISH

    def counted() -> Iterator[list[str]]:
        for document in documents(options.corpus, read_titles(options.leave_out)):
            words.update(word in ENGLISH for word in " ".join(document).lower().split())
            yield document

    stream = made.made_questions(counted(), options.seed or 0, easy=options.easy)
    questions = [*tqdm(stream, unit=" questions", mininterval=0.5)]
    if 20 * words[True] < words.total():
        note = "This text hardly looks like English, and the rules are for English."
        print(note, file=sys.stderr)
    fitting = f"{made.MIN_WORDS} to {made.MAX_WORDS} words: give running text"
    require(questions, f"no sentence of {options.corpus} has {fitting}.")
    squad_files.write(output, questions, "made-1")
    print(f"{len(questions):,} questions: {output}")
