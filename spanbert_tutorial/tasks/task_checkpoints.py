"""A fine-tuned model as a folder: the encoder, the head of its task, what the task needs to know,
the vocabulary. Chapters: `book/tasks/sentence_tasks` and the others of this part.

The encoder lies there under the names of `transformers.BertModel`, which opens the folder, too,
without the head.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.weights import (
    checkpoint_folder,
    read_config,
    read_weights,
    to_huggingface_names,
)
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary, write_folder
from spanbert_tutorial.tasks.fine_tuning import check_vocabulary

HEAD = "head."  # what the names of a head's weights begin with


class Loaded(NamedTuple):
    """What a folder holds. head: the weights of the head, without `HEAD`; facts: what `save` was
    given."""

    encoder: BertEncoder
    head: dict[str, Tensor]
    facts: dict
    wordpiece: WordPiece


def save(
    folder: str | Path,
    task: str,
    model: nn.Module,
    facts: Mapping,
    wordpiece: WordPiece,
    texts: Mapping[str, str],
) -> None:
    """Writes a folder, whole or not at all, that `load` opens. task: its name on the command line.
    model: an `encoder` and, beside it, the head. facts: ready for JSON, such as labels and lengths.
    texts: further files by name, such as README.md. Weights are stored in half precision.

    Raises InputError if the folder exists, NoRoom if it cannot be written.
    """
    state = {f"{HEAD}{name}": weight for name, weight in head_of(model).items()}
    write_half(folder, model.encoder, state, "BertModel", {"task": task, **facts}, wordpiece, texts)


def head_of(model: nn.Module) -> dict[str, Tensor]:
    """The weights that stand beside the encoder of a model."""
    return {
        name: weight
        for name, weight in model.state_dict().items()
        if not name.startswith("encoder.")
    }


def write_half(
    folder: str | Path,
    encoder: BertEncoder,
    head: Mapping[str, Tensor],
    architecture: str,
    facts: Mapping,
    wordpiece: WordPiece,
    texts: Mapping[str, str],
) -> None:
    """The encoder under `bert.`, and the weights of a head as they are named. architecture: the
    class of transformers that opens the folder."""
    state = to_huggingface_names(encoder.state_dict(), prefix="bert.") | dict(head)
    state = {
        name: weight.detach().cpu().to(torch.float16).contiguous() for name, weight in state.items()
    }
    write_folder(
        folder,
        encoder.config,
        architecture,
        {"spanbert_tutorial": dict(facts)},
        state,
        wordpiece,
        texts,
    )


def load(source: str | Path, task: str, tokenizer: str | Path | None = None) -> Loaded:
    """Opens a folder that `save` wrote, in float32. tokenizer: where the vocabulary lies, if not
    there. No code of the checkpoint is run.

    Raises InputError for a folder without the head of this task, and for weights that do not fit.
    """
    folder = checkpoint_folder(source)
    facts = read_config(folder).get("spanbert_tutorial")
    found = facts.get("task") if isinstance(facts, dict) else None
    if found != task:
        has = (
            f"was fine-tuned for {found}" if isinstance(found, str) else "has no head of this task"
        )
        raise InputError(
            f"{source} {has}: give a model of `python -m spanbert_tutorial finetune {task}`."
        )
    weights = read_weights(folder)
    head = {
        name.removeprefix(HEAD): w.float() for name, w in weights.items() if name.startswith(HEAD)
    }
    with warnings.catch_warnings(
        action="ignore", category=UserWarning
    ):  # about the head, which is taken here
        encoder = BertEncoder.from_huggingface(folder)
    wordpiece = read_vocabulary(source if tokenizer is None else tokenizer)
    check_vocabulary(wordpiece, encoder)
    return Loaded(
        encoder, head, {name: value for name, value in facts.items() if name != "task"}, wordpiece
    )


def fill(model: nn.Module, head: Mapping[str, Tensor], source: str | Path) -> None:
    """Loads the weights of a head into a model that stands on the encoder of the same folder.
    Raises InputError naming those that are missing, surplus or of another shape. source: for the
    message."""
    wanted = head_of(model)
    wrong = [f"{name} is missing" for name in wanted if name not in head]
    wrong += [f"{name} is surplus" for name in head if name not in wanted]
    wrong += [
        f"{name} has the shape {tuple(head[name].shape)} instead of {tuple(weight.shape)}"
        for name, weight in wanted.items()
        if name in head and head[name].shape != weight.shape
    ]
    if wrong:
        raise InputError(
            f"the head of {source} does not fit ({', '.join(wrong[:3])}): copy the checkpoint "
            f"again."
        )
    model.load_state_dict(dict(head), strict=False)
