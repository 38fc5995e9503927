"""Words of shares: of the first p documents, for every p, at most or at least such a share is of a group.

A share of p is no whole number, so it is rounded, and how is said: "up", "down" or "nearest" (halves to the even one).
By default what is asked for is rounded to the looser side: "up" for at most, "down" for at least. Shares are taken as
the fractions that they stand for: 0.7 of 10 is 7, 1/3 of 6 is 2.

Groups that share no document make limits on prefixes, for which profits of rank one are whole
(`integrality.prefix_groups`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from formulations.arrays import Ints
from formulations.errors import InvalidProblem
from formulations.sets.cells import by_label, chosen, whole_number
from formulations.sets.constraint import Constraint, rows_of_cells

__all__ = ["at_least_share", "at_most_share", "rounded_share"]

Shape = tuple[int, int]

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
