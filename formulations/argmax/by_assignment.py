"""The loss-augmented argmax of few and short queries, by SciPy's assignment solver: nothing is compiled."""

from __future__ import annotations

import numpy as np

from formulations.argmax.query import ANY, ASSIGNMENT, FEW, ONE_SORT
from formulations.arrays import Bytes, Floats, Ints

__all__ = ["assign_queries", "candidates_of"]

EPSILON = 2.0**-52


def assign_queries(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    offsets: Ints,
    queries: Ints,
    order: Ints,
    value: Floats,
    bound: Floats,
    way: Bytes,
) -> None:
    """Fill order, value, bound and way of these queries."""
    for q in queries.tolist():
        rows = slice(int(offsets[q]), int(offsets[q + 1]))
        s, b, a, c = scores[rows], gain[rows], discount[rows], decay[rows]
        placed, way[q], left = _assigned(s, b, a, c)
        order[rows] = placed
        up, down = c * s[placed], a * b[placed]
        value[q] = (up - down).sum()
        bound[q] = value[q] + EPSILON * (8.0 + 2.0 * s.size) * (np.abs(up).sum() + np.abs(down).sum()) + left


def _assigned(scores: Floats, gain: Floats, discount: Floats, decay: Floats) -> tuple[Ints, int, float]:
    """The best order, the way, and what rounding may have left open."""
    from scipy.optimize import linear_sum_assignment

    by_gain = np.argsort(gain, kind="stable")
    differ = np.flatnonzero((discount != discount[-1]) | (decay != decay[-1]))  # positions before a tail of equal ones
    if not differ.size or (scores == scores[0]).all():
        return by_gain, ONE_SORT if differ.size else ANY, 0.0
    k = int(differ[-1]) + 1
    a, c = discount[:k] - discount[-1], decay[:k] - decay[-1]
    candidates = candidates_of(scores, gain, k, 0)
    # Documents by positions: scipy solves this way round in less than half the time of the other.
    profit = np.outer(scores[candidates], c) - np.outer(gain[candidates], a)
    placed, position = linear_sum_assignment(profit, maximize=True)
    first, rest = np.empty(k, dtype=np.int64), np.ones(scores.size, dtype=bool)
    first[position] = candidates[placed]
    rest[first] = False
    left = 4.0 * EPSILON * k * (np.abs(scores).max() * c[0] + np.abs(gain).max() * a[0])
    way = FEW if candidates.size < scores.size else ASSIGNMENT
    return np.concatenate([first, by_gain[rest[by_gain]]]), way, float(left)


def candidates_of(scores: Floats, gain: Floats, above: int, below: int) -> Ints:
    """The documents that can be needed: of those with one gain only the `above` best-scored stand at positions that
    weigh more than what is left out does, only the `below` worst-scored at positions that weigh less.

    By gain and score, so that which of several best orders is found does not follow the order of the input."""
    by_score = np.lexsort((-scores, gain))
    sorted_gain = gain[by_score]
    starts = np.flatnonzero(np.append(True, sorted_gain[1:] != sorted_gain[:-1]))
    sizes = np.diff(np.append(starts, gain.size))
    rank = np.arange(gain.size) - np.repeat(starts, sizes)
    needed = (rank < above) | (np.repeat(sizes, sizes) - rank <= below)
    return np.asarray(by_score[needed])
