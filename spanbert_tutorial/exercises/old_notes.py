"""Checks for the exercise of `book/tasks/old_notes`."""

import re
from collections.abc import Callable, Sequence

from spanbert_tutorial.bert.wordpiece import SPECIALS
from spanbert_tutorial.exercises.diagnosis import Diagnosis, say

Rule = Callable[[Sequence[str], bool | None], bool]

VOCABULARIES = {
    "small letters only": [*SPECIALS, "the", "##s", "alice", "river"],
    "small letters without special tokens": ["the", "river"],
    "capitals in front": [*SPECIALS, "the", "##s", "Alice", "River"],
    "a capital inside": [*SPECIALS, "the", "eBay", "river"],
    "a capital after ##": [*SPECIALS, "the", "##Kay", "river"],
    "a token in capitals": [*SPECIALS, "the", "NATO", "river"],
    "a capital with an accent": [*SPECIALS, "the", "Évora", "river"],
    "a capital in every token": [*SPECIALS, "The", "River"],
    "special tokens in between": ["[PAD]", "[unused1]", *SPECIALS[1:], "the", "[unused2]", "river"],
    "a capital in brackets on one side": [*SPECIALS, "the", "[A", "river"],
    "digits and signs": [*SPECIALS, "the", "1873", "?", "[", "]", "中", "river"],
}
CASES = [(tokens, told) for tokens in VOCABULARIES.values() for told in (None, True, False)]


def is_special(token: str) -> bool:
    """Whether a token is in brackets, such as [CLS] or [unused1]."""
    return token.startswith("[") and token.endswith("]")


def lower_case(tokens: Sequence[str], told: bool | None) -> bool:
    """Whether texts for this vocabulary must be lower-cased. told: what its tokenizer_config.json
    says, None if nothing."""
    if told is not None:
        return told
    return all(token == token.lower() for token in tokens if not is_special(token))


def _case_in_words(tokens: Sequence[str], told: bool | None) -> str:
    name = next(name for name, vocabulary in VOCABULARIES.items() if vocabulary is tokens)
    return f'with the vocabulary "{name}" and told = {told}'


# --- the likely mistakes, as rules --------------------------------------------------


def rule(
    capital: Callable[[str], bool] = lambda token: token != token.lower(),
    counts: Callable[[str], bool] = lambda token: not is_special(token),
    enough: Callable = any,
    silent: Callable[[bool | None], bool] = lambda told: told is None,
) -> Rule:
    """The right rule with one step changed. silent: when the vocabulary is asked."""

    def changed(tokens: Sequence[str], told: bool | None) -> bool:
        if not silent(told):
            return bool(told)
        return not enough(capital(token) for token in tokens if counts(token))

    return changed


TOLD_FALSE = (
    "`told = False` is an answer, too: the text stays as it is. Ask `told is not None` "
    "instead of `if told`."
)
MISTAKES: list[tuple[Rule, str]] = [
    (
        rule(counts=lambda token: True),
        "[CLS] and the other special tokens have capitals in every vocabulary. Leave them out.",
    ),
    (
        lambda tokens, told: (
            told if told is not None else not any(token != token.lower() for token in tokens[5:])
        ),
        "you skip the first five tokens. Special tokens may be anywhere, and there may be more of "
        "them: look at each token.",
    ),
    (
        rule(counts=lambda token: not token.startswith("[")),
        "you skip everything that begins with a bracket. Only what also ends with one is a special "
        "token.",
    ),
    (rule(silent=lambda told: not told), TOLD_FALSE),
    (
        rule(counts=lambda token: True, silent=lambda told: not told),
        "[CLS] and the other special tokens have capitals in every vocabulary. Leave them out. "
        "And `told = False` is an "
        "answer, too.",
    ),
    (
        rule(silent=lambda told: True),
        "you ignore `told`. It counts before the vocabulary.",
    ),
    (
        lambda tokens, told: not lower_case(tokens, told),
        "this is the other way around: you return whether the vocabulary is cased. A cased one "
        "must not be lower-cased.",
    ),
    (
        lambda tokens, told: told if told is not None else not lower_case(tokens, None),
        "if `told` is None, it is the other way around: a capital means that texts "
        "must not be lower-cased.",
    ),
    (
        lambda tokens, told: True if told is None else told,
        "if `told` is None, you lower-case. So does `transformers`, and that is the mistake: "
        "look into the vocabulary.",
    ),
    (
        lambda tokens, told: False if told is None else told,
        "if `told` is None, you never lower-case. A vocabulary in small letters needs it: look "
        "into the tokens.",
    ),
    (lambda tokens, told: True, "you always lower-case. Look at `told` and at the tokens."),
    (lambda tokens, told: False, "you never lower-case. Look at `told` and at the tokens."),
    (
        rule(capital=lambda token: token[:1].isupper()),
        "you look at the first character only. A capital may come later: eBay, ##Kay.",
    ),
    (
        rule(capital=lambda token: token.removeprefix("##")[:1].isupper()),
        "you look at the first letter only. A capital may come later: eBay.",
    ),
    (
        rule(capital=str.isupper),
        "`isupper` is true only when the whole token is in capitals. One capital is enough.",
    ),
    (
        rule(capital=lambda token: re.search("[A-Z]", token) is not None),
        "A to Z are not all capitals: É is one, too. Compare the token with `token.lower()`.",
    ),
    (
        rule(capital=lambda token: not token.islower()),
        "`islower` is false for digits and signs, which have no case at all. Compare the token "
        "with `token.lower()`.",
    ),
    (
        rule(counts=lambda token: not is_special(token) and not token.startswith("##")),
        "you pass over tokens with ##. They may have capitals, too: ##Kay.",
    ),
    (
        rule(enough=all),
        "you ask whether all tokens have a capital. One such token is enough: `any`.",
    ),
]


diagnose_lower_case = Diagnosis(
    cases=CASES,
    where=_case_in_words,
    read=lambda value, *case: bool(value),
    returns="True or False",
    right=lower_case,
    mistakes=MISTAKES,
    correct="`told` counts first, and a capital in an ordinary token means a cased vocabulary.",
)


def check_lower_case(attempt: Rule) -> None:
    """Prints whether `attempt(tokens, told)` says rightly whether texts must be lower-cased."""
    say(diagnose_lower_case(attempt))
