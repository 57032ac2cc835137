"""`python -m spanbert_tutorial pretrain`: text, vocabulary, training, held-out figures, checkpoint.
Chapter: `book/spanbert/pretraining_spanbert`.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

from spanbert_tutorial.commands.run_state import (
    check_apart,
    encoded_text,
    kept_when_stopped,
    open_state,
    remove_state,
)
from spanbert_tutorial.errors import InputError, shown

MOST_HELD_OUT = (
    100  # batches: of a large corpus all of the held-out text would take longer than it is worth
)


def add_options(train: argparse.ArgumentParser) -> None:
    """The options; defaults that depend on `--config` are filled in by `settings`."""
    add_text_options(train)
    train.add_argument(
        "--output", help="folder of the checkpoint (default: runs/OBJECTIVE-CONFIG-seedN)"
    )
    train.add_argument(
        "--objective",
        default="span+sbo",
        help="what is predicted: mlm, mlm+nsp, span, span+sbo "
        "(default) or another row of the table in objectives.py",
    )
    train.add_argument(
        "--config", help="tiny, mini, small, base or large (default: as --init-from, else tiny)"
    )
    train.add_argument("--steps", type=int, help="number of steps of the optimizer")
    train.add_argument(
        "--batch-size",
        type=int,
        help="full blocks in a batch; from mini on shorter ones fill it up",
    )
    train.add_argument(
        "--accumulate", type=int, help="batches of a step, for steps larger than the memory"
    )
    train.add_argument("--learning-rate", type=float, help="peak learning rate")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument(
        "--init-from",
        help="start from this checkpoint (folder or hub name) instead of random weights",
    )
    train.add_argument(
        "--half", action="store_true", help="store the checkpoint in half precision, half the size"
    )
    train.add_argument(
        "--dry-run", action="store_true", help="say what the run would cost, and stop"
    )
    train.add_argument(
        "--resume", action="store_true", help="go on with a stopped run of the same options"
    )


def add_text_options(parser: argparse.ArgumentParser) -> None:
    """The options that say which text is read, and how it is encoded."""
    kinds = (
        "almanac (default), a .txt or .jsonl file (also .xz, .gz), a folder of them, or "
        "OWNER/NAME on the hub"
    )
    parser.add_argument("--corpus", default="almanac", help=kinds)
    parser.add_argument(
        "--vocabulary",
        help="a vocab.txt, tokenizer.json or checkpoint (default: learned from text)",
    )
    parser.add_argument(
        "--vocab-size",
        type=int,
        default=8_000,
        help="pieces of a learned vocabulary (default: 8000)",
    )
    parser.add_argument(
        "--leave-out",
        help="text file of titles, one a line: these documents of a .jsonl are not read",
    )
    parser.add_argument(
        "--held-out-every",
        type=int,
        default=50,
        metavar="N",
        help="one document in N is kept for measuring (default: 50; the almanac has a part of "
        "its own)",
    )
    parser.add_argument("--max-length", type=int, help="longest input, with [CLS] and [SEP]")


def settings(options: argparse.Namespace):
    """The `Run` that the options ask for."""
    from spanbert_tutorial.pretraining.presets import preset

    config = options.config or (size_of(options.init_from) if options.init_from else "tiny")
    run = preset(config, options.objective)
    given = {
        name: getattr(options, name) for name in ("steps", "max_length", "batch_size", "accumulate")
    }
    given |= {"peak_learning_rate": options.learning_rate}
    if options.batch_size and options.accumulate is None:
        given["accumulate"] = 1  # whoever names the batch means the step
    given = {name: value for name, value in given.items() if value is not None}
    if (
        options.steps
    ):  # as many steps of warm-up as the preset has, but of a shorter run a tenth at most
        given["warmup"] = min(0.1, run.warmup * run.steps / options.steps)
    return replace(run, seed=options.seed, **given)


def size_of(source: str) -> str:
    """The name of a checkpoint's size, which decides its defaults."""
    from spanbert_tutorial.bert.config import PRESETS
    from spanbert_tutorial.bert.weights import checkpoint_folder, read_config

    config = read_config(checkpoint_folder(source, weights=False))
    shape = config.get("num_hidden_layers"), config.get("hidden_size")
    for name, (layers, width, _) in PRESETS.items():
        if shape == (layers, width):
            return name
    layers, width = map(shown, shape)
    raise InputError(
        f"{source} has {layers} layers of width {width}, of which no config is known: name the one "
        f"nearest to it by --config ({', '.join(PRESETS)})."
    )


def pretrain(options: argparse.Namespace) -> None:
    """Text → vocabulary → blocks → training → held-out figures → checkpoint."""
    run = settings(options)  # before the slow imports: a wrong option answers at once
    from spanbert_tutorial.engine.processes import processes
    from spanbert_tutorial.pretraining import runs
    from spanbert_tutorial.pretraining.checkpoints import save_checkpoint
    from spanbert_tutorial.pretraining.evaluation import held_out_metrics

    if options.dry_run:
        return dry_run(run, options)
    main = processes().is_main_process  # one of several under `accelerate launch`
    output = options.output
    if output is None:
        output = f"runs/{run.objective.replace('+', '-')}-{run.size}-seed{run.seed}"
    if main:
        check_apart(Path(output), options.corpus)
    state = open_state(
        output, options.resume
    )  # encoded text and snapshots, until the checkpoint is whole
    if state is None:
        return
    began = time.monotonic()
    output = Path(output)
    with kept_when_stopped(state):
        text = encoded_text(options, state / "text")
        model = start(options, run, text)
        keeper = snapshots(options, run, state, model)
        keeper.check()  # before anything reads the text
        if main:
            describe(options.corpus, text, run.max_length)
        model, history = runs.pretrain(run, text, model, keeper)
        if not main:
            return
        figures = held_out_metrics(model, run, text, MOST_HELD_OUT, tables=True)
        metrics = (state / "metrics.jsonl").read_text(encoding="utf-8")
        about = card(run, options, text, model, figures, json.loads(metrics.splitlines()[-1]))
        texts = {"README.md": about, "metrics.jsonl": metrics}
        save_checkpoint(output, model, text.wordpiece, run.objective, texts, half=options.half)
    report(model, text, figures)
    print(
        f"Checkpoint after {time.monotonic() - began:.0f} s: {output}\n"
        f'Open its encoder with transformers: BertModel.from_pretrained("{output}")'
    )
    del text  # closes its files, or Windows could not remove them
    remove_state(state)  # last: until here the run could go on from it


def describe(corpus: str, text, max_length: int) -> None:
    """What is trained on, and the loss to beat. length: of the inputs."""
    print(
        f"Text: {corpus}, {len(text.train.document_ends):,} documents, {len(text.train.ids):,} "
        f"pieces of "
        f"{len(text.wordpiece):,} kinds; {len(text.held_out.document_ends):,} documents held out.\n"
        f"Unigram entropy: {text.unigram_entropy:.2f} nats. A model that knows only frequencies "
        f"has about this loss."
    )
    unknown = sum(
        int((ids == text.wordpiece.unk_id).sum()) for ids in chunks(text.train.ids)
    ) / len(text.train.ids)
    if unknown > 0.01:
        print(
            f"{unknown:.0%} of the pieces are [UNK]: the vocabulary lacks these words or "
            f"characters."
        )
    mean = len(text.train.ids) / len(text.train.document_ends)
    if mean < max_length / 2:
        print(
            f"A document has {mean:,.0f} pieces on average, an input {max_length} places, and a "
            f"document's end ends its "
            "input: if a blank line or a row is no end of a document in this text, join them."
        )


def chunks(ids, size: int = 2**24):
    """Parts of a long array, so that no copy of the whole is made."""
    return (ids[start : start + size] for start in range(0, len(ids), size))


def start(options: argparse.Namespace, run, text):
    """The model to begin with: None for a new one, or that of --init-from."""
    if not options.init_from:
        return None
    from spanbert_tutorial.engine.processes import processes
    from spanbert_tutorial.pretraining.checkpoints import continue_from

    model, new = continue_from(options.init_from, run.objective, run.seed)
    config = model.encoder.config
    if config.vocab_size < len(text.wordpiece) or config.max_position_embeddings < run.max_length:
        raise InputError(
            f"{options.init_from} has {config.vocab_size:,} pieces and "
            f"{config.max_position_embeddings} "
            f"positions, the run {len(text.wordpiece):,} and {run.max_length}: give the checkpoint's "
            f"own "
            "--vocabulary and a smaller --max-length."
        )
    if processes().is_main_process:
        print(f"Weights: {options.init_from}; new heads: {', '.join(new) or 'none'}.")
    return model


def dry_run(run, options: argparse.Namespace) -> None:
    """What a run would be: size, memory, steps and hours, from a few steps on this machine. Keeps
    nothing."""
    from accelerate.utils import broadcast_object_list

    from spanbert_tutorial.engine.processes import processes
    from spanbert_tutorial.pretraining import runs

    main = processes().is_main_process
    with tempfile.TemporaryDirectory() as own:
        (scratch,) = broadcast_object_list([own])  # that of the first process; there it is removed
        text = encoded_text(options, Path(scratch, "text"))
        if main:
            describe(options.corpus, text, run.max_length)
        model = start(options, run, text) or runs.new_model(run, text)
        parameters, seconds, tokens = runs.rehearse(run, text, model)
        corpus_tokens = len(text.train.ids)
        del text  # closes its files, or Windows could not remove them
        processes().wait_for_everyone()
    if not main:
        return
    tokens = tokens * run.accumulate
    seconds = seconds * run.accumulate
    print(
        f"Model: {parameters / 1e6:.1f} M parameters; weights, gradients and optimizer take "
        f"{16 * parameters / 2**30:.2f} GiB in training{peak_memory()}.\n"
        f"Run: {run.steps:,} steps of {run.accumulate} × {run.batch_size} inputs, {tokens:,.0f} "
        f"tokens a step, "
        f"{run.steps * tokens / 1e6:,.1f} M tokens, {run.steps * tokens / corpus_tokens:.2f} times the "
        f"text.\n"
        f"Time: {seconds:.2f} s a step here, {tokens / seconds:,.0f} tokens/s, "
        f"about {run.steps * seconds / 3600:.2f} hours. Nothing was written."
    )


def peak_memory() -> str:
    """The most that the steps of a rehearsal took, as a part of a sentence; "" where the system
    does not say."""
    import torch

    if torch.cuda.is_available():
        return (
            f"; with activations these steps took "
            f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB on the device"
        )
    try:
        import resource  # not on Windows
    except ImportError:
        return ""
    unit = 2**30 if sys.platform == "darwin" else 2**20
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return f"; with activations, libraries and text this process took {most:.2f} GiB"


def snapshots(options: argparse.Namespace, run, state: Path, model):
    """Where the run keeps its state, and what must not change when it goes on. model: to start
    from, or None."""
    from spanbert_tutorial.engine.processes import precision, processes
    from spanbert_tutorial.engine.snapshots import Snapshots, checksum, fingerprint

    files = [
        "tokenizer.json",
        *(file.relative_to(state / "text") for file in sorted(state.glob("text/*/*.npy"))),
    ]
    text = {str(name): checksum(state / "text" / name) for name in files}
    facts = asdict(run) | {"init_from": options.init_from or "nothing", "arithmetic": precision()}
    facts |= {
        "start": fingerprint(model) if model else "new weights",
        "processes": processes().num_processes,
    }
    return Snapshots(state / "snapshots", facts | text)


def report(model, text, figures: dict) -> None:
    """Held-out losses, and a masked span of a held-out document filled by each head."""
    from spanbert_tutorial.pretraining.model import fill_masks

    for way, values in figures.items():
        how = "token masking of pairs" if way == "pairs" else f"{way} masking"
        print(
            f"Held out, {how}, in nats: MLM {values['mlm']:.2f} a masked piece "
            f"(frequency alone {values['frequency']:.2f}, frequency by position "
            f"{values['by_position']:.2f}); "
            f"{values['accuracy']:.0%} named by the MLM head."
        )
        for task in (task for task in model.tasks if task.loss_name in values):
            print(
                f"  {task.loss_name.upper()} {values[task.loss_name]:.2f} a "
                f"{task.counted}{beside(task, values)}."
            )
    start = 0
    end = int(text.held_out.sentence_ends[0])
    ids = text.held_out.ids[start:end][:60].copy()
    first = len(ids) // 2
    hidden, ids[first : first + 2] = (
        text.wordpiece.tokens(ids[first : first + 2]),
        text.wordpiece.mask_id,
    )
    words = text.wordpiece.decode(ids)
    print(f"A held-out sentence: {words}\n  hidden: {' '.join(hidden)}")
    for span in fill_masks(model, text.wordpiece, words, top=1):
        for head, predictions in span.predictions.items():
            tokens = " ".join(f"{token} ({share:.0%})" for ((token, share),) in predictions)
            print(f"  {head.upper()}:    {tokens or 'no prediction'}")


def beside(task, values: dict[str, float]) -> str:
    """What to compare the loss of a second task with, and what it counts: the rest of a
    sentence."""
    if task.chance:
        loss, who = task.chance
        return f" ({who} {loss:.2f})" + (f"; {task.explained}" if task.explained else "")
    frequency, position = (
        values.get(f"{task.loss_name}_{table}") for table in ("frequency", "by_position")
    )
    known = (
        ""
        if frequency is None
        else f" (frequency alone {frequency:.2f}, by position {position:.2f})"
    )
    return known + (f"; {task.explained}" if task.explained else "")


def card(run, options: argparse.Namespace, text, model, figures: dict, line: dict) -> str:
    """README.md of a checkpoint. line: the last one of its metrics."""
    config = model.encoder.config
    facts = {"layers × width": f"{config.num_hidden_layers} × {config.hidden_size}"}
    facts |= {name: value for name, value in asdict(run).items() if name != "size"}
    if options.init_from:  # then the weights did not start as these two say
        del facts["initializer_range"], facts["sinusoidal_positions"]
        facts["started from"] = Path(options.init_from).name
    facts["vocabulary"] = Path(options.vocabulary or options.init_from or "its own").name
    facts["titles left out"] = Path(options.leave_out).name if options.leave_out else "none"
    facts["tokens seen"] = f"{line['tokens']:,}"
    facts["hours"] = f"{line['seconds'] / 3600:.2f} on {device()}"
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    names = {"pairs": "token masking, pairs"}
    scores = "\n".join(
        f"- {names.get(way, f'{way} masking')}: "
        + ", ".join(f"{n} {v:.3f}" for n, v in values.items())
        for way, values in figures.items()
    )
    corpus = Path(options.corpus).name
    license = (
        "CC BY 4.0, as the almanac's" if corpus == "almanac" else "the licence of the text applies"
    )
    measured = (
        "Held-out losses in nats, every chosen piece replaced by [MASK]: `mlm` of a chosen piece, "
        + "".join(
            f"`{task.loss_name}` of a {task.counted} of the task {task.name}, "
            for task in model.tasks
        )
        + "`loss` what is trained; `accuracy` is the share named by the MLM head; `frequency` "
        "and `by_position` are "
        "what two tables without context reach on the same pieces"
    )
    return (
        f"# {run.objective}, pre-trained by `python -m spanbert_tutorial pretrain`\n\n"
        f"Text: {corpus}; {len(text.train.ids):,} pieces, cased vocabulary of "
        f"{len(text.wordpiece):,}; "
        f"unigram entropy {text.unigram_entropy:.3f} nats.\n\n"
        f"| setting | value |\n|---|---|\n{rows}\n\n{measured}:\n\n{scores}\n\n"
        f"Licence of the weights: {license}.\n"
    )


def device() -> str:
    """What the run computes on."""
    import torch

    from spanbert_tutorial.engine.processes import precision, processes

    arithmetic = {"no": "float32"}.get(precision(), precision())
    if torch.cuda.is_available():
        return f"{processes().num_processes} × {torch.cuda.get_device_name()}, {arithmetic}"
    return f"CPU, {processes().num_processes} × {torch.get_num_threads()} threads, {arithmetic}"
