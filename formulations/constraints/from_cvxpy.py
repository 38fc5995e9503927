"""A ranking set from affine cvxpy constraints on one variable of shape (k, n).

cvxpy flattens matrices by columns and moves equations before inequalities; here each constraint is read separately, in
the order of the list, with its columns in C order. cvxpy is not imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from formulations.arrays import Floats, each
from formulations.constraints.constraint import Constraint
from formulations.constraints.kinds import add_rows, fix
from formulations.constraints.rows import SoftConstraint
from formulations.errors import InvalidProblemError


def shape_of(variable: Any) -> tuple[int, int]:
    """k positions and n documents of the variable π; InvalidProblemError where it cannot be the variable of a set."""
    if type(variable).__name__ != "Variable" or len(getattr(variable, "shape", ())) != 2:
        raise InvalidProblemError("the variable of a set must be a cvxpy.Variable((k, n)), one row per position")
    declared = [name for name, value in variable.attributes.items() if value is not None and value is not False]
    unread = set(declared) - {"nonneg", "boolean", "integer"}
    if unread:
        raise InvalidProblemError(
            f"{variable.name()} is declared with {', '.join(sorted(unread))}; state it as constraints"
        )
    k, n = variable.shape
    return int(k), int(n)


def read_constraints(variable: Any, constraints: Any) -> Iterator[Constraint | SoftConstraint]:
    """The cvxpy constraints on π = `variable` as constraints of a ranking set."""
    if not isinstance(constraints, Iterable):
        what = "None" if constraints is None else f"one {type(constraints).__name__}"
        raise InvalidProblemError(f"from_cvxpy(π, constraints) needs a list of constraints, [] for none; got {what}.")
    for index, entry in enumerate(each("constraints", constraints)):
        constraint = entry.constraint if isinstance(entry, SoftConstraint) else entry
        name = str(getattr(constraint, "label", None) or f"constraint {index}")
        found = _read(shape_of(variable), name, *_affine(constraint, variable, name), isinstance(entry, SoftConstraint))
        yield from (SoftConstraint(one, entry.penalty) for one in found) if isinstance(entry, SoftConstraint) else found


def _affine(constraint: Any, variable: Any, name: str) -> tuple[csr_array, Floats, Floats]:
    """lower <= matrix π <= upper, the cells in C order; the rows of a matrix expression in C order too."""
    k, n = variable.shape
    kind = type(constraint).__name__
    if kind not in ("Equality", "Inequality", "Zero", "NonPos", "NonNeg"):
        raise InvalidProblemError(f"{name!r} is a {kind}, but a set has rows only: ==, <= or >= of affine expressions")
    expression = constraint.expr if hasattr(constraint, "expr") else constraint.args[0]
    strangers = [other.name() for other in expression.variables() if other is not variable]
    if strangers:
        raise InvalidProblemError(f"{name!r} uses {', '.join(strangers)}, but a set has the variable π only")
    if not expression.is_affine():
        raise InvalidProblemError(f"{name!r} ({constraint}) is not affine: it needs auxiliary columns; use sums of π")
    if any(parameter.value is None for parameter in expression.parameters()):
        raise InvalidProblemError(f"{name!r} ({constraint}) has a parameter without a value; give it one")
    saved = variable.value
    variable.save_value(np.zeros((k, n)))
    try:
        value = expression.value.toarray() if issparse(expression.value) else expression.value
        constant = np.asarray(value, dtype=np.float64).ravel(order="F")
        gradient = expression.grad.get(variable)
    finally:
        variable.save_value(saved)
    if gradient is None:
        gradient = csr_array((k * n, constant.size))
    by_columns = csr_array(csr_array(gradient if issparse(gradient) else np.atleast_2d(gradient)).T)
    columns = np.arange(k * n).reshape((k, n)).ravel(order="F")
    entries = by_columns.tocoo()
    index = np.arange(constant.size).reshape(expression.shape or (1,), order="F").ravel()
    where = np.argsort(index)
    row, column = entries.coords
    matrix = csr_array((entries.data, (where[row], columns[column])), shape=by_columns.shape)
    right = 0.0 - constant[index]
    if np.isnan(right).any() or np.isnan(matrix.data).any():
        raise InvalidProblemError(f"{name!r} ({constraint}) holds NaN; give it a number, or leave it out")
    below = np.full(right.size, -np.inf)
    if kind in ("Equality", "Zero"):
        return matrix, right, right
    return (matrix, right, -below) if kind == "NonNeg" else (matrix, below, right)


def _read(
    shape: tuple[int, int], name: str, matrix: csr_array, lower: Floats, upper: Floats, softly: bool
) -> Iterator[Constraint]:
    """These rows: normalized sign, rows of every set removed, fixed cells as forbidden cells (if soft: only for unit
    coefficients, because the penalty is per unit of the row)."""
    k, n = shape
    keep, empty = [], np.zeros((k, n), dtype=bool)
    for r in range(matrix.shape[0]):
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        cells, weights = matrix.indices[part][matrix.data[part] != 0], matrix.data[part][matrix.data[part] != 0]
        low, high = float(lower[r]), float(upper[r])
        if cells.size and (weights < 0).all():
            matrix.data[part] *= -1.0
            weights, low, high = -weights, -high, -low
            lower[r], upper[r] = low, high
        if cells.size == 1:
            # The limits of one cell: what they leave of {0, 1}.
            low, high = max(0.0, low / weights[0]), min(1.0, high / weights[0])
            i, j = divmod(int(cells[0]), n)
            if low <= 0.0 and high >= 1.0:
                continue
            if softly and (weights[0] != 1.0 or low > 0.0 or high != 0.0):
                keep.append(r)
                continue
            if low <= 0.0 <= high:
                empty[i, j] = True
                continue
            if 0.0 < low <= 1.0 <= high:
                yield fix(shape, j, i, name=name)
                continue
        if not _always(cells, weights, low, high, k, n):
            keep.append(r)
    if empty.any():
        yield Constraint.mask(name, f"{empty.sum()} cells stay empty", empty)
    if keep:
        labels = None if matrix.shape[0] == 1 else keep
        yield add_rows(shape, matrix[keep], lower=lower[keep], upper=upper[keep], labels=labels, name=name)


def _always(cells: Any, weights: Floats, low: float, high: float, k: int, n: int) -> bool:
    """Whether the row holds in every set: a position's, one that the documents' rows imply, or 0 within its limits."""
    if not cells.size:
        return low <= 0.0 <= high
    if not (weights == 1.0).all():
        return False
    rows, columns = np.divmod(np.sort(cells), n)
    full_position = cells.size == n and (rows == rows[0]).all()
    one_document = (columns == columns[0]).all()
    return bool((full_position and low <= 1.0 <= high) or (one_document and low <= 0.0 and high >= 1.0))
