"""A good order of documents of any gains, and prices from it: as `price_bounds`, without chains."""

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_FLOATS, compiled

__all__ = ["greedy_order", "order_prices"]


@compiled(nb.float64(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, nb.int64, nb.int64, INTS))
def greedy_order(
    scores: Floats, gain: Floats, discount: Floats, decay: Floats, stop: int, ahead: int, order: Ints
) -> float:
    """Put first at each position p < stop what is best in the direction of the step to a later position; the value.

    ahead: as in `greedy_labels`.
    """
    n = order.size
    for i in range(n):
        order[i] = i
    upto, total = 0, 0.0
    for p in range(stop):
        upto = max(upto, p + 1 if ahead == 0 else p + max((stop - p) // ahead, 1))
        while upto < stop and decay[upto] == decay[p] and discount[upto] == discount[p]:
            upto += 1
        dc, da = decay[p] - decay[upto], discount[p] - discount[upto]
        best, most = p, -np.inf
        for i in range(p, n):
            key = dc * scores[order[i]] - da * gain[order[i]]
            if key > most:
                best, most = i, key
        order[p], order[best] = order[best], order[p]
        total += (decay[p] - decay[stop]) * scores[order[p]] - (discount[p] - discount[stop]) * gain[order[p]]
    return total


@compiled(nb.void(FLOATS, FLOATS, FLOATS, FLOATS, nb.int64, FLOATS))
def order_prices(s: Floats, b: Floats, a: Floats, c: Floats, stop: int, price: Floats) -> None:
    """Prices of documents that stand in order: midway between neighbours, then raised until nobody wants one before.

    Weights are above those of position `stop`, from which on documents are left out, at price 0.
    """
    best_out = -np.inf
    for j in range(stop, s.size):
        price[j] = 0.0
        best_out = max(best_out, c[stop - 1] * s[j] - a[stop - 1] * b[j])
    level = 0.0
    for p in range(stop - 1, -1, -1):
        if p == stop - 1:
            level = (c[p] * s[p] - a[p] * b[p] - best_out) / 2.0 if stop < s.size else 0.0
        else:
            level += ((c[p] + c[p + 1]) * (s[p] - s[p + 1]) - (a[p] + a[p + 1]) * (b[p] - b[p + 1])) / 2.0
        level = max(level, 0.0)
        price[p] = level
    for p in range(stop - 1, 0, -1):
        base = price[p] - (c[p] * s[p] - a[p] * b[p])
        for j in range(p):
            price[j] = max(price[j], base + (c[p] * s[j] - a[p] * b[j]))
