"""The Help page: every message that it quotes is produced here and compared with it; the questions
of SpanBERT's users are there, each answer is run, quoted or linked, and the runs hold."""

import json
import random
import re
import shutil
import socket
import subprocess
import sys

import pytest
import torch
import transformers
from test_main import run
from transformers import AutoModel, BertForMaskedLM, BertModel, BertTokenizerFast

from environment import ROOT
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.weights import to_huggingface_names
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.model import fill_masks

CELLS = json.loads((ROOT / "book" / "workshop" / "faq.ipynb").read_text(encoding="utf-8"))["cells"]
PAGE = "\n\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
QUOTED = re.findall(r"^```text\n(.*?)\n```$", PAGE, flags=re.MULTILINE | re.DOTALL)
SHORT = ["--steps", 4, "--batch-size", 4, "--max-length", 32]
seen_here = set()  # the quoted messages that a test has met
SPANBERT = "https://github.com/facebookresearch/SpanBERT/issues/"


# --- the messages -----------------------------------------------------------------------


def on_the_page(told: str) -> list[str]:
    """The quoted messages that a program's output contains; "…" matches anything."""
    found = [
        quote
        for quote in QUOTED
        if re.search(re.escape(quote).replace("…", ".*"), told, flags=re.DOTALL)
    ]
    seen_here.update(found)
    return found


def error_of(work) -> str:
    """Name and text of what `work` raises, as a traceback ends."""
    with pytest.raises(Exception) as caught:
        work()
    return f"{caught.type.__name__}: {caught.value}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder, no progress bar, no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    words = random.Random(0)
    text = "\n\n".join(
        " ".join(words.choices(["강", "마을", "다리", "시장", "사람"], k=40)) + "."
        for _ in range(60)
    )
    (tmp_path / "korean.txt").write_text(text, encoding="utf-8")
    return tmp_path


def pretrain(capsys, *options) -> str:
    """All that `pretrain` prints with these options."""
    _, out, err = run(capsys, "pretrain", *options)
    return out + err


def test_the_package_is_not_found(here):
    command = [sys.executable, "-I", "-S", "-c", "import spanbert_tutorial"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=here).stderr
    assert len(on_the_page(told)) == 1, told


def test_not_enough_memory():
    assert len(on_the_page(error_of(lambda: torch.zeros(10**15)))) == 1


def test_a_dry_run_of_a_text_in_another_language(capsys, here):
    """Tells [UNK], the entropy to compare with, the memory and the hours."""
    vocabulary = data_path("almanac", "vocab.txt")
    told = pretrain(
        capsys, "--corpus", "korean.txt", "--vocabulary", vocabulary, "--dry-run", *SHORT
    )
    assert len(on_the_page(told)) == 4, told


def test_ids_that_the_model_does_not_have():
    """The last id of the uncased vocabulary, and the size of the cased one."""
    ids = torch.tensor([[30521]])
    ours = BertEncoder(EncoderConfig.tiny(vocab_size=28996))
    sizes = {
        "vocab_size": 28996,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
    }
    theirs = transformers.BertModel(transformers.BertConfig(**sizes, intermediate_size=8))
    assert (
        len(on_the_page(error_of(lambda: ours(ids))))
        == len(on_the_page(error_of(lambda: theirs(ids))))
        == 1
    )


def test_a_learning_rate_that_is_far_too_high(capsys, here):
    told = pretrain(
        capsys, "--corpus", "korean.txt", "--vocab-size", 100, "--learning-rate", 1e9, *SHORT
    )
    assert len(on_the_page(told)) == 2, told  # the entropy is told before


def test_a_text_that_is_not_utf8(capsys, here):
    (here / "latin.txt").write_bytes("caf\u00e9 au lait\n".encode("latin-1"))
    assert len(on_the_page(pretrain(capsys, "--corpus", "latin.txt", *SHORT))) == 1


def test_names_of_the_hub_without_a_network(capsys, here):
    told = pretrain(capsys, "--init-from", "bert-base-cased", "--corpus", "korean.txt", *SHORT)
    assert len(on_the_page(told)) == 1, told
    told = error_of(lambda: transformers.BertModel.from_pretrained("bert-base-cased"))
    assert len(on_the_page(told)) == 1, told


@pytest.mark.parametrize(
    "left", [{"config.json": 50}, {"model.safetensors": 100_000}, {"tokenizer.json": None}]
)
def test_a_damaged_checkpoint(capsys, here, left):
    """Files cut short, or without a tokenizer at all."""
    shutil.copytree(data_path("checkpoints", "spanbert-tiny"), "cut")
    ((name, size),) = left.items()
    if size is None:
        (here / "cut" / name).unlink()
    else:
        (here / "cut" / name).write_bytes((here / "cut" / name).read_bytes()[:size])
    told = pretrain(capsys, "--init-from", "cut", "--corpus", "korean.txt", *SHORT)
    assert f"{'has no ' if size is None else 'cut/'}{name}" in "".join(on_the_page(told)), told


def test_a_packed_text_that_was_cut_short(capsys, here):
    packed = data_path("almanac", "documents.jsonl.xz").read_bytes()
    (here / "cut.jsonl.xz").write_bytes(packed[:2000])
    assert len(on_the_page(pretrain(capsys, "--corpus", "cut.jsonl.xz", *SHORT))) == 1


def test_a_pipeline_that_transformers_has_removed():
    assert len(on_the_page(error_of(lambda: transformers.pipeline("question-answering")))) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the number of the error is that of Linux")
def test_the_port_is_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [
            sys.executable,
            "-m",
            "http.server",
            "--bind",
            "127.0.0.1",
            str(taken.getsockname()[1]),
        ]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60).stderr
    assert len(on_the_page(told)) == 1, told


def test_a_stopped_run_and_none(capsys, here):
    (here / "made.training").mkdir()
    assert (
        len(on_the_page(pretrain(capsys, "--corpus", "korean.txt", "--output", "made", *SHORT)))
        == 1
    )
    assert (
        len(
            on_the_page(
                pretrain(capsys, "--corpus", "korean.txt", "--output", "other", "--resume", *SHORT)
            )
        )
        == 1
    )


def test_every_quoted_message_was_met():
    """Runs after the tests above; alone it cannot tell."""
    if not seen_here:
        pytest.skip("the other tests of this file did not run")
    assert len(QUOTED) == len(set(QUOTED)) and set(QUOTED) == seen_here, set(QUOTED) - seen_here


def test_no_message_of_the_package_is_lost():
    """Each failure that a reader can meet has its message on the page."""
    for message in (
        "ModuleNotFoundError",
        "can't allocate memory",
        "this process took",
        "take the vocabulary of this model",
        "has no tokenizer.json or vocab.txt",
        "of the tokens are [UNK]",
        "Unigram entropy",
        "the loss is nan",
        "Nothing was written",
        "is not UTF-8",
        "cannot be had from the hub",
        "cannot be read as weights",
        "cannot be read as JSON",
        "is not a whole .xz file",
        "has been removed from transformers",
        "Address already in use",
        "holds a stopped run",
        "there is no stopped run",
    ):
        assert sum(message in quote for quote in QUOTED) == 1, message


def test_every_section_of_this_part_quotes_a_message_or_says_that_it_was_not_tried():
    sections = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
    titles = [part.split("\n", 1)[0] for part in sections]
    installing = PAGE.split("\n## Installing and running\n")[1].split("\n## ")[0]
    parts = re.split(r"^### ", installing, flags=re.MULTILINE)[1:]
    without = [
        part.split("\n", 1)[0]
        for part in parts
        if "```text" not in part and "Not tried here" not in part
    ]
    assert len(parts) >= 10 and without == []
    for word in (
        "Colab",
        "memory",
        "tokenizer",
        "[UNK]",
        "plateau",
        "GPU",
        "Windows",
        "Apple",
        "Offline",
        "port",
    ):
        assert any(word in title for title in titles), word


# --- the questions of SpanBERT's users ------------------------------------------------


def section(title: str) -> str:
    """The text from a heading that holds `title` to the next heading."""
    found = [
        part
        for part in re.split(r"^###? ", PAGE, flags=re.MULTILINE)
        if title in part.split("\n", 1)[0]
    ]
    assert len(found) == 1, f"{title}: {len(found)} sections"
    return found[0]


@pytest.mark.parametrize(
    "title, threads",
    [
        ("MLM head and the SBO head", [38, 44, 53, 79, 80]),
        ("fill-mask give nonsense", [29, 38]),
        ("same token wherever", []),
        ("other results in each run", [14]),
        ("Which vocabulary", [16, 54]),
        ("lower-cased", []),
        ("loading the `.bin` fail", [26, 40]),
        ("continue pre-training", [72, 79, 80, 84, 87]),
        ("NaN in fp16", [36]),
        ("same answer to everything", []),
        ("validation loss zero", [90]),
        ("memory", []),
        ("TACRED", [18, 23, 59]),
        ("unanswerable", [25]),
        ("Short answers", [4, 5, 6, 12, 18, 29, 41, 43, 73]),
    ],
)
def test_a_question_is_there_with_its_threads(title, threads):
    text = section(title)
    for number in threads:
        assert f"[{number}]({SPANBERT}{number})" in text


def test_each_answer_is_run_quoted_or_linked():
    """A section has a visible run, a quoted message or a link to another page, or it says that
    nobody tried."""
    answers: dict[str, str] = {}
    for cell in CELLS:
        source, now = "".join(cell["source"]), list(answers)[-1:]
        if cell["cell_type"] == "code":
            if now and "teach" in cell["metadata"]["tags"]:
                answers[now[0]] += "a run"
            continue
        head, *parts = re.split(r"^### ", source, flags=re.MULTILINE)
        if now and head:
            answers[now[0]] += head.split("\n## ")[0]
        for part in parts:
            title, _, text = part.partition("\n")
            answers[title] = text.split("\n## ")[0]
    assert len(answers) >= 25
    signs = "a run", "```text", ".ipynb", ".md)", "Not tried here"
    assert [one for one, text in answers.items() if not any(sign in text for sign in signs)] == []


def test_the_question_whether_spanbert_is_always_better_is_answered_elsewhere():
    text = section("Is SpanBERT always better").split("\n", 1)[1]
    words = re.sub(r"\]\(.*?\)", "]", text)
    assert words.split()[0] == "No:" and len(re.findall(r"\.(?=\s|$)", words)) == 2
    for page in ("../tasks/real_questions.ipynb", "../evidence/paper_tables.ipynb"):
        assert f"({page})" in text


def test_the_command_for_continued_pre_training_is_named():
    command = "python -m spanbert_tutorial pretrain --init-from CHECKPOINT --corpus PATH"
    assert command in section("continue pre-training")


def test_short_answers_name_license_language_and_chinese_repositories():
    text = section("Short answers")
    assert "CC BY-NC 4.0" in text and "uncased" in text and "CLUENER" in text
    assert "[CLS] and [SEP] still there" in text


# --- the runs, once more and smaller ------------------------------------------------


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The tiny checkpoint in the layout of the released ones: encoder only, no model_type, only a
    vocab.txt."""
    transformers.logging.set_verbosity_error()
    complete = data_path("checkpoints", "spanbert-tiny")
    folder = tmp_path_factory.mktemp("released")
    model, wordpiece = load_checkpoint(complete)
    torch.save(
        to_huggingface_names(model.encoder.state_dict(), prefix="bert."),
        folder / "pytorch_model.bin",
    )
    settings = json.loads((complete / "config.json").read_text(encoding="utf-8"))
    for key in ("model_type", "architectures", "spanbert_tutorial"):
        del settings[key]
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    wordpiece.save_vocabulary(folder / "vocab.txt")
    return folder


def test_only_the_head_is_missing(released):
    _, information = BertForMaskedLM.from_pretrained(released, output_loading_info=True)
    assert information["missing_keys"]
    assert all(name.startswith("cls.predictions") for name in information["missing_keys"])


def test_the_shipped_checkpoint_has_both_heads_and_fills():
    model, wordpiece = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))
    span = fill_masks(model, wordpiece, "Alice Mercer was an [MASK] .", top=1)[0]
    assert (
        span.predictions["mlm"]
        and span.predictions["sbo"]
        and span.predictions["mlm"][0][0][1] > 10 / len(wordpiece)
    )


def test_the_default_lower_cases_and_the_option_does_not(released):
    text = "Alice Mercer was an architect."
    default = BertTokenizerFast.from_pretrained(released).tokenize(text)
    told = BertTokenizerFast.from_pretrained(released, do_lower_case=False).tokenize(text)
    assert "".join(default).islower() and told[0] == "Alice"


def test_the_checkpoint_of_this_project_is_cased_for_transformers():
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        data_path("checkpoints", "spanbert-tiny")
    )
    assert tokenizer.tokenize("Alice")[0] == "Alice"


def test_what_opens_the_released_layout(released):
    for opens, path in ((BertModel, released / "pytorch_model.bin"), (AutoModel, released)):
        with pytest.raises((OSError, ValueError, KeyError)):
            opens.from_pretrained(path)
    theirs = BertModel.from_pretrained(released, add_pooling_layer=False).eval()
    ours = BertEncoder.from_huggingface(released)
    ids = torch.tensor([[2, 40, 41, 3]])
    with torch.no_grad():
        assert torch.allclose(theirs(ids)[0], ours(ids), atol=1e-5)


def test_a_file_in_place_of_a_folder_is_named(released):
    with pytest.raises(InputError, match="give the folder"):
        BertEncoder.from_huggingface(released / "pytorch_model.bin")
