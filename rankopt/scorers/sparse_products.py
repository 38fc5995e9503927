"""X w and Xᵀ r over chosen rows of a CSR table: float32 or float64 features, sums in float64.

Indices are read as unsigned numbers: a negative one would count from the end, and to ask takes longer than to add.
"""

from itertools import product

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled

__all__ = ["sparse_scores", "sparse_sums"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PARTS = [
    (nb.types.Array(number, 1, "C", readonly=True), nb.types.Array(index, 1, "C", readonly=True))
    for number, index in product((nb.float64, nb.float32), (nb.int32, nb.int64))
]
"""Types of the entries, and of their columns and the bounds of the rows."""
SUMS = nb.types.Array(nb.float64, 2, "C")


@compiled([nb.void(data, at, at, READ_INTS, READ_INTS, READ_FLOATS, nb.int64, nb.int64, FLOATS) for data, at in PARTS])
def sparse_scores(
    data: Floats,
    columns: Ints,
    starts: Ints,
    rows: Ints,
    turns: Ints,
    w: Floats,
    first: int,
    last: int,
    scores: Floats,
) -> None:
    """scores[i] = ⟨row rows[i] of the table, w⟩ for the documents i = turns[t], first <= t < last."""
    for t in range(first, last):
        i = turns[t]
        row = rows[i]
        total = 0.0
        for entry in range(nb.uint64(starts[row]), nb.uint64(starts[row + 1])):
            total += data[entry] * w[nb.uint64(columns[entry])]
        scores[i] = total


@compiled([nb.void(data, at, at, READ_INTS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, SUMS) for data, at in PARTS])
def sparse_sums(
    data: Floats,
    columns: Ints,
    starts: Ints,
    rows: Ints,
    r: Floats,
    bounds: Ints,
    first: int,
    last: int,
    sums: Floats,
) -> None:
    """sums[p] = Σ r[i] × row rows[i] over bounds[p] <= i < bounds[p + 1], for the parts first <= p < last."""
    for p in range(first, last):
        total = sums[p]
        total[:] = 0.0
        for i in range(bounds[p], bounds[p + 1]):
            if r[i] != 0.0:
                row = rows[i]
                for entry in range(nb.uint64(starts[row]), nb.uint64(starts[row + 1])):
                    total[nb.uint64(columns[entry])] += r[i] * data[entry]
