"""The matrix whose integrality is tested, with the names and limits of its problem.

A problem has a linear `program` (a problem class, a set of rankings), or is a model for `as_problem`, or a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from formulations.arrays import LARGEST, check_no_mask
from formulations.errors import InvalidProblemError, UnsupportedProblemError
from formulations.problems.cvxpy_problem import as_form, is_model
from formulations.problems.program import Program


@dataclass(frozen=True, eq=False)
class Statement:
    """`matrix` without stored zeros, and the linear program it belongs to, if any."""

    matrix: csr_array
    program: Program | None

    def row_name(self, row: int) -> str:
        return f"row {row}" if self.program is None else self.program.row_name(row)

    def column_name(self, column: int) -> str:
        return f"column {column}" if self.program is None else self.program.variable_name(column)

    @property
    def is_integer(self) -> bool:
        """Whether all entries and all finite limits are integers."""
        held = self.matrix.data
        return bool((held == np.floor(held)).all()) and self._broken_limit() is None

    def check_limits(self) -> None:
        """Raise `InvalidProblemError` naming the first limit that is not an integer, as proofs and vertices need."""
        broken = self._broken_limit()
        if broken is not None:
            cure = "pass the matrix alone to verify it, or round the limits (`as_problem(model)` has both)"
            raise InvalidProblemError(f"limits must be integers; {broken}; {cure}.")

    def _broken_limit(self) -> str | None:
        """The first row or variable whose limit is not an integer."""
        program = self.program
        if program is None:
            return None
        for limits, kind, name in (
            (program.row_lower, "lower", program.row_name),
            (program.row_upper, "upper", program.row_name),
            (program.lower, "lower", program.variable_name),
            (program.upper, "upper", program.variable_name),
        ):
            broken = np.flatnonzero(np.isfinite(limits) & (limits != np.floor(limits)))
            if broken.size:
                return f"{name(int(broken[0]))} has {kind} limit {limits[broken[0]]:g}"
        return None


def stated(problem: csr_array | ArrayLike | Any) -> Statement:
    """The statement of a problem with a linear `program` (or of a program itself), or of a bare matrix."""
    problem = as_form(problem) if is_model(problem) else problem
    inner = getattr(problem, "program", problem)
    program = getattr(inner, "program", inner)
    if not isinstance(program, Program):
        return Statement(_bare(problem), None)
    if program.hessian is not None:
        raise UnsupportedProblemError(f"{type(problem).__name__} is no linear program: its objective is curved")
    return Statement(_tidy(program.matrix), program)


def _tidy(matrix: csr_array) -> csr_array:
    held = csr_array(matrix, dtype=np.float64, copy=True)
    held.sum_duplicates()
    held.eliminate_zeros()
    return held


def _bare(matrix: csr_array | ArrayLike) -> csr_array:
    array: Any = matrix
    if not issparse(matrix):
        check_no_mask("matrix", matrix)
        try:
            array = np.asarray(matrix)
        except ValueError as error:
            raise InvalidProblemError(f"matrix needs rows of equal length: {error}") from None
        if array.shape == () or array.dtype == object:
            kind = type(matrix).__name__
            rules = hasattr(matrix, "to_ranking_set")  # constraints of any query, without its documents
            cure = f" Pass the set of one query: {kind}.to_ranking_set(attributes, n)." if rules else ""
            raise InvalidProblemError(f"expected a problem, a RankingSet or a matrix of integers; got {kind}.{cure}")
    shape, kind, data = array.shape, array.dtype, array.tocoo().data if issparse(array) else array
    if len(shape) != 2 or 0 in shape:
        raise InvalidProblemError(f"matrix must have two dimensions and an entry at least; got shape {shape}.")
    if kind.kind not in "biuf":
        raise InvalidProblemError(f"matrix holds {kind}, but needs real numbers; convert it to integers")
    if not (np.abs(data.astype(np.float64)) <= LARGEST).all():
        raise InvalidProblemError("matrix holds a number that is not finite; remove the row or column that has it")
    return _tidy(csr_array(array))
