"""The Help page, questions of SpanBERT's users: the themes are there, each answer is run, quoted or
linked, and the runs hold."""

import json
import re

import pytest
import torch
import transformers
from transformers import AutoModel, BertForMaskedLM, BertModel, BertTokenizerFast

from environment import ROOT
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.weights import to_huggingface_names
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.model import fill_masks

CELLS = json.loads((ROOT / "book" / "workshop" / "faq.ipynb").read_text(encoding="utf-8"))["cells"]
TEXT = "\n\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
SPANBERT = "https://github.com/facebookresearch/SpanBERT/issues/"


def section(title: str) -> str:
    """The text from a heading that holds `title` to the next heading."""
    found = [
        part
        for part in re.split(r"^###? ", TEXT, flags=re.MULTILINE)
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
