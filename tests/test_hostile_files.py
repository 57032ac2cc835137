"""Files that nobody meant to write: a checkpoint, questions, a corpus are read right, or refused in
one sentence of at most 300 characters."""

import gzip
import json
import lzma
import shutil
import tempfile
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parity import sizes
from safetensors.torch import load_file

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.errors import LONGEST, InputError
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint, save_checkpoint
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.text import corpora
from spanbert_tutorial.text.lines import visible

often = settings(
    max_examples=30,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
PACK = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}
packings = st.sampled_from(list(PACK))
REFUSED = object()


def read_or_refused(read, *arguments):
    """What a reader returns, or REFUSED where its InputError is one short sentence."""
    try:
        return read(*arguments)
    except InputError as error:
        said = str(error)
        assert 10 <= len(said) <= LONGEST and said.isprintable() and said.endswith((".", ")"))
        return REFUSED


# --- JSON and bytes that were whole once --------------------------------------------

texts = st.text(st.characters(codec=None), max_size=8) | st.sampled_from(
    ["", " ", "\n", "\0", "\ud800", "\ufeff", "[UNK]", "##", "x" * 5_000, "e\u0301", "😀"]
)
numbers = st.integers(-3, 20) | st.floats() | st.sampled_from([2**31, 2**63, 10**400, -0.0, 1e308])
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def places(content: object) -> list[tuple]:
    """(container, key) of everything inside JSON content."""
    pairs = list(
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    return [(content, key) for key, _ in pairs] + [
        place for _, value in pairs for place in places(value)
    ]


@st.composite
def spoiled(draw: st.DrawFn, whole: object) -> str:
    """The text of JSON in which up to two things were replaced, removed or wrapped."""
    content = {"top": deepcopy(whole)}
    for _ in range(draw(st.integers(0, 2))):
        if found := places(content):
            holder, key = found[draw(st.integers(0, len(found) - 1))]
            change = draw(st.sampled_from(["replace", "replace", "remove", "wrap"]))
            if change == "remove":
                del holder[key]
            else:
                holder[key] = draw(values) if change == "replace" else [holder[key]]
    return json.dumps(content.get("top"), ensure_ascii=draw(st.booleans()))


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes as they were, cut, or changed in one place."""
    how = draw(st.sampled_from(["whole", "whole", "cut", "flipped"]))
    place = draw(st.integers(0, max(0, len(whole) - 1)))
    if how == "cut":
        return whole[:place]
    if how == "flipped":
        return whole[:place] + bytes([draw(st.integers(0, 255))]) + whole[place + 1 :]
    return whole


def written(folder: str, name: str, content: bytes) -> Path:
    path = Path(folder, name)
    path.write_bytes(content)
    return path


# --- checkpoints --------------------------------------------------------------------

WORDS = ["the", "river", "rose", "where", "town", "a", ".", "?", "##s"]
PIECES = {token: number for number, token in enumerate([*SPECIALS, *WORDS])}
SIZES = sizes(16, 24, vocab_size=len(PIECES), max_position_embeddings=64)
QUERY = "bert.encoder.layer.1.attention.self.query.weight"
READERS = {
    "pretrained": lambda folder: load_checkpoint(folder)[0],
    "answerer": lambda folder: qa.QuestionAnswerer.from_pretrained(folder).model,
}
JSON_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A folder with a pre-trained and a fine-tuned checkpoint."""
    folder = tmp_path_factory.mktemp("whole")
    wordpiece = WordPiece(PIECES)
    torch.manual_seed(0)
    model = PretrainingModel(EncoderConfig(**SIZES), Objective.named("span+sbo"))
    save_checkpoint(folder / "pretrained", model, wordpiece, "span+sbo", {})
    answerer = qa.QuestionAnswerer(
        qa.QuestionAnsweringModel(model.encoder), wordpiece, max_length=32, doc_stride=8
    )
    answerer.save(folder / "answerer", {})
    return folder


def read_copy(name: str, folder: Path) -> object:
    """One reader on a folder; a model that it gives has finite weights and computes."""
    model = read_or_refused(READERS[name], folder)
    if model is not REFUSED:
        assert all(weight.isfinite().all() for weight in model.state_dict().values())
        config = model.encoder.config
        ids = torch.arange(min(5, config.vocab_size, config.max_position_embeddings))[None]
        assert model.encoder(ids).shape == (*ids.shape, config.hidden_size)
    return model


@often
@given(name=st.sampled_from(list(READERS)), file=st.sampled_from(JSON_FILES), data=st.data())
def test_a_checkpoint_with_a_spoiled_file(whole, name, file, data):
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(whole / name, Path(place, "model"))
        text = data.draw(spoiled(json.loads((folder / file).read_text(encoding="utf-8"))))
        (folder / file).write_bytes(data.draw(damaged(text.encode("utf-8", "surrogatepass"))))
        read_copy(name, folder)


WEIGHTS = {
    "complex": lambda weight: weight.to(torch.complex64),
    "whole numbers": lambda weight: weight.to(torch.int64),
    "sparse": lambda weight: weight.to_sparse(),
    "not a number": lambda weight: weight * float("nan"),
    "infinite in float32": lambda weight: weight.double() + 1e300,
    "turned": lambda weight: weight[:, :-1],
    "a list": lambda weight: weight.tolist(),
}


@pytest.mark.filterwarnings("ignore")  # torch's, about sparse tensors
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_weight_that_is_not_computed_with_is_refused(whole, tmp_path, name, kind):
    folder = shutil.copytree(whole / name, tmp_path / "model")
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(state | {QUERY: WEIGHTS[kind](state[QUERY])}, folder / "pytorch_model.bin")
    assert read_copy(name, folder) is REFUSED


def test_code_in_a_bin_file_is_never_run(whole, tmp_path):
    class Harmful:
        def __reduce__(self):
            return open, (str(tmp_path / "made"), "w")

    folder = shutil.copytree(whole / "answerer", tmp_path / "model")
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Harmful()}, folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot be read as weights"):
        BertEncoder.from_huggingface(folder)
    assert not (tmp_path / "made").exists()


# --- questions ----------------------------------------------------------------------

MILL = "The old mill stood by the river Aa until 1904."
ASKED = [
    {
        "id": "a",
        "question": "Where did it stand?",
        "is_impossible": False,
        "answers": [{"text": "by the river Aa", "answer_start": 19}],
    },
    {"id": "b", "question": "Who burned it?", "is_impossible": True, "answers": []},
]
SQUAD = {
    "version": "v2.0",
    "data": [{"title": "Mill", "paragraphs": [{"context": MILL, "qas": ASKED}]}],
}


def check_questions(questions: list) -> None:
    """Ids of their own, and answers where they say."""
    assert questions and len({question.id for question in questions}) == len(questions)
    for question in questions:
        (question.id + question.question + question.context + question.title).encode()
        for answer in (*question.answers, *question.plausible):
            assert answer.text and question.context[answer.start :].startswith(answer.text)


@often
@given(text=spoiled(SQUAD), packing=packings, data=st.data())
def test_questions_are_read_or_refused(text, packing, data):
    content = data.draw(damaged(PACK[packing](text.encode("utf-8", "surrogatepass"))))
    with tempfile.TemporaryDirectory() as folder:
        found = read_or_refused(squad.read, written(folder, f"a.json{packing}", content))
    if found is not REFUSED:
        check_questions(found)
    if text == json.dumps(SQUAD) and content == PACK[packing](text.encode()):
        assert [question.id for question in found] == ["a", "b"]


# --- corpora ------------------------------------------------------------------------

running = st.lists(
    st.sampled_from(["The river rose.", "Why? Nobody!", "\n\n", "\r\n", "\x85", "\u2028"]) | texts,
    max_size=12,
).map("".join)


def seen(text: str) -> str:
    """All that can be seen, in order."""
    return "".join(letter for letter in text if visible(letter))


@often
@given(text=running, packing=packings, data=st.data())
def test_a_corpus_is_read_to_the_last_letter_or_refused(text, packing, data):
    content = text.encode("utf-8", "surrogatepass")
    packed = PACK[packing](content)
    given_bytes = data.draw(damaged(packed))
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, f"a.txt{packing}", given_bytes)
        found = read_or_refused(lambda: list(corpora.documents(path)))
    if found is not REFUSED:
        assert all(sentence.strip() for document in found for sentence in document)
        if given_bytes == packed:
            read = "".join("".join(document) for document in found)
            assert seen(read) == seen(content.decode("utf-8-sig"))


LINE = {"title": "Mill", "text": "The river rose in the night. Why? Nobody!"}


@often
@given(lines=st.lists(spoiled(LINE), min_size=1, max_size=3), packing=packings)
def test_a_corpus_of_json_lines_is_read_or_refused(lines, packing):
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, f"a.jsonl{packing}", PACK[packing](content))
        found = read_or_refused(lambda: list(corpora.documents(path)))
    if found is not REFUSED:
        texts_read = [json.loads(line)["text"] for line in content.decode().split("\n")]
        read = "".join("".join(document) for document in found)
        assert seen(read) == seen("".join(texts_read))
