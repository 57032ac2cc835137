"""`finetune squad`, `evaluate squad`, `answer`, `make-questions`: question answering on the command line. Chapter:
`book/tasks/squad`.
"""

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from spanbert_tutorial.commands.run_state import kept_when_stopped, open_state, read_titles, remove_state
from spanbert_tutorial.errors import InputError, NoRoom, regular_file


def add_finetune_options(parser: argparse.ArgumentParser) -> None:
    """Options of `finetune squad`; what is left out comes from one of `question_answering.PRESETS`."""
    parser.add_argument("task", choices=["squad"])
    parser.add_argument("--data", nargs="+", required=True,
                        help="SQuAD files (also .xz, .gz) or OWNER/NAME:PART of the hub (without PART: train)")
    parser.add_argument("--init-from", required=True, help="pre-trained checkpoint: a folder or a hub name")
    parser.add_argument("--vocabulary", help="its vocabulary, if it does not lie there")
    parser.add_argument("--untrained", action="store_true", help="a control: the checkpoint's sizes, new weights")
    parser.add_argument("--output", required=True, help="folder of the fine-tuned model")
    parser.add_argument("--preset", help="short-first, small, bert-squad1, bert-squad2, spanbert (default: by width)")
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--batch-size", type=int, help="full windows in a batch; shorter ones go together")
    parser.add_argument("--learning-rate", type=float, help="peak learning rate")
    parser.add_argument("--length", type=int, help="positions of a window")
    parser.add_argument("--stride", type=int, help="context pieces from one window to the next")
    parser.add_argument("--answers-only", action="store_true", default=None,
                        help="leave out windows that miss their question's answer")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--resume", action="store_true", help="go on with a stopped run of the same options")


def add_evaluate_options(parser: argparse.ArgumentParser) -> None:
    """Options of `evaluate squad`."""
    parser.add_argument("task", choices=["squad"])
    parser.add_argument("--model", required=True, help="fine-tuned model: a folder or a hub name")
    parser.add_argument("--vocabulary", help="its vocabulary, if it does not lie there")
    parser.add_argument("--data", required=True,
                        help="SQuAD file (.json, also .xz, .gz) or OWNER/NAME:PART (without PART: validation)")
    parser.add_argument("--tune-on", help="other questions: the threshold that is best there is used")
    parser.add_argument("--output", required=True, help="new folder: predictions, texts, null_odds, score (.json)")


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Options of `answer`."""
    parser.add_argument("--model", required=True, help="fine-tuned model: a folder or a hub name")
    parser.add_argument("--vocabulary", help="its vocabulary, if it does not lie there")
    parser.add_argument("--question", required=True)
    parser.add_argument("--context-file", required=True, help="text file (UTF-8)")
    parser.add_argument("--threshold", type=float, default=0.0,
                        help="no answer above this null score − score (with an exponent: --threshold=-1e-5)")


def add_make_options(parser: argparse.ArgumentParser) -> None:
    """Options of `make-questions`."""
    parser.add_argument("--corpus", required=True, help="text file, .jsonl file, a folder of them, or a hub name")
    parser.add_argument("--leave-out", help="file of document titles to leave out, one a line")
    parser.add_argument("--easy", action="store_true", help="keep nearly all words of a sentence: to begin with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", required=True, help="SQuAD file to write (.json, also .xz, .gz)")


def finetune(options: argparse.Namespace) -> None:
    """Questions → windows → training → a folder that `answer` and `evaluate` open."""
    from spanbert_tutorial.engine.processes import processes
    from spanbert_tutorial.engine.snapshots import Snapshots
    from spanbert_tutorial.tasks import question_answering as qa
    from spanbert_tutorial.tasks.squad import read_several

    chosen_settings(options)  # a wrong option answers at once
    output, first = Path(options.output), processes().is_main_process
    state = open_state(options.output, options.resume)
    if state is None:
        return
    with kept_when_stopped(state):
        with processes().main_process_first():  # what is wrong is said once, and what the hub has comes once
            questions = read_several(options.data, part="train")
            wordpiece = qa.read_vocabulary(options.vocabulary or options.init_from)
            encoder = starting_encoder(options.init_from, options.untrained, options.seed or 0)
            settings = chosen_settings(options, encoder.config.hidden_size)
            snapshots = Snapshots(state / "snapshots", facts(options, settings, questions, wordpiece, encoder))
            snapshots.check()
        if first:
            print(f"{len(questions):,} questions, {sum(not q.answers for q in questions):,} of them without an answer.")
        answerer, history = qa.fine_tune(encoder, wordpiece, questions, settings, snapshots)
        if not first:
            return
        metrics = (state / "metrics.jsonl").read_text(encoding="utf-8")
        texts = {"README.md": card(options, settings, len(questions), metrics), "metrics.jsonl": metrics}
        answerer.save(output, texts)
    remove_state(state)
    print(f"Last 50 steps: {history.mean('loss', 50):.2f} nats a boundary. Model: {output}")


def facts(options: argparse.Namespace, settings, questions: Sequence, wordpiece, encoder) -> dict:
    """What must not change when a stopped run goes on."""
    from spanbert_tutorial.engine.processes import precision, processes
    from spanbert_tutorial.engine.snapshots import fingerprint

    def checksum(content: object) -> str:
        return hashlib.sha256(repr(content).encode()).hexdigest()

    given = {"data": " ".join(options.data), "init_from": options.init_from, "untrained": options.untrained,
             "vocabulary": options.vocabulary or "its own"}
    found = {"questions": len(questions), "content": checksum(questions), "pieces": checksum(wordpiece.pieces),
             "start": fingerprint(encoder)}
    return asdict(settings) | given | found | {"arithmetic": precision(), "processes": processes().num_processes}


def chosen_settings(options: argparse.Namespace, width: int = 0):
    """The `FineTuning` that the options ask for, for an encoder of this width."""
    from spanbert_tutorial.tasks.question_answering import PRESETS

    preset = options.preset or ("small" if width < 768 else "spanbert")
    if preset not in PRESETS:
        raise InputError(f'the preset "{preset}" is unknown: use one of {", ".join(PRESETS)}.')
    names = "epochs", "batch_size", "length", "stride", "seed", "answers_only"
    given = {name: getattr(options, name) for name in names}
    given["peak_learning_rate"] = options.learning_rate
    return replace(PRESETS[preset], **{name: value for name, value in given.items() if value is not None})


def starting_encoder(source: str, untrained: bool, seed: int):
    """The encoder of a checkpoint, or a new one of its sizes that starts as the small models of this book do."""
    import torch

    from spanbert_tutorial.bert import BertEncoder
    from spanbert_tutorial.pretraining import start_positions_from_sinusoids

    with warnings.catch_warnings(action="ignore", category=UserWarning):  # about heads, which are not needed
        encoder = BertEncoder.from_huggingface(source)
    if untrained:
        encoder = BertEncoder(encoder.config, torch.Generator().manual_seed(seed))
        start_positions_from_sinusoids(encoder)
    return encoder


def card(options: argparse.Namespace, settings, questions: int, metrics: str) -> str:
    """README.md of a fine-tuned model."""
    line = json.loads(metrics.splitlines()[-1])
    start = f"new weights of the sizes of {Path(options.init_from).name}" if options.untrained else \
        Path(options.init_from).name
    rows = "\n".join(f"| {name} | {value} |" for name, value in asdict(settings).items())
    return (f"# Question answering, fine-tuned by `python -m spanbert_tutorial finetune squad`\n\n"
            f"Started from {start}; {questions:,} questions of {', '.join(Path(one).name for one in options.data)}; "
            f"{line['step']:,} steps, {line['tokens']:,} tokens, {line['seconds'] / 60:.0f} minutes.\n\n"
            f"| setting | value |\n|---|---|\n{rows}\n\n"
            "Licence of the weights: that of the questions and texts applies.\n")


def predictions(answerer, questions) -> tuple[dict[str, str], dict[str, float]]:
    """Best non-empty answer and null score − score of each question, by id, with a progress bar."""
    from spanbert_tutorial.engine.keeping import progress_bar

    texts, odds = {}, {}
    with progress_bar(len(questions), unit="question") as bar:
        answers = answerer.answer_many(((q.question, q.context) for q in questions), threshold=float("inf"))
        try:
            for question, answer in zip(questions, answers, strict=True):
                texts[question.id], odds[question.id] = answer.text, answer.null_score - answer.score
                bar.update()
        except InputError as error:  # all before it have their answers
            wrong = questions[len(texts)]
            reason = str(error).removeprefix(f"pair {len(texts) + 1}: ")
            raise InputError(f'article "{wrong.title}", question {wrong.id}: {reason}') from None
    return texts, odds


def tuning_questions(options: argparse.Namespace, questions: Sequence) -> list:
    """The questions of `--tune-on`. Raises InputError unless a threshold can be chosen on them for `questions`."""
    from spanbert_tutorial.tasks import squad

    if all(question.answers for question in questions):
        raise InputError(f"no question of {options.data} is without an answer: leave out --tune-on.")
    other = squad.read(options.tune_on)
    if len({bool(question.answers) for question in other}) < 2:
        raise InputError(f"{options.tune_on} needs questions with an answer and questions without one: tune on such.")
    ids, texts = ({key(question) for question in questions} & {key(question) for question in other}
                  for key in (lambda one: one.id, lambda one: (one.question.strip(), one.context)))
    if ids or texts:
        raise InputError(f"{options.tune_on} holds questions of {options.data}: tune on others, or leave out --tune-on "
                         "(what tuning on the same questions gives stands in score.json anyway).")
    return other


def evaluate(options: argparse.Namespace) -> None:
    """Predictions in the official format, and the score as JSON; with unanswerable questions at a threshold."""
    from spanbert_tutorial.checkpoints import check_output
    from spanbert_tutorial.tasks import squad
    from spanbert_tutorial.tasks.question_answering import QuestionAnswerer

    output, questions = check_output(options.output), squad.read(options.data)
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
        best = {measure: squad.best_threshold(texts, questions, odds, measure) for measure in ("exact", "f1")}
        result["tuned_on_the_same_questions"] = {
            key: value for measure, pair in best.items()
            for key, value in zip((f"best_{measure}", f"best_{measure}_thresh"), pair, strict=True)}  # official names
        blanked = {number: "" if odds[number] > threshold else text for number, text in texts.items()}
    # beside null_odds.json the official evaluation takes the texts with nothing left out
    write_results(output, texts if answerable_only else blanked, {"texts": texts, "null_odds": odds, "score": result})
    print(json.dumps(result, indent=1))


def write_results(output: Path, texts: dict[str, str], contents: dict[str, dict]) -> None:
    """A new folder of predictions and other JSON files by name, whole or not at all."""
    from spanbert_tutorial.engine.files import whole_folder
    from spanbert_tutorial.tasks.squad import write_predictions

    try:
        with whole_folder(output) as made:
            write_predictions(made / "predictions.json", texts)
            for name, content in contents.items():
                (made / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise NoRoom(f"the results cannot be written to {output} ({error}): make room, or give another.") from error


def answer(options: argparse.Namespace) -> None:
    """Prints the answer to one question."""
    from spanbert_tutorial.tasks.question_answering import QuestionAnswerer

    try:
        # line ends as they are: offsets count them
        context = regular_file(options.context_file).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise InputError(f"{options.context_file} does not exist: give a text file in UTF-8.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{options.context_file} cannot be read ({error}): give a text file in UTF-8.") from None
    answerer = QuestionAnswerer.from_pretrained(options.model, options.vocabulary)
    found = answerer.answer(options.question, context, options.threshold)
    print(found.text or "(no answer)")
    print(f"score {found.score:.2f}, null score {found.null_score:.2f}, characters {found.start} to {found.end}")


def make_questions(options: argparse.Namespace) -> None:
    """Questions made by rule from the documents of a corpus, as a SQuAD file to fine-tune on."""
    from tqdm import tqdm

    from spanbert_tutorial.checkpoints import check_output
    from spanbert_tutorial.corpora import documents
    from spanbert_tutorial.tasks import made_questions as made
    from spanbert_tutorial.tasks.squad_files import write

    output, texts = check_output(options.output), documents(options.corpus, read_titles(options.leave_out))
    stream = made.made_questions(texts, options.seed, easy=options.easy)
    questions = [*tqdm(stream, unit=" questions", file=sys.stdout, mininterval=0.5)]
    if not questions:
        raise InputError(f"no sentence of {options.corpus} has {made.FEWEST_WORDS} to {made.MOST_WORDS} words: give "
                         "running text.")
    write(output, questions, "made-1")
    print(f"{len(questions):,} questions: {output}")
