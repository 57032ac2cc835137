"""A trained model as a folder that this project and `transformers` both open. Chapters:
`book/spanbert/pretraining_spanbert`, `book/tasks/real_questions`.

`config.json`, `model.safetensors` (the names of `transformers.BertForMaskedLM`, plus those of the
second tasks, such as `boundary.*`), `tokenizer.json`, `tokenizer_config.json`, `README.md`.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch

from safetensors.torch import save_file
from tokenizers.normalizers import BertNormalizer
from torch import Tensor

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig, set_dropout
from spanbert_tutorial.bert.weights import checkpoint_folder, read_config, to_huggingface_names
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import check_writable, whole_folder, writing
from spanbert_tutorial.errors import InputError, require, shown
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import objective_or_mixture

# (here, in transformers); the second tasks bring the names of theirs.
MASKED_LANGUAGE_MODEL = (
    ("masked_language_model.dense.", "cls.predictions.transform.dense."),
    ("masked_language_model.layer_norm.", "cls.predictions.transform.LayerNorm."),
    ("masked_language_model.bias", "cls.predictions.bias"),
)
# the heads' second name of the word embeddings: stored once, with the embeddings
TIED = "embedding_weight"


def head_names(model: PretrainingModel) -> list[tuple[str, str]]:
    """What the weights of its heads begin with, (here, in a checkpoint)."""
    return [*MASKED_LANGUAGE_MODEL, *(pair for task in model.tasks for pair in task.weight_names)]


def rename(state: Mapping[str, Tensor], pairs: list[tuple[str, str]]) -> dict[str, Tensor]:
    """The weights whose names begin with the first of a pair, under the second."""
    return {
        new + name.removeprefix(old): weight
        for name, weight in state.items()
        for old, new in pairs
        if name.startswith(old)
    }


def model_state(model: PretrainingModel) -> dict[str, Tensor]:
    """All weights of a model under transformers' names, ready to be stored."""
    weights = {name: w for name, w in model.state_dict().items() if not name.endswith(TIED)}
    state = to_huggingface_names(rename(weights, [("encoder.", "")]), prefix="bert.")
    state |= rename(weights, head_names(model))
    return {name: weight.detach().cpu().contiguous() for name, weight in state.items()}


def check_output(folder: str | Path) -> Path:
    """The place to write to, before hours of work. Raises InputError if it exists already or cannot
    be made; makes nothing."""
    require(str(folder).strip(), "the output has no name: give one by --output.")
    folder = Path(folder)
    told = f"the output {folder} exists already: give another --output, or remove it first."
    require(not os.path.lexists(folder) and folder.name != "..", told)
    try:
        check_writable(folder)
    except OSError as error:
        raise InputError(
            f"the output {folder} cannot be written ({error.strerror}): give another --output."
        ) from None
    return folder


def save_checkpoint(
    folder: str | Path,
    model: PretrainingModel,
    wordpiece: WordPiece,
    objective: str,
    texts: Mapping[str, str],
    half: bool = False,
) -> None:
    """Writes a checkpoint folder whole or not at all. texts: further files by name, such as its
    README.md. half: store float16, half the size; everything that opens the folder computes in
    float32 all the same.

    Raises InputError if the folder exists, cannot be written, or the objective is unknown.
    """
    named = {task.name for task in objective_or_mixture(objective).tasks}
    heads = {task.name for task in model.tasks}
    require(
        named == heads,
        f"the model has the heads {', '.join(sorted(heads)) or 'of mlm'}: name their objective, not "
        f"{objective}.",
    )
    state = model_state(model)
    if half:
        state = {name: weight.half() for name, weight in state.items()}
    facts = {"spanbert_tutorial": {"objective": objective}}
    write_folder(folder, model.encoder.config, "BertForMaskedLM", facts, state, wordpiece, texts)


def write_folder(
    folder: str | Path,
    config: EncoderConfig,
    architecture: str,
    facts: Mapping,
    state: Mapping[str, Tensor],
    wordpiece: WordPiece,
    texts: Mapping[str, str],
) -> None:
    """A folder of `transformers`, whole or not at all. architecture: its class there; facts:
    further entries of config.json. Raises InputError if the folder exists or a weight is no number,
    NoRoom if it cannot be written."""
    folder = check_output(folder)
    for name, weight in state.items():
        require(
            weight.isfinite().all(),
            f"the weight {name} is no finite {str(weight.dtype).removeprefix('torch.')}, so nothing "
            "is saved: lower the learning rate, or do without half precision.",
        )
    settings = {"model_type": "bert", "architectures": [architecture], "hidden_act": "gelu"}
    # dtype: to compute in, whatever the weights are stored in; transformers reads it
    settings |= {**asdict(config), **facts, "dtype": "float32"}
    texts = {**texts, "config.json": json.dumps(settings, indent=2) + "\n"}
    with writing(f"the checkpoint {folder}", "make room"), whole_folder(folder) as made:
        save_file(dict(state), made / "model.safetensors", metadata={"format": "pt"})
        wordpiece.save(made)
        for name, text in texts.items():  # which may hold names of files in any bytes
            (made / name).write_text(text, encoding="utf-8", errors="backslashreplace")


def load_checkpoint(folder: str | Path) -> tuple[PretrainingModel, WordPiece]:
    """The model with all its heads, in evaluation mode and float32, and its vocabulary.

    Raises InputError for a folder that `save_checkpoint` did not write, naming weights that are
    missing, surplus or of another shape than the config asks for.
    """
    folder = Path(folder)
    ours = read_config(folder).get("spanbert_tutorial")
    objective = ours.get("objective") if isinstance(ours, dict) else None
    require(
        objective,
        f"{folder} has no heads of this project: open it with BertEncoder.from_huggingface instead.",
    )
    model, missing, surplus = with_weights_of(folder, str(objective))
    wrong = [*(f"{name} is missing or of another shape" for name in missing), *surplus]
    told = f"the weights of {folder} do not fit its config ({', '.join(wrong[:2])}): copy it again."
    require(not wrong, told)
    wordpiece = WordPiece.from_file(folder / "tokenizer.json")
    vocab_size = model.encoder.config.vocab_size
    told = f"{folder} has {len(wordpiece):,} tokens, its config.json {vocab_size:,}: copy it again."
    require(len(wordpiece) <= vocab_size, told)
    return model.eval(), wordpiece


def continue_from(
    source: str | Path, objective: str, seed: int = 0
) -> tuple[PretrainingModel, list[str]]:
    """A model of `objective` with the weights of any checkpoint in BERT's layout: a folder or a hub
    name, of this project, of BERT, of SpanBERT. Returns it with the names of the heads that are not
    in the checkpoint and start anew.

    Raises InputError for weights that do not fit, naming them.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # for the heads that start anew
        model, missing, _ = with_weights_of(source, objective)
    # to go on without; the config, which is written out, still says what the source says
    set_dropout(model, 0.0)
    names = ["masked_language_model", *(task.name for task in model.tasks)]
    return model, [name for name in names if any(w.startswith(f"{name}.") for w in missing)]


def with_weights_of(
    source: str | Path, objective: str
) -> tuple[PretrainingModel, list[str], list[str]]:
    """A model with the weights of a checkpoint; the names of its heads' weights that are not there
    in this shape, which start anew; and the names of the checkpoint's that it has no place for."""
    encoder, others, *_ = BertEncoder.read(source)
    model = PretrainingModel(encoder.config, objective_or_mixture(objective))
    model.encoder.load_state_dict(encoder.state_dict())
    own = {
        name: weight
        for name, weight in model.state_dict().items()
        if not name.startswith("encoder.") and not name.endswith(TIED)
    }
    there = dict(zip(rename(own, head_names(model)), own.items(), strict=True))
    heads = {
        here: others[name]
        for name, (here, weight) in there.items()
        if name in others and others[name].shape == weight.shape
    }
    model.load_state_dict(heads, strict=False)
    surplus = [f"{name} is surplus" for name in others if name not in there]
    return model, [here for here in own if here not in heads], surplus


def vocabulary_file(source: str | Path) -> Path:
    """The vocabulary that lies in a checkpoint's folder. Raises InputError when there is none, as
    with SpanBERT's, and when there are two that disagree."""
    folder = checkpoint_folder(source, weights=False)
    files = [folder / name for name in ("tokenizer.json", "vocab.txt")]
    files = [file for file in files if file.is_file()]
    require(
        files,
        f"{source} has no tokenizer.json or vocab.txt: give the vocabulary it was trained with "
        "(SpanBERT: that of bert-base-cased) by --vocabulary, in Python by tokenizer=.",
    )
    if len(files) == 2:
        whole, listed = (WordPiece.from_file(file).vocabulary for file in files)
        require(
            whole[: len(listed)] == listed,
            f"the tokenizer.json and the vocab.txt of {source} disagree ({len(whole):,} and "
            f"{len(listed):,} tokens): remove the one that the model was not trained with.",
        )
    return files[0]


# settings of a tokenizer_config.json → of BERT's normalizer
NORMALIZING = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
# settings that change tokens → the values with which BERT's rules hold; None: where not given
PLAIN = {
    "do_basic_tokenize": (True, None),
    "never_split": ([], None),
    "wordpieces_prefix": ("##", None),
}
OWN_RULES = re.compile("Japanese|Bertweet|Roberta|Albert|Byte|T5|GPT2")


def read_vocabulary(source: str | Path) -> WordPiece:
    """The tokenizer in a folder, of a hub name, or a file: a `tokenizer.json` as the library runs
    it, or a `vocab.txt` with BERT's rules. Settings in `tokenizer_config.json` beside it that
    change tokens are obeyed or refused, all others ignored; without one, a `vocab.txt` is cased if
    any token has a capital letter (transformers would lower-case: SpanBERT's folders have none).

    Raises InputError naming what cannot be obeyed.
    """
    path = Path(source)
    file = path if path.is_file() or path.suffix in (".txt", ".json") else vocabulary_file(source)
    beside = file.with_name("tokenizer_config.json")
    wordpiece = WordPiece.from_file(file)
    told = read_config(beside.parent, beside.name) if beside.is_file() else {}
    kind = str(told.get("tokenizer_class") or "")
    wrong = f"{beside} says {shown(kind)}, with rules of its own: take one with BERT's tokenizer."
    require(not OWN_RULES.search(kind), wrong)
    for name, plain in PLAIN.items():
        wrong = f"{beside} sets {name} to {shown(told.get(name))}: take a checkpoint without that."
        require(told.get(name) in plain, wrong)
    how = {name: told[name] for name in NORMALIZING if told.get(name) is not None}
    if file.suffix == ".txt":
        check_added(file, told, wordpiece)
        tokens = [token for token in wordpiece.vocabulary if not token.startswith("[")]
        how.setdefault("do_lower_case", all(token == token.lower() for token in tokens))
    normalize(wordpiece, how, beside)
    return wordpiece


def normalize(wordpiece: WordPiece, how: Mapping[str, bool], beside: Path) -> None:
    """The tokenizer does what the settings say, in place. As in transformers, accents go with the
    capitals where nothing is said of them. Raises InputError where the normalizer is not BERT's."""
    normalizer = wordpiece.library.normalizer
    if "do_lower_case" in how and isinstance(normalizer, BertNormalizer):
        normalizer.strip_accents = None
    for name, value in how.items():
        told = f"{beside}: {name} is {shown(value)}"
        require(isinstance(value, bool), f"{told}: write true or false.")
        if isinstance(normalizer, BertNormalizer):
            setattr(normalizer, NORMALIZING[name], value)
        else:
            asked = value and name != "tokenize_chinese_chars"
            require(not asked, f"{told}, but tokenizer.json has no normalizer of BERT: remove it.")


def check_added(file: Path, told: Mapping, wordpiece: WordPiece) -> None:
    """Raises InputError for tokens that are added to a vocab.txt beside it: they change how text is
    cut."""
    beside = file.with_name("added_tokens.json")
    added = list(read_config(beside.parent, beside.name)) if beside.is_file() else []
    decoder = told.get("added_tokens_decoder")
    if isinstance(decoder, dict):
        added += [one["content"] for one in decoder.values() if isinstance(one, dict)]
    new = [token for token in added if token not in wordpiece.vocabulary]
    require(
        not new,
        f"{file.parent} adds {', '.join(new[:1])} to its vocab.txt: save both as tokenizer.json.",
    )
