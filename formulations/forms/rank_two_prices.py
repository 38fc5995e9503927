"""Prices (see `assignment_prices`) and bounds where profit[i, j] = c_i s_j - a_i b_j: compiled, without the matrix.

Documents are laid out by position: document i stands at position i, those beyond the last position are idle.
"""

from itertools import pairwise

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled
from formulations.threads import share_ranges

__all__ = ["bound_of_prices", "bounds_of", "prices_of"]

EPSILON = 2.0**-52

PASSES = 4
"""Passes over all pairs of position and document that prices need, about."""

PROVED_ROWS = 1 << 11
"""Rows of the queries that a thread proves at a time."""


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, FLOATS))
def settle_prices(scores: Floats, gain: Floats, discount: Floats, decay: Floats, prices: Floats) -> None:
    """The least prices >= 0 with prices[j] >= prices[i] + profit[i, j] - profit[i, i] for all positions i, documents j.

    Bellman-Ford as in `assignment_prices.settle`; where it does not settle, the order is not optimal and prices are
    prices still. An idle document's price is put back to 0.
    """
    positions, documents = decay.size, scores.size
    largest = np.abs(decay).max() * np.abs(scores).max() + np.abs(discount).max() * np.abs(gain).max()
    noise = 4.0 * EPSILON * largest
    prices[:] = 0.0
    waits = np.ones(documents, np.bool_)
    for count in range(positions + 1):
        looked = False
        for step in range(positions):
            i = step if count % 2 == 1 else positions - 1 - step
            if not waits[i]:
                continue
            looked = True
            waits[i] = False
            c, a = decay[i], discount[i]
            base = prices[i] - (c * scores[i] - a * gain[i])
            for j in range(documents):
                raised = base + (c * scores[j] - a * gain[j])
                higher = raised > prices[j] + noise
                prices[j] = raised if higher else prices[j]
                waits[j] |= higher
        if not looked:
            break
    prices[positions:] = 0.0


@compiled(nb.float64(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS))
def bound_by(scores: Floats, gain: Floats, discount: Floats, decay: Floats, prices: Floats) -> float:
    """Σ_j prices[j] + Σ_i max_j (profit[i, j] - prices[j])."""
    total = prices.sum()
    for i in range(decay.size):
        c, a = decay[i], discount[i]
        most = -np.inf
        for j in range(scores.size):
            most = max(most, c * scores[j] - a * gain[j] - prices[j])
        total += most
    return float(total)


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_INTS, nb.int64, nb.int64, FLOATS,
    )
)  # fmt: skip
def prove_range(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    offsets: Ints,
    order: Ints,
    begin: int,
    end: int,
    bound: Floats,
) -> None:
    """bound[q] = what prices prove of query q with documents order[offsets[q] : offsets[q + 1]], begin <= q < end."""
    for q in range(begin, end):
        low, high = offsets[q], offsets[q + 1]
        s, b, prices = np.empty(high - low), np.empty(high - low), np.empty(high - low)
        for i in range(high - low):
            s[i], b[i] = scores[low + order[low + i]], gain[low + order[low + i]]
        last = high
        while last > low + 1 and decay[last - 1] == 0.0 and discount[last - 1] == 0.0:
            last -= 1
        settle_prices(s, b, discount[low:last], decay[low:last], prices)
        bound[q] = bound_by(s, b, discount[low:last], decay[low:last], prices)


def bound_of_prices(scores: Floats, gain: Floats, discount: Floats, decay: Floats, prices: Floats) -> float:
    """Σ_j prices[j] + Σ_i max_j (profit[i, j] - prices[j])."""
    one = (scores, gain, discount, decay, prices)
    return float((bound_by if bound_by.pays(scores.size * decay.size) else _bound_in_numpy)(*one))


def bounds_of(scores: Floats, gain: Floats, discount: Floats, decay: Floats, offsets: Ints, order: Ints) -> Floats:
    """What prices prove of each query q with documents order[offsets[q] : offsets[q + 1]]."""
    bound = np.empty(offsets.size - 1)
    given = (scores, gain, discount, decay, offsets, order)
    lengths = np.diff(offsets)
    if prove_range.pays(PASSES * int(lengths @ lengths)):
        share_ranges(offsets, PROVED_ROWS, lambda begin, end: prove_range(*given, begin, end, bound))
        return bound
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        rows = low + order[low:high]
        weighted = np.flatnonzero((decay[low:high] != 0.0) | (discount[low:high] != 0.0))
        last = low + (int(weighted[-1]) + 1 if weighted.size else 1)
        one = (scores[rows], gain[rows], discount[low:last], decay[low:last])
        bound[q] = _bound_in_numpy(*one, _settled_in_numpy(*one))
    return bound


def _settled_in_numpy(scores: Floats, gain: Floats, discount: Floats, decay: Floats) -> Floats:
    """`settle_prices`, the same bits."""
    positions, prices, waits = decay.size, np.zeros(scores.size), np.ones(scores.size, dtype=bool)
    noise = 4.0 * EPSILON * (abs(decay).max() * abs(scores).max() + abs(discount).max() * abs(gain).max())
    for count in range(positions + 1):
        turns = np.flatnonzero(waits[:positions])
        if not turns.size:
            break
        for i in range(positions) if count % 2 else range(positions - 1, -1, -1):
            if waits[i]:
                waits[i] = False
                profit = decay[i] * scores - discount[i] * gain
                raised = (prices[i] - profit[i]) + profit
                higher = raised > prices + noise
                prices[higher] = raised[higher]
                waits |= higher
    prices[positions:] = 0.0
    return prices


def _bound_in_numpy(scores: Floats, gain: Floats, discount: Floats, decay: Floats, prices: Floats) -> float:
    """`bound_by`, the same bits: what accumulates is added up one after the other."""
    most = (np.outer(decay, scores) - np.outer(discount, gain) - prices).max(axis=1)
    return float(np.add.accumulate(np.append(np.add.accumulate(prices)[-1], most))[-1])


def prices_of(scores: Floats, gain: Floats, discount: Floats, decay: Floats, order: Ints) -> Floats:
    """The prices of `settle_prices`, one a document as they come, for the document at each position."""
    idle = np.ones(scores.size, dtype=bool)
    idle[order] = False
    rows, prices = np.append(order, np.flatnonzero(idle)), np.empty(scores.size)
    one = (scores[rows], gain[rows], discount, decay)
    if settle_prices.pays(PASSES * discount.size * scores.size):
        settled = np.empty(scores.size)
        settle_prices(*one, settled)
    else:
        settled = _settled_in_numpy(*one)
    prices[rows] = settled
    return prices
