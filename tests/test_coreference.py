"""Coreference: segments, spans, the model against slow ways to compute the same, training,
checkpoints, the command."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_main import run

from research.almanac import coreference as labels
from research.measurements import coreference_rules as more
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.tasks import coreference as coref
from spanbert_tutorial.tasks import coreference_baselines as controls
from spanbert_tutorial.tasks.conll import Document
from spanbert_tutorial.tasks.fine_tuning import (
    FineTuning,
    SecondRate,
)

TINY = data_path("checkpoints", "spanbert-tiny")
NORA = Document(
    "nora",
    [["Nora", "Lund", "lost", "her", "key", "."], ["Lund", "found", "it", "."]],
    [[(0, 1), (3, 3), (6, 6)], [(3, 4), (8, 8)], [(4, 4)]],
)


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    some = list(almanac.coreference("test"))[:6]
    return [coref.plain(one["text"], one["id"], one["clusters"]) for one in some]


def small_model(wordpiece, seed=0, singletons=True):
    torch.manual_seed(seed)
    encoder = BertEncoder(
        EncoderConfig.preset("tiny", vocab_size=len(wordpiece)), torch.Generator().manual_seed(seed)
    )
    return coref.CoreferenceModel(encoder, 4, singletons).eval()


# --- the almanac's labels -----------------------------------------------------------


def test_labels_of_the_almanac_fit_its_text():
    """Every pronoun and every description such as "the club" is a mention; names are those of the
    entity labels."""
    count = {"documents": 0, "mentions": 0, "several": 0}
    for document in almanac.coreference():
        text = document["text"]
        mentions = sorted(span for cluster in document["clusters"] for span in cluster)
        assert all(
            first[1] <= second[0] for first, second in zip(mentions, mentions[1:], strict=False)
        )
        named = [tuple(entity[:2]) for entity in document["entities"]]
        assert set(named) <= set(mentions)
        for word in labels.POINTING.finditer(text):
            assert any(start < word.end() and word.start() < end for start, end in mentions), (
                document["id"],
                word,
            )
        entity = {tuple(one[:2]): one[3] for one in document["entities"]}
        for cluster in document["clusters"]:
            assert cluster == sorted(cluster)
            assert len({entity[span] for span in cluster if span in entity}) == 1
        count["documents"] += 1
        count["mentions"] += len(mentions)
        count["several"] += sum(len(cluster) > 1 for cluster in document["clusters"])
    assert count == {"documents": 2451, "mentions": 43221, "several": 8257}


# --- documents ----------------------------------------------------------------------


@given(
    st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=6), min_size=1, max_size=6),
    st.integers(4, 9),
)
def test_segments_end_with_sentences_where_they_can(sentences, room):
    """sentences: tokens of each word."""
    tokens = [count for sentence in sentences for count in sentence]
    ends = coref.segment_ends([len(sentence) for sentence in sentences], tokens, room)
    inside = np.cumsum([len(sentence) for sentence in sentences]).tolist()
    whole = {0, len(tokens)}
    assert ends == sorted(set(ends)) and ends[-1] == len(tokens)
    for first, stop in zip([0, *ends], ends, strict=False):
        assert 0 < sum(tokens[first:stop]) <= room
        if stop not in inside:  # cut inside a sentence: only one that is too long
            sentence = next(i for i, end in enumerate(inside) if end > stop)
            assert sum(sentences[sentence]) > room
        elif stop not in whole:  # the next sentence would not have fitted
            following = sentences[inside.index(stop) + 1]
            assert sum(tokens[first:stop]) + sum(following) > room


def test_words_and_their_tokens(wordpiece, documents):
    for document in documents:
        (one,) = coref.segmented(document, wordpiece, 64)
        assert len(one.ids) > 1 and len(one.words) == len(document.words) == len(one.sentences)
        for word, (segment, first, last) in zip(document.words, one.words, strict=True):
            assert one.ids[segment][first : last + 1].tolist() == wordpiece.encode(word).tolist()
        for row in one.ids:
            assert len(row) <= 64 and [row[0], row[-1]] == [wordpiece.cls_id, wordpiece.sep_id]


def test_parts_of_a_document_keep_the_mentions_inside_them(wordpiece, documents):
    document = documents[0]
    parts = coref.segmented(document, wordpiece, 32, segments=2)
    assert len(parts) > 1 and all(len(part.ids) <= 2 for part in parts)
    borders = np.cumsum([0, *(len(part.words) for part in parts)]).tolist()
    assert borders[-1] == len(document.words)
    kept = {
        (int(a) + begin, int(b) + begin, int(c))
        for part, begin in zip(parts, borders, strict=False)
        for a, b, c in part.mentions
    }
    wanted = {
        (a, b, number)
        for number, cluster in enumerate(document.clusters)
        for a, b in cluster
        if not any(a < border <= b for border in borders)
    }
    assert kept == wanted


# --- spans --------------------------------------------------------------------------


def test_candidates_stay_inside_sentences_and_segments():
    sentences = torch.tensor([0, 0, 0, 1, 1])
    segments = torch.tensor([0, 0, 1, 1, 1])
    spans = coref.candidates(sentences, segments, 2).tolist()
    assert spans == [[0, 0], [0, 1], [1, 1], [2, 2], [3, 3], [3, 4], [4, 4]]


scored_spans = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 5)), max_size=20
)


@given(scored_spans, st.integers(1, 6))
def test_kept_spans_are_the_best_that_do_not_cross(some, most):
    spans = list(dict.fromkeys((first, first + width) for first, width, _ in some))
    scores = [score for *_, score in some][: len(spans)]
    slow = []
    for number in sorted(range(len(spans)), key=lambda number: -scores[number]):
        a, b = spans[number]
        if len(slow) < most and not any(
            a < c <= b < d or c < a <= d < b for c, d in (spans[n] for n in slow)
        ):
            slow.append(number)
    assert coref.kept(spans, scores, most) == sorted(slow, key=lambda number: spans[number])


def test_links_become_clusters():
    mentions = [(0, 1), (3, 3), (3, 4), (6, 6), (8, 8)]
    assert coref.linked(mentions, [-1, 0, -1, 1, 2]) == [
        [(0, 1), (3, 3), (6, 6)],
        [(3, 4), (8, 8)],
    ]
    assert coref.linked([], []) == []


# --- the model ----------------------------------------------------------------------


def test_vectors_of_spans_by_hand(wordpiece):
    """First state, last state, the weighted mean of all states, the width."""
    vectors = small_model(wordpiece).span_vectors
    hidden = torch.randn(2, 7, 128)
    words = torch.tensor([[0, 1, 2], [0, 3, 3], [0, 4, 5], [1, 1, 1], [1, 2, 5]])
    spans = torch.tensor([[0, 0], [0, 2], [1, 2], [3, 4], [4, 4]])
    found = vectors(hidden, words, spans)
    for row, (first, last) in enumerate(spans.tolist()):
        segment = int(words[first, 0])
        begin = int(words[first, 1])
        end = int(words[last, 2])
        inside = hidden[segment, begin : end + 1]
        weights = vectors.attention(inside)[:, 0].softmax(0)
        wanted = torch.cat(
            [inside[0], inside[-1], weights @ inside, vectors.widths.weight[last - first]]
        )
        assert torch.allclose(found[row], wanted, atol=1e-5)


def test_the_loss_worked_by_hand():
    """Three mentions: the second belongs to the first; the third is none, so ε is right."""
    scores = torch.tensor([[0.0, -torch.inf, -torch.inf], [0.0, 2.0, -torch.inf], [0.0, 1.0, -1.0]])
    antecedents = torch.tensor([[-1, -2], [0, -1], [1, 0]])
    document = coref.Scored(torch.zeros(3, 2), torch.zeros(3), torch.arange(3), antecedents, scores)
    e = np.exp
    wanted = 0 - np.log(e(2) / (1 + e(2))) - np.log(1 / (1 + e(1) + e(-1)))
    assert float(coref.antecedent_loss(document, torch.tensor([5, 5, -1]))) == pytest.approx(
        wanted, abs=1e-5
    )
    # of one cluster all three: the third has two right antecedents, whose probabilities are added
    wanted = -np.log(e(2) / (1 + e(2))) - np.log((e(1) + e(-1)) / (1 + e(1) + e(-1)))
    assert float(coref.antecedent_loss(document, torch.tensor([5, 5, 5]))) == pytest.approx(
        wanted, abs=1e-5
    )


@torch.no_grad()
def test_a_mention_looks_only_back_and_scores_add_up(wordpiece, documents):
    model = small_model(wordpiece)
    batch = coref.stacked(coref.segmented(documents[0], wordpiece, 64), wordpiece.pad_id)
    (found,) = model.documents(batch)
    assert len(found.chosen) == int(coref.RATIO * len(documents[0].words))
    assert (found.scores[:, 0] == 0).all()
    here = torch.arange(len(found.chosen))[:, None]
    assert torch.equal(found.antecedents, here - torch.arange(1, len(here) + 1))
    assert torch.equal(found.scores[:, 1:].isneginf(), found.antecedents < 0)
    vectors = model.span_vectors(*hidden_of(model, batch), found.spans)[found.chosen]
    own = model.antecedent_scorer(vectors, found.antecedents.clamp(min=0))[5, 2]
    s_m = found.mention_scores[found.chosen]
    assert float(found.scores[5, 3]) == pytest.approx(float(s_m[5] + s_m[2] + own), abs=1e-4)


def hidden_of(model, batch):
    """States and words of the first document of a batch."""
    ids = batch["input_ids"]
    hidden = model.encoder(ids.flatten(0, 1), attention_mask=batch["attention_mask"].flatten(0, 1))
    return hidden.view(*ids.shape, -1)[0], batch["words"][0]


def test_a_document_scores_the_same_alone_and_in_a_batch(wordpiece, documents):
    model = small_model(wordpiece)
    parts = [coref.segmented(document, wordpiece, 64)[0] for document in documents[:3]]
    together = list(model.documents(coref.stacked(parts, wordpiece.pad_id)))
    for part, found in zip(parts, together, strict=True):
        (alone,) = model.documents(coref.stacked([part], wordpiece.pad_id))
        assert torch.equal(alone.spans, found.spans)
        assert torch.allclose(alone.mention_scores, found.mention_scores, atol=1e-4)


@torch.no_grad()
def test_shares_of_a_batch_add_up_to_its_loss(wordpiece, documents):
    """The loss is a mean over words, so several processes give what one gives."""
    model = small_model(wordpiece)
    data = coref.CoreferenceData(documents, wordpiece, FineTuning(batch_size=4, max_length=64))
    batch = data.batch(np.arange(4), np.random.default_rng(0))
    targets = (batch[data.target_field] != NO_TARGET).sum()
    assert targets == sum(len(one.words) for one in data.inputs[:4])
    shares = [data.share(batch, number, 2) for number in range(2)]
    whole = model(batch)["loss"]
    mean = sum(model(part)["loss"] * part["weight"] for part in shares) / 2
    assert float(mean) == pytest.approx(float(whole), rel=1e-4)


# --- training, and what is kept -----------------------------------------------------


@pytest.fixture(scope="module")
def learned(wordpiece, documents):
    """A model that has seen six documents many times."""
    settings = FineTuning(
        epochs=25, batch_size=2, max_length=128, peak_learning_rate=2e-3, dropout=0.0
    )
    return coref.fine_tune(load_checkpoint(TINY)[0].encoder, wordpiece, documents, settings)


def test_a_model_learns_its_documents_by_heart(learned, documents):
    resolver, history = learned
    found = coref.score(documents, resolver.predict(documents))
    assert found["average"] > 90 and history.losses["loss"][-1] < history.losses["loss"][0] / 10
    rules = [controls.same_head(one, controls.rule_mentions(one)) for one in documents]
    assert found["average"] > coref.score(documents, rules)["average"]


def test_the_layers_after_the_encoder_may_learn_faster(wordpiece, documents, monkeypatch):
    rates = []

    class Seen(SecondRate):
        def on_start(self, state):
            super().on_start(state)
            encoder = set(self.model.encoder.parameters())
            for group in state.optimizer.param_groups:
                assert len({weight in encoder for weight in group["params"]}) == 1
            assert sum(len(group["params"]) for group in state.optimizer.param_groups) == len(
                [*self.model.parameters()]
            )

        def on_log(self, state):
            rates.append([group["lr"] for group in state.optimizer.param_groups])

    monkeypatch.setattr("spanbert_tutorial.tasks.fine_tuning.SecondRate", Seen)
    settings = FineTuning(
        epochs=1, batch_size=1, max_length=64, peak_learning_rate=1e-4, task_learning_rate=1e-3
    )
    coref.fine_tune(load_checkpoint(TINY)[0].encoder, wordpiece, documents[:2], settings)
    for encoder, _, head, _ in rates:
        assert head == pytest.approx(10 * encoder)
    assert max(encoder for encoder, *_ in rates) == pytest.approx(1e-4)
    assert coref.PRESETS["spanbert"].task_learning_rate == 1e-4


def test_predictions_are_clusters_without_labels(learned, documents):
    resolver, _ = learned
    bare = [Document(one.name, one.sentences) for one in documents]
    assert resolver.predict(bare) == resolver.predict(documents)
    for document, clusters in zip(documents, resolver.predict(bare), strict=True):
        mentions = [mention for cluster in clusters for mention in cluster]
        assert len(mentions) == len(set(mentions))
        assert all(0 <= a <= b < len(document.words) for a, b in mentions)


def test_a_checkpoint_gives_the_same_clusters(learned, documents, tmp_path):
    resolver, _ = learned
    resolver.save(tmp_path / "model", {"README.md": "A model.\n"})
    again = coref.CoreferenceResolver.from_pretrained(tmp_path / "model")
    assert (again.max_length, again.model.max_words, again.model.singletons) == (
        128,
        resolver.model.max_words,
        True,
    )
    one, other = (coref.score(documents, some.predict(documents)) for some in (resolver, again))
    assert other["average"] == pytest.approx(one["average"], abs=2)  # half precision on disk
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    del config["spanbert_tutorial"]["max_words"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="no 'max_words'"):
        coref.CoreferenceResolver.from_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match="has no head of this task"):
        coref.CoreferenceResolver.from_pretrained(TINY)


def rows(document):
    """A document in CoNLL's format."""
    mentions = [(*mention, n) for n, cluster in enumerate(document.clusters) for mention in cluster]
    yield f"#begin document ({document.name}); part 0"
    for word, text in enumerate(document.words):
        edges = [f"({n})" for first, last, n in mentions if first == last == word]
        edges += [f"({n}" for first, last, n in mentions if first == word < last]
        edges += [f"{n})" for first, last, n in mentions if first < word == last]
        yield f"{document.name}\t0\t{word}\t{text}\t{'|'.join(edges) or '-'}"
    yield "#end document"


def test_the_command(documents, tmp_path, capsys):
    lines = [row for document in documents for row in rows(document)]
    (tmp_path / "train.conll").write_text("\n".join(lines), encoding="utf-8")
    model = tmp_path / "model"
    scores = tmp_path / "scores"
    data = tmp_path / "train.conll"
    line = f"finetune coreference --data {data} --init-from {TINY} --epochs 0.2 --output {model}"
    code, said, wrong = run(capsys, line)
    assert (code, wrong) == (0, "") and "6 documents, 54 clusters, 0 skipped." in said
    evaluate = f"evaluate coreference --model {model} --data"
    code, said, wrong = run(capsys, f"{evaluate} {data} --output {scores}")
    assert (code, wrong) == (0, "6 documents, 54 clusters, 0 skipped.\n")
    found = json.loads((scores / "score.json").read_text())
    assert found == json.loads(said)
    assert {"muc", "b_cubed", "ceaf_phi4", "average", "two_or_more"} <= found.keys()
    assert len(json.loads((scores / "predictions.json").read_text())) == 6
    (tmp_path / "bad.conll").write_text("Nora\n", encoding="utf-8")
    code, _, wrong = run(capsys, f"{evaluate} {tmp_path / 'bad.conll'} --output {tmp_path / 'b'}")
    assert code == 2 and "bad.conll, line 1: a row outside of a document" in wrong


def test_scores_with_and_without_clusters_of_one():
    perfect = coref.score([NORA], [NORA.clusters])
    assert perfect["average"] == perfect["two_or_more"]["average"] == 100
    assert perfect["mentions"] == (100, 100, 100)
    fewer = coref.score([NORA], [[[[0, 1], [3, 3], [6, 6]], [[3, 4], [8, 8]]]])  # as JSON gives it
    assert fewer["two_or_more"]["average"] == 100 and fewer["average"] < 100
    assert fewer["mentions"][:2] == (100, pytest.approx(100 * 5 / 6))


# --- controls -----------------------------------------------------------------------


def test_mentions_by_rule():
    assert more.gold_mentions(NORA) == [(0, 1), (3, 3), (3, 4), (4, 4), (6, 6), (8, 8)]
    # Nora: only first
    assert [NORA.text(one) for one in controls.rule_mentions(NORA)] == ["Lund", "her", "Lund", "it"]
    text = coref.plain("The rain met Nora Lund in Upton. Nora ran home. She fell.")
    assert [text.text(one) for one in controls.rule_mentions(text)] == [
        "Nora Lund",
        "Upton",
        "Nora",
        "She",
    ]


def test_joining_by_rule():
    text = coref.plain("He saw Ann Hill. Hill saw him, and she told Ann Hill so. It was Ben Hill.")
    mentions = controls.rule_mentions(text)

    def joined(rule):
        return [[text.text(mention) for mention in cluster] for cluster in rule(text, mentions)]

    he = ["He", "him"]
    ann = ["Ann Hill", "Ann Hill"]
    assert joined(more.same_string) == [he, ann, ["Hill"], ["she"], ["It"], ["Ben Hill"]]
    assert joined(controls.same_head) == [
        he,
        ["Ann Hill", "Hill", "Ann Hill", "Ben Hill"],
        ["she"],
        ["It"],
    ]
    hill = ["Ann Hill", "Hill", "him", "she", "Ann Hill", "It", "Ben Hill"]
    assert joined(more.nearest) == [["He"], hill]
    assert joined(more.alone) == [[text.text(mention)] for mention in mentions]
