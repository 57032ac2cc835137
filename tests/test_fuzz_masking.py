"""Hostile calls of masking: wild shares, lengths, shapes and types. The oracle is in `fuzz`."""

import math

import numpy as np
from fuzz import REFUSED, Door
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.bert import masking
from spanbert_tutorial.spanbert import boundary, span_masking

door = Door("masking calls")
counts = door.counts()

WILD = st.sampled_from(
    [
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        1e-320,
        1e308,
        2**31,
        2**63,
        10**400,
        True,
        None,
        "0.15",
        "",
        "nan",
        [],
        1j,
        np.float16(0.3),
        np.nan,
        np.int64(3),
        np.array([1, 2]),
    ]
)
NUMBERS = WILD | st.floats(0, 1) | st.floats() | st.integers(-2, 20) | st.integers()
ROWS = 4
LONGEST = 12
ARRAYS = st.builds(
    lambda shape, kind, seed: np.random.default_rng(seed).integers(0, 4, shape).astype(kind),
    st.lists(st.integers(0, LONGEST), max_size=3).map(tuple),
    st.sampled_from([bool, np.int64, np.uint8, np.float64, object, "U3", "datetime64[s]"]),
    st.integers(0, 9),
)


@st.composite
def blocks(draw):
    """word_starts [B,n] and lengths [B], often as they should be."""
    rows = draw(st.integers(0, ROWS))
    size = draw(st.integers(0, LONGEST))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    starts = rng.random((rows, size)) < 0.6
    lengths = rng.integers(0, size + 1, rows)
    return draw(st.just(starts) | ARRAYS), draw(st.just(lengths) | ARRAYS)


@st.composite
def schemes(draw):
    """Calls that make a scheme."""
    kind = draw(
        st.sampled_from([masking.TokenMasking, masking.WholeWordMasking, span_masking.SpanMasking])
    )
    good = {"mask_ratio": st.floats(0, 1)}
    if kind is span_masking.SpanMasking:
        good |= {
            "p": st.floats(0.01, 1),
            "max_words": st.integers(1, 20),
            "complete_words": st.booleans(),
        }
    return kind, {name: draw(values | NUMBERS) for name, values in good.items()}


@door.inputs(short=400, share=0.5)
@given(schemes(), blocks(), st.integers(0, 99))
def test_a_scheme_chooses_its_budget_or_refuses(made, given, seed):
    kind, settings = made
    scheme = door.call(kind, **settings)
    if scheme is REFUSED:
        return
    starts, lengths = given
    selected = door.call(scheme.select_batch, starts, lengths, np.random.default_rng(seed))
    if selected is REFUSED:
        return
    assert selected.dtype == bool and selected.shape == np.shape(starts)
    for row, length in zip(selected, lengths, strict=True):
        length, budget = int(length), scheme.budget(int(length))
        assert not row[length:].any() and 0 <= budget <= length and row.sum() <= budget
        if kind is masking.TokenMasking or not getattr(scheme, "complete_words", True):
            assert row.sum() == budget


@door.inputs(short=200, share=0.25)
@given(
    ARRAYS,
    ARRAYS,
    NUMBERS | st.just(3),
    ARRAYS,
    st.tuples(NUMBERS, NUMBERS) | NUMBERS,
    st.sampled_from(["span", "token", "", None, 1]),
    st.sets(st.sampled_from(["arrays", "numbers", "others"])),
)
def test_what_the_model_sees_differs_only_where_it_was_chosen(
    ids, selected, mask_id, others, shares, unit, right
):
    """right: which arguments are as they should be; where all are, there is an answer."""
    if "arrays" in right:
        ids = np.arange(15).reshape(3, 5)
        selected = np.arange(15).reshape(3, 5) % 2 == 0
    if "numbers" in right:
        mask_id = 99
        shares = (0.8, 0.1)
        unit = "token"
    if "others" in right:
        others = np.array([7, 8])
    before = np.array(ids, copy=True)
    made = door.call(
        masking.corrupt,
        ids,
        selected,
        np.random.default_rng(0),
        mask_id=mask_id,
        random_ids=others,
        unit=unit,
        shares=shares,
    )
    assert made is not REFUSED or len(right) < 3
    if made is not REFUSED:
        assert made.shape == before.shape and (
            made.dtype == before.dtype or before.dtype.kind not in "iu"
        )
        kept = ~np.asarray(selected, dtype=bool)
        assert (made[kept] == before[kept]).all()


@door.inputs(short=200, share=0.25)
@given(blocks(), ARRAYS, NUMBERS | st.integers(1, 6))
def test_targets_stand_inside_their_block(given, ids, most):
    selected, lengths = given
    ids = ids if ids.size % 3 else np.arange(selected.size).reshape(selected.shape)
    made = door.call(boundary.boundary_targets, selected, ids, lengths, most)
    if made is not REFUSED:
        left, right = made.pairs.numpy().T
        assert (left >= 1).all() and (right > left + 1).all()
        assert (right <= np.asarray(lengths)[made.batch.numpy()]).all()
