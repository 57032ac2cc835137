"""A training step, raced against `transformers.BertForMaskedLM` on the same batch, and what feeds it.

`python -m benchmarks.steps [OUTPUT.json]`: forward, backward, clipping and AdamW, n = 128, all threads.
"""

from itertools import islice

import numpy as np
import torch
import transformers

from benchmarks.race import keep, race, seconds
from spanbert_tutorial.batches import OBJECTIVES, PretrainingData
from spanbert_tutorial.bert import EncoderConfig
from spanbert_tutorial.corpora import EncodedCorpus
from spanbert_tutorial.data_files import data_path
from spanbert_tutorial.pretraining import PretrainingModel
from spanbert_tutorial.training import keep_freed_memory, parameter_groups, precision
from spanbert_tutorial.wordpiece import WordPiece

MODELS = {"tiny": 4_000, "mini": 8_000, "mini, large vocabulary": 29_000, "base": 29_000}
BATCH = {"base": 8}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def text(vocabulary: int, pieces: int = 2_000_000) -> EncodedCorpus:
    """Long documents of random pieces."""
    rng = np.random.default_rng(0)
    ends = np.arange(25, pieces + 1, 25)
    return EncodedCorpus(rng.integers(5, vocabulary, pieces).astype(np.uint16), ends, ends[39::40])


def data(objective: str, vocabulary: int, batch: int, length: int = 128) -> PretrainingData:
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    wordpiece.starts = np.resize(wordpiece.starts, vocabulary)  # the pieces are numbers here, and may be any
    return PretrainingData(text(vocabulary), wordpiece, OBJECTIVES[objective], length, batch)


def stepper(model: torch.nn.Module, loss_of, dtype: torch.dtype):
    """One training step, as `training.train` does it."""
    model.train()
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.01), lr=1e-4, fused=True)

    def step():
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            loss = loss_of(model)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def theirs(config: EncoderConfig, batch: dict, dtype: torch.dtype):
    """The step of transformers' model: it scores every position, and is told by -100 which ones count."""
    sizes = {name: getattr(config, name) for name in ("vocab_size", "hidden_size", "num_hidden_layers",
                                                     "num_attention_heads", "intermediate_size")}
    model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes, **NO_DROPOUT))
    labels = torch.full_like(batch["ids"], -100)
    labels[batch["masked_batch"], batch["masked_position"]] = batch["masked_ids"]
    fields = {"input_ids": batch["ids"], "token_type_ids": batch["segments"], "attention_mask": batch["attention_mask"]}
    return stepper(model, lambda model: model(**fields, labels=labels).loss, dtype)


def ours(config: EncoderConfig, batch: dict, objective: str, dtype: torch.dtype):
    return stepper(PretrainingModel(config, OBJECTIVES[objective]), lambda model: model(batch)["loss"], dtype)


def compare(name: str, dtype: torch.dtype) -> dict:
    """Our step against theirs; what SBO adds; how many times as fast as the model the batches come."""
    vocabulary, rows = MODELS[name], BATCH.get(name, 32)
    config = EncoderConfig.preset(name.split(",")[0], vocab_size=vocabulary, **NO_DROPOUT)
    batches = {objective: data(objective, vocabulary, rows) for objective in ("mlm", "span+sbo")}
    mlm, span = (next(one.batches(np.random.default_rng(0))) for one in batches.values())
    span_only = {name: value for name, value in span.items() if not name.startswith("boundary")}
    plain = ours(config, mlm, "mlm", dtype)
    result = {"batch": rows, "against_transformers": race(plain, theirs(config, mlm, dtype))}
    sbo, without = ours(config, span, "span+sbo", dtype), ours(config, span_only, "span", dtype)
    result["span_with_sbo_against_without"] = race(without, sbo)
    drawn = batches["span+sbo"].batches(np.random.default_rng(0))
    drawing = sorted(seconds(lambda: list(islice(drawn, 20))) / 20 for _ in range(7))[3]
    speed = rows * 128 / result["span_with_sbo_against_without"]["seconds"][1]
    result |= {"tokens_a_second": round(speed), "tokens_drawn_a_second": round(rows * 128 / drawing)}
    return result


def main() -> None:
    keep_freed_memory()  # as `train` does; both kinds of step gain by it
    kinds = {"float32": torch.float32} | ({"bfloat16": torch.bfloat16} if precision() == "bf16" else {})
    results = {"threads": torch.get_num_threads(), "length": 128}
    for kind, dtype in kinds.items():
        results[kind] = {name: compare(name, dtype) for name in MODELS}
    keep("speed_steps", results)


if __name__ == "__main__":
    main()
