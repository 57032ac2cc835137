"""Each way in which the hub can fail has one clear sentence, whatever the client raises."""

import httpx2
import pytest
import torch
from huggingface_hub import errors, snapshot_download
from test_few_questions import released_folder

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.weights import checkpoint_folder, hub_trouble
from spanbert_tutorial.errors import InputError

NAME = "SpanBERT/spanbert-base-cased"


def answer_of(status: int) -> httpx2.Response:
    """What the hub's server sends back."""
    return httpx2.Response(status, request=httpx2.Request("GET", f"https://huggingface.co/{NAME}"))


def caused_by(error: Exception, cause: Exception) -> Exception:
    """As `raise error from cause`, the client's way to say that there is no copy on the disk."""
    error.__cause__ = cause
    return error


MISSING = errors.RepositoryNotFoundError("404 Client Error", response=answer_of(404))
LIMIT = errors.HfHubHTTPError("429 Client Error", response=answer_of(429))
NOT_HERE = "Cannot find an appropriate cached snapshot folder"
CASES = {
    "missing": (MISSING, "(no public model has this name): check the spelling"),
    "limit": (LIMIT, "(HTTP 429, too many requests from this address): wait some minutes"),
    "limit, nothing on disk": (
        caused_by(errors.LocalEntryNotFoundError(NOT_HERE), LIMIT),
        "(HTTP 429, too many requests from this address): wait some minutes",
    ),
    "offline": (
        caused_by(errors.LocalEntryNotFoundError(NOT_HERE), errors.OfflineModeIsEnabled("no")),
        "(HF_HUB_OFFLINE is set): unset it, or load the model once with a network",
    ),
    "wrong size": (
        OSError("Consistency check failed: file should be of size 215 but has size 9 (a.bin)."),
        "(the download broke off): try again with a network",
    ),
    "broken off": (httpx2.RemoteProtocolError("peer closed"), "(the download broke off)"),
    "no network": (
        caused_by(errors.LocalEntryNotFoundError(NOT_HERE), httpx2.ConnectError("refused")),
        "(LocalEntryNotFoundError): check the name and the network",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_failure_of_the_hub_has_its_sentence(monkeypatch, case):
    error, sentence = CASES[case]

    def fail(*_, **__):
        raise error

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    with pytest.raises(InputError) as caught:
        BertEncoder.from_huggingface(NAME)
    told = str(caught.value)
    assert told.startswith(
        f"{NAME} is no folder here and cannot be had from the hub ({sentence[1]}"
    )
    assert sentence in told and told.endswith(".") and "\n" not in told


def test_a_part_of_a_model_on_the_disk():
    """Newer clients notice that a download was not finished, when there is no network to go on."""
    broken = getattr(errors, "IncompleteSnapshotError", None)
    if broken is None:  # an older client gives the folder, and its missing file is named
        broken = type("IncompleteSnapshotError", (Exception,), {"__init__": lambda *_: None})
    error = caused_by(broken("incomplete", "somewhere"), errors.OfflineModeIsEnabled("no"))
    assert hub_trouble(error) == "(the download broke off): try again with a network"


def test_the_real_client_without_a_network(monkeypatch, tmp_path):
    """No stand-in for the client here: HF_HUB_OFFLINE is set, and its cache is empty."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(errors.LocalEntryNotFoundError):
        snapshot_download(NAME)
    with pytest.raises(InputError, match=r"\(HF_HUB_OFFLINE is set\): unset it, or load"):
        checkpoint_folder(NAME)


def test_the_real_client_offers_what_is_in_its_cache(monkeypatch, tmp_path):
    """Loaded once, a model opens without a network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    model = tmp_path / "models--SpanBERT--spanbert-base-cased"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("b436fe6")
    released_folder(model / "snapshots" / "b436fe6")
    assert BertEncoder.from_huggingface(NAME).config.hidden_size == 32


@pytest.mark.parametrize("bytes_left", [0, 1, 1000])
def test_half_a_file_is_named(tmp_path, bytes_left):
    folder = released_folder(tmp_path / "half")
    file = folder / "pytorch_model.bin"
    file.write_bytes(file.read_bytes()[:bytes_left])
    with pytest.raises(
        InputError, match=r"pytorch_model.bin cannot be read as weights .*: download it again"
    ):
        BertEncoder.from_huggingface(folder)


def test_code_in_a_bin_file_is_never_run(tmp_path):
    class Harmful:
        def __reduce__(self):
            return open, (str(tmp_path / "made"), "w")

    folder = released_folder(tmp_path / "harmful")
    torch.save({"weight": Harmful()}, folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot be read as weights"):
        BertEncoder.from_huggingface(folder)
    assert not (tmp_path / "made").exists()
