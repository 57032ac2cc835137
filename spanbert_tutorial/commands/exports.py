"""A trained model for other programs: a script with 8-bit weights for a web page, or an ONNX file.
Chapter: `book/workshop/try_it`.

`book_assets/model.js` computes with the script; ONNX Runtime, and what understands its format, with
the file. Shapes: B batch, n sequence, H hidden, V vocabulary, t targets.
"""

import base64
import json
import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.weights import checkpoint_folder, read_weights
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import whole_file, write_text
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import TIED, check_output, load_checkpoint
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.spanbert.boundary import BoundaryTargets
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer, QuestionAnsweringModel

HEADS = (
    "encoder.",
    "masked_language_model.",
    "boundary.",
    "boundaries.",
)  # what the page computes with
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "layer_norm_eps",
)


def open_model(
    source: str | Path,
) -> tuple[PretrainingModel | QuestionAnsweringModel, WordPiece, int]:
    """A pre-trained model of this project or one that answers questions, in float32 on the CPU,
    with its vocabulary and the positions that it reads at once. Raises InputError for any other
    checkpoint."""
    folder = checkpoint_folder(source)
    if "qa_outputs.weight" in read_weights(folder):
        answerer = QuestionAnswerer.from_pretrained(folder)
        return answerer.model.cpu(), answerer.wordpiece, answerer.max_length
    model, wordpiece = load_checkpoint(folder)
    return model, wordpiece, model.encoder.config.max_position_embeddings


# --- for a web page -----------------------------------------------------------------


def to_bytes(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix as whole numbers from −127 to 127, int8 [rows,columns], and a scale for each row,
    float32 [rows]: a number is the whole one times its row's scale, off by half a scale at most."""
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


def web_script(
    source: str | Path, name: str, exact: bool = False, threshold: float | None = None
) -> str:
    """The script that registers a model under `name` for `SpanBERT.open`. exact: float32 in place
    of 8 bits. threshold: the null odds above which a model has no answer, where one was chosen.

    Raises InputError for a checkpoint that the page cannot compute with.
    """
    model, wordpiece, length = open_model(source)
    if wordpiece.lowercase or wordpiece.strip_accents:
        raise InputError(
            f"{source} has a vocabulary in lower case or without accents, and the page's "
            f"WordPiece keeps "
            "both: give a cased model."
        )
    answers = isinstance(model, QuestionAnsweringModel)
    if threshold is not None and not answers:
        raise InputError(f"{source} answers no questions: leave out --threshold.")
    config = {size: getattr(model.encoder.config, size) for size in SIZES} | {"length": length}
    weights = {
        name: weight.float()
        for name, weight in model.state_dict().items()
        if name.startswith(HEADS) and not name.endswith(TIED)
    }
    content = {
        "kind": "question_answering" if answers else "pretraining",
        "config": config,
        **({} if threshold is None else {"threshold": threshold}),
        "vocabulary": wordpiece.vocabulary,
        "tensors": {name: tensor_entry(weight, exact) for name, weight in weights.items()},
    }
    registry = "(self.SPANBERT_WEIGHTS = self.SPANBERT_WEIGHTS || {})"
    # ASCII throughout, so that no page has to say in which encoding the script is
    return f"{registry}[{json.dumps(name)}] = {json.dumps(content, separators=(',', ':'))};\n"


def write_web(
    source: str | Path, output: str | Path, exact: bool = False, threshold: float | None = None
) -> str:
    """Writes `web_script`, whole or not at all. Returns the model's name in the page: that of the
    folder or the hub."""
    output = check_output(output)
    name = Path(source).absolute().name
    write_text(output, web_script(source, name, exact, threshold))
    return name


# --- for ONNX Runtime ---------------------------------------------------------------


class FillingGraph(nn.Module):
    """A pre-trained model as one function of tensors: states [B,n,H], logits [B,n,V] of the masked
    language model head and, where there is a boundary head, its logits [t,V]. The last three
    tensors are a `BoundaryTargets`."""

    def __init__(self, model: PretrainingModel):
        super().__init__()
        self.model = model

    def forward(
        self, ids: Tensor, segments: Tensor, attention_mask: Tensor, *rows: Tensor
    ) -> tuple[Tensor, ...]:
        hidden = self.model.encoder(ids, segments, attention_mask)
        logits = self.model.masked_language_model(hidden)
        return (
            hidden,
            logits,
            *([self.model.boundary(hidden, BoundaryTargets(*rows))] if rows else []),
        )


class AnsweringGraph(nn.Module):
    """A model that answers questions as one function of tensors: start and end scores [B,n], minus
    infinity at padding."""

    def __init__(self, model: QuestionAnsweringModel):
        super().__init__()
        self.model = model

    def forward(
        self, ids: Tensor, segments: Tensor, attention_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        return self.model.scores(
            {"ids": ids, "segments": segments, "attention_mask": attention_mask.bool()}
        )


def write_onnx(source: str | Path, output: str | Path) -> list[str]:
    """Writes a model as an ONNX file, whole or not at all. Returns lines that name its inputs and
    outputs.

    Raises InputError for a checkpoint of another kind, and where the packages that write the format
    are missing.
    """
    output = check_output(output)
    check_packages()
    model, *_ = open_model(source)
    # Any values do. Each input is a tensor of its own: torch takes the same tensor twice for one
    # input.
    inputs = {
        name: (torch.ones(2, 7, dtype=torch.long), "B n")
        for name in ("ids", "segments", "attention_mask")
    }
    outputs = {"start_scores": "B n", "end_scores": "B n"}
    graph: nn.Module = (
        AnsweringGraph(model) if isinstance(model, QuestionAnsweringModel) else FillingGraph(model)
    )
    if isinstance(graph, FillingGraph):
        outputs = {"hidden": "B n H", "logits": "B n V"}
        if hasattr(model, "boundary"):
            rows = [torch.zeros(3, dtype=torch.long), torch.zeros(3, 2, dtype=torch.long)]
            rows.append(torch.zeros(3, model.boundary.positions.num_embeddings, dtype=torch.long))
            names = ("boundary_batch", "boundary_pairs", "boundary_targets")
            inputs |= {
                name: (row, shape)
                for name, row, shape in zip(names, rows, ("k", "k 2", "k 15"), strict=True)
            }
            outputs["boundary_logits"] = "t V"
    program = exported(graph.eval(), inputs, outputs)
    with whole_file(output) as part:
        program.save(part, external_data=False)
    return [
        f"inputs (int64): {described({name: shape for name, (_, shape) in inputs.items()})}",
        f"outputs (float32): {described(outputs)}",
    ]


def check_packages() -> None:
    """Raises InputError unless the packages that torch writes ONNX files with are there."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"the package {error.name} is missing: pip install onnx onnxscript."
        ) from None


def described(tensors: dict[str, str]) -> str:
    """Names with their shapes."""
    return ", ".join(f"{name} [{','.join(shape.split())}]" for name, shape in tensors.items())


def exported(graph: nn.Module, inputs: dict[str, tuple[Tensor, str]], outputs: dict[str, str]):
    """torch's `ONNXProgram` of a module. Sides named by a letter may have any length."""
    sides = [
        {i: side for i, side in enumerate(shape.split()) if side.isalpha()}
        for _, shape in inputs.values()
    ]
    shapes = (*sides[:3], tuple(sides[3:])) if len(sides) > 3 else tuple(sides)
    logging.getLogger("torch.onnx").setLevel(
        logging.ERROR
    )  # else it names other packages that are not installed
    with warnings.catch_warnings(action="ignore"):
        return torch.onnx.export(
            graph,
            tuple(tensor for tensor, _ in inputs.values()),
            dynamo=True,
            verbose=False,
            input_names=[*inputs],
            output_names=[*outputs],
            dynamic_shapes=shapes,
        )
