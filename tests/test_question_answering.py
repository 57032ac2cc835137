"""Windows, decoding, fine-tuning and answering; parity with transformers; checkpoints of every
layout."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForQuestionAnswering, BertTokenizerFast

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks.squad import GoldAnswer, Question, read
from spanbert_tutorial.tasks.windows import (
    best_spans,
    central_windows,
    decode,
    encode,
    window_ranges,
    windows,
)

CONTEXT = (
    "The Swan Club was founded in Upton in 1873. Its first president was Alice Mercer, an "
    "architect from the coast."
)
QUESTION = "Who was the first president of the Swan Club?"


@pytest.fixture(scope="module")
def wordpiece() -> WordPiece:
    return WordPiece.from_file(data_path("almanac", "vocab.txt"))


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
    assert len(made) > 1 and sum(int(window.central.sum()) for window in made) == len(
        encoded.context
    )
    for window in made:
        ids = window.ids.tolist()
        assert len(ids) <= 40 and ids[0] == wordpiece.cls_id and ids.count(wordpiece.sep_id) == 2
        assert ids[1 : window.first - 1] == encoded.question.tolist()
        assert ids[window.first : -1] == encoded.context[window.start : window.end].tolist()
        assert window.segments.tolist() == [0] * window.first + [1] * (len(ids) - window.first)


def test_no_room_and_nothing_to_read_are_one_sentence(wordpiece):
    with pytest.raises(InputError, match="the question is empty"):
        encode(wordpiece, " \n", CONTEXT)
    with pytest.raises(InputError, match="the context is empty"):
        encode(wordpiece, QUESTION, "\u200b\x00")
    with pytest.raises(InputError, match="leaves no room for the context in 12 positions"):
        windows(encode(wordpiece, QUESTION, CONTEXT), wordpiece, 12, 4)


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


def test_a_span_never_touches_question_or_separators(wordpiece):
    (window,) = windows(encode(wordpiece, QUESTION, "Alice Mercer"), wordpiece, 60, 20)
    starts = ends = np.where(np.arange(len(window.ids)) < window.first, 100.0, 0.0)
    for span in best_spans(window, starts, ends, 50, 30):
        assert window.start <= span.first <= span.last < window.end and span.score == 0


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
    for window, (first, last) in zip(data.windows, data.targets, strict=True):
        if (first, last) != (0, 0):
            assert wordpiece.decode(window.ids[first : last + 1]) == "Alice Mercer"
            held += 1
    assert (
        1 < held < len(data) / 2 - 1
    )  # windows elsewhere, and the question without an answer, point to [CLS]


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
    holding = [target for target in every.targets if target != (0, 0)]
    assert some.targets == holding + alone.targets and 1 < len(holding) < len(alone)
    nothing = qa.QuestionAnsweringData(
        [replace(with_answer, answers=(GoldAnswer(context, 0),))],
        wordpiece,
        replace(settings, answers_only=True),
    )
    assert len(nothing) == 0  # no window holds so long an answer


def test_offsets_inside_a_word_take_the_whole_token(wordpiece):
    encoded = encode(wordpiece, QUESTION, "Born in 1873.")
    first, last = qa.answer_tokens(
        encoded, Question("1", QUESTION, "Born in 1873.", answers=(GoldAnswer("87", 9),))
    )
    begin = encoded.offsets[first, 0]
    end = encoded.offsets[last, 1]
    assert "87" in "Born in 1873."[begin:end]


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
    assert (none.text, none.start, none.end) == ("", 0, 0) and none.score == pytest.approx(
        answer.score
    )


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


def test_a_threshold_that_is_no_number_and_an_empty_batch_are_refused(answerer):
    wrongs = [({"threshold": value}, "give a number") for value in (float("nan"), None, "0")]
    for wrong, said in [*wrongs, ({"batch_size": 0}, "give 1 or more")]:
        with pytest.raises(InputError, match=said):
            list(answerer.answer_many([(QUESTION, CONTEXT)], **wrong))


def test_scores_that_are_no_numbers_are_refused(wordpiece):
    model = qa.QuestionAnsweringModel(
        BertEncoder(EncoderConfig.tiny(vocab_size=len(wordpiece), num_hidden_layers=1))
    )
    torch.nn.init.constant_(model.boundaries.weight, float("nan"))
    with pytest.raises(InputError, match="scores are not numbers: its weights are damaged"):
        qa.QuestionAnswerer(model, wordpiece).answer(QUESTION, CONTEXT)


def test_a_foreign_vocabulary_is_named_before_the_training(wordpiece, monkeypatch):
    monkeypatch.setattr(qa, "fit", lambda head, *_: (head(), None))
    encoder = BertEncoder(EncoderConfig.tiny(vocab_size=8_000, num_hidden_layers=1))
    with pytest.warns(UserWarning, match="only 2,000 tokens and the model 8,000"):
        qa.fine_tune(
            encoder, wordpiece, [Question("q", QUESTION, CONTEXT)], qa.QuestionAnsweringSettings()
        )


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
    assert torch.allclose(output.start_logits, starts, atol=1e-4) and torch.allclose(
        output.end_logits, ends, atol=1e-4
    )


def old_folder(folder, tokens, config=None):
    """As the released fine-tuned SpanBERT: a config without model_type, pytorch_model.bin, a
    vocabulary and no more."""
    sizes = {
        "vocab_size": len(tokens),
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
    }
    torch.manual_seed(1)
    model = BertForQuestionAnswering(BertConfig(**sizes, initializer_range=0.3)).eval()
    folder.mkdir()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    settings = {
        **sizes,
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
        assert (
            not answerer.wordpiece.lowercase and answerer.max_length == 64
        )  # no more positions than there are
    context = "Alice Mercer from Upton"
    tokenizer = BertTokenizerFast(str(tmp_path / "old" / "vocab.txt"), do_lower_case=False)
    encoded = tokenizer(QUESTION, context, return_tensors="pt")
    (window,) = windows(encode(answerer.wordpiece, QUESTION, context), answerer.wordpiece, 64, 16)
    assert window.ids.tolist() == encoded["input_ids"][0].tolist()
    with torch.no_grad():
        output, (starts, ends) = model(**encoded), answerer.model.scores(qa.stacked([window], 0))
    assert torch.allclose(output.start_logits, starts, atol=1e-5) and torch.allclose(
        output.end_logits, ends, atol=1e-5
    )
    found = answerer.answer(question=QUESTION, context=context, threshold=1e9)
    assert found.text and context[found.start : found.end] == found.text


def test_an_uncased_vocabulary_lowercases(tmp_path):
    tokens = [*SPECIALS, "who", "?", "alice", "in", "upton"]
    old_folder(tmp_path / "old", tokens)
    assert qa.QuestionAnswerer.from_pretrained(tmp_path / "old").wordpiece.lowercase
    (tmp_path / "old" / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert not qa.QuestionAnswerer.from_pretrained(tmp_path / "old").wordpiece.lowercase


def test_wrong_checkpoints_are_named(tmp_path, wordpiece):
    with pytest.raises(
        InputError, match=r"no question answering head \(qa_outputs\): fine-tune it first"
    ):
        qa.QuestionAnswerer.from_pretrained(data_path("checkpoints", "spanbert-tiny"))
    with pytest.raises(InputError, match="no folder"):
        qa.QuestionAnswerer.from_pretrained(tmp_path / "nowhere")
    old_folder(tmp_path / "old", wordpiece.vocabulary[:500])
    with pytest.raises(InputError, match="2,000 tokens and the model 500"):
        qa.QuestionAnswerer.from_pretrained(
            tmp_path / "old", tokenizer=data_path("almanac", "vocab.txt")
        )
    (tmp_path / "small.txt").write_text(
        "\n".join(wordpiece.vocabulary[:300]) + "\n", encoding="utf-8"
    )
    with pytest.warns(
        UserWarning, match="only 300 tokens and the model 500: most likely it is not the one"
    ):
        qa.QuestionAnswerer.from_pretrained(tmp_path / "old", tokenizer=tmp_path / "small.txt")
    old_folder(
        tmp_path / "words", wordpiece.vocabulary[:500], {"spanbert_tutorial": {"length": "abc"}}
    )
    with pytest.raises(InputError, match="has the length 'abc': write a whole number"):
        qa.QuestionAnswerer.from_pretrained(tmp_path / "words")


def test_the_readers_questions_fit_into_windows(wordpiece):
    data = qa.QuestionAnsweringData(
        read(data_path("reader", "reader.json")), wordpiece, qa.QuestionAnsweringSettings()
    )
    assert len(data) >= 294 and max(data.lengths()) <= 256
    assert 100 < sum(found != (0, 0) for found in data.targets)


# --- what hubs hold -----------------------------------------------------------------


def fake_hub(monkeypatch, folders, cache):
    """The hub's client, answering from local folders by name with the files that were asked for, in
    `cache`; returns the (name, files) that it was asked for."""
    asked = []

    def download(name, allow_patterns):
        asked.append((name, tuple(allow_patterns)))
        target = cache / name
        target.mkdir(parents=True, exist_ok=True)
        for file in folders[name].iterdir():
            if any(file.match(pattern) for pattern in allow_patterns):
                shutil.copy(file, target)
        return str(target)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    return asked


def test_the_call_of_the_notes_takes_a_model_and_a_vocabulary_of_two_names(
    monkeypatch, tmp_path, wordpiece
):
    old_folder(tmp_path / "model", wordpiece.vocabulary)
    (tmp_path / "model" / "vocab.txt").rename(tmp_path / "vocab.txt")
    (tmp_path / "vocabulary").mkdir()
    (tmp_path / "vocab.txt").rename(tmp_path / "vocabulary" / "vocab.txt")
    names = {"owner/finetuned": tmp_path / "model", "owner/cased": tmp_path / "vocabulary"}
    asked = fake_hub(monkeypatch, names, tmp_path / "cache")
    answerer = qa.QuestionAnswerer.from_pretrained("owner/finetuned", tokenizer="owner/cased")
    assert answerer.answer(question=QUESTION, context="Alice Mercer", threshold=1e9).text
    of_vocabulary = [files for name, files in asked if name == "owner/cased"]
    assert of_vocabulary and not any(
        "safetensors" in file or ".bin" in file for file in sum(of_vocabulary, ())
    )
    with pytest.raises(InputError, match="in Python by tokenizer="):
        qa.QuestionAnswerer.from_pretrained("owner/finetuned")


def test_a_config_of_2020_says_how_to_generate_text_too(tmp_path, wordpiece):
    keys = {
        "do_sample": False,
        "max_length": 20,
        "num_beams": 1,
        "temperature": 1.0,
        "top_k": 50,
        "top_p": 1.0,
        "repetition_penalty": 1.0,
        "length_penalty": 1.0,
        "num_return_sequences": 1,
        "eos_token_ids": 0,
        "_num_labels": 2,
        "xla_device": None,
        "task_specific_params": None,
        "spanbert_tutorial": None,
    }
    model = old_folder(tmp_path / "old", wordpiece.vocabulary, keys)
    state = {
        f"module.{name}": weight for name, weight in model.state_dict().items()
    }  # from torch's DataParallel
    torch.save(state, tmp_path / "old" / "pytorch_model.bin")
    answerer = qa.QuestionAnswerer.from_pretrained(tmp_path / "old")
    assert torch.equal(answerer.model.boundaries.weight, model.qa_outputs.weight)


def test_accents_as_the_folder_says(tmp_path):
    tokens = [*SPECIALS, "who", "?", "schon", "schön"]
    old_folder(tmp_path / "old", tokens)
    config = tmp_path / "old" / "tokenizer_config.json"
    for told, wanted in [
        ("{}", "schon"),
        ('{"strip_accents": false}', "schön"),
        ('{"do_lower_case": null}', "schon"),
    ]:
        config.write_text(told)
        wordpiece = qa.QuestionAnswerer.from_pretrained(tmp_path / "old").wordpiece
        assert wordpiece.tokens(wordpiece.encode("Schön")) == [wanted]
        theirs = BertTokenizerFast(
            str(tmp_path / "old" / "vocab.txt"), strip_accents=wordpiece.strip_accents
        )
        assert theirs.tokenize("Schön") == [wanted]
        (tmp_path / "saved").mkdir(exist_ok=True)
        wordpiece.save(tmp_path / "saved")
        again = WordPiece.from_file(tmp_path / "saved" / "tokenizer.json")
        assert again.tokens(again.encode("Schön")) == [wanted]


def test_an_answer_keeps_an_accent_that_was_taken_off(tmp_path):
    old_folder(tmp_path / "old", [*SPECIALS, "who", "?", "cafe", "was"])
    context = "was cafe\u0301 was"  # the accent is a character of its own
    for told in ("{}", '{"do_lower_case": false, "strip_accents": true}'):
        (tmp_path / "old" / "tokenizer_config.json").write_text(told)
        answerer = qa.QuestionAnswerer.from_pretrained(tmp_path / "old")
        encoded = encode(answerer.wordpiece, "who?", context)
        assert [context[a:b] for a, b in encoded.offsets] == ["was", "cafe\u0301", "was"]
        encoded = encode(
            answerer.wordpiece, "who?", "was cafe\u0301\u0302"
        )  # two on one letter, at the end
        assert encoded.offsets.tolist() == [[0, 3], [4, 10]]


def test_bad_pairs_are_named_after_what_came_before(answerer):
    pairs = [(QUESTION, CONTEXT), (QUESTION, CONTEXT), ("\u200b", CONTEXT), (QUESTION, CONTEXT)]
    answers = answerer.answer_many(pairs)
    assert next(answers) == next(answers)
    with pytest.raises(InputError, match="^pair 3: the question is empty"):
        next(answers)
    with pytest.raises(InputError, match="half a character"):
        answerer.answer("who \ud83d", CONTEXT)
    with pytest.raises(InputError, match="leaves no room for the context in 48 positions"):
        answerer.answer(QUESTION * 9, CONTEXT)


def test_questions_that_cannot_be_trained_on_are_named(wordpiece):
    bad = Question("q7", "Who? " * 60, CONTEXT)
    with pytest.raises(InputError, match="^question q7: a question of 64 tokens leaves no room"):
        qa.QuestionAnsweringData([bad], wordpiece, qa.QuestionAnsweringSettings(max_length=60))
    encoder = BertEncoder(EncoderConfig.tiny(vocab_size=500))
    with pytest.raises(InputError, match="the vocabulary has 2,000 tokens and the model 500"):
        qa.fine_tune(
            encoder, wordpiece, [Question("1", QUESTION, CONTEXT)], qa.QuestionAnsweringSettings()
        )
