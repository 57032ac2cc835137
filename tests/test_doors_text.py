"""Texts, vocabularies and weights as they are found outside: in any script, with markup, split, hidden,
prefixed. Each is read right, or refused by name."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, normalizers

import spanbert_tutorial as st
from spanbert_tutorial.__main__ import main
from spanbert_tutorial.bert.weights import read_weights
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary
from spanbert_tutorial.tasks.coreference_scores import score
from spanbert_tutorial.text.corpora import documents

TINY = data_path("checkpoints", "spanbert-tiny")


def lines(folder, *texts, name="text.txt"):
    path = folder / name
    path.write_text("\n\n".join(texts), encoding="utf-8")
    return path


def run(capsys, *words):
    code = main(["pretrain", "--held-out-every", "10", "--steps", "20", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out + said.err


SHORT = ("--max-length", "32", "--batch-size", "8", "--output")


# --- vocabularies -------------------------------------------------------------------


def test_every_character_of_the_text_has_a_place():
    texts = [
        "".join(map(chr, range(0x4E00 + row, 0x4E00 + row + 40))) for row in range(0, 1_800, 40)
    ]
    wordpiece = WordPiece.train(texts, 8_000)
    assert len(wordpiece) == 1_805
    assert not any(wordpiece.unk_id in ids for ids in wordpiece.encode_many(texts))
    assert len(WordPiece.train(texts, 1_500)) == 1_500  # the commonest that fit


def test_ids_without_a_token():
    wordpiece = read_vocabulary(TINY)
    assert wordpiece.tokens([7, 2_001]) == [wordpiece.vocabulary[7], "[id 2001]"]
    with pytest.raises(InputError, match="no token has the id -100"):
        wordpiece.tokens([-100, 7])


def test_a_blank_tail_is_passed_over_and_a_second_column_is_named(tmp_path):
    tokens = read_vocabulary(TINY).vocabulary
    blank = tmp_path / "blank.txt"
    blank.write_text("\n".join(tokens) + "\n\n", encoding="utf-8")
    assert WordPiece.from_file(blank).vocabulary == tokens
    tabs = tmp_path / "tabs.txt"
    tabs.write_text("".join(f"{token}\t3\n" for token in tokens), encoding="utf-8")
    with pytest.raises(InputError, match="a tab and a second column"):
        WordPiece.from_file(tabs)


def test_words_without_spaces_between_them(tmp_path, capsys):
    text = lines(tmp_path, *["ก" * 120 + f" {row}" for row in range(60)])
    assert main(["inspect", "--corpus", str(text), "--held-out-every", "10"]) == 0
    said = capsys.readouterr().out
    assert "words have more than 100 characters" in said and "-0.00" not in said


# --- tokenizers of checkpoints ------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(TINY, tmp_path / "checkpoint")


def set_in(folder, **more):
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | more))


def listed(folder, source=TINY):
    """vocab.txt instead of tokenizer.json."""
    read_vocabulary(source).save_vocabulary(folder / "vocab.txt")


def tokens(source, text):
    wordpiece = read_vocabulary(source)
    return wordpiece.tokens(wordpiece.encode(text))


@pytest.mark.parametrize("steps", [False, True])
def test_the_normalizer_of_the_file_runs(folder, tmp_path, steps):
    own = Tokenizer.from_file(str(folder / "tokenizer.json"))
    lower = normalizers.Lowercase()
    own.normalizer = normalizers.Sequence([normalizers.NFD(), lower]) if steps else lower
    own.add_tokens(["COVID-19"])
    own.save(str(folder / "tokenizer.json"))
    assert tokens(folder, "RIVER Veltin COVID-19") == ["river", "v", "##el", "##tin", "COVID-19"]
    wordpiece = read_vocabulary(folder)
    larger = wordpiece.with_tokens(["[SUBJ]", "river"])
    assert larger.vocabulary == [*wordpiece.vocabulary, "[SUBJ]"]
    assert larger.encode("RIVER [SUBJ]")[0] == wordpiece.encode("river")[0]
    larger.save(tmp_path)
    assert tokens(tmp_path, "RIVER") == ["river"]


def test_settings_that_change_tokens_are_obeyed_or_refused(folder):
    set_in(folder, do_lower_case=True)
    assert tokens(folder, "RIVER") == ["river"]
    listed(folder)
    (folder / "tokenizer.json").unlink()
    assert tokens(folder, "RÍVER") == ["river"]  # as BERT does, without its accents
    set_in(folder, do_lower_case=False, tokenize_chinese_chars=False, anything="else")
    assert tokens(folder, "漢字です") == ["[UNK]"]
    for more, named in (
        ({"tokenizer_class": "BertJapaneseTokenizer"}, "BertJapaneseTokenizer"),
        ({"tokenizer_class": "BertTokenizer", "do_basic_tokenize": False}, "do_basic_tokenize"),
        ({"do_basic_tokenize": True, "added_tokens_decoder": {"9": {"content": "Nor-1"}}}, "Nor-1"),
    ):
        set_in(folder, **more)
        with pytest.raises(InputError, match=named):
            read_vocabulary(folder)


def test_two_vocabularies_that_disagree(folder):
    listed(folder)
    assert len(read_vocabulary(folder)) == 2_000
    listed(folder, data_path("checkpoints", "spanbert-mini"))
    with pytest.raises(InputError, match="disagree"):
        read_vocabulary(folder)


# --- weights ------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod.", "model."])
def test_prefixes_are_dropped(folder, prefix):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({prefix + name: w for name, w in weights.items()}, folder / "pytorch_model.bin")
    assert read_weights(folder).keys() == weights.keys()


def test_split_weights(folder):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    parts = {name: f"model-0000{number % 2 + 1}.safetensors" for number, name in enumerate(weights)}
    for part in set(parts.values()):
        save_file({name: weights[name] for name in parts if parts[name] == part}, folder / part)
    assert all(torch.equal(w, weights[name]) for name, w in read_weights(folder).items())
    (folder / part).unlink()
    with pytest.raises(InputError, match="Missing key"):
        st.BertEncoder.from_huggingface(folder)


# --- texts --------------------------------------------------------------------------


def test_articles_and_headings(tmp_path):
    marked = "".join(f'<doc id="{n}" title="A">\nA{n}\n\nOne.\n\nTwo.\n</doc>\n' for n in range(3))
    assert len(list(documents(lines(tmp_path, marked)))) == 3
    headed = "".join(" = Title = \n \n One . \n \n = = Part = = \n \n Two . \n" for _ in range(3))
    assert len(list(documents(lines(tmp_path, headed)))) == 3


def test_hidden_files_are_left_out(tmp_path):
    lines(tmp_path, "One text.")
    (tmp_path / "._text.txt").write_bytes(b"\xff\xfe")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    lines(tmp_path / ".ipynb_checkpoints", "An old one.")
    assert list(documents(tmp_path)) == [["One text."]]


def test_pairs_need_second_sentences(tmp_path, capsys):
    one = lines(tmp_path, *["The ferry left at nine"] * 40)
    code, said = run(capsys, "--corpus", one, "--objective", "mlm+nsp", *SHORT, tmp_path / "out")
    assert code == 2 and "no document has two sentences" in said
    several = lines(tmp_path, *["诺拉买了船。她走了！你好？很好。"] * 40)
    given = ("--corpus", several, "--objective", "mlm+nsp")
    code, said = run(capsys, *given, *SHORT, tmp_path / "out")
    assert code == 0 and " NotNext (" in said and "100.0% NotNext" not in said


@pytest.mark.parametrize(
    "text, objective, cause",
    [("PROTEIN", "span", "no token was masked"), ("river boat", "span+sbo", "SBO has no target")],
)
def test_a_mean_over_nothing_is_refused(tmp_path, capsys, text, objective, cause):
    texts = [text] * 60
    if text == "PROTEIN":
        letters = np.random.default_rng(0).choice([*"ACDEFGHIKLMNPQRSTVWY"], (60, 60))
        texts = ["".join(row) for row in letters]
    path = lines(tmp_path, *texts)
    given = ("--corpus", path, "--vocab-size", 60, "--objective", objective)
    code, said = run(capsys, *given, *SHORT, tmp_path / "out")
    assert code == 2 and cause in said and "0.00" not in said
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.training").exists()


# --- wrong calls --------------------------------------------------------------------


def test_wrong_calls_of_public_names(tmp_path):
    encoder = st.BertEncoder(st.EncoderConfig.tiny(vocab_size=50))
    ids = torch.ones(1, 4, dtype=torch.long)
    with pytest.raises(TypeError):
        encoder(ids, torch.ones(1, 4))
    for name in ("token_type_ids", "attention_mask"):
        with pytest.raises(InputError, match=rf"{name}: shape \('list',\): give a tensor of"):
            encoder(ids, **{name: [[1, 1, 1, 1]]})
    wrong = {"warmup": 15, "peak_learning_rate": -1, "steps": 0, "batch_size": 0, "seed": -1}
    for name, value in wrong.items():
        with pytest.raises(InputError, match=name):
            st.Run(**{name: value})
    with pytest.raises(InputError, match="complete_words"):
        st.SpanMasking(complete_words="no")
    model, wordpiece = st.load_checkpoint(TINY)
    with pytest.raises(InputError, match="boundary"):
        st.save_checkpoint(tmp_path / "x", model, wordpiece, "mlm", {})
    assert not (tmp_path / "x").exists()
    clusters = json.loads("[[[0, 1], [3, 3]]]")
    assert score(clusters, (cluster for cluster in clusters))["average"] == 100
    assert np.isfinite(score(clusters, [])["average"])
