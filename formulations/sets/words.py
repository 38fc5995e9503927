"""The language of ranking sets: what each word states, as a `Constraint` over the k × n cells.

A word is a function (shape, value, *, name and whatever else it takes) to a constraint, and a line of `WORDS`. It is
said by `RankingSet.word(value, ...)` and by a key of a statement file; one that takes documents, positions and by, and
counts, by `Admissible.word(count, ...)` over attributes too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from formulations.arrays import finite
from formulations.errors import InvalidProblem
from formulations.sets.cells import by_label, chosen, count_for, numbers, one, whole_number
from formulations.sets.constraint import Constraint, rows_of_cells
from formulations.sets.order_words import apart, before, chain, if_then, one_of
from formulations.sets.share_words import at_least_share, at_most_share

__all__ = ["COUNTING", "WORDS", "Word", "taken"]

Shape = tuple[int, int]
"""k positions and n documents."""


Word = Callable[..., Constraint]
"""(shape, what it is said of: a count, a document, rows; name and further keywords) to a constraint."""


def at_most(
    shape: Shape, count: Any, *, documents: Any = None, positions: Any = None, by: Any = None, name: str | None = None
) -> Constraint:
    """At most `count` of these documents at these positions; with `by`, of the documents of each label."""
    return _counted(shape, name or "at_most", "at most", count, documents, positions, by)


def at_least(
    shape: Shape, count: Any, *, documents: Any = None, positions: Any = None, by: Any = None, name: str | None = None
) -> Constraint:
    """At least `count` of these documents at these positions; with `by`, of the documents of each label."""
    return _counted(shape, name or "at_least", "at least", count, documents, positions, by)


def exactly(
    shape: Shape, count: Any, *, documents: Any = None, positions: Any = None, by: Any = None, name: str | None = None
) -> Constraint:
    """Exactly `count` of these documents at these positions; with `by`, of the documents of each label."""
    return _counted(shape, name or "exactly", "exactly", count, documents, positions, by)


def _counted(shape: Shape, name: str, word: str, count: Any, documents: Any, positions: Any, by: Any) -> Constraint:
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


def pin(shape: Shape, document: Any, *, position: Any, name: str | None = None) -> Constraint:
    """This document stands at this position: the other cells of both stay empty."""
    i, j = one("position", position, shape[0]), one("document", document, shape[1])
    forbids = np.zeros(shape, dtype=bool)
    forbids[i] = True
    forbids[:, j] = True
    forbids[i, j] = False
    return Constraint.mask(name or f"pin[{j}, {i}]", f"document {j} at position {i}", forbids)


def ban(shape: Shape, documents: Any, *, positions: Any = None, name: str | None = None) -> Constraint:
    """None of these documents stands at any of these positions."""
    rows, columns = chosen("positions", positions, shape[0]), chosen("documents", documents, shape[1])
    forbids = np.zeros(shape, dtype=bool)
    forbids[np.ix_(rows, columns)] = True
    return Constraint.mask(name or "ban", f"{columns.size} documents kept from {rows.size} positions", forbids)


def rows(
    shape: Shape,
    matrix: Any,
    *,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
    labels: Iterable[Hashable] | None = None,
    name: str | None = None,
) -> Constraint:
    """lower <= matrix π <= upper, the columns of `matrix` (r, k n) being the cells in C order."""
    dense = matrix if issparse(matrix) else np.atleast_2d(numbers("the matrix of rows", matrix))
    cells = shape[0] * shape[1]
    if dense.ndim != 2 or dense.shape[1] != cells:
        raise InvalidProblem(f"rows have shape {dense.shape}, but need {cells} columns: the cells (k n, in C order)")
    stated = csr_array(dense, dtype=np.float64, copy=True)
    finite("entries of rows", stated.data, 1)
    stated.sum_duplicates()
    stated.eliminate_zeros()
    low, high = numbers("lower", lower), numbers("upper", upper)
    if {low.shape, high.shape} - {(), stated.shape[:1]}:
        raise InvalidProblem(
            f"limits of shape {low.shape} and {high.shape} for {stated.shape[0]} rows; give one number, or one a row"
        )
    low, high = (np.broadcast_to(side, stated.shape[:1]).copy() for side in (low, high))
    if not ((low <= high) & (low < np.inf) & (high > -np.inf)).all():
        raise InvalidProblem("lower and upper of rows must be numbers with lower <= upper; use -inf and inf for none")
    given = tuple(range(stated.shape[0])) if labels is None else tuple(labels)
    if len(given) != stated.shape[0]:
        raise InvalidProblem(f"{len(given)} labels for {stated.shape[0]} rows; give each row one")
    single = stated.shape[0] == 1 and labels is None
    return Constraint(name or "row", "within its limits", stated, low, high, None if single else given)


def between(
    shape: Shape,
    low: Any,
    *,
    high: Any,
    documents: Any = None,
    positions: Any = None,
    by: Any = None,
    name: str | None = None,
) -> Constraint:
    """From `low` to `high` of these documents at these positions; with `by`, of the documents of each label."""
    least = _counted(shape, name or "between", "at least", low, documents, positions, by)
    most = _counted(shape, name or "between", "at most", high, documents, positions, by)
    if isinstance(low, Mapping) or isinstance(high, Mapping):
        raise InvalidProblem("between counts alike for all labels; say at_least and at_most by label")
    if low > high:
        raise InvalidProblem(f"between {low} and {high} lies nothing; give the smaller number first")
    if by is None:
        says: str | tuple[str, ...] = f"{least.says} and {most.says}"
    else:
        ends = f"from {whole_number('low', low)} to {whole_number('high', high)}"
        says = tuple(f"{ends} of {said.partition(' of ')[2]}" for said in most.says)
    return Constraint(name or "between", says, most.matrix, least.lower, most.upper, most.labels)


WORDS: dict[str, Word] = {
    "at_most": at_most,
    "at_least": at_least,
    "exactly": exactly,
    "ban": ban,
    "pin": pin,
    "before": before,
    "rows": rows,
    "between": between,
    "chain": chain,
    "apart": apart,
    "if_then": if_then,
    "one_of": one_of,
    "at_most_share": at_most_share,
    "at_least_share": at_least_share,
}


def taken(word: str, *, required: bool = False) -> tuple[str, ...]:
    """The keywords that a word takes beside its value and `name`; required: those without which it says nothing."""
    given = [one for one in signature(WORDS[word]).parameters.values() if one.kind is one.KEYWORD_ONLY]
    return tuple(one.name for one in given if one.name != "name" and not (required and one.default is not one.empty))


COUNTING = tuple(word for word in WORDS if taken(word) == ("documents", "positions", "by"))
"""The words that count documents at positions, label by label: attributes can say them."""
