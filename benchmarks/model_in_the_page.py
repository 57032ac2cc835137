"""The model in the page against PyTorch: how far float weights are from it, how much 8-bit weights
change, in Chromium.

`python -m benchmarks.model_in_the_page OUTPUT.json`; `tests/test_model_js.py` asserts what has to
hold. The speeds and the reader's F1 of the page *Try it* ran in the tree tagged `before-the-spine`.
"""

import base64
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.bert.inputs import frame
from spanbert_tutorial.commands.exports import open_model, web_script
from spanbert_tutorial.engine.files import data_path, write_json
from spanbert_tutorial.figures.try_it import ANSWERING
from spanbert_tutorial.pretraining.encoded_text import parts
from spanbert_tutorial.spanbert.boundary import boundary_targets
from spanbert_tutorial.spanbert.span_masking import SpanMasking, spans_of
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from tools.environment import find_chromium

MODEL = Path(__file__).parents[1] / "book_assets" / "model.js"
TINY = "spanbert-tiny"
# Typed arrays travel to Python as base64, everything else as JSON: the browser's own way takes
# long.
HELPERS = """
const base64 = (numbers) => {
  const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  let text = "";
  for (let k = 0; k < bytes.length; k += 8192) text += String.fromCharCode(...bytes.subarray(k, k + 8192));
  return btoa(text);
};
const opened = Object.entries(self.SPANBERT_WEIGHTS).map(([name, weights]) => [name, SpanBERT.open(weights)]);
const models = Object.fromEntries(opened);
"""


@contextmanager
def page_with(scripts: Sequence[str]) -> Iterator:
    """A page in Chromium, opened from the disk and without a network, that has `model.js` and these
    scripts of weights; `models[NAME]` there is a model."""
    from playwright.sync_api import sync_playwright

    sources = [MODEL.read_text(encoding="utf-8"), *scripts, HELPERS]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for number, source in enumerate(sources):
            Path(folder, f"{number}.js").write_text(source, encoding="utf-8")
        tags = "".join(f'<script src="{number}.js"></script>' for number in range(len(sources)))
        place = Path(folder, "page.html")
        place.write_text(f'<!doctype html><meta charset="utf-8"><title>models</title>{tags}')
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_context(offline=True).new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(place.as_uri())
        if page.errors:
            raise RuntimeError(f"the page cannot open its models: {page.errors[0]}")
        yield page
        browser.close()


def told(page, function: str, *given):
    """What a JavaScript function returns in the page."""
    return json.loads(page.evaluate(f"(given) => JSON.stringify(({function})(...given))", given))


def floats(text: str, width: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(-1, width)


# --- number for number --------------------------------------------------------------

NUMBERS = """
(name, text, spans) => {
  const model = models[name], {cls_id, sep_id, mask_id} = model.wordpiece, H = model.encoder.config.hidden_size;
  const tokens = model.tokenize(text), ids = [cls_id, ...tokens.map((one) => one.id), sep_id];
  for (const [first, last] of spans) ids.fill(mask_id, first + 1, last + 2);
  const {hidden, attention} = model.encoder.forward(ids, ids.map(() => 0));
  const rows = (first, last) => hidden.slice((first + 1) * H, (last + 2) * H);
  const [mlm, sbo] = [[], []];
  for (const [first, last] of spans) {
    mlm.push(...model.masked_language_model.forward(rows(first, last)));
    if (first > 0 && last < tokens.length - 1) {
      const targets = Math.min(last - first + 1, model.boundary.max_targets);
      sbo.push(...model.boundary.forward(rows(first - 1, first - 1), rows(last + 1, last + 1), targets));
    }
  }
  return [hidden, attention, Float32Array.from(mlm), Float32Array.from(sbo)].map(base64);
}"""


@torch.no_grad()
def numbers(model, wordpiece, text: str, selected: np.ndarray) -> dict[str, Tensor]:
    """By PyTorch: the states, the attention weights and the logits of both heads, with the selected
    tokens masked."""
    ids = wordpiece.encode(text)
    visible = np.where(selected, wordpiece.mask_id, ids)
    seen, _ = frame(visible, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
    seen = torch.from_numpy(seen)[None]
    hidden = model.encoder(seen)
    found = {
        "hidden": hidden,
        "attention": torch.stack(model.encoder.attention_maps(seen)),
        "mlm": model.masked_language_model(hidden[0, 1:-1][torch.from_numpy(selected)]),
    }
    if hasattr(model, "boundary"):
        targets = boundary_targets(selected[None], ids[None], [len(ids)])
        found["sbo"] = model.boundary(hidden, targets)
    return found


def farthest(
    page, name: str, model, wordpiece, texts: Sequence[tuple[str, np.ndarray]]
) -> dict[str, float]:
    """The greatest difference between page and PyTorch over texts with their chosen tokens, by kind
    of number."""
    most: dict[str, float] = {}
    for text, selected in texts:
        theirs = told(page, NUMBERS, name, text, spans_of(selected).tolist())
        ours = numbers(model, wordpiece, text, selected)
        for (kind, own), got in zip(ours.items(), theirs, strict=True):
            rows = own.reshape(-1, own.shape[-1]).numpy()
            difference = np.abs(floats(got, own.shape[-1]) - rows)
            most[kind] = max(most.get(kind, 0.0), float(difference.max(initial=0)))
    return most


# --- what 8 bits change -------------------------------------------------------------


def masked(wordpiece, texts: Sequence[str], longest: int = 120) -> list[tuple[str, np.ndarray]]:
    """Texts, cut to `longest` tokens, each with the tokens that span masking chooses; seed 0."""
    rng = np.random.default_rng(0)
    made = []
    for text in texts:
        ids, offsets = wordpiece.encode_with_offsets(text)
        text = text[: offsets[min(longest, len(ids)) - 1, 1]]
        selected = SpanMasking().select(wordpiece.word_starts(wordpiece.encode(text)), rng)
        if selected.any():
            made.append((text, selected))
    return made


def same_first_guess(
    page, name: str, model, wordpiece, texts: Sequence[tuple[str, np.ndarray]]
) -> dict[str, list]:
    """For each head, "mlm" and "sbo": [positions where its first prediction is PyTorch's, all positions]."""
    guess = "(name, text, spans) => models[name].fill(text, spans, {best: 1}).positions"
    counts = {"mlm": [0, 0], "sbo": [0, 0]}
    for text, selected in texts:
        places = told(page, guess, name, text, spans_of(selected).tolist())
        ours = numbers(model, wordpiece, text, selected)
        for head in counts:
            theirs = [one[head][0]["token"] for one in places if one[head]]
            first = wordpiece.tokens(ours[head].argmax(-1).tolist()) if head in ours else []
            counts[head][0] += sum(a == b for a, b in zip(first, theirs, strict=True))
            counts[head][1] += len(first)
    return counts


def reader_scores(page, name: str, questions: Sequence[squad.Question]) -> dict:
    """F1 on the reader's answerable questions by PyTorch and in the page, in percent, and of how many
    questions the best text is the same."""
    ours = QuestionAnswerer.from_pretrained(data_path("checkpoints", name)).predict(questions)[0]
    asking = "(name, pair) => models[name].answer(...pair)"
    pairs = {question.id: (question.question, question.context) for question in questions}
    theirs = {i: told(page, asking, name, pair)["spans"][0]["text"] for i, pair in pairs.items()}
    scores = (squad.score(texts, questions)["HasAns_f1"] for texts in (ours, theirs))
    found = dict(zip(("pytorch_f1", "page_f1"), (round(f1, 2) for f1 in scores), strict=True))
    same = sum(ours[i] == theirs[i] for i in pairs)
    return {"questions": len(questions), **found, "same_text": same}


def main(output: Path) -> None:
    names = (TINY, "spanbert-mini", "bert-mini")
    questions = squad.read(data_path("reader", "reader.json"))
    texts = dict.fromkeys(names, sorted({question.context for question in questions}))
    documents = islice(parts("almanac", held_out=True), 200)
    texts[TINY] = [" ".join(document) for document in documents]
    found: dict[str, dict] = {"same_first_guess": {}, "farthest_float": {}}
    for name in names:
        checkpoint = data_path("checkpoints", name)
        model, wordpiece = open_model(checkpoint)[:2]
        some = masked(wordpiece, texts[name])
        with page_with([web_script(checkpoint, name)]) as page:
            guesses = same_first_guess(page, name, model, wordpiece, some)
            found["same_first_guess"][name] = guesses
        if hasattr(model, "boundary"):
            with page_with([web_script(checkpoint, name, exact=True)]) as page:
                found["farthest_float"][name] = farthest(page, name, model, wordpiece, some[:20])
    with page_with([web_script(data_path("checkpoints", ANSWERING), ANSWERING)]) as page:
        found["reader"] = {ANSWERING: reader_scores(page, ANSWERING, questions)}
    write_json(output, found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
