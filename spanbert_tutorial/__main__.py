"""The command line: `python -m spanbert_tutorial pretrain`, `finetune`, `evaluate`, `answer`, `make-questions`,
`almanac` or `ablate`.

Bad input gives one sentence and exit code 2. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import argparse
import io
import sys
import warnings
from dataclasses import replace

from spanbert_tutorial.commands import pretrain, squad
from spanbert_tutorial.errors import InputError


def parser() -> argparse.ArgumentParser:
    """Options of all commands."""
    purpose = "Pre-train BERT and SpanBERT, fine-tune them, answer questions; make the data of the book again."
    top = argparse.ArgumentParser(prog="python -m spanbert_tutorial", description=purpose)
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    train = commands.add_parser("pretrain", help="pre-train a model; without options a tiny SpanBERT on the almanac")
    pretrain.add_options(train)
    tune = commands.add_parser("finetune", help="fine-tune a checkpoint: finetune squad")
    squad.add_finetune_options(tune)
    score = commands.add_parser("evaluate", help="score a fine-tuned model: evaluate squad")
    squad.add_evaluate_options(score)
    ask = commands.add_parser("answer", help="answer a question on a text file")
    squad.add_answer_options(ask)
    make = commands.add_parser("make-questions", help="make questions from text by rule, to fine-tune on first")
    squad.add_make_options(make)
    world = commands.add_parser("almanac", help="write the almanac again from its seed")
    world.add_argument("--output", required=True, help="folder to write documents and vocabulary to")
    ablate = commands.add_parser("ablate", help="token against span masking, with and without SBO, over several seeds")
    ablate.add_argument("--output", required=True, help="JSON file of the results")
    ablate.add_argument("--seeds", type=int, default=5)
    ablate.add_argument("--steps", type=int, help="batches of each run")
    ablate.add_argument("--objectives", nargs="+", help="which to compare (default: mlm, span and span+sbo)")
    return top


def almanac_command(options: argparse.Namespace) -> None:
    """Documents, vocabulary and questions, the same as the shipped ones."""
    from spanbert_tutorial import runs
    from spanbert_tutorial.almanac import questions as almanac_questions

    runs.write_almanac(options.output)
    almanac_questions.write(options.output)
    print(f"The almanac is in {options.output}.")


def ablate_command(options: argparse.Namespace) -> None:
    from spanbert_tutorial import ablation
    from spanbert_tutorial.runs import RUNS

    run = replace(RUNS["tiny"], steps=options.steps) if options.steps else RUNS["tiny"]
    ablation.run_all(options.output, options.seeds, run, options.objectives or ablation.OBJECTIVES)


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # an answer may hold letters that an old terminal lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    options = parser().parse_args(arguments)
    commands = {"pretrain": pretrain.pretrain, "finetune": squad.finetune, "evaluate": squad.evaluate,
                "answer": squad.answer, "make-questions": squad.make_questions, "almanac": almanac_command,
                "ablate": ablate_command}
    try:
        commands[options.command](options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except FloatingPointError as error:
        print(f"error: {error} Start anew, with another --output.", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        kept = f"{stop}: go on with the same command and --resume." if str(stop) else "Stopped."
        print(kept, file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
