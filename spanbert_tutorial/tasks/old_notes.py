"""The question answering pipeline of old notes on today's `transformers`: its steps, and what
changed without a message. Chapter: `book/tasks/old_notes`.

Source of `answer_as_before`: documentation and code of transformers 4 with its pipeline
"question-answering", which version 5.3 removed. How this book answers: `tasks.question_answering`.
n: positions of an input.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers  # each of its classes takes seconds more, when it is first named
from torch import Tensor

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.weights import checkpoint_folder, read_config, read_weights
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary

QUESTION = "What is machine learning?"
# word for word, including the missing one
CONTEXT = (
    "Machine learning is a subset of artificial intelligence. It is widely for creating a "
    "variety of applications such as email filtering and computer vision"
)
ANSWER = "a subset of artificial intelligence"  # as the notes print it


def write_old_folder(
    folder: str | Path, tokens: list[str], dtype: torch.dtype = torch.float32
) -> "transformers.BertForQuestionAnswering":
    """Writes a small question answering model with random weights as `write_old_files` does.
    Returns the model, in float32. tokens: the vocabulary. dtype: of the stored weights."""
    small = {"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128}
    # a wide start, for scores far from 0
    sizes = asdict(EncoderConfig(len(tokens), num_hidden_layers=2, **small, initializer_range=0.3))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = transformers.BertConfig(**sizes)
        model = transformers.BertForQuestionAnswering(config).eval()
    weights = {name: weight.to(dtype) for name, weight in model.state_dict().items()}
    write_old_files(folder, sizes, weights, tokens)
    return model


def write_old_files(
    folder: str | Path, sizes: Mapping, weights: Mapping[str, Tensor], tokens: Sequence[str]
) -> None:
    """Writes a model as the first checkpoints were: a `config.json` without `model_type`,
    `pytorch_model.bin`, `vocab.txt`. Raises FileExistsError if the folder exists."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    config = {**sizes, "directionality": "bidi", "hidden_act": "gelu"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    torch.save(dict(weights), folder / "pytorch_model.bin")


# --- the removed pipeline, step by step ---------------------------------------------


def best_by_probability(
    starts: Tensor, ends: Tensor, allowed: Tensor, max_answer_length: int, n_best_size: int
) -> list[tuple[int, int, float]]:
    """The `n_best_size` best spans of one window, best first: (first, last, probability of the
    start × probability of the end). starts, ends: scores [n]. allowed: bool [n], the context; the
    softmax includes [CLS], position 0, too. max_answer_length: in tokens."""
    in_softmax = allowed.clone()
    in_softmax[0] = True
    start, end = (
        scores.float().masked_fill(~in_softmax, -torch.inf).softmax(-1) * allowed
        for scores in (starts, ends)
    )
    # [n,n]: no end before its start, no span that is too long
    products = (start[:, None] * end[None]).triu().tril(max_answer_length - 1)
    flat = products.flatten()
    order = flat.argsort(descending=True, stable=True)[:n_best_size].tolist()
    return [(*divmod(i, len(products)), float(flat[i])) for i in order if flat[i] > 0]


@torch.no_grad()
def answer_as_before(
    model: "transformers.BertForQuestionAnswering",
    tokenizer: "transformers.BertTokenizer",
    question: str,
    context: str,
    *,
    n_best_size: int = 12,
    max_answer_length: int = 15,
) -> dict[str, Any]:
    """What the removed pipeline answered by default: {"score", "start", "end", "answer"}.

    It never returns "no answer". It widens spans to whole words and sums the probabilities of spans
    with the same text, even from windows that each have a softmax of their own. n_best_size: spans
    per window (1 in its first versions). max_answer_length: in tokens. Windows have 384 positions,
    and neighbors overlap by 128 tokens. Raises InputError for a context without a word.
    """
    inputs = tokenizer(
        question,
        context,
        truncation="only_second",
        max_length=384,
        stride=128,
        return_overflowing_tokens=True,
        padding=True,
        return_tensors="pt",
    )
    inputs.pop("overflow_to_sample_mapping")
    scores = model(**inputs)
    answers: dict[str, dict[str, Any]] = {}
    for row in range(len(inputs["input_ids"])):
        allowed = torch.tensor([part == 1 for part in inputs.sequence_ids(row)])
        window = scores.start_logits[row], scores.end_logits[row], allowed
        for first, last, p in best_by_probability(*window, max_answer_length, n_best_size):
            start, _ = inputs.word_to_chars(row, inputs.token_to_word(row, first), sequence_index=1)
            _, end = inputs.word_to_chars(row, inputs.token_to_word(row, last), sequence_index=1)
            answer = {"score": 0.0, "start": start, "end": end, "answer": context[start:end]}
            answers.setdefault(answer["answer"].lower(), answer)["score"] += p
    require(answers, "the context holds no word: give text.")
    return max(answers.values(), key=lambda answer: answer["score"])


# --- what changes without a message -------------------------------------------------


def warnings_of(folder: str | Path) -> list[str]:
    """What today's `transformers` does unexpectedly with a question answering checkpoint, one
    sentence each, with a remedy. Empty for a folder that `QuestionAnswerer.save` wrote.

    Raises InputError without config.json or weights. No code of the checkpoint is run.
    """
    folder = checkpoint_folder(folder)
    files = {file.name for file in folder.iterdir()}
    config, weights = read_config(folder), read_weights(folder)
    dtypes = (str(w.dtype) for w in weights.values() if w.is_floating_point())
    stored = next(dtypes, "").removeprefix("torch.")
    half = (config.get("dtype") or config.get("torch_dtype") or stored) in ("float16", "bfloat16")
    size = config.get("vocab_size", transformers.BertConfig().vocab_size)
    tokens, lowers = 0, False
    if files & {"tokenizer.json", "vocab.txt"}:
        wordpiece = read_vocabulary(folder)
        tokens = len(wordpiece)
        lowers = not wordpiece.lowercase and not files & {"tokenizer.json", "tokenizer_config.json"}
    mend = "give the vocabulary that the model was trained with"
    told = {
        f"There is no vocabulary, and BertTokenizer then reads every word as [UNK]: {mend}.": not tokens,
        f"The vocabulary has {tokens:,} tokens and the model {size:,}: {mend}.": 0 < tokens != size,
        "vocab.txt is cased and no tokenizer_config.json says so, so BertTokenizer lower-cases every "
        "text: pass do_lower_case=False.": lowers,
        "config.json has no model_type, so the Auto classes raise an error: name the class "
        '(BertForQuestionAnswering), or add "model_type": "bert".': "model_type" not in config,
        "The weights are a pickle file, which may hold code: load it with weights_only=True, and save "
        "it as model.safetensors.": "model.safetensors" not in files,
        "The model will compute in half precision, as its files ask: pass dtype=torch.float32.": half,
        "There is no question answering head (qa_outputs), so it would start from random numbers: "
        "fine-tune the model first.": "qa_outputs.weight" not in weights,
    }
    return [message for message, wrong in told.items() if wrong]
