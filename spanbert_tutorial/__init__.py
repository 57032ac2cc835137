"""SpanBERT, from the ground up: the code that the book's chapters build and import.

`import spanbert_tutorial as st` gives the names that readers use, each loaded when it is first asked
for, so that the import itself is quick. One chapter, one module; README.md, "How the house is built",
says which room may import which.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# public name → the module that defines it, or that it is
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
    "squad": "tasks.squad",
    "coreference_scores": "tasks.coreference_scores",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """A public name, imported now. Python asks only for names that are not there yet."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES[name]}")
    globals()[name] = found = getattr(module, name, module)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
