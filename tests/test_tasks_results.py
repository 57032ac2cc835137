"""The paper's seven tables: the quoted numbers fit one another where arithmetic says so."""

import numpy as np
import pytest

from research.paper_tables import TABLES, paper_table, quoted
from spanbert_tutorial.errors import InputError


@pytest.mark.parametrize("number", TABLES)
def test_each_row_has_a_number_for_each_column(number):
    table = paper_table(number)
    assert len(table.rows) >= 3 and all(
        len(row) == len(table.columns) for row in table.rows.values()
    )
    assert repr(table.shown()).count("\n") == (
        len(table.columns) if number in (3, 5) else len(table.rows)
    )


def test_another_number_is_refused():
    with pytest.raises(InputError, match="no table 8"):
        paper_table(8)


@pytest.mark.parametrize("number, last, over", [(2, 5, slice(0, 5)), (3, 9, slice(2, 9, 3))])
def test_an_average_is_that_of_its_row(number, last, over):
    for name, row in paper_table(number).rows.items():
        assert np.mean(row[over]) == pytest.approx(row[last], abs=0.11), name


def test_glue_averages_count_a_task_once_and_wnli():
    for row in paper_table(5).rows.values():
        cola, sst2, *two, qnli, rte, average = row
        tasks = [
            cola,
            sst2,
            *np.reshape(two, (-1, 2)).mean(axis=1),
            qnli,
            rte,
            quoted("spanbert_table5_wnli"),
        ]
        assert len(tasks) == 9 and np.mean(tasks) == pytest.approx(average, abs=0.06)


def test_f1_follows_from_precision_and_recall():
    rows = [row[place : place + 3] for row in paper_table(3).rows.values() for place in (0, 3, 6)]
    rows += [row for row in paper_table(4).rows.values() if None not in row]
    off = [abs(2 * p * r / (p + r) - f) for p, r, f in rows]
    assert (
        sorted(off)[-2] < 0.11 < 0.4 < max(off) < 0.5
    )  # one cell of Table 3 does not fit, as printed


def test_tables_that_share_a_row_agree():
    assert (
        paper_table(6).rows["geometric spans"] == paper_table(7).rows["spans, two sequences, NSP"]
    )
    cells = (
        ("table6_subword_squad2", 6, "sub-word tokens"),
        ("table7_1seq_sbo_squad2", 7, "… and SBO"),
    )
    for cell, number, name in cells:
        assert quoted(f"spanbert_{cell}") == paper_table(number).rows[name][0]
    both = [quoted(f"spanbert_tables1_5_{name}") for name in ("our_bert", "our_bert_1seq")]
    for name, row in zip(("Our BERT", "Our BERT-1seq"), both, strict=True):
        found = [paper_table(1).rows[name][place] for place in (1, 3)]
        found += [paper_table(number).rows[name][-1] for number in (2, 3, 4, 5)]
        assert found == row
    assert [row[2::3] + row[-1:] for row in paper_table(3).rows.values()] == [
        list(row) for row in quoted("spanbert_table3_coreference").values()
    ]
    assert list(paper_table(1).rows["SpanBERT"]) == quoted("spanbert_table1_squad")
    assert list(paper_table(1).rows["people"]) == quoted("spanbert_table1_human")


def test_gains_are_those_of_the_paper():
    assert paper_table(7).gain("… and SBO", "spans, one sequence", "coreference") == 2.7
    assert paper_table(6).gain("geometric spans", "sub-word tokens", "coreference") == -1.3
