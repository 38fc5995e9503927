"""A witness checked against the matrix alone: its determinant, that nothing smaller would do, and its vertex."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from formulations.errors import Refuted
from formulations.integrality.determinant import rank
from formulations.integrality.evidence import Vertex, Witness
from formulations.integrality.readable import exact_number, flag, is_whole, labels, record, whole_array
from formulations.integrality.sparse_determinant import entries_of, sparse_determinant
from formulations.integrality.statement import Statement
from formulations.notation.program import Program

__all__ = ["LARGEST_ENUMERATED", "confirm_witness"]

LARGEST_ENUMERATED = 12
"""The size up to which all signed sets of rows are gone through to see that a witness is minimal."""

LARGEST_NUMERATOR = 2**31

LARGEST_SUM = 2.0**52
"""Below this doubles hold every whole number, and half of one."""


def confirm_witness(statement: Statement, witness: Witness) -> None:
    """Raises `Refuted` where a claim of the witness is false."""
    matrix = statement.matrix
    rows, columns = (
        _lines(named, size, kind)
        for named, size, kind in ((witness.rows, matrix.shape[0], "row"), (witness.columns, matrix.shape[1], "column"))
    )
    if len(rows) != len(columns) or not rows:
        raise Refuted(f"{len(rows)} rows and {len(columns)} columns make no square submatrix")
    part = matrix[rows][:, columns]
    entries = entries_of(part)
    if not _plain_entries(witness.entries) or witness.entries != entries:
        raise Refuted("the entries are not those of the matrix")
    if labels(witness.row_names, "the names of rows") != tuple(map(statement.row_name, rows)):
        raise Refuted("the rows have other names")
    if labels(witness.column_names, "the names of columns") != tuple(map(statement.column_name, columns)):
        raise Refuted("the columns have other names")
    found = sparse_determinant(entries, len(rows))
    if found != exact_number(witness.determinant, "the determinant"):
        raise Refuted(f"the determinant is said to be {witness.determinant}, and is {found}")
    if found in (-1, 0, 1):
        raise Refuted(f"the determinant is {found}: that refutes nothing")
    if flag(witness.minimal, "whether the witness is minimal") and len(rows) > 1:
        _confirm_minimal(part, abs(found) == 2)
    if witness.vertex is not None:
        statement.check_limits()
        _confirm_vertex(statement.program, record(witness.vertex, Vertex, "the vertex"))


def _lines(named: Any, size: int, kind: str) -> list[int]:
    if not isinstance(named, tuple) or not all(map(is_whole, named)):
        raise Refuted(f"the {kind}s of the witness are no tuple of whole numbers")
    if len(set(named)) != len(named) or not all(0 <= line < size for line in named):
        raise Refuted(f"the witness names a {kind} twice, or one that does not exist")
    return list(named)


def _plain_entries(entries: Any) -> bool:
    """Whether they are what entries are made of, so that they can be compared."""
    return isinstance(entries, tuple) and all(
        isinstance(entry, tuple)
        and len(entry) == 3
        and is_whole(entry[0])
        and is_whole(entry[1])
        and (is_whole(entry[2]) or type(entry[2]) is Fraction)
        for entry in entries
    )


def _confirm_minimal(submatrix: csr_array, of_two: bool) -> None:
    """Either a cycle (two entries ±1 a row and column, determinant ±2: less of it is a forest), or every set of rows
    but the whole has signs as Ghouila-Houri asks."""
    size = submatrix.shape[0]
    if (np.abs(submatrix.data[submatrix.data != 0]) != 1).any():
        raise Refuted("an entry of the witness refutes alone: it is not minimal")
    held = submatrix != 0
    if of_two and (held.sum(axis=0) == 2).all() and (held.sum(axis=1) == 2).all():
        return
    if size > LARGEST_ENUMERATED:
        raise Refuted(f"that no part of {size} rows is smaller cannot be confirmed")
    part, half = submatrix.toarray(), size // 2
    first, second = (np.array(list(product((-1, 0, 1), repeat=width))) for width in (half, size - half))
    sums = second @ part[half:]
    place = (second != 0) @ (1 << np.arange(half, size))
    known = np.zeros(2**size, dtype=np.bool_)
    for signs in first:
        good = (np.abs(signs @ part[:half] + sums) <= 1).all(axis=1)
        known[place[good] + int((signs != 0) @ (1 << np.arange(half)))] = True
    if not known[:-1].all():
        raise Refuted("rows of the witness can be left out: it is not minimal")


def _confirm_vertex(program: Program | None, vertex: Vertex) -> None:
    """x is feasible and fractional, the limits tight at it determine it, and their normals add up to the objective."""
    if program is None:
        raise Refuted("a bare matrix has no feasible set to have a vertex")
    shape = program.objective.shape
    x, unit = whole_array(vertex.numerators, shape, "the vertex"), vertex.denominator
    given = whole_array(vertex.objective, shape, "the objective of the vertex")
    if not is_whole(unit) or not 2 <= unit < LARGEST_NUMERATOR or not (x % unit).any():
        raise Refuted("the vertex is no fractional point")
    if x.max() >= LARGEST_NUMERATOR or x.min() <= -LARGEST_NUMERATOR:
        raise Refuted("the vertex has numerators too large to be checked")
    if (program.matrix.data != np.round(program.matrix.data)).any():
        raise Refuted("the vertex of a matrix with broken entries cannot be confirmed")
    limits = np.concatenate([program.row_lower, program.row_upper, program.lower, program.upper])
    limits = np.abs(limits[np.isfinite(limits)])
    reached = max(float((abs(program.matrix) @ np.abs(x)).max(initial=0.0)), float(limits.max(initial=0.0)) * unit)
    if reached >= LARGEST_SUM:
        raise Refuted("the vertex leads to numbers too large to be checked")
    matrix = program.matrix.astype(np.int64)
    outward = []
    for held, low, high in ((matrix @ x, program.row_lower, program.row_upper), (x, program.lower, program.upper)):
        if (held < low * unit).any() or (held > high * unit).any():
            raise Refuted("the vertex breaks a constraint")
        outward.append(((held == low * unit), (held == high * unit)))
    (row_low, row_high), (low_, high_) = outward
    objective = matrix.T @ (row_high.astype(np.int64) - row_low) + high_.astype(np.int64) - low_
    if (given != objective).any():
        raise Refuted("the objective is not the sum of the outward normals at the vertex")
    free = np.flatnonzero(~(low_ | high_))
    tight = matrix[np.flatnonzero(row_low | row_high)][:, free].toarray()
    if rank(np.unique(tight, axis=0)) != free.size:
        raise Refuted("the point is feasible, but it is no vertex")
