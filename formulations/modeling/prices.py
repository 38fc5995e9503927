"""Document prices that prove an assignment optimal, without the solver that found it.

For the order at hand, moving position i from its own document j to document j' gains profit[i, j'] - profit[i, j].
Prices v with v[j'] >= v[j] + that gain, v >= 0 and v = 0 where nothing is placed make the bound of weak duality equal
the value. The least such prices are longest paths in the residual graph; when the order is optimal no cycle gains, so
k passes settle them. When it is not, whatever stands after k passes is still a vector of prices, hence still a bound.
"""

import numpy as np

from formulations.arrays import Floats, Ints

__all__ = ["shortest_path_prices"]


def shortest_path_prices(profit: Floats, order: Ints) -> Floats:
    """One price a document for `profit` (k × n, -inf where not allowed) and the document at each position.

    Bellman-Ford with whole rows relaxed at once, only from documents whose price has changed.
    """
    positions = profit.shape[0]
    gain = profit - profit[np.arange(positions), order][:, None]
    prices = np.zeros(profit.shape[1])
    # A rise below this is rounding: following it round a tied cycle would never end.
    noise = 4.0 * np.finfo(float).eps * np.abs(profit[np.isfinite(profit)]).max(initial=0.0)
    changed = np.arange(positions)
    for _ in range(positions + 1):
        offered = (prices[order[changed]][:, None] + gain[changed]).max(axis=0)
        rises = offered > prices + noise
        if not rises.any():
            break
        prices[rises] = offered[rises]
        changed = np.flatnonzero(rises[order])
        if not changed.size:
            break
    if profit.shape[1] > positions:
        idle = np.ones(profit.shape[1], dtype=bool)
        idle[order] = False
        prices[idle] = 0.0
    return prices
