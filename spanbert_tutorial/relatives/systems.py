"""The systems of this book side by side: the three questions of each one's pre-training, what it
saves, how large it is, how it is used. Every cell has its source. Chapter: `book/relatives/beyond`.
"""

from dataclasses import dataclass
from html import escape

from spanbert_tutorial.errors import InputError

QUESTIONS = ("what is hidden", "who answers", "what is in view")
COLUMNS = (*QUESTIONS, "sharing and saving", "size", "use")
PAPERS = {
    "BERT": "1810.04805",
    "RoBERTa": "1907.11692",
    "SpanBERT": "1907.10529",
    "ALBERT": "1909.11942",
    "ELECTRA": "2003.10555",
    "XLNet": "1906.08237",
    "BART": "1910.13461",
    "T5": "1910.10683",
    "DeBERTa": "2006.03654",
    "GPT-3": "2005.14165",
}  # name → arXiv number; the order of the table
# What the systems change, in the order of the chapter. T5 stands in two groups. Then the groups of
# many notes.
GROUPS = {
    "better pre-training": ("RoBERTa", "SpanBERT", "DeBERTa"),
    "efficiency": ("ALBERT", "ELECTRA"),
    "auto-encoding and auto-regressive": ("XLNet", "BART", "T5"),
    "meta-learning": ("GPT-3", "T5"),
}
GROUPS_OF_NOTES = {
    "better pre-training": (
        "SpanBERT",
        "RoBERTa",
        "ELECTRA",
        "XLNet",
        "ALBERT",
        "BART",
        "GPT-3",
        "T5",
    ),
    "efficiency": ("ALBERT", "ELECTRA"),
    "auto-encoding and auto-regressive": ("XLNet", "BART", "T5", "DeBERTa"),
    "meta-learning": ("GPT-3", "T5"),
}


@dataclass(frozen=True)
class Cell:
    """A statement, the paper that makes it (a key of PAPERS) and the place in it, such as "§3.1" or
    "Table 1"."""

    text: str
    paper: str
    where: str


def _row(name: str, *cells: tuple[str, ...]) -> dict[str, Cell]:
    """One system. cells: in the order of COLUMNS, (text, where) or (text, where, paper) if another
    paper says it."""
    made = [Cell(text, other[0] if other else name, where) for text, where, *other in cells]
    return dict(zip(COLUMNS, made, strict=True))


SYSTEMS = {
    "BERT": _row(
        "BERT",
        ("15% of the tokens, one by one", "§3.1"),
        ("each masked token's own position; [CLS] for next sentence prediction", "§3.1"),
        ("both sides, in two segments", "§3.1"),
        ("nothing shared between layers", "Table 1", "ALBERT"),
        ("110 M, 340 M", "§3"),
        ("fine-tune all weights with one output layer", "§3.2"),
    ),
    "RoBERTa": _row(
        "RoBERTa",
        ("15% of the tokens, other ones at each reading", "§4.1"),
        ("each masked token's own position; no sentence question", "§4.2"),
        ("both sides, up to 512 tokens of running text", "§4.2"),
        ("saves nothing: ten times the text, larger batches", "Table 4"),
        ("355 M", "§5"),
        ("fine-tune", "§5.1"),
    ),
    "SpanBERT": _row(
        "SpanBERT",
        ("15% of the tokens, in spans of whole words", "§3.1"),
        ("each masked token's own position, and the two tokens around the span", "§3.2"),
        ("both sides, in one segment of one document", "§3.3"),
        ("one long segment, no sentence loss", "§3.3"),
        ("as BERT large", "§4.2"),
        ("fine-tune", "§4.1"),
    ),
    "ALBERT": _row(
        "ALBERT",
        ("runs of up to three whole words; the order of two segments", "§3.1, §4.1"),
        ("each masked token's own position; [CLS] for the order", "§3.1"),
        ("both sides, in two neighboring segments", "§3.1"),
        ("all layers share their weights; narrow embeddings", "§3.1"),
        ("12 M, 18 M, 60 M, 235 M", "Table 1"),
        ("fine-tune", "§4.2"),
    ),
    "ELECTRA": _row(
        "ELECTRA",
        ("nothing: a small masked language model has replaced some tokens", "§2"),
        ("every position: original or replaced?", "§2"),
        ("both sides, and the token itself", "§2"),
        ("every token is a target; shared embeddings", "§2, §3.2"),
        ("14 M, 110 M, and a large one", "Table 1, §3.4"),
        ("fine-tune the discriminator", "§2"),
    ),
    "XLNet": _row(
        "XLNet",
        ("what comes later in a random order", "§2.2"),
        ("the position of the next token in that order", "§2.2, §2.3"),
        ("what comes earlier in the order, on both sides", "§2.2, §2.3"),
        ("only the last tokens of an order are targets; memory of earlier text", "§2.3, §2.4"),
        ("as BERT large", "§3.1"),
        ("fine-tune, without the query stream", "§2.3"),
    ),
    "BART": _row(
        "BART",
        ("spans, one [MASK] for each; sentences are shuffled", "§2.2, §5.1"),
        ("a decoder that writes the whole text", "§2.1, §2.2"),
        ("encoder: both sides; decoder: also what it has written", "§2.1"),
        ("about 10% more weights than a BERT of its size", "§2.1"),
        ("6 + 6 layers, 12 + 12 layers", "§2.1"),
        ("fine-tune; also to write text", "§3"),
    ),
    "T5": _row(
        "T5",
        ("15% of the tokens, in spans, each with its own sentinel", "§3.1.4, §3.7"),
        ("a decoder that writes only what is missing", "§3.1.4"),
        ("encoder: both sides; decoder: also what it has written", "§3.2"),
        ("short targets: only what was masked", "§3.1.4"),
        ("60 M, 220 M, 770 M, 2.8 B, 11 B", "§3.7"),
        ("every task is text in, text out; fine-tune", "§2.4"),
    ),
    "DeBERTa": _row(
        "DeBERTa",
        ("some tokens, as in BERT", "§3.2"),
        ("each masked token's own position, which gets absolute positions only there", "§3.2"),
        ("both sides; content and distance scored apart", "§3.1"),
        ("better than RoBERTa large on half of its text", "abstract"),
        ("up to 1.5 B", "abstract"),
        ("fine-tune", "§5.1"),
    ),
    "GPT-3": _row(
        "GPT-3",
        ("everything to the right", "§2.1"),
        ("every token names the next one", "§2.1"),
        ("the left side alone", "§2.1"),
        ("some layers look only near: sparse attention", "§2.1"),
        ("125 M to 175 B", "Table 2.1"),
        ("no training: the task and examples are part of the input", "§2"),
    ),
}


def html_table(columns: tuple[str, ...], names: tuple[str, ...] = tuple(PAPERS)) -> str:
    """The systems as an HTML table, the source of each cell in brackets behind it. Raises
    InputError for a column that is not in COLUMNS."""
    unknown = [column for column in columns if column not in COLUMNS]
    if unknown:
        raise InputError(f'the column "{unknown[0]}" is unknown: use one of {", ".join(COLUMNS)}.')
    lines = [_line("th", ["system", *columns])]
    for name in names:
        link = f'<a href="https://arxiv.org/abs/{PAPERS[name]}">{name}</a>'
        lines.append(
            _line("td", [link, *(_html(SYSTEMS[name][column], name) for column in columns)])
        )
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _line(tag: str, cells: list[str]) -> str:
    """One line of the table; notebooks would set its text on the right."""
    return (
        "<tr>"
        + "".join(f'<{tag} style="text-align:left">{cell}</{tag}>' for cell in cells)
        + "</tr>"
    )


def _html(cell: Cell, name: str) -> str:
    where = cell.where if cell.paper == name else f"{cell.paper}, {cell.where}"
    return f"{escape(cell.text)} <small>({escape(where)})</small>"
