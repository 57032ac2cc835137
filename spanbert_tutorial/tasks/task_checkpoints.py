"""Fine-tuned models: how they are trained, used, and kept as a folder. Chapters:
`book/tasks/classification` and the others of this part.

A folder holds the encoder, the head of its task, facts about the task, and the vocabulary.
`transformers.BertModel` opens it, too, without the head.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import reading, require
from spanbert_tutorial.pretraining.checkpoints import (
    check_vocabulary,
    load_head,
    read_facts,
    read_vocabulary,
    write_folder,
)
from spanbert_tutorial.tasks.fine_tuning import FineTuning, check_start, fit, make_room

HEAD = "head."  # prefix of the names of a head's weights


class Predictor:
    """A fine-tuned model, an encoder and a head, in use. facts: those of its data. A task gives its
    name, its data, `new_model`, and `predict(examples)`."""

    task: ClassVar[str]  # on the command line
    data: ClassVar[Any]  # a kind of `Data`, made of (examples, wordpiece, settings)

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
    def fine_tune(
        cls,
        encoder: BertEncoder,
        wordpiece: WordPiece,
        examples: Sequence[Any],
        settings: FineTuning,
        snapshots: Snapshots | None = None,
        **how: Any,
    ) -> tuple[Self, History]:
        """Trains the encoder (in place) and a new head. Returns both in use, on the device where
        the encoder was, and the history of the losses. settings: batches hold about `batch_size` ×
        `max_length` tokens. how: what else the task's data takes."""
        check_start(encoder, wordpiece, settings)
        data = cls.data(examples, wordpiece, settings, **how)

        def make_model() -> nn.Module:
            make_room(encoder, len(data.wordpiece))  # here, so that the run's seed draws new rows
            return cls.new_model(encoder, data.facts)

        model, history = fit(make_model, data, settings, snapshots)
        return cls(model, data.wordpiece, settings.max_length, **data.facts), history

    @classmethod
    def from_pretrained(cls, source: str | Path, tokenizer: str | Path | None = None) -> Self:
        """Opens a folder that `save` wrote, in float32 and on the graphics card, if there is one, and
        runs no code of it. tokenizer: where the vocabulary is, if not there. Raises InputError for
        a model of another task, and for weights or facts that do not fit."""
        facts = read_facts(source)
        own = facts.pop("task", None)
        wrong = f"{source} {f'was fine-tuned for {own}' if own else 'has no head of this task'}"
        mend = f"give a model of `python -m spanbert_tutorial finetune {cls.task}`"
        require(own == cls.task, f"{wrong}: {mend}.")
        encoder, head = read_parts(source, HEAD)
        own = source if tokenizer is None else tokenizer
        check_vocabulary(wordpiece := read_vocabulary(own), encoder, own)
        with reading(f"config.json of {source}", "copy the checkpoint again"):
            model = cls.new_model(encoder, facts)
            found = cls(model, wordpiece, facts.pop("length"), **facts)
        load_head(found.model, head, source)
        found.model.to("cuda" if torch.cuda.is_available() else "cpu")
        return found

    def save(self, folder: str | Path, texts: Mapping[str, str]) -> None:
        """Writes a folder, whole or not at all, that `from_pretrained` opens, with half-precision
        weights. texts: further files by name, such as README.md. Raises InputError if it exists,
        NoRoom if it cannot be written."""
        encoder, facts = self.model.encoder, {"task": self.task, **self.facts}
        weights = self.model.state_dict().items()
        head = {f"{HEAD}{name}": w for name, w in weights if not name.startswith("encoder.")}
        write_folder(folder, encoder, "BertModel", facts, head, self.wordpiece, texts)

    @torch.no_grad()
    def logits(self, inputs: Sequence[Any], batch_size: int = 64) -> list[Tensor]:
        """The model's scores of each input, in order, on the CPU."""
        device = self.model.classifier.weight.device
        found: list[Tensor] = []
        for start in range(0, len(inputs), batch_size):
            batch = self.data.collate(inputs[start : start + batch_size], self.wordpiece.pad_id)
            batch = {name: value.to(device) for name, value in batch.items()}
            found += self.model.scores(batch).cpu()
        return found


def read_parts(source: str | Path, prefix: str) -> tuple[BertEncoder, dict[str, Tensor]]:
    """A checkpoint's encoder, and the weights with a prefix, without it."""
    encoder, others, *_ = BertEncoder.read(source)
    return encoder, {
        name.removeprefix(prefix): weight.float()
        for name, weight in others.items()
        if name.startswith(prefix)
    }
