"""The kinds of constraints of a ranking: each is a function that compiles to rows, and a line of `KINDS`.

A function takes (shape, the arguments of the kind, name and further keywords) and returns a `Constraint`. `RankingSet`,
`Admissible` and TOML files all read `KINDS`; `ConstraintMethods` has one method for each kind.

A share of p positions is rounded "up", "down" or "nearest" (halves to even); by default to the looser side: "up" for at
most, "down" for at least. A float is read as the fraction that it approximates: 0.7 of 10 is 7, 1/3 of 6 is 2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from inspect import Parameter, signature
from itertools import pairwise
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse, vstack

from formulations.arrays import Ints, as_integer, each, finite, numbers
from formulations.constraints.constraint import (
    Constraint,
    ShareLimit,
    by_label,
    chosen,
    count_for,
    one,
    prefix_lengths,
    rows_of_cells,
)
from formulations.errors import InvalidProblemError

Shape = tuple[int, int]  # k positions and n documents


def at_most(
    shape: Shape,
    count: Any = None,
    *,
    share: Any = None,
    documents: Any = None,
    positions: Any = None,
    by: Any = None,
    prefixes: Any = None,
    rounding: str = "up",
    name: str | None = None,
) -> Constraint:
    """At most `count` documents at these positions, or `share` of each prefix; with `by`, per label."""
    return _limit(shape, name or "at_most", "at most", count, documents, positions, by, share, prefixes, rounding)


def at_least(
    shape: Shape,
    count: Any = None,
    *,
    share: Any = None,
    documents: Any = None,
    positions: Any = None,
    by: Any = None,
    prefixes: Any = None,
    rounding: str = "down",
    name: str | None = None,
) -> Constraint:
    """At least `count` documents at these positions, or `share` of each prefix; with `by`, per label."""
    return _limit(shape, name or "at_least", "at least", count, documents, positions, by, share, prefixes, rounding)


def exactly(
    shape: Shape, count: Any, *, documents: Any = None, positions: Any = None, by: Any = None, name: str | None = None
) -> Constraint:
    """Exactly `count` of these documents at these positions; with `by`, of the documents of each label."""
    return _limit(shape, name or "exactly", "exactly", count, documents, positions, by)


def _limit(
    shape: Shape,
    name: str,
    side: str,
    count: Any,
    documents: Any,
    positions: Any,
    by: Any,
    share: Any = None,
    prefixes: Any = None,
    rounding: str = "",
) -> Constraint:
    """A limit on the side "at most", "at least" or "exactly": a count, or a share of each prefix."""
    k, n = shape
    if share is not None:
        if count is not None or positions is not None:
            raise InvalidProblemError(
                f"share= takes neither a count nor positions; got {count!r} and {positions!r}. Use prefixes=."
            )
        groups = _groups(chosen("documents", documents, n), by, n)
        if isinstance(share, Mapping):
            if by is None:
                raise InvalidProblemError(f"A share per label needs labels; got share={share!r} and no by=. Give by=.")
            owed = {label: np.empty(0, dtype=np.int64) for label in share if side == "at least"}
            groups = {label: part for label, part in (owed | groups).items() if label in share}
        lengths = range(1, k + 1) if prefixes is None else prefix_lengths(prefixes, k)
        return ShareLimit(shape, name, side == "at most", groups, tuple(lengths), rounding).constraint(share)
    if prefixes is not None:
        raise InvalidProblemError(f"prefixes= needs share=; got count={count!r}. Use positions=range(p) with a count.")
    columns, rows = chosen("documents", documents, n), chosen("positions", positions, k)
    suffix = "" if rows.size == k else f" at {rows.size} of {k} positions"

    def limits(number: int) -> tuple[float, float]:
        return -np.inf if side == "at most" else float(number), np.inf if side == "at least" else float(number)

    if by is None:
        if isinstance(count, Mapping):
            raise InvalidProblemError(f"A count per label needs labels; got count={count!r} and no by=. Give by=.")
        number = as_integer("count", count)
        low, high = (np.array([side]) for side in limits(number))
        matrix = rows_of_cells([(rows, columns)], k, n)
        return Constraint(name, f"{side} {number} of {columns.size} documents{suffix}", matrix, low, high)
    required = count if side != "at most" and isinstance(count, Mapping) else {}
    members: dict[Hashable, Ints] = {label: np.empty(0, dtype=np.int64) for label in required}
    members |= _groups(columns, by, n)
    counts = {label: count_for("count", count, label) for label in members}
    # A label without documents has a row only if a mapping requires documents of it.
    rowed = {label: found for label, found in members.items() if counts[label] is not None}
    rowed = {label: found for label, found in rowed.items() if found.size or (label in required and counts[label])}
    matrix = rows_of_cells([(rows, found) for found in rowed.values()], k, n)
    sides = np.array([limits(int(counts[label] or 0)) for label in rowed], dtype=np.float64).reshape(-1, 2)
    texts = tuple(f"{side} {counts[label]} of {found.size} documents{suffix}" for label, found in rowed.items())
    return Constraint(name, texts, matrix, sides[:, 0].copy(), sides[:, 1].copy(), tuple(rowed))


def _groups(columns: Ints, by: Any, n: int) -> dict[Hashable, Ints]:
    """The selected documents by label; without labels all of them under None."""
    if by is None:
        return {None: columns}
    groups = by_label(by, n)
    return groups if columns.size == n else {label: np.intersect1d(part, columns) for label, part in groups.items()}


def between(
    shape: Shape,
    low: Any,
    high: Any,
    *,
    documents: Any = None,
    positions: Any = None,
    by: Any = None,
    name: str | None = None,
) -> Constraint:
    """From `low` to `high` of these documents at these positions; with `by`, of the documents of each label."""
    least = _limit(shape, name or "between", "at least", low, documents, positions, by)
    most = _limit(shape, name or "between", "at most", high, documents, positions, by)
    if isinstance(low, Mapping) or isinstance(high, Mapping):
        raise InvalidProblemError("between() needs one low and one high; got a mapping. Use at_least() and at_most().")
    if low > high:
        raise InvalidProblemError(f"between() needs low <= high; got low={low}, high={high}.")
    if by is None:
        texts: str | tuple[str, ...] = f"{least.text} and {most.text}"
    else:
        ends = f"from {as_integer('low', low)} to {as_integer('high', high)}"
        texts = tuple(f"{ends} of {text.partition(' of ')[2]}" for text in most.text)
    return Constraint(name or "between", texts, most.matrix, least.lower, most.upper, most.labels)


def forbid(shape: Shape, documents: Any = None, *, positions: Any = None, name: str | None = None) -> Constraint:
    """None of these documents at any of these positions."""
    rows, columns = chosen("positions", positions, shape[0]), chosen("documents", documents, shape[1])
    forbids = np.zeros(shape, dtype=bool)
    forbids[np.ix_(rows, columns)] = True
    return Constraint.mask(name or "forbid", f"{columns.size} documents forbidden at {rows.size} positions", forbids)


def fix(shape: Shape, document: Any, position: Any, *, name: str | None = None) -> Constraint:
    """This document at this position: all other cells of both are forbidden."""
    i, j = one("position", position, shape[0]), one("document", document, shape[1])
    forbids = np.zeros(shape, dtype=bool)
    forbids[i] = True
    forbids[:, j] = True
    forbids[i, j] = False
    return Constraint.mask(name or f"fix[{j}, {i}]", f"document {j} at position {i}", forbids)


def position_in(shape: Shape, documents: Any, *, position: Any = 0, name: str | None = None) -> Constraint:
    """One of these documents at this position."""
    i, allowed = one("position", position, shape[0]), chosen("documents", documents, shape[1])
    forbids = np.zeros(shape, dtype=bool)
    forbids[i] = True
    forbids[i, allowed] = False
    return Constraint.mask(name or f"position_in[{i}]", f"one of {allowed.size} documents at position {i}", forbids)


def _precedence(shape: Shape, first: Ints, second: Ints, positions: Iterable[int], *, reaching: bool) -> csr_array:
    """One row for each p, at most 0: 1 on `second` at p (reaching: at 0 .. p), -1 on `first` at 0 .. p - 1."""
    k, n = shape
    cells = [np.empty(0, dtype=np.int64)]
    values, ends = [np.empty(0)], [0]
    for p in positions:
        late = (np.arange(0 if reaching else p, p + 1)[:, None] * n + second).ravel()
        early = (np.arange(p)[:, None] * n + first).ravel()
        cells += [late, early]
        values.append(np.repeat([1.0, -1.0], [late.size, early.size]))
        ends.append(ends[-1] + late.size + early.size)
    return csr_array((np.concatenate(values), np.concatenate(cells), ends), shape=(len(ends) - 1, k * n))


def precedes(shape: Shape, *documents: Any, name: str | None = None) -> Constraint:
    """Documents or sets a, b: a document of b is shown only behind a document of a.

    Two documents x, y: Σ_{i <= p} π[i, y] <= Σ_{i < p} π[i, x] for every p. Sets (also of one document): one row for
    each p, Σ_{y in b} π[p, y] <= Σ_{i < p} Σ_{x in a} π[i, x]; a unit of violation is a document of b ahead of all of
    a. A document of both belongs to a only. An empty a forbids b; an empty b constrains nothing.
    """
    k, n = shape
    if len(documents) != 2:
        raise InvalidProblemError(f"precedes() needs two documents or two sets of documents; got {documents!r}.")
    first, second = (_documents("precedes()", part, n) for part in documents)
    single = all(map(_single, documents))
    if single and first == second:
        raise InvalidProblemError(f"A document cannot precede itself; got document {first[0]} twice. Name two.")
    second = np.setdiff1d(second, first)
    forbids = np.zeros(shape, dtype=bool)
    forbids[: 1 if first.size else k, second] = True
    later = range(1, k if first.size and second.size else 1)
    text = f"one of {first.size} documents before {second.size}"
    labels: tuple[Hashable, ...] = tuple(later)
    if single:
        x, y = int(first[0]), int(second[0])
        text, labels = f"document {x} before {y}", labels if name else tuple((x, y, p) for p in later)
    matrix = _precedence(shape, first, second, later, reaching=single)
    low, high = np.full(len(later), -np.inf), np.zeros(len(later))
    return Constraint(name or "precedes", text, matrix, low, high, labels, forbids if second.size else None)


def precedence_chain(shape: Shape, *documents: Any, name: str | None = None) -> Constraint:
    """Each document or set `precedes` the next.

    Sets have the rows of `precedes` and one for position 0, where a document of two sets may violate two of them.
    """
    k, n = shape
    if len(documents) < 2:
        raise InvalidProblemError(f"precedence_chain() needs a list of two or more documents; got {documents!r}.")
    order = [_documents("precedence_chain()", part, n) for part in documents]
    single = [int(part[0]) for part, selector in zip(order, documents, strict=True) if _single(selector)]
    if len(set(single)) < len(single):
        raise InvalidProblemError(f"A document cannot precede itself; got the chain {single}. Name each document once.")
    plain = len(single) == len(order)
    positions, text = range(1 if plain else 0, k), f"{len(order)} sets of documents in this order"
    pairs = [(x, np.setdiff1d(y, x)) for x, y in pairwise(order)]
    heads: list[tuple[int, ...]] = [(number,) for number in range(len(pairs))]
    forbids = None
    if plain:
        text, heads, forbids = f"documents {single} in this order", list(pairwise(single)), np.zeros(shape, dtype=bool)
        for position, document in enumerate(single):  # as many precede it
            forbids[:position, document] = True
    matrix = csr_array(vstack([_precedence(shape, x, y, positions, reaching=plain) for x, y in pairs]))
    labels = tuple((*head, p) for head in heads for p in positions)
    low, high = np.full(matrix.shape[0], -np.inf), np.zeros(matrix.shape[0])
    return Constraint(name or "precedence_chain", text, matrix, low, high, labels, forbids)


def _documents(kind: str, selector: Any, n: int) -> Ints:
    """One document, or a set of documents."""
    if selector is None or isinstance(selector, bool | np.bool_):
        raise InvalidProblemError(f"{kind} needs one index from 0 to {n - 1}, or a set of indices; got {selector}.")
    return chosen(f"the documents of {kind}", selector, n)


def _single(selector: Any) -> bool:
    """Whether it is one index."""
    return not isinstance(selector, list | tuple | range | set | frozenset) and np.ndim(selector) == 0


def min_distance(
    shape: Shape, distance: Any, *, documents: Any = None, by: Any = None, name: str | None = None
) -> Constraint:
    """At most one of these documents (with `by`, of each label) in any `distance` consecutive positions."""
    k, n = shape
    width = as_integer("distance", distance)
    if width < 1:
        raise InvalidProblemError(f"distance must be 1 or more; got {width}. 2 separates neighbors.")
    columns = chosen("documents", documents, n)
    groups = _groups(columns, by, n)
    reach = min(width, k)
    starts = range(k - reach + 1)
    limited = [(label, part) for label, part in groups.items() if part.size > 1 and reach > 1]
    cells: list[tuple[Ints, Ints]] = [(np.arange(at, at + reach), part) for _, part in limited for at in starts]
    labels = tuple(start if by is None else (label, start) for label, _ in limited for start in starts)
    low, high = np.full(len(cells), -np.inf), np.ones(len(cells))
    text = f"at most one of them in any {reach} positions"
    return Constraint(name or "min_distance", text, rows_of_cells(cells, k, n), low, high, labels)


def implies(shape: Shape, *documents: Any, positions: Any = None, name: str | None = None) -> Constraint:
    """Documents or sets a, b: a document of a at these positions requires a document of b at these positions.

    One row for each document i of a: Σ_p π[p, i] <= Σ_{j in b} Σ_p π[p, j]. The rows are not totally unimodular.
    """
    k, n = shape
    if len(documents) != 2:
        raise InvalidProblemError(f"implies() needs two documents or two sets of documents; got {documents!r}.")
    first, wanted = (chosen("the documents of implies()", part, n) for part in documents)
    rows = chosen("positions", positions, k)
    called = first[~np.isin(first, wanted)]
    own = rows * n + called[:, None]
    others = np.broadcast_to((rows[:, None] * n + wanted).ravel(), (called.size, rows.size * wanted.size))
    values = np.repeat([1.0, -1.0], [rows.size, rows.size * wanted.size])
    ends = values.size * np.arange(called.size + 1)
    cells = np.hstack([own, others]).ravel()
    matrix = csr_array((np.tile(values, called.size), cells, ends), shape=(called.size, k * n))
    low, high = np.full(called.size, -np.inf), np.zeros(called.size)
    text = f"only with one of {wanted.size} documents"
    return Constraint(name or "implies", text, matrix, low, high, tuple(called.tolist()))


def add_rows(
    shape: Shape,
    matrix: Any,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
    *,
    labels: Iterable[Hashable] | None = None,
    name: str | None = None,
) -> Constraint:
    """lower <= matrix π <= upper; the columns of `matrix` (r, k n) are the cells in C order."""
    dense = matrix if issparse(matrix) else np.atleast_2d(numbers("the matrix of add_rows()", matrix))
    cells = shape[0] * shape[1]
    if dense.ndim != 2 or dense.shape[1] != cells:
        raise InvalidProblemError(f"add_rows() needs {cells} columns, a cell each in C order; got shape {dense.shape}.")
    compiled = csr_array(dense, dtype=np.float64, copy=True)
    finite("entries of add_rows()", compiled.data, 1)
    compiled.sum_duplicates()
    compiled.eliminate_zeros()
    low, high = numbers("lower", lower), numbers("upper", upper)
    if {low.shape, high.shape} - {(), compiled.shape[:1]}:
        raise InvalidProblemError(f"lower and upper must be one number, or one per row; got {low.shape}, {high.shape}.")
    low, high = (np.broadcast_to(side, compiled.shape[:1]).copy() for side in (low, high))
    if not ((low <= high) & (low < np.inf) & (high > -np.inf)).all():
        raise InvalidProblemError(
            f"add_rows() needs numbers lower <= upper, -inf and inf for none; got lower={short(low.tolist())}, "
            f"upper={short(high.tolist())}."
        )
    names = tuple(range(compiled.shape[0])) if labels is None else each("labels", labels)
    if len(names) != compiled.shape[0]:
        raise InvalidProblemError(f"add_rows() needs one label per row; got {len(names)} for {compiled.shape[0]} rows.")
    single = compiled.shape[0] == 1 and labels is None
    return Constraint(name or "row", "within its limits", compiled, low, high, None if single else names)


COUNTS = (at_most, at_least, exactly, between)
CELLS = (forbid, fix, position_in, precedes, precedence_chain, min_distance, implies)

KINDS: dict[str, Callable[..., Constraint]] = {kind.__name__: kind for kind in (*COUNTS, *CELLS, add_rows)}


def parameters(kind: str, *, required: bool = False) -> tuple[str, ...]:
    """The parameters of a kind except `shape` and `name`, in order; required: those without a default."""
    found = list(signature(KINDS[kind]).parameters.values())[1:]
    return tuple(p.name for p in found if p.name != "name" and not (required and p.default is not Parameter.empty))
