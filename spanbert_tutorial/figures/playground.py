"""A question, a context, and the answer marked in it, with what else the model considered. Chapter:
`book/tasks/question_answering`.
"""

from collections.abc import Sequence
from html import escape

from spanbert_tutorial.figures.tokens import STRIP
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer

SHOWN = 5  # candidates in the table
MARK = (
    "background:rgba(31,119,180,.25);border-bottom:3px solid "
    "rgb(31,119,180);color:inherit;padding:0 .1em"
)
# the best candidate where there is no answer
SILENCED = "border-bottom:3px dashed rgb(31,119,180);padding:0 .1em"
CELL = "padding:.1em .8em .1em 0;vertical-align:top;text-align:left;border:0"


class AnswerPanel:
    """The context with the best span marked, the decision at a threshold, and the best candidates.

    candidates: (first character, character after the last, S + E), best first, at least one. The
    answer is the first of them, or none when null_score − its score is above `threshold`; then the
    candidate is marked with dashes. gold: the right answers, none for a question without one;
    without `gold` nothing is said of them. All text is escaped.
    """

    def __init__(
        self,
        question: str,
        context: str,
        candidates: Sequence[tuple[int, int, float]],
        null_score: float,
        threshold: float = 0.0,
        gold: Sequence[str] | None = None,
    ) -> None:
        self.question, self.context = question, context
        self.candidates = list(candidates)
        self.null_score, self.threshold = null_score, threshold
        self.gold = None if gold is None else "; ".join(gold) or "(no answer)"

    @property
    def difference(self) -> float:
        """Null score − score of the best candidate."""
        return self.null_score - self.candidates[0][2]

    @property
    def answer(self) -> str:
        """The text of the answer, "" for none."""
        begin, end, _ = self.candidates[0]
        return "" if self.difference > self.threshold else self.context[begin:end]

    def _decision(self) -> str:
        comparison = "above" if self.difference > self.threshold else "not above"
        return (
            f"null score {self.null_score:.2f} − best score {self.candidates[0][2]:.2f} = "
            f"{self.difference:.2f}, {comparison} the threshold {self.threshold:g}"
        )

    def _parts(self) -> tuple[str, str, str]:
        """The context before the best candidate, the candidate, and what follows."""
        begin, end, _ = self.candidates[0]
        return self.context[:begin], self.context[begin:end], self.context[end:]

    def _lines(self) -> list[tuple[str, str]]:
        shown = self.candidates[:SHOWN]
        return [(f"{score:.2f}", self.context[begin:end]) for begin, end, score in shown]

    def __repr__(self) -> str:
        """The same in plain characters; the answer stands in double brackets, a silenced candidate
        in ((…))."""
        before, best, after = self._parts()
        left, right = ("[[", "]]") if self.answer else ("((", "))")
        gold = "" if self.gold is None else f"\nGold: {self.gold}"
        return (
            f"Question: {self.question}\n{before}{left}{best}{right}{after}\n"
            f"Answer: {self.answer or '(no answer)'}{gold}\n{self._decision()}\nCandidates:\n"
            + "\n".join(f"  {score:>6}  {text}" for score, text in self._lines())
        )

    def _repr_html_(self) -> str:
        before, best, after = map(escape, self._parts())
        tag, style = ("mark", MARK) if self.answer else ("span", SILENCED)
        answer = escape(self.answer) or "(no answer), the best candidate is dashed"
        gold = "" if self.gold is None else f"<div><b>Gold:</b> {escape(self.gold)}</div>"
        rows = "".join(
            f'<tr><td style="{CELL}">{score}</td><td style="{CELL}">{escape(text)}</td></tr>'
            for score, text in self._lines()
        )
        heads = "".join(f'<th style="{CELL}">{name}</th>' for name in ("S + E", "candidate"))
        return (
            f'<div style="{STRIP};line-height:1.6"><div><b>{escape(self.question)}</b></div>'
            f'<div>{before}<{tag} style="{style}">{best}</{tag}>{after}</div>'
            f'<div style="margin-top:.4em"><b>Answer:</b> {answer}</div>{gold}'
            f'<div style="font-size:.9em">{escape(self._decision())}</div>'
            '<table style="border-collapse:collapse;display:table;width:auto;margin:.3em '
            '0;font-size:.9em">'
            f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


def ask(
    answerer: QuestionAnswerer,
    question: str,
    context: str,
    threshold: float = 0.0,
    gold: Sequence[str] | None = None,
) -> AnswerPanel:
    """Asks the model. gold: the right answers, to be shown. Raises InputError for an empty question
    or context."""
    best = answerer.answer(question, context, n_best=SHOWN).n_best
    spans = [(one.start, one.end, one.score) for one in best]
    return AnswerPanel(question, context, spans, best[0].null_score, threshold, gold)
