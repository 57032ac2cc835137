"""`export web` and `export onnx`: write a trained model for a web page or ONNX Runtime. Chapter:
`book/workshop/try_it`.
"""

import argparse
from pathlib import Path

from spanbert_tutorial.engine.files import write_text


def add_options(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    web = kinds.add_parser(
        "web",
        help="a script with the model for a web page",
        description="Write a script with 8-bit weights. A page that loads it together with "
        "book_assets/model.js can run the model.",
    )
    web.add_argument(
        "--float",
        action="store_true",
        dest="exact",
        help="32-bit weights, the same numbers as in PyTorch, in a file four times as large",
    )
    web.add_argument(
        "--threshold",
        type=float,
        metavar="ODDS",
        help="for question answering: give no answer if null score − score is above this",
    )
    onnx = kinds.add_parser(
        "onnx",
        help="a file for ONNX Runtime",
        description="Write an ONNX file of the encoder with its heads. "
        "Needs the packages onnx and onnxscript.",
    )
    for kind in (web, onnx):
        kind.add_argument(
            "checkpoint",
            metavar="CHECKPOINT",
            help="a model from pretrain or finetune squad: a folder or a hub name",
        )
        kind.add_argument("--output", required=True, metavar="FILE", help="new file to write")


def export(options: argparse.Namespace) -> None:
    """Writes the file, completely or not at all, and prints where it is."""
    from spanbert_tutorial.commands import exports
    from spanbert_tutorial.pretraining.checkpoints import check_output

    if options.kind == "web":
        output, source = check_output(options.output), options.checkpoint
        name = Path(source).absolute().name  # the last part of the folder or hub name
        write_text(output, exports.web_script(source, name, options.exact, options.threshold))
        print(f'A page finds the model as SPANBERT_WEIGHTS["{name}"].')
    else:
        print("\n".join(exports.write_onnx(options.checkpoint, options.output)))
    print(f"The model is in {options.output}.")
