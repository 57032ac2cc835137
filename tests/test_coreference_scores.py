"""Scores of coreference: examples of the literature worked by hand, traps, and a second, slow way
to count."""

from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbert_tutorial.tasks.coreference_scores import (
    METRICS,
    score,
    score_documents,
    without_singletons,
)

KEY = ["12345", "67", "89ABC"]  # Bagga and Baldwin (1998), Luo (2005); each letter is a mention


def f1(precision, recall):
    return 2 * precision * recall / (precision + recall) if precision + recall else 0


def percent(precision, recall):
    """Precision, recall and F1 in percent, about equal."""
    return pytest.approx((100 * precision, 100 * recall, 100 * f1(precision, recall)))


# --- the literature -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "muc", "b_cubed", "ceaf"),
    [
        # two entities joined: the second with the third, or the first with the third (worse, and
        # MUC does not see it)
        (["12345", "6789ABC"], (9 / 10, 1), (16 / 21, 1), ((1 + 10 / 12) / 2, (1 + 10 / 12) / 3)),
        (["1234589ABC", "67"], (9 / 10, 1), (7 / 12, 1), ((1 + 10 / 15) / 2, (1 + 10 / 15) / 3)),
        # everything in one entity, and every mention alone
        (["123456789ABC"], (9 / 11, 1), ((25 + 4 + 25) / 144, 1), (10 / 17, 10 / 17 / 3)),
        (list("123456789ABC"), (0, 0), (1, 3 / 12), (4 / 3 / 12, 4 / 3 / 3)),
    ],
)
def test_the_examples_of_bagga_and_baldwin_and_of_luo(response, muc, b_cubed, ceaf):
    found = score(KEY, response)
    for name, (precision, recall) in {"muc": muc, "b_cubed": b_cubed, "ceaf_phi4": ceaf}.items():
        assert found[name] == percent(precision, recall), name
    assert found["average"] == pytest.approx(
        100 * sum(f1(*pair) for pair in (muc, b_cubed, ceaf)) / 3
    )


def test_the_figures_that_luo_prints():
    """Table 1 of the paper: F1 of MUC, B³ and φ4-CEAF for the four systems above, in percent."""
    systems = [["12345", "6789ABC"], ["1234589ABC", "67"], ["123456789ABC"], list("123456789ABC")]
    found = [score(KEY, system) for system in systems]
    printed = [(94.7, 86.5, 73.3), (94.7, 73.7, 66.7), (90.0, 54.5, 29.4), (0, 40.0, 17.8)]
    names = ("muc", "b_cubed", "ceaf_phi4")
    assert [tuple(round(one[name][2], 1) for name in names) for one in found] == printed


@pytest.mark.parametrize(
    ("key", "response", "precision", "recall"),
    [
        (["ABCD"], ["AB", "CD"], 2 / 2, 2 / 3),  # one link is missing
        (["AB", "CD"], ["ABCD"], 2 / 3, 2 / 2),  # one link too many
        (["ABCD"], ["AB", "C", "D"], 1 / 1, 1 / 3),
        (["ABCD"], ["ABC"], 2 / 2, 2 / 3),  # D, which the response lacks, is a part of its own
        (["ABC", "DEFG"], ["AB", "CD", "FGHI"], 2 / 5, 2 / 5),
    ],
)
def test_links_as_vilain_counts_them(key, response, precision, recall):
    assert score(key, response)["muc"] == percent(precision, recall)


def test_mentions_that_only_one_side_has():
    """Pradhan and others (2014): key {a,b,c} {d,e,f,g}, response {a,b} {c,d} {f,g,h,i}."""
    found = score(["abc", "defg"], ["ab", "cd", "fghi"])
    assert found["muc"] == percent(2 / 5, 2 / 5)
    recall = (4 / 3 + 1 / 3 + 1 / 4 + 4 / 4) / 7
    precision = (4 / 2 + 1 / 2 + 1 / 2 + 4 / 4) / 8
    assert found["b_cubed"] == percent(precision, recall)
    phi4 = 4 / 5 + 4 / 8
    assert found["ceaf_phi4"] == percent(phi4 / 3, phi4 / 2)
    assert found["mentions"] == percent(6 / 8, 6 / 7)


# --- traps --------------------------------------------------------------------------


def test_singletons_count_for_mentions_and_entities_but_not_for_links():
    with_one = score(["ab", "c"], ["ab", "c"])
    without = score(["ab", "c"], ["ab"])
    assert with_one["muc"] == without["muc"] == (100, 100, 100)
    assert with_one["b_cubed"] == with_one["ceaf_phi4"] == (100, 100, 100)
    assert without["b_cubed"][:2] == pytest.approx((100, 100 * 2 / 3))
    assert without["ceaf_phi4"][:2] == (100, 50)
    assert without_singletons(["ab", "c"]) == ["ab"]
    assert score(["a"], ["a"])["muc"] == (0, 0, 0)
    assert score(["a"], ["a"])["average"] == pytest.approx(200 / 3)


@pytest.mark.parametrize(("key", "response"), [([], []), (["ab"], []), ([], ["ab"])])
def test_a_share_of_nothing_is_zero(key, response):
    assert score(key, response) == {**dict.fromkeys(METRICS, (0, 0, 0)), "average": 0}


def test_documents_are_added_up_before_dividing():
    """One link of one right and none of three: 1/4, and not the mean of 1 and 0."""
    both = score_documents([(["ab"], ["ab"]), (["cdef"], list("cdef"))])
    assert both["muc"][1] == 25
    assert both["b_cubed"][1] == pytest.approx(100 * (2 + 4 / 4) / 6)
    assert both["ceaf_phi4"] == percent((1 + 2 / 5) / 5, (1 + 2 / 5) / 2)


# --- a second way to count ----------------------------------------------------------


def slow_muc(key, response):
    """Links of spanning trees: the most links of the response that agree with the key, without
    cycles."""
    right = 0
    for cluster in key:
        parent = {mention: mention for mention in cluster}
        for other in response:
            for one, two in combinations(sorted(set(cluster) & set(other)), 2):
                roots = parent[one], parent[two]
                if roots[0] != roots[1]:
                    right += 1
                    parent = {
                        m: roots[0] if root == roots[1] else root for m, root in parent.items()
                    }
    return right, sum(len(cluster) - 1 for cluster in key)


def slow_b_cubed(key, response):
    total = 0.0
    for cluster in key:
        for mention in cluster:
            other = next((set(c) for c in response if mention in c), set())
            total += len(set(cluster) & other) / len(cluster)
    return total, sum(map(len, key))


def slow_ceaf(key, response):
    few, many = sorted((list(key), list(response)), key=len)
    sums = [
        sum(2 * len(set(a) & set(b)) / (len(a) + len(b)) for a, b in zip(few, order, strict=False))
        for order in permutations(many, len(few))
    ]
    return max(sums), len(key)


def share(pair):
    return pair[0] / pair[1] if pair[1] else 0


@st.composite
def partitions(draw):
    """Clusters of some of eight mentions."""
    homes = draw(st.lists(st.integers(0, 4), min_size=8, max_size=8))
    found = {}
    for mention, home in zip("abcdefgh", homes, strict=True):
        found[home] = found.get(home, "") + mention
    return [cluster for home, cluster in sorted(found.items()) if home < 4]


@given(partitions(), partitions())
@settings(max_examples=150)
def test_both_ways_to_count_agree(key, response):
    found = score(key, response)
    for name, slow in {"muc": slow_muc, "b_cubed": slow_b_cubed, "ceaf_phi4": slow_ceaf}.items():
        precision = share(slow(response, key))
        recall = share(slow(key, response))
        assert found[name] == percent(precision, recall), name
