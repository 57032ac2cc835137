"""The command line: `python -m spanbert_tutorial pretrain`, `almanac` or `ablate`.

Bad input gives one sentence and exit code 2. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import argparse
import shutil
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from spanbert_tutorial.errors import InputError


def parser() -> argparse.ArgumentParser:
    """Options of all commands; the defaults of `pretrain` depend on `--config` and are filled in later."""
    purpose = "Pre-train BERT and SpanBERT; make the data of the book again."
    top = argparse.ArgumentParser(prog="python -m spanbert_tutorial", description=purpose)
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    train = commands.add_parser("pretrain", help="pre-train a model; without options a tiny SpanBERT on the almanac")
    train.add_argument("--corpus", default="almanac", help="a .txt or .jsonl file (also .xz, .gz) or a folder of them")
    train.add_argument("--output", help="folder of the checkpoint (default: runs/OBJECTIVE-CONFIG-seedN)")
    train.add_argument("--objective", default="span+sbo", help="mlm, mlm+nsp, span or span+sbo (default)")
    train.add_argument("--config", default="tiny", help="tiny (default), mini, small, base or large")
    train.add_argument("--vocabulary", help="a vocab.txt or tokenizer.json (default: learned from the corpus)")
    train.add_argument("--vocab-size", type=int, default=8_000, help="pieces of a learned vocabulary (default: 8000)")
    train.add_argument("--steps", type=int, help="number of batches")
    train.add_argument("--length", type=int, help="longest input, with [CLS] and [SEP]")
    train.add_argument("--batch-size", type=int, help="blocks in a batch")
    train.add_argument("--learning-rate", type=float, help="peak learning rate")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--init-from", help="start from this checkpoint (folder or hub name) instead of random weights")
    train.add_argument("--leave-out", help="text file of titles, one a line: these documents of a .jsonl are not read")
    train.add_argument("--resume", action="store_true", help="go on with a stopped run of the same options")
    world = commands.add_parser("almanac", help="write the almanac again from its seed")
    world.add_argument("--output", required=True, help="folder to write documents and vocabulary to")
    ablate = commands.add_parser("ablate", help="token against span masking, with and without SBO, over several seeds")
    ablate.add_argument("--output", required=True, help="JSON file of the results")
    ablate.add_argument("--seeds", type=int, default=5)
    ablate.add_argument("--steps", type=int, help="batches of each run")
    ablate.add_argument("--objectives", nargs="+", help="which to compare (default: mlm, span and span+sbo)")
    return top


def settings(options: argparse.Namespace):
    """The `Run` that the options ask for."""
    from spanbert_tutorial.pretraining import Objective
    from spanbert_tutorial.runs import RUNS

    if options.config not in RUNS:
        raise InputError(f'the config "{options.config}" is unknown: use one of {", ".join(RUNS)}.')
    Objective.named(options.objective)
    given = {"steps": options.steps, "length": options.length, "batch_size": options.batch_size}
    given |= {"peak_learning_rate": options.learning_rate}
    for name, value in given.items():
        if value is not None and value <= 0:
            raise InputError(f"--{name.replace('_', '-')} is {value}: give a number above 0.")
    given = {name: value for name, value in given.items() if value is not None}
    return replace(RUNS[options.config], objective=options.objective, seed=options.seed, **given)


def pretrain_command(options: argparse.Namespace) -> None:
    """Text → vocabulary → blocks → training → held-out figures → checkpoint."""
    run = settings(options)  # before the slow imports: a wrong option answers at once
    from spanbert_tutorial import runs
    from spanbert_tutorial.checkpoints import check_output, save_checkpoint

    output = check_output(options.output or f"runs/{run.objective.replace('+', '-')}-{run.size}-seed{run.seed}")
    state = output.with_name(f"{output.name}.training")  # encoded text and snapshots, until the checkpoint is whole
    check_state(state, options.resume)
    began = time.monotonic()
    try:
        text = options_text(options, state / "text")
        print(f"Text: {options.corpus}, {len(text.train.document_ends):,} documents, {len(text.train.ids):,} pieces of "
              f"{len(text.wordpiece):,} kinds; {len(text.held_out.document_ends):,} documents held out.")
        print(f"Unigram entropy: {text.unigram_entropy:.2f} nats. A model that knows only frequencies has this loss.")
        model, history = runs.pretrain(run, text, start(options, run, text), snapshots(options, run, state))
    except BaseException:
        if not any(state.glob("snapshots/step-*")):
            shutil.rmtree(state, ignore_errors=True)  # nothing to go on with
        raise
    figures = runs.held_out(model, run, text)
    seconds = time.monotonic() - began
    save_checkpoint(output, model, text.wordpiece, run.objective, card(run, options, text, figures, seconds))
    report(model, text, figures)
    shutil.rmtree(state)
    print(f"Checkpoint after {seconds:.0f} s: {output}\n"
          f'Open its encoder with transformers: BertModel.from_pretrained("{output}")')


def check_state(state: Path, resume: bool) -> None:
    """A stopped run is neither overwritten nor silently continued, and --resume needs one."""
    if resume and not state.exists():
        raise InputError(f"there is no stopped run in {state}: leave out --resume, or give the --output of then.")
    if not resume and state.exists():
        raise InputError(f"{state} holds a stopped run: go on with --resume, or remove that folder to start anew.")


def options_text(options: argparse.Namespace, folder: Path):
    """The encoded text of a run: of its earlier part, or read anew."""
    from spanbert_tutorial import runs
    from spanbert_tutorial.checkpoints import vocabulary_file

    if options.resume:
        return runs.reopen_text(folder)
    print(f"Reading and encoding {options.corpus} ...", flush=True)
    vocabulary = options.vocabulary
    if options.init_from and vocabulary is None:
        vocabulary = vocabulary_file(options.init_from)
    return runs.open_text(options.corpus, folder, vocabulary, options.vocab_size, read_titles(options.leave_out))


def read_titles(path: str | None) -> frozenset[str]:
    """The titles in a file, one a line."""
    if path is None:
        return frozenset()
    try:
        return frozenset(Path(path).read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        wrong = f"the titles in {path} cannot be read ({error})"
        raise InputError(f"{wrong}: give a text file, one title a line.") from None


def start(options: argparse.Namespace, run, text):
    """The model to begin with: None for a new one, or that of --init-from."""
    if not options.init_from:
        return None
    from spanbert_tutorial.checkpoints import continue_from

    model, new = continue_from(options.init_from, run.objective, run.seed)
    config = model.encoder.config
    if config.vocab_size < len(text.wordpiece) or config.max_position_embeddings < run.length:
        raise InputError(f"{options.init_from} has {config.vocab_size:,} pieces and {config.max_position_embeddings} "
                         f"positions, the run {len(text.wordpiece):,} and {run.length}: give the checkpoint's own "
                         "--vocabulary and a shorter --length.")
    print(f"Weights: {options.init_from}; new heads: {', '.join(new) or 'none'}.")
    return model


def snapshots(options: argparse.Namespace, run, state: Path):
    """Where the run keeps its state, and what must not change when it goes on."""
    from spanbert_tutorial.snapshots import Snapshots, checksum
    from spanbert_tutorial.training import precision

    text = {name: checksum(state / "text" / name) for name in ("train/ids.npy", "tokenizer.json")}
    facts = asdict(run) | {"init_from": options.init_from or "nothing", "arithmetic": precision()}
    return Snapshots(state / "snapshots", facts | text)


def report(model, text, figures: dict) -> None:
    """Held-out losses, and a masked span of a held-out document filled by each head."""
    from spanbert_tutorial.pretraining import fill

    for way, values in figures.items():
        losses = ", ".join(f"{name} {value:.2f}" for name, value in values.items() if name in ("mlm", "sbo"))
        print(f"Held out, {way} masking: {losses} nats a masked piece (unigram {text.unigram_entropy:.2f}); "
              f"{values['accuracy']:.0%} of the masked pieces named by the MLM head.")
    start, end = 0, int(text.held_out.sentence_ends[0])
    ids = text.held_out.ids[start:end][:60].copy()
    first = len(ids) // 2
    hidden, ids[first : first + 2] = text.wordpiece.tokens(ids[first : first + 2]), text.wordpiece.mask_id
    words = text.wordpiece.decode(ids)
    print(f"A held-out sentence: {words}\n  hidden: {' '.join(hidden)}")
    for span in fill(model, text.wordpiece, words, top=1):
        for head in ("mlm", "sbo"):
            pieces = " ".join(f"{best[0][0]} ({best[0][1]:.0%})" for best in getattr(span, head))
            print(f"  {head.upper()}:    {pieces or 'no prediction'}")


def card(run, options: argparse.Namespace, text, figures: dict, seconds: float) -> str:
    """README.md of a checkpoint."""
    rows = "\n".join(f"| {name} | {value} |" for name, value in asdict(run).items())
    scores = "\n".join(f"- {way} masking: " + ", ".join(f"{n} {v:.3f}" for n, v in values.items())
                       for way, values in figures.items())
    corpus, source = options.corpus, f"; started from {options.init_from}" if options.init_from else ""
    licence = "CC BY 4.0, as the almanac's" if corpus == "almanac" else "the licence of the text applies"
    measured = (
        "Held-out losses in nats, every chosen piece replaced by [MASK]; `accuracy` is the share named by the MLM head"
    )
    return (f"# A {run.size} model pre-trained by `python -m spanbert_tutorial pretrain`\n\n"
            f"Text: {corpus}; {len(text.train.ids):,} pieces, cased vocabulary of {len(text.wordpiece):,}; "
            f"unigram entropy {text.unigram_entropy:.3f} nats{source}. Trained in {seconds:.0f} s.\n\n"
            f"| setting | value |\n|---|---|\n{rows}\n\n{measured}:\n\n{scores}\n\n"
            f"Licence of the weights: {licence}.\n")


def almanac_command(options: argparse.Namespace) -> None:
    """Documents and vocabulary, the same as the shipped ones."""
    from spanbert_tutorial import runs

    runs.write_almanac(options.output)
    print(f"The almanac is in {options.output}.")


def ablate_command(options: argparse.Namespace) -> None:
    from spanbert_tutorial import ablation
    from spanbert_tutorial.runs import RUNS

    run = replace(RUNS["tiny"], steps=options.steps) if options.steps else RUNS["tiny"]
    ablation.run_all(options.output, options.seeds, run, options.objectives or ablation.OBJECTIVES)


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    options = parser().parse_args(arguments)
    commands = {"pretrain": pretrain_command, "almanac": almanac_command, "ablate": ablate_command}
    try:
        commands[options.command](options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        kept = f"{stop}: go on with the same command and --resume." if str(stop) else "Stopped."
        print(kept, file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
