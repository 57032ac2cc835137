"""Words of a small text after some merges, and the pairs that come next. Chapter:
`book/bert/wordpiece`."""

from collections import Counter
from html import escape

from spanbert_tutorial.bert.wordpiece import (
    apply_merges,
    count_tokens,
    joined,
    learn_merges,
    pair_scores,
    single_tokens,
    split_words,
)
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.tokens import COLORS, mark_style, strip_html

MOST_WORDS = 40
LONGEST_WORD = 20
SHOWN_PAIRS = 4
WORD = "display:inline-block;margin-right:1.2em"


class Merges:
    """The words of a text after `merges` merges, what was merged, and the best pairs that come
    next.

    criterion: as in `pair_scores`. A token that a merge made carries the number of its first one:
    `the/2` in plain characters. A reader may type the text: raises InputError when it has no words,
    more than 40 different ones, or one of more than 20 characters.
    """

    def __init__(self, text: str, criterion: str, merges: int) -> None:
        counts = Counter(split_words(text))
        longest = max(map(len, counts), default=0)
        if not 0 < len(counts) <= MOST_WORDS or longest > LONGEST_WORD:
            raise InputError(
                f"{len(counts)} different words, the longest with {longest} characters: "
                f"give 1 to {MOST_WORDS} words of at most {LONGEST_WORD} characters."
            )
        self.criterion = criterion
        self.learned = learn_merges(counts, merges, criterion)
        numbered = list(enumerate(map(joined, self.learned), start=1))
        self.number = {token: i for i, token in reversed(numbered)}  # of its first merge
        self.words = {apply_merges(word, self.learned): count for word, count in counts.items()}
        self.tokens = sum(len(word) * count for word, count in self.words.items())
        self.vocabulary = {token for word in counts for token in single_tokens(word)}
        self.vocabulary |= set(self.number)
        scores = pair_scores(self.words, criterion).items()
        self.next_pairs = sorted(scores, key=lambda item: (-item[1], item[0]))[:SHOWN_PAIRS]

    def reason(self, pair: tuple[str, str], score: float) -> str:
        """The score of a pair, with the counts that it comes from."""
        if self.criterion == "frequency":
            return f"{score:.0f}"
        if self.criterion == "gain":
            return f"{score:+.2f} nats"
        tokens, pairs = count_tokens(self.words)
        return f"{pairs[pair]} / ({tokens[pair[0]]} · {tokens[pair[1]]}) = {score:.3f}"

    @property
    def lines(self) -> list[str]:
        """Below the words: the merges so far, the next pairs, the sizes."""
        steps = ", ".join(f"{i} {' '.join(pair)}" for i, pair in enumerate(self.learned, start=1))
        after = "; ".join(
            f"{' '.join(pair)}: {self.reason(pair, score)}" for pair, score in self.next_pairs
        )
        return [
            f"Merged: {steps or 'nothing yet'}.",
            f"Best next pairs, {self.criterion}: {after or 'none is left'}.",
            f"Tokens: {self.tokens} in the text, {len(self.vocabulary)} in the vocabulary.",
        ]

    def __repr__(self) -> str:
        words = (
            " ".join(f"{t}/{self.number[t]}" if t in self.number else t for t in word)
            + f" ×{count}"
            for word, count in self.words.items()
        )
        return "\n".join(["  ".join(words), *self.lines])

    def _token(self, token: str) -> str:
        if token not in self.number:
            return escape(token)
        number = self.number[token]
        style = mark_style(COLORS[(number - 1) % len(COLORS)])
        return f'<span style="{style}">{escape(token)}<sup>{number}</sup></span>'

    def _repr_html_(self) -> str:
        words = "".join(
            f'<span style="{WORD}">{" ".join(map(self._token, word))} <small>×{count}</small></span>'
            for word, count in self.words.items()
        )
        lines = "<br>".join(map(escape, self.lines))
        return strip_html(words, f'<div style="line-height:1.5">{lines}</div>')
