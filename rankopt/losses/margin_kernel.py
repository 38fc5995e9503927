"""What a ranking costs, compiled: heights, values and placed decays of all queries in one pass."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled

__all__ = ["judged"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_INTS, READ_FLOATS, READ_FLOATS,
        nb.int64, nb.int64, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def judged(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    offsets: Ints,
    order: Ints,
    best: Floats,
    reference: Floats,
    first: int,
    last: int,
    placed: Floats,
    height: Floats,
    value: Floats,
) -> None:
    """For the queries first <= q < last, order[low + i] the document (counted within its query) at position i:

    placed = c[π], height = best - a[π]ᵀb, value = height + (c[π] - reference)ᵀs.
    """
    for q in range(first, last):
        low, high = offsets[q], offsets[q + 1]
        earned = 0.0
        for i in range(low, high):
            document = low + order[i]
            placed[document] = decay[i]
            earned += discount[i] * gain[document]
        above = 0.0
        for j in range(low, high):
            above += (placed[j] - reference[j]) * scores[j]
        height[q] = best[q] - earned
        value[q] = height[q] + above
