"""Windows, decoding, fine-tuning and answering; parity with transformers; checkpoints of every
layout."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from parity import sizes
from transformers import BertConfig, BertForQuestionAnswering, BertTokenizerFast

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.squad import GoldAnswer, Question
from spanbert_tutorial.tasks.windows import central_windows, decode, encode, window_ranges, windows

CONTEXT = (
    "The Swan Club was founded in Upton in 1873. Its first president was Alice Mercer, an "
    "architect from the coast."
)
QUESTION = "Who was the first president of the Swan Club?"


@pytest.fixture(scope="module")
def answerer(wordpiece) -> qa.QuestionAnswerer:
    torch.manual_seed(0)
    encoder = BertEncoder(EncoderConfig.tiny(vocab_size=len(wordpiece), initializer_range=0.3))
    return qa.QuestionAnswerer(
        qa.QuestionAnsweringModel(encoder), wordpiece, max_length=48, doc_stride=16
    )


# --- windows ------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [1, 7, 20, 21, 39, 40, 41, 200])
@pytest.mark.parametrize("room, stride", [(20, 5), (20, 20), (20, 30), (7, 3), (1, 1)])
def test_windows_cover_everything_and_stop_when_they_do(tokens, room, stride):
    ranges = window_ranges(tokens, room, stride)
    assert sorted({place for start, end in ranges for place in range(start, end)}) == list(
        range(tokens)
    )
    assert all(0 < end - start <= room for start, end in ranges)
    assert [start for start, _ in ranges] == [
        number * min(stride, room) for number in range(len(ranges))
    ]
    assert all(end < tokens for _, end in ranges[:-1]) and ranges[-1][1] == tokens


def test_windows_worked_by_hand():
    assert window_ranges(50, 20, 10) == [(0, 20), (10, 30), (20, 40), (30, 50)]
    # token 14 has 5 tokens of context in the first window (to its right), 4 in the second (to its
    # left)
    winner = central_windows([(0, 20), (10, 30)], 30)
    assert winner.tolist() == [0] * 15 + [1] * 15


def test_the_central_window_shows_the_most_context():
    ranges = window_ranges(97, 30, 11)
    winner = central_windows(ranges, 97)
    for place in range(97):
        context = [
            min(place - a, b - 1 - place) + 0.01 * (b - a) if a <= place < b else -1
            for a, b in ranges
        ]
        assert winner[place] == int(np.argmax(context))


def test_an_input_is_question_then_context(wordpiece):
    encoded = encode(wordpiece, QUESTION, CONTEXT)
    made = windows(encoded, wordpiece, 40, 10)
    assert len(made) > 1
    assert sum(int(window.central.sum()) for window in made) == len(encoded.context)
    for window in made:
        ids = window.ids.tolist()
        assert len(ids) <= 40 and ids[0] == wordpiece.cls_id and ids.count(wordpiece.sep_id) == 2
        assert ids[1 : window.first - 1] == encoded.question.tolist()
        assert ids[window.first : -1] == encoded.context[window.start : window.end].tolist()
        assert window.segments.tolist() == [0] * window.first + [1] * (len(ids) - window.first)


# --- decoding -----------------------------------------------------------------------


def test_decoding_is_the_best_of_all_allowed_spans(wordpiece):
    rng = np.random.default_rng(0)
    made = windows(encode(wordpiece, QUESTION, CONTEXT), wordpiece, 34, 7)
    scores = [(rng.normal(size=len(w.ids)), rng.normal(size=len(w.ids))) for w in made]
    wanted = sorted(
        (
            (float(s[w.first + i - w.start] + e[w.first + j - w.start]), i, j)
            for w, (s, e) in zip(made, scores, strict=True)
            for i in range(w.start, w.end)
            if w.central[i - w.start]
            for j in range(i, min(i + 5, w.end))
        ),
        reverse=True,
    )[:8]
    found, null = decode(made, iter(scores), n_best_size=8, max_answer_length=5)
    assert [(span.first, span.last) for span in found] == [(i, j) for _, i, j in wanted]
    assert [span.score for span in found] == pytest.approx([score for score, _, _ in wanted])
    assert null == pytest.approx(min(s[0] + e[0] for s, e in scores))  # the least, not the greatest


# --- targets ------------------------------------------------------------------------


def test_targets_point_to_the_answer_or_to_cls(wordpiece):
    context = CONTEXT * 3
    start = len(CONTEXT) + CONTEXT.index("Alice Mercer")
    question = Question("1", QUESTION, context, answers=(GoldAnswer("Alice Mercer", start),))
    settings = qa.QuestionAnsweringSettings(max_length=40, doc_stride=8)
    data = qa.QuestionAnsweringData(
        [question, Question("2", QUESTION, context)], wordpiece, settings
    )
    held = 0
    for window, (first, last) in zip(data.inputs, data.targets, strict=True):
        if (first, last) != (0, 0):
            assert wordpiece.decode(window.ids[first : last + 1]) == "Alice Mercer"
            held += 1
    # windows elsewhere, and the question without an answer, point to [CLS]
    assert 1 < held < len(data) / 2 - 1


@pytest.mark.parametrize("max_length", [100, 256])
def test_a_batch_has_one_of_few_lengths_and_the_loss_of_its_windows(max_length):
    answerer = qa.QuestionAnswerer.from_pretrained(data_path("checkpoints", "spanbert-mini-squad"))
    questions = squad.read(data_path("reader", "reader.json"))[:40]
    settings = replace(qa.PRESETS["small"], max_length=max_length)
    data = qa.QuestionAnsweringData(questions, answerer.wordpiece, settings)
    for rows in np.array_split(np.arange(len(data)), 6):
        batch = data.batch(rows, np.random.default_rng(0))
        n, real = batch["input_ids"].shape[1], data.lengths()[rows]
        assert n == min(-(-real.max() // 8) * 8, max_length)
        assert batch["attention_mask"].sum(1).tolist() == real.tolist()
        bare = {name: v[:, : real.max()] if v.ndim > 1 else v for name, v in batch.items()}
        with torch.no_grad():
            losses = [answerer.model(one)["loss"].item() for one in (batch, bare)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_windows_without_the_answer_can_be_left_out_but_not_those_of_questions_without_one(
    wordpiece,
):
    context = CONTEXT * 3
    start = len(CONTEXT) + CONTEXT.index("Alice Mercer")
    with_answer = Question("1", QUESTION, context, answers=(GoldAnswer("Alice Mercer", start),))
    without = Question("2", QUESTION, context)
    settings = qa.QuestionAnsweringSettings(max_length=40, doc_stride=8)
    every = qa.QuestionAnsweringData([with_answer, without], wordpiece, settings)
    some = qa.QuestionAnsweringData(
        [with_answer, without], wordpiece, replace(settings, answers_only=True)
    )
    alone = qa.QuestionAnsweringData([without], wordpiece, settings)
    holding = [target for target in every.targets.tolist() if any(target)]
    assert some.targets.tolist() == holding + alone.targets.tolist() and 1 < len(holding) < len(
        alone
    )
    nothing = qa.QuestionAnsweringData(
        [replace(with_answer, answers=(GoldAnswer(context, 0),))],
        wordpiece,
        replace(settings, answers_only=True),
    )
    assert len(nothing) == 0  # no window holds so long an answer


# --- the model ----------------------------------------------------------------------


def test_the_loss_is_the_mean_of_two_cross_entropies(answerer, wordpiece):
    question = Question(
        "1", QUESTION, CONTEXT, answers=(GoldAnswer("1873", CONTEXT.index("1873")),)
    )
    data = qa.QuestionAnsweringData(
        [question], wordpiece, qa.QuestionAnsweringSettings(max_length=64)
    )
    batch = data.batch(np.array([0]), np.random.default_rng(0))
    with torch.no_grad():
        losses, (starts, ends) = answerer.model(batch), answerer.model.scores(batch)
    by_hand = (
        -(starts.log_softmax(-1)[0, batch["start"][0]] + ends.log_softmax(-1)[0, batch["end"][0]])
        / 2
    )
    assert losses["loss"].item() == pytest.approx(by_hand.item(), rel=1e-6)


def test_fine_tuning_learns_the_questions_it_is_shown(wordpiece):
    torch.manual_seed(0)
    names = ["Alice Mercer", "Ruth Sander", "Victor Darrow", "Clara Penrose"]
    contexts = [
        f"The club met in Upton. Its president was {name}, and it rained." for name in names
    ]
    questions = [
        Question(
            str(i),
            "Who was its president?",
            context,
            answers=(GoldAnswer(name, context.index(name)),),
        )
        for i, (name, context) in enumerate(zip(names, contexts, strict=True))
    ]
    encoder = BertEncoder(EncoderConfig.tiny(vocab_size=len(wordpiece), initializer_range=0.06))
    settings = qa.QuestionAnsweringSettings(
        epochs=60, batch_size=4, peak_learning_rate=1e-3, max_length=64, dropout=0.0
    )
    answerer, history = qa.fine_tune(encoder, wordpiece, questions, settings)
    assert history.losses["loss"][-1] < 0.2 < history.losses["loss"][0]
    answers = list(answerer.answer_many((q.question, q.context) for q in questions))
    assert [answer.text for answer in answers] == names


# --- answering ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "context",
    ["😀 🎉", "مرحبا بالعالم 1873", "A", CONTEXT * 3, "Zoë's café\u00a0— naïve\r\n coöperation"],
)
def test_an_answer_is_an_exact_slice(answerer, context):
    answer = answerer.answer(QUESTION, context, threshold=1e9)
    assert answer.text and answer.text == context[answer.start : answer.end]
    none = answerer.answer(QUESTION, context, threshold=-1e9)
    assert (none.text, none.start, none.end) == ("", 0, 0)
    assert none.score == pytest.approx(answer.score)


def test_many_answers_are_the_single_ones(answerer):
    pairs = [
        (QUESTION, CONTEXT),
        ("When?", CONTEXT * 4),
        ("Where was it?", "In Upton."),
        (QUESTION, "A"),
    ] * 3
    many = list(answerer.answer_many(pairs, batch_size=3))
    for (question, context), answer in zip(pairs, many, strict=True):
        single = answerer.answer(question, context)
        assert (answer.text, answer.start) == (single.text, single.start)
        assert answer.score == pytest.approx(single.score, abs=1e-4)


def test_a_long_context_goes_through_the_model_a_batch_at_a_time(answerer, monkeypatch):
    """So it needs no more memory than a batch; the memory of a process is measured in
    `test_old_notes`."""
    # 100,000 characters
    context = (CONTEXT + " ") * 900
    shapes = []
    scores = answerer.model.scores
    monkeypatch.setattr(
        answerer.model,
        "scores",
        lambda batch: shapes.append(batch["input_ids"].shape) or scores(batch),
    )
    answer = answerer.answer(QUESTION, context, threshold=1e9)
    assert len(context) > 95_000 and answer.text == context[answer.start : answer.end]
    assert len(shapes) > 5 and all(rows <= 32 and n <= answerer.max_length for rows, n in shapes)


def test_predictions_are_answers_at_any_threshold_and_name_the_question(answerer):
    texts = [CONTEXT, CONTEXT * 4, "In Upton."]
    questions = [Question(str(number), QUESTION, text) for number, text in enumerate(texts)]
    found, odds = answerer.predict(questions)
    for question in questions:
        answer = answerer.answer(question.question, question.context, threshold=1e9)
        assert found[question.id] == answer.text
        assert odds[question.id] == pytest.approx(answer.null_score - answer.score, abs=1e-3)
    (one, *_) = answerer.scored([(QUESTION, CONTEXT)])
    (best, *_), null = decode(one.windows, iter(one.scores))
    assert one.answer(best).text == found["0"] and null - best.score == pytest.approx(
        odds["0"], abs=1e-3
    )
    for number, told in (
        (3, 'article "", question 3: the context'),
        (0, "question 0: the id occurs 2"),
    ):
        with pytest.raises(InputError, match=f"^{told}"):
            answerer.predict([*questions, Question(str(number), QUESTION, " ")])
    with pytest.warns(UserWarning, match="of a question only the first 64 tokens are read"):
        encode(answerer.wordpiece, "Who " * 65, CONTEXT)


# --- checkpoints --------------------------------------------------------------------


def test_a_saved_answerer_is_the_same_and_opens_in_transformers(answerer, wordpiece, tmp_path):
    answerer.save(tmp_path / "qa", {"README.md": "# Card\n"})
    again = qa.QuestionAnswerer.from_pretrained(tmp_path / "qa")
    assert (again.max_length, again.doc_stride) == (answerer.max_length, answerer.doc_stride)
    first, second = (one.answer(QUESTION, CONTEXT, threshold=1e9) for one in (answerer, again))
    assert second.score == pytest.approx(first.score, abs=0.05)  # stored in half precision
    theirs = BertForQuestionAnswering.from_pretrained(tmp_path / "qa").float().eval()
    (window,) = windows(encode(wordpiece, QUESTION, CONTEXT), wordpiece, 100, 50)
    batch = qa.stacked([window], wordpiece.pad_id)
    with torch.no_grad():
        output = theirs(
            batch["input_ids"],
            token_type_ids=batch["token_type_ids"],
            attention_mask=batch["attention_mask"],
        )
        starts, ends = again.model.scores(batch)
    assert torch.allclose(output.start_logits, starts, atol=1e-4)
    assert torch.allclose(output.end_logits, ends, atol=1e-4)


def old_folder(folder, tokens, config=None):
    """As the released fine-tuned SpanBERT: a config without model_type, pytorch_model.bin, a
    vocabulary and no more."""
    small = sizes(64, 128, vocab_size=len(tokens), max_position_embeddings=64)
    torch.manual_seed(1)
    model = BertForQuestionAnswering(BertConfig(**small, initializer_range=0.3)).eval()
    folder.mkdir()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    settings = {
        **small,
        "attention_probs_dropout_prob": 0.1,
        "directionality": "bidi",
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "type_vocab_size": 2,
        "pooler_fc_size": 768,
        "pooler_type": "first_token_transform",
        **(config or {}),
    }
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    return model


def test_the_old_layout_opens_cased_and_gives_the_scores_of_transformers(tmp_path, wordpiece):
    model = old_folder(tmp_path / "old", wordpiece.vocabulary)
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "vocab.txt").write_text(
        "\n".join(wordpiece.vocabulary) + "\n", encoding="utf-8"
    )
    for tokenizer in (None, tmp_path / "tokenizer"):
        answerer = qa.QuestionAnswerer.from_pretrained(tmp_path / "old", tokenizer=tokenizer)
        # no more positions than there are
        assert not answerer.wordpiece.lowercase and answerer.max_length == 64
    context = "Alice Mercer from Upton"
    tokenizer = BertTokenizerFast(str(tmp_path / "old" / "vocab.txt"), do_lower_case=False)
    encoded = tokenizer(QUESTION, context, return_tensors="pt")
    (window,) = windows(encode(answerer.wordpiece, QUESTION, context), answerer.wordpiece, 64, 16)
    assert window.ids.tolist() == encoded["input_ids"][0].tolist()
    with torch.no_grad():
        output, (starts, ends) = model(**encoded), answerer.model.scores(qa.stacked([window], 0))
    assert torch.allclose(output.start_logits, starts, atol=1e-5)
    assert torch.allclose(output.end_logits, ends, atol=1e-5)
    found = answerer.answer(question=QUESTION, context=context, threshold=1e9)
    assert found.text and context[found.start : found.end] == found.text
