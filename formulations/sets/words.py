"""What each word of the language of ranking sets states, as a `Constraint` over the k × n cells."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from formulations.arrays import finite
from formulations.errors import InvalidProblem
from formulations.sets.cells import by_label, chosen, count_for, numbers, one, whole_number
from formulations.sets.constraint import Constraint, rows_of_cells

__all__ = ["banned", "counted", "pinned", "precedence", "raw_rows"]

Shape = tuple[int, int]
"""k positions and n documents."""


def counted(shape: Shape, name: str, word: str, count: Any, documents: Any, positions: Any, by: Any) -> Constraint:
    """`word` ("at most", "at least", "exactly") `count` of these documents at these positions; by=: a row a label."""
    k, n = shape
    columns, rows = chosen("documents", documents, n), chosen("positions", positions, k)
    place = "" if rows.size == k else f" at {rows.size} of {k} positions"

    def limits(number: int) -> tuple[float, float]:
        return -np.inf if word == "at most" else float(number), np.inf if word == "at least" else float(number)

    if by is None:
        if isinstance(count, Mapping):
            raise InvalidProblem("count maps labels to numbers; say by= which labels the documents carry")
        number = whole_number("count", count)
        low, high = (np.array([side]) for side in limits(number))
        matrix = rows_of_cells([(rows, columns)], k, n)
        return Constraint(name, f"{word} {number} of {columns.size} documents{place}", matrix, low, high)
    owed = count if word != "at most" and isinstance(count, Mapping) else {}
    members = {label: np.empty(0, dtype=np.int64) for label in owed}
    among = by_label(by, n)
    members |= among if documents is None else {label: np.intersect1d(part, columns) for label, part in among.items()}
    counts = {label: count_for("count", count, label) for label in members}
    # A label that no document carries says nothing, unless some of its documents are owed.
    said = {label: found for label, found in members.items() if counts[label] is not None}
    said = {label: found for label, found in said.items() if found.size or (label in owed and counts[label])}
    matrix = rows_of_cells([(rows, found) for found in said.values()], k, n)
    sides = np.array([limits(int(counts[label] or 0)) for label in said], dtype=np.float64).reshape(-1, 2)
    says = tuple(f"{word} {counts[label]} of {found.size} documents{place}" for label, found in said.items())
    return Constraint(name, says, matrix, sides[:, 0].copy(), sides[:, 1].copy(), tuple(said))


def pinned(shape: Shape, name: str | None, document: Any, position: Any) -> Constraint:
    """This document stands at this position: the other cells of both stay empty."""
    i, j = one("position", position, shape[0]), one("document", document, shape[1])
    forbids = np.zeros(shape, dtype=bool)
    forbids[i] = True
    forbids[:, j] = True
    forbids[i, j] = False
    return Constraint.mask(name or f"pin[{j}, {i}]", f"document {j} at position {i}", forbids)


def banned(shape: Shape, name: str, documents: Any, positions: Any) -> Constraint:
    """None of these documents stands at any of these positions."""
    rows, columns = chosen("positions", positions, shape[0]), chosen("documents", documents, shape[1])
    forbids = np.zeros(shape, dtype=bool)
    forbids[np.ix_(rows, columns)] = True
    return Constraint.mask(name, f"{columns.size} documents kept from {rows.size} positions", forbids)


def precedence(shape: Shape, name: str | None, x: Any, y: Any) -> Constraint:
    """Wherever document y stands, x stands earlier: Σ_{i <= p} π[i, y] <= Σ_{i < p} π[i, x] at every p."""
    k, n = shape
    first, second = (one("document", document, n) for document in (x, y))
    if first == second:
        raise InvalidProblem(f"document {first} cannot stand before itself; name two documents")
    forbids = np.zeros(shape, dtype=bool)
    forbids[0, second] = True
    # Row p >= 1: ones on y at positions 0 .. p, then minus ones on x at positions 0 .. p - 1.
    later = range(1, k)
    places = [np.concatenate([np.arange(p + 1) * n + second, np.arange(p) * n + first]) for p in later]
    values = [np.repeat([1.0, -1.0], [p + 1, p]) for p in later]
    indptr = np.cumsum([0, *(part.size for part in places)])
    data, cells = (np.concatenate([np.empty(0), *parts]) for parts in (values, places))
    matrix = csr_array((data, cells.astype(np.int64), indptr), shape=(k - 1, k * n))
    labels = tuple(later) if name else tuple((first, second, p) for p in later)
    low, high = np.full(k - 1, -np.inf), np.zeros(k - 1)
    return Constraint(name or "before", f"document {first} before {second}", matrix, low, high, labels, forbids)


def raw_rows(
    shape: Shape, name: str, matrix: Any, lower: ArrayLike, upper: ArrayLike, labels: Iterable[Hashable] | None
) -> Constraint:
    """lower <= matrix π <= upper, the columns of `matrix` (r, k n) being the cells in C order."""
    dense = matrix if issparse(matrix) else np.atleast_2d(numbers("the matrix of rows", matrix))
    cells = shape[0] * shape[1]
    if dense.ndim != 2 or dense.shape[1] != cells:
        raise InvalidProblem(f"rows have shape {dense.shape}, but need {cells} columns: the cells (k n, in C order)")
    rows = csr_array(dense, dtype=np.float64, copy=True)
    finite("entries of rows", rows.data, 1)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    low, high = numbers("lower", lower), numbers("upper", upper)
    if {low.shape, high.shape} - {(), rows.shape[:1]}:
        raise InvalidProblem(
            f"limits of shape {low.shape} and {high.shape} for {rows.shape[0]} rows; give one number, or one a row"
        )
    low, high = (np.broadcast_to(side, rows.shape[:1]).copy() for side in (low, high))
    if not ((low <= high) & (low < np.inf) & (high > -np.inf)).all():
        raise InvalidProblem("lower and upper of rows must be numbers with lower <= upper; use -inf and inf for none")
    given = tuple(range(rows.shape[0])) if labels is None else tuple(labels)
    if len(given) != rows.shape[0]:
        raise InvalidProblem(f"{len(given)} labels for {rows.shape[0]} rows; give each row one")
    single = rows.shape[0] == 1 and labels is None
    return Constraint(name, "within its limits", rows, low, high, None if single else given)
