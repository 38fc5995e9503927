"""A fractional vertex of a problem's own feasible set: met by a simplex method in floats, then stated exactly."""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats, frozen
from formulations.integrality.determinant import rank
from formulations.integrality.evidence import Vertex
from formulations.integrality.fractional import Polyhedron, costs
from formulations.integrality.statement import Statement
from formulations.notation.program import Program

__all__ = ["exact_vertex", "fractional_vertex"]

OBJECTIVES = 120
LARGE, FEWER_OBJECTIVES = 2000, 24
"""Above so many columns a vertex costs so much that fewer objectives are tried."""

LARGEST_DENOMINATOR = 120
NEAR = 1e-7


def fractional_vertex(statement: Statement, columns: list[int], rng: np.random.Generator, effort: int) -> Vertex | None:
    """A fractional vertex of the problem's own feasible set, if one is met; half the objectives pay these columns."""
    program = statement.program
    if program is None or not statement.is_whole:
        return None
    own = Polyhedron(statement.matrix, program.row_lower, program.row_upper, program.lower, program.upper)
    paying = np.zeros(statement.matrix.shape[1])
    if own.vertex(paying) is None:
        return None
    paying[columns] = 3.0
    count = effort * (OBJECTIVES if paying.size <= LARGE else FEWER_OBJECTIVES)
    for turn, cost in enumerate(costs(paying.size, count, rng)):
        x = own.vertex(cost - (turn // 5 % 2) * paying)
        vertex = None if x is None or own.is_whole(x) else exact_vertex(program, x)
        if vertex is not None:
            return vertex
    return None


def exact_vertex(program: Program, x: Floats) -> Vertex | None:
    """The vertex at x with the objective that is greatest there alone; None where x is no fractional vertex.

    That objective is the sum of the outward normals of all limits tight at x. No feasible point exceeds it, and one
    that attains it is tight wherever x is, hence x.
    """
    unit = next((d for d in range(2, LARGEST_DENOMINATOR) if np.abs(x * d - np.round(x * d)).max() < NEAR * d), None)
    if unit is None:
        return None
    numerators = np.round(x * unit).astype(np.int64)
    matrix = program.matrix.astype(np.int64)
    held = matrix @ numerators
    row_low, row_high = held == unit * program.row_lower, held == unit * program.row_upper
    low, high = numerators == unit * program.lower, numerators == unit * program.upper
    feasible = (
        (held >= unit * program.row_lower).all()
        and (held <= unit * program.row_upper).all()
        and (numerators >= unit * program.lower).all()
        and (numerators <= unit * program.upper).all()
    )
    free = np.flatnonzero(~(low | high))
    tight = matrix[np.flatnonzero(row_low | row_high)][:, free].toarray()
    if not feasible or not (numerators % unit).any() or rank(np.unique(tight, axis=0)) != free.size:
        return None
    objective = matrix.T @ (row_high.astype(np.int64) - row_low) + high.astype(np.int64) - low
    return Vertex(frozen(numerators), unit, frozen(objective))
