"""Words of order and condition: chains of precedence, distances, what must stand at a position, what calls for what."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from formulations.arrays import Ints
from formulations.errors import InvalidProblem
from formulations.sets.cells import by_label, chosen, one, whole_number
from formulations.sets.constraint import Constraint, rows_of_cells

__all__ = ["apart", "before", "chain", "if_then", "one_of", "precedence"]

Shape = tuple[int, int]


def precedence(shape: Shape, first: Ints, second: Ints, places: Iterable[int], *, reaching: bool) -> csr_array:
    """A row a place p, at most 0: ones on `second` at position p (reaching: at 0 .. p), minus ones on `first` at 0 ..
    p - 1."""
    k, n = shape
    cells = [np.empty(0, dtype=np.int64)]
    values, ends = [np.empty(0)], [0]
    for p in places:
        late = (np.arange(0 if reaching else p, p + 1)[:, None] * n + second).ravel()
        early = (np.arange(p)[:, None] * n + first).ravel()
        cells += [late, early]
        values.append(np.repeat([1.0, -1.0], [late.size, early.size]))
        ends.append(ends[-1] + late.size + early.size)
    return csr_array((np.concatenate(values), np.concatenate(cells), ends), shape=(len(ends) - 1, k * n))


def before(shape: Shape, pair: Any, *, name: str | None = None) -> Constraint:
    """Of the pair (a, b) of documents or sets of these: where one of b stands, one of a stands earlier.

    Of two documents: Σ_{i <= p} π[i, y] <= Σ_{i < p} π[i, x] at every p. Of sets, be they of one document, a row a
    position: Σ_{y in b} π[p, y] <= Σ_{i < p} Σ_{x in a} π[i, x]. In whole numbers that is the condition, as a position
    holds one document; a unit is a document of b that stands before all of a. A document of both counts for a alone.
    Without documents in a those of b are banned; without any in b nothing is said.
    """
    k, n = shape
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise InvalidProblem(f"before = {pair!r} needs two documents, or sets of these: the first before the second")
    first, second = (_documents("before", part, n) for part in pair)
    single = all(map(_single, pair))
    if single and first == second:
        raise InvalidProblem(f"document {first[0]} cannot stand before itself; name two documents")
    second = np.setdiff1d(second, first)
    forbids = np.zeros(shape, dtype=bool)
    forbids[: 1 if first.size else k, second] = True
    later = range(1, k if first.size and second.size else 1)
    says = f"one of {first.size} documents before {second.size}"
    labels: tuple[Hashable, ...] = tuple(later)
    if single:
        x, y = int(first[0]), int(second[0])
        says, labels = f"document {x} before {y}", labels if name else tuple((x, y, p) for p in later)
    matrix = precedence(shape, first, second, later, reaching=single)
    low, high = np.full(len(later), -np.inf), np.zeros(len(later))
    return Constraint(name or "before", says, matrix, low, high, labels, forbids if second.size else None)


def chain(shape: Shape, documents: Any, *, name: str | None = None) -> Constraint:
    """Wherever a document of the list stands, all those before it in the list stand earlier.

    The list may hold sets of documents: where one of a set stands, one of the set before it in the list stands earlier,
    by the rows of `before` and one for position 0, where a document of two sets may break two of them.
    """
    k, n = shape
    listed = list(documents) if isinstance(documents, list | tuple | np.ndarray) else []
    if len(listed) < 2:
        raise InvalidProblem(f"chain = {documents!r} needs a list of two documents at least, the first one first")
    order = [_documents("chain", part, n) for part in listed]
    single = [int(part[0]) for part, given in zip(order, listed, strict=True) if _single(given)]
    if len(set(single)) < len(single):
        raise InvalidProblem(f"chain = {documents!r} names a document twice; it cannot stand before itself")
    plain = len(single) == len(order)
    places, says = range(1 if plain else 0, k), f"{len(order)} sets of documents in this order"
    pairs = [(x, np.setdiff1d(y, x)) for x, y in pairwise(order)]
    heads: list[tuple[int, ...]] = [(number,) for number in range(len(pairs))]
    forbids = None
    if plain:
        says, heads, forbids = f"documents {single} in this order", list(pairwise(single)), np.zeros(shape, dtype=bool)
        for place, document in enumerate(single):  # so many stand before it
            forbids[:place, document] = True
    matrix = csr_array(vstack([precedence(shape, x, y, places, reaching=plain) for x, y in pairs]))
    labels = tuple((*head, p) for head in heads for p in places)
    low, high = np.full(matrix.shape[0], -np.inf), np.zeros(matrix.shape[0])
    return Constraint(name or "chain", says, matrix, low, high, labels, forbids)


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
    given, wanted = (chosen("if_then", part, n) for part in pair)
    rows = chosen("positions", positions, k)
    called = given[~np.isin(given, wanted)]
    own = rows * n + called[:, None]
    others = np.broadcast_to((rows[:, None] * n + wanted).ravel(), (called.size, rows.size * wanted.size))
    values = np.repeat([1.0, -1.0], [rows.size, rows.size * wanted.size])
    ends = values.size * np.arange(called.size + 1)
    cells = np.hstack([own, others]).ravel()
    matrix = csr_array((np.tile(values, called.size), cells, ends), shape=(called.size, k * n))
    low, high = np.full(called.size, -np.inf), np.zeros(called.size)
    says = f"only with one of {wanted.size} documents"
    return Constraint(name or "if_then", says, matrix, low, high, tuple(called.tolist()))


def one_of(shape: Shape, documents: Any, *, position: Any = 0, name: str | None = None) -> Constraint:
    """One of these documents stands at this position, the first if none is said."""
    i, allowed = one("position", position, shape[0]), chosen("documents", documents, shape[1])
    forbids = np.zeros(shape, dtype=bool)
    forbids[i] = True
    forbids[i, allowed] = False
    return Constraint.mask(name or f"one_of[{i}]", f"one of {allowed.size} documents at position {i}", forbids)


def _documents(word: str, given: Any, n: int) -> Ints:
    """One document, or a set of these."""
    if given is None or (_single(given) and isinstance(given, bool | np.bool_)):
        raise InvalidProblem(f"{word} names {given}, but must be one index from 0 to {n - 1}, or a set of these")
    return chosen(word, given, n)


def _single(given: Any) -> bool:
    """Whether one document is named by its index."""
    return not isinstance(given, list | tuple | range | set | frozenset) and np.ndim(given) == 0
