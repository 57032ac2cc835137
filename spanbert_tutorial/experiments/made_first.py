"""What made questions bring before real ones: two ways to spend the same number of pieces. Chapter:
`book/tasks/real_questions`.

    python -m spanbert_tutorial make-questions --corpus WIKIPEDIA --leave-out data/squad_titles.txt --easy --output EASY
    python -m spanbert_tutorial make-questions --corpus WIKIPEDIA --leave-out data/squad_titles.txt --output MADE
    python -m spanbert_tutorial.experiments.made_first --data FOLDER --easy EASY --made MADE --output FILE

Each run starts from `spanbert-mini` and reads the same number of pieces: of real questions only, half of them in short
windows around the answers and half in full ones; or half of made questions in short windows before, easy ones first,
and half as much of the real ones. One head goes through all stages. Scored on articles of SQuAD's training set that no
run has seen. A stopped command goes on.
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from spanbert_tutorial.ablation import surroundings, write_whole
from spanbert_tutorial.bert import BertEncoder
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.experiments import squad_real
from spanbert_tutorial.experiments.continued import command
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import FineTuning, QuestionAnsweringData
from spanbert_tutorial.tasks.real_questions import STAGES, answered, fine_tune_in_stages
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.wordpiece import WordPiece

SEEDS = 3
QUESTIONS, MADE, HELD_OUT, PIECES = 25_000, 60_000, 1_200, 12_000_000
COMMAND = "python -m spanbert_tutorial.experiments.made_first --data FOLDER --easy EASY --made MADE --output FILE"
SHORT, FULL = STAGES["squad1"]
ARMS = {  # of each stage the questions, the settings and the share of the pieces
    "real questions only": (("real", SHORT, 0.5), ("real", FULL, 0.5)),
    "made questions first": (("easy", SHORT, 0.15), ("made", SHORT, 0.35), ("real", SHORT, 0.25), ("real", FULL, 0.25)),
}


def split(folder: Path) -> tuple[list[Question], list[Question]]:
    """Questions to train on and to score, no article in both: of SQuAD's own training articles every eighth is held
    out, and of its questions as many as are scored are drawn."""
    own = {question.title for question in squad_real.read(folder, squad_real.TRAIN[:1])}
    held_titles = set(sorted(own)[::8])
    groups: tuple[list[Question], list[Question]] = ([], [])
    for question in squad_real.read(folder, squad_real.TRAIN):
        groups[question.title in held_titles].append(question)
    return groups[0], drawn(groups[1], HELD_OUT, 0)


def drawn(questions: list[Question], most: int, seed: int) -> list[Question]:
    """At most so many of the questions, in random order."""
    return [questions[i] for i in np.random.default_rng(seed).permutation(len(questions))[:most]]


def for_pieces(settings: FineTuning, questions: list[Question], wordpiece: WordPiece, pieces: float) -> FineTuning:
    """The settings with as many epochs as cost so many pieces."""
    windows = QuestionAnsweringData(questions, wordpiece, settings)
    return replace(settings, epochs=pieces / int(windows.lengths().sum()))


def one(
    arm: str, seed: int, encoder: BertEncoder, wordpiece: WordPiece, groups: dict[str, list[Question]],
    pieces: float = PIECES,
) -> dict:
    """Trains one model for so many pieces on the groups `real`, `easy` and `made`, and scores it on `test`."""
    taken, model = [], encoder
    for name, settings, share in ARMS[arm]:
        stage = for_pieces(replace(settings, seed=seed), groups[name], wordpiece, share * pieces)
        answerer, (history,) = fine_tune_in_stages(model, wordpiece, groups[name], [stage])
        model = answerer.model  # with its head
        loss = round(history.mean("loss", 50), 4)
        taken.append({"questions": name, "settings": asdict(stage), "steps": len(history.steps), "loss": loss})
    score = squad.score(*answered(answerer, groups["test"])[:2])
    figures = {name: round(score[name], 4) for name in ("exact", "f1")}
    return {"arm": arm, "seed": seed, "stages": taken, "score": figures}


def run_all(data: Path, easy: Path, made: Path, output: Path, seeds: int) -> None:
    """All arms with every seed; `output` is written whole after each, and what it holds is not run again."""
    settings = {"start": "spanbert-mini", "questions": QUESTIONS, "made": MADE, "pieces": PIECES}
    content = json.loads(output.read_text(encoding="utf-8")) if output.exists() else settings | {"rows": []}
    if any(content[name] != value for name, value in settings.items()):
        raise InputError(f"{output} holds runs of other settings: give another --output.")
    rows = content["rows"]
    done = {(row["arm"], row["seed"]) for row in rows}
    (train, test), many = split(data), {"made": squad.read(made), "easy": squad.read(easy)}
    for seed, arm in [(seed, arm) for seed in range(seeds) for arm in ARMS if (arm, seed) not in done]:
        groups = {name: drawn(some, MADE, seed) for name, some in many.items()}
        groups |= {"real": drawn(train, QUESTIONS, seed), "test": test}
        rows.append(one(arm, seed, *squad_real.start("spanbert-mini", seed), groups))
        print(arm, seed, rows[-1]["score"], flush=True)
        write_whole(output, {"command": f"{COMMAND} --seeds {seeds}", "surroundings": surroundings(),
                             **settings, "held_out": len(test), "rows": rows})


def main(arguments: list[str] | None = None) -> int:
    inputs = {"data": "folder of SQuAD files (.json.xz)", "easy": "SQuAD file of `make-questions --easy`",
              "made": "SQuAD file of `make-questions`"}
    return command("Made questions before real ones, and a control.", run_all, SEEDS, arguments, True, **inputs)


if __name__ == "__main__":
    sys.exit(main())
