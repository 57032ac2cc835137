"""ELECTRA: a small generator replaces tokens, a discriminator finds them. Chapter:
`book/relatives/electra`.

Both are encoders of `bert` with a head; embeddings may be narrower than the layers. The same
weights give the same numbers as transformers' Electra models (tested). What a step of training
costs: `electra_flops`. Source: ELECTRA §2 and §3. Shapes: B batch, n sequence, H hidden, E width of
the embeddings, V vocabulary, t chosen tokens.
"""

import functools
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import (
    BertEncoder,
    EncoderConfig,
    Layer,
    MaskedLanguageModelHead,
    initialize,
)
from spanbert_tutorial.bert.inputs import Embeddings, masked_labels, masked_positions
from spanbert_tutorial.bert.weights import NAME_PAIRS, Layout, to_huggingface_names
from spanbert_tutorial.errors import InputError

# Layers, H, heads, E. ELECTRA §3.2 to §3.4 and appendix A; tiny and mini are this book's.
SIZES = {
    "tiny": (2, 128, 2, 128),
    "mini": (4, 256, 4, 128),
    "small": (12, 256, 4, 128),
    "base": (12, 768, 12, 768),
    "large": (24, 1024, 16, 1024),
}
SIZE_FIELDS = "num_hidden_layers", "hidden_size", "num_attention_heads", "embedding_size"

PAIRS = (
    *NAME_PAIRS,
    ("embeddings.projection", "embeddings_project"),
    ("replaced_token_head.dense", "discriminator_predictions.dense"),
    ("replaced_token_head.classifier", "discriminator_predictions.dense_prediction"),
    ("masked_language_model.dense", "generator_predictions.dense"),
    ("masked_language_model.layer_norm", "generator_predictions.LayerNorm"),
    ("masked_language_model.embedding_weight", "generator_lm_head.weight"),
    ("masked_language_model.bias", "generator_lm_head.bias"),
)
# First names of the heads' weights in transformers, and the class that loads them.
KINDS = {
    "discriminator_predictions": "ElectraDiscriminator",
    "generator_predictions": "ElectraGenerator",
    "generator_lm_head": "ElectraGenerator",
}
ELECTRA = Layout("electra", PAIRS, ("classifier", "qa_outputs", "embeddings.position_ids"))
WORDS = "embeddings.word_embeddings.weight"


@dataclass(frozen=True)
class ElectraConfig(EncoderConfig):
    """Sizes of a generator or a discriminator, named as in transformers. embedding_size: E."""

    layout: ClassVar[Layout] = ELECTRA

    vocab_size: int = 30_522  # BERT's uncased vocabulary, which the released models use
    embedding_size: int = 128

    @classmethod
    def preset(cls, name: str, **changes: float) -> Self:
        """One of the named sizes of SIZES (feed-forward width 4H), with `changes` to any field."""
        return super().preset(
            name, **dict(zip(SIZE_FIELDS, SIZES.get(name, ()), strict=False)) | changes
        )

    tiny = functools.partialmethod(preset, "tiny")
    mini = functools.partialmethod(preset, "mini")
    small = functools.partialmethod(preset, "small")
    base = functools.partialmethod(preset, "base")
    large = functools.partialmethod(preset, "large")

    def generator(self, divisor: int = 4) -> Self:
        """The config of a generator that fits this discriminator: H, heads and feed-forward width
        divided; layers and embeddings as they are. ELECTRA §3.2: a quarter to a half works best."""
        if divisor < 1 or self.hidden_size % divisor:
            raise InputError(
                f"hidden_size {self.hidden_size} cannot be divided by {divisor}: take another "
                f"divisor."
            )
        heads = max(1, self.num_attention_heads // divisor)
        return replace(
            self,
            hidden_size=self.hidden_size // divisor,
            num_attention_heads=heads,
            intermediate_size=max(1, self.intermediate_size // divisor),
        )


# --- the two encoders with their heads ----------------------------------------------


class ProjectedEmbeddings(Embeddings):
    """BERT's embeddings, E wide, and where E is not H one linear layer that makes them H wide."""

    def __init__(self, config: ElectraConfig) -> None:
        super().__init__(config, config.embedding_size)
        same = config.embedding_size == config.hidden_size
        self.projection = None if same else nn.Linear(config.embedding_size, config.hidden_size)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        vectors = super().forward(input_ids, token_type_ids)  # [B,n,E]
        return vectors if self.projection is None else self.projection(vectors)  # [B,n,H]


class ElectraEncoder(BertEncoder):
    """What generator and discriminator have in common: ids [B,n] -> hidden states [B,n,H], and a
    head beside."""

    config_class = ElectraConfig
    head: ClassVar[str]  # name of the head here

    def __init__(self, config: ElectraConfig, generator: torch.Generator | None = None) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.embeddings = ProjectedEmbeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        initialize(self, config.initializer_range, generator)
        head = self.new_head(config, self.embeddings.words.weight)
        initialize(head, config.initializer_range, generator)
        self.add_module(self.head, head)

    @staticmethod
    def new_head(config: ElectraConfig, embedding_weight: Tensor) -> nn.Module:
        """An untrained head; `embedding_weight`: [V,E] of the encoder, for heads that use it."""
        raise NotImplementedError

    @classmethod
    def _read(cls, model_or_path: nn.Module | str | Path) -> tuple[dict, dict[str, Tensor], str]:
        """As in BERT. A checkpoint without any head, such as `ElectraModel`, gets an untrained one
        and a warning; one with the other model's head raises InputError."""
        config, state, source = super()._read(model_or_path)
        words = state.get(f"electra.{WORDS}", state.get(WORDS))
        kinds = {KINDS[name.split(".")[0]] for name in state if name.split(".")[0] in KINDS}
        if kinds and cls.__name__ not in kinds:
            (there,) = kinds
            raise InputError(
                f"{source} holds the weights of an {there}: load it with {there}.from_huggingface."
            )
        if not kinds and words is not None and config.get("model_type") == "electra":
            warnings.warn(f"{source} has no {cls.head}: it starts untrained.", stacklevel=3)
            head = cls.new_head(cls.config_class.from_dict(config), nn.Parameter(words))
            fresh = {f"{cls.head}.{name}": weight for name, weight in head.state_dict().items()}
            state = state | to_huggingface_names(fresh, layout=ELECTRA)
        return config, state, source

    def to_huggingface(self, with_head: bool = False) -> nn.Module:
        """transformers' `ElectraModel` with the same numbers, in `.eval()`; `with_head`:
        `ElectraForPreTraining` for a discriminator, `ElectraForMaskedLM` for a generator."""
        model: Any = self._empty_huggingface().to(self.embeddings.words.weight)
        names = to_huggingface_names(self.state_dict(), layout=ELECTRA)
        heads = tuple(KINDS)
        model.load_state_dict(
            {name if name.startswith(heads) else f"electra.{name}": w for name, w in names.items()}
        )
        return model.eval() if with_head else model.electra.eval()


class ReplacedTokenHead(nn.Module):
    """States [...,H] -> one logit [...]: positive where the token looks replaced. Dense, GELU,
    dense. ELECTRA §2."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.classifier = nn.Linear(hidden_size, 1)
        initialize(self)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.classifier(F.gelu(self.dense(hidden))).squeeze(-1)


class ElectraDiscriminator(ElectraEncoder):
    """The encoder that ELECTRA keeps for tasks. `replaced_token_head(states)`: one logit for each
    token, [B,n]."""

    head = "replaced_token_head"
    replaced_token_head: ReplacedTokenHead

    @staticmethod
    def new_head(config: ElectraConfig, embedding_weight: Tensor) -> nn.Module:
        return ReplacedTokenHead(config.hidden_size)

    def _empty_huggingface(self) -> nn.Module:
        from transformers import ElectraConfig as Config  # here, because importing it takes seconds
        from transformers import ElectraForPreTraining

        return ElectraForPreTraining(Config(**asdict(self.config)))


class ElectraGenerator(ElectraEncoder):
    """A small masked language model. `masked_language_model(states)`: logits over the vocabulary,
    [...,V]."""

    head = "masked_language_model"
    masked_language_model: MaskedLanguageModelHead

    @staticmethod
    def new_head(config: ElectraConfig, embedding_weight: Tensor) -> nn.Module:
        return MaskedLanguageModelHead(config.hidden_size, embedding_weight, config.layer_norm_eps)

    @classmethod
    def _read(cls, model_or_path: nn.Module | str | Path) -> tuple[dict, dict[str, Tensor], str]:
        config, state, source = super()._read(model_or_path)
        words = state.get(f"electra.{WORDS}", state.get(WORDS))
        return (
            config,
            state if words is None else state | {"generator_lm_head.weight": words},
            source,
        )

    @classmethod
    def from_huggingface(cls, model_or_path: nn.Module | str | Path) -> Self:
        """As `BertEncoder.from_huggingface`; the head's decoder is the table of word embeddings
        again."""
        generator = super().from_huggingface(model_or_path)
        generator.share_embeddings(generator.embeddings)  # loading made two tables of one
        return generator

    def share_embeddings(self, embeddings: Embeddings) -> None:
        """From now on the tables, their LayerNorm and the head's decoder are those of `embeddings`
        (same E)."""
        for name in ("words", "positions", "segments", "layer_norm"):
            setattr(self.embeddings, name, getattr(embeddings, name))
        self.masked_language_model.embedding_weight = embeddings.words.weight

    def _empty_huggingface(self) -> nn.Module:
        from transformers import ElectraConfig as Config  # here, because importing it takes seconds
        from transformers import ElectraForMaskedLM

        return ElectraForMaskedLM(Config(**asdict(self.config)))


# --- training both together ---------------------------------------------------------


def sample(logits: Tensor, generator: torch.Generator) -> Tensor:
    """One token id for each row of logits [t,V], drawn from its softmax. ELECTRA §2.

    One uniform number a row picks the first id at which the running sum of the probabilities passes
    it. generator: of the CPU, so that draws do not depend on the device."""
    running = logits.detach().float().softmax(-1).cumsum(-1)  # [t,V]
    uniform = torch.rand(len(logits), 1, generator=generator).to(logits.device)
    return (
        torch.searchsorted(running, uniform, right=True).squeeze(-1).clamp(max=logits.shape[-1] - 1)
    )


def most_likely(logits: Tensor, generator: torch.Generator) -> Tensor:
    """The likeliest id of each row: what ELECTRA does NOT do. Takes the arguments of `sample`, for
    comparison."""
    return logits.detach().argmax(-1)


def replace_tokens(batch: dict[str, Tensor], samples: Tensor) -> tuple[Tensor, Tensor]:
    """ids [B,n] with `samples` [t] at the chosen places,
    and `replaced` bool [B,n]: where they differ from the originals.

    A sample that equals the original counts as original. batch: as from `PretrainingData`. ELECTRA
    §2."""
    positions = masked_positions(batch)
    input_ids = batch["input_ids"].clone()
    replaced = torch.zeros_like(input_ids, dtype=torch.bool)
    input_ids.view(-1)[positions] = samples
    replaced.view(-1)[positions] = samples != masked_labels(batch)
    return input_ids, replaced


class ElectraPretraining(nn.Module):
    """Generator and discriminator, trained together. Called with a batch of the objective `mlm` it
    returns its losses.

    All chosen tokens are shown to the generator as [MASK] (`mask_id`), whatever the batch shows.
    weight: λ of the discriminator's loss. pick: `sample`, or `most_likely` for comparison; its
    draws follow `seed`. tied: whether both have one set of embeddings. everywhere: the
    discriminator's loss over all tokens, or only over the chosen ones. ELECTRA §2, §3.1, §3.2,
    §3.5.
    """

    def __init__(
        self,
        config: ElectraConfig,
        mask_id: int,
        seed: int = 0,
        *,
        weight: float = 50.0,
        pick: Callable[[Tensor, torch.Generator], Tensor] = sample,
        tied: bool = True,
        everywhere: bool = True,
    ) -> None:
        super().__init__()
        self.discriminator = ElectraDiscriminator(config)
        self.generator = ElectraGenerator(config.generator())
        if tied:
            self.generator.share_embeddings(self.discriminator.embeddings)
        self.mask_id = mask_id
        self.weight = weight
        self.pick = pick
        self.everywhere = everywhere
        self.draws = torch.Generator().manual_seed(seed)

    def generate(self, batch: dict[str, Tensor]) -> Tensor:
        """The generator's logits [t,V] for the chosen tokens, which it sees as [MASK]."""
        positions = masked_positions(batch)
        masked = batch["input_ids"].clone()
        masked.view(-1)[positions] = self.mask_id
        hidden = self.generator(
            masked, token_type_ids=batch["token_type_ids"], attention_mask=batch["attention_mask"]
        )  # [B,n,H/4]
        return self.generator.masked_language_model(hidden.flatten(0, 1)[positions])

    def detect(self, batch: dict[str, Tensor], ids: Tensor) -> Tensor:
        """The discriminator's logits [B,n] for `ids`, the batch with some tokens replaced."""
        return self.discriminator.replaced_token_head(
            self.discriminator(
                ids, token_type_ids=batch["token_type_ids"], attention_mask=batch["attention_mask"]
            )
        )

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mlm + λ rtd, "mlm": over the chosen tokens, "rtd": over all real tokens},
        scalars in nats."""
        logits = self.generate(batch)
        ids, replaced = replace_tokens(
            batch, self.pick(logits, self.draws)
        )  # no gradient passes through a choice
        scored = batch["attention_mask"].bool()
        if not self.everywhere:
            scored = torch.zeros_like(scored)
            scored.view(-1)[masked_positions(batch)] = True
        mlm = F.cross_entropy(logits, masked_labels(batch))
        rtd = F.binary_cross_entropy_with_logits(
            self.detect(batch, ids)[scored].float(), replaced[scored].float()
        )
        return {"loss": mlm + self.weight * rtd, "mlm": mlm, "rtd": rtd}
