"""Document prices that prove an assignment optimal, without the solver that found it.

For the order at hand, moving position i from its own document j to document j' gains profit[i, j'] - profit[i, j].
Prices v with v[j'] >= v[j] + that gain, v >= 0 and v = 0 where nothing is placed make the bound of weak duality equal
the value. The least such prices are longest paths in the residual graph; when the order is optimal no cycle gains, so
k passes settle them. When it is not, whatever stands after k passes is still a vector of prices, hence still a bound.
"""

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints
from formulations.compiled import compiled

__all__ = ["settle", "settled", "shortest_path_prices"]


PROFIT = nb.types.Array(nb.float64, 2, "C", readonly=True)
ORDER = nb.types.Array(nb.int64, 1, "C", readonly=True)


def settle(profit: Floats, order: Ints, prices: Floats, noise: float, passes: int) -> int:
    """Raise `prices` until prices[j] >= prices[order[i]] + profit[i, j] - profit[i, order[i]] for all i, j.

    Bellman-Ford with prices used as soon as they are raised, down the positions and up again in turn, and a position
    looked at only when the price of its own document has risen: the long chains between neighbouring positions that a
    ranking has settle in one pass. Rises up to `noise` are rounding: to follow them round a tied cycle would never end.
    Returns the passes it took, or `passes` + 1 if so many did not settle them.
    """
    positions, documents = profit.shape
    place = np.full(documents, -1)
    for i in range(positions):
        place[order[i]] = i
    waits = np.ones(positions, np.bool_)
    for count in range(passes):
        quiet = True
        for step in range(positions):
            i = step if count % 2 == 1 else positions - 1 - step
            if not waits[i]:
                continue
            waits[i] = False
            own = order[i]
            base = prices[own] - profit[i, own]
            for j in range(documents):
                if base + profit[i, j] > prices[j] + noise and j != own:
                    prices[j] = base + profit[i, j]
                    quiet = False
                    if place[j] >= 0:
                        waits[place[j]] = True
        if quiet:
            return count
    return passes + 1


settled = compiled(nb.int64(PROFIT, ORDER, nb.float64[::1], nb.float64, nb.int64))(settle)


def shortest_path_prices(profit: Floats, order: Ints) -> Floats:
    """One price a document for `profit` (k × n, -inf where not allowed) and the document at each position."""

    positions, documents = profit.shape
    prices = np.zeros(documents)
    noise = 4.0 * np.finfo(float).eps * float(np.abs(profit[np.isfinite(profit)]).max(initial=0.0))
    settled(np.ascontiguousarray(profit), np.asarray(order, dtype=np.int64), prices, noise, positions + 1)
    if documents > positions:
        idle = np.ones(documents, dtype=bool)
        idle[order] = False
        prices[idle] = 0.0
    return prices
