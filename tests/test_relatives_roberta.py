"""RoBERTa: parity with transformers, positions, masks that return, and four input formats."""

import json
from collections import Counter
from dataclasses import asdict
from itertools import islice

import numpy as np
import pytest
import torch
from transformers import RobertaConfig as TheirConfig
from transformers import RobertaForMaskedLM, RobertaModel

from spanbert_tutorial import almanac
from spanbert_tutorial.bert import encoder as bert
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig, MaskedLanguageModelHead
from spanbert_tutorial.bert.sentence_pairs import IS_NEXT, NOT_NEXT
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.relatives import roberta
from spanbert_tutorial.relatives.roberta import (
    FORMATS,
    FormatData,
    RobertaConfig,
    RobertaEncoder,
    natural_sentence_pairs,
    position_numbers,
    view_batches,
    views,
    with_separators,
)
from spanbert_tutorial.text.encoding import EncodedCorpus
from spanbert_tutorial.text.sentences import split_sentences

PAD = 1


def config(name="tiny", **changes) -> RobertaConfig:
    return RobertaConfig.preset(
        name, **{"vocab_size": 101, "max_position_embeddings": 34, **changes}
    )


def random_encoder(chosen=None, seed=0) -> RobertaEncoder:
    """Every weight random, biases and LayerNorm too: a swapped pair of names would show."""
    generator = torch.Generator().manual_seed(seed)
    encoder = RobertaEncoder(chosen or config(), generator)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() == 1:
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    return encoder.eval()


def batch(length=16) -> dict[str, torch.Tensor]:
    """A full row, one padded on the right, one padded in the middle, one on the left."""
    ids = torch.randint(2, 101, (4, length), generator=torch.Generator().manual_seed(1))
    ids[1, 11:] = ids[2, 5:9] = ids[3, :3] = PAD
    return {"ids": ids, "attention_mask": (ids != PAD).long()}


def difference(here, there) -> float:
    return (here - there).abs().max().item()


# --- parity -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny", "mini", "base"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hidden_states_equal_transformers(name, dtype):
    encoder = random_encoder(config(name)).to(dtype)
    model = encoder.to_huggingface()
    inputs = batch()
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        for attention in ("sdpa", "eager"):
            model.set_attn_implementation(attention)
            masked = model(inputs["ids"], attention_mask=inputs["attention_mask"]).last_hidden_state
            worst = max(
                difference(encoder(**inputs)[real], masked[real]),
                difference(encoder(inputs["ids"]), model(inputs["ids"]).last_hidden_state),
                difference(
                    encoder(inputs["ids"], torch.zeros_like(real).long()),
                    model(inputs["ids"]).last_hidden_state,
                ),
            )
            print(f"PARITY RoBERTa {name} {dtype} {attention}: {worst:.1e}")
            assert worst <= {torch.float32: 1e-5, torch.float64: 1e-10}[dtype]


def test_the_longest_input_is_two_less_than_the_position_table():
    encoder = random_encoder()
    model = random_encoder().to_huggingface()
    ids = torch.randint(2, 101, (1, 32))
    assert RobertaConfig().longest == 512 and EncoderConfig().longest == 512
    assert difference(encoder(ids), model(ids).last_hidden_state) <= 1e-5
    with pytest.raises(InputError, match="33 tokens is longer than 32"):
        encoder(torch.randint(2, 101, (1, 33)))


def test_gradients_equal_transformers():
    encoder = random_encoder().double()
    inputs = batch()
    model = encoder.to_huggingface()
    real = inputs["attention_mask"].bool()
    encoder(**inputs)[real].square().sum().backward()
    model(inputs["ids"], attention_mask=inputs["attention_mask"]).last_hidden_state[
        real
    ].square().sum().backward()
    here = bert.to_huggingface_names(
        {name: weight.grad for name, weight in encoder.named_parameters()}, layout=roberta.ROBERTA
    )
    there = {name: weight.grad for name, weight in model.named_parameters()}
    for name in ("word", "position"):  # transformers passes no gradient to the rows of padding
        here[f"embeddings.{name}_embeddings.weight"][PAD] = 0
    assert here.keys() == there.keys()
    assert max(difference(here[name], there[name]) for name in here) < 1e-8


def test_the_masked_language_model_head_is_berts():
    model = RobertaForMaskedLM(TheirConfig(**asdict(config()))).eval().double()
    with pytest.warns(UserWarning, match="lm_head"):
        encoder = RobertaEncoder.from_huggingface(model).double()
    state = model.state_dict()
    head = MaskedLanguageModelHead(128, encoder.embeddings.words.weight, 1e-5).double()
    head.load_state_dict(
        {
            name: state[f"lm_head.{name}"]
            for name in (
                "dense.weight",
                "dense.bias",
                "layer_norm.weight",
                "layer_norm.bias",
                "bias",
            )
        }
        | {"embedding_weight": encoder.embeddings.words.weight}
    )
    inputs = batch()
    real = inputs["attention_mask"].bool()
    wanted = model(inputs["ids"], attention_mask=inputs["attention_mask"]).logits[real]
    assert difference(head(encoder(**inputs)[real]), wanted) <= 1e-10


def test_weights_survive_both_ways(tmp_path):
    encoder = random_encoder()
    ids = batch()["ids"]
    encoder.to_huggingface().save_pretrained(tmp_path)
    for source in (encoder.to_huggingface(), tmp_path):
        again = RobertaEncoder.from_huggingface(source)
        assert again.config == encoder.config and type(again.config) is RobertaConfig
        assert torch.equal(again(ids), encoder(ids))


def test_a_model_with_transformers_own_defaults_is_read_too(tmp_path):
    """Two segment vectors and 512 rows: not the released sizes, but the defaults of transformers'
    RobertaConfig."""
    model = RobertaModel(
        TheirConfig(
            vocab_size=50,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
        ),
        add_pooling_layer=False,
    ).eval()
    model.save_pretrained(tmp_path)
    ids = torch.randint(2, 50, (2, 9))
    kinds = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1, 1]] * 2)
    encoder = RobertaEncoder.from_huggingface(tmp_path)
    assert encoder.config.longest == 510
    assert (
        difference(encoder(ids, kinds), model(ids, token_type_ids=kinds).last_hidden_state) < 1e-5
    )


@pytest.mark.parametrize(
    ("reads", "made", "sentence"),
    [
        (
            BertEncoder,
            random_encoder,
            "model_type is 'roberta': this encoder computes only model_type = 'bert'",
        ),
        (
            RobertaEncoder,
            lambda: BertEncoder(EncoderConfig.tiny(vocab_size=50)),
            "model_type is 'bert': this encoder computes only model_type = 'roberta'",
        ),
    ],
)
def test_the_other_kind_of_checkpoint_is_named(reads, made, sentence, tmp_path):
    model = made().to_huggingface()
    model.save_pretrained(tmp_path)
    for source in (model, tmp_path):
        with pytest.raises(InputError, match=sentence):
            reads.from_huggingface(source)


def test_berts_weights_under_robertas_config_are_named(tmp_path):
    BertEncoder(
        EncoderConfig.tiny(vocab_size=101, type_vocab_size=1)
    ).to_huggingface().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(asdict(config())))
    with pytest.raises(
        InputError, match=r"position_embeddings.weight as \(512, 128\), its config asks for \(34"
    ):
        RobertaEncoder.from_huggingface(tmp_path)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="leaves no row for a token"):
        config(max_position_embeddings=2)
    with pytest.raises(InputError, match="is not a field of RobertaConfig"):
        config(width=3)


# --- positions ----------------------------------------------------------------------


def test_positions_count_real_tokens_from_two():
    ids = torch.tensor([[0, 5, 6, 2], [0, 5, 2, PAD], [0, PAD, PAD, 2], [PAD, PAD, 7, 8]])
    assert position_numbers(ids, PAD).tolist() == [
        [2, 3, 4, 5],
        [2, 3, 4, 1],
        [2, 1, 1, 3],
        [1, 1, 2, 3],
    ]
    assert position_numbers(torch.tensor([[0, 3]]), 0).tolist() == [
        [0, 1]
    ]  # [PAD] 0, as in the almanac's vocabulary


def test_berts_positions_would_give_other_numbers():
    encoder = random_encoder()
    ids = batch()["ids"][:1]
    shifted = random_encoder()
    with torch.no_grad():
        shifted.embeddings.positions.weight.copy_(encoder.embeddings.positions.weight.roll(-2, 0))
    assert difference(encoder(ids), shifted(ids)) > 0.01


def test_padding_anywhere_changes_no_real_state():
    encoder = random_encoder().double()
    ids = batch()["ids"][:1, :10]
    for places in ([0, 1], [4, 5, 6], [10]):
        wide = torch.full((1, 10 + len(places)), PAD)
        real = torch.ones(10 + len(places), dtype=torch.bool)
        real[places] = False
        wide[0, real] = ids[0]
        assert difference(encoder(wide, None, real[None].long())[0, real], encoder(ids)[0]) < 1e-12


def test_a_pretraining_model_takes_this_encoder():
    encoder = RobertaEncoder(config(pad_token_id=0))
    model = PretrainingModel(encoder.config, Objective.named("mlm"), encoder)
    inputs = batch()
    inputs |= {
        "segments": torch.zeros_like(inputs["ids"]),
        "masked_batch": torch.tensor([0, 1]),
        "masked_position": torch.tensor([3, 4]),
        "masked_ids": torch.tensor([7, 8]),
    }
    model(inputs)["loss"].backward()
    assert encoder.embeddings.positions.weight.grad[1:17].abs().sum(1).min() > 0


# --- masks --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wordpiece():
    return WordPiece.from_file(data_path("almanac", "vocab.txt"))


def encoded(texts, wordpiece) -> EncodedCorpus:
    documents = [
        [wordpiece.encode(sentence) for sentence in split_sentences(text)] for text in texts
    ]
    ends = np.cumsum([len(sentence) for document in documents for sentence in document])
    last = np.cumsum([len(document) for document in documents]) - 1
    return EncodedCorpus(
        np.concatenate([s for d in documents for s in d]).astype(np.uint16), ends, ends[last]
    )


@pytest.fixture(scope="module")
def corpus(wordpiece):
    return encoded([document["text"] for document in islice(almanac.read("train"), 40)], wordpiece)


def data_of(corpus, wordpiece, **options) -> PretrainingData:
    return PretrainingData(corpus, wordpiece, Objective.named("mlm"), 64, 16, **options)


def seen(corpus, wordpiece, copies, epochs=40) -> list[Counter]:
    """For each block, how often each of its inputs was shown."""
    data = data_of(corpus, wordpiece)
    shown = [Counter() for _ in range(len(data))]
    for ((_, corrupted, selected, _),) in islice(
        views(data, copies, np.random.default_rng(0)), epochs
    ):
        for counter, ids, chosen in zip(shown, corrupted, selected, strict=True):
            counter[ids.tobytes() + chosen.tobytes()] += 1
    return shown


def test_static_masks_return_40_times_and_ten_copies_4_times_each(corpus, wordpiece):
    data = data_of(corpus, wordpiece)
    # a short last block of a document has few masks, so equal copies; blocks of 30 tokens and more
    # have millions
    long = np.flatnonzero(data.lengths() >= 32)
    static, copied, dynamic = (seen(corpus, wordpiece, copies) for copies in (1, 10, None))
    assert len(long) > 50
    assert all(list(counter.values()) == [40] for counter in static)
    assert all(list(copied[block].values()) == [4] * 10 for block in long)
    assert all(list(dynamic[block].values()) == [1] * 40 for block in long)


def test_all_three_ways_begin_with_the_same_masks_and_keep_the_order(corpus, wordpiece):
    def first(copies, epochs):
        streams = np.random.default_rng(1), np.random.default_rng(2)
        data = data_of(corpus, wordpiece)
        steps = -(-len(data) // 16)
        return list(islice(view_batches(data, copies, *streams), epochs * steps)), steps

    (static, steps), (copied, _), (dynamic, _) = first(1, 2), first(10, 2), first(None, 2)
    for other in (copied, dynamic):
        for here, there in zip(static[:steps], other[:steps], strict=True):
            assert all(torch.equal(here[name], there[name]) for name in here)
    originals = []
    for batches in (static, dynamic):  # in the second epoch the same blocks, under other masks
        restored = []
        for one in batches[steps:]:
            ids = one["ids"].clone()
            ids[one["masked_batch"], one["masked_position"]] = one["masked_ids"]
            restored.append(ids)
        originals.append(restored)
    assert all(torch.equal(here, there) for here, there in zip(*originals, strict=True))
    assert any(
        not torch.equal(a["ids"], b["ids"])
        for a, b in zip(static[steps:], dynamic[steps:], strict=True)
    )


def test_a_view_holds_every_block_once(corpus, wordpiece):
    data = data_of(corpus, wordpiece)
    batches = list(
        islice(view_batches(data, 1, *map(np.random.default_rng, (0, 1))), -(-len(data) // 16))
    )
    assert sum(len(one["ids"]) for one in batches) == len(data)
    assert sum(int(one["attention_mask"].sum()) for one in batches) == data.lengths().sum()


def test_pairs_have_views_too(corpus, wordpiece):
    data = PretrainingData(corpus, wordpiece, Objective.named("mlm+nsp"), 64, 16)
    one = next(view_batches(data, 1, *map(np.random.default_rng, (0, 1))))
    assert one["segments"].max() == 1


def test_no_copy_is_refused(corpus, wordpiece):
    with pytest.raises(InputError, match="0 copies show nothing"):
        next(views(data_of(corpus, wordpiece), 0, np.random.default_rng(0)))


# --- formats ------------------------------------------------------------------------


def format_data(corpus, wordpiece, form, length=64) -> FormatData:
    return FormatData(corpus, wordpiece, length, 16, form=form)


def document_of(corpus, place) -> int:
    return int(np.searchsorted(corpus.document_ends, place, side="right"))


@pytest.mark.parametrize("form", FORMATS)
def test_inputs_fit_and_hold_what_the_name_says(form, corpus, wordpiece):
    data = format_data(corpus, wordpiece, form)
    assert data.lengths().max() <= 64 and len(data.crossing) == len(data)
    assert (data.labels is not None) == ("NSP" in form) == (data.objective.paired is not None)
    assert data.crossing.any() == (form != "DOC-SENTENCES") and not data.crossing.all()
    assert data.statistics()["padding"] == pytest.approx(1 - data.lengths().mean() / 64)
    batch = next(data.epoch(np.random.default_rng(0)))
    assert ("next_sentence" in batch) == ("NSP" in form)


def test_doc_sentences_are_the_blocks_of_the_single_sequence(corpus, wordpiece):
    ours = format_data(corpus, wordpiece, "DOC-SENTENCES")
    assert (ours.segments[0] == data_of(corpus, wordpiece).segments[0]).all()


def test_full_sentences_keep_the_text_and_mark_every_border_inside(corpus, wordpiece):
    data = format_data(corpus, wordpiece, "FULL-SENTENCES")
    ids = [data.corpus.ids[start:end] for start, end in data.segments[0]]
    separators = [(block == wordpiece.sep_id) for block in ids]
    text = np.concatenate([block[~borders] for block, borders in zip(ids, separators, strict=True)])
    assert (text == corpus.ids).all()
    assert not any(borders[0] or borders[-1] for borders in separators)
    assert (data.crossing == [borders.any() for borders in separators]).all()
    assert sum(borders.sum() for borders in separators) < len(corpus.document_ends)


def test_a_separator_is_never_chosen(corpus, wordpiece):
    data = format_data(corpus, wordpiece, "FULL-SENTENCES")
    for seed in range(20):
        for one in data.epoch(np.random.default_rng(seed)):
            assert (one["masked_ids"] != wordpiece.sep_id).all()


def test_a_sentence_as_long_as_a_block_leaves_no_separator_at_an_edge(wordpiece):
    corpus = encoded(
        ["The mill is old. It is old. It is new.", "The river is old.", "It is new."], wordpiece
    )
    for length in range(6, 20):
        data = format_data(corpus, wordpiece, "FULL-SENTENCES", length)
        for start, end in data.segments[0]:
            block = data.corpus.ids[start:end]
            assert len(block) and wordpiece.sep_id not in (block[0], block[-1])
        assert sum(
            len(data.corpus.ids[a:b]) - (data.corpus.ids[a:b] == wordpiece.sep_id).sum()
            for a, b in data.segments[0]
        ) == len(corpus.ids)


def test_separators_stand_behind_every_document(corpus, wordpiece):
    joined = with_separators(corpus, wordpiece.sep_id)
    places = np.flatnonzero(joined.ids == wordpiece.sep_id)
    assert (places == corpus.document_ends + np.arange(len(corpus.document_ends))).all()
    assert set(places + 1) <= set(
        joined.sentence_ends.tolist()
    ) and joined.document_ends.tolist() == [len(joined.ids)]
    assert len(joined.sentence_ends) == len(corpus.sentence_ends)


def test_natural_pairs_are_two_whole_sentences(corpus):
    pairs = natural_sentence_pairs(corpus, 200, np.random.default_rng(0))
    starts = {0, *corpus.sentence_ends.tolist()}
    ends = corpus.sentence_ends.tolist()
    following = dict(zip([0, *ends], ends, strict=False))
    for (a, b), (c, d), label in zip(pairs.first, pairs.second, pairs.labels, strict=True):
        assert a in starts and following[a] == b and following[c] == d
        same = document_of(corpus, a) == document_of(corpus, c)
        assert (label == IS_NEXT) == (b == c and same) and (label == NOT_NEXT) == (not same)
    own = [*pairs.first.tolist(), *pairs.second[pairs.labels == IS_NEXT].tolist()]
    assert sorted(own) == sorted([a, b] for a, b in following.items())
    assert pairs.truncated == pairs.borrowed_truncated == 0
    share = (pairs.labels == NOT_NEXT).mean()
    assert 0.5 < share < 0.62 and 0 < pairs.alone <= len(corpus.document_ends)


def test_natural_pairs_that_do_not_fit_are_cut(corpus):
    pairs = natural_sentence_pairs(corpus, 15, np.random.default_rng(0))
    assert (np.diff(pairs.first) + np.diff(pairs.second)).max() == 15
    own = np.diff(pairs.first).sum() + np.diff(pairs.second[pairs.labels == IS_NEXT]).sum()
    assert own + pairs.truncated == len(corpus.ids) and pairs.borrowed_truncated > 0


def test_formats_that_cannot_be_are_refused(corpus, wordpiece):
    with pytest.raises(InputError, match='"pairs" is unknown: use one of SEGMENT'):
        format_data(corpus, wordpiece, "pairs")
