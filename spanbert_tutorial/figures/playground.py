"""A question, a context, and the answer marked in it, with what else the model considered. Chapter:
`book/tasks/question_answering`.
"""

from collections.abc import Sequence
from html import escape

from spanbert_tutorial.figures.table import small_table
from spanbert_tutorial.figures.tokens import COLORS, STRIP, mark_style
from spanbert_tutorial.tasks.question_answering import Answer, QuestionAnswerer

SHOWN = 5  # candidates in the table
MARK = f"color:inherit;{mark_style(COLORS[0])}"
# the best candidate where there is no answer
SILENCED = f"border-bottom:3px dashed rgb({COLORS[0]});padding:0 .2em"


class AnswerPanel:
    """The context with the best span marked, the decision at a threshold, and the best candidates.

    The answer shown is the best of `answer.n_best`, or none when null_score − its score is above
    `threshold`; then the candidate is marked with dashes. gold: the right answers, none for a question without one;
    without `gold` nothing is said of them. All text is escaped.
    """

    def __init__(
        self,
        question: str,
        context: str,
        answer: Answer,
        threshold: float = 0.0,
        gold: Sequence[str] | None = None,
    ) -> None:
        best, *_ = answer.n_best
        odds = answer.null_score - best.score
        self.question = question
        self.before, self.best, self.after = context[: best.start], best.text, context[best.end :]
        self.answer = "" if odds > threshold else self.best
        self.gold = None if gold is None else "; ".join(gold) or "(no answer)"
        self.decision = (
            f"null score {answer.null_score:.2f} − best score {best.score:.2f} = {odds:.2f}, "
            f"{'above' if odds > threshold else 'not above'} the threshold {threshold:g}"
        )
        self.candidates = [(f"{one.score:.2f}", one.text) for one in answer.n_best[:SHOWN]]

    def __repr__(self) -> str:
        """The same in plain characters; the answer stands in double brackets, a silenced candidate
        in ((…))."""
        left, right = ("[[", "]]") if self.answer else ("((", "))")
        gold = "" if self.gold is None else f"\nGold: {self.gold}"
        return (
            f"Question: {self.question}\n{self.before}{left}{self.best}{right}{self.after}\n"
            f"Answer: {self.answer or '(no answer)'}{gold}\n{self.decision}\nCandidates:\n"
            + "\n".join(f"  {score:>6}  {text}" for score, text in self.candidates)
        )

    def _repr_html_(self) -> str:
        tag, style = ("mark", MARK) if self.answer else ("span", SILENCED)
        best = f'<{tag} style="{style}">{escape(self.best)}</{tag}>'
        answer = escape(self.answer) or "(no answer), the best candidate is dashed"
        gold = "" if self.gold is None else f"<div><b>Gold:</b> {escape(self.gold)}</div>"
        return (
            f'<div style="{STRIP};line-height:1.6"><div><b>{escape(self.question)}</b></div>'
            f"<div>{escape(self.before)}{best}{escape(self.after)}</div>"
            f'<div style="margin-top:.4em"><b>Answer:</b> {answer}</div>{gold}'
            f'<div style="font-size:.9em">{escape(self.decision)}</div>'
            f"{small_table([('S + E', 'candidate'), *self.candidates])}</div>"
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
    answer = answerer.answer(question, context, n_best=SHOWN)
    return AnswerPanel(question, context, answer, threshold, gold)
