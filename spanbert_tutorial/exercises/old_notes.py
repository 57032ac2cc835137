"""Check for the exercise of `book/tasks/old_notes`."""

from collections.abc import Callable, Sequence
from functools import partial

from spanbert_tutorial.bert.wordpiece import SPECIALS
from spanbert_tutorial.exercises.diagnosis import Check

VOCABULARIES = (
    [*SPECIALS, "the", "##s", "alice", "river"],
    ["the", "river"],
    [*SPECIALS, "the", "##s", "Alice", "River"],
    [*SPECIALS, "the", "eBay", "river"],
    [*SPECIALS, "the", "##Kay", "river"],
    [*SPECIALS, "the", "Évora", "river"],
    ["[PAD]", "[unused1]", *SPECIALS[1:], "the", "[unused2]", "river"],
    [*SPECIALS, "the", "[A", "river"],
    [*SPECIALS, "the", "1873", "?", "[", "]", "中", "river"],
)
CASES = [(tokens, told) for tokens in VOCABULARIES for told in (None, True, False)]


def lower_case(
    tokens: Sequence[str],
    told: bool | None,
    *,
    special: Callable[[str], bool] = lambda token: token[0] == "[" and token[-1] == "]",
) -> bool:
    """Whether texts for this vocabulary must be lower-cased. told: what its tokenizer_config.json
    says, None if nothing."""
    if told is not None:
        return told
    return all(token == token.lower() for token in tokens if not special(token))


#: Prints whether `attempt(tokens, told)` says rightly whether texts must be lower-cased.
check_lower_case = Check(
    CASES,
    lower_case,
    {
        "[CLS] and the other special tokens have capitals in every vocabulary. "
        "Leave them out.": partial(lower_case, special=lambda token: False),
        "`told = False` is an answer, too: the text stays as it is. Ask `told "
        "is not None` instead of `if told`.": lambda tokens, told: lower_case(tokens, told or None),
        "if `told` is None, you lower-case. So does `transformers`, and that is the mistake: "
        "look into the vocabulary.": lambda tokens, told: True if told is None else told,
    },
    "`told` counts first, and a capital in an ordinary token means a cased vocabulary.",
    returns="True or False",
    read=bool,
)
