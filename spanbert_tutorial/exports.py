"""A trained model for other programs: a script with 8-bit weights for a web page, or an ONNX file. Chapter:
`book/workshop/shipped_models`.

`book_assets/model.js` computes with the script; ONNX Runtime, and what understands its format, with the file. Shapes: B
batch, n sequence, H hidden, V vocabulary, t targets.
"""

import base64
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.checkpoints import TIED, check_output, load_checkpoint
from spanbert_tutorial.engine.files import write_text
from spanbert_tutorial.engine.weights import checkpoint_folder, read_weights
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining import PretrainingModel
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer, QuestionAnsweringModel
from spanbert_tutorial.wordpiece import WordPiece

HEADS = ("encoder.", "masked_language_model.", "boundary.", "boundaries.")  # what the page computes with
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
         "max_position_embeddings", "layer_norm_eps")  # fmt: skip


def open_model(source: str | Path) -> tuple[PretrainingModel | QuestionAnsweringModel, WordPiece, int]:
    """A pre-trained model of this project or one that answers questions, in float32 on the CPU, with its vocabulary and
    the positions that it reads at once. Raises InputError for any other checkpoint."""
    folder = checkpoint_folder(source)
    if "qa_outputs.weight" in read_weights(folder):
        answerer = QuestionAnswerer.from_pretrained(folder)
        return answerer.model.cpu(), answerer.wordpiece, answerer.length
    model, wordpiece = load_checkpoint(folder)
    return model, wordpiece, model.encoder.config.max_position_embeddings


# --- for a web page -----------------------------------------------------------------------------------------------------


def to_bytes(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix as whole numbers from −127 to 127, int8 [rows,columns], and a scale for each row, float32 [rows]:
    a number is the whole one times its row's scale, off by half a scale at most."""
    scale = weight.abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / 127
    return (weight / scale[:, None]).round().to(torch.int8), scale


def text_of(tensor: Tensor) -> str:
    """The bytes of a tensor in base64, little-endian."""
    array = tensor.detach().contiguous().numpy()
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<"))).decode("ascii")


def tensor_entry(weight: Tensor, exact: bool) -> dict:
    """{"shape", "data", "scale" of a matrix in 8 bits}; biases and the like stay float32."""
    shape = list(weight.shape)
    if exact or weight.dim() < 2:
        return {"shape": shape, "data": text_of(weight)}
    whole, scale = to_bytes(weight)
    return {"shape": shape, "scale": text_of(scale), "data": text_of(whole)}


def web_script(source: str | Path, name: str, exact: bool = False, threshold: float | None = None) -> str:
    """The script that registers a model under `name` for `SpanBERT.open`. exact: float32 in place of 8 bits. threshold:
    the null odds above which a model has no answer, where one was chosen.

    Raises InputError for a checkpoint that the page cannot compute with.
    """
    model, wordpiece, length = open_model(source)
    if wordpiece.lowercase or wordpiece.strip_accents:
        raise InputError(f"{source} has a vocabulary in lower case or without accents, and the page's WordPiece keeps "
                         "both: give a cased model.")
    config = {size: getattr(model.encoder.config, size) for size in SIZES} | {"length": length}
    weights = {name: weight.float() for name, weight in model.state_dict().items()
               if name.startswith(HEADS) and not name.endswith(TIED)}  # fmt: skip
    content = {
        "kind": "question_answering" if isinstance(model, QuestionAnsweringModel) else "pretraining",
        "config": config,
        **({} if threshold is None else {"threshold": threshold}),
        "vocabulary": wordpiece.pieces,
        "tensors": {name: tensor_entry(weight, exact) for name, weight in weights.items()},
    }
    registry = "(self.SPANBERT_WEIGHTS = self.SPANBERT_WEIGHTS || {})"
    # ASCII throughout, so that no page has to say in which encoding the script is
    return f"{registry}[{json.dumps(name)}] = {json.dumps(content, separators=(',', ':'))};\n"


def write_web(source: str | Path, output: str | Path, exact: bool = False, threshold: float | None = None) -> None:
    """Writes the script, whole or not at all; the model's name in the page is that of the folder or hub."""
    output = check_output(output)
    write_text(output, web_script(source, Path(source).name, exact, threshold))
