"""The panel of the merges' explorer: words, numbers, next pairs, and what a reader may type."""

from spanbert_tutorial.bert.wordpiece import joined
from spanbert_tutorial.figures.explorer import Explorer
from spanbert_tutorial.figures.merges import Merges

POEM = "the hen she sees the queen then the queen sees the hen"


def test_before_any_merge():
    panel = Merges(POEM, "frequency", 0)
    assert panel.tokens == 43 and len(panel.vocabulary) == 9
    assert panel.text.splitlines() == [
        "t ##h ##e ×4  h ##e ##n ×2  s ##h ##e ×1  s ##e ##e ##s ×2  q ##u ##e ##e ##n ×2  t ##h "
        "##e ##n ×1",
        "Merged: nothing yet.",
        "Best next pairs, frequency: ##h ##e: 6; ##e ##n: 5; t ##h: 5; ##e ##e: 4.",
        "Tokens: 43 in the text, 9 in the vocabulary.",
    ]


def test_merges_are_numbered_and_scores_show_their_counts():
    panel = Merges(POEM, "likelihood", 1)
    assert "qu/1 ##e ##e ##n ×2" in repr(panel) and "Merged: 1 q ##u." in repr(panel)
    assert "t ##h: 5 / (5 · 6) = 0.167" in repr(panel)
    assert "Tokens: 41 in the text, 10 in the vocabulary." in repr(panel)
    assert "t ##h: +12.75 nats" in repr(Merges(POEM, "gain", 0))
    assert Merges(POEM, "frequency", 2).words[("the",)] == 4


def test_a_token_made_twice_has_the_number_of_its_first_merge():
    panel = Merges("abc abc abc abd abd xbc xbc xbc xbc", "frequency", 4)
    assert panel.learned[-1] == ("##b", "##d") and panel.number == {
        "##bc": 1,
        "xbc": 2,
        "abc": 3,
        "##bd": 4,
    }
    panel = Merges("abc abc abc abd abd abd xbc xbc", "likelihood", 20)
    made = [joined(pair) for pair in panel.learned]
    assert all(made.index(token) == number - 1 for token, number in panel.number.items())
    assert Merges("ab", "gain", 9).text.splitlines() == [
        "ab/1 ×1",
        "Merged: 1 a ##b.",
        "Best next pairs, gain: none is left.",
        "Tokens: 1 in the text, 3 in the vocabulary.",
    ]


def test_in_an_explorer_a_reader_may_type_a_text():
    controls = {"text": [POEM], "criterion": ["frequency", "gain"], "merges": [0, 2]}
    explorer = Explorer(controls, Merges, free_text="text")
    assert len(explorer.panels) == 4
    _, _, merges, own, view = explorer.live().children
    own.value = "banana"
    assert view.value == Merges("banana", "frequency", 0)._repr_html_()
    merges.value = 2
    assert (
        view.value == Merges("banana", "frequency", 2)._repr_html_()
        and "<sup>2</sup>" in view.value
    )
    own.value = "x" * 30
    assert "at most 20 characters" in view.value
