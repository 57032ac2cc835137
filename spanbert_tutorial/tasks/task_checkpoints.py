"""A fine-tuned model as a folder: the encoder, the head of its task, facts about the task, the
vocabulary. Chapters: `book/tasks/classification` and the others of this part.

The encoder's weights have the names of `transformers.BertModel`, which opens the folder, too,
without the head.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

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

HEAD = "head."  # prefix of the names of a head's weights


class FineTunedModel(Protocol):
    """A model with an encoder and, beside it, a head."""

    encoder: BertEncoder

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> object: ...


class Loaded(NamedTuple):
    """The contents of a folder. head: the weights of the head, by their names without `HEAD`;
    facts: those that `save` was given."""

    encoder: BertEncoder
    head: dict[str, Tensor]
    facts: dict[str, Any]
    wordpiece: WordPiece


def save(
    folder: str | Path,
    task: str,
    model: FineTunedModel,
    facts: Mapping,
    wordpiece: WordPiece,
    texts: Mapping[str, str],
) -> None:
    """Writes a folder, whole or not at all, that `load` opens. task: its name on the command line.
    facts: ready for JSON, such as labels and lengths. texts: further files by name, such as
    README.md. Weights are stored in half precision.

    Raises InputError if the folder exists, NoRoom if it cannot be written.
    """
    state = {f"{HEAD}{name}": weight for name, weight in head_of(model).items()}
    write_half(folder, model.encoder, state, "BertModel", {"task": task, **facts}, wordpiece, texts)


def head_of(model: FineTunedModel) -> dict[str, Tensor]:
    """The weights of a model that are not the encoder's."""
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
    """Writes the encoder's weights with the prefix `bert.`, and those of the head under their own
    names. architecture: the class of transformers that opens the folder."""
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
    """Opens a folder that `save` wrote, in float32. tokenizer: where the vocabulary is, if not
    there. No code of the checkpoint is run.

    Raises InputError for a folder without a head for this task, and for weights that do not fit.
    """
    folder = checkpoint_folder(source)
    facts = task_facts(folder, source, task)
    head = {
        name.removeprefix(HEAD): weight.float()
        for name, weight in read_weights(folder).items()
        if name.startswith(HEAD)
    }
    # the encoder warns of the head, which is read here
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        encoder = BertEncoder.from_huggingface(folder)
    wordpiece = read_vocabulary(source if tokenizer is None else tokenizer)
    check_vocabulary(wordpiece, encoder)
    return Loaded(encoder, head, facts, wordpiece)


def task_facts(folder: Path, source: str | Path, task: str) -> dict[str, Any]:
    """The facts in config.json, without the name of the task. Raises InputError for a model of
    another task. source: for the message."""
    facts = read_config(folder).get("spanbert_tutorial")
    if not isinstance(facts, dict):
        facts = {}
    own_task = facts.get("task")
    if own_task != task:
        state = "has no head of this task"
        if isinstance(own_task, str):
            state = f"was fine-tuned for {own_task}"
        raise InputError(
            f"{source} {state}: give a model of `python -m spanbert_tutorial finetune {task}`."
        )
    return {name: value for name, value in facts.items() if name != "task"}


def fill(model: FineTunedModel, head: Mapping[str, Tensor], source: str | Path) -> None:
    """Loads the weights of a head into a model with the encoder of the same folder. Raises
    InputError naming those that are missing, surplus or of another shape. source: for the
    message."""
    expected = head_of(model)
    problems = [f"{name} is missing" for name in expected if name not in head]
    problems += [f"{name} is surplus" for name in head if name not in expected]
    problems += [
        f"{name} has the shape {tuple(head[name].shape)} instead of {tuple(weight.shape)}"
        for name, weight in expected.items()
        if name in head and head[name].shape != weight.shape
    ]
    if problems:
        raise InputError(
            f"the head of {source} does not fit ({', '.join(problems[:3])}): copy the checkpoint "
            "again."
        )
    model.load_state_dict(dict(head), strict=False)
