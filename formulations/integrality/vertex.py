"""From a fractional point, as a simplex method returns it in floats, to the vertex itself, exactly."""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats, frozen
from formulations.integrality.determinant import rank
from formulations.integrality.evidence import Vertex
from formulations.modeling.linear_program import LinearProgram

__all__ = ["exact_vertex"]

LARGEST_DENOMINATOR = 120
NEAR = 1e-7


def exact_vertex(program: LinearProgram, x: Floats) -> Vertex | None:
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
