"""What violated pairs of different grades cost, by one sweep over the documents in the order of their scores."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Shorts
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.stable_sort import sort_falling

__all__ = ["count_costs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled(
    nb.void(
        READ_FLOATS, READ_SHORTS, READ_SHORTS, READ_FLOATS, nb.int64, READ_INTS, nb.int64, nb.int64, FLOATS, FLOATS
    )
)  # fmt: skip
def count_costs(
    scores: Floats,
    level: Shorts,
    listed: Shorts,
    table: Floats,
    grades: int,
    offsets: Ints,
    first: int,
    last: int,
    above: Floats,
    below: Floats,
) -> None:
    """For document j of the queries first <= q < last, above[j] sums the costs of its pairs with documents i of
    level_i > level_j and s_i - s_j < 1, and below[j] those with level_i < level_j and s_j - s_i < 1.

    level: of each document in its query. listed: behind the offset of a query, the grade of each of its levels.
    table: grades × grades costs, the lower grade first. How many documents of each level have come near, and how many
    have fallen behind, is counted while the documents pass by rising score [paper 5, Algorithm 2].
    """
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    rising, spare, key = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest)
    near, left = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for q in range(first, last):
        low, count = offsets[q], offsets[q + 1] - offsets[q]
        levels = 0
        for j in range(count):
            rising[j], key[j] = j, -scores[low + j]
            near[j], left[j] = 0, 0
        for j in range(count):
            left[level[low + j]] += 1
            levels = max(levels, level[low + j] + 1)
        sort_falling(rising[:count], key[:count], spare[:count])
        reached, passed = 0, 0
        for place in range(count):
            j = low + rising[place]
            own, kind = scores[j], level[j]
            while reached < count and scores[low + rising[reached]] - own < 1.0:
                near[level[low + rising[reached]]] += 1
                reached += 1
            while passed < count and own - scores[low + rising[passed]] >= 1.0:
                left[level[low + rising[passed]]] -= 1
                passed += 1
            grade, total = listed[low + kind], 0.0
            for other in range(kind + 1, levels):
                total += table[grade * grades + listed[low + other]] * near[other]
            above[j] = total
            total = 0.0
            for other in range(kind):
                total += table[listed[low + other] * grades + grade] * left[other]
            below[j] = total
