"""The search for a submatrix whose determinant is not -1, 0 or 1, the surest ways first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from formulations.integrality.bipartite import odd_cycle
from formulations.integrality.determinant import determinant, exactly
from formulations.integrality.enumeration import MOST_ROWS, enumerated
from formulations.integrality.evidence import Signings, Signs, Vertex, Witness
from formulations.integrality.fractional import Polyhedron, costs, random_polyhedron
from formulations.integrality.narrowing import narrowed
from formulations.integrality.proving import Remainder
from formulations.integrality.shrinking import shrunk
from formulations.integrality.statement import Statement
from formulations.integrality.vertex import exact_vertex

__all__ = ["broken_entry", "fractional_vertex", "searched", "witness"]

OBJECTIVES = 24
POLYHEDRA = 12
OWN_OBJECTIVES = 120
LARGE = 2000
"""Above so many columns a vertex costs so much that fewer objectives are tried."""
NARROWINGS = 4


@dataclass(frozen=True)
class Found:
    """Rows and columns of a submatrix, and whether it is known to be minimal."""

    rows: list[int]
    columns: list[int]
    minimal: bool


def broken_entry(statement: Statement) -> Found | None:
    """An entry other than -1, 0 and 1: a witness by itself."""
    held = statement.matrix.tocoo()
    wrong = np.flatnonzero(np.abs(held.data) != 1)
    if not wrong.size:
        return None
    row, column = (int(part[wrong[0]]) for part in held.coords)
    return Found([row], [column], True)


def witness(statement: Statement, found: Found, vertex: Vertex | None) -> Witness:
    """The record of what was found, its determinant computed in integers."""
    order = np.argsort(found.rows), np.argsort(found.columns)
    rows, columns = (
        tuple(int(line) for line in np.array(part)[by])
        for part, by in zip((found.rows, found.columns), order, strict=True)
    )
    part = statement.matrix[list(rows)][:, list(columns)].toarray()
    entries = tuple(tuple(exactly(value) for value in row) for row in part)
    return Witness(
        rows=rows,
        columns=columns,
        determinant=determinant(entries),
        entries=entries,
        row_names=tuple(map(statement.row_name, rows)),
        column_names=tuple(map(statement.column_name, columns)),
        minimal=found.minimal,
        vertex=vertex,
    )


def searched(
    statement: Statement, blocks: Remainder, rng: np.random.Generator, effort: int
) -> tuple[Found | None, list[str]]:
    """A submatrix that refutes, or None; and what was tried."""
    tried = ["quick proofs: bipartite, interval, laminar, network, enumeration"]
    dense = [(np.array(rows), np.array(columns)) for rows, columns in blocks]
    parts = [statement.matrix[rows][:, columns].toarray().astype(np.int8) for rows, columns in dense]
    for name, way in (
        ("two entries a line, or ten lines", _exactly),
        (f"vertices of {POLYHEDRA * effort} random polyhedra, {OBJECTIVES} objectives each", _by_vertices),
        (f"{NARROWINGS * effort} narrowings to parts without a quick proof", _by_narrowing),
    ):
        for (rows, columns), part in zip(dense, parts, strict=True):
            found = way(part, rng, effort)
            if found is not None:
                return Found(rows[found.rows].tolist(), columns[found.columns].tolist(), found.minimal), tried
        tried.append(name)
    return None, tried


def _exactly(part: Signs, rng: np.random.Generator, effort: int) -> Found | None:
    """Blocks of which every one is decided: no quick proof holds, so they have a witness."""
    for turned in (False, True):
        matrix = part.T if turned else part
        found = odd_cycle(csr_array(matrix))
        if found is None and matrix.shape[0] <= MOST_ROWS:
            listed = enumerated(matrix)
            found = None if isinstance(listed, Signings) else listed
        if found is not None:
            rows, columns = found[::-1] if turned else found
            return Found(rows, columns, True)
    return None


def _by_vertices(part: Signs, rng: np.random.Generator, effort: int) -> Found | None:
    matrix = csr_array(part, dtype=np.float64)
    for _ in range(POLYHEDRA * effort):
        polyhedron = random_polyhedron(matrix, rng)
        for cost in costs(part.shape[1], OBJECTIVES, rng):
            x = polyhedron.vertex(cost)
            square = None if x is None else polyhedron.square(x)
            if square is not None:
                return Found(*shrunk(part, square.rows, square.columns))
    return None


def _by_narrowing(part: Signs, rng: np.random.Generator, effort: int) -> Found | None:
    for _ in range(NARROWINGS * effort):
        rows, columns = narrowed(part, rng)
        smaller = part[np.ix_(rows, columns)]
        found = _exactly(smaller, rng, effort) or _by_vertices(smaller, rng, effort)
        if found is not None:
            return Found(rows[found.rows].tolist(), columns[found.columns].tolist(), found.minimal)
    return None


def fractional_vertex(statement: Statement, found: Found, rng: np.random.Generator, effort: int) -> Vertex | None:
    """A fractional vertex of the problem's own feasible set, if one is met; in half of the objectives the
    columns of the witness pay."""
    program = statement.program
    if program is None or not statement.is_whole:
        return None
    own = Polyhedron(statement.matrix, program.row_lower, program.row_upper, program.lower, program.upper)
    paying = np.zeros(statement.matrix.shape[1])
    if own.vertex(paying) is None:
        return None
    paying[found.columns] = 3.0
    count = effort * (OWN_OBJECTIVES if paying.size <= LARGE else OBJECTIVES)
    for turn, cost in enumerate(costs(paying.size, count, rng)):
        x = own.vertex(cost - (turn // 5 % 2) * paying)
        vertex = None if x is None or own.is_whole(x) else exact_vertex(program, x)
        if vertex is not None:
            return vertex
    return None
