"""SpanBERT, from the ground up: the code that the book's chapters build and import.

`import spanbert_tutorial as st` gives the names that readers use, each loaded when it is first asked
for, so that the import itself is quick. One chapter, one module; README.md, "How the house is built",
says which room may import which.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# public name → the module that defines it
_HOMES = {
    "WordPiece": "bert.wordpiece",
    "EncoderConfig": "bert.config",
    "BertEncoder": "bert.encoder",
    "TokenMasking": "bert.masking",
    "WholeWordMasking": "bert.masking",
    "corrupt": "bert.masking",
    "SpanMasking": "spanbert.span_masking",
    "clipped_geometric": "spanbert.span_masking",
    "spans_of": "spanbert.span_masking",
    "SpanBoundaryObjective": "spanbert.boundary",
    "BoundaryTargets": "spanbert.boundary",
    "boundary_targets": "spanbert.boundary",
    "boundary_loss": "spanbert.boundary",
    "Objective": "pretraining.objectives",
    "PretrainingModel": "pretraining.model",
    "PretrainingData": "pretraining.batches",
    "Run": "pretraining.presets",
    "pretrain": "pretraining.runs",
    "load_checkpoint": "pretraining.checkpoints",
    "save_checkpoint": "pretraining.checkpoints",
    "QuestionAnswerer": "tasks.question_answering",
    "AlbertEncoder": "relatives.albert",
    "RobertaEncoder": "relatives.roberta",
    "ElectraDiscriminator": "relatives.electra",
    "Splinter": "relatives.splinter",
}
# public modules → where they are
_MODULES = {"squad": "tasks.squad", "coreference_scores": "tasks.coreference_scores"}

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    """A public name, imported now. Python asks only for names that are not there yet."""
    if name in _HOMES:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in _MODULES:
        found = import_module(f"{__name__}.{_MODULES[name]}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
