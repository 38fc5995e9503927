"""Duals, values and bounds of orders for profit[i, j] = c_i s_j - a_i b_j, without the matrix, rounded outward.

Document i is at position i; documents beyond the last position are unplaced. Kernels compute them, or exact sums for
small batches.

Long lists of few gains need no pass over all pairs. Documents of one gain b are lines c s_j - (v_j + a b) in c, and an
optimal order holds them by falling scores. So the best of them for a position is at the line's place on an upper
envelope, found by halving (c falls with the position); and duals that hold between each position and the neighbors of
each gain, the last before it and the first after it, hold everywhere: between neighbors of one gain they give
c_q (s_x - s_y) <= v_x - v_y <= c_p (s_x - s_y) for x at p, y at q > p, so v - c s falls and then rises along the gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from formulations.arrays import Floats, Ints, Out, frozen
from formulations.compiled import PAIRS, Deferral, compiled, inlined, is_small, longest_query
from formulations.parallel import share_ranges
from formulations.problems.directed_rounding import DROPPED, TINY, above, added, below, multiplied, products
from formulations.problems.problem import EPSILON

PASSES = 4  # typical number of passes over all pairs of position and document

MOST_PASSES = 256  # over the positions of a long list, for duals that need not be the least ones
HALVINGS = 128  # more than there are bits in a number of positions

_sum: Callable[[float, float], tuple[float, float]] = inlined(cast(Any, added))
_product: Callable[[float, float], tuple[float, float]] = inlined(cast(Any, multiplied))
"""The sum or product, and its rounding error."""


@inlined
def _tallest(values: Floats) -> float:
    found = 0.0
    for value in values:
        found = max(found, abs(value))
    return found


@compiled()
def settle_prices(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, prices: Out[Floats]
) -> None:
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


@compiled()
def settle_levels(
    scores: Floats,
    worth: Floats,
    held: Ints,
    first: Ints,
    discount: Floats,
    position_weights: Floats,
    prices: Out[Floats],
) -> None:
    """The duals of `settle_prices`, up to its noise, where all documents are placed and those of a gain by falling
    scores. held[first[h] : first[h + 1]]: the positions of gain worth[h], from the top."""
    positions, levels = scores.size, worth.size
    noise = 4.0 * EPSILON * (_tallest(position_weights) * _tallest(scores) + _tallest(discount) * _tallest(worth))
    waits, level, after = np.ones(positions, np.bool_), np.empty(positions, np.int64), np.empty(levels, np.int64)
    for h in range(levels):
        for at in range(first[h], first[h + 1]):
            level[held[at]] = h
    for j in range(positions):
        prices[j] = 0.0
    for count in range(MOST_PASSES):
        looked, down = False, count % 2 == 1
        for h in range(levels):  # the first document of each gain after position i
            after[h] = first[h] if down else first[h + 1]
        for step in range(positions):
            i = step if down else positions - 1 - step
            own = level[i]
            if down:
                after[own] += 1
            if waits[i]:
                looked, waits[i] = True, False
                c, a = position_weights[i], discount[i]
                base = prices[i] - (c * scores[i] - a * worth[own])
                for h in range(levels):
                    at = after[h]
                    for _side in range(2):
                        if first[h] <= at < first[h + 1]:
                            j = held[at]
                            raised = base + (c * scores[j] - a * worth[h])
                            if raised > prices[j] + noise:
                                prices[j], waits[j] = raised, True
                        at -= 2 if h == own else 1
            if not down:
                after[own] -= 1
        if not looked:
            break


@inlined
def _total_above(prices: Any, best: Any, rest: Any, off: float, size: float) -> float:
    """Σ prices + Σ (best + rest), rounded up. off: the error of the latter; size: a bound on what best consists of."""
    high, low, exact = 0.0, 0.0, True
    for price in prices:
        high, digits = _sum(high, price)
        low += digits
        size += abs(price)
        exact &= digits == 0.0
    for i in range(len(best)):
        high, digits = _sum(high, best[i])
        low += digits + rest[i]
        exact &= digits == 0.0 and rest[i] == 0.0
    if not exact:
        terms = 4.0 * (len(best) + len(prices) + 8.0) * EPSILON
        off += terms * terms * size
    return _above(high, low, 2.0 * off)


@compiled()
def bound_by(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, prices: Floats) -> float:
    """Σ_j prices[j] + Σ_i max_j (profit[i, j] - prices[j]), rounded up.

    Documents near the maximum of a position are evaluated again in pairs of doubles.
    """
    tallest = _tallest(scores), _tallest(gain), _tallest(prices)
    count, positions = scores.size, position_weights.size
    lanes, row, most8 = count - count % 8, np.empty(count), np.empty(8)
    best, rest, off, size, lacks = np.empty(positions), np.empty(positions), 0.0, 0.0, 0.0
    for i in range(positions):
        c, a = position_weights[i], discount[i]
        reach = abs(c) * tallest[0] + abs(a) * tallest[1] + tallest[2]
        size += reach
        if i > 0 and c == position_weights[i - 1] and a == discount[i - 1]:
            best[i], rest[i] = best[i - 1], rest[i - 1]
            off += lacks
            continue
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
        floor = most - 8.0 * EPSILON * reach
        best[i], rest[i], lacks, last = -np.inf, 0.0, 0.0, -1
        for j in range(count):
            if row[j] >= floor:
                same = last >= 0 and prices[j] == prices[last]
                same = same and (c == 0.0 or scores[j] == scores[last]) and (a == 0.0 or gain[j] == gain[last])
                if same:
                    continue  # many documents are equal where training starts at w = 0
                last = j
                here, digits, lack = _profit(c, scores[j], a, gain[j], prices[j])
                lacks = max(lacks, lack)
                if here > best[i] or (here == best[i] and digits > rest[i]):
                    best[i], rest[i] = here, digits
        off += lacks
    return _total_above(prices, best, rest, off, size)


@compiled()
def bound_of_levels(
    scores: Floats, worth: Floats, first: Ints, discount: Floats, position_weights: Floats, prices: Floats
) -> float:
    """`bound_by` for documents first[h] : first[h + 1] of gain worth[h], by falling scores.

    The larger c, the higher the score of the best document: the best of the middle position limits both halves.
    Comparisons in pairs of doubles are off by `lack`, on each of the levels of halving.
    """
    tallest = _tallest(scores), _tallest(worth), _tallest(prices)
    positions = position_weights.size
    best, rest, lacks, size = np.full(positions, -np.inf), np.zeros(positions), 0.0, 0.0
    turns, count = np.empty(positions, np.int64), 0  # positions of other weights than the one before
    for i in range(positions):
        if i == 0 or position_weights[i] != position_weights[i - 1] or discount[i] != discount[i - 1]:
            turns[count] = i
            count += 1
    waiting = np.empty((HALVINGS, 4), np.int64)
    for h in range(worth.size):
        waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, count, first[h], first[h + 1] - 1
        parts = 1
        while parts:
            parts -= 1
            begin, end, top, bottom = waiting[parts, 0], waiting[parts, 1], waiting[parts, 2], waiting[parts, 3]
            middle = (begin + end) // 2
            i = turns[middle]
            c, a = position_weights[i], discount[i]
            most = -np.inf
            for j in range(top, bottom + 1):
                most = max(most, c * scores[j] - a * worth[h] - prices[j])
            floor = most - 8.0 * EPSILON * (abs(c) * tallest[0] + abs(a) * tallest[1] + tallest[2])
            chosen, most, digits = top, -np.inf, 0.0
            for j in range(top, bottom + 1):
                if c * scores[j] - a * worth[h] - prices[j] >= floor:
                    here, low, lack = _profit(c, scores[j], a, worth[h], prices[j])
                    lacks = max(lacks, lack)
                    if here > most or (here == most and low > digits):
                        chosen, most, digits = j, here, low
            if most > best[i] or (most == best[i] and digits > rest[i]):
                best[i], rest[i] = most, digits
            if begin < middle:
                waiting[parts, 0], waiting[parts, 1], waiting[parts, 2], waiting[parts, 3] = begin, middle, top, chosen
                parts += 1
            if middle + 1 < end:
                waiting[parts, 0], waiting[parts, 1] = middle + 1, end
                waiting[parts, 2], waiting[parts, 3] = chosen, bottom
                parts += 1
    at = 0
    for i in range(positions):
        at = i if best[i] > -np.inf else at
        best[i], rest[i] = best[at], rest[at]
        size += abs(position_weights[i]) * tallest[0] + abs(discount[i]) * tallest[1] + tallest[2]
    return _total_above(prices, best, rest, 2.0 * HALVINGS * positions * lacks, size)


class RankedQueries(NamedTuple):
    """Query q owns rows offsets[q] : offsets[q + 1] of all arrays; order: the document at each of its positions."""

    scores: Floats
    gain: Floats
    discount: Floats
    position_weights: Floats
    offsets: Ints
    order: Ints


@compiled()
def judge_range(
    queries: RankedQueries, begin: int, end: int, left: Floats, value: Out[Floats], bound: Out[Floats]
) -> None:
    """value[q]: the value of order[offsets[q] : offsets[q + 1]], rounded down; bound[q]: the value plus the error of
    the search, rounded up; for begin <= q < end.

    The search compares sums of 2 n products, weights less the last one. Such a sum is off by no more than
    (n + 4) ε (Σ_i |c_i - floor| max|s| + Σ_i |a_i - floor| max|b|) for any order, with or without cancellation.
    left[q]: the error reported by the search, including that of its own order.
    """
    scores, gain, discount, position_weights, offsets, order = queries
    longest = longest_query(offsets, begin, end)
    s, b, highs, lows = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    for q in range(begin, end):
        first, last = offsets[q], offsets[q + 1]
        n = last - first
        c, a, assigned = position_weights[first:last], discount[first:last], order[first:last]
        tall, worth = _tallest(scores[first:last]), _tallest(gain[first:last])
        tiny, held = 0, n
        while held > 1 and c[held - 1] == 0.0 and a[held - 1] == 0.0:
            held -= 1
        for i in range(held):
            s[i], b[i] = scores[first + assigned[i]], gain[first + assigned[i]]
            up, up_digits = _product(c[i], s[i])
            down, down_digits = _product(a[i], b[i])
            highs[i], digits = _sum(up, -down)
            lows[i] = digits + (up_digits - down_digits)
            tiny += (abs(up) < TINY) & (c[i] != 0.0) & (s[i] != 0.0)
            tiny += (abs(down) < TINY) & (a[i] != 0.0) & (b[i] != 0.0)
        size, floor_c, floor_a, weight_c, weight_a = 0.0, min(c[n - 1], 0.0), min(a[n - 1], 0.0), 0.0, 0.0
        for i in range(held):
            size += abs(c[i] * s[i]) + abs(a[i] * b[i])
            weight_c += abs(c[i]) - floor_c
            weight_a += abs(a[i]) - floor_a
        weighted = held
        while held > 1:  # the first half takes what the second holds
            half = held // 2
            for i in range(half):
                highs[i], digits = _sum(highs[i], highs[held - half + i])
                lows[i] += lows[held - half + i] + digits
            held -= half
        exact = lows[0] == 0.0
        if exact:
            for i in range(weighted):
                exact &= lows[i] == 0.0
        off = tiny * DROPPED
        if not exact:
            share = 4.0 * (n + 8.0) * EPSILON
            off += share * share * size
        share = EPSILON * (8.0 + 2.0 * n)
        noise = share * (weight_c * tall + weight_a * worth) + max(left[q] - share * size, 0.0)
        value[q] = 0.0 - _above(-highs[0], -lows[0], 2.0 * off)
        bound[q] = _above(highs[0], lows[0], 2.0 * off + noise)


@compiled()
def prove_range(queries: RankedQueries, begin: int, end: int, bound: Out[Floats]) -> None:
    """bound[q]: the dual bound of query q with documents order[offsets[q] : offsets[q + 1]], rounded up, for
    begin <= q < end with an infinite one."""
    scores, gain, discount, position_weights, offsets, order = queries
    for q in range(begin, end):
        if bound[q] < np.inf:
            continue
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


def weighted_positions(discount: Floats, position_weights: Floats) -> int:
    """The number of positions, at least one, up to the last whose weights are not zero: the rest need no duals."""
    weighted = np.flatnonzero((discount != 0.0) | (position_weights != 0.0))
    return int(weighted[-1]) + 1 if weighted.size else 1


@dataclass(frozen=True, eq=False)
class GainLevels:
    """The gains of a long list of few; its documents by gain and falling score; where each gain begins in these."""

    worth: Floats
    documents: Ints
    first: Ints

    @classmethod
    def of_long_list(
        cls, scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, alone: bool = False
    ) -> GainLevels | None:
        """None for shorter lists, few positions and many gains. alone: of one list outside training, whose last bits
        may depend on the code that lies on disk."""
        positions = weighted_positions(discount, position_weights)
        pairs = PAIRS_ON_DISK if alone and settle_levels.is_ready and bound_of_levels.is_ready else PAIRS
        if scores.size * positions <= pairs or positions < LONG:
            return None
        worth, level = np.unique(gain, return_inverse=True)
        if worth.size * LONG > scores.size:
            return None
        documents = np.lexsort((-scores, level))
        return cls(worth, documents, np.searchsorted(level[documents], np.arange(worth.size + 1)))

    def prices(self, scores: Floats, discount: Floats, position_weights: Floats, order: Ints) -> Floats:
        """Duals for the document at each position, and 0 for the others."""
        position = np.full(scores.size, -1)
        position[order] = np.arange(order.size)
        ranked = position[self.documents] >= 0
        documents = self.documents[ranked]
        first = np.append(0, np.cumsum(ranked))[self.first]
        held = position[documents]  # the positions of each gain, from the top; its documents by falling score
        for begin, end in pairwise(first.tolist()):
            held[begin:end].sort()
        rows, settled, prices = np.empty(order.size, np.int64), np.empty(order.size), np.zeros(scores.size)
        rows[held] = documents
        settle_levels(scores[rows], self.worth, held, first, discount, position_weights, settled)
        prices[rows] = settled
        return prices


def prices_of(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    position_weights: Floats,
    order: Ints,
    levels: GainLevels | None = None,
) -> Floats:
    """Duals, one per document in input order, for the document at each position: those of `settle_prices`, or for a
    long list of few gains of `settle_levels`; 0 at positions without weight."""
    last, prices = weighted_positions(discount, position_weights), np.zeros(scores.size)
    order, discount, position_weights = order[:last], discount[:last], position_weights[:last]
    if levels is not None:
        return levels.prices(scores, discount, position_weights, order)
    idle = np.ones(scores.size, dtype=bool)
    idle[order] = False
    rows = np.append(order, np.flatnonzero(idle))
    one = (scores[rows], gain[rows], discount, position_weights)
    if settle_prices.is_ready or settle_prices.pays(PASSES * last * (5000 + 3 * scores.size)):
        settled = np.empty(scores.size)
        settle_prices(*one, settled)
    else:
        settled = settle_in_numpy(*one)
    prices[rows] = settled
    return prices


JUDGED_ROWS, PROVED_ROWS = 1 << 14, 1 << 11  # rows of the queries that a thread judges, and proves, at a time

LONG = 32  # documents a gain, and positions, from which a list of more than `PAIRS` pairs is long
PAIRS_ON_DISK = 1 << 16  # the same, where that costs less and compiles nothing


def bound_of_prices(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    position_weights: Floats,
    prices: Floats,
    levels: GainLevels | None = None,
) -> float:
    """Σ_j prices[j] + Σ_i max_j (profit[i, j] - prices[j]), rounded up. levels: of a long list of few gains."""
    positions = discount.size
    if levels is not None:
        rows = levels.documents
        return float(
            bound_of_levels(scores[rows], levels.worth, levels.first, discount, position_weights, prices[rows])
        )
    one = (scores, gain, discount, position_weights, prices)
    pays = scores.size * positions > PAIRS or bound_by.is_ready
    pays = pays or bound_by.pays(20.0 * scores.size * positions + 2000.0 * scores.size)
    return float(bound_by(*one) if pays else bound_in_numpy(*one))


def bound_in_numpy(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, prices: Floats) -> float:
    """The bound of `bound_by`, bit-identical."""
    new = np.append(True, (np.diff(position_weights) != 0.0) | (np.diff(discount) != 0.0))
    c, a = position_weights[new], discount[new]
    profit = np.outer(c, scores) - np.outer(a, gain) - prices
    reach = np.abs(c) * np.abs(scores).max() + np.abs(a) * np.abs(gain).max() + np.abs(prices).max()
    # In doubles each of these may be the maximum of its position; pairs of doubles decide.
    at, document = np.nonzero(profit >= (profit.max(axis=1) - 8.0 * EPSILON * reach)[:, None])
    high, low, off = _profits(c[at], scores[document], a[at], gain[document], prices[document])
    starts = np.searchsorted(at, np.arange(c.size))
    best = np.maximum.reduceat(high, starts)
    rest = np.maximum.reduceat(np.where(high == best[at], low, -np.inf), starts)
    lacks, own = np.maximum.reduceat(off, starts), np.cumsum(new) - 1
    error, size = float(np.cumsum(lacks[own])[-1]), float(np.cumsum(reach[own])[-1])  # in order, as in the kernel
    return float(_total_above(prices.tolist(), best[own].tolist(), rest[own].tolist(), error, size))


def _profits(c: Floats, s: Floats, a: Floats, b: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
    """`_profit`, elementwise."""
    with np.errstate(all="ignore"):
        (up, up_digits), (down, down_digits) = multiplied(c, s), multiplied(a, b)
    part, digits = added(up, -down)
    high, more = added(part, -v)
    low = (digits + more) + (up_digits - down_digits)
    rounded = (digits != 0.0) | (more != 0.0) | (up_digits != 0.0) | (down_digits != 0.0)
    tiny = ((np.abs(up) < TINY) & (c != 0.0) & (s != 0.0)) | ((np.abs(down) < TINY) & (a != 0.0) & (b != 0.0))
    off = np.where(rounded, EPSILON * EPSILON * (np.abs(up) + np.abs(down) + np.abs(v)), 0.0)
    high, low = added(high, low)
    return high, low, off + np.where(tiny, DROPPED, 0.0)


def bounds_of_orders(queries: RankedQueries) -> Floats:
    """The dual bound of each query q with documents order[offsets[q] : offsets[q + 1]], rounded up."""
    queries = RankedQueries._make(map(frozen, queries))
    scores, gain, discount, position_weights, offsets, order = queries
    bound = np.full(offsets.size - 1, np.inf)
    compiles = not is_small(offsets) or prove_range.is_ready
    chosen = np.flatnonzero(np.diff(offsets) ** 2 > PAIRS) if compiles else np.arange(bound.size)
    for q in chosen.tolist():
        low, high = offsets[q : q + 2].tolist()
        last = low + weighted_positions(discount[low:high], position_weights[low:high])
        one = (scores[low:high], gain[low:high], discount[low:last], position_weights[low:last])
        if compiles:
            levels = GainLevels.of_long_list(*one)
            if levels is not None:
                prices = prices_of(*one, order[low:last], levels)
                bound[q] = bound_of_prices(*one, prices, levels)
            continue
        rows = low + order[low:high]
        one = (scores[rows], gain[rows], *one[2:])
        bound[q] = bound_in_numpy(*one, settle_in_numpy(*one))
    if compiles:
        share_ranges(offsets, PROVED_ROWS, lambda begin, end: prove_range(queries, begin, end, bound))
    return bound


JUDGING = Deferral(1.0)  # seconds that compiling `judge_range` takes, about


def judged(queries: RankedQueries, left: Floats, compiled: bool | None = None) -> tuple[Floats, Floats]:
    """As `judge_range`, for all queries: the value of the orders, rounded down, and an upper bound with the error that
    the search `left`, rounded up. compiled: whether kernels are used; None: as the batch size and `JUDGING` decide."""
    queries, offsets = RankedQueries._make(map(frozen, queries)), queries.offsets
    value, bound = np.empty(offsets.size - 1), np.empty(offsets.size - 1)
    if compiled is None:
        compiled = not is_small(offsets) or JUDGING.ends(judge_range)
    if compiled:
        share_ranges(offsets, JUDGED_ROWS, lambda begin, end: judge_range(queries, begin, end, left, value, bound))
        return value, bound
    with JUDGING.counted():
        for q in range(len(value)):
            value[q], bound[q] = _judged_one(queries, q, float(left[q]))
    return value, bound


def _judged_one(queries: RankedQueries, query: int, left: float) -> tuple[float, float]:
    """Value and bound of one query by exact sums."""
    scores, gain, discount, position_weights, offsets, order = queries
    low, high = offsets[query : query + 2].tolist()
    rows, c, a = low + order[low:high], position_weights[low:high], discount[low:high]
    s, b = scores[rows], gain[rows]
    up, up_digits, lost = products(c, s)
    down, down_digits, lost_too = products(a, b)
    terms, off = (up, up_digits, -down, -down_digits), 2.0 * (lost + lost_too)
    size = float((np.abs(up) + np.abs(down)).sum())
    weight_c = float((np.abs(c) - min(c[-1], 0.0)).sum())
    weight_a = float((np.abs(a) - min(a[-1], 0.0)).sum())
    share = EPSILON * (8.0 + 2.0 * rows.size)
    noise = share * (weight_c * np.abs(s).max() + weight_a * np.abs(b).max()) + max(left - share * size, 0.0)
    return below(*terms, -off), above(*terms, off, noise)
