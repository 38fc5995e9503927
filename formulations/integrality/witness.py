"""The record of a submatrix whose determinant is not -1, 0 or 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.integrality.evidence import Vertex, Witness
from formulations.integrality.sparse_determinant import entries_of, sparse_determinant
from formulations.integrality.statement import Statement

__all__ = ["Violator", "broken_entry", "witness"]


@dataclass(frozen=True)
class Violator:
    """Rows and columns of a submatrix, and whether it is known to be minimal."""

    rows: list[int]
    columns: list[int]
    minimal: bool


def broken_entry(statement: Statement) -> Violator | None:
    """An entry other than -1, 0 and 1: a witness by itself."""
    held = statement.matrix.tocoo()
    wrong = np.flatnonzero(np.abs(held.data) != 1)
    if not wrong.size:
        return None
    row, column = (int(part[wrong[0]]) for part in held.coords)
    return Violator([row], [column], True)


def witness(statement: Statement, found: Violator, vertex: Vertex | None) -> Witness:
    """The record of what was found, its determinant computed in integers."""
    order = np.argsort(found.rows), np.argsort(found.columns)
    rows, columns = (
        tuple(int(line) for line in np.array(part)[by])
        for part, by in zip((found.rows, found.columns), order, strict=True)
    )
    entries = entries_of(statement.matrix[list(rows)][:, list(columns)])
    return Witness(
        rows=rows,
        columns=columns,
        determinant=sparse_determinant(entries, len(rows)),
        entries=entries,
        row_names=tuple(map(statement.row_name, rows)),
        column_names=tuple(map(statement.column_name, columns)),
        minimal=found.minimal,
        vertex=vertex,
    )
