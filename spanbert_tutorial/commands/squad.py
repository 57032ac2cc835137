"""`evaluate squad`, `answer`, `make-questions`: question answering on the command line. Chapter:
`book/tasks/squad`."""

import argparse
import json
import sys
from collections.abc import Sequence

from spanbert_tutorial.commands.run_state import read_titles
from spanbert_tutorial.commands.tasks import write_results
from spanbert_tutorial.errors import InputError, regular_file


def add_evaluate_options(parser: argparse.ArgumentParser) -> None:
    """What `evaluate squad` takes beside the options of all tasks."""
    parser.add_argument(
        "--data",
        required=True,
        help="SQuAD file or table (.json or .csv, also .xz, .gz) or "
        "OWNER/NAME:PART (without PART: validation)",
    )
    parser.add_argument(
        "--tune-on", help="other questions: the threshold that is best there is used"
    )
    parser.add_argument(
        "--output", required=True, help="new folder: predictions, texts, null_odds, score (.json)"
    )


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Options of `answer`."""
    parser.add_argument("--model", required=True, help="fine-tuned model: a folder or a hub name")
    parser.add_argument("--vocabulary", help="its vocabulary, if it does not lie there")
    parser.add_argument("--question", required=True)
    parser.add_argument("--context-file", required=True, help="text file (UTF-8)")
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.0,
        help="no answer above this null score − score (with an exponent: --threshold=-1e-5)",
    )


def add_make_options(parser: argparse.ArgumentParser) -> None:
    """Options of `make-questions`."""
    parser.add_argument(
        "--corpus", required=True, help="text file, .jsonl file, a folder of them, or a hub name"
    )
    parser.add_argument("--leave-out", help="file of document titles to leave out, one a line")
    parser.add_argument(
        "--easy", action="store_true", help="keep nearly all words of a sentence: to begin with"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--output", required=True, help="SQuAD file to write (.json, also .xz, .gz)"
    )


def read_training(*sources: str) -> list:
    """The questions of several files or sets, of these the part to train on."""
    from spanbert_tutorial.tasks.squad import read_several

    return read_several(sources, part="train")


def predictions(answerer, questions) -> tuple[dict[str, str], dict[str, float]]:
    """Best non-empty answer and null score − score of each question, by id, with a progress bar."""
    from spanbert_tutorial.engine.keeping import progress_bar

    texts = {}
    odds = {}
    with progress_bar(len(questions), unit="question") as bar:
        answers = answerer.answer_many(
            ((q.question, q.context) for q in questions), threshold=float("inf")
        )
        try:
            for question, answer in zip(questions, answers, strict=True):
                texts[question.id], odds[question.id] = (
                    answer.text,
                    answer.null_score - answer.score,
                )
                bar.update()
        except InputError as error:  # all before it have their answers
            wrong = questions[len(texts)]
            reason = str(error).removeprefix(f"pair {len(texts) + 1}: ")
            raise InputError(f'article "{wrong.title}", question {wrong.id}: {reason}') from None
    return texts, odds


def tuning_questions(options: argparse.Namespace, questions: Sequence) -> list:
    """The questions of `--tune-on`. Raises InputError unless a threshold can be chosen on them for
    `questions`."""
    from spanbert_tutorial.tasks import squad

    if all(question.answers for question in questions):
        raise InputError(
            f"no question of {options.data} is without an answer: leave out --tune-on."
        )
    other = squad.read(options.tune_on)
    if len({bool(question.answers) for question in other}) < 2:
        raise InputError(
            f"{options.tune_on} needs questions with an answer and questions without one: tune "
            f"on such."
        )
    ids, texts = (
        {key(question) for question in questions} & {key(question) for question in other}
        for key in (lambda one: one.id, lambda one: (one.question.strip(), one.context))
    )
    if ids or texts:
        raise InputError(
            f"{options.tune_on} holds questions of {options.data}: tune on others, or leave out "
            f"--tune-on "
            "(what tuning on the same questions gives stands in score.json anyway)."
        )
    return other


def evaluate(options: argparse.Namespace) -> None:
    """Predictions in the official format, and the score as JSON; with unanswerable questions at a
    threshold."""
    from spanbert_tutorial.pretraining.checkpoints import check_output
    from spanbert_tutorial.tasks import squad
    from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
    from spanbert_tutorial.tasks.real_questions import intervals

    output = check_output(options.output)
    questions = squad.read(options.data)
    other = tuning_questions(options, questions) if options.tune_on else []
    answerable_only = all(question.answers for question in questions)
    answerer = QuestionAnswerer.from_pretrained(options.model, options.vocabulary)
    texts, odds = predictions(answerer, questions)
    if answerable_only:
        result: dict = squad.score(texts, questions)
    else:
        threshold = 0.0
        if other:
            other_texts, other_odds = predictions(answerer, other)
            threshold = squad.chosen_threshold(other_texts, other, other_odds)
        result = {"threshold": threshold, **squad.score(texts, questions, odds, threshold)}
        best = {
            measure: squad.best_threshold(texts, questions, odds, measure)
            for measure in ("exact", "f1")
        }
        result["tuned_on_the_same_questions"] = {
            key: value
            for measure, pair in best.items()
            for key, value in zip((f"best_{measure}", f"best_{measure}_thresh"), pair, strict=True)
        }  # official names
        blanked = {
            number: "" if odds[number] > threshold else text for number, text in texts.items()
        }
    final = texts if answerable_only else blanked
    result["intervals"] = intervals(final, questions)  # 95 %
    # beside null_odds.json the official evaluation takes the texts with nothing left out
    contents = {"texts": texts, "null_odds": odds, "score": result}
    write_results(output, {"predictions": final} | contents)
    print(json.dumps(result, indent=1))


def answer(options: argparse.Namespace) -> None:
    """Prints the answer to one question."""
    from spanbert_tutorial.tasks.question_answering import QuestionAnswerer

    try:
        # line ends as they are: offsets count them
        context = regular_file(options.context_file).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise InputError(
            f"{options.context_file} does not exist: give a text file in UTF-8."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{options.context_file} cannot be read ({error}): give a text file in UTF-8."
        ) from None
    answerer = QuestionAnswerer.from_pretrained(options.model, options.vocabulary)
    found = answerer.answer(options.question, context, options.threshold)
    print(found.text or "(no answer)")
    print(
        f"score {found.score:.2f}, null score {found.null_score:.2f}, characters {found.start} "
        f"to {found.end}"
    )


def make_questions(options: argparse.Namespace) -> None:
    """Questions made by rule from the documents of a corpus, as a SQuAD file to fine-tune on."""
    from tqdm import tqdm

    from spanbert_tutorial.pretraining.checkpoints import check_output
    from spanbert_tutorial.tasks import made_questions as made
    from spanbert_tutorial.tasks.squad_files import write
    from spanbert_tutorial.text.corpora import documents

    output = check_output(options.output)
    texts = documents(options.corpus, read_titles(options.leave_out))
    stream = made.made_questions(texts, options.seed, easy=options.easy)
    questions = [*tqdm(stream, unit=" questions", file=sys.stdout, mininterval=0.5)]
    if not questions:
        raise InputError(
            f"no sentence of {options.corpus} has {made.FEWEST_WORDS} to {made.MOST_WORDS} "
            f"words: give "
            "running text."
        )
    write(output, questions, "made-1")
    print(f"{len(questions):,} questions: {output}")
