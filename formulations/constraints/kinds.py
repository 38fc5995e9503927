"""The language of ranking sets: what each word states, as a `Constraint` over the k × n cells.

A word is a function (shape, value, *, name and whatever else it takes) to a constraint, and a line of `WORDS`. It is
said by `RankingSet.word(value, ...)` and by a key of a statement file; one that takes documents, positions and by, and
counts, by `Admissible.word(count, ...)` over attributes too.

Words of order and condition: chains of precedence, distances, what must stand at a position, what calls for what.

Words of shares: of the first p documents, for every p, at most or at least such a share is of a group.

A share of p is no whole number, so it is rounded, and how is said: "up", "down" or "nearest" (halves to the even one).
By default what is asked for is rounded to the looser side: "up" for at most, "down" for at least. Shares are taken as
the fractions that they stand for: 0.7 of 10 is 7, 1/3 of 6 is 2.

Groups that share no document make limits on prefixes, for which profits of rank one are whole
(`integrality.prefix_groups`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from inspect import signature
from itertools import pairwise
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse, vstack

from formulations.arrays import Ints, finite
from formulations.constraints.constraint import (
    Constraint,
    by_label,
    chosen,
    count_for,
    numbers,
    one,
    rows_of_cells,
    whole_number,
)
from formulations.errors import InvalidProblem

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


PLAIN = 1000
"""The largest denominator of a fraction that a float may stand for: 1/3, or .1 + .2, which is 3/10."""

ROUNDINGS: dict[str, Callable[[Fraction], int]] = {"up": ceil, "down": floor, "nearest": round}


def at_most_share(
    shape: Shape,
    share: Any,
    *,
    documents: Any = None,
    by: Any = None,
    prefixes: Any = None,
    rounding: str = "up",
    name: str | None = None,
) -> Constraint:
    """Of the first p positions, for each p of `prefixes` (all by default), at most this share, rounded, is of these
    documents; with `by`, of each label (share may be a mapping from label to share)."""
    return _shared(shape, name or "at_most_share", True, share, documents, by, prefixes, rounding)


def at_least_share(
    shape: Shape,
    share: Any,
    *,
    documents: Any = None,
    by: Any = None,
    prefixes: Any = None,
    rounding: str = "down",
    name: str | None = None,
) -> Constraint:
    """Of the first p positions, for each p of `prefixes` (all by default), at least this share, rounded, is of these
    documents; with `by`, of each label."""
    return _shared(shape, name or "at_least_share", False, share, documents, by, prefixes, rounding)


def rounded_share(share: Any, positions: int, rounding: str) -> int:
    """The share of so many positions, rounded as said; InvalidProblem for what is no share or no rounding."""
    if not isinstance(rounding, str) or rounding not in ROUNDINGS:
        raise InvalidProblem(f"rounding = {rounding!r} is none of {', '.join(map(repr, ROUNDINGS))}")
    try:
        exact = Fraction(str(share.item() if isinstance(share, np.generic) else share))
    except (ValueError, ZeroDivisionError):
        raise InvalidProblem(f"share = {share!r} is no number from 0 to 1") from None
    if isinstance(share, float | np.floating):
        plain = exact.limit_denominator(PLAIN)
        if abs(plain - exact) <= 4 * float(np.finfo(type(share)).eps) * plain:
            exact = plain
    if not 0 <= exact <= 1:
        raise InvalidProblem(f"share = {share!r} is no part of a whole; give a number from 0 to 1")
    return int(ROUNDINGS[rounding](exact * positions))


def _shared(
    shape: Shape, name: str, most: bool, share: Any, documents: Any, by: Any, prefixes: Any, rounding: str
) -> Constraint:
    k, n = shape
    columns = chosen("documents", documents, n)
    groups: dict[Hashable, Ints] = {None: columns} if by is None else by_label(by, n)
    if by is not None and documents is not None:
        groups = {label: np.intersect1d(part, columns) for label, part in groups.items()}
    if isinstance(share, Mapping):
        if by is None:
            raise InvalidProblem("share maps labels to shares; say by= which labels the documents carry")
        owed = {label: np.empty(0, dtype=np.int64) for label in share if not most}
        groups = {label: part for label, part in (owed | groups).items() if label in share}
    lengths = range(1, k + 1) if prefixes is None else _lengths(prefixes, k)
    cells, labels, says, limits = list[tuple[Ints, Ints]](), list[Hashable](), list[str](), list[int]()
    for label, part in groups.items():
        for length in lengths:
            count = rounded_share(share[label] if isinstance(share, Mapping) else share, length, rounding)
            if (count >= min(length, part.size)) if most else count == 0:
                continue  # it says nothing
            cells.append((np.arange(length), part))
            labels.append(length if by is None else (label, length))
            says.append(f"at {'most' if most else 'least'} {count} of {part.size} documents in the first {length}")
            limits.append(count)
    counts = np.array(limits, dtype=np.float64)
    none = np.full(counts.size, np.inf)
    low, high = (-none, counts) if most else (counts, none)
    return Constraint(name, tuple(says), rows_of_cells(cells, k, n), low, high, tuple(labels))


def _lengths(prefixes: Any, k: int) -> list[int]:
    given = [prefixes] if np.ndim(prefixes) == 0 and not isinstance(prefixes, range) else list(prefixes)
    lengths = sorted({whole_number("a prefix", length) for length in given})
    if not lengths or lengths[0] < 1 or lengths[-1] > k:
        raise InvalidProblem(f"prefixes = {prefixes!r} are no lengths from 1 to {k}")
    return lengths


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
