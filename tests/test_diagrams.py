"""Diagrams: words for every drawing, looks that GitHub keeps, colors for light and dark, numbers
of the chapters."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch

import picture
from notebooks import book_notebooks, read
from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.figures import (
    encoder,
    flow,
    legend,
    own_data,
    scales,
    span_scores,
    tasks,
)
from spanbert_tutorial.figures.boundary import draw
from spanbert_tutorial.figures.diagram import SIZE, Diagram, text_width
from spanbert_tutorial.figures.encoder import shape
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.text.encoding import EncodedCorpus

SVG = "{http://www.w3.org/2000/svg}"
LEAST_SIZE = 10.5  # units; a telephone of 360 pixels shows a unit as about 0.9 of a pixel


def small_diagram() -> Diagram:
    picture = Diagram(100, 60, "A & B", "one < two")
    picture.token(2, 2, "a<b", "masked")
    picture.vector(2, 30).matrix(50, 2, 2, 3, "learned").arrow(2, 50, 40, 50, "boundary")
    return picture


# The worked example of the chapter on question answering.
PIECES = ["[CLS]", "who", "[SEP]", "Ada", "met", "Bo", "[SEP]"]
STARTS = np.array([1, 0, 0, 2, 0, 1, 0])
ENDS = np.array([1, 0, 0, 2, 0, 3, 0])
CONTEXT = {"first": 3, "last": 5, "longest": 3}
TINY = EncoderConfig.tiny(vocab_size=40, hidden_dropout_prob=0.0)
BASE = EncoderConfig.base()
PAIR = "[CLS] my dog is cute [SEP] he likes play ##ing [SEP]".split()
SEGMENTS = [0] * 6 + [1] * 5


def real_call() -> tuple[PretrainingModel, dict[str, torch.Tensor]]:
    """A tiny model and a batch with spans, from random text."""
    names = [f"word{i}" for i in range(TINY.vocab_size - len(SPECIALS))]
    wordpiece = WordPiece({token: i for i, token in enumerate(SPECIALS + names)})
    ids = np.random.default_rng(0).integers(5, TINY.vocab_size, 40 * 80).astype(np.uint16)
    ends = np.arange(10, len(ids) + 1, 10)
    objective = Objective.named("span+sbo")
    data = PretrainingData(
        EncodedCorpus(ids, ends, ends[7::8]), wordpiece, objective, max_length=40, batch_size=8
    )
    torch.manual_seed(0)
    return PretrainingModel(TINY, objective).eval(), data.batch(
        np.arange(8), np.random.default_rng(0)
    )


SCALES = {
    "weights": {"tiny": (8e5, "0.8 million"), "large": (3.4e8, "340 million")},
    "hours": {"one": (1, "1")},
}
DRAWINGS = {
    "layers": lambda: encoder.layer_stack(BASE, ["[CLS]", "the", "dog", "barks"]),
    "heads, base": lambda: encoder.heads(BASE, 4),
    "heads, tiny": lambda: encoder.heads(TINY, 4),
    "embeddings": lambda: encoder.embeddings(BASE, PAIR, SEGMENTS),
    "from document to loss": lambda: flow.pretraining_flow(*real_call(), 0.15),
    "find, carry, decode": flow.find_carry_decode,
    "start and end": lambda: span_scores.start_and_end(PIECES, STARTS, ENDS, **CONTEXT),
    "pairs": lambda: span_scores.pair_matrix(PIECES, STARTS, ENDS, **CONTEXT),
    "small": small_diagram,
    "span ranking": lambda: tasks.span_ranking(128, 20),
    "marked names": lambda: tasks.marked_names(128, 48),
    "sentence heads": lambda: tasks.sentence_heads(128),
    "legend": legend.language,
    "own data": own_data.two_ways,
    "scales": lambda: scales.draw_scales(SCALES, "Two scales"),
    "figure 1": draw,
    "figure 1, short span": lambda: draw((7, 7), 7),
    "figure 1, word in view": lambda: draw((6, 7), 8),
}


@pytest.fixture(params=DRAWINGS)
def drawing(request) -> Diagram:
    return DRAWINGS[request.param]()


def texts(drawing: Diagram):
    """(element, size, anchor, turned) of every text."""
    return texts_of(ET.fromstring(drawing.svg()))


def texts_of(root: ET.Element):
    """The same of a parsed drawing; looks stand at the group around a text."""
    for group in root.iter(f"{SVG}g"):
        for text in group.iter(f"{SVG}text"):
            size = float(group.get("font-size", SIZE))
            yield text, size, group.get("text-anchor", "middle"), text.get("transform") is not None


def test_a_drawing_has_words_for_readers_who_do_not_see_it(drawing):
    root = ET.fromstring(drawing.svg())
    assert root.get("role") == "img" and root.get("aria-label") == drawing.title
    assert (
        root.find(f"{SVG}title").text == drawing.title
        and root.find(f"{SVG}desc").text == drawing.description
    )
    assert repr(drawing) == f"{drawing.title}. {drawing.description}"
    assert drawing.svg() == drawing.svg() == drawing._repr_svg_()


def fits(root: ET.Element, text: ET.Element, size: float, anchor: str, turned: bool) -> bool:
    """Whether the text stays inside its drawing; turned text runs upwards."""
    wide, high = map(float, root.get("viewBox").split()[2:])
    long = text_width(text.text, size)
    before = {"start": 0, "middle": long / 2, "end": long}[anchor]
    begin = high - float(text.get("y")) - before if turned else float(text.get("x")) - before
    return -1 <= begin and begin + long <= (high if turned else wide) + 1


def test_the_text_stays_inside_and_is_large_enough_for_a_telephone(drawing):
    root = ET.fromstring(drawing.svg())
    for text, size, anchor, turned in texts_of(root):
        assert size >= LEAST_SIZE, text.text
        assert fits(root, text, size, anchor, turned), text.text


# --- the encoder --------------------------------------------------------------------


def shown_in(drawing: Diagram) -> str:
    return " | ".join(text.text for text, *_ in texts(drawing))


# --- from a document to a loss ------------------------------------------------------


def test_the_flow_has_the_shapes_of_a_real_call_and_the_loss_of_the_package():
    model, batch = real_call()
    shapes = flow.shapes_of(model, batch)
    t = len(batch["masked_positions"])
    targets = len(batch["boundary_labels"])
    assert 0 < targets < t  # some spans touch an edge
    H = TINY.hidden_size
    V = TINY.vocab_size
    assert shapes["hidden"] == shape(*batch["input_ids"].shape, H) and shapes[
        "mlm_states"
    ] == shape(t, H)
    assert (shapes["mlm_logits"], shapes["sbo_logits"]) == (shape(t, V), shape(targets, V))
    assert shapes["sbo_states"] == shape(targets, 2 * H + 200)  # left, right, place
    told = shown_in(flow.pretraining_flow(model, batch, 0.15))
    assert (
        all(shapes[name] in told for name in shapes if name != "hidden") and "15% of tokens" in told
    )
    assert f"(sum MLM + sum SBO) / {t}" in told
    with torch.no_grad():
        losses = model(batch)
    assert torch.isclose(losses["loss"], (losses["mlm"] * t + losses["sbo"] * targets) / t)


# --- kept pictures ------------------------------------------------------------------


def stored_diagrams() -> dict[str, str]:
    """The diagrams that the chapters keep."""
    found = {}
    for path in book_notebooks():
        for cell in read(path).cells:
            shown = [
                output.get("data", {}).get("image/svg+xml", "")
                for output in cell.get("outputs", [])
            ]
            found |= {
                f"{path.stem}, {cell.id}": svg
                for svg in shown
                if svg.startswith('<svg class="diagram"')
            }
    return found


def test_the_diagrams_that_chapters_keep_stay_inside_too():
    """Their numbers are the chapter's, so they may be wider than those above."""
    stored = stored_diagrams()
    assert len(stored) >= 4
    for where, svg in stored.items():
        root = ET.fromstring(svg)
        for text, size, anchor, turned in texts_of(root):
            assert fits(root, text, size, anchor, turned), f"{where}: {text.text}"


@pytest.mark.parametrize("name", picture.PICTURES)
def test_a_kept_picture_is_what_the_package_draws(name):
    """`python tools/picture.py` draws them anew."""
    kept = (picture.FOLDER / name).read_text(encoding="utf-8")
    assert kept == picture.drawn(name)
    assert (
        "@media(prefers-color-scheme:dark){svg:root{color:" in kept
    )  # a file has no page to take its color from
