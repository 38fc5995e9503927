"""Duals, values and bounds of orders for profit[i, j] = c_i s_j - a_i b_j, without the matrix, rounded outward.

Document i is at position i; documents beyond the last position are unplaced. Kernels compute them, or exact sums for
small batches.
"""

from __future__ import annotations

from itertools import pairwise
from math import fsum

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, PAIRS, READ_FLOATS, READ_INTS, compiled, inlined, is_small
from formulations.parallel import share_ranges
from formulations.problems.directed_rounding import above, below, products

EPSILON = 2.0**-52

PASSES = 4  # typical number of passes over all pairs of position and document

SPLIT = 2.0**27 + 1.0

TINY, DROPPED = 2.0**-900, 2.0**-1040
"""Below TINY a product drops digits that no double holds; DROPPED is more than they are worth."""


@inlined
def _tallest(values: Floats) -> float:
    found = 0.0
    for value in values:
        found = max(found, abs(value))
    return found


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, FLOATS))
def settle_prices(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, prices: Floats) -> None:
    """The least duals >= 0 with prices[j] >= prices[i] + profit[i, j] - profit[i, i] for all positions i, documents j.

    Bellman-Ford as in `assignment.settle`. Without convergence the order is not optimal, and the result is still dual
    feasible. The dual of an unplaced document is reset to 0.
    """
    positions, documents = position_weights.size, scores.size
    noise = 4.0 * EPSILON * (_tallest(position_weights) * _tallest(scores) + _tallest(discount) * _tallest(gain))
    waits = np.empty(documents, np.bool_)
    for j in range(documents):
        prices[j], waits[j] = 0.0, True
    for count in range(positions + 1):
        looked = False
        for step in range(positions):
            i = step if count % 2 == 1 else positions - 1 - step
            if not waits[i]:
                continue
            looked = True
            waits[i] = False
            c, a = position_weights[i], discount[i]
            base = prices[i] - (c * scores[i] - a * gain[i])
            for j in range(documents):
                raised = base + (c * scores[j] - a * gain[j])
                higher = raised > prices[j] + noise
                prices[j] = raised if higher else prices[j]
                waits[j] |= higher
        if not looked:
            break
    for j in range(positions, documents):
        prices[j] = 0.0


@inlined
def _sum(left: float, right: float) -> tuple[float, float]:
    """The sum and its rounding error."""
    total = left + right
    moved = total - left
    return total, (left - (total - moved)) + (right - moved)


@inlined
def _product(left: float, right: float) -> tuple[float, float]:
    """The product and its rounding error."""
    product = left * right
    moved = SPLIT * left
    a = moved - (moved - left)
    b = left - a
    moved = SPLIT * right
    c = moved - (moved - right)
    d = right - c
    return product, b * d - (((product - a * c) - b * c) - a * d)


@inlined
def _profit(c: float, s: float, a: float, b: float, v: float) -> tuple[float, float, float]:
    """c s - a b - v as a pair of doubles, and a bound on its error."""
    up, up_digits = _product(c, s)
    down, down_digits = _product(a, b)
    part, digits = _sum(up, -down)
    high, more = _sum(part, -v)
    low = (digits + more) + (up_digits - down_digits)
    off = 0.0
    if digits != 0.0 or more != 0.0 or up_digits != 0.0 or down_digits != 0.0:
        off = EPSILON * EPSILON * (abs(up) + abs(down) + abs(v))
    if (abs(up) < TINY and c != 0.0 and s != 0.0) or (abs(down) < TINY and a != 0.0 and b != 0.0):
        off += DROPPED
    high, low = _sum(high, low)
    return high, low, off


@inlined
def _above(high: float, low: float, off: float) -> float:
    """A double that is not below high + low + off."""
    if off > 0.0:
        low = np.nextafter(low + off, np.inf)
    near, digits = _sum(high, low)
    return float(np.nextafter(near, np.inf) if digits > 0.0 else near)


@compiled(nb.float64(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS))
def bound_by(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, prices: Floats) -> float:
    """Σ_j prices[j] + Σ_i max_j (profit[i, j] - prices[j]), rounded up.

    Documents near the maximum of a position are evaluated again in pairs of doubles.
    """
    tallest = _tallest(scores), _tallest(gain), _tallest(prices)
    count = scores.size
    lanes, row, most8 = count - count % 8, np.empty(count), np.empty(8)
    high, low, size, off = 0.0, 0.0, 0.0, 0.0
    exact = True
    for j in range(scores.size):
        high, digits = _sum(high, prices[j])
        low += digits
        size += abs(prices[j])
        exact &= digits == 0.0
    for i in range(position_weights.size):
        c, a = position_weights[i], discount[i]
        for j in range(count):
            row[j] = c * scores[j] - a * gain[j] - prices[j]
        for k in range(8):
            most8[k] = -np.inf
        for j in range(0, lanes, 8):
            for k in range(8):
                most8[k] = row[j + k] if row[j + k] > most8[k] else most8[k]
        most = -np.inf
        for k in range(8):
            most = max(most, most8[k])
        for j in range(lanes, count):
            most = max(most, row[j])
        reach = abs(c) * tallest[0] + abs(a) * tallest[1] + tallest[2]
        floor = most - 8.0 * EPSILON * reach
        best, rest, lacks = -np.inf, 0.0, 0.0
        for j in range(count):
            if row[j] >= floor:
                here, digits, lack = _profit(c, scores[j], a, gain[j], prices[j])
                lacks = max(lacks, lack)
                if here > best or (here == best and digits > rest):
                    best, rest = here, digits
        high, digits = _sum(high, best)
        low += digits + rest
        size += reach
        off += lacks
        exact &= digits == 0.0 and rest == 0.0
    if not exact:
        terms = 4.0 * (position_weights.size + scores.size + 8.0) * EPSILON
        off += terms * terms * size
    return _above(high, low, 2.0 * off)


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_INTS, nb.int64, nb.int64, READ_FLOATS,
        FLOATS, FLOATS,
    )
)  # fmt: skip
def judge_range(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    position_weights: Floats,
    offsets: Ints,
    order: Ints,
    begin: int,
    end: int,
    left: Floats,
    value: Floats,
    bound: Floats,
) -> None:
    """value[q]: the value of order[offsets[q] : offsets[q + 1]], rounded down; bound[q]: the value plus the error of
    the search, rounded up; for begin <= q < end.

    The search compares sums of 2 n products, weights less the last one. Such a sum is off by no more than
    (n + 4) ε (Σ_i |c_i - floor| max|s| + Σ_i |a_i - floor| max|b|) for any order, with or without cancellation.
    left[q]: the error reported by the search, including that of its own order.
    """
    longest = 0
    for q in range(begin, end):
        longest = max(longest, offsets[q + 1] - offsets[q])
    s, b, highs, lows = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    for q in range(begin, end):
        first, last = offsets[q], offsets[q + 1]
        n = last - first
        c, a, assigned = position_weights[first:last], discount[first:last], order[first:last]
        tall, worth = 0.0, 0.0
        for i in range(n):
            s[i], b[i] = scores[first + assigned[i]], gain[first + assigned[i]]
            tall, worth = max(tall, abs(s[i])), max(worth, abs(b[i]))
        tiny = 0
        for i in range(n):
            up, up_digits = _product(c[i], s[i])
            down, down_digits = _product(a[i], b[i])
            highs[i], digits = _sum(up, -down)
            lows[i] = digits + (up_digits - down_digits)
            tiny += (abs(up) < TINY) & (c[i] != 0.0) & (s[i] != 0.0)
            tiny += (abs(down) < TINY) & (a[i] != 0.0) & (b[i] != 0.0)
        size, floor_c, floor_a, weight_c, weight_a = 0.0, min(c[n - 1], 0.0), min(a[n - 1], 0.0), 0.0, 0.0
        for i in range(n):
            size += abs(c[i] * s[i]) + abs(a[i] * b[i])
            weight_c += abs(c[i]) - floor_c
            weight_a += abs(a[i]) - floor_a
        held = n
        while held > 1:  # the first half takes what the second holds
            half = held // 2
            for i in range(half):
                highs[i], digits = _sum(highs[i], highs[held - half + i])
                lows[i] += lows[held - half + i] + digits
            held -= half
        exact = lows[0] == 0.0
        if exact:
            for i in range(n):
                exact &= lows[i] == 0.0
        off = tiny * DROPPED
        if not exact:
            share = 4.0 * (n + 8.0) * EPSILON
            off += share * share * size
        share = EPSILON * (8.0 + 2.0 * n)
        noise = share * (weight_c * tall + weight_a * worth) + max(left[q] - share * size, 0.0)
        value[q] = 0.0 - _above(-highs[0], -lows[0], 2.0 * off)
        bound[q] = _above(highs[0], lows[0], 2.0 * off + noise)


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_INTS, nb.int64, nb.int64, FLOATS,
    )
)  # fmt: skip
def prove_range(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    position_weights: Floats,
    offsets: Ints,
    order: Ints,
    begin: int,
    end: int,
    bound: Floats,
) -> None:
    """bound[q]: the dual bound of query q with documents order[offsets[q] : offsets[q + 1]], rounded up, for
    begin <= q < end."""
    for q in range(begin, end):
        low, high = offsets[q], offsets[q + 1]
        s, b, prices = np.empty(high - low), np.empty(high - low), np.empty(high - low)
        for i in range(high - low):
            s[i], b[i] = scores[low + order[low + i]], gain[low + order[low + i]]
        last = high
        while last > low + 1 and position_weights[last - 1] == 0.0 and discount[last - 1] == 0.0:
            last -= 1
        settle_prices(s, b, discount[low:last], position_weights[low:last], prices)
        bound[q] = bound_by(s, b, discount[low:last], position_weights[low:last], prices)


def settle_in_numpy(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats) -> Floats:
    """The duals of `settle_prices`, bit-identical."""
    positions, prices, waits = position_weights.size, np.zeros(scores.size), np.ones(scores.size, dtype=bool)
    noise = 4.0 * EPSILON * (abs(position_weights).max() * abs(scores).max() + abs(discount).max() * abs(gain).max())
    for count in range(positions + 1):
        if not waits[:positions].any():
            break
        for i in range(positions) if count % 2 else range(positions - 1, -1, -1):
            if waits[i]:
                waits[i] = False
                profit = position_weights[i] * scores - discount[i] * gain
                raised = (prices[i] - profit[i]) + profit
                higher = raised > prices + noise
                prices[higher] = raised[higher]
                waits |= higher
    prices[positions:] = 0.0
    return prices


def prices_of(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, order: Ints) -> Floats:
    """The duals of `settle_prices`, one per document in input order, for the document at each position."""
    idle = np.ones(scores.size, dtype=bool)
    idle[order] = False
    rows, prices = np.append(order, np.flatnonzero(idle)), np.empty(scores.size)
    one = (scores[rows], gain[rows], discount, position_weights)
    if settle_prices.pays(PASSES * discount.size * (5000 + 3 * scores.size)):
        settled = np.empty(scores.size)
        settle_prices(*one, settled)
    else:
        settled = settle_in_numpy(*one)
    prices[rows] = settled
    return prices


JUDGED_ROWS, PROVED_ROWS = 1 << 14, 1 << 11  # rows of the queries that a thread judges, and proves, at a time


def bound_of_prices(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, prices: Floats) -> float:
    """Σ_j prices[j] + Σ_i max_j (profit[i, j] - prices[j]), rounded up."""
    way = _bound_of_prices if scores.size * position_weights.size <= PAIRS else bound_by
    return float(way(scores, gain, discount, position_weights, prices))


def _bound_of_prices(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, prices: Floats) -> float:
    profit = np.outer(position_weights, scores) - np.outer(discount, gain) - prices
    reach = (
        np.abs(position_weights) * np.abs(scores).max() + np.abs(discount) * np.abs(gain).max() + np.abs(prices).max()
    )
    # In doubles each of these may be the maximum of its position; an exact sum decides.
    at, document = np.nonzero(profit >= (profit.max(axis=1) - 8.0 * EPSILON * reach)[:, None])
    up, up_digits, lost = products(position_weights[at], scores[document])
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
    """Whether the exact sum of the left terms is above that of the right ones."""
    return not np.array_equal(left, right) and fsum([*left.tolist(), *(-right).tolist()]) > 0.0


def bounds_of_orders(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, offsets: Ints, order: Ints
) -> Floats:
    """The dual bound of each query q with documents order[offsets[q] : offsets[q + 1]], rounded up."""
    bound = np.empty(offsets.size - 1)
    inputs = (scores, gain, discount, position_weights, offsets, order)
    if not is_small(offsets):
        share_ranges(offsets, PROVED_ROWS, lambda begin, end: prove_range(*inputs, begin, end, bound))
        return bound
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        rows = low + order[low:high]
        weighted = np.flatnonzero((position_weights[low:high] != 0.0) | (discount[low:high] != 0.0))
        last = low + (int(weighted[-1]) + 1 if weighted.size else 1)
        one = (scores[rows], gain[rows], discount[low:last], position_weights[low:last])
        bound[q] = _bound_of_prices(*one, settle_in_numpy(*one))
    return bound


def judged(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    position_weights: Floats,
    offsets: Ints,
    order: Ints,
    left: Floats,
    compiled: bool | None = None,
) -> tuple[Floats, Floats]:
    """As `judge_range`, for all queries: the value of the orders, rounded down, and an upper bound with the error that
    the search `left`, rounded up. compiled: whether kernels are used; None means `is_small` decides."""
    value, bound = np.empty(offsets.size - 1), np.empty(offsets.size - 1)
    inputs = (scores, gain, discount, position_weights, offsets, order)
    if not is_small(offsets) if compiled is None else compiled:
        share_ranges(offsets, JUDGED_ROWS, lambda begin, end: judge_range(*inputs, begin, end, left, value, bound))
        return value, bound
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        rows, c, a = low + order[low:high], position_weights[low:high], discount[low:high]
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
