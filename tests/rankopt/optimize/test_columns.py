"""Histories are tables of columns: each has the fields of its rows, gives them back, and refuses what is no table."""

from dataclasses import fields, replace

import numpy as np
import pytest

from formulations.registry import load
from rankopt.optimize.certificate import Columns
from rankopt.persistence.models import RECORDS

TABLES = [kind for kind in map(load, RECORDS.values()) if issubclass(kind, Columns)]


def drawn(kind, count):
    rng = np.random.default_rng(0)
    whole = {name: number is np.int64 for name, number in kind.kinds().items()}
    return [
        kind.row(**{name: int(rng.integers(100)) if whole[name] else float(rng.normal()) for name in whole})
        for _ in range(count)
    ]


def test_all_histories_are_such_tables():
    assert {kind.__name__ for kind in TABLES} == {
        "AlternationHistory",
        "AnnealingHistory",
        "History",
        "AscentHistory",
        "TreeHistory",
    }


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("count", [0, 1, 5])
def test_rows_come_back_as_they_were_given(kind, count):
    rows = drawn(kind, count)
    table = kind.from_rows(rows)
    assert [table[i] for i in range(len(table))] == rows
    assert [field.name for field in fields(table)] == [field.name for field in fields(kind.row)]
    for name, number in kind.kinds().items():
        assert getattr(table, name).dtype == number
        assert getattr(table, name).tolist() == [getattr(row, name) for row in rows]


@pytest.mark.parametrize("kind", TABLES)
def test_what_is_no_table_is_refused(kind):
    table = kind.from_rows(drawn(kind, 3))
    for field in fields(table):
        column = getattr(table, field.name)
        for wrong in (column[:2], column[:, None], column.tolist(), None):
            with pytest.raises(ValueError, match="is no column of numbers, one a step"):
                replace(table, **{field.name: wrong})


def test_a_history_of_moves_refuses_columns_of_another_type_too():
    moves = load(RECORDS["AscentHistory"])
    table = moves.from_rows(drawn(moves, 3))
    with pytest.raises(ValueError, match="round of a history has another type"):
        replace(table, round=table.round.astype(np.float64))
