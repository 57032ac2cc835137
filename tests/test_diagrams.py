"""Drawings: words for every one, colors for light and dark, letters for a telephone, and the
numbers of what they show."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import torch

from environment import ROOT
from notebooks import book_notebooks, read
from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures.moving import SIZE, text_width
from spanbert_tutorial.figures.try_it import WORDS
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.spanbert.boundary import (
    SpanBoundaryObjective,
    boundary_loss,
    boundary_targets,
)
from spanbert_tutorial.tasks import coreference
from spanbert_tutorial.tasks.windows import Window, best_spans
from spanbert_tutorial.text.encoding import EncodedCorpus

SVG = "{http://www.w3.org/2000/svg}"
LIGHT, DARK = (255, 255, 255), (20, 24, 30)  # the grounds of the pages
LEAST_SIZE = 10.5  # units; a telephone of 360 pixels shows a unit as about 0.9 of a pixel
TINY = EncoderConfig.tiny(vocab_size=40, hidden_dropout_prob=0.0)
BASE = EncoderConfig.base()


def files() -> dict[str, str]:
    """The drawings of `book_assets/`: name → SVG."""
    found = sorted(Path(ROOT, "book_assets").glob("*.svg"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in found}
    return {name: svg for name, svg in texts.items() if svg.startswith('<svg class="diagram"')}


def stored() -> dict[str, str]:
    """The diagrams that chapters keep as outputs."""
    outputs = (
        (f"{path.stem}, {cell.id}", output.get("data", {}).get("image/svg+xml", ""))
        for path in book_notebooks()
        for cell in read(path).cells
        for output in cell.get("outputs", [])
    )
    return {where: svg for where, svg in outputs if svg.startswith('<svg class="diagram"')}


FILES, STORED = files(), stored()
DRAWINGS = {**FILES, **STORED}


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


def texts_of(root: ET.Element):
    """(text, size, anchor, whether it is turned) of each text of a drawing; looks stand at the text
    or at the group around it. Without what flies: groups that are moved."""
    for group in root.iter():
        looks = {"font-size": SIZE, "text-anchor": "middle"} | group.attrib
        for text in group.findall(f"{SVG}text") if "transform" not in looks else ():
            own = looks | text.attrib
            yield text, float(own["font-size"]), own["text-anchor"], "transform" in own


def fits(root: ET.Element, text: ET.Element, size: float, anchor: str, turned: bool) -> bool:
    """Whether the text stays inside its drawing; turned text runs upwards."""
    wide, high = map(float, root.get("viewBox").split()[2:])
    long = text_width(text.text, size)
    before = {"start": 0, "middle": long / 2, "end": long}[anchor]
    begin = high - float(text.get("y")) - before if turned else float(text.get("x")) - before
    return -1 <= begin and begin + long <= (high if turned else wide) + 1


def luminance(color: tuple[int, ...]) -> float:
    """Relative luminance, WCAG 2.1."""
    shares = [value / 255 for value in color]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in shares
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_has_words_is_seen_on_light_and_dark_and_fits_a_telephone(name):
    svg = DRAWINGS[name]
    root = ET.fromstring(svg)
    assert root.get("role") == "img" and root.get("aria-label")
    assert root.find(f"{SVG}title").text and root.find(f"{SVG}desc").text
    assert "@media(prefers-color-scheme:dark){svg:root{color:" in svg  # a file has no page around
    colors = {tuple(map(int, rgb)) for rgb in re.findall(r"rgb\((\d+),(\d+),(\d+)\)", svg)}
    for color in colors:  # WCAG 1.4.11: parts of a graphic
        assert min(contrast(color, LIGHT), contrast(color, DARK)) >= 3, color
    assert "max-width:100%" in root.get("style")
    for text, size, anchor, turned in texts_of(root):
        assert fits(root, text, size, anchor, turned), text.text
        assert size >= LEAST_SIZE or name in STORED, text.text
    names = {element.tag for element in root.iter()}
    assert not {"script", "image", "use"} & {tag.removeprefix(SVG) for tag in names}
    assert " id=" not in svg and "url(" not in svg  # GitHub takes these out


def test_white_letters_on_a_masked_token_can_be_read():
    assert contrast((31, 119, 180), (255, 255, 255)) >= 4.5


def test_every_drawing_is_shown_somewhere():
    pages = "".join(
        path.read_text(encoding="utf-8")
        for path in [ROOT / "README.md", *Path(ROOT, "book").rglob("*")]
        if path.suffix in (".md", ".ipynb")
    )
    new = {"bert_and_spanbert.svg", "boundary_gradient.svg"}  # their chapters are being rewritten
    assert [name for name in FILES if name not in pages and name not in new] == []


# --- numbers in drawings that compute nothing ----------------------------------------


def said(name: str) -> str:
    """All text of a drawing, tips and description included."""
    root = ET.fromstring(FILES[name])
    return " | ".join(element.text or "" for element in root.iter())


def shape(*sizes: int) -> str:
    return f"[{', '.join(f'{size:,}' for size in sizes)}]"


def test_shapes_of_the_encoder_are_those_of_a_call():
    n, told = 4, said("encoder_layers.svg")
    with torch.device("meta"):  # shapes only, no numbers
        model = BertEncoder(BASE).eval()
        layer = model.layers[0]
        passed = []
        for part in (model.embeddings, layer.attention, layer.expand, layer.feed_forward_norm):
            part.register_forward_hook(lambda part, given, made: passed.append(made[0]))
        hidden = model(torch.zeros(1, n, dtype=torch.long))
        maps = layer.attention.attention_probs(hidden, None)[0]
        queries = layer.attention.split(layer.attention.query(hidden))[0]
    tips = re.findall(r"<title>([^<]*), \[", FILES["encoder_layers.svg"])
    assert len(tips) == 7 and tips[2] == "attention"
    for tensor in (*passed, maps):
        assert shape(*tensor.shape) in told
    assert f"{len(model.layers)} layers" in told and f"{BASE.vocab_size:,} in the voc" in told
    told = said("attention_heads.svg")
    for tensor in (hidden[0], queries[0], queries[0].T, maps[0]):
        assert shape(*tensor.shape) in told
    assert f"A = {len(queries)} heads of width H/A = {queries.shape[-1]}" in told
    tables = model.embeddings
    for table in (tables.word_embeddings, tables.token_type_embeddings, tables.position_embeddings):
        assert shape(*table.weight.shape) in said("embeddings.svg")


def test_sizes_of_the_tasks_heads_are_those_of_the_shipped_model():
    config = data_path("checkpoints", "spanbert-tiny", "config.json")
    H = json.loads(config.read_text(encoding="utf-8"))["hidden_size"]
    assert f"G = {3 * H + coreference.FEATURES}" in said("span_ranking.svg")
    assert f"× {H} " in said("marked_names.svg") and f"× {2 * H} " in said("marked_names.svg")
    assert f"{H} numbers" in said("sentence_heads.svg")


def test_the_loss_of_the_flow_is_that_of_the_package():
    model, batch = real_call()
    t = len(batch["masked_positions"])
    s = len(batch["boundary_labels"])
    assert 0 < s < t  # some spans touch an edge
    with torch.no_grad():
        losses = model(batch)
    assert torch.isclose(losses["loss"], (losses["mlm"] * t + losses["sbo"] * s) / t)
    assert "(sum MLM + sum SBO) / t" in said("pretraining_flow.svg")
    assert model.boundary.linear1.in_features == 2 * TINY.hidden_size + 200
    assert "[s, 2H + 200]" in said("pretraining_flow.svg")


def test_the_gradient_takes_the_path_that_the_drawing_shows():
    """Filled cells have a gradient, hollow ones have none: after the last layer only `was` and
    `to`, below it every token."""
    torch.manual_seed(0)
    model = BertEncoder(TINY).eval()
    head = SpanBoundaryObjective(TINY.hidden_size, model.embeddings.word_embeddings.weight)
    n = len(WORDS)
    selected = np.zeros((1, n), dtype=bool)
    selected[0, 4:8] = True
    rows = boundary_targets(selected, np.arange(n)[None] + 10, np.array([n]))
    at = []  # embeddings, after layer 1, after layer 2: with [CLS] and [SEP]

    def keep(part, given, made):
        made.retain_grad()
        at.append(made)

    for part in (model.embeddings, *model.layers):
        part.register_forward_hook(keep)
    hidden = model(torch.arange(n + 2)[None] + 5)
    boundary_loss(head(hidden, rows), rows, 4).backward()
    has = [state.grad[0, 1 : n + 1].abs().sum(1) > 0 for state in at]
    assert [int(one.sum()) for one in has] == [n, n, 2]
    assert [WORDS[i] for i in np.flatnonzero(has[2].numpy())] == ["was", "to"]
    cells = re.findall(r"M(96|186|276) [\d.]+h20v8h-20z", FILES["boundary_gradient.svg"])
    filled = re.search(
        r'<path fill="rgb\(200,120,0\)" d="(M(?:96|186|276)[^"]*)"', FILES["boundary_gradient.svg"]
    )
    assert len(cells) == 3 * n and filled[1].count("h20v8h-20z") == sum(int(x.sum()) for x in has)


# --- question answering -------------------------------------------------------------


def test_the_drawn_scores_are_those_of_the_decoder():
    starts, ends = np.array([[1, 0, 0, 2, 0, 1, 0], [1, 0, 0, 2, 0, 3, 0]])
    empty = np.zeros(7, dtype=int)
    window = Window(empty, empty, 0, 3, 3, np.ones(3, dtype=bool))  # [SEP] Ada met Bo [SEP]
    spans = best_spans(window, starts, ends, 49, 3)
    null, best = starts[0] + ends[0], spans[0]
    assert (best.first, best.last) == (0, 2)
    shown = [text.text for text, *_ in texts_of(ET.fromstring(FILES["answer_scores.svg"]))]
    rows = shown[shown.index("[CLS]") + 7 :][:14]
    assert list(map(int, rows)) == np.stack([starts, ends], axis=1).ravel().tolist()
    assert {f"{null}", f"{best.score:g}", f"−{best.score - null:g}"} <= set(shown[-8:])
    assert f"Ada met Bo, {best.score:g}. Null odds: {null - best.score:g}" in said(
        "answer_scores.svg"
    )
    shown = [text.text for text, *_ in texts_of(ET.fromstring(FILES["answer_pairs.svg"]))]
    numbers = sorted(int(text) for text in shown if text.isdigit())
    assert numbers == sorted([null, *(span.score for span in spans)])
