"""Short windows first, on real questions: three ways to spend the same number of pieces. Chapter:
`book/tasks/real_questions`.

    python -m spanbert_tutorial.experiments.short_first --data FOLDER --output FILE

Each run starts from `spanbert-mini` and reads the same questions: in full windows, all of them; in full windows that
hold the answer; or half of the pieces in short windows around the answers, half in full ones. Scored on articles of
SQuAD's training set that no run has seen. A stopped command goes on.
"""

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from spanbert_tutorial.ablation import surroundings, write_whole
from spanbert_tutorial.bert import BertEncoder
from spanbert_tutorial.checkpoints import check_output
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.experiments import squad_real
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import FineTuning, QuestionAnsweringData
from spanbert_tutorial.tasks.real_questions import STAGES, answered, fine_tune_in_stages
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.wordpiece import WordPiece

SEEDS = 3
QUESTIONS, HELD_OUT, PIECES = 8_000, 1_200, 2_000_000
SHORT, FULL = STAGES["squad1"]
ARMS = {  # of each stage the settings and its share of the pieces
    "full windows, all": ((replace(FULL, answers_only=False), 1.0),),
    "full windows with the answer": ((FULL, 1.0),),
    "short windows first": ((SHORT, 0.5), (FULL, 0.5)),
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
    arm: str, seed: int, encoder: BertEncoder, wordpiece: WordPiece, train: list[Question], test: list[Question],
    pieces: float = PIECES,
) -> dict:
    """Trains one model for so many pieces, and scores it."""
    stages = [for_pieces(replace(settings, seed=seed), train, wordpiece, share * pieces)
              for settings, share in ARMS[arm]]
    answerer, histories = fine_tune_in_stages(encoder, wordpiece, train, stages)
    score = squad.score(*answered(answerer, test)[:2])
    taken = [{"settings": asdict(stage), "steps": len(history.steps), "loss": round(history.mean("loss", 50), 4)}
             for stage, history in zip(stages, histories, strict=True)]
    figures = {name: round(score[name], 4) for name in ("exact", "f1")}
    return {"arm": arm, "seed": seed, "stages": taken, "score": figures}


def run_all(folder: Path, output: Path, seeds: int) -> None:
    """All arms with every seed; `output` is written whole after each, and what it holds is not run again."""
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"] if output.exists() else []
    done = {(row["arm"], row["seed"]) for row in rows}
    train, test = split(folder)
    command = f"python -m spanbert_tutorial.experiments.short_first --data FOLDER --output FILE --seeds {seeds}"
    for seed, arm in [(seed, arm) for seed in range(seeds) for arm in ARMS if (arm, seed) not in done]:
        rows.append(one(arm, seed, *squad_real.start("spanbert-mini", seed), drawn(train, QUESTIONS, seed), test))
        print(arm, seed, rows[-1]["score"], flush=True)
        write_whole(output, {"command": command, "surroundings": surroundings(), "start": "spanbert-mini",
                             "questions": QUESTIONS, "held_out": len(test), "pieces": PIECES, "rows": rows})


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Short windows first, on real questions, with controls.")
    options.add_argument("--data", type=Path, required=True, help="folder of SQuAD files (.json.xz)")
    options.add_argument("--output", type=Path, required=True, help="JSON file of the results")
    options.add_argument("--seeds", type=int, default=SEEDS)
    chosen = options.parse_args(arguments)
    try:
        if not chosen.output.exists():
            check_output(chosen.output)
        run_all(chosen.data, chosen.output, chosen.seeds)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
