"""`python -m spanbert_tutorial pretrain`: text, vocabulary, training, held-out figures, checkpoint. Chapter:
`book/spanbert/pretraining_spanbert`.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

from spanbert_tutorial.errors import InputError

MOST_HELD_OUT = 100  # batches: of a large corpus all of the held-out text would take longer than it is worth


def add_options(train: argparse.ArgumentParser) -> None:
    """The options; defaults that depend on `--config` are filled in by `settings`."""
    kinds = "almanac (default), a .txt or .jsonl file (also .xz, .gz), a folder of them, or OWNER/NAME on the hub"
    train.add_argument("--corpus", default="almanac", help=kinds)
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
    train.add_argument("--half", action="store_true", help="store the checkpoint in half precision, half the size")
    train.add_argument("--dry-run", action="store_true", help="say what the run would cost, and stop")
    train.add_argument("--resume", action="store_true", help="go on with a stopped run of the same options")


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


def pretrain(options: argparse.Namespace) -> None:
    """Text → vocabulary → blocks → training → held-out figures → checkpoint."""
    run = settings(options)  # before the slow imports: a wrong option answers at once
    from spanbert_tutorial import runs
    from spanbert_tutorial.checkpoints import check_output, save_checkpoint
    from spanbert_tutorial.training import processes

    if options.dry_run:
        return dry_run(run, options)
    main = processes().is_main_process  # one of several under `accelerate launch`
    output = Path(options.output or f"runs/{run.objective.replace('+', '-')}-{run.size}-seed{run.seed}")
    state = output.with_name(f"{output.name}.training")  # encoded text and snapshots, until the checkpoint is whole
    if main:
        check_output(output)
        check_state(state, options.resume)
    began = time.monotonic()
    try:
        text = options_text(options, state / "text")
        if main:
            describe(options.corpus, text)
        model, history = runs.pretrain(run, text, start(options, run, text), snapshots(options, run, state))
    finally:
        if main and not any(state.glob("snapshots/step-*")):
            shutil.rmtree(state, ignore_errors=True)  # nothing to go on with
    if not main:
        return
    figures = runs.held_out(model, run, text, MOST_HELD_OUT)
    metrics = (state / "metrics.jsonl").read_text(encoding="utf-8")
    about = card(run, options, text, model, figures, json.loads(metrics.splitlines()[-1]))
    texts = {"README.md": about, "metrics.jsonl": metrics}
    save_checkpoint(output, model, text.wordpiece, run.objective, texts, half=options.half)
    report(model, text, figures)
    print(f"Checkpoint after {time.monotonic() - began:.0f} s: {output}\n"
          f'Open its encoder with transformers: BertModel.from_pretrained("{output}")')
    del text  # closes its files, or Windows could not remove them
    shutil.rmtree(state, ignore_errors=True)  # last: until here the run could go on from it


def check_state(state: Path, resume: bool) -> None:
    """A stopped run is neither overwritten nor silently continued, and --resume needs one."""
    if resume and not state.exists():
        raise InputError(f"there is no stopped run in {state}: leave out --resume, or give the --output of then.")
    if not resume and state.exists():
        raise InputError(f"{state} holds a stopped run: go on with --resume, or remove that folder to start anew.")


def options_text(options: argparse.Namespace, folder: Path):
    """The encoded text of a run: of its earlier part, or read anew by the first process."""
    from spanbert_tutorial import runs
    from spanbert_tutorial.checkpoints import vocabulary_file
    from spanbert_tutorial.training import processes

    if processes().is_main_process and not folder.exists():
        print(f"Reading and encoding {options.corpus} ...", flush=True)
        vocabulary, titles = options.vocabulary, read_titles(options.leave_out)
        if options.init_from and vocabulary is None:
            vocabulary = vocabulary_file(options.init_from)
        part = folder.with_suffix(".part")
        runs.open_text(options.corpus, part, vocabulary, options.vocab_size, titles)
        (part / "asked.json").write_text(json.dumps(asked(options)), encoding="utf-8")
        os.replace(part, folder)  # whole from here on, or not there
    processes().wait_for_everyone()
    check_asked(folder, asked(options))
    return runs.reopen_text(folder)


def asked(options: argparse.Namespace) -> dict[str, str | int]:
    """What the encoded text depends on. bytes: of the files of the corpus, 0 where it is none, or gone."""
    path = Path(options.corpus)
    inside = path.rglob("*") if path.is_dir() and options.corpus != "almanac" else [path]
    files = [file for file in inside if file.is_file()]
    titles = sorted(read_titles(options.leave_out))
    facts = {"corpus": options.corpus, "vocabulary": options.vocabulary or "its own", "vocab-size": options.vocab_size}
    return {**facts, "leave-out": " | ".join(titles), "bytes": sum(file.stat().st_size for file in files)}


def check_asked(folder: Path, now: dict[str, str | int]) -> None:
    """A stopped run goes on with the text that it began with, and says so when another is asked for."""
    try:
        before = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    changed = [name for name, value in now.items() if before.get(name) != value and (name != "bytes" or value)]
    if changed:
        raise InputError(f"the stopped run in {folder.parent} began with another text (changed: {', '.join(changed)}): "
                         "give what was given then, or remove that folder to start anew.")


def read_titles(path: str | None) -> frozenset[str]:
    """The titles in a file, one a line."""
    if path is None:
        return frozenset()
    try:
        return frozenset(Path(path).read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        wrong = f"the titles in {path} cannot be read ({error})"
        raise InputError(f"{wrong}: give a text file, one title a line.") from None


def describe(corpus: str, text) -> None:
    """What is trained on, and the loss to beat."""
    print(f"Text: {corpus}, {len(text.train.document_ends):,} documents, {len(text.train.ids):,} pieces of "
          f"{len(text.wordpiece):,} kinds; {len(text.held_out.document_ends):,} documents held out.\n"
          f"Unigram entropy: {text.unigram_entropy:.2f} nats. A model that knows only frequencies has this loss.")


def start(options: argparse.Namespace, run, text):
    """The model to begin with: None for a new one, or that of --init-from."""
    if not options.init_from:
        return None
    from spanbert_tutorial.checkpoints import continue_from
    from spanbert_tutorial.training import processes

    model, new = continue_from(options.init_from, run.objective, run.seed)
    config = model.encoder.config
    if config.vocab_size < len(text.wordpiece) or config.max_position_embeddings < run.length:
        raise InputError(f"{options.init_from} has {config.vocab_size:,} pieces and {config.max_position_embeddings} "
                         f"positions, the run {len(text.wordpiece):,} and {run.length}: give the checkpoint's own "
                         "--vocabulary and a shorter --length.")
    if processes().is_main_process:
        print(f"Weights: {options.init_from}; new heads: {', '.join(new) or 'none'}.")
    return model


def dry_run(run, options: argparse.Namespace) -> None:
    """What a run would be: size, memory, steps and hours, from a few steps on this machine. Keeps nothing."""
    from accelerate.utils import broadcast_object_list

    from spanbert_tutorial import runs
    from spanbert_tutorial.training import processes

    main = processes().is_main_process
    with tempfile.TemporaryDirectory() as own:
        (scratch,) = broadcast_object_list([own])  # that of the first process; there it is removed
        text = options_text(options, Path(scratch, "text"))
        if main:
            describe(options.corpus, text)
        model = start(options, run, text) or runs.new_model(run, text)
        parameters, seconds, tokens = runs.rehearse(run, text, model)
        pieces = len(text.train.ids)
        del text  # closes its files, or Windows could not remove them
        processes().wait_for_everyone()
    if not main:
        return
    print(f"Model: {parameters / 1e6:.1f} M parameters; weights, gradients and optimizer take "
          f"{16 * parameters / 2**30:.2f} GiB in training, activations come on top.\n"
          f"Run: {run.steps:,} steps of {run.batch_size} inputs, {tokens:,.0f} tokens a step, "
          f"{run.steps * tokens / 1e6:,.1f} M tokens, {run.steps * tokens / pieces:.2f} times the text.\n"
          f"Time: {seconds:.2f} s a step here, {tokens / seconds:,.0f} tokens/s, "
          f"about {run.steps * seconds / 3600:.2f} hours. Nothing was written.")


def snapshots(options: argparse.Namespace, run, state: Path):
    """Where the run keeps its state, and what must not change when it goes on."""
    from spanbert_tutorial.snapshots import Snapshots, checksum
    from spanbert_tutorial.training import precision, processes

    files = ["tokenizer.json", *(file.relative_to(state / "text") for file in sorted(state.glob("text/*/*.npy")))]
    text = {str(name): checksum(state / "text" / name) for name in files}
    facts = asdict(run) | {"init_from": options.init_from or "nothing", "arithmetic": precision()}
    return Snapshots(state / "snapshots", facts | {"processes": processes().num_processes} | text)


def report(model, text, figures: dict) -> None:
    """Held-out losses, and a masked span of a held-out document filled by each head."""
    from spanbert_tutorial.pretraining import fill

    for way, values in figures.items():
        losses = ", ".join(f"{name} {value:.2f}" for name, value in values.items() if name in ("mlm", "sbo", "nsp"))
        how = "token masking of pairs" if way == "pairs" else f"{way} masking"
        print(f"Held out, {how}: {losses} nats a masked piece (unigram {text.unigram_entropy:.2f}); "
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


def card(run, options: argparse.Namespace, text, model, figures: dict, line: dict) -> str:
    """README.md of a checkpoint. line: the last one of its metrics."""
    config = model.encoder.config
    facts = {"layers × width": f"{config.num_hidden_layers} × {config.hidden_size}"}
    facts |= {name: value for name, value in asdict(run).items() if name != "size"}
    if options.init_from:  # then the weights did not start as these two say
        del facts["initializer_range"], facts["sinusoidal_positions"]
        facts["started from"] = Path(options.init_from).name
    facts["tokens seen"] = f"{line['tokens']:,}"
    facts["hours"] = f"{line['seconds'] / 3600:.2f} on {device()}"
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    names = {"pairs": "token masking, pairs"}
    scores = "\n".join(f"- {names.get(way, f'{way} masking')}: " + ", ".join(f"{n} {v:.3f}" for n, v in values.items())
                       for way, values in figures.items())
    corpus = Path(options.corpus).name
    licence = "CC BY 4.0, as the almanac's" if corpus == "almanac" else "the licence of the text applies"
    measured = (
        "Held-out losses in nats, every chosen piece replaced by [MASK]; `accuracy` is the share named by the MLM head"
    )
    return (f"# {run.objective}, pre-trained by `python -m spanbert_tutorial pretrain`\n\n"
            f"Text: {corpus}; {len(text.train.ids):,} pieces, cased vocabulary of {len(text.wordpiece):,}; "
            f"unigram entropy {text.unigram_entropy:.3f} nats.\n\n"
            f"| setting | value |\n|---|---|\n{rows}\n\n{measured}:\n\n{scores}\n\n"
            f"Licence of the weights: {licence}.\n")


def device() -> str:
    """What the run computes on."""
    import torch

    from spanbert_tutorial.training import precision, processes

    arithmetic = {"no": "float32"}.get(precision(), precision())
    if torch.cuda.is_available():
        return f"{processes().num_processes} × {torch.cuda.get_device_name()}, {arithmetic}"
    return f"CPU, {processes().num_processes} × {torch.get_num_threads()} threads, {arithmetic}"
