"""The argmax for binary relevance: independent placement, one pass, the full grid, or a triangle and a tail.

Concave case: if all rows of cells are concave, irrelevant documents are inserted independently under the pairwise map.
Irrelevant document j (from 1, by falling score) above relevant ones i, i + 1, ... contributes
f(j, i) = Σ_{i' >= i} [cell(i', j) - cell(i', j - 1)]. Each term falls with j, so f(j, i) - f(j, i') falls with j for
i < i'. The best i for each j is an envelope of the relevant documents, which enter it one by one. Bisection finds where
a new one meets the last: n₊ log n₋ values of f, each O(1) by prefix sums, as share[g] = first + rise · g.

One pass, for losses of the first relevant document. Pairwise map: with b irrelevant documents above the first relevant
one, every other relevant one is below those and below the irrelevant ones of higher score. One more irrelevant document
above the first passes all relevant ones above it, and contributes κ (their number · its score - the sum of theirs).
First-relevant map: r irrelevant documents above the lowest-scored relevant one, all other relevant ones at the end.

Full grid, for any loss, O(n₊ n₋): reached[b] after g relevant documents is the value of the best path to (g, b); the
decisions are stored, one byte per state, and traced backwards.

Triangle and tail, for a discount that ends at position k: relevant document g below b irrelevant ones, g + b < k, gains
its cell. Documents after position k gain nothing and are sorted by score. Under the pairwise map relevant document x of
the tail has max(k - g, β_x) irrelevant ones above it, β_x those of higher score, so each of the k + 1 tails costs O(1)
after one pass. Under the positional map a tail is merged in O(n).
"""

from __future__ import annotations

import numpy as np

from formulations.argmax.order_ideals import sort_chain
from formulations.argmax.relevance_layout import RelevanceLayout
from formulations.arrays import Bytes, Floats, Ints, Out, Shorts
from formulations.compiled import compiled, inlined, longest_query


@inlined
def _apart(
    bad: Floats, after: Floats, discount: Floats, moment: Floats,
    kappa: float, first: float, rise: float, j: int, i: int, other: int,
) -> float:  # fmt: skip
    """f(j, i) - f(j, other) for i < other; after[i]: the sum of the relevant documents' scores from i on."""
    p, o = i + j - 1, other + j - 1
    scored = kappa * ((other - i) * bad[j - 1] - (after[i] - after[other]))
    earned = (first + rise * (1 - j)) * (discount[p] - discount[o]) + rise * (moment[o] - moment[p])
    return float(scored + earned)


@compiled()
def each_range(height: Floats, layout: RelevanceLayout, taken: Bytes, begin: int, end: int, above: Out[Ints]) -> None:
    """above: the number of irrelevant documents above each relevant one, for the queries `taken`. Among ties an
    irrelevant document takes the lower position."""
    share, discount, moment, kappa = layout.share, layout.discount, layout.moment, layout.weight
    offsets, irrelevant = layout.offsets, layout.irrelevant
    longest = longest_query(offsets, begin, end)
    after = np.empty(longest + 1)
    winner, begins = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, b = offsets[q], offsets[q + 1], irrelevant[q]
        g = high - low - b
        bad, good, d, m = height[low : low + b], height[low + b : high], discount[low:high], moment[low:high]
        first, rise = share[low], 0.0
        if g > 1:
            rise = (share[low + g - 1] - first) / (g - 1)
        after[g] = 0.0
        for i in range(g - 1, -1, -1):
            after[i] = after[i + 1] + good[i]
        rest, k = after[: g + 1], kappa[q]
        held = 1
        winner[0], begins[0] = 0, 1
        for i in range(1, g + 1):
            while held and not _apart(bad, rest, d, m, k, first, rise, begins[held - 1], winner[held - 1], i) > 0.0:
                held -= 1
            if not held:
                winner[0], begins[0], held = i, 1, 1
                continue
            last = winner[held - 1]
            if _apart(bad, rest, d, m, k, first, rise, b, last, i) > 0.0:
                continue
            # `last` wins at `sure`, i at `lost`
            sure, lost = begins[held - 1], b
            while lost - sure > 1:
                middle = (sure + lost) // 2
                if _apart(bad, rest, d, m, k, first, rise, middle, last, i) > 0.0:
                    sure = middle
                else:
                    lost = middle
            winner[held], begins[held] = i, lost
            held += 1
        there = above[low + b : high]
        for w in range(held):
            passed = b if w == held - 1 else begins[w + 1] - 1
            until = g if w == held - 1 else winner[w + 1]
            for i in range(winner[w], until):
                there[i] = passed
        for i in range(winner[0]):
            there[i] = 0


@compiled()
def first_good_range(
    height: Floats, layout: RelevanceLayout, taken: Bytes, begin: int, end: int, above: Out[Ints]
) -> None:
    """above: the number of irrelevant documents above each relevant one, for the queries `taken`; pairwise map."""
    share, discount, kappa = layout.share, layout.discount, layout.weight
    offsets, irrelevant = layout.offsets, layout.irrelevant
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, count = offsets[q], offsets[q + 1], irrelevant[q]
        first, bad = low + count, 0
        for good in range(first, high):
            while bad < count and height[low + bad] > height[good]:
                bad += 1
            above[good] = bad
        b = above[first]
        value = -share[low] * discount[low + b]
        most, at = value, b
        passed, scored = first, 0.0
        gained = 0.0
        while b < count:
            while passed < high and above[passed] <= b:
                scored += height[passed]
                passed += 1
            gained += kappa[q] * ((passed - first) * height[low + b] - scored)
            b += 1
            value = gained - share[low] * discount[low + b]
            if value > most:
                most, at = value, b
        for good in range(first, high):
            if above[good] >= at:
                break
            above[good] = at


@compiled()
def first_relevant_range(
    height: Floats, layout: RelevanceLayout, taken: Bytes, begin: int, end: int, above: Out[Ints]
) -> None:
    """The same under the first-relevant map; relevant documents by rising score; ties are ranked higher."""
    share, discount, strength = layout.share, layout.discount, layout.weight
    offsets, irrelevant = layout.offsets, layout.irrelevant
    longest = longest_query(offsets, begin, end)
    run = np.empty(longest, np.int64)  # start of the run of equal discounts of each position
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, count = offsets[q], offsets[q + 1], irrelevant[q]
        first = low + count
        lowest, gained = height[first], 0.0
        most, at = -share[low] * discount[low], 0
        for b in range(1, count + 1):
            gained += strength[q] * (height[low + b - 1] - lowest)
            value = gained - share[low] * discount[low + b]
            if value > most:
                most, at = value, b
        above[first] = at
        run[0] = 0
        for p in range(1, high - low):
            run[p] = run[p - 1] if discount[low + p] == discount[low + p - 1] else p
        for good in range(first + 1, high):
            rank = good - first
            b = 0 if share[low + rank] == 0.0 else max(run[rank + count] - rank, 0)
            above[good] = max(above[good - 1], b)


_PAIRWISE, _POSITIONAL, _FIRST = range(3)


@compiled()
def grid_range(height: Floats, layout: RelevanceLayout, taken: Bytes, begin: int, end: int, above: Out[Ints]) -> None:
    """above: the number of irrelevant documents above each relevant one, for the queries `taken`. A table of shape
    (2, n₋ + 1, n₊ + 1) holds the gains of both."""
    share, discount, table, weight = layout.share, layout.discount, layout.table, layout.weight
    offsets, irrelevant, starts, kind = layout.offsets, layout.irrelevant, layout.starts, layout.kind
    longest, largest = 1, 1
    for q in range(begin, end):
        if taken[q]:
            n = offsets[q + 1] - offsets[q]
            longest, largest = max(longest, n), max(largest, (irrelevant[q] + 1) * (n - irrelevant[q] + 1))
    reached, by_good = np.empty(longest + 1), np.empty(largest, np.bool_)
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, b = offsets[q], offsets[q + 1], irrelevant[q]
        g = high - low - b
        bad, good, d = height[low : low + b], height[low + b : high], discount[low:high]
        cells = table[starts[q] : starts[q + 1]]
        tabled, half = cells.size > 0, (b + 1) * (g + 1)
        strength = 0.0 if kind == _POSITIONAL else weight[q]
        for x in range(g + 1):
            passed, row = 0.0, x * (b + 1)
            for j in range(b + 1):
                value = -np.inf
                if x == 0 and j == 0:
                    value = 0.0
                if j > 0:
                    step = 0.0
                    if kind == _POSITIONAL:
                        step = weight[low + x + j - 1] * bad[j - 1]
                    elif kind == _FIRST and x == 0:
                        step = strength * bad[j - 1]
                    if tabled:
                        step -= cells[(j - 1) * (g + 1) + x]
                    value = reached[j - 1] + step
                    by_good[row + j] = False
                if x > 0:
                    s, step = good[x - 1], 0.0
                    if kind == _POSITIONAL:
                        step = weight[low + x - 1 + j] * s
                    elif kind == _PAIRWISE:
                        step = strength * (passed - j * s)
                    elif x == 1:
                        step = -strength * j * s
                    if tabled:
                        step -= cells[half + j * (g + 1) + x - 1]
                    else:
                        step -= share[low + x - 1] * d[x - 1 + j]
                    other = reached[j] + step
                    if other > value:
                        value = other
                        by_good[row + j] = True
                reached[j] = value
                if j < b:
                    passed += bad[j]
        x, j = g, b
        while x > 0:
            if by_good[x * (b + 1) + j]:
                above[low + b + x - 1] = j
                x -= 1
            else:
                j -= 1


@inlined
def _pairwise_tails(
    bad: Floats,
    good: Floats,
    kappa: float,
    k: int,
    tail: Floats,
    beta: Ints,
    scored: Floats,
    summed: Floats,
    free: Floats,
) -> None:
    """tail[g]: the contribution of relevant documents g, g + 1, ... after k - g irrelevant ones. beta[x]: irrelevant
    ones of higher score than x. scored, summed, free: buffers."""
    b, g = bad.size, good.size
    scored[0] = summed[0] = free[g] = 0.0
    for j in range(b):
        scored[j + 1] = scored[j] + bad[j]
    passed = 0
    for x in range(g):
        summed[x + 1] = summed[x] + good[x]
        while passed < b and bad[passed] > good[x]:
            passed += 1
        beta[x] = passed
    for x in range(g - 1, -1, -1):
        free[x] = free[x + 1] + kappa * (scored[beta[x]] - beta[x] * good[x])
    until = 0
    for x in range(min(k, g), max(k - b, 0) - 1, -1):
        here = k - x  # grows as x falls
        while until < g and beta[until] < here:
            until += 1
        tail[x] = free[max(until, x)]
        if until > x:
            tail[x] += kappa * ((until - x) * scored[here] - here * (summed[until] - summed[x]))


@inlined
def _positional_tails(bad: Floats, good: Floats, position_weights: Floats, k: int, tail: Floats) -> None:
    for first in range(max(k - bad.size, 0), min(k, good.size) + 1):
        x, j, total = first, k - first, 0.0
        for p in range(k, position_weights.size):
            if x < good.size and (j == bad.size or good[x] >= bad[j]):
                total += position_weights[p] * good[x]
                x += 1
            else:
                total += position_weights[p] * bad[j]
                j += 1
        tail[first] = total


@compiled()
def triangle_range(
    height: Floats, layout: RelevanceLayout, taken: Bytes, begin: int, end: int, above: Out[Ints]
) -> None:
    """As `grid_range`, for a discount that ends at stop[q]."""
    share, discount, weight, positional = layout.share, layout.discount, layout.weight, layout.kind == _POSITIONAL
    offsets, irrelevant, stop = layout.offsets, layout.irrelevant, layout.stop
    longest, deepest = 1, 0
    for q in range(begin, end):
        if taken[q]:
            longest, deepest = max(longest, offsets[q + 1] - offsets[q]), max(deepest, stop[q])
    beta, tail = np.empty(longest, np.int64), np.empty(deepest + 1)
    scored, summed, free = np.empty(longest + 1), np.empty(longest + 1), np.empty(longest + 1)
    reached, by_good = np.empty((deepest + 1, deepest + 1)), np.empty((deepest + 1, deepest + 1), np.bool_)
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, b, k = offsets[q], offsets[q + 1], irrelevant[q], stop[q]
        bad, good, d = height[low : low + b], height[low + b : high], discount[low:high]
        g = good.size
        c = weight[low:high] if positional else d
        kappa = 0.0 if positional else weight[q]
        if positional:
            _positional_tails(bad, good, c, k, tail)
        else:
            _pairwise_tails(bad, good, kappa, k, tail, beta, scored, summed, free)
        most, at = -np.inf, 0
        for x in range(min(k, g) + 1):
            passed = 0.0
            for j in range(min(k - x, b) + 1):
                value = -np.inf
                if x == 0 and j == 0:
                    value = 0.0
                if j > 0:
                    value = reached[x, j - 1] + (c[x + j - 1] * bad[j - 1] if positional else 0.0)
                    by_good[x, j] = False
                if x > 0:
                    p = x - 1 + j
                    up = c[p] * good[x - 1] if positional else kappa * (passed - j * good[x - 1])
                    other = reached[x - 1, j] + up - share[low + x - 1] * d[p]
                    if other > value:
                        value = other
                        by_good[x, j] = True
                reached[x, j] = value
                if j < b:
                    passed += bad[j]
                if x + j == k and value + tail[x] >= most:
                    most, at = value + tail[x], x
        there = above[low + b : high]
        x, j = at, k - at
        if positional:
            passed_irrelevant = j
            for y in range(x, g):
                while passed_irrelevant < b and bad[passed_irrelevant] > good[y]:
                    passed_irrelevant += 1
                there[y] = passed_irrelevant
        else:
            for y in range(x, g):
                there[y] = max(j, beta[y])
        while x > 0:
            if by_good[x, j]:
                there[x - 1] = j
                x -= 1
            else:
                j -= 1


@compiled()
def sort_range(
    scores: Floats, layout: RelevanceLayout, begin: int, end: int, height: Out[Floats], document: Out[Shorts]
) -> None:
    """height, document (N,): scores and documents of the queries begin <= q < end, chain by chain by falling score;
    relevant ones under the first-relevant map by rising score."""
    offsets, members, chain_start = layout.offsets, layout.members, layout.chain_start
    longest = longest_query(offsets, begin, end)
    other, spare = np.empty(longest), np.empty(longest, np.int32)
    for q in range(begin, end):
        own = scores[offsets[q] : offsets[q + 1]]
        for g in range(layout.first_chain[q], layout.first_chain[q + 1]):
            low, high = chain_start[g], chain_start[g + 1]
            count = high - low
            sort_chain(own, members[low:high], count, height[low:high], document[low:high], other, spare)
            if layout.kind == _FIRST and layout.chain_grade[g] > 0.0:
                for i in range(count // 2):
                    x, y = low + i, high - 1 - i
                    height[x], height[y] = height[y], height[x]
                    document[x], document[y] = document[y], document[x]


@compiled()
def merge_range(
    height: Floats, document: Shorts, layout: RelevanceLayout, merged: Bytes, above: Ints, begin: int, end: int,
    order: Out[Ints], slope: Out[Floats], earned: Out[Floats], value: Out[Floats],
) -> None:  # fmt: skip
    """order, slope, earned and value of the queries `merged`, with above[row of relevant document g] irrelevant ones
    above it; irrelevant documents come first among the rows of a query."""
    discount, share, weight, kind = layout.discount, layout.share, layout.weight, layout.kind
    offsets, irrelevant, constant = layout.offsets, layout.irrelevant, layout.constant
    for q in range(begin, end):
        if not merged[q]:
            continue
        low, high, count = offsets[q], offsets[q + 1], irrelevant[q]
        bad, relevant = low, high - low - count
        positional, pairs = kind == 1, kind == 0
        weighed = 0.0 if positional else weight[q]
        position, scored, gained = low, 0.0, 0.0
        for g in range(relevant + 1):
            good = low + count + g
            until = low + above[good] if g < relevant else low + count
            r = 0.0
            if pairs:
                r = weighed * (relevant - g)
            elif g == 0 and relevant:
                r = weighed
            while bad < until:
                x = document[bad]
                order[position] = x
                if positional:
                    r = weight[position]
                slope[low + x] = r
                scored += r * height[bad]
                bad += 1
                position += 1
            if g == relevant:
                break
            x = document[good]
            order[position] = x
            if positional:
                r = weight[position]
            elif pairs or g == 0:
                r = -weighed * (bad - low)
            else:
                r = 0.0
            slope[low + x] = r
            scored += r * height[good]
            gained += share[low + g] * discount[position]
            position += 1
        earned[q] = gained - constant[q]
        value[q] = scored - earned[q]
