"""`pretrain`: text, vocabulary, training, held-out metrics, checkpoint. Chapter:
`book/spanbert/pretraining_spanbert`.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import broadcast_object_list

from spanbert_tutorial.bert.auxiliary import AuxiliaryObjective
from spanbert_tutorial.bert.config import PRESETS, EncoderConfig
from spanbert_tutorial.bert.weights import checkpoint_folder, read_config
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.commands.options import add, with_options
from spanbert_tutorial.commands.run_state import TEXT_FACTS, encoded_text, run_state, snapshots_of
from spanbert_tutorial.engine.processes import precision, processes
from spanbert_tutorial.engine.snapshots import checksum
from spanbert_tutorial.errors import require, shown
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.checkpoints import (
    continue_from,
    read_vocabulary,
    save_checkpoint,
)
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.fixed_shapes import compiling_pays
from spanbert_tutorial.pretraining.model import PretrainingModel, fill_masks
from spanbert_tutorial.pretraining.objectives import objective_or_mixture
from spanbert_tutorial.pretraining.presets import Run, preset
from spanbert_tutorial.pretraining.scaling_up import matmul_rate, operations, with_boundary

HELD_OUT_BATCHES = 100  # at most: measuring all held-out text of a large corpus takes too long
TEXT = ("corpus", "vocab-size", "leave-out", "held-out-every")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options; `settings` fills in the defaults that depend on `--config`."""
    add(parser, *TEXT, "vocabulary", "max-length")
    output = "folder of the checkpoint (default: runs/OBJECTIVE-CONFIG-seedN)"
    add(parser, "output", help=output)
    add(parser, "config", "steps", "batch-size", "accumulate", "learning-rate", "init-from")
    add(parser, "objective", "seed", "half", "no-compile", "dry-run", "resume")


def settings(options: argparse.Namespace) -> Run:
    """Those of the preset, but for the options given. A run that starts from a checkpoint has the
    preset of its size."""
    name, source = options.config or "tiny", options.init_from
    if source and not options.config:
        config = read_config(checkpoint_folder(source, weights=False))
        shape = config.get("num_hidden_layers"), config.get("hidden_size")
        names = [name for name, sizes in PRESETS.items() if sizes[:2] == shape]
        told = f"{source} has {shown(shape[0])} layers of width {shown(shape[1])}"
        require(names, f"{told}: name a size by --config.")
        name = names[0]
    start = preset(name, options.objective)
    run = with_options(start, options)
    if options.batch_size and options.accumulate is None:
        run = replace(run, accumulate=1)  # who sets the batch size means the size of a step
    # the warm-up steps of the preset, but at most a tenth of a shorter run
    warmup = min(0.1, start.warmup * start.steps / run.steps)
    return replace(run, warmup=warmup) if options.steps else run


def pretrain(options: argparse.Namespace) -> None:
    """Text → vocabulary → blocks → training → held-out metrics → checkpoint."""
    run, compiling = compiled_or_not(settings(options), options)
    if options.dry_run:
        return dry_run(run, options, compiling)
    output = options.output
    if output is None:
        output = f"runs/{run.objective.replace('+', '-')}-{run.size}-seed{run.seed}"
    inside = Path(output).resolve().is_relative_to(Path(options.corpus).resolve())
    told = f"the output {output} is inside the corpus {options.corpus}: give another --output."
    require(options.corpus == "almanac" or not inside, told)
    began = time.monotonic()
    with run_state(output, options.resume) as state:
        if state is None:
            return
        model = start(options, run)
        text = encoded_text(options, state / "text")
        facts = asdict(run) | {"text": checksum(state / "text" / TEXT_FACTS)}
        keeper = snapshots_of(state, facts, model)  # before anything reads the text
        if processes().is_main_process:  # one of several under `accelerate launch`
            describe(options.corpus, text, run.max_length)
            if any(task.paired for task in objective_or_mixture(run.objective).tasks):
                # the share of NotNext is what a guesser's loss depends on
                print(f"Pairs: {runs.training_data(run, text).report}.")
        model, _ = runs.pretrain(run, text, model, keeper, compiling)
        if not processes().is_main_process:
            return
        held_out = held_out_metrics(model, run, text, HELD_OUT_BATCHES, tables=True)
        metrics = (state / "metrics.jsonl").read_text(encoding="utf-8")
        reached = report(model, held_out)
        about = card(run, options, text, model, reached, json.loads(metrics.splitlines()[-1]))
        texts = {"README.md": about, "metrics.jsonl": metrics}
        save_checkpoint(output, model, text.wordpiece, run.objective, texts, half=options.half)
        print("\n".join(reached))
        print_predictions(model, text)
        print(
            f"Checkpoint after {time.monotonic() - began:.0f} s: {output}\n"
            f'Open its encoder with transformers: BertModel.from_pretrained("{output}")'
        )
        del text  # closes its files, or Windows could not remove them


def why_unknown(share: float, wordpiece: WordPiece) -> str:
    """A sentence on the share of [UNK] among the tokens."""
    limit = wordpiece.library.model.max_input_chars_per_word
    return (
        f"{share:.0%} of the tokens are [UNK]: the vocabulary lacks these words or characters, or "
        f"words have more than {limit} characters (put spaces between words)."
    )


def describe(corpus: str, text: EncodedText, max_length: int) -> None:
    """Prints what is trained on, the loss to beat, and warnings about the text. max_length: of the
    inputs, in tokens."""
    ids, documents = text.train.ids, len(text.train.document_ends)
    print(
        f"Text: {corpus}, {documents:,} documents, {len(ids):,} tokens, a vocabulary of "
        f"{len(text.wordpiece):,}; {len(text.held_out.document_ends):,} documents held out.\n"
        f"Unigram entropy: {abs(text.unigram_entropy):.2f} nats. A model that knows only frequencies "
        f"has about this loss."
    )
    starts = range(0, len(ids), 2**24)  # no copy of all
    unknown = sum(int((ids[at : at + 2**24] == text.wordpiece.unk_id).sum()) for at in starts)
    if unknown > 0.01 * len(ids):
        print(why_unknown(unknown / len(ids), text.wordpiece))
    mean = len(ids) / documents
    if mean < max_length / 2:
        print(
            f"A document has {mean:,.0f} tokens on average, but an input has {max_length} positions "
            "and ends where its document ends: if blank lines or rows do not separate documents in "
            "this text, join them."
        )


def start(options: argparse.Namespace, run: Run) -> PretrainingModel | None:
    """The model to start from: that of --init-from, or None for a new one. Raises InputError for what
    does not fit it, before a large text is encoded."""
    source, model, most = options.init_from, None, EncoderConfig.max_position_embeddings
    if source:
        model, new = continue_from(source, run.objective, run.seed)
        config, vocabulary = model.encoder.config, options.vocabulary or source
        most, tokens = config.max_position_embeddings, len(read_vocabulary(vocabulary))
        told = f"{vocabulary} has {tokens:,} tokens, {source} {config.vocab_size:,}"
        require(tokens <= config.vocab_size, f"{told}: give its own --vocabulary.")
        if processes().is_main_process:
            print(f"Weights: {source}; new heads: {', '.join(new) or 'none'}.")
    told = f"{source or 'a new model'} has {most} positions, the run inputs of {run.max_length}"
    require(run.max_length <= most, f"{told}: give less by --max-length.")
    return model


def compiled_or_not(run: Run, options: argparse.Namespace) -> tuple[Run, bool]:
    """The run, and whether its step is compiled. A compiled one does not batch blocks of similar
    length, because all its batches have one shape."""
    compiling = compiling_pays(run) and not options.no_compile
    return (replace(run, by_length=False), True) if compiling else (run, False)


def dry_run(run: Run, options: argparse.Namespace, compiling: bool) -> None:
    """Prints the size, memory, steps and hours of a run, estimated from some seconds of it on this
    machine. Writes nothing."""
    main = processes().is_main_process
    with tempfile.TemporaryDirectory() as own:
        (scratch,) = broadcast_object_list([own])  # that of the first process, which removes it
        model = start(options, run)
        text = encoded_text(options, Path(scratch, "text"))
        if main:
            describe(options.corpus, text, run.max_length)
        model = model or runs.new_model(run, text)
        parameters, seconds, tokens = runs.rehearse(run, text, model, compiling=compiling)
        corpus_tokens = len(text.train.ids)
        del text  # closes its files, or Windows could not remove them
        processes().wait_for_everyone()
    if not main:
        return
    memory = peak_memory()  # before the multiplications
    rate = matmul_rate()
    sbo = with_boundary(objective_or_mixture(run.objective))
    needed = operations(model.encoder.config, run.max_length, sbo)  # of a token
    print(
        f"Model: {parameters / 1e6:.1f} M parameters; weights, gradients and optimizer take "
        f"{16 * parameters / 2**30:.2f} GiB in training{memory}.\n"
        f"Run: {run.steps:,} steps of {run.accumulate} × {run.batch_size} inputs, {tokens:,.0f} "
        f"tokens a step, {run.steps * tokens / 1e6:,.1f} M tokens, "
        f"{run.steps * tokens / corpus_tokens:.2f} times the text.\n"
        f"Time: {seconds:.2g} s a step here, {tokens / seconds:,.0f} tokens/s, "
        f"about {run.steps * seconds / 3600:.2f} hours. The model's "
        f"operations are {tokens / seconds * needed / rate:.0%} (MFU) of the {rate / 1e12:.3g} TFLOP/s "
        "that large matrix multiplications reach here. Nothing was written."
    )


def peak_memory() -> str:
    """The peak memory of the trial steps, as part of a sentence; "" where the system does not
    report it."""
    kind = processes().device.type
    if kind == "cuda":
        gib = torch.cuda.max_memory_allocated() / 2**30
        return f"; with activations these steps took {gib:.2f} GiB on the device"
    if kind != "cpu" or sys.platform == "win32":
        return ""
    import resource

    unit = 2**30 if sys.platform == "darwin" else 2**20
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return f"; with activations, libraries and text this process took {gib:.2f} GiB"


def report(model: PretrainingModel, held_out: dict[str, dict[str, float]]) -> list[str]:
    """The held-out losses in words, a line for each way of masking and each head."""
    lines = []
    for masking, values in held_out.items():
        name = "token masking of pairs" if masking == "pairs" else f"{masking} masking"
        if "mlm" not in values:
            lines.append(f"Held out, {name}: no token was masked, every word exceeds the budget.")
            continue
        lines.append(
            f"Held out, {name}, in nats: MLM {values['mlm']:.2f} per masked token (frequency alone "
            f"{values['frequency']:.2f}, frequency by position {values['by_position']:.2f}); "
            f"{values['accuracy']:.0%} predicted correctly by the MLM head."
        )
        for task in model.tasks:
            loss = f"  {task.loss_name.upper()}"
            if task.loss_name in values:
                told = f"{values[task.loss_name]:.2f} per {task.counted}{compared(task, values)}"
                lines.append(f"{loss} {told}.")
            elif not task.paired or masking == "pairs":
                lines.append(f"{loss}: no {task.counted} in the held-out text.")
    return lines


def compared(task: AuxiliaryObjective, values: dict[str, float]) -> str:
    """The baselines of an auxiliary objective's loss, and what it counts: the rest of a sentence."""
    told, name = "", task.loss_name
    if task.chance:
        told = f" ({task.chance[1]} {task.chance[0]:.2f})"
    elif f"{name}_frequency" in values:
        alone, by_position = (values[f"{name}_{way}"] for way in ("frequency", "by_position"))
        told = f" (frequency alone {alone:.2f}, by position {by_position:.2f})"
    return told + (f"; {task.explained}" if task.explained else "")


def print_predictions(model: PretrainingModel, text: EncodedText) -> None:
    """Masks two tokens in the middle of the first held-out sentence and prints the predictions."""
    end = int(text.held_out.sentence_ends[0])
    ids = text.held_out.ids[:end][:60].copy()
    middle = slice(len(ids) // 2, len(ids) // 2 + 2)
    masked = text.wordpiece.tokens(ids[middle])
    ids[middle] = text.wordpiece.mask_id
    sentence = text.wordpiece.decode(ids)
    print(f"A held-out sentence: {sentence}\n  masked: {' '.join(masked)}")
    for span in fill_masks(model, text.wordpiece, sentence, top=1):
        for head, predictions in span.predictions.items():
            best = [f"{token} ({probability:.0%})" for ((token, probability),) in predictions]
            if best:  # some heads predict no tokens
                print(f"  {head.upper()}:    {' '.join(best)}")


def card(
    run: Run,
    options: argparse.Namespace,
    text: EncodedText,
    model: PretrainingModel,
    reached: list[str],
    line: dict[str, float],
) -> str:
    """README.md of a checkpoint. reached: its `report`; line: the last one of its metrics."""
    config, corpus = model.encoder.config, Path(options.corpus).name
    facts: dict[str, Any] = {"layers × width": f"{config.num_hidden_layers} × {config.hidden_size}"}
    facts |= {name: value for name, value in asdict(run).items() if name != "size"}
    if options.init_from:  # then these two do not describe the first weights
        del facts["initializer_range"], facts["sinusoidal_positions"]
        facts["started from"] = Path(options.init_from).name
    facts["vocabulary"] = Path(options.vocabulary or options.init_from or "its own").name
    facts["titles left out"] = Path(options.leave_out).name if options.leave_out else "none"
    facts["tokens seen"] = f"{line['tokens']:,}"
    number, arithmetic = processes().num_processes, precision().replace("no", "float32")
    kind = processes().device.type  # "cpu", "cuda", that of an Apple GPU "mps"
    device = f"CPU, {number} × {torch.get_num_threads()} threads"
    if kind != "cpu":
        device = f"{number} × {torch.cuda.get_device_name() if kind == 'cuda' else kind}"
    facts["hours"] = f"{line['seconds'] / 3600:.2f} on {device}, {arithmetic}"
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    scores = "\n".join(f"- {one.strip()}" for one in reached)
    almanac = "CC BY 4.0, as that of the almanac"
    return (
        f"# {run.objective}, pre-trained by `python -m spanbert_tutorial pretrain`\n\n"
        f"Text: {corpus}; {len(text.train.ids):,} tokens, cased vocabulary of "
        f"{len(text.wordpiece):,}; unigram entropy {text.unigram_entropy:.3f} nats.\n\n"
        f"| setting | value |\n|---|---|\n{rows}\n\n"
        "With every selected token replaced by [MASK], beside two baselines without context on "
        f"the same tokens:\n\n{scores}\n\nLicense of the weights: "
        f"{almanac if corpus == 'almanac' else 'that of the text applies'}.\n"
    )
