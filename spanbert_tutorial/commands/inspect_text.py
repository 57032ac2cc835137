"""`python -m spanbert_tutorial inspect`: a text before any training: how words are cut, how much is
unknown, and the losses that are reached without context. Chapter:
`book/spanbert/pretraining_spanbert`.
"""

import argparse
import tempfile
from pathlib import Path


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of `inspect`: those of `pretrain` that concern the text, and words to cut."""
    from spanbert_tutorial.commands.pretrain import add_text_options

    add_text_options(parser)
    parser.add_argument(
        "--words", nargs="+", default=None, metavar="WORD", help="words or names to cut into tokens"
    )


def inspect_text(options: argparse.Namespace) -> None:
    """Encodes the text for a moment, keeps nothing."""
    from spanbert_tutorial.commands.pretrain import HELD_OUT_BATCHES, describe
    from spanbert_tutorial.commands.run_state import encoded_text
    from spanbert_tutorial.pretraining.evaluation import baseline_losses
    from spanbert_tutorial.pretraining.presets import Run

    options.init_from = None  # the vocabulary of a checkpoint is given by --vocabulary
    run = (
        Run(objective="span")
        if options.max_length is None
        else Run(objective="span", max_length=options.max_length)
    )
    with tempfile.TemporaryDirectory() as scratch:
        text = encoded_text(options, Path(scratch, "text"))
        describe(options.corpus, text, run.max_length)
        for way, reached in baseline_losses(run, text, HELD_OUT_BATCHES).items():
            print(
                f"Without context, {way} masking, in nats: frequency {reached['frequency']:.2f} "
                f"a masked token, "
                f"frequency by position {reached['by_position']:.2f} ({reached['tokens']:,} "
                f"held-out tokens)."
            )
        for word in options.words or ():
            print(f"{word}: {' '.join(text.wordpiece.tokens(text.wordpiece.encode(word)))}")
        del text  # closes its files, or Windows could not remove them
