"""One label or score for a sentence or a pair: the files of GLUE, scores and their traps, parity with
transformers, cutting, learning and keeping a model, controls."""

import json
import lzma

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parity import sizes
from test_main import run
from transformers import BertConfig, BertForSequenceClassification

from research.measurements import sentence_baselines
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.weights import from_huggingface_names
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.tasks import classification
from spanbert_tutorial.tasks.classification import (
    ClassificationData,
    ClassificationModel,
    Framed,
    score,
)
from spanbert_tutorial.tasks.fine_tuning import FineTuning, stacked
from spanbert_tutorial.tasks.sentence_files import read

TINY = data_path("checkpoints", "spanbert-tiny")

# The layout of each file, as GLUE hands it out, on sentences written here: the file, and what it
# means.
FILES = {
    "cola": (
        "xx00\t1\t\tThe river rose.\nxx00\t0\t*\tThe rose river.\n",
        [(("The river rose.", None), "1"), (("The rose river.", None), "0")],
    ),
    "sst2": (
        'sentence\tlabel\na fine evening \t1\n" dull \t0\n',
        [(("a fine evening ", None), "1"), (('" dull ', None), "0")],
    ),
    "mrpc": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe said "yes.\tHe agreed.\n',
        [(('He said "yes.', "He agreed."), "1")],
    ),
    "stsb": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tnews\tmine\t2020\t0\tnone\tnone\tA boat lands.\tA ship lands.\t4.250\n",
        [(("A boat lands.", "A ship lands."), 4.25)],
    ),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n3\t5\t6\tWhere is it?\tWhere does "
        "it lie?\t1\n"
        "4\t7\t8\tcut off\n",
        [(("Where is it?", "Where does it lie?"), "1")],
    ),
    "mnli": (
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
        "sentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label\n"
        "0\t1\t1n\tfiction\t( )\t( )\t(R)\t(R)\tIt rained.\tIt was wet.\tneutral\tentailment\n",
        [(("It rained.", "It was wet."), "entailment")],
    ),
    "qnli": (
        "index\tquestion\tsentence\tlabel\n0\tWho came?\tAnn Hill came.\tentailment\n",
        [(("Who came?", "Ann Hill came."), "entailment")],
    ),
    "rte": (
        "index\tsentence1\tsentence2\tlabel\n0\tIt rained.\tIt was dry.\tnot_entailment\n",
        [(("It rained.", "It was dry."), "not_entailment")],
    ),
    "wnli": (
        "index\tsentence1\tsentence2\tlabel\n0\tAnn saw Eva, and she fell.\tEva fell.\t1\n",
        [(("Ann saw Eva, and she fell.", "Eva fell."), "1")],
    ),
}


@pytest.fixture
def file(tmp_path):
    """Writes a file and gives its path."""

    def write(text: str, name: str = "train.tsv"):
        path = tmp_path / name
        path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())
        return path

    return write


# --- the table and the files --------------------------------------------------------


@pytest.mark.parametrize("packing", ["", ".xz"])
@pytest.mark.parametrize("name", FILES)
def test_each_layout(name, packing, file):
    text, wanted = FILES[name]
    assert read(file(text, f"train.tsv{packing}"), subtask=name) == wanted
    assert read(file(text.replace("\n", "\r\n")), subtask=name) == wanted


# --- scores -------------------------------------------------------------------------


def test_scores_worked_by_hand():
    # 2 right ones, 1 missed, 1 false, 6 right zeros
    gold = list("1110000000")
    said = list("1100000001")
    assert score("sst2", gold, said) == pytest.approx({"accuracy": 80})
    assert score("mrpc", gold, said) == pytest.approx({"f1": 100 * 2 * 2 / 6, "accuracy": 80})
    assert score("cola", gold, said) == pytest.approx(
        {"matthews": 100 * (2 * 6 - 1 * 1) / (3 * 3 * 7 * 7) ** 0.5}
    )
    right = score("stsb", [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 9.0])
    assert right == pytest.approx({"pearson": 100 * 14.0 / (5 * 50.0) ** 0.5, "spearman": 100})
    assert score("stsb", [0.0, 1.0, 2.0], [5, 3, 1]) == pytest.approx(
        {"pearson": -100, "spearman": -100}
    )
    assert score("mnli", ["neutral"], ["neutral"]) == {"accuracy": 100}
    with pytest.raises(InputError, match="differ in length"):
        score("stsb", [0.0, 1.0], [1.0])


@given(st.lists(st.tuples(st.sampled_from("01"), st.sampled_from("01")), min_size=2, max_size=12))
def test_scores_agree_with_a_second_writing(pairs):
    gold, said = zip(*pairs, strict=True)
    if len(set(gold)) == 2:
        a, b, c, d = (
            sum(pair == each for pair in pairs)
            for each in (("1", "1"), ("1", "0"), ("0", "1"), ("0", "0"))
        )
        root = ((a + b) * (a + c) * (d + b) * (d + c)) ** 0.5
        assert score("cola", gold, said)["matthews"] == pytest.approx(
            100 * (a * d - b * c) / root if root else 0
        )
        assert score("mrpc", gold, said)["f1"] == pytest.approx(200 * a / (2 * a + b + c))


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 2), min_size=2, max_size=12))
def test_correlations_agree_with_a_second_writing(pairs):
    gold, said = np.array(pairs, dtype=float).T
    if np.ptp(gold) and np.ptp(said):
        found = score("stsb", gold.tolist(), said.tolist())
        assert found["pearson"] == pytest.approx(100 * np.corrcoef(gold, said)[0, 1], abs=1e-6)
        ranks = [
            [(np.sum(row < value) + np.sum(row <= value)) / 2 for value in row]
            for row in (gold, said)
        ]
        assert found["spearman"] == pytest.approx(100 * np.corrcoef(*ranks)[0, 1], abs=1e-6)


# --- models -------------------------------------------------------------------------


PAIR = ("The Swan Club was founded in Upton.", "It was founded in 1873.")


def test_scores_are_those_of_transformers(wordpiece):
    torch.manual_seed(0)
    small = sizes(32, 64)
    theirs = BertForSequenceClassification(
        BertConfig(vocab_size=2_000, **small, num_labels=3, initializer_range=0.3)
    )
    ours = ClassificationModel(BertEncoder(EncoderConfig(vocab_size=2_000, **small)), 3)
    encoder, others = from_huggingface_names(theirs.state_dict())
    ours.encoder.load_state_dict(encoder)
    for name, layer in (("bert.pooler.dense", ours.pooler), ("classifier", ours.classifier)):
        layer.load_state_dict({part: others[f"{name}.{part}"] for part in ("weight", "bias")})
    batch = stacked(
        [Framed.of(one, wordpiece, 64) for one in (PAIR, (PAIR[0], None))], wordpiece.pad_id
    )
    label = torch.tensor([2, 0])
    with torch.no_grad():
        wanted = theirs.eval()(
            batch["input_ids"], batch["attention_mask"], batch["token_type_ids"], labels=label
        )
        assert torch.allclose(ours.eval().scores(batch), wanted.logits, atol=1e-5)
        assert ours(batch | {"label": label})["loss"].item() == pytest.approx(
            wanted.loss.item(), abs=1e-5
        )


@pytest.mark.parametrize("length", [5, 6, 9, 12, 100])
def test_the_longer_sentence_is_cut_at_its_end(wordpiece, length):
    framed = Framed.of(PAIR, wordpiece, length)
    first, second = (wordpiece.encode(text) for text in PAIR)
    kept = [int((framed.segments == segment).sum()) for segment in (0, 1)]
    kept[0], kept[1] = kept[0] - 2, kept[1] - 1
    assert framed.ids[1 : 1 + kept[0]].tolist() == first[: kept[0]].tolist()
    assert framed.ids[2 + kept[0] : -1].tolist() == second[: kept[1]].tolist()
    assert len(framed.ids) == min(length, len(first) + len(second) + 3)
    if length < 12:
        assert 0 <= kept[0] - kept[1] <= 1 and min(kept) >= 1


def test_batches_carry_the_labels_that_occur(wordpiece):
    data = ClassificationData(
        [(PAIR, "yes"), ((PAIR[0], None), "no")], wordpiece, FineTuning(max_length=64)
    )
    batch = data.batch(np.array([1, 0]), np.random.default_rng(0))
    assert data.facts == {"labels": ["no", "yes"]} and batch["label"].tolist() == [0, 1]
    assert batch["attention_mask"].sum(1).tolist() == data.lengths()[[1, 0]].tolist()


def test_the_loss_of_a_score_is_the_mean_squared_error(wordpiece):
    torch.manual_seed(0)
    small = sizes(32, 64, layers=1)
    model = classification.RegressionModel(
        BertEncoder(EncoderConfig(vocab_size=2_000, **small))
    ).eval()
    pairs = [("Upton lies there.", "Upton."), ("Upton.", "It is Upton.")]
    inputs = [Framed.of(pair, wordpiece, 32) for pair in pairs]
    batch = stacked(inputs, wordpiece.pad_id) | {"label": torch.tensor([-1.0, 1.0])}
    with torch.no_grad():
        scores = model.scores(batch)[:, 0]
        wanted = ((scores[0] + 1) ** 2 + (scores[1] - 1) ** 2) / 2
        assert model(batch)["loss"].item() == pytest.approx(wanted.item())
        model.classifier.weight.zero_()
        model.classifier.bias.zero_()
        assert model(batch)["loss"].item() == pytest.approx(1)  # who always says the mean


def learned(kind: str) -> list:
    towns = ["Upton", "Barton", "Denholm", "Foxley"]
    if kind == "scores":  # how long the town's name is
        return [
            ((f"The club is in {town}.", "It has a ground."), float(len(town))) for town in towns
        ]
    if kind == "pairs":  # about the same town or not: no single sentence says it
        return [
            ((f"The club is in {a}.", f"We went to {b}."), "same" if a == b else "other")
            for a in towns
            for b in [*towns, a, a]
        ]
    return [((f"The club is in {town}.", None), str(town in towns[:2])) for town in towns]


@pytest.mark.parametrize("kind", ["labels", "pairs", "scores"])
def test_a_model_learns_is_kept_and_says_the_same(kind, wordpiece, tmp_path):
    examples = learned(kind)
    encoder = load_checkpoint(TINY)[0].encoder
    epochs = 80 if kind == "pairs" else 300
    settings = FineTuning(epochs, 8, peak_learning_rate=1e-3, max_length=24, dropout=0.0)
    model, history = classification.fine_tune(encoder, wordpiece, examples, settings)
    wanted = [label for _, label in examples]
    said = model.predict(examples)
    if kind == "scores":  # the model learns standard scores
        assert (model.facts["mean"], model.facts["spread"]) == (np.mean(wanted), np.std(wanted))
    dropouts = (one for one in model.model.modules() if isinstance(one, torch.nn.Dropout))
    assert {one.p for one in dropouts} == {0.0}
    assert history.losses["loss"][-1] < 0.3
    assert said == (pytest.approx(wanted, abs=0.5) if kind == "scores" else wanted)
    assert model.predict([]) == [] and json.loads(json.dumps(said)) == said
    model.save(tmp_path / "model", {"README.md": "mine"})
    again = classification.SentencePredictor.from_pretrained(tmp_path / "model")
    assert again.facts == model.facts  # without a subtask, as earlier ones
    assert again.predict(examples) == (pytest.approx(said, abs=0.01) if kind == "scores" else said)
    with pytest.raises(InputError, match="has no head of this task"):
        classification.SentencePredictor.from_pretrained(TINY)


def test_the_command(tmp_path, capsys, file):
    rows = "".join(
        f"{i}\tThe club is in Upton.\tIt is in {'Upton' if i % 2 else 'Foxley'}.\t"
        f"{'entailment' if i % 2 else 'not_entailment'}\n"
        for i in range(20)
    )
    data = file(f"index\tsentence1\tsentence2\tlabel\n{rows}")
    model, line = tmp_path / "m", f"sentences --data {data} --subtask"
    options = "--epochs 30 --max-length 32 --learning-rate 1e-3"
    finetune = f"finetune {line} rte --init-from {TINY} --output {model} {options}"
    code, said, wrong = run(capsys, finetune)
    assert (code, wrong) == (0, "") and "20 examples, 2 labels, 0 skipped." in said
    evaluate = f"--model {model} --output {tmp_path / 's'}"
    code, said, wrong = run(capsys, f"evaluate {line} rte {evaluate}")
    assert (code, wrong) == (0, "20 examples, 2 labels, 0 skipped.\n")
    assert json.loads(said) == {"accuracy": 100}
    code, _, wrong = run(capsys, f"evaluate {line} sst2 {evaluate}2")
    assert code == 2 and 'line 1: SST-2 needs a column "sentence"' in wrong
    sst = file("sentence\tlabel\nA.\t1", "sst")
    predict = f"predict sentences --data {sst} {evaluate}3 --subtask"
    wanted = {"rte": 'RTE needs a column "sentence1" and', "cola": "with --subtask rte, not cola"}
    for subtask in wanted:
        code, _, wrong = run(capsys, f"{predict} {subtask}")
        assert code == 2 and wanted[subtask] in wrong


# --- controls -----------------------------------------------------------------------


def test_a_control_sees_what_its_name_says():
    yes = [((f"The club {n} is in Upton.", "Upton has a club."), "same") for n in range(6)]
    no = [((f"The club {n} is in Upton.", "The mill burned down."), "other") for n in range(6)]
    said = sentence_baselines.controls(yes * 20 + no * 10, yes + no)
    assert set(said["majority"]) == {"same"}
    assert set(said) == {"majority", "bag of words", "second only", "overlap"}
    for name in ("bag of words", "second only", "overlap"):
        assert said[name] == ["same"] * 6 + ["other"] * 6, name
    crossed = [
        ((a, b), "same" if a == b else "other")
        for a in ("Upton", "Foxley")
        for b in ("Upton", "Foxley")
    ] * 5
    said = sentence_baselines.controls(crossed, crossed)
    assert said["overlap"] == [label for _, label in crossed]  # compares; the other two cannot
    for name in ("bag of words", "second only"):
        right = [label == gold for label, (_, gold) in zip(said[name], crossed, strict=True)]
        assert sum(right) == len(right) / 2
