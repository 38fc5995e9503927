"""Where two lines cross, how well that is known, and the order of lines at t = -∞: what all sweeps share."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from formulations.stable_sort import sort_falling
from rankopt.line.first_order import FEW, dealt, first_order

__all__ = ["ROUNDING", "by_falling_score", "first_groups", "groups_of", "longest", "width"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Of a computed score s + t a, by |s| + |t a|; twice what two roundings can do, for the time itself is rounded."""


@compiled(nb.float64(nb.float64, nb.float64, nb.float64, nb.float64, nb.float64))
def width(t: float, s: float, a: float, other_s: float, other_a: float) -> float:
    """How far from their crossing t two lines may stand in either order once their scores are rounded."""
    spread = abs(s) + abs(other_s) + abs(t) * (abs(a) + abs(other_a))
    return ROUNDING * spread / abs(a - other_a)


@compiled(nb.void(READ_FLOATS, READ_INTS, nb.int64, nb.int64, INTS))
def by_falling_score(scores: Floats, offsets: Ints, first: int, last: int, order: Ints) -> None:
    """order[offsets[q] : offsets[q + 1]] are the documents of query q, counted from its first, by falling score."""
    for q in range(first, last):
        low, high = offsets[q], offsets[q + 1]
        own, given, spare = order[low:high], np.empty(high - low, np.int64), np.empty(high - low, np.int64)
        falls = np.empty(high - low)
        for j in range(high - low):
            own[j], given[j], falls[j] = j, j, -scores[low + j]
        if high - low <= FEW or not dealt(falls, given, own, spare):
            for j in range(high - low):
                own[j], falls[j] = j, scores[low + j]
            sort_falling(own, falls, spare)


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, READ_INTS, INTS))
def groups_of(scores: Floats, slopes: Floats, order: Ints, starts: Ints) -> int:
    """How many groups of identical lines, which never cross and are tied for all t, stand in `order`: group g has the
    places starts[g] : starts[g + 1]. starts has room for one more than there are documents."""
    groups = 0
    for place in range(order.size):
        j = order[place]
        if place == 0 or slopes[j] != slopes[order[place - 1]] or scores[j] != scores[order[place - 1]]:
            starts[groups] = place
            groups += 1
    starts[groups] = order.size
    return groups


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, FLOATS, INTS, INTS, INTS))
def first_groups(
    scores: Floats, slopes: Floats, by_score: Ints, gain: Floats, own: Floats, order: Ints, spare: Ints, starts: Ints
) -> int:
    """A query as it stands at t = -∞: its documents in `order`, how many groups of identical lines they are, with
    `starts` as `groups_of` has them, and own[g] = Σ gain of each. by_score, spare: as `first_order` has them."""
    first_order(scores, slopes, by_score, own, order, spare)
    groups = groups_of(scores, slopes, order, starts)
    for g in range(groups):
        own[g] = 0.0
        for place in range(starts[g], starts[g + 1]):
            own[g] += gain[order[place]]
    return groups


@compiled(nb.int64(READ_INTS, nb.int64, nb.int64))
def longest(offsets: Ints, first: int, last: int) -> int:
    """Documents of the longest of the queries first <= q < last, 1 at least: the room that a sweep of them needs."""
    most = 1
    for q in range(first, last):
        most = max(most, offsets[q + 1] - offsets[q])
    return most
