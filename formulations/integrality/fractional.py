"""Fractional vertices, and the submatrices that they give away.

At a vertex x of {b <= Ax <= c, l <= x <= u} with whole limits let F be the columns where x is fractional, and T the
tight rows. A restricted to T × F has full column rank; any |F| independent rows of it make a square matrix B with
B x_F whole, so |det B| >= 2. And where A is not totally unimodular some whole limits have such a vertex [Hoffman and
Kruskal, 1956]: HiGHS is asked for vertices of the problem's own polyhedron, then of polyhedra with random whole limits,
under small and tied objectives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr
from scipy.sparse import csr_array

from formulations.arrays import Floats
from formulations.errors import SolverFailed

__all__ = ["Polyhedron", "costs", "random_polyhedron"]

NEAR = 1e-6


@dataclass(frozen=True, eq=False)
class Square:
    """A fractional vertex, and rows and columns of a submatrix whose determinant is not -1, 0 or 1."""

    x: Floats
    rows: list[int]
    columns: list[int]


class Polyhedron:
    """One HiGHS object whose objective changes, so that each simplex run starts from the last vertex."""

    def __init__(self, matrix: csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats) -> None:
        import highspy

        self.matrix, self.row_lower, self.row_upper = matrix, row_lower, row_upper
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = matrix.shape
        program.col_cost_ = np.zeros(matrix.shape[1])
        program.col_lower_, program.col_upper_ = lower, upper
        program.row_lower_, program.row_upper_ = row_lower, row_upper
        held = program.a_matrix_
        held.format_ = highspy.MatrixFormat.kRowwise
        held.num_row_, held.num_col_ = matrix.shape
        held.start_, held.index_, held.value_ = matrix.indptr, matrix.indices, matrix.data
        self.optimal = highspy.HighsModelStatus.kOptimal
        self.highs = highspy.Highs()
        for name, value in (("output_flag", False), ("presolve", "off"), ("solver", "simplex")):
            self.highs.setOptionValue(name, value)
        if self.highs.passModel(program) == highspy.HighsStatus.kError:
            raise SolverFailed("HiGHS refuses the polyhedron")
        self.every = np.arange(matrix.shape[1], dtype=np.int32)

    def vertex(self, cost: Floats) -> Floats | None:
        """A vertex where the cost is least; None where there is none."""
        self.highs.changeColsCost(self.every.size, self.every, cost)
        self.highs.run()
        if self.highs.getModelStatus() != self.optimal:
            return None
        return np.array(self.highs.getSolution().col_value, dtype=np.float64)

    def is_whole(self, x: Floats) -> bool:
        """Whether a vertex is whole, to the accuracy of HiGHS."""
        return bool((np.abs(x - np.round(x)) <= NEAR).all())

    def square(self, x: Floats) -> Square | None:
        """What a vertex gives away; None where it is whole."""
        if self.is_whole(x):
            return None
        columns = np.flatnonzero(np.abs(x - np.round(x)) > NEAR)
        held = self.matrix @ x
        tight = np.minimum(np.abs(held - self.row_lower), np.abs(held - self.row_upper)) <= NEAR
        rows = np.flatnonzero(tight)
        part = self.matrix[rows][:, columns].toarray()
        if rows.size < columns.size:
            return None
        _, triangle, order = qr(part.T, mode="economic", pivoting=True)
        if abs(triangle[columns.size - 1, columns.size - 1]) < NEAR:
            return None
        return Square(x, rows[order[: columns.size]].tolist(), columns.tolist())


def random_polyhedron(matrix: csr_array, rng: np.random.Generator) -> Polyhedron:
    """Whole limits around a random whole point: bounds of one or two, rows that are equations, floors or ceilings."""
    rows, columns = matrix.shape
    upper = np.full(columns, float(rng.integers(1, 3)))
    through = np.round(rng.random(columns) * upper)
    held = matrix @ through
    loose = rng.integers(0, 2, (2, rows))
    free = rng.random((2, rows)) < rng.choice([0.0, 0.3, 0.5])
    row_lower = np.where(free[0], -np.inf, held - loose[0])
    row_upper = np.where(free[1], np.inf, held + loose[1])
    return Polyhedron(matrix, row_lower, row_upper, np.zeros(columns), upper)


def costs(columns: int, count: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Objectives with many ties (few ones, or small whole numbers), of ±1, and of reals."""
    for turn in range(count):
        kind = turn % 5
        if kind == 0:
            yield rng.integers(-1, 2, columns).astype(np.float64)
        elif kind == 1:
            yield -(rng.random(columns) < 0.3).astype(np.float64)
        elif kind == 2:
            yield rng.choice([-1.0, 1.0], columns)
        elif kind == 3:
            yield rng.normal(size=columns)
        else:
            yield rng.integers(-3, 4, columns).astype(np.float64)
