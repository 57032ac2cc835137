"""Files of the tasks as they are found outside, and `predict` for labeled, unlabeled and plain ones."""

import json
import warnings

import pytest
import torch

from spanbert_tutorial.__main__ import main
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary
from spanbert_tutorial.tasks import coreference, relation_extraction, squad, tagging
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks.classification import ClassificationModel, SentencePredictor
from spanbert_tutorial.tasks.relation_files import read as read_relations
from spanbert_tutorial.tasks.sentence_files import read as read_sentences
from spanbert_tutorial.tasks.squad import GoldAnswer, Question
from spanbert_tutorial.text.lines import read_text

TINY = data_path("checkpoints", "spanbert-tiny")
WORDPIECE: WordPiece = read_vocabulary(TINY)
CONTEXT = "Nora Vance bought a boat. She named it Star."


def encoder(tokens=2_000):
    torch.manual_seed(0)
    return BertEncoder(EncoderConfig.tiny(vocab_size=tokens, num_hidden_layers=1))


def written(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def asked(text=CONTEXT, answer="Nora Vance", **more):
    answers = {"answers": [{"text": answer, "answer_start": text.find(answer)}]} if answer else {}
    entry = {"id": "a", "question": "Who bought a boat?"} | answers | more
    return {"data": [{"title": "T", "paragraphs": [{"context": text, "qas": [entry]}]}]}


# --- questions ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def answerer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "qa"
    model = qa.QuestionAnsweringModel(encoder())
    qa.QuestionAnswerer(model, WORDPIECE, 96, 48, max_answer_length=3).save(folder, {})
    return folder


def test_the_limit_of_answers_is_kept_with_the_model(answerer):
    opened = qa.QuestionAnswerer.from_pretrained(answerer)
    assert opened.max_answer_length == 3
    answer = opened.answer("Who left?", CONTEXT, threshold=float("inf"), n_best=5)
    assert len(answer.n_best) == 5 and answer.n_best[0].text == answer.text
    assert all(CONTEXT[one.start : one.end] == one.text for one in answer.n_best)
    assert [one.score for one in answer.n_best] == sorted(o.score for o in answer.n_best)[::-1]
    with pytest.raises(InputError, match=r"give \(question, context\)"):
        next(opened.answer_many([{"question": "Who left?", "context": CONTEXT}]))


def test_answers_that_are_lost_or_too_long_are_counted():
    text = "Star " + "river boat " * 40
    question = Question("a", "What?", text, answers=(GoldAnswer(text.strip(), 0),))
    settings = qa.QuestionAnsweringSettings(max_length=32, doc_stride=16)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        qa.QuestionAnsweringData([question], WORDPIECE, settings)
    said = " ".join(str(one.message) for one in told)
    assert "1 answer is complete in no window of 32 positions (trained as no answer)" in said
    assert "1 answer is longer than 30 tokens and can never be given" in said


def test_lost_answers_and_unknown_words_are_told(tmp_path, capsys):
    def looked_at(text, answer, *more):
        data = written(tmp_path, "data.json", asked(text, answer))
        given = ["--task", "squad", "--data", data, "--vocabulary", TINY, *more]
        assert main(["inspect", *map(str, given)]) == 0
        said = capsys.readouterr()
        return said.out.splitlines()[0], said.err

    long = "Star " + "river boat " * 40
    lost = "1 answer is complete in no window of 32"
    assert lost in looked_at(long, long.strip(), "--max-length", "32")[1]
    assert looked_at(CONTEXT, "Star")[0] == "1 question, 0 without an answer, 0 skipped."
    assert "words have more than 100 characters" in looked_at("ก" * 120 + " Nora", "Nora")[0]
    output = tmp_path / "model"
    data = written(tmp_path, "data.json", asked(long, long.strip()))
    given = ["--data", data, "--init-from", TINY, "--max-length", "32", "--output", output]
    assert main(["finetune", "squad", *map(str, given)]) == 0
    assert lost in capsys.readouterr().err


def test_notes_of_evaluate(answerer, tmp_path, capsys):
    def notes(content, *more):
        data = written(tmp_path, "data.json", content)
        output = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        given = ["--model", answerer, "--data", data, "--output", output, *more]
        assert main(["evaluate", "squad", *map(str, given)]) == 0
        said = capsys.readouterr()
        return said.err, json.loads(said.out)

    empty = asked(answer="", answers=[])
    said, scores = notes(empty)
    assert "No question has an answer" in said and "intervals" not in scores
    said, _ = notes(asked(answer="Nora Vance bought a boat"))
    assert "1 answer is longer than 3 tokens" in said
    said, _ = notes(asked(answer="Nora Vance bought a boat"), "--max-answer-length", "30")
    assert "longer" not in said
    chinese = asked("诺拉买了船。她走了。", "诺拉")
    said, _ = notes(chinese)
    assert "--characters adds" in said
    said, scores = notes(chinese, "--characters")
    assert "adds" not in said and 0 <= scores["character_f1"] <= 100


def test_f1_over_characters():
    pairs = [("诺拉·万斯买了一条船", "诺拉·万斯"), ("서울에서", "서울"), ("星星。", "星星")]
    assert [round(squad.character_f1(*pair), 2) for pair in pairs] == [0.67, 0.67, 0.8]
    assert squad.character_f1("", "") == 1 and squad.character_f1("a b", "ab") > 0


def test_an_answer_without_a_token_is_refused(tmp_path):
    text = "The key \ue000 opens the chest."
    with pytest.raises(InputError, match="question a: the answer is empty"):
        squad.read(written(tmp_path, "data.json", asked(text, "\ue000")))


def test_a_byte_order_mark_is_no_character_of_the_text(answerer, tmp_path, capsys):
    def place(text):
        path = written(tmp_path, "text.txt", text)
        given = ["--model", answerer, "--context-file", path, "--question", "Who?", "--n-best", "2"]
        assert main(["answer", *map(str, given), "--threshold=inf"]) == 0
        return capsys.readouterr().out

    assert place("\ufeff" + CONTEXT) == place(CONTEXT)


def test_rules_for_english_say_so(tmp_path, capsys):
    long = "Der alte Fischer kaufte gestern früh ein großes blaues Boot im Hafen von Kiel.\n\n" * 5
    english = "The old fisher bought a large blue boat of the harbor and sailed away.\n\n"
    for text, code, foreign in ((long, 0, True), (english, 0, False), (long[:30], 2, True)):
        path = written(tmp_path, "text.txt", text)
        given = ["--corpus", str(path), "--output", str(tmp_path / f"{len(text)}.json")]
        assert main(["make-questions", *given]) == code
        assert ("the rules are for English" in capsys.readouterr().err) == foreign


# --- coreference --------------------------------------------------------------------


def conll(*words, name="demo", last="-"):
    rows = [f"{name}\t0\t{n}\t{word}\t-\t{last}" for n, word in enumerate(words)]
    return "\n".join([f"#begin document ({name}); part 000", *rows, "", "#end document", ""])


def test_escapes_of_treebanks(tmp_path):
    content = conll("-LRB-", "a", "-rrb-", "``", "no", "''", "1\\/2", "5", "%", "%um", "/.")
    (document,) = coreference.read(written(tmp_path, "a.conll", content))
    assert document.words == ["(", "a", ")", '"', "no", '"', "1/2", "5", "%", "um", "."]


def test_documents_that_stand_twice(tmp_path):
    plain, labeled = conll("Nora", "left"), conll("Nora", "left", last="(1)")
    twice = coreference.read(written(tmp_path, "a.conll", plain + plain))
    assert len(twice) == 1 and twice.skipped == 1
    (tmp_path / ".ipynb_checkpoints").mkdir()
    written(tmp_path / ".ipynb_checkpoints", "a.conll", labeled)
    assert len(coreference.read(tmp_path)) == 1
    with pytest.raises(InputError, match="__pycache__ holds no file with conll in its name"):
        (tmp_path / "__pycache__").mkdir()
        coreference.read(tmp_path / "__pycache__")
    written(tmp_path, "b.v4_gold_conll", labeled)
    with pytest.raises(InputError, match="a.conll and in .*b.v4_gold_conll with other clusters"):
        coreference.read(tmp_path)


@pytest.mark.parametrize("sign", ["\u00ad", "\ufffd", "\u200b", "\ue000"])
def test_offsets_behind_invisible_signs(sign):
    text = f"Ve{sign}ltin left. 诺拉走了。Nora saw Veltin."
    document = coreference.plain(text)
    offsets = document.offsets
    seen = [text[start:end].replace(sign, "") for start, end in offsets]
    assert seen == document.words and offsets[:2] == [(0, 7), (8, 12)]
    assert len(document.sentences) == 3
    with pytest.raises(InputError, match="the mentions of text: no 3"):
        coreference.plain(text, mentions=[[(0, 3)]])


# --- relations, sentences -----------------------------------------------------------


def tacred(relation="owns", number="x1", **more):
    words = ["Nora", "bought", "-LRB-", "boat", "."]
    places = {"subj_start": 0, "subj_end": 0, "obj_start": 3, "obj_end": 3}
    kinds = {"subj_type": "PERSON", "obj_type": "THING"}
    return {"id": number, "token": words, "relation": relation} | places | kinds | more


def test_relations_that_stand_twice(tmp_path):
    same = read_relations(written(tmp_path, "a.json", [tacred(), tacred(), tacred(number="x2")]))
    assert len(same) == 2 and same.skipped == 1 and same[0].words[2] == "("
    with pytest.raises(InputError, match="x1 occurs as owns and as no_relation"):
        read_relations(written(tmp_path, "a.json", [tacred(), tacred("no_relation")]))


def test_sentences_of_odd_files(tmp_path):
    snli = "gold_label\tsentence1\tsentence2\nneutral\tA boat.\tA ship.\n-\tA key.\tA lock.\n"
    found = read_sentences(written(tmp_path, "a.txt", snli), subtask="mnli")
    assert len(found) == 1 and found.skipped == 1
    with pytest.raises(InputError, match="a.tsv, line 2: a sentence is empty"):
        read_sentences(written(tmp_path, "a.tsv", "sentence\tlabel\n\ue000\t1\n"), subtask="sst2")


# --- tagging ------------------------------------------------------------------------

COLUMNS = """-DOCSTART- -X- O

Nora NNP B-PER
Vance NNP I-PER
left VBD O
-LRB- -LRB- O

Star NNP I-BOAT
"""


def test_columns_and_json_lines(tmp_path):
    texts = tagging.read(written(tmp_path, "a.txt", COLUMNS))
    assert texts == [("Nora Vance left (", [(0, 10, "PER")]), ("Star", [(0, 4, "BOAT")])]
    rows = [{"text": CONTEXT, "entities": [[0, 10, "PER"], [39, 43, "BOAT"]]}]
    rows.append({"text": "Star.", "entities": [{"start": 0, "end": 4, "label": "BOAT"}]})
    path = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert tagging.read(path)[0] == (CONTEXT, [(0, 10, "PER"), (39, 43, "BOAT")])
    for content, named in (
        (COLUMNS.replace("I-PER", "E-PER"), 'line 4: "E-PER" is no tag'),
        ("Nora\nleft\n", 'line 1: "" is no tag'),
        ("Nora O\n", "names anything"),
    ):
        with pytest.raises(InputError, match=named):
            tagging.read(written(tmp_path, "b.txt", content))
    rows[0]["entities"] = [[0, 10, "PER"], [5, 10, "PER"]]
    with pytest.raises(InputError, match="line 1: the PER from 5 to 10"):
        tagging.read(written(tmp_path, "c.jsonl", json.dumps(rows[0])))
    with pytest.raises(InputError, match="the text 'NewYork': the B at 3 to 7"):
        shared = [("NewYork", [(0, 3, "A"), (3, 7, "B")])]
        tagging.TaggingData(shared, WORDPIECE, tagging.PRESETS["small"])


def test_scores_of_entities():
    texts = [("Nora left Star", [(0, 4, "PER"), (10, 14, "BOAT")]), ("No", [])]
    found = tagging.score(texts, [[(0, 4, "PER", 0.9)], [(0, 2, "PER", 0.5)]])
    assert found["precision"] == found["recall"] == found["f1"] == 50
    assert found["labels"] == {"BOAT": 0.0, "PER": pytest.approx(200 / 3)}
    with pytest.raises(InputError, match="no text names anything"):
        tagging.score([("No", [])], [[]])


def test_long_texts_are_cut_between_words():
    text = "Nora Vance bought a boat . " * 40
    words = tagging.Words.of(text, WORDPIECE)
    parts = words.parts(32)
    assert max(len(part.ids) for part in parts) <= 32
    assert sum(len(part.positions) for part in parts) == len(words.positions) == 240
    for part in parts:
        whole = WORDPIECE.starts[part.ids[part.positions]]
        assert whole.all() and part.positions[0] == 1


# --- predict ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(answerer):
    folder = answerer.parent
    model = ClassificationModel(encoder(), 2)
    SentencePredictor(model, WORDPIECE, 64, labels=["0", "1"]).save(folder / "sst2", {})
    tags = ["O", "B-PER", "I-PER"]
    model = tagging.TaggingModel(encoder(), 3)
    tagging.Tagger(model, WORDPIECE, 32, tags=tags).save(folder / "tags", {})
    model = coreference.CoreferenceModel(encoder(), 3, True)
    torch.nn.init.constant_(model.mention_scorer[-1].bias, 5.0)
    facts = {"max_words": 3, "singletons": True}
    coreference.CoreferenceResolver(model, WORDPIECE, 64, **facts).save(folder / "coref", {})
    markers = ["[/OBJ]", "[/SUBJ]", "[OBJ]", "[SUBJ]"]
    larger = WORDPIECE.with_tokens(markers)
    model = relation_extraction.RelationModel(encoder(len(larger)), 2, "entities")
    facts = {"relations": ["no", "owns"], "marking": "around", "head": "entities"}
    extractor = relation_extraction.RelationExtractor(model, larger, 64, **facts)
    extractor.save(folder / "rel", {})
    return folder


def predicted(folder, task, model, *data, more=()):
    output = folder / f"{task}{len(list(folder.iterdir()))}.jsonl.gz"
    given = ["--model", model, "--data", *data, "--output", output, *more]
    assert main(["predict", task, *map(str, given)]) == 0
    return [json.loads(line) for line in read_text(output, "").splitlines()]


def test_predict_answers(models, tmp_path):
    labeled = written(tmp_path, "a.json", asked(answer="not there"))
    bare = written(tmp_path, "b.json", asked(answer=""))
    table = written(
        tmp_path, "c.csv", f"question,context,answer\nWho bought a boat?,{CONTEXT},no\n"
    )
    plain = written(tmp_path, "d.txt", "\ufeff" + CONTEXT)
    more = ("--threshold=inf", "--n-best", "2")
    ask = (*more, "--question", "Who bought a boat?")
    found = [
        predicted(tmp_path, "squad", models / "qa", one, more=ask if one is plain else more)
        for one in (labeled, bare, table, plain)
    ]
    places = {(row["start"], row["end"]) for (row,) in found}
    assert len(places) == 1 and len(found[0][0]["n_best"]) == 2
    assert found[0][0]["text"] == CONTEXT[slice(*places.pop())]
    (tmp_path / "in").mkdir()
    both = plain, written(tmp_path / "in", plain.name, CONTEXT)
    ids = [row["id"] for row in predicted(tmp_path, "squad", models / "qa", *both, more=ask)]
    assert len({*ids}) == 2
    given = ["--model", models / "qa", "--data", labeled]
    given += ["--output", tmp_path / "x", "--question", "?"]
    assert main(["predict", "squad", *map(str, given)]) == 2 and not (tmp_path / "x").exists()


def test_predict_clusters(models, tmp_path):
    text = "No\u00adra saw the boat. She liked it."
    plain = written(tmp_path, "story.txt", text)
    (row,) = predicted(tmp_path, "coreference", models / "coref", plain)
    mentions = [mention for cluster in row["clusters"] for mention in cluster]
    assert mentions and all(text[one["start"] : one["end"]] == one["text"] for one in mentions)
    words = written(tmp_path, "a.conll", conll("Nora", "saw", "it"))
    (row,) = predicted(tmp_path, "coreference", models / "coref", words)
    assert row["name"] == "demo"


def test_predict_relations(models, tmp_path):
    bare = tacred()
    del bare["relation"]
    json_file = written(tmp_path, "a.json", [bare])
    line = "<e1>Nora</e1> bought ( <e2>boat</e2> ."
    text = f'{line}\r\n\r\n7\t"The <e1>old boat</e1> left <e2>Veltin</e2>"\r\nComment: {line}\r\n{line}\n'
    (tmp_path / "b.txt").write_bytes(text.encode())
    (one,) = predicted(tmp_path, "relations", models / "rel", json_file)
    others = predicted(tmp_path, "relations", models / "rel", tmp_path / "b.txt")
    first, second, third = others
    assert one["relation"] == first["relation"] == third["relation"]
    assert one["score"] == pytest.approx(first["score"])
    assert one["object"] == {"text": "boat", "first": 3, "last": 3}
    assert (first["subject"]["text"], second["subject"]["text"]) == ("Nora", "old boat")
    for place in (row[role] for row in others for role in ("subject", "object")):
        assert text[place["start"] : place["end"]] == place["text"]
    assert third["object"]["start"] > second["object"]["start"]


def test_predict_sentences(models, tmp_path):
    table = written(tmp_path, "a.tsv", "index\tsentence\n0\tA fine boat.\n")
    plain = written(tmp_path, "b.txt", "A fine boat.\n")
    more = ("--subtask", "sst2")
    rows = [predicted(tmp_path, "sentences", models / "sst2", p, more=more) for p in (table, plain)]
    bare = written(tmp_path, "c.tsv", "xx00\t1\t\tA fine boat.\n")
    for cola in (table, bare, plain):
        found = read_sentences(cola, subtask="cola", labeled=False)
        assert found == [(("A fine boat.", None), "")]
    assert rows[0] == rows[1] and rows[0][0]["label"] in "01" and 0.5 <= rows[0][0]["score"] <= 1


def test_predict_and_evaluate_tags(models, tmp_path, capsys):
    text = "Nora left.\r\nNora Vance saw Star. " * 4
    (row,) = predicted(tmp_path, "tagging", models / "tags", written(tmp_path, "a.txt", text))
    assert all(row["text"][e["start"] : e["end"]] == e["text"] for e in row["entities"])
    lines = written(tmp_path, "a.jsonl", json.dumps({"text": CONTEXT}))
    assert predicted(tmp_path, "tagging", models / "tags", lines)[0]["text"] == CONTEXT
    columns = written(tmp_path, "b.txt", COLUMNS)
    rows = predicted(tmp_path, "tagging", models / "tags", columns)
    assert [row["text"] for row in rows] == ["Nora Vance left (", "Star"]
    given = ["--model", models / "tags", "--data", columns, "--output", tmp_path / "scores"]
    capsys.readouterr()
    assert main(["evaluate", "tagging", *map(str, given)]) == 0
    assert set(json.loads(capsys.readouterr().out)["labels"]) == {"BOAT", "PER"}
