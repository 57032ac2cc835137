"""A trained model as a folder that this project and `transformers` both open. Chapters:
`book/spanbert/pretraining_spanbert`, `book/tasks/real_questions`.

`config.json`, `model.safetensors` (the names of `transformers.BertForMaskedLM`, plus those of the
second tasks, such as `boundary.*`), `tokenizer.json`, `tokenizer_config.json`, `README.md`.
"""

import json
import os
import re
import shutil
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers.normalizers import BertNormalizer
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, set_dropout
from spanbert_tutorial.bert.inputs import Embeddings
from spanbert_tutorial.bert.weights import checkpoint_folder, read_config, to_huggingface_names
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.device import seeded
from spanbert_tutorial.engine.files import new_parents, whole_folder, writing
from spanbert_tutorial.engine.processes import processes
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


def head_names(model: PretrainingModel) -> dict[str, str]:
    """The weights of its heads: name here → name in a checkpoint. What a task's `weight_names` do not
    name is kept all the same, under `heads.`"""
    pairs = [(f"{task.name}.", f"heads.{task.name}.") for task in model.tasks]
    pairs += MASKED_LANGUAGE_MODEL
    pairs += (pair for task in model.tasks for pair in task.weight_names)
    own = [name for name in model.state_dict() if not name.endswith(TIED)]
    return {
        name: there + name.removeprefix(here)
        for here, there in pairs
        for name in own
        if name.startswith(here)
    }


def model_state(model: PretrainingModel) -> dict[str, Tensor]:
    """All weights of a model under transformers' names."""
    state = model.state_dict()
    encoder = to_huggingface_names(model.encoder.state_dict(), prefix="bert.")
    return encoder | {there: state[here] for here, there in head_names(model).items()}


def check_output(folder: str | Path) -> Path:
    """The place to write to, before hours of work. Raises InputError if it exists already or cannot
    be made; leaves nothing behind."""
    require(str(folder).strip(), "the output has no name: give one by --output.")
    folder = Path(folder)
    told = f"the output {folder} exists already: give another --output, or remove it first."
    require(not os.path.lexists(folder) and folder.name != "..", told)
    try:
        with suppress(LookupError), new_parents(folder / "inside"):
            raise LookupError  # whatever is raised here removes what was made
    except OSError as error:
        wrong = f"the output {folder} cannot be written ({error.strerror})"
        raise InputError(f"{wrong}: give another --output.") from None
    return folder


def check_heads(model: PretrainingModel, objective: str) -> None:
    """Raises InputError unless the model has the heads of the objective."""
    named = {task.name for task in objective_or_mixture(objective).tasks}
    heads = {task.name for task in model.tasks}
    told = f"the model has the heads {', '.join(sorted(heads)) or 'of mlm'}"
    require(named == heads, f"{told}: name their objective, not {objective}.")


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
    check_heads(model, objective)
    facts, state = {"objective": objective}, model.state_dict()
    head = {there: state[here] for here, there in head_names(model).items()}
    write_folder(folder, model.encoder, "BertForMaskedLM", facts, head, wordpiece, texts, half)


def warn_of_changes(encoder: Any) -> None:
    """Warns of an encoder with the weights of `BertEncoder` and another computation, which no folder
    keeps."""
    kind = type(encoder)
    if kind.forward is not BertEncoder.forward or type(encoder.embeddings) is not Embeddings:
        told = f"the folder opens as a BertEncoder, which computes other numbers than {kind.__name__}"
        warnings.warn(f"{told}: give its weights to a {kind.__name__}.", stacklevel=4)


def write_folder(
    folder: str | Path,
    encoder: BertEncoder,
    architecture: str,
    facts: Mapping,
    head: dict[str, Tensor],
    wordpiece: WordPiece,
    texts: Mapping[str, str],
    half: bool = True,
) -> None:
    """A folder of `transformers`, whole or not at all. architecture: its class there; facts: what
    else this project's readers of config.json have to know; head: the weights beside the encoder's.
    Raises InputError if the folder exists or a weight is no number, NoRoom if it cannot be written."""
    warn_of_changes(encoder)
    folder = check_output(folder)
    state = to_huggingface_names(encoder.state_dict(), prefix="bert.") | head
    kind = torch.float16 if half else torch.float32
    state = {name: weight.to("cpu", kind).contiguous() for name, weight in state.items()}
    for name, weight in state.items():
        told = f"the weight {name} is not finite as {kind}, so nothing is saved"
        mend = "lower the learning rate, or do without half precision"
        require(weight.isfinite().all(), f"{told}: {mend}.")
    settings: dict[str, Any] = {"model_type": "bert", "hidden_act": "gelu"}
    # dtype: to compute in, whatever the weights are stored in; transformers reads it
    settings |= {"architectures": [architecture], **asdict(encoder.config)}
    settings |= {"spanbert_tutorial": dict(facts), "dtype": "float32"}
    texts = {**texts, "config.json": json.dumps(settings, indent=2) + "\n"}
    with writing(f"the checkpoint {folder}", "make room"), whole_folder(folder) as made:
        save_file(state, made / "model.safetensors", metadata={"format": "pt"})
        wordpiece.save(made)
        for name, text in texts.items():  # which may hold names of files in any bytes
            (made / name).write_text(text, encoding="utf-8", errors="backslashreplace")
        # or only its owner could read it
        shutil.copymode(made / "config.json", made / "model.safetensors")


def read_facts(source: str | Path) -> dict[str, Any]:
    """What the config of a checkpoint of this project tells of its objective or task."""
    facts = read_config(checkpoint_folder(source)).get("spanbert_tutorial")
    return facts if isinstance(facts, dict) else {}


def load_checkpoint(folder: str | Path) -> tuple[PretrainingModel, WordPiece]:
    """The model with all its heads, in evaluation mode and float32, and its vocabulary.

    Raises InputError for a folder that `save_checkpoint` did not write, naming weights that are
    missing, surplus or of another shape than the config asks for.
    """
    folder = checkpoint_folder(folder)
    objective, task = map(read_facts(folder).get, ("objective", "task"))
    told = f"{folder} was fine-tuned for {task}: give a model of `pretrain`"
    require(not task, f"{told} (export: or `finetune squad`), or open it with its task's class.")
    told = f"{folder} has no heads of this project: give a model of `pretrain`"
    require(objective, f"{told}, or open it with QuestionAnswerer or BertEncoder.")
    encoder, others, *_ = BertEncoder.read(folder)
    model = PretrainingModel(encoder.config, objective_or_mixture(str(objective)), encoder)
    here = {there: here for here, there in head_names(model).items()}
    load_head(model, {here.get(name, name): w for name, w in others.items()}, folder)
    wordpiece = WordPiece.from_file(Path(folder, "tokenizer.json"))
    vocab_size = encoder.config.vocab_size
    told = f"{folder} has {len(wordpiece):,} tokens, its config.json {vocab_size:,}: copy it again."
    require(len(wordpiece) <= vocab_size, told)
    return model.eval(), wordpiece


def load_head(model: nn.Module, head: Mapping[str, Tensor], source: str | Path) -> None:
    """Gives a model all its weights but the encoder's. Raises InputError, with the source, naming
    weights that are missing, surplus or of another shape."""
    try:
        missing, surplus = model.load_state_dict(head, strict=False)
        own = [name for name in missing if not name.startswith("encoder.")]
        lacks = [f"{name} is missing" for name in own if not name.endswith(TIED)]
        wrong = ", ".join(lacks + [f"{name} is surplus" for name in surplus])
    except RuntimeError as error:  # a shape
        wrong = " ".join(str(error).split())
    require(not wrong, f"the head of {source} does not fit ({wrong}): copy the checkpoint again.")


def continue_from(
    source: str | Path, objective: str, seed: int = 0
) -> tuple[PretrainingModel, list[str]]:
    """A model of `objective` with the weights of any checkpoint in BERT's layout: a folder or a hub
    name, of this project, of BERT, of SpanBERT. Returns it with the names of the heads that are not
    in the checkpoint, in this shape, and start anew.

    Raises InputError for an encoder whose weights do not fit, naming them.
    """
    encoder, others, *_ = BertEncoder.read(source)
    with seeded(seed):  # for the heads that start anew
        model = PretrainingModel(encoder.config, objective_or_mixture(objective))
    model.encoder.load_state_dict(encoder.state_dict())
    own, names = model.state_dict(), head_names(model)
    known = {here: others[there] for here, there in names.items() if there in others}
    known = {name: weight for name, weight in known.items() if weight.shape == own[name].shape}
    model.load_state_dict(known, strict=False)
    # to go on without; the config, which is written out, still says what the source says
    set_dropout(model, 0.0)
    new = {name.split(".")[0] for name in names if name not in known}
    return model, [name for name, _ in model.named_children() if name in new]


def vocabulary_file(source: str | Path) -> Path:
    """The vocabulary that lies in a checkpoint's folder. Raises InputError when there is none, as
    with SpanBERT's, and when there are two that disagree."""
    folder = checkpoint_folder(source, weights=False)
    files = [folder / name for name in ("tokenizer.json", "vocab.txt")]
    files = [file for file in files if file.is_file()]
    wrong = f"{source} has no tokenizer.json or vocab.txt: give the vocabulary it was trained with"
    mend = "(SpanBERT: that of bert-base-cased) by --vocabulary, in Python by tokenizer="
    require(files, f"{wrong} {mend}.")
    if len(files) == 2:
        whole, listed = (WordPiece.from_file(file).vocabulary for file in files)
        wrong = f"the tokenizer.json and the vocab.txt of {source} disagree"
        wrong += f" ({len(whole):,} and {len(listed):,} tokens)"
        mend = "remove the one that the model was not trained with"
        require(whole[: len(listed)] == listed, f"{wrong}: {mend}.")
    return files[0]


# settings of a tokenizer_config.json → of BERT's normalizer
NORMALIZING = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
# settings that change tokens → the value with which BERT's rules hold
PLAIN = {"do_basic_tokenize": True, "never_split": [], "wordpieces_prefix": "##"}
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
    wordpiece = WordPiece.from_file(file)
    normalizer = wordpiece.library.normalizer
    bert = isinstance(normalizer, BertNormalizer)
    told = beside(file, "tokenizer_config.json")
    asked = {name: told[name] for name in NORMALIZING if told.get(name) is not None}
    refused = [(k, told[k]) for k, plain in PLAIN.items() if told.get(k) not in (plain, None)]
    if OWN_RULES.search(kind := str(told.get("tokenizer_class"))):
        refused.append(("tokenizer_class", kind))
    for name, value in asked.items():
        obeyed = bert or not value or name == "tokenize_chinese_chars"
        if not (obeyed and isinstance(value, bool)):
            refused.append((name, value))
    if file.suffix == ".txt":
        decoder = told.get("added_tokens_decoder")
        entries = decoder.values() if isinstance(decoder, dict) else ()
        added = [one.get("content") for one in entries if isinstance(one, dict)]
        added += beside(file, "added_tokens.json")
        refused += [("added token", one) for one in added if one not in wordpiece.vocabulary]
        words = [token for token in wordpiece.vocabulary if not token.startswith("[")]
        asked.setdefault("do_lower_case", all(token == token.lower() for token in words))
    for name, value in refused:
        raise InputError(
            f"the tokenizer in {file.parent} has the {name} {shown(value)}, which is not obeyed here: "
            "save it as a tokenizer.json by transformers, or take a checkpoint without that."
        )
    if bert and "do_lower_case" in asked:
        normalizer.strip_accents = None  # accents go with the capitals, if nothing is said of them
    for name in asked if bert else ():
        setattr(normalizer, NORMALIZING[name], asked[name])
    return wordpiece


def check_vocabulary(wordpiece: WordPiece, encoder: BertEncoder, source: Any = "given") -> None:
    """Raises InputError for more tokens than the encoder has, and warns of far fewer. source: of the
    vocabulary, as messages name it."""
    tokens, most = len(wordpiece), encoder.config.vocab_size
    told = f"the vocabulary {source} has {tokens:,} tokens and the model {most:,}"
    require(tokens <= most, f"{told}: give the vocabulary that it was trained with.")
    if tokens + 128 <= most and processes().is_main_process:  # some models pad to a round number
        told += ": most likely it is not that of the training, and then the answers are of no use"
        warnings.warn(f"{told}; give that one.", stacklevel=4)


def beside(file: Path, name: str) -> dict:
    """The content of a JSON file in the same folder, {} where there is none."""
    return read_config(file.parent, name) if file.with_name(name).is_file() else {}
