"""Value and bounds of orders, rounded outward (see `outward`): by the kernels, or for small batches by exact sums."""

from __future__ import annotations

from itertools import pairwise
from math import fsum

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.forms.outward import above, below, products
from formulations.forms.rank_two_prices import bound_by, judge_range, prove_range, settled_in_numpy
from formulations.small import PAIRS, is_small
from formulations.threads import share_ranges

__all__ = ["bound_of_prices", "bounds_of_orders", "judged"]

EPSILON = 2.0**-52

JUDGED_ROWS, PROVED_ROWS = 1 << 14, 1 << 11
"""Rows of the queries that a thread judges, and proves, at a time."""


def bound_of_prices(scores: Floats, gain: Floats, discount: Floats, decay: Floats, prices: Floats) -> float:
    """Σ_j prices[j] + Σ_i max_j (profit[i, j] - prices[j]), rounded up."""
    way = _bound_of_prices if scores.size * decay.size <= PAIRS else bound_by
    return float(way(scores, gain, discount, decay, prices))


def _bound_of_prices(scores: Floats, gain: Floats, discount: Floats, decay: Floats, prices: Floats) -> float:
    profit = np.outer(decay, scores) - np.outer(discount, gain) - prices
    reach = np.abs(decay) * np.abs(scores).max() + np.abs(discount) * np.abs(gain).max() + np.abs(prices).max()
    # As doubles see it these may be the most of their position; which of them is says an exact sum.
    at, document = np.nonzero(profit >= (profit.max(axis=1) - 8.0 * EPSILON * reach)[:, None])
    up, up_digits, lost = products(decay[at], scores[document])
    down, down_digits, lost_too = products(discount[at], gain[document])
    terms = np.stack([up, up_digits, -down, -down_digits, -prices[document]])
    sums = [fsum(column) for column in terms.T.tolist()]
    best: dict[int, int] = {}
    for column, i in enumerate(at.tolist()):
        known = best.setdefault(i, column)
        if sums[column] > sums[known] or (sums[column] == sums[known] and _exceeds(terms[:, column], terms[:, known])):
            best[i] = column
    return above(prices, terms[:, list(best.values())], 2.0 * (lost + lost_too))


def _exceeds(left: Floats, right: Floats) -> bool:
    """Whether the sum of the left terms is above that of the right ones, though doubles do not show it."""
    return not np.array_equal(left, right) and fsum([*left.tolist(), *(-right).tolist()]) > 0.0


def bounds_of_orders(
    scores: Floats, gain: Floats, discount: Floats, decay: Floats, offsets: Ints, order: Ints
) -> Floats:
    """What prices prove of each query q with documents order[offsets[q] : offsets[q + 1]], rounded up."""
    bound = np.empty(offsets.size - 1)
    given = (scores, gain, discount, decay, offsets, order)
    if not is_small(offsets):
        share_ranges(offsets, PROVED_ROWS, lambda begin, end: prove_range(*given, begin, end, bound))
        return bound
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        rows = low + order[low:high]
        weighted = np.flatnonzero((decay[low:high] != 0.0) | (discount[low:high] != 0.0))
        last = low + (int(weighted[-1]) + 1 if weighted.size else 1)
        one = (scores[rows], gain[rows], discount[low:last], decay[low:last])
        bound[q] = _bound_of_prices(*one, settled_in_numpy(*one))
    return bound


def judged(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    offsets: Ints,
    order: Ints,
    left: Floats,
    compiled: bool | None = None,
) -> tuple[Floats, Floats]:
    """As `judge_range`, for all queries: what the orders earn, rounded down; and what no order exceeds by more than the
    search says that it `left` open, rounded up. compiled: whether by the kernels; None asks `is_small`."""
    value, bound = np.empty(offsets.size - 1), np.empty(offsets.size - 1)
    given = (scores, gain, discount, decay, offsets, order)
    if not is_small(offsets) if compiled is None else compiled:
        share_ranges(offsets, JUDGED_ROWS, lambda begin, end: judge_range(*given, begin, end, left, value, bound))
        return value, bound
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        rows, c, a = low + order[low:high], decay[low:high], discount[low:high]
        s, b = scores[rows], gain[rows]
        up, up_digits, lost = products(c, s)
        down, down_digits, lost_too = products(a, b)
        terms, off = (up, up_digits, -down, -down_digits), 2.0 * (lost + lost_too)
        size = float((np.abs(up) + np.abs(down)).sum())
        weight_c = float((np.abs(c) - min(c[-1], 0.0)).sum())
        weight_a = float((np.abs(a) - min(a[-1], 0.0)).sum())
        share = EPSILON * (8.0 + 2.0 * rows.size)
        noise = share * (weight_c * np.abs(s).max() + weight_a * np.abs(b).max()) + max(left[q] - share * size, 0.0)
        value[q], bound[q] = below(*terms, -off), above(*terms, off, noise)
    return value, bound
