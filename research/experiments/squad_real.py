"""Question answering on real questions: two pre-trained starts, new weights, and baselines that learn
nothing. Chapter: `book/evidence/questions`.

    python -m spanbert_tutorial make-questions --corpus WIKIPEDIA \\
        --leave-out data/squad_titles.txt --output MADE  # and with --easy: EASY

First on questions made by rules, from articles of other titles than SQuAD's, easy ones before. Then
SQuAD 1.1: trained on a part of its training set and two further sets, in short windows around the
answers, then in full ones; scored on a half of its development set, before and after. Then SQuAD
2.0: each model of before is trained on, on articles of the 2.0 files, and scored on other articles;
the threshold for "no answer" is chosen on a third group. One head goes through all stages. The
model of each run is kept in `--models` after SQuAD 1.1 and after 2.0; the shipped ones are those of
the first seed: `spanbert-mini` answers always, so it is that of 1.1.

`data/results/first_pair_answers.json` has what this command gave with the mini models that the book
shipped first, three seeds each.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from research.grid import rounded
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError, require
from spanbert_tutorial.pretraining.checkpoints import continue_from
from spanbert_tutorial.pretraining.model import start_positions_from_sinusoids
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import (
    PRESETS,
    QuestionAnswerer,
    QuestionAnsweringModel,
    QuestionAnsweringSettings,
    fine_tune,
)
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.squad_negatives import WordWeights, lexical_guess, type_guess

# predicted texts by id, the questions, null odds by id
Predictions = tuple[Mapping[str, str], Sequence[Question], Mapping[str, float]]
STARTS = ("spanbert-mini", "bert-mini", "new weights")
TRAIN = ("train-v1.1-part", "squadshifts-reddit", "squadshifts-amazon_reviews")
TEST = "dev-v1.1-half"
WITH_UNANSWERABLE = ("train-v2.0-part", "dev-v2.0-half")
ARMS = STARTS
SEEDS = 1  # a run takes an hour
FINE_TUNING = True
ONCE = ("new weights",)  # a control
# First questions made by rules, which teach a model to find text that shares words with a question
# (`experiment made_first` measures the gain); easy ones come first, which helped in single runs.
# Then real questions, with short windows around the answers before full ones: for the same number
# of tokens a model sees more questions, each with fewer positions to choose from. Questions without
# an answer need full windows, and all of them.
SHORT = replace(PRESETS["short-first"], epochs=1.0)
STAGES = {
    "easy": (replace(SHORT, epochs=0.35),),
    "made": (replace(SHORT, epochs=2.0),),
    "squad1": (SHORT, replace(PRESETS["small"], epochs=1.0, answers_only=True)),
    "squad2": (PRESETS["small"],),
}
SETTINGS = {"stages": STAGES}


def fine_tune_in_stages(
    start: BertEncoder | QuestionAnsweringModel,
    wordpiece: WordPiece,
    questions: Sequence[Question],
    stages: Sequence[QuestionAnsweringSettings],
    state: Path | None = None,
) -> tuple[QuestionAnswerer, list[History]]:
    """Trains `start` (in place) in one or more stages. An encoder gets a new head before the first
    stage; all stages train the same head. state: a folder for snapshots, from which the same call
    resumes after it was stopped."""
    histories = []
    for number, settings in enumerate(stages):
        facts = asdict(settings) | {"questions": len(questions)}
        snapshots = None if state is None else Snapshots(state / str(number) / "snapshots", facts)
        answerer, history = fine_tune(start, wordpiece, questions, settings, snapshots)
        start = answerer.model
        histories.append(history)
    return answerer, histories


def tuned(test: Predictions, tune: Predictions) -> dict[str, float]:
    """Scores on `test` at the threshold that is best on `tune`; `same`: F1 at the threshold that is
    best on `test` itself."""
    threshold = squad.chosen_threshold(*tune)
    same = squad.best_threshold(*test)[0]
    return {**squad.score(*test, threshold), "threshold": threshold, "same": same}


def human_score(questions: Sequence[Question], vote: bool = False) -> dict[str, float]:
    """What people reach: the second answer of each question as the prediction, the other answers as
    gold (SQuAD 1.1).

    vote: the first answer is gold, and the prediction is what the others say by `majority_answer`
    (the rule of SQuAD 2.0, on the answers that the file has). Only questions with at least two
    answers count, for a vote with three. Raises InputError when there is none.
    """
    several = [q for q in questions if len(q.answers) > (2 if vote else 1)]
    gold = {q.id: q.answers[:1] if vote else (q.answers[0], *q.answers[2:]) for q in several}
    said = {
        q.id: majority_answer([a.text for a in q.answers[1:]]) if vote else q.answers[1].text
        for q in several
    }
    return squad.score(said, [replace(q, answers=gold[q.id]) for q in several])


def majority_answer(texts: Sequence[str]) -> str:
    """What most say, compared once normalized; "" is to abstain.

    Of a tie, rather an answer than "", then the shortest (SQuAD 2.0).
    Raises InputError when nobody says anything.
    """
    require(texts, "no answers to vote on: give at least one.")
    votes = Counter(squad.normalize(text) for text in texts)
    return min(texts, key=lambda text: (-votes[squad.normalize(text)], not text, len(text)))


def read(folder: Path, names: Sequence[str]) -> list[Question]:
    """The questions of files NAME.json.xz, each id once (SQuAD 1.1 and 2.0 share some)."""
    return squad.read(*(folder / f"{name}.json.xz" for name in names))


def by_article(folder: Path) -> dict[str, list[Question]]:
    """The questions of the 2.0 files, no article in two groups: `test` every third article of the
    development part, `tune` every sixth, `train` all others."""
    train, dev = (read(folder, [name]) for name in WITH_UNANSWERABLE)
    titles = sorted({question.title for question in dev})
    group = {
        title: ("test", "train", "tune", "test", "train", "train")[i % 6]
        for i, title in enumerate(titles)
    }
    parts: dict[str, list[Question]] = {"train": train, "tune": [], "test": []}
    for question in dev:
        parts[group[question.title]].append(question)
    return parts


def start(name: str, seed: int) -> tuple[BertEncoder, WordPiece]:
    """The encoder of a shipped checkpoint, or new weights of the same sizes, and the vocabulary of
    both."""
    folder = data_path("checkpoints", STARTS[0] if name == "new weights" else name)
    encoder = continue_from(folder, "mlm")[0].encoder
    if name == "new weights":
        encoder = BertEncoder(
            replace(encoder.config, initializer_range=0.03), torch.Generator().manual_seed(seed)
        )
        start_positions_from_sinusoids(encoder)
    return encoder, WordPiece.from_file(folder / "tokenizer.json")


def scored(
    answerer: QuestionAnswerer, questions: Sequence[Question], tune: Sequence[Question] = ()
) -> dict:
    """Scores in percent; with `tune`, at the threshold that is best there, and beside it the best
    one on the questions themselves."""
    texts, odds = answerer.predict(questions)
    if not tune:
        return squad.score(texts, questions)
    other_texts, other_odds = answerer.predict(tune)
    return tuned((texts, questions, odds), (other_texts, tune, other_odds))


def baselines(data: dict[str, list[Question]]) -> dict[str, dict]:
    """What needs no training: two guessers, abstaining, and people."""
    found: dict[str, dict] = {
        "people": {"squad1": human_score(data["squad1 test"])},
        "people, by vote": {"squad1": human_score(data["squad1 test"], vote=True)},
    }
    for name, guess in (("lexical", lexical_guess), ("type", type_guess)):
        found[name] = {"squad1": squad.score(*guessed(guess, data["squad1 test"])[:2])}
        found[name]["squad2"] = tuned(
            *(guessed(guess, data[f"squad2 {group}"]) for group in ("test", "tune"))
        )
    nothing = {question.id: "" for question in data["squad2 test"]}
    found["always abstain"] = {"squad2": squad.score(nothing, data["squad2 test"])}
    return found


def guessed(guess: Callable, questions: Sequence[Question]) -> Predictions:
    """What a guesser says that weighs words by the questions' own contexts."""
    weights = WordWeights(sorted({question.context for question in questions}))
    predictions = {question.id: guess(question, weights) for question in questions}
    texts = {number: one.text for number, one in predictions.items()}
    return texts, questions, {number: one.null_odds for number, one in predictions.items()}


def all_questions(folder: Path) -> dict[str, list[Question]]:
    """Every group of written questions by its name."""
    data = {"squad1 train": read(folder, TRAIN), "squad1 test": read(folder, [TEST])}
    return data | {f"squad2 {name}": group for name, group in by_article(folder).items()}


def with_made(data: dict[str, list[Question]], **files: Path) -> dict[str, list[Question]]:
    """The same, and the made questions of files by name; the written ones of SQuAD 1.1 score what
    is learned from them, too."""
    for name, file in files.items():
        data = {f"{name} train": squad.read(file), f"{name} test": data["squad1 test"], **data}
    return data


def prepare(
    folder: Path, settings: Mapping, data: Path, easy: Path, made: Path, models: Path
) -> tuple[dict, tuple]:
    """All questions by group, and the folder for models."""
    try:
        models.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{models} cannot be made ({error}): give another folder by --models."
        ) from error
    groups = with_made(all_questions(data), made=made, easy=easy)
    counts = {
        name: [len(group), sum(not q.answers for q in group)] for name, group in groups.items()
    }
    return {"questions": counts}, (groups, models)


def beside(settings: Mapping, data: dict[str, list[Question]], models: Path) -> dict:
    """What needs no training."""
    return {"baselines": baselines(data)}


def one(
    name: str, seed: int, settings: Mapping, data: dict[str, list[Question]], models: Path
) -> list[dict]:
    """Fine-tunes one start on made questions, SQuAD 1.1, 2.0, a row for each; the last model is
    kept in `models`."""
    model: BertEncoder | QuestionAnsweringModel
    model, wordpiece = start(name, seed)
    target = models / f"{name.replace(' ', '-')}-{seed}"
    rows: list[dict] = []
    kept = Path(f"{target}.training")  # goes on after a stop
    for task, stages in settings["stages"].items():
        stages = [replace(stage, seed=seed) for stage in stages]
        answerer, histories = fine_tune_in_stages(
            model, wordpiece, data[f"{task} train"], stages, kept / task
        )
        model = answerer.model  # with its head
        taken = [
            {"settings": asdict(settings), "steps": history.done, "loss": history.mean("loss", 100)}
            for settings, history in zip(stages, histories, strict=True)
        ]
        result = scored(answerer, data[f"{task} test"], data.get(f"{task} tune", ()))
        rows.append({"task": task, "stages": taken, "score": result})
        print(name, task, seed, rounded(result), flush=True)
        if task in ("squad1", "squad2"):
            folder = Path(f"{target}-{task}")
            shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped later
            about = {"start": name, "seed": seed, "rows": rows}
            answerer.save(folder, {"rows.json": json.dumps(about, indent=1)})
    shutil.rmtree(kept, ignore_errors=True)
    return rows


def place(path: tuple) -> tuple | None:
    """A baseline is a condition."""
    return (path[1], path[2:]) if path[0] == "baselines" else None
