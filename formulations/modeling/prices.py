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
    """One price a document for `profit` (k × n, -inf where not allowed) and the document at each position."""
    from formulations.modeling.price_kernel import settled

    positions, documents = profit.shape
    prices = np.zeros(documents)
    noise = 4.0 * np.finfo(float).eps * float(np.abs(profit[np.isfinite(profit)]).max(initial=0.0))
    settled(np.ascontiguousarray(profit), np.asarray(order, dtype=np.int64), prices, noise, positions + 1)
    if documents > positions:
        idle = np.ones(documents, dtype=bool)
        idle[order] = False
        prices[idle] = 0.0
    return prices
