"""X w and Xᵀ r over chosen rows of a dense table: float32 or float64 features, sums in float64."""

from itertools import pairwise

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled

__all__ = ["dense_pair_sums", "dense_scores", "dense_sums", "dense_sums_in_numpy"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TABLES = [nb.types.Array(number, 2, "C", readonly=True) for number in (nb.float64, nb.float32)]
SUMS = nb.types.Array(nb.float64, 2, "C")


@compiled(
    [nb.void(table, READ_INTS, READ_INTS, READ_FLOATS, nb.int64, nb.int64, FLOATS) for table in TABLES],
    reassociate=True,
)
def dense_scores(table: Floats, rows: Ints, turns: Ints, w: Floats, first: int, last: int, scores: Floats) -> None:
    """scores[i] = ⟨row rows[i] of the table, w⟩ for the documents i = turns[t], first <= t < last.

    Every row is summed in the same order, so equal rows have equal scores wherever they stand.
    """
    for t in range(first, last):
        i = turns[t]
        row = table[rows[i]]
        total = 0.0
        for j in range(w.size):
            total += row[j] * w[j]
        scores[i] = total


@compiled([nb.void(table, READ_INTS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, SUMS) for table in TABLES])
def dense_sums(table: Floats, rows: Ints, r: Floats, bounds: Ints, first: int, last: int, sums: Floats) -> None:
    """sums[p] = Σ r[i] × row rows[i] over bounds[p] <= i < bounds[p + 1], for the parts first <= p < last.

    Rows of weight 0 are not read: of a decay that ends at position 10 ten rows a query are. Four of the others are read
    side by side and added one after the other.
    """
    features = table.shape[1]
    for p in range(first, last):
        total = sums[p]
        total[:] = 0.0
        i, end = bounds[p], bounds[p + 1]
        while i < end:
            held = 0
            a = b = c = d = i
            while i < end and held < 4:
                if r[i] != 0.0:
                    a, b, c, d = b, c, d, i
                    held += 1
                i += 1
            if held == 4:
                row, second, third, fourth = table[rows[a]], table[rows[b]], table[rows[c]], table[rows[d]]
                for j in range(features):
                    begun = (total[j] + r[a] * row[j]) + r[b] * second[j]
                    total[j] = (begun + r[c] * third[j]) + r[d] * fourth[j]
                continue
            for back in range(held):
                one = d
                if held - back == 3:
                    one = b
                elif held - back == 2:
                    one = c
                row = table[rows[one]]
                for j in range(features):
                    total[j] += r[one] * row[j]


def dense_sums_in_numpy(table: Floats, rows: Ints, r: Floats, bounds: Ints) -> Floats:
    """`dense_sums` of all parts, the same bits: what accumulates is added up one after the other."""
    sums = np.zeros((bounds.size - 1, table.shape[1]))
    for part, (low, high) in enumerate(pairwise(bounds.tolist())):
        kept = low + np.flatnonzero(r[low:high])
        if kept.size:
            sums[part] += np.add.accumulate(r[kept, None] * table[rows[kept]], axis=0)[-1]
    return sums


@compiled(
    [nb.void(table, READ_INTS, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, SUMS, SUMS) for table in TABLES]
)
def dense_pair_sums(
    table: Floats,
    rows: Ints,
    r: Floats,
    other: Floats,
    bounds: Ints,
    first: int,
    last: int,
    sums: Floats,
    other_sums: Floats,
) -> None:
    """`dense_sums` of r and of `other`, both while a row is at hand."""
    features = table.shape[1]
    for p in range(first, last):
        total, other_total = sums[p], other_sums[p]
        total[:] = 0.0
        other_total[:] = 0.0
        i, end = bounds[p], bounds[p + 1]
        while i < end:
            held = 0
            a = b = c = d = i
            while i < end and held < 4:
                if r[i] != 0.0 or other[i] != 0.0:
                    a, b, c, d = b, c, d, i
                    held += 1
                i += 1
            if held == 4:
                row, second, third, fourth = table[rows[a]], table[rows[b]], table[rows[c]], table[rows[d]]
                for j in range(features):
                    begun = (total[j] + r[a] * row[j]) + r[b] * second[j]
                    total[j] = (begun + r[c] * third[j]) + r[d] * fourth[j]
                    begun = (other_total[j] + other[a] * row[j]) + other[b] * second[j]
                    other_total[j] = (begun + other[c] * third[j]) + other[d] * fourth[j]
                continue
            for back in range(held):
                one = d
                if held - back == 3:
                    one = b
                elif held - back == 2:
                    one = c
                row = table[rows[one]]
                for j in range(features):
                    total[j] += r[one] * row[j]
                    other_total[j] += other[one] * row[j]
