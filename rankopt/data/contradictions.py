"""Documents that say nothing, or that contradict another of their query [Chakrabarti et al. 2008, section 4.1].

A document i is *all zero* if x_i = 0. Two documents i, j of one query that are not all zero *contradict* each other if
their grades differ and x_iᵀx_j >= cosine ‖x_i‖ ‖x_j‖ (less 1e-9, for rounding): hardly anything tells them apart, so no
order of theirs can be learned, and which one a ranker shows first is chance. Both are to blame; there is no first one.
All pairs are those of the whole query, so the order of documents plays no part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from rankopt.data.validation import Features, is_sparse, sealed
from rankopt.errors import OptionError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

BLOCK = 1024
"""Documents whose cosines with as many others are held at once: 8 MiB."""

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class ContradictionFilter(CompactReprMixin):
    """What `Queries.without_contradictions` kept, and how much it dropped of each of the m queries that there were.

    queries: the others' documents; a query that lost all of its own is gone. kept (N,): which documents these are.
    zeros, contradicting: (m,) the documents dropped as all zero, and as contradicting another. unordered: (m,) whether
    a query could be ordered before and cannot now: it is gone, or its documents have one grade.

    `str` tells the sums in one line.
    """

    queries: Any
    kept: Mask
    zeros: Ints
    contradicting: Ints
    unordered: Mask

    @classmethod
    def told(cls, before: Any, left: Any, zero: Mask, against: Mask) -> ContradictionFilter:
        """Of the `Queries` before and what is left of them, and the masks (N,) of the documents dropped."""
        counts = [np.add.reduceat(mask.astype(np.int64), before.offsets[:-1]) for mask in (zero, against)]
        gone = sum(counts) == np.diff(before.offsets)
        unordered = _ordered(before)
        unordered[~gone] &= ~_ordered(left)
        return cls(left, *map(sealed, (~(zero | against), *counts, unordered)))

    @property
    def dropped(self) -> int:
        """The number of documents that are not in `queries`."""
        return int(self.kept.size - self.kept.sum())

    def __str__(self) -> str:
        return (
            f"{self.dropped} of {self.kept.size} documents dropped ({self.zeros.sum()} all zero, "
            f"{self.contradicting.sum()} contradicting), {self.zeros.size - len(self.queries)} of {self.zeros.size} "
            f"queries gone, {self.unordered.sum()} with nothing to order any more: {self.queries}"
        )


def contradicting(features: Features, offsets: Ints, grades: Floats, cosine: float) -> tuple[Mask, Mask]:
    """(N,) which documents are all zero, and which contradict another, as defined above.

    features (N, d), grades (N,) and offsets (m + 1,) as in `Queries`. Cosines are taken in float64, 1,024 × 1,024 at a
    time, O(Σ n² d) in all. OptionError unless -1 <= cosine <= 1.
    """
    if isinstance(cosine, bool) or not isinstance(cosine, int | float | np.number) or not -1 <= cosine <= 1:
        raise OptionError(f"cosine = {cosine!r} is no cosine; give a number from -1 to 1, such as 0.99")
    zero, against = np.zeros(grades.size, dtype=bool), np.zeros(grades.size, dtype=bool)
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        blocks = [slice(low, min(low + BLOCK, stop)) for low in range(start, stop, BLOCK)]
        for first, rows in enumerate(blocks):
            unit, zero[rows] = _directions(features[rows])
            if grades[start:stop].min() == grades[start:stop].max():
                continue
            for other in blocks[first:]:
                others, nothing = (unit, zero[rows]) if other is rows else _directions(features[other])
                near = _products(unit, others) >= cosine - ROUNDING
                near &= grades[rows, None] != grades[other]
                near &= ~(zero[rows, None] | nothing)
                against[rows] |= near.any(axis=1)
                against[other] |= near.any(axis=0)
    return zero, against


def nothing_left(zero: Mask, against: Mask, cosine: float) -> str:
    """Why no document is left, and what helps: the features are nothing, or too near, or both."""
    apart = "normalise the features so that more tells documents apart."
    near = f"raise cosine = {cosine:g}, or {apart}" if cosine < 1 else apart
    if zero.all():
        return f"the features of all {zero.size} documents are zero; give features that tell documents apart."
    if not zero.any():
        return f"all {zero.size} documents contradict another; {near}"
    told = f"{zero.sum()} of {zero.size} documents are all zero and the other {against.sum()} contradict another"
    return f"{told}; {near}"


def _ordered(queries: Any) -> Mask:
    """(m,) whether a query has documents of different grades."""
    starts = queries.offsets[:-1]
    return np.asarray(np.maximum.reduceat(queries.relevance, starts) > np.minimum.reduceat(queries.relevance, starts))


def _directions(table: Features) -> tuple[Any, Mask]:
    """The rows divided by their lengths, those of length 0 as they are, and which these are.

    By way of the largest entry, so that no square over- or underflows.
    """
    if is_sparse(table):
        from scipy.sparse import csr_array

        made = csr_array(table, dtype=np.float64, copy=True)
        rows = np.repeat(np.arange(made.shape[0]), np.diff(made.indptr))
        largest = np.zeros(made.shape[0])
        np.maximum.at(largest, rows, np.abs(made.data))
        made.data /= np.where(largest > 0, largest, 1.0)[rows]
        squares = np.bincount(rows, made.data**2, made.shape[0])
        made.data /= np.sqrt(np.where(largest > 0, squares, 1.0))[rows]
        return made, largest == 0
    made = np.array(table, dtype=np.float64)
    largest = np.abs(made).max(axis=1)
    made /= np.where(largest > 0, largest, 1.0)[:, None]
    made /= np.sqrt(np.where(largest > 0, (made**2).sum(axis=1), 1.0))[:, None]
    return made, largest == 0


def _products(one: Any, other: Any) -> Floats:
    """The inner products of all rows with all others, as an array."""
    found = one @ other.T
    return np.asarray(found.toarray() if is_sparse(found) else found)
