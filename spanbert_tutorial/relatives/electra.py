"""ELECTRA: a small generator replaces tokens, a discriminator detects them. Chapter:
`book/relatives/electra`.

The same weights give the same numbers as transformers' Electra models (tested). Source: ELECTRA §2
and §3. Shapes: B batch, n sequence, H hidden, E embeddings, V vocabulary, t masked tokens.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import (
    BertEncoder,
    EncoderConfig,
    MaskedLanguageModelHead,
    initialize,
)
from spanbert_tutorial.bert.inputs import (
    Embeddings,
    masked_labels,
    masked_positions,
)
from spanbert_tutorial.bert.weights import (
    NAME_PAIRS,
    Layout,
    to_huggingface_names,
)
from spanbert_tutorial.errors import require
from spanbert_tutorial.relatives.albert import FactorizedEmbeddings

# Layers, H, heads, E. ELECTRA §3.2 to §3.4 and appendix A; tiny and mini are this book's.
SIZES = {
    "tiny": (2, 128, 2, 128),
    "mini": (4, 256, 4, 128),
    "small": (12, 256, 4, 128),
    "base": (12, 768, 12, 768),
    "large": (24, 1024, 16, 1024),
}

RTD, FOUND = "replaced_token_head", "discriminator_predictions"
MLM, MADE = "masked_language_model", "generator_predictions"
PAIRS = (
    *NAME_PAIRS,
    ("embeddings.project", "embeddings_project"),
    (f"{RTD}.dense", f"{FOUND}.dense"),
    (f"{RTD}.classifier", f"{FOUND}.dense_prediction"),
    (f"{MLM}.dense", f"{MADE}.dense"),
    (f"{MLM}.layer_norm", f"{MADE}.LayerNorm"),
    (f"{MLM}.embedding_weight", "generator_lm_head.weight"),
    (f"{MLM}.bias", "generator_lm_head.bias"),
)
ELECTRA = Layout("electra", PAIRS)
Batch = dict[str, Tensor]  # as from `PretrainingData`


@dataclass(frozen=True)
class ElectraConfig(EncoderConfig):
    """Sizes of a generator or a discriminator, named as in transformers. embedding_size: E.
    The defaults are no released size; `preset` gives these."""

    layout: ClassVar[Layout] = ELECTRA
    presets: ClassVar[Mapping[str, tuple[int, ...]]] = SIZES

    vocab_size: int = 30_522  # BERT's uncased vocabulary, which the released models use
    embedding_size: int = 128

    def generator(self) -> Self:
        """The config of a generator that fits this discriminator: a quarter as wide, with as many
        layers and the same embeddings. ELECTRA §3.2: a quarter to a half works best."""
        H = self.hidden_size
        told = f"hidden_size {H} cannot be divided by 4: give another."
        require(H % 4 == 0, told)
        return replace(
            self,
            hidden_size=H // 4,
            num_attention_heads=max(1, self.num_attention_heads // 4),
            intermediate_size=max(1, self.intermediate_size // 4),
        )


# --- the two encoders with their heads ----------------------------------------------


def embeddings_of(config: Any) -> Embeddings:
    """Narrow ones where E is not H."""
    same = config.embedding_size == config.hidden_size
    return Embeddings(config) if same else FactorizedEmbeddings(config)


class ElectraEncoder(BertEncoder):
    """What generator and discriminator share: input_ids [B,n] -> hidden states [B,n,H]."""

    config_class = ElectraConfig
    embeddings_class = staticmethod(embeddings_of)
    head: ClassVar[str]  # its name here
    with_head: ClassVar[str]  # the class in transformers

    def to_huggingface(self, with_head: bool = False) -> nn.Module:
        """transformers' `ElectraModel` with the same numbers, in `.eval()`; with_head:
        `ElectraForPreTraining` for a discriminator, `ElectraForMaskedLM` for a generator."""
        import transformers  # here, because it takes seconds

        config = transformers.ElectraConfig(**asdict(self.config))
        model = getattr(transformers, self.with_head)(config)
        model = model.to(self.embeddings.word_embeddings.weight)
        state = to_huggingface_names(self.state_dict(), layout=ELECTRA)
        for part in (model.electra, model):  # each takes its own
            part.load_state_dict(state, strict=False)
        return model.eval() if with_head else model.electra.eval()


class ReplacedTokenHead(nn.Module):
    """Hidden states [...,H] -> one logit [...]: was it replaced?

    Dense, GELU, dense. ELECTRA §2."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.classifier = nn.Linear(hidden_size, 1)
        initialize(self)

    def forward(self, hidden_states: Tensor) -> Tensor:
        y = F.gelu(self.dense(hidden_states))
        return self.classifier(y).squeeze(-1)


class ElectraDiscriminator(ElectraEncoder):
    """The encoder that ELECTRA keeps for tasks. `replaced_token_head(hidden_states)`: one logit
    for each token, [B,n]."""

    head, with_head = RTD, "ElectraForPreTraining"

    def __init__(
        self,
        config: ElectraConfig,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(config, generator)
        head = ReplacedTokenHead(config.hidden_size)
        initialize(head, config.initializer_range, generator)
        self.replaced_token_head = head


class ElectraGenerator(ElectraEncoder):
    """A small masked language model. `masked_language_model(hidden_states)`: logits [...,V]."""

    head, with_head = MLM, "ElectraForMaskedLM"

    def __init__(
        self,
        config: ElectraConfig,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(config, generator)
        H, eps = config.hidden_size, config.layer_norm_eps
        words = self.embeddings.word_embeddings.weight
        head = MaskedLanguageModelHead(H, words, eps)
        initialize(head, config.initializer_range, generator)
        self.masked_language_model = head

    def load_state_dict(
        self,
        state_dict: Mapping[str, Any],
        strict: bool = True,
        assign: bool = False,
    ) -> Any:
        """Tied: a file has the table only once, and loading may make two tables of one."""
        table = state_dict.get("embeddings.word_embeddings.weight")
        if table is not None:
            tied = {f"{MLM}.embedding_weight": table}
            state_dict = {**state_dict, **tied}
        found = super().load_state_dict(state_dict, strict, assign)
        self.share_embeddings(self.embeddings)
        return found

    def share_embeddings(self, embeddings: Embeddings) -> None:
        """From now on the tables, their LayerNorm and the head's decoder are those of `embeddings`
        (same E)."""
        for name, part in embeddings.named_children():
            if name != "project":  # from E to each one's own H
                setattr(self.embeddings, name, part)
        words = embeddings.word_embeddings.weight
        self.masked_language_model.embedding_weight = words


# --- training both together ---------------------------------------------------------


def sample(logits: Tensor, generator: torch.Generator) -> Tensor:
    """One token id [t] drawn from the softmax of each row [t,V].

    generator: of the CPU, so that draws do not depend on the device. ELECTRA §2."""
    probs = logits.detach().float().softmax(-1)
    u = torch.rand(len(logits), 1, generator=generator).to(probs)
    passed = probs.cumsum(-1) <= u  # the sums that u has passed
    return passed.sum(-1).clamp(max=logits.shape[-1] - 1)


def top_prediction(
    logits: Tensor, generator: torch.Generator
) -> Tensor:
    """The most probable id of each row: what ELECTRA does not do. Takes the arguments of `sample`,
    for comparison."""
    return logits.detach().argmax(-1)


def replace_tokens(
    batch: Batch, samples: Tensor
) -> tuple[Tensor, Tensor]:
    """input_ids with the samples [t], and what differs, bool [B,n].

    A sample that equals the original counts as original. batch: as from `PretrainingData`.
    ELECTRA §2."""
    masked = masked_positions(batch)
    input_ids = batch["input_ids"].clone()
    input_ids.view(-1)[masked] = samples
    replaced = torch.zeros_like(input_ids, dtype=torch.bool)
    replaced.view(-1)[masked] = samples != masked_labels(batch)
    return input_ids, replaced


class ElectraPretraining(nn.Module):
    """Generator and discriminator: batch -> losses, in nats.

    The generator sees all masked tokens as [MASK] (mask_id), whatever the batch shows. seed: of
    the draws. weight: λ of the discriminator's loss. pick: `sample`, or `top_prediction` for
    comparison. ELECTRA §2, §3.1, §3.2."""

    def __init__(
        self,
        config: ElectraConfig,
        mask_id: int,
        seed: int = 0,
        weight: float = 50.0,
        pick: Callable[[Tensor, torch.Generator], Tensor] = sample,
    ) -> None:
        super().__init__()
        self.discriminator = ElectraDiscriminator(config)
        self.generator = ElectraGenerator(config.generator())
        self.generator.share_embeddings(self.discriminator.embeddings)
        self.mask_id, self.weight, self.pick = mask_id, weight, pick
        self.draws = torch.Generator().manual_seed(seed)

    def generate(self, batch: Batch) -> Tensor:
        """Logits [t,V] of the masked tokens."""
        masked = masked_positions(batch)
        input_ids = batch["input_ids"].clone()
        input_ids.view(-1)[masked] = self.mask_id
        states = self.generator.of(batch | {"input_ids": input_ids})
        head = self.generator.masked_language_model
        return head(states.flatten(0, 1)[masked])

    def detect(self, batch: Batch, input_ids: Tensor) -> Tensor:
        """Logits [B,n], positive where a token looks replaced."""
        states = self.discriminator.of(batch | {"input_ids": input_ids})
        return self.discriminator.replaced_token_head(states)

    def forward(self, batch: Batch) -> Batch:
        logits = self.generate(batch)
        samples = self.pick(logits, self.draws)  # no gradient
        input_ids, replaced = replace_tokens(batch, samples)
        scores = self.detect(batch, input_ids)
        mlm = F.cross_entropy(logits, masked_labels(batch))
        rtd = every_token_loss(scores, replaced, batch)
        return {"loss": mlm + self.weight * rtd, "mlm": mlm, "rtd": rtd}


def every_token_loss(
    scores: Tensor, replaced: Tensor, batch: Batch
) -> Tensor:
    """Binary cross-entropy, the mean over all tokens but padding."""
    tokens = batch["attention_mask"].bool()
    return F.binary_cross_entropy_with_logits(
        scores[tokens].float(), replaced[tokens].float()
    )


# --- what a step of training costs --------------------------------------------------

# Multiplications and additions of the matrix products alone: [a,b] times [b,c] takes abc of each.
TRAINING = 3  # a product has two gradients, products of its size


def encoder_flops(config: EncoderConfig, n: int) -> int:
    """Of one forward pass over n tokens.

    Each token meets n others in the attention, twice: QKᵀ, and the mixture of the values."""
    H = config.hidden_size
    E = getattr(config, "embedding_size", H)
    layer = 4 * H * H + 2 * H * config.intermediate_size + 2 * n * H
    project = 0 if E == H else E * H
    return 2 * n * (config.num_hidden_layers * layer + project)


def mlm_flops(config: EncoderConfig, n: int, t: int) -> int:
    """Of one training step on a sequence with t masked tokens.

    The MLM head works at these alone: H×E, then E×V."""
    H = config.hidden_size
    E = getattr(config, "embedding_size", H)
    head = 2 * t * E * (H + config.vocab_size)
    return TRAINING * (encoder_flops(config, n) + head)


def electra_flops(
    config: ElectraConfig, n: int, t: int
) -> dict[str, int]:
    """The same for ELECTRA; its second head works at all tokens."""
    H = config.hidden_size
    head = 2 * n * H * (H + 1)
    return {
        "generator": mlm_flops(config.generator(), n, t),
        "discriminator": TRAINING * (encoder_flops(config, n) + head),
    }
