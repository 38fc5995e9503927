"""Words of order and condition: chains of precedence, distances, what must stand at a position, what calls for what."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from formulations.arrays import Bools, Ints
from formulations.errors import InvalidProblem
from formulations.sets.cells import by_label, chosen, one, whole_number
from formulations.sets.constraint import Constraint, rows_of_cells

__all__ = ["apart", "chain", "if_then", "one_of", "precedence"]

Shape = tuple[int, int]


def precedence(shape: Shape, first: int, second: int) -> tuple[csr_array, Bools]:
    """Rows p = 1 .. k - 1, each at most 0: ones on `second` at positions 0 .. p, minus ones on `first` at 0 .. p - 1;
    and the cell that is forbidden."""
    k, n = shape
    forbids = np.zeros(shape, dtype=bool)
    forbids[0, second] = True
    later = range(1, k)
    places = [np.concatenate([np.arange(p + 1) * n + second, np.arange(p) * n + first]) for p in later]
    values = [np.repeat([1.0, -1.0], [p + 1, p]) for p in later]
    indptr = np.cumsum([0, *(part.size for part in places)])
    data, cells = (np.concatenate([np.empty(0), *parts]) for parts in (values, places))
    return csr_array((data, cells.astype(np.int64), indptr), shape=(k - 1, k * n)), forbids


def chain(shape: Shape, documents: Any, *, name: str | None = None) -> Constraint:
    """Wherever a document of the list stands, all those before it in the list stand earlier."""
    listed = list(documents) if isinstance(documents, list | tuple | np.ndarray) else []
    if len(listed) < 2:
        raise InvalidProblem(f"chain = {documents!r} needs a list of two documents at least, the first one first")
    order = [one("document", document, shape[1]) for document in listed]
    if len(set(order)) < len(order):
        raise InvalidProblem(f"chain = {order} names a document twice; it cannot stand before itself")
    pairs = list(pairwise(order))
    parts = [precedence(shape, *pair) for pair in pairs]
    matrix = csr_array(vstack([rows for rows, _ in parts]))
    forbids = np.logical_or.reduce([mask for _, mask in parts])
    for place, document in enumerate(order):  # so many stand before it
        forbids[:place, document] = True
    labels = tuple((x, y, p) for x, y in pairs for p in range(1, shape[0]))
    low, high = np.full(matrix.shape[0], -np.inf), np.zeros(matrix.shape[0])
    return Constraint(name or "chain", f"documents {order} in this order", matrix, low, high, labels, forbids)


def apart(shape: Shape, distance: Any, *, documents: Any = None, by: Any = None, name: str | None = None) -> Constraint:
    """Two of these documents (with `by`, two of one label) stand `distance` positions apart at least: at most one in
    any `distance` consecutive positions."""
    k, n = shape
    width = whole_number("distance", distance)
    if width < 1:
        raise InvalidProblem("distance = 0 says nothing; give 1 or more: 2 keeps neighbours apart")
    columns = chosen("documents", documents, n)
    groups = {None: columns} if by is None else by_label(by, n)
    if by is not None and documents is not None:
        groups = {label: np.intersect1d(part, columns) for label, part in groups.items()}
    reach = min(width, k)
    starts = range(k - reach + 1)
    said = [(label, part) for label, part in groups.items() if part.size > 1 and reach > 1]
    cells: list[tuple[Ints, Ints]] = [(np.arange(start, start + reach), part) for _, part in said for start in starts]
    labels = tuple(start if by is None else (label, start) for label, _ in said for start in starts)
    low, high = np.full(len(cells), -np.inf), np.ones(len(cells))
    says = f"at most one of them in any {reach} positions"
    return Constraint(name or "apart", says, rows_of_cells(cells, k, n), low, high, labels)


def if_then(shape: Shape, pair: Any, *, positions: Any = None, name: str | None = None) -> Constraint:
    """Of the pair (a, b) of documents or sets of these: where one of a stands at these positions, one of b does.

    A row a document i of a: Σ_p π[p, i] <= Σ_{j in b} Σ_p π[p, j]. In whole numbers that is the condition, as no
    document stands twice; the rows are not totally unimodular.
    """
    k, n = shape
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise InvalidProblem(f"if_then = {pair!r} needs two sets of documents: if one of the first, one of the second")
    given, wanted = (chosen("documents", part, n) for part in pair)
    rows = chosen("positions", positions, k)
    called = given[~np.isin(given, wanted)]
    table = np.zeros((called.size, rows.size, n))
    table[:, :, wanted] = -1.0
    table[np.arange(called.size), :, called] = 1.0
    whole = np.zeros((called.size, k, n))
    whole[:, rows] = table
    low, high = np.full(called.size, -np.inf), np.zeros(called.size)
    says = f"only with one of {wanted.size} documents"
    matrix = csr_array(whole.reshape(called.size, k * n))
    return Constraint(name or "if_then", says, matrix, low, high, tuple(called.tolist()))


def one_of(shape: Shape, documents: Any, *, position: Any = 0, name: str | None = None) -> Constraint:
    """One of these documents stands at this position, the first if none is said."""
    i, allowed = one("position", position, shape[0]), chosen("documents", documents, shape[1])
    forbids = np.zeros(shape, dtype=bool)
    forbids[i] = True
    forbids[i, allowed] = False
    return Constraint.mask(name or f"one_of[{i}]", f"one of {allowed.size} documents at position {i}", forbids)
