"""The best order of documents of any gains, as an assignment: shortest paths of exchanges from a good order.

As `augmenting_paths`, but each position looks at all documents, in loops without branches: best for short lists and for
many gains. Documents are kept in the order that they had at first, so that what a position looks at lies side by side.
"""

import numba as nb
import numpy as np

from formulations.argmax.greedy_order import greedy_order, order_prices
from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_FLOATS, compiled

__all__ = ["assign"]

FREE = -1

EPSILON = 2.0**-52


@compiled(nb.int64(FLOATS, INTS))
def _nearest(distance: Floats, stands: Ints) -> int:
    """The document at the least distance, a free one if there is such."""
    n = distance.size
    least = np.empty(8)
    for k in range(8):
        least[k] = np.inf
    for i in range(0, n - n % 8, 8):
        for k in range(8):
            least[k] = distance[i + k] if distance[i + k] < least[k] else least[k]
    bound = np.inf
    for k in range(8):
        bound = min(bound, least[k])
    for j in range(n - n % 8, n):
        bound = min(bound, distance[j])
    nearest = -1
    for j in range(n):
        if distance[j] == bound:
            nearest = j
            if stands[j] == FREE:
                break
    return nearest


@compiled(nb.float64(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, nb.int64, nb.boolean, INTS))
def assign(scores: Floats, gain: Floats, discount: Floats, decay: Floats, stop: int, anew: bool, order: Ints) -> float:
    """Fill `order` with an optimal order, positions from `stop` on being all one; what rounding may have left open.

    anew: no document keeps its place and all prices begin at 0, which is faster where most exchanges are ties.
    """
    n = order.size
    other = np.empty(n, np.int64)
    if greedy_order(scores, gain, discount, decay, stop, 2, other) < greedy_order(
        scores, gain, discount, decay, stop, 0, order
    ):
        for i in range(n):
            other[i] = order[i]
    s, b, a, c, price = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    highest, dearest = 0.0, 0.0
    for i in range(n):
        s[i], b[i] = scores[other[i]], gain[other[i]]
        a[i], c[i] = discount[i] - discount[stop], decay[i] - decay[stop]
        highest, dearest = max(highest, abs(s[i])), max(dearest, abs(b[i]))
    order_prices(s, b, a, c, stop, price)
    noise = 4.0 * EPSILON * (highest * c[0] + dearest * a[0])
    stands, holds, level = np.empty(n, np.int64), np.empty(stop, np.int64), np.empty(stop)
    for i in range(stop, n):
        stands[i] = stop
    for p in range(stop):
        most = -np.inf
        for j in range(n):
            here = c[p] * s[j] - a[p] * b[j] - price[j]
            most = here if here > most else most
        level[p] = most
        suits = most + price[p] - (c[p] * s[p] - a[p] * b[p]) <= noise
        holds[p], stands[p] = (p, p) if suits else (FREE, FREE)
    if anew:
        for j in range(n):
            price[j], stands[j] = 0.0, FREE
        for p in range(stop):
            holds[p], most = FREE, -np.inf
            for j in range(n):
                here = c[p] * s[j] - a[p] * b[j]
                most = here if here > most else most
            level[p] = most
    idle = 0.0
    distance, by, found, length = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    cost = np.empty(n)  # price, infinite once a document is reached
    for start in range(stop):
        if holds[start] != FREE:
            continue
        for j in range(n):
            distance[j] = np.inf
            cost[j] = idle if stands[j] == stop else price[j]
        row, base, offset, entry, reached = start, 0.0, level[start], -1, 0
        while True:
            u, w = 0.0, 0.0
            if row < stop:
                u, w = c[row], a[row]
            for j in range(n):
                d = offset + (cost[j] - (u * s[j] - w * b[j]))
                nearer = d < distance[j]
                distance[j] = d if nearer else distance[j]
                by[j] = row if nearer else by[j]
            j = _nearest(distance, stands)
            base = max(base, distance[j])
            if stands[j] == FREE:
                break
            row = stands[j]
            if row == stop:  # all that are left out are at this distance
                entry, offset = j, base - idle
                for other_ in range(n):
                    if stands[other_] == stop:
                        cost[other_], distance[other_] = np.inf, np.inf
            else:
                offset = base - (price[j] - (c[row] * s[j] - a[row] * b[j]))
                cost[j], distance[j] = np.inf, np.inf
            found[reached], length[reached] = j, base
            reached += 1
        for i in range(reached):
            if found[i] == entry:
                idle += base - length[i]
            else:
                price[found[i]] += base - length[i]
        while True:
            row = by[j]
            stands[j] = row
            if row == stop:
                price[entry], moved = idle, entry
            else:
                moved = holds[row]
                holds[row] = j
            if row == start:
                break
            j = moved
    for p in range(stop):
        order[p] = other[holds[p]]
    p = stop
    for j in range(n):
        if stands[j] == stop or stands[j] == FREE:
            order[p] = other[j]
            p += 1
    return float(noise * stop)
