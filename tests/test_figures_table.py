"""A table as the output of a cell."""

import pytest

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.table import Table


def test_html_is_escaped_and_text_stands_in_columns():
    table = Table(["who", "F1"], [["<script>", 81.5], ["a & b", "–"]])
    assert (
        "<tr><td>&lt;script&gt;</td><td>81.5</td></tr><tr><td>a &amp; b</td><td>–</td></tr>"
        in table._repr_html_()
    )
    assert table._repr_html_().count("<th>") == 2
    assert repr(table).split("\n") == ["who       F1", "<script>  81.5", "a & b     –"]


@pytest.mark.parametrize(
    "rows, told", [([["a"]], "row 1 has 1 cells and the head 2"), ([["a", "\ud800"]], "row 1")]
)
def test_rows_that_do_not_fit_are_refused(rows, told):
    with pytest.raises(InputError, match=told):
        Table(["who", "F1"], rows)
