"""`export web` and `export onnx`: a trained model as a script with 8-bit weights for a web page, or
as an ONNX file. Chapter: `book/workshop/try_it`.

`book_assets/model.js` runs the model of the script; ONNX Runtime, and others that read its format,
the one of the file. Shapes: B batch, n sequence, H hidden, V vocabulary, t targets.
"""

import argparse
import base64
import json
import logging
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.weights import checkpoint_folder, read_weights
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.commands.options import add
from spanbert_tutorial.engine.files import whole_file, write_text
from spanbert_tutorial.errors import InputError, require
from spanbert_tutorial.pretraining.checkpoints import TIED, check_output, load_checkpoint
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.spanbert.boundary import BoundaryTargets
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer, QuestionAnsweringModel

# the parts of a model that the page runs
HEADS = ("encoder.", "masked_language_model.", "boundary.", "boundaries.")


def add_options(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    script = "Write a script with 8-bit weights. A page that loads it together with "
    script += "book_assets/model.js can run the model."
    file = "Write an ONNX file of the encoder with its heads. "
    file += "Needs the packages onnx and onnxscript."
    web = kinds.add_parser("web", help="a script with the model for a web page", description=script)
    onnx = kinds.add_parser("onnx", help="a file for ONNX Runtime", description=file)
    for options in (web, onnx):
        source = "a model from pretrain or finetune squad: a folder or a hub name"
        options.add_argument("checkpoint", metavar="CHECKPOINT", help=source)
        add(options, "output", required=True, help="new file to write")
    add(web, "float")
    above = "of a model that answers: no answer if null score − score is above this"
    add(web, "threshold", default=None, help=above)


def export(options: argparse.Namespace) -> None:
    """Writes the file, completely or not at all, and prints where it is."""
    output, source = check_output(options.output), options.checkpoint
    if options.kind == "web":
        name = Path(source).absolute().name  # the last part of the folder or hub name
        write_text(output, web_script(source, name, options.float, options.threshold))
        print(f'A page finds the model as SPANBERT_WEIGHTS["{name}"].')
    else:
        write_onnx(source, output)
    print(f"The model is in {output}.")


def open_model(
    source: str | Path,
) -> tuple[PretrainingModel | QuestionAnsweringModel, WordPiece, int]:
    """A pre-trained model of this project or one that answers questions, in float32 on the CPU,
    with its vocabulary and its maximum input length. Raises InputError for any other checkpoint."""
    folder = checkpoint_folder(source)
    if "qa_outputs.weight" in read_weights(folder):
        answerer = QuestionAnswerer.from_pretrained(folder)
        return answerer.model.cpu(), answerer.wordpiece, answerer.max_length
    model, wordpiece = load_checkpoint(folder)
    return model, wordpiece, model.encoder.config.max_position_embeddings


# --- for a web page -----------------------------------------------------------------


def text_of(tensor: Tensor) -> str:
    """The bytes of a tensor in base64, little-endian."""
    array = tensor.numpy()
    little_endian = array.astype(array.dtype.newbyteorder("<"))
    return base64.b64encode(little_endian.tobytes()).decode("ascii")


def tensor_entry(weight: Tensor, exact: bool) -> dict:
    """A tensor as JSON: shape and data. Vectors are float32. Unless exact, matrices are whole
    numbers from −127 to 127, int8 [rows,columns], with a `scale` for each row, float32 [rows]:
    number times scale is off by half a scale at most."""
    entry: dict[str, Any] = {"shape": list(weight.shape)}
    if weight.dim() == 2 and not exact:
        scale = weight.abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / 127
        weight = (weight / scale[:, None]).round().to(torch.int8)
        entry["scale"] = text_of(scale)
    return entry | {"data": text_of(weight)}


def web_script(
    source: str | Path, name: str, exact: bool = False, threshold: float | None = None
) -> str:
    """The script that registers a model under `name` for `SpanBERT.open`. exact: float32, not 8 bits.
    threshold: the null score − score above which the model gives no answer, if one was chosen.
    Raises InputError for a checkpoint that the page cannot run."""
    model, wordpiece, max_length = open_model(source)
    cased = not (wordpiece.lowercase or wordpiece.strip_accents)
    require(cased, f"{source} has an uncased vocabulary, which no page can read: give a cased one.")
    answers = isinstance(model, QuestionAnsweringModel)
    told = f"{source} does not answer questions: leave out --threshold."
    require(answers or threshold is None, told)
    tensors = {
        name: tensor_entry(weight.float(), exact)
        for name, weight in model.state_dict().items()
        if name.startswith(HEADS) and not name.endswith(TIED)
    }
    content = {
        "kind": "question_answering" if answers else "pretraining",
        "config": asdict(model.encoder.config) | {"length": max_length},
        **({} if threshold is None else {"threshold": threshold}),
        "vocabulary": wordpiece.vocabulary,
        "tensors": tensors,
    }
    registry = "(self.SPANBERT_WEIGHTS = self.SPANBERT_WEIGHTS || {})"
    # ASCII only, so that no page has to declare the encoding of the script
    return f"{registry}[{json.dumps(name)}] = {json.dumps(content, separators=(',', ':'))};\n"


# --- for ONNX Runtime ---------------------------------------------------------------


class Graph(nn.Module):
    """A model as one function of tensors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Of a model that answers, start and end scores [B,n], minus infinity at padding; of a
        pre-trained one, hidden states [B,n,H], MLM logits [B,n,V] and, if there is a boundary head,
        its logits [t,V]. inputs: ids, types and mask [B,n]; then for that head the columns of
        `BoundaryTargets` but for the labels."""
        model, (input_ids, types, mask, *rows) = self.model, inputs
        if isinstance(model, QuestionAnsweringModel):
            batch = {"input_ids": input_ids, "token_type_ids": types, "attention_mask": mask.bool()}
            return model.scores(batch)
        hidden = model.encoder(input_ids, token_type_ids=types, attention_mask=mask)
        logits = model.masked_language_model(hidden)
        if not rows:
            return hidden, logits
        targets = BoundaryTargets._make((*rows, rows[0]))  # logits need no labels
        return hidden, logits, model.boundary(hidden, targets)


def write_onnx(source: str | Path, output: Path) -> None:
    """Writes a model as an ONNX file, completely or not at all, and prints its inputs and outputs.
    Raises InputError for a checkpoint of another kind, and without the packages for the format."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        told = f"the package {error.name} is missing: pip install onnx onnxscript."
        raise InputError(told) from None
    model, *_ = open_model(source)
    inputs = dict.fromkeys(("input_ids", "token_type_ids", "attention_mask"), "B,n")
    if isinstance(model, QuestionAnsweringModel):
        outputs = {"start_scores": "B,n", "end_scores": "B,n"}
    else:
        outputs = {"hidden": "B,n,H", "logits": "B,n,V"}
    if hasattr(model, "boundary"):
        inputs |= {f"boundary_{name}": "t" for name in BoundaryTargets._fields[:-1]}
        outputs["boundary_logits"] = "t,V"
    # Any values will do, but each input needs its own tensor: torch would merge equal ones.
    sizes = {"B,n": (2, 7), "t": (3,)}
    example = tuple(torch.ones(sizes[shape], dtype=torch.long) for shape in inputs.values())
    any_size = tuple(dict(enumerate(shape.split(","))) for shape in inputs.values())
    # otherwise it complains about other packages that are not installed
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"):
        program = torch.onnx.export(
            Graph(model).eval(),
            example,
            dynamo=True,
            verbose=False,
            input_names=[*inputs],
            output_names=[*outputs],
            dynamic_shapes=(any_size,),
        )
    assert program is not None  # None without dynamo
    with whole_file(output) as part:
        program.save(part, external_data=False)
    for kind, tensors in (("inputs (int64)", inputs), ("outputs (float32)", outputs)):
        print(f"{kind}: {', '.join(f'{name} [{shape}]' for name, shape in tensors.items())}")
