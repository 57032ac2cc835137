"""`pretrain` with its further options: --init-from, --leave-out, --half, --accumulate, --dry-run;
what stops it."""

import json

import pytest
import torch
from parity import random_weights, sizes
from test_bert import released
from test_main import OBJECTS, SMALL, SUBJECTS, VERBS, run

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.commands.pretrain import HELD_OUT_BATCHES
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.evaluation import held_out_metrics


@pytest.fixture(scope="module")
def titled(tmp_path_factory):
    """120 documents with titles, in a folder."""
    folder = tmp_path_factory.mktemp("titled")
    sentence = "{} {} {}.".format
    with (folder / "texts.jsonl").open("w", encoding="utf-8") as file:
        for i in range(120):
            text = " ".join(
                sentence(SUBJECTS[(i + j) % 5], VERBS[(i * j) % 5], OBJECTS[(i + 2 * j) % 5])
                for j in range(6)
            )
            file.write(json.dumps({"title": f"Title {i}", "text": text}) + "\n")
    return folder


def test_the_checkpoint_decides_size_vocabulary_and_dropout(capsys, monkeypatch, tmp_path, titled):
    """An uncased checkpoint with a vocab.txt alone, of the size mini, with dropout in its
    config."""
    source = tmp_path / "source"
    source.mkdir()
    from transformers import BertConfig, BertForMaskedLM

    words = sorted({*" ".join([*SUBJECTS, *VERBS, *OBJECTS]).lower().split()})
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *words]
    small = sizes(256, 1024, layers=4, heads=4)
    model = BertForMaskedLM(BertConfig(vocab_size=len(tokens), **small))
    model.save_pretrained(source)
    (source / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (source / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    given = f"--init-from {source} --steps 2 --batch-size 4 --max-length 24 --objective mlm"
    trained = runs.pretrain
    dropouts = []
    monkeypatch.setattr(
        runs,
        "pretrain",
        lambda run, text, model, *more: (
            dropouts.extend(
                part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)
            )
            or trained(run, text, model, *more)
        ),
    )
    line = f"pretrain {given} --corpus {titled} --output {tmp_path}"
    code, out, err = run(capsys, f"{line}/made")
    assert set(dropouts) == {0.0}  # goes on without, whatever the config keeps
    assert (code, err) == (0, "") and "[UNK]" not in out and "new heads: none" in out
    made = json.loads((tmp_path / "made" / "config.json").read_text(encoding="utf-8"))
    assert (made["num_hidden_layers"], made["hidden_dropout_prob"]) == (4, 0.1)
    code, out, err = run(capsys, f"{line}/new --max-length 513")
    assert code == 2 and "512 positions" in err and "--max-length" in err and "Reading" not in out
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    (source / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    code, _, err = run(capsys, f"{line}/new")
    assert code == 2 and "3 layers of width 256" in err and "--config" in err


def test_a_stopped_run_keeps_to_its_text(capsys, monkeypatch, tmp_path, titled):
    corpus = tmp_path / "corpus"
    made = tmp_path / "made"
    corpus.mkdir()
    text = (titled / "texts.jsonl").read_text(encoding="utf-8")
    (corpus / "texts.jsonl").write_text(text, encoding="utf-8")
    given = f"pretrain --corpus {corpus} --output {made}", *SMALL

    measured = held_out_metrics

    def stop(model, run, text, most, **more):
        if most == HELD_OUT_BATCHES:  # after the last step
            raise KeyboardInterrupt
        return measured(model, run, text, most, **more)

    with monkeypatch.context() as patch:
        patch.setattr("spanbert_tutorial.commands.pretrain.held_out_metrics", stop)
        code, _, err = run(capsys, *given)
    assert code == 130
    assert err == "Stopped: continue with the same command and --resume.\n"
    assert not made.exists()
    # as long as before
    (corpus / "texts.jsonl").write_text(text.replace("boat", "coat"), encoding="utf-8")
    code, _, err = run(capsys, *given, "--resume")
    assert code == 2 and "started with a different text" in err
    (corpus / "texts.jsonl").write_text(text, encoding="utf-8")
    (corpus / "notes.md").write_text("no text of the corpus")
    with monkeypatch.context() as patch:
        patch.setattr("spanbert_tutorial.pretraining.checkpoints.save_file", full)
        code, _, err = run(capsys, *given, "--resume")
    assert code == 2
    assert "No space left" in err
    assert "Then continue with the same command and --resume." in err
    assert not made.exists()
    moved = corpus.rename(tmp_path / "moved")  # the same text in another place
    given = f"pretrain --corpus {moved} --output {made}", *SMALL, "--resume"
    assert run(capsys, *given)[0] == 0 and made.is_dir()
    assert not (tmp_path / "made.training").exists()


def test_a_released_spanbert_is_a_start_once_its_vocabulary_is_given(capsys, tmp_path, titled):
    """Its layout: no model_type, a .bin file, an encoder without heads, and no vocabulary beside
    it."""
    sizes = {"vocab_size": 2_000, "max_position_embeddings": 64}
    folder = tmp_path / "released"
    folder.mkdir()
    released(folder, random_weights(BertEncoder, EncoderConfig.tiny(**sizes)))
    options = "--steps 6 --batch-size 8 --max-length 24"
    given = (
        f"pretrain --init-from {folder} --corpus {titled} --output {tmp_path / 'made'} {options}"
    )
    code, _, err = run(capsys, given)
    assert code == 2 and "vocabulary" in err and err.count("\n") == 1
    code, out, err = run(capsys, given, "--vocabulary", data_path("almanac", "vocab.txt"))
    assert (code, err) == (0, "") and "new heads: masked_language_model, boundary" in out
    assert (tmp_path / "made" / "model.safetensors").is_file()


def full(*anything, **more):
    raise OSError(28, "No space left on device")
