"""`export web`, `export onnx`: a trained model for a web page or for ONNX Runtime. Chapter:
`book/workshop/shipped_models`.
"""

import argparse


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of `export`."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="web|onnx")
    web = kinds.add_parser("web", help="script of 8-bit weights for book_assets/model.js",
                           description="Write a script that gives a model to a web page with book_assets/model.js.")
    web.add_argument("--float", action="store_true", dest="exact",
                     help="32-bit weights, four times as large, with the numbers of PyTorch")
    web.add_argument("--threshold", type=float, metavar="ODDS",
                     help="null odds above which a model that answers questions gives none, to be shown by the page")
    for kind in (web,):
        kind.add_argument("checkpoint", metavar="CHECKPOINT", help="pre-trained or answering model: folder or hub name")
        kind.add_argument("--output", required=True, metavar="FILE", help="new file to write")


def export(options: argparse.Namespace) -> None:
    """Writes the file, whole or not at all."""
    from spanbert_tutorial import exports

    exports.write_web(options.checkpoint, options.output, options.exact, options.threshold)
    print(f"The model is in {options.output}.")
