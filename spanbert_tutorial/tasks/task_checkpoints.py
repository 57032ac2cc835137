"""A fine-tuned model as a folder: the encoder, the head of its task, facts about the task, the
vocabulary. Chapters: `book/tasks/classification` and the others of this part.

The encoder's weights have the names of `transformers.BertModel`, which opens the folder, too,
without the head.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

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
from spanbert_tutorial.errors import reading, require
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary, write_folder
from spanbert_tutorial.tasks.fine_tuning import check_vocabulary, stacked

HEAD = "head."  # prefix of the names of a head's weights


class Predictor:
    """A fine-tuned model, an encoder and a head, in use. facts: what else its folder has to say,
    ready for JSON, such as labels. A task gives its name, `new_model`, and `predict(examples)`."""

    task: ClassVar[str]  # on the command line
    collate: Callable[[Sequence[Any], int], dict[str, Tensor]] = staticmethod(stacked)

    def __init__(
        self, model: nn.Module, wordpiece: WordPiece, max_length: int, **facts: object
    ) -> None:
        self.model: Any = model.eval()
        self.wordpiece = wordpiece
        self.max_length = max_length
        self.facts: dict[str, Any] = {**facts, "length": max_length}

    @staticmethod
    def new_model(encoder: BertEncoder, facts: Mapping[str, Any]) -> nn.Module:
        """The encoder with a new head for these facts."""
        raise NotImplementedError

    @classmethod
    def from_pretrained(cls, source: str | Path, tokenizer: str | Path | None = None) -> Self:
        """Opens a folder that `save` wrote, in float32, and runs no code of it. tokenizer: where the
        vocabulary is, if not there. Raises InputError for a model of another task, and for weights or
        facts that do not fit."""
        facts = read_facts(source)
        own = facts.pop("task", None)
        wrong = f"{source} {f'was fine-tuned for {own}' if own else 'has no head of this task'}"
        mend = f"give a model of `python -m spanbert_tutorial finetune {cls.task}`"
        require(own == cls.task, f"{wrong}: {mend}.")
        encoder, head = read_parts(source, HEAD)
        wordpiece = read_vocabulary(source if tokenizer is None else tokenizer)
        check_vocabulary(wordpiece, encoder)
        with reading(f"config.json of {source}", "copy the checkpoint again"):
            model = cls.new_model(encoder, facts)
            found = cls(model, wordpiece, facts.pop("length"), **facts)
        load_head(found.model, head, source)
        return found

    def head(self) -> dict[str, Tensor]:
        """The weights of the model that are not the encoder's."""
        state = self.model.state_dict().items()
        return {name: weight for name, weight in state if not name.startswith("encoder.")}

    def save(self, folder: str | Path, texts: Mapping[str, str]) -> None:
        """Writes a folder, whole or not at all, that `from_pretrained` opens, with half-precision
        weights. texts: further files by name, such as README.md. Raises InputError if it exists,
        NoRoom if it cannot be written."""
        state = {f"{HEAD}{name}": weight for name, weight in self.head().items()}
        facts = {"task": self.task, **self.facts}
        write_half(folder, self.model.encoder, state, "BertModel", facts, self.wordpiece, texts)

    @torch.no_grad()
    def logits(self, inputs: Sequence[Any], batch_size: int = 64) -> list[Tensor]:
        """The model's scores of each input, in order, on the CPU."""
        device = self.model.classifier.weight.device
        found: list[Tensor] = []
        for start in range(0, len(inputs), batch_size):
            batch = self.collate(inputs[start : start + batch_size], self.wordpiece.pad_id)
            batch = {name: value.to(device) for name, value in batch.items()}
            found += self.model.scores(batch).cpu()
        return found


def read_facts(source: str | Path) -> dict[str, Any]:
    """What the config of a checkpoint tells of its task."""
    facts = read_config(checkpoint_folder(source)).get("spanbert_tutorial")
    return facts if isinstance(facts, dict) else {}


def read_parts(source: str | Path, prefix: str) -> tuple[BertEncoder, dict[str, Tensor]]:
    """A checkpoint's encoder, and the weights with a prefix, without it."""
    folder = checkpoint_folder(source)
    weights = read_weights(folder).items()
    head = {name.removeprefix(prefix): w.float() for name, w in weights if name.startswith(prefix)}
    # the encoder warns of the head, which is read here
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return BertEncoder.from_huggingface(folder), head


def load_head(model: nn.Module, head: Mapping[str, Tensor], source: str | Path) -> None:
    """Gives a model all its weights but the encoder's. Raises InputError naming weights that are
    missing, surplus or of another shape. source: for the message."""
    try:
        missing, surplus = model.load_state_dict(head, strict=False)
        lacks = [name for name in missing if not name.startswith("encoder.")]
        told = [f"{name} is missing" for name in lacks] + [f"{name} is surplus" for name in surplus]
        wrong = ", ".join(told)
    except RuntimeError as error:  # a shape
        wrong = " ".join(str(error).split())
    require(not wrong, f"the head of {source} does not fit ({wrong}): copy the checkpoint again.")


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
    state = {name: weight.detach().cpu().half().contiguous() for name, weight in state.items()}
    told = {"spanbert_tutorial": dict(facts)}
    write_folder(folder, encoder.config, architecture, told, state, wordpiece, texts)
