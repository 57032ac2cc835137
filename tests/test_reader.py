"""The reader: exact SQuAD 2.0 format, exact offsets, balanced and varied questions that are no
copies of the text."""

import json
import re
from collections import Counter
from statistics import mean

import pytest

from spanbert_tutorial.engine.files import data_path

CATEGORIES = {
    "negation",
    "antonym",
    "entity_swap",
    "mutual_exclusion",
    "impossible_condition",
    "other_neutral",
}
QUESTION_WORD = re.compile(
    r"\b(who|whose|whom|when|where|why|how (?:many|much|long)|how|which|what)\b"
)
NUMBER_WORDS = (
    "two|three|four|five|six|eight|ten|eleven|fifteen|forty|fifty|hundred|million|century|June"
)
NUMBER = re.compile(rf"\d|\b({NUMBER_WORDS})\b", re.IGNORECASE)
NEGATIVE = re.compile(r"\b(not|no|never|nobody|without)\b")
FUNCTION_WORDS = set(
    "a an the of in on at to for from by with and or but is are was were be been being do does "
    "did has have had it its "
    "he his she her him you they their them that this these those who whom whose what which when "
    "where why how many "
    "much long not no than as after before there so if can could would one".split()
)


@pytest.fixture(scope="module")
def reader():
    return json.loads(data_path("reader", "reader.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def contexts(reader):
    return [
        paragraph["context"] for article in reader["data"] for paragraph in article["paragraphs"]
    ]


@pytest.fixture(scope="module")
def questions(reader):
    """(context, question) pairs in the file's order."""
    return [
        (paragraph["context"], qa)
        for article in reader["data"]
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    ]


@pytest.fixture(scope="module")
def readme():
    return data_path("reader", "README.md").read_text(encoding="utf-8")


def marked(qa: dict) -> list[dict]:
    """What is marked in the context: answers, or plausible answers of an unanswerable question."""
    return qa["plausible_answers"] if qa["is_impossible"] else qa["answers"]


def sentences(context: str) -> list[tuple[int, int]]:
    """First and last character (exclusive) of each sentence; "P. T. Barnum" or "L. L. Zamenhof" end
    none."""
    ends = [match.end() for match in re.finditer(r"(?<!\b[A-Z])[.!?](?=\s)|[.!?]$", context)]
    return list(zip([0, *(end + 1 for end in ends[:-1])], ends, strict=True))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def copied_share(context: str, qa: dict) -> float:
    """Share of the question's content words that stand in the sentence of its first (plausible)
    answer."""
    start = marked(qa)[0]["answer_start"]
    first, last = next(span for span in sentences(context) if start < span[1])
    content = [word for word in words(qa["question"]) if word not in FUNCTION_WORDS]
    return mean(word in words(context[first:last]) for word in content)


def question_word(question: str) -> str:
    return QUESTION_WORD.search(question.lower())[1]


def test_the_file_is_written_in_one_way(reader):
    expected = json.dumps(reader, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    assert data_path("reader", "reader.json").read_bytes() == expected.encode("utf-8")


def test_the_fields_are_those_of_squad_2_and_a_category(reader, questions):
    assert set(reader) == {"version", "data"} and reader["version"] == "v2.0"
    for article in reader["data"]:
        assert set(article) == {"title", "paragraphs"}
        assert all(set(paragraph) == {"context", "qas"} for paragraph in article["paragraphs"])
    for _, qa in questions:
        more = {"plausible_answers", "category"} if qa["is_impossible"] else set()
        assert set(qa) == {"id", "question", "is_impossible", "answers"} | more
        assert isinstance(qa["is_impossible"], bool)
        assert all(set(answer) == {"text", "answer_start"} for answer in marked(qa))


def test_marked_texts_are_exact_slices_and_no_whole_sentences(questions):
    for context, qa in questions:
        whole = {context[first:last].rstrip(".") for first, last in sentences(context)}
        for answer in marked(qa):
            start = answer["answer_start"]
            text = answer["text"]
            assert context[start : start + len(text)] == text, qa["id"]
            assert text == text.strip() and text and text.rstrip(".") not in whole, qa["id"]
            before = context[:start][-1:]
            after = context[start + len(text) :][:1]
            assert not before.isalnum() and not after.isalnum(), qa["id"]


def test_answerable_questions_have_two_or_three_answers_and_unanswerable_ones_none(questions):
    for _, qa in questions:
        assert len(qa["answers"]) in ((0,) if qa["is_impossible"] else (2, 3)), qa["id"]
        assert len(marked(qa)) >= 1, qa["id"]


def test_there_are_enough_articles_and_questions_and_half_are_unanswerable(reader, questions):
    assert len(reader["data"]) >= 40 and len(questions) >= 240
    assert 0.45 <= mean(qa["is_impossible"] for _, qa in questions) <= 0.55
    counts = Counter(qa["category"] for _, qa in questions if qa["is_impossible"])
    assert set(counts) == CATEGORIES and min(counts.values()) >= 12


def test_articles_are_short_and_every_article_has_both_kinds_of_question(reader):
    assert len({article["title"] for article in reader["data"]}) == len(reader["data"])
    for article in reader["data"]:
        paragraphs = article["paragraphs"]
        assert 2 <= len(paragraphs) <= 3
        assert 100 <= sum(len(paragraph["context"].split()) for paragraph in paragraphs) <= 300, (
            article["title"]
        )
        assert all(paragraph["qas"] for paragraph in paragraphs), article["title"]
        assert {qa["is_impossible"] for paragraph in paragraphs for qa in paragraph["qas"]} == {
            True,
            False,
        }


def test_contexts_are_clean_text(contexts):
    assert len(set(contexts)) == len(contexts)
    for context in contexts:
        assert context == " ".join(context.split()) and context.endswith(".")


def test_ids_are_unique_and_number_the_questions_of_an_article(reader, questions):
    ids = [qa["id"] for _, qa in questions]
    assert len(set(ids)) == len(ids)
    for article in reader["data"]:
        pairs = [
            qa["id"].rsplit("-", 1)
            for paragraph in article["paragraphs"]
            for qa in paragraph["qas"]
        ]
        assert len({slug for slug, _ in pairs}) == 1 and re.fullmatch("[a-z-]+", pairs[0][0])
        assert [int(number) for _, number in pairs] == list(range(1, len(pairs) + 1))


def test_no_question_is_asked_twice_or_stands_in_the_text(contexts, questions):
    asked = [" ".join(words(qa["question"])) for _, qa in questions]
    assert len(set(asked)) == len(asked)
    text = " ".join(word for context in contexts for word in words(context))
    for (_, qa), question in zip(questions, asked, strict=True):
        assert (
            qa["question"].endswith("?") and qa["question"][0].isupper() and question not in text
        ), qa["id"]


def test_questions_are_not_copies_of_their_sentence(questions, readme):
    shares = {False: [], True: []}
    for context, qa in questions:
        shares[qa["is_impossible"]].append(copied_share(context, qa))
    for kind, values in shares.items():
        assert mean(values) <= 0.40, kind
        assert mean(value == 1 for value in values) <= 0.05, kind
    # Otherwise counting common words would tell the two kinds apart.
    assert abs(mean(shares[False]) - mean(shares[True])) <= 0.05
    assert (
        f"{mean(shares[False]):.2f} (answerable) and {mean(shares[True]):.2f} (unanswerable)"
        in readme
    )


def test_question_words_vary_and_do_not_give_the_kind_away(questions, readme):
    counts = Counter((question_word(qa["question"]), qa["is_impossible"]) for _, qa in questions)
    totals = Counter(question_word(qa["question"]) for _, qa in questions)
    assert max(totals.values()) <= 0.35 * len(questions)
    frequent = [word for word, count in totals.items() if count >= 15]
    assert {"who", "what", "when", "where", "why", "which", "how", "how many"} <= set(frequent)
    assert all(0.25 <= counts[word, True] / totals[word] <= 0.75 for word in frequent)
    for word, total in totals.items():
        assert f"| {word} | {total - counts[word, True]} | {counts[word, True]} |" in readme, word


def test_answerable_questions_use_negative_words_too(questions):
    negative = [
        qa["id"]
        for _, qa in questions
        if not qa["is_impossible"] and NEGATIVE.search(qa["question"])
    ]
    assert len(negative) >= 8


def test_marked_texts_have_the_type_that_is_asked_for(questions):
    for _, qa in questions:
        if question_word(qa["question"]) in ("when", "how many"):
            assert all(NUMBER.search(answer["text"]) for answer in marked(qa)), qa["id"]


def test_the_readme_states_the_counts_of_the_file(reader, contexts, questions, readme):
    impossible = sum(qa["is_impossible"] for _, qa in questions)
    total = sum(len(context.split()) for context in contexts)
    sizes = (
        f"{len(reader['data'])} articles, {len(contexts)} paragraphs, {total:,} words, "
        f"{len(questions)} questions"
    )
    assert sizes in readme
    assert f"{len(questions) - impossible} can be answered and {impossible} cannot" in readme
    different = mean(
        len({a["text"] for a in qa["answers"]}) > 1
        for _, qa in questions
        if not qa["is_impossible"]
    )
    assert f"for {different:.0%} of the answerable questions".replace("%", " %") in readme
    for category, count in Counter(
        qa["category"] for _, qa in questions if qa["is_impossible"]
    ).items():
        assert re.search(rf"\| `{category}` \| .* \| {count} \|", readme), category
