"""What an encoder takes in: frames, batches and the sum of three embeddings."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertEmbeddings

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.inputs import NO_TARGET, Embeddings, collate, frame
from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece

WORDPIECE = WordPiece({token: i for i, token in enumerate([*SPECIALS, *"abcdefgh"])})
PAD = WORDPIECE.pad_id
CLS = WORDPIECE.cls_id
SEP = WORDPIECE.sep_id
MASK = WORDPIECE.mask_id
parts = st.lists(st.lists(st.integers(5, 12), max_size=9), min_size=1, max_size=2)


def segment_of(rows: list[list[int]], chosen: list[list[bool]]) -> MaskedBlocks:
    """Blocks with rubbish where the padding is."""
    shape = (len(rows), max(map(len, rows)) + 2)
    original = np.full(shape, 9, dtype=np.int64)
    selected = np.ones(shape, dtype=bool)
    for i, (row, hidden) in enumerate(zip(rows, chosen, strict=True)):
        original[i, : len(row)], selected[i, : len(row)] = row, hidden
    return MaskedBlocks(
        original, np.where(selected, MASK, original), selected, np.array([len(row) for row in rows])
    )


framed = partial(frame, cls_id=CLS, sep_id=SEP)


@given(parts)
def test_a_frame_adds_one_cls_and_a_sep_for_each_sentence(sentences):
    ids, kinds = framed(*sentences)
    assert len(ids) == len(kinds) == sum(map(len, sentences)) + 1 + len(sentences)
    assert ids[0] == CLS and ids[-1] == SEP and (ids == SEP).sum() == len(sentences)
    assert kinds[ids == SEP].tolist() == list(range(len(sentences))) and (np.diff(kinds) >= 0).all()
    for number, sentence in enumerate(sentences):
        inside = ids[(kinds == number) & (ids != CLS)]
        assert inside.tolist() == [*sentence, SEP]


def test_a_batch_by_hand():
    first = segment_of([[5, 6, 7], [8]], [[False, True, False], [False]])
    second = segment_of([[9], [10, 11]], [[True], [False, True]])
    batch = collate([first, second], WORDPIECE)
    assert batch["input_ids"].tolist() == [
        [CLS, 5, MASK, 7, SEP, MASK, SEP],
        [CLS, 8, SEP, 10, MASK, SEP, PAD],
    ]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1, 0]]
    assert batch["attention_mask"].int().tolist() == [[1] * 7, [1] * 6 + [0]]
    assert batch["masked_positions"].tolist() == [2, 5, 7 + 4]
    assert batch["labels"][batch["labels"] != -100].tolist() == [6, 9, 11]
    assert batch["attention_mask"].dtype == torch.bool
    assert all(
        value.dtype == torch.int64 for name, value in batch.items() if name != "attention_mask"
    )


@given(st.data())
def test_a_batch_equals_its_rows(data):
    count = data.draw(st.integers(1, 4))
    sentences = data.draw(st.integers(1, 2))
    segments = []
    for _ in range(sentences):
        rows = [data.draw(st.lists(st.integers(5, 12), max_size=7)) for _ in range(count)]
        chosen = [
            data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row))) for row in rows
        ]
        segments.append(segment_of(rows, chosen))
    batch = collate(segments, WORDPIECE)
    originals = torch.full_like(batch["input_ids"], NO_TARGET)
    originals[batch["labels"] != -100] = batch["labels"][batch["labels"] != -100]
    special = torch.isin(batch["input_ids"], torch.tensor([CLS, SEP, PAD]))
    assert (originals[special] == NO_TARGET).all()
    for row in range(count):
        n = int(batch["attention_mask"][row].sum())
        ids, kinds = framed(*(part[1][row, : part[3][row]] for part in segments))
        assert batch["input_ids"][row, :n].tolist() == ids.tolist()
        assert (batch["input_ids"][row, n:] == PAD).all()
        assert batch["token_type_ids"][row, :n].tolist() == kinds.tolist()
        assert (batch["token_type_ids"][row, n:] == 0).all()
        restored, _ = framed(*(part[0][row, : part[3][row]] for part in segments))
        hidden = originals[row, :n] != NO_TARGET
        assert (
            torch.where(hidden, originals[row, :n], batch["input_ids"][row, :n]).tolist()
            == restored.tolist()
        )
        assert int(hidden.sum()) == sum(part[2][row, : part[3][row]].sum() for part in segments)


@pytest.fixture(scope="module")
def both():
    """Our embeddings and transformers', with the same random weights."""
    config = EncoderConfig.tiny(vocab_size=40, hidden_dropout_prob=0.0)
    ours = Embeddings(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in ours.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator))
    theirs = BertEmbeddings(
        BertConfig(vocab_size=40, hidden_size=128, hidden_dropout_prob=0.0)
    ).eval()
    names = {
        f"{kind}_embeddings": f"{kind}_embeddings" for kind in ("word", "position", "token_type")
    }
    names |= {"layer_norm": "LayerNorm"}
    for here, there in names.items():
        getattr(theirs, there).load_state_dict(getattr(ours, here).state_dict())
    return ours, theirs


@pytest.mark.parametrize("n", [1, 7, 512])
def test_embeddings_equal_transformers(both, n):
    ours, theirs = both
    generator = torch.Generator().manual_seed(n)
    ids = torch.randint(0, 40, (3, n), generator=generator)
    segments = torch.randint(0, 2, (3, n), generator=generator)
    with torch.no_grad():
        assert torch.allclose(
            ours(ids, segments), theirs(ids, token_type_ids=segments), rtol=0, atol=1e-6
        )
        assert torch.equal(ours(ids, None), ours(ids, torch.zeros_like(ids)))
        assert torch.allclose(ours(ids, None), theirs(ids), rtol=0, atol=1e-6)
