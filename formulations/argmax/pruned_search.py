"""The best order of chains where states are many: first a good one, whose prices leave few states to search."""

import numba as nb
import numpy as np

from formulations.argmax.order_ideals import NO_BEAM, best_labels
from formulations.argmax.pruning import greedy_labels, open_slack, price_between
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_SHORTS, SHORTS, compiled

__all__ = ["pruned_labels"]

TABLE = nb.types.Array(nb.int64, 2, "C")
NUMBERS = nb.types.Array(nb.float64, 2, "C")
PLACES = nb.types.Array(nb.int32, 2, "C")

EPSILON = 2.0**-52

BEAM = 4


@compiled(
    nb.int64(
        FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, READ_SHORTS, READ_SHORTS, nb.int64,
        FLOATS, FLOATS, FLOATS, INTS, TABLE, NUMBERS, PLACES, INTS, FLOATS, SHORTS, BYTES, BYTES,
    )
)  # fmt: skip
def pruned_labels(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    low: Shorts,
    high: Shorts,
    stop: int,
    price: Floats,
    most: Floats,
    nothing: Floats,
    spare: Ints,
    next_key: Ints,
    next_value: Floats,
    next_from: Shorts,
    key: Ints,
    value: Floats,
    origin: Shorts,
    chain: Bytes,
    label: Bytes,
) -> int:
    """As `best_labels`, with room for price and spare (a document), most (a position), and zeros in nothing."""
    placed = np.zeros(worth.size, np.int64)
    greedy_labels(height, worth, start, size, discount, decay, stop, placed, label)
    price_between(height, worth, start, size, discount, decay, stop, label, placed, price)
    found = best_labels(
        height, worth, start, size, discount, decay, low, high, stop, price, nothing, np.inf, BEAM,
        next_key, next_value, next_from, key, value, origin, chain, label,
    )  # fmt: skip
    if found < 0:
        return found
    earned = price_between(height, worth, start, size, discount, decay, stop, label, placed, price)
    slack = open_slack(height, worth, start, size, discount, decay, stop, price, earned, spare, most)
    largest = 0.0
    for g in range(worth.size):
        reach = max(abs(height[start[g]]), abs(height[start[g] + size[g] - 1]))
        largest = max(largest, reach * (decay[0] - decay[stop]) + abs(worth[g]) * (discount[0] - discount[stop]))
    return best_labels(
        height, worth, start, size, discount, decay, low, high, stop, price, most,
        max(slack, 0.0) + 16.0 * EPSILON * stop * largest, NO_BEAM,
        next_key, next_value, next_from, key, value, origin, chain, label,
    )  # fmt: skip
