"""The loss-augmented argmax of small batches, by SciPy's assignment solver: nothing is compiled."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from formulations.argmax.query import ANY, ASSIGNMENT, FEW, ONE_SORT
from formulations.arrays import Bytes, Floats, Ints

if TYPE_CHECKING:
    from formulations.forms.rank_two_assignment import RankTwoBatch

__all__ = ["candidates_of", "solved_by_assignment"]

EPSILON = 2.0**-52


def solved_by_assignment(batch: RankTwoBatch) -> tuple[Ints, Floats, Floats, Bytes]:
    """As `argmax_of`: order, value, bound and way of each query."""
    from scipy.optimize import linear_sum_assignment

    order, ways = np.empty(batch.scores.size, dtype=np.int64), np.empty(len(batch), dtype=np.int8)
    left = np.zeros(len(batch))
    for q, (low, high) in enumerate(pairwise(batch.offsets.tolist())):
        s, b, a, c = batch.scores[low:high], batch.gain[low:high], batch.discount[low:high], batch.decay[low:high]
        n, by_gain = high - low, np.argsort(b, kind="stable")
        differ = np.flatnonzero((a != a[-1]) | (c != c[-1]))  # the positions before a tail of equal ones
        if not differ.size or (s == s[0]).all():
            order[low:high], ways[q] = by_gain, ONE_SORT if differ.size else ANY
            continue
        k = int(differ[-1]) + 1
        a, c = a[:k] - a[-1], c[:k] - c[-1]
        candidates = candidates_of(s, b, k, 0)
        # Documents by positions: scipy solves this way round in less than half the time of the other.
        profit = np.outer(s[candidates], c) - np.outer(b[candidates], a)
        placed, position = linear_sum_assignment(profit, maximize=True)
        first = np.empty(k, dtype=np.int64)
        first[position] = candidates[placed]
        rest = np.ones(n, dtype=bool)
        rest[first] = False
        order[low : low + k], order[low + k : high] = first, by_gain[rest[by_gain]]
        ways[q] = FEW if candidates.size < n else ASSIGNMENT
        left[q] = 4.0 * EPSILON * k * (np.abs(s).max() * c[0] + np.abs(b).max() * a[0])
    query = np.repeat(np.arange(len(batch)), np.diff(batch.offsets))
    placed = batch.offsets[query] + order
    up, down = batch.decay * batch.scores[placed], batch.discount * batch.gain[placed]
    value = np.bincount(query, up - down, len(batch))
    size = np.bincount(query, np.abs(up) + np.abs(down), len(batch))
    return order, value, value + EPSILON * (8.0 + 2.0 * np.diff(batch.offsets)) * size + left, ways


def candidates_of(scores: Floats, gain: Floats, above: int, below: int) -> Ints:
    """The documents that can be needed, as they come: of those with one gain only the `above` best-scored stand at
    positions of weight above that of the documents left out, only the `below` worst-scored at positions below it."""
    by_score = np.lexsort((-scores, gain))
    sorted_gain = gain[by_score]
    starts = np.flatnonzero(np.append(True, sorted_gain[1:] != sorted_gain[:-1]))
    sizes = np.diff(np.append(starts, gain.size))
    rank = np.arange(gain.size) - np.repeat(starts, sizes)
    needed = (rank < above) | (np.repeat(sizes, sizes) - rank <= below)
    return np.asarray(np.sort(by_score[needed]))
