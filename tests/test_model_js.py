"""The model in the page (`book_assets/model.js`) against the package, number for number, in a real browser."""

import base64
import json
import random
import re

import numpy as np
import pytest
import torch

from benchmarks.model_in_the_page import page_with
from spanbert_tutorial.boundary import boundary_targets
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.exports import open_model, web_script
from spanbert_tutorial.inputs import frame
from spanbert_tutorial.pretraining import fill_masks
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer

pytestmark = pytest.mark.browser

FILLING, ANSWERING = "spanbert-tiny", "spanbert-mini-squad2"
CLOSE = 1e-4
ODD = ["", " ", "\t\n", "café naïve Åse Łódź", "e\u0301a\u0308 cafe\u0301", "😀 the 👩‍👩‍👧‍👦 boat 🇰🇷", "中国 the 日本語 かな カナ", "한국어 the 봄바람은",
       "a\u0000b \u200bc\u00add\ufeff", "x[MASK]y [CLS] [ MASK] [mask] [MASK", "don't – “so” … £5.00 (a+b)^2 = c~d", "a" * 100,
       "b" * 101, "ab" * 300 + " the", "\u2028the\u3000the\u0085the\u00a0the\x0bthe", "\ufffd the \ue000", "ﬁ ① ² Ⅷ", "𝔘𝔫𝔦 𐍈", "the\r\nthe", "_the_ the_boat",
       "\u166dthe\u2e43the\U000111c9", "İstanbul ß ẞ ς", "עברית, العربية؛ हिन्दी। ไทย"]  # fmt: skip


def articles() -> list[str]:
    return sorted({question.context for question in squad.read(data_path("reader", "reader.json"))})


def korean() -> list[str]:
    return [json.loads(line)["text"] for line in data_path("korean", "documents.jsonl").read_text("utf-8").splitlines()]


def wild(count: int) -> list[str]:
    """Random characters from everywhere, among words."""
    draw = random.Random(0)
    everywhere = [(0, 0x7F), (0x80, 0x2FF), (0x300, 0x36F), (0x2000, 0x206F), (0x2E00, 0x2E7F), (0x3000, 0x30FF),
                  (0x4E00, 0x4FFF), (0xAC00, 0xAFFF), (0xE000, 0xFFFF), (0x10000, 0x1F9FF), (0x20000, 0x2FA1F), (0, 0x10FFFF)]

    def character() -> str:
        code = draw.randint(*draw.choice(everywhere))
        return chr(code) if not 0xD800 <= code < 0xE000 else " "

    def word() -> str:
        return draw.choice(["the", "River", "Tessel", "boats", " ", "", "".join(character() for _ in range(draw.randint(1, 4)))])

    return ["".join(word() + draw.choice(["", " "]) for _ in range(draw.randint(3, 30))) for _ in range(count)]


def short_texts(count: int) -> list[str]:
    """Texts of all kinds that have at least three pieces and are short enough for a quick test."""
    sentences = [sentence for text in articles() for sentence in re.split(r"(?<=\.) ", text)]
    some = [*ODD, *wild(80), *(text[:40] for text in korean()[:20]), *sentences]
    wordpiece = open_model(data_path("checkpoints", FILLING))[1]
    fitting = [text for text in some if 3 <= len(wordpiece.encode(text)) <= 60 and "[MASK]" not in text]
    return fitting[:count]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with a model for each head, in float32, and the tiny one in 8 bits."""
    made = {name: web_script(data_path("checkpoints", name), name, exact=True) for name in (FILLING, ANSWERING)}
    made["8 bits"] = web_script(data_path("checkpoints", FILLING), "8 bits")
    with page_with(tmp_path_factory.mktemp("page"), [*made.values()]) as opened:
        yield opened
        assert opened.errors == []


def floats(text: str, width: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(-1, width)


def in_units(text: str, places: np.ndarray) -> list:
    """Places counted in characters, as places counted in UTF-16 units."""
    before = np.cumsum([0, *(1 + (ord(character) > 0xFFFF) for character in text)])
    return before[places].tolist()


def test_wordpiece_is_the_same(page):
    """Pieces, ids, words and offsets: the reader's articles, Korean texts, odd ones and random Unicode."""
    wordpiece = open_model(data_path("checkpoints", ANSWERING))[1]
    texts = [*articles(), *korean(), *ODD, *wild(1_000)]
    found = page.evaluate("([name, texts]) => texts.map((text) => models[name].tokenize(text))", [ANSWERING, texts])
    assert len(texts) > 1_200
    for text, pieces in zip(texts, found, strict=True):
        ids, offsets = wordpiece.encode_with_offsets(text)
        encoding = wordpiece.library.encode(text, add_special_tokens=False)
        assert [one["id"] for one in pieces] == ids.tolist(), repr(text)
        assert [one["piece"] for one in pieces] == wordpiece.tokens(ids), repr(text)
        assert [[one["start"], one["end"]] for one in pieces] == in_units(text, offsets), repr(text)
        words = [one["word"] for one in pieces]
        begins = [a != b for a, b in zip(words, words[1:], strict=False)]
        assert words[:1] in ([], [0]) and words == np.cumsum([0, *begins]).tolist()[: len(words)]
        assert begins == [not piece.startswith("##") for piece in encoding.tokens[1:]], repr(text)


FILL = """
([name, texts, spans]) => texts.map((text, i) => {
  const model = models[name], {cls_id, sep_id, mask_id} = model.wordpiece, H = model.encoder.config.hidden_size;
  const pieces = model.tokenize(text), [first, last] = spans[i];
  const ids = [cls_id, ...pieces.map((one, i) => i < first || i > last ? one.id : mask_id), sep_id];
  const {hidden, attention} = model.encoder.forward(ids, ids.map(() => 0));
  const rows = (from, to) => hidden.slice((from + 1) * H, (to + 2) * H);
  const inner = first > 0 && last < pieces.length - 1;
  return {
    hidden: base64(hidden), attention: base64(attention),
    mlm: base64(model.masked_language_model.forward(rows(first, last))),
    sbo: inner ? base64(model.boundary.forward(rows(first - 1, first - 1), rows(last + 1, last + 1),
                                               Math.min(last - first + 1, 15))) : null,
    told: model.fill(text, [spans[i]]),
  };
})"""


@torch.no_grad()
def test_states_logits_and_attention_are_pytorchs(page):
    """Float weights, 200 texts with all kinds of characters, one span hidden in each; both heads."""
    model, wordpiece, _ = open_model(data_path("checkpoints", FILLING))
    texts, draw = short_texts(200), random.Random(1)
    spans = []
    for text in texts:
        first = draw.randrange(len(wordpiece.encode(text)))
        spans.append((first, min(first + draw.choice([0, 1, 2, 20]), len(wordpiece.encode(text)) - 1)))
    found = page.evaluate(FILL, [FILLING, texts, spans])
    farthest = {"hidden": 0.0, "attention": 0.0, "mlm": 0.0, "sbo": 0.0}

    def compare(what: str, ours: torch.Tensor, theirs: str) -> None:
        ours = ours.reshape(-1, ours.shape[-1]).numpy()
        farthest[what] = max(farthest[what], float(np.abs(floats(theirs, ours.shape[-1]) - ours).max()))

    boundaries = 0
    for text, (first, last), one in zip(texts, spans, found, strict=True):
        ids = wordpiece.encode(text)
        selected = np.zeros(len(ids), dtype=bool)
        selected[first : last + 1] = True
        framed, _ = frame(np.where(selected, wordpiece.mask_id, ids), cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
        framed = torch.from_numpy(framed)[None]
        hidden = model.encoder(framed)
        compare("hidden", hidden, one["hidden"])
        compare("attention", torch.stack(model.encoder.attention_maps(framed)), one["attention"])
        compare("mlm", model.masked_language_model(hidden[0, first + 1 : last + 2]), one["mlm"])
        rows = boundary_targets(selected[None], ids[None], [len(ids)])
        assert (one["sbo"] is not None) == bool(rows.count())
        if rows.count():
            compare("sbo", model.boundary(hidden, rows), one["sbo"])
        boundaries += rows.count() > 0
        masked = model, wordpiece, ids, selected
        check_told(one["told"], masked, hidden)
    assert len(texts) == 200 and boundaries > 100
    assert max(farthest.values()) <= CLOSE, farthest


def check_told(told: dict, masked: tuple, hidden: torch.Tensor) -> None:
    """What `fill` tells, against the guesses of the package's heads."""
    model, wordpiece, ids, selected = masked
    assert [one["hidden"] for one in told["pieces"]] == selected.tolist()
    assert [one["index"] for one in told["places"]] == np.flatnonzero(selected).tolist()
    assert (told["layers"], told["heads"], told["n"]) == (2, 2, len(ids) + 2)
    boundary = model.tasks[0].guesses(model.boundary, hidden, selected, ids)
    first, last = np.flatnonzero(selected)[[0, -1]].tolist()
    inner = first > 0 and last < len(ids) - 1
    for one in told["places"]:
        place = one["index"]
        assert one["boundary"] == ([first - 1, last + 1] if inner else None)
        assert (one["sbo"] is not None) == (place in boundary)
        logits = {"mlm": model.masked_language_model(hidden[0, place + 1]), "sbo": boundary.get(place)}
        for head in ("mlm", "sbo"):
            if one[head] is not None:
                shares = logits[head].softmax(-1)
                assert np.allclose([guess["probability"] for guess in one[head]], shares.topk(5).values, atol=CLOSE)
                for guess in one[head]:  # two that are equally likely may change places
                    assert abs(shares[wordpiece.pieces.index(guess["piece"])] - guess["probability"]) < CLOSE


def test_several_spans_are_filled_as_the_package_fills_masks(page):
    model, wordpiece, _ = open_model(data_path("checkpoints", FILLING))
    text = "The River Tessel flows through the town of Brackwater and the club plays there."
    ids = wordpiece.encode(text)
    spans = [[1, 2], [6, 6], [3, 3], [9, 10]]  # the first and the third touch: they are one
    told = page.evaluate("([name, text, spans]) => models[name].fill(text, spans, {best: 3})", [FILLING, text, spans])
    places = [1, 2, 3, 6, 9, 10]
    pieces = [piece if i not in places else "[MASK]" for i, piece in enumerate(wordpiece.tokens(ids))]
    masked = wordpiece.decode([wordpiece.pieces.index(piece) for piece in pieces])
    filled = fill_masks(model, wordpiece, masked)
    assert [one["index"] for one in told["places"]] == places
    guesses = [{head: of[i] for head, of in span.guesses.items()}
               for span in filled for i in range(span.last - span.first + 1)]
    for one, wanted in zip(told["places"], guesses, strict=True):
        for head in ("mlm", "sbo"):
            assert [guess["piece"] for guess in one[head]] == [piece for piece, _ in wanted[head]]
    assert told["places"][0]["boundary"] == told["places"][2]["boundary"] == [0, 4]
    typed = page.evaluate("([name, text]) => models[name].fill(text, [])", [FILLING, masked])  # [MASK] as text
    assert [one["index"] for one in typed["places"]] == places


ANSWER = """
([name, pairs]) => pairs.map(([question, context]) => {
  const told = models[name].answer(question, context);
  return {...told, start: base64(Float32Array.from(told.start)), end: base64(Float32Array.from(told.end))};
})"""


def test_answers_and_their_scores_are_pytorchs(page):
    """Float weights: the scores at each piece, the best spans, the null score, on 200 texts with all characters."""
    answerer = QuestionAnswerer.from_pretrained(data_path("checkpoints", ANSWERING))
    wordpiece = answerer.wordpiece
    texts = [text for text in short_texts(400) if len(wordpiece.encode(text)) <= 64][:195]
    questions = squad.read(data_path("reader", "reader.json"))
    pairs = [(question.question, text) for question, text in zip(questions, texts, strict=False)]
    pairs += [(question.question, question.context) for question in questions[::60]]
    pairs = [(question, context) for question, context in pairs if len(wordpiece.encode(context))]
    found = page.evaluate(ANSWER, [ANSWERING, pairs])
    assert len(pairs) == 200
    candidates = answerer.candidates(pairs)
    farthest = 0.0
    for told, (_, context, encoded, spans, null) in zip(found, candidates, strict=True):
        assert len(told["pieces"]) == len(encoded.context)
        best = spans[0]
        start, end = floats(told["start"], 1)[:, 0], floats(told["end"], 1)[:, 0]
        for span in spans:
            farthest = max(farthest, abs(start[span.first] + end[span.last] - span.score))
        for mine, span in zip(told["spans"], spans, strict=False):
            farthest = max(farthest, abs(mine["score"] - span.score))
        assert len(told["spans"]) == min(5, len(spans))
        farthest = max(farthest, abs(told["nullScore"] - null), abs(told["nullOdds"] - (null - best.score)))
        if len(spans) == 1 or best.score - spans[1].score > 2 * CLOSE:
            first = told["spans"][0]
            begin, close = int(encoded.offsets[best.first, 0]), int(encoded.offsets[best.last, 1])
            assert (first["first"], first["last"], first["text"]) == (best.first, best.last, context[begin:close])
            assert [first["start"], first["end"]] == in_units(context, np.array([begin, close]))
    assert farthest <= CLOSE


def refused(page, call: str) -> str:
    """The sentence by which a call is refused."""
    return page.evaluate(f"""() => {{
      try {{ {call}; }} catch (error) {{ return error instanceof SpanBERT.InputError ? error.message : `BUG ${{error}}`; }}
      return "not refused";
    }}""")


def test_what_cannot_be_done_is_refused_in_one_sentence(page):
    fill, answer = f'models["{FILLING}"].fill', f'models["{ANSWERING}"].answer'
    cases = {
        f'{fill}("", [])': "The text is empty: write at least one word.",
        f'{fill}(" \\u200b", [])': "The text is empty: write at least one word.",
        f'{fill}("the river", [])': "Nothing is hidden: hide at least one word.",
        f'{fill}("the the", [[1, 2]])': "There is no span from piece 1 to piece 2 in this text: choose it again.",
        f'{fill}("the ".repeat(129), [[0, 0]])':
            "The text has 129 pieces, and this model reads at most 128: shorten it.",
        f'{fill}("the \\ud83d river", [[0, 0]])': "The text holds half a character: mend its encoding.",
        f'{answer}("", "a text")': "The question is empty: write at least one word.",
        f'{answer}("Who?", "")': "The text is empty: write at least one word.",
        f'{answer}("Who?", "the ".repeat(252))':
            "The text has 252 pieces, and this model reads at most 251: shorten it.",
    }  # fmt: skip
    assert {call: refused(page, call) for call in cases} == cases


def test_the_package_refuses_half_a_character_too():
    with pytest.raises(InputError, match="half a character"):
        open_model(data_path("checkpoints", FILLING))[1].encode("the \ud83d river")
