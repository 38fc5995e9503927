"""Sums over documents of f(how many, and which, stand above), swap by swap: all pairs of a query in order of time.

    uncut discounts   f = b_j a[c]                                                 c documents stand above
    average precision f = [c < k] (R + 1) / (c + 1) / n₊                           R of them relevant
    a cascade         f = [c < k] p_j Π / (c + 1)                                  Π = ∏ (1 - p) over those above

If l overtakes j, both neighbours, the sum moves by a product: Π (p_l - p_j) (1 / (c + 1) - 1 / (c + 2)), say; and by
nothing at all if their gains are equal, relevant documents among them. What adds nothing itself (p = 0, not relevant)
only moves a walker's c, and two of these are no pair. Of each walker is kept what stands above it, as one number: how
many documents, and how many of each gain. Two are neighbours iff these numbers say so. Where rounding has put crossings
of one point in an order that no list could take, they do not, and both are computed anew from their numbers: after the
last crossing of such a point all is as if they had come in order. Identical lines are tied for all t and walk as one.

`rankopt.line.walks` says the same document by document, in memory for one: for queries of too many pairs.

Sources: paper 3 (DirectRank), section 2.2; ties as in `rankopt.line.walks`.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled
from rankopt.line.crossing import first_groups, longest, width
from rankopt.line.pairs_in_time import DIGIT, HALF, LOW, pairs_in_time
from rankopt.line.walks import CASCADE, DISCOUNT, PRECISION, added, mean_passed

__all__ = ["sweep_swaps"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled(nb.float64(nb.int64, nb.int64, nb.int64, READ_FLOATS))
def _heavier(kind: int, state: int, bits: int, powers: Floats) -> float:
    """R or Π of all that stand above."""
    above = state >> bits
    if kind == PRECISION:
        return float(above)
    product, begin = 1.0, 0
    while above > 0:
        product *= powers[begin + (above & ((1 << bits) - 1))]
        above >>= bits
        begin += 1 << bits
    return product


@compiled(
    nb.int64(
        nb.int64, nb.int64, READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS,
        nb.int64, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, FLOATS, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def sweep_swaps(
    kind: int,
    cutoff: int,
    scores: Floats,
    slopes: Floats,
    by_score: Ints,
    gain: Floats,
    weight_above: Floats,
    discount: Floats,
    unit: Ints,
    bits: int,
    powers: Floats,
    weights: Floats,
    offsets: Ints,
    first: int,
    last: int,
    starts: Floats,
    times: Floats,
    steps: Floats,
    widths: Floats,
) -> int:
    """The events of the queries first <= q < last; returns how many there are, of which those that found room are
    written. starts[q]: the value at -∞.

    kind, cutoff, gain, weight_above, discount: as `sweep_walks` has them. unit: (N,) 1 + [the document is of kind k]
    << (k + 1) bits; documents of one gain are of one kind, and `bits` are enough to count those of a query. powers: of
    a cascade, 1, 1 - p, (1 - p)², ... of each kind, 1 << bits of them.
    """
    room, found, most, widest = times.size, 0, longest(offsets, first, last), 0
    for q in range(first, last):
        low, n, walkers = offsets[q], offsets[q + 1] - offsets[q], 0
        for j in range(n):
            walkers += gain[low + j] != 0.0
        widest = max(widest, walkers * (n - walkers) + walkers * (walkers - 1) // 2)
    key, order, spare = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    begins = np.empty(most + 1, np.int64)
    line_s, line_a, own, high = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    size, state, mark = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    passed, begun = np.empty(2 * most), np.zeros(most, np.int64)
    worth, table = np.zeros(most + 1), np.zeros(most + 1)
    words, other, counts = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(2 << DIGIT, np.int64)
    when, counted = np.empty(widest), (1 << bits) - 1
    for q in range(first, last):
        low, n = offsets[q], offsets[q + 1] - offsets[q]
        s, a, b = scores[low : low + n], slopes[low : low + n], gain[low : low + n]
        heavy, weight, value = weight_above[low : low + n], weights[q], 0.0
        for p in range(n):
            worth[p] = discount[low + p] if kind == DISCOUNT or p < cutoff else 0.0
            table[p + 1] = table[p] + discount[low + p]
        worth[n] = 0.0
        groups, walkers = first_groups(s, a, by_score[low : low + n], b, key[:n], order[:n], spare[:n], begins), 0
        for g in range(groups):
            walkers += key[g] != 0.0
        walker, still, above, kept = 0, walkers, 0, 0  # walkers first, then what adds nothing
        for g in range(groups):
            walks = key[g] != 0.0
            x = walker if walks else still
            line_s[x], line_a[x], own[x] = s[order[begins[g]]], a[order[begins[g]]], key[g]
            size[x], state[x], mark[x] = begins[g + 1] - begins[g], above, 0
            for p in range(begins[g], begins[g + 1]):
                mark[x] += unit[low + order[p]]
            above += mark[x]
            if walks:
                walker, begun[x] = walker + 1, kept
                high[x] = _heavier(kind, state[x], bits, powers)
                if kind == CASCADE:
                    mean_passed(heavy, order, begins[g], begins[g + 1], passed[kept:])
                    kept += size[x] + 1
                c = state[x] & counted
                value += added(kind, own[x], size[x], c, high[x], cutoff, table, passed[begun[x] :])
            else:
                still += 1
        pairs = pairs_in_time(line_s[:groups], line_a[:groups], walkers, words, other, counts, when)
        now, step, spread = -np.inf, 0.0, 0.0
        for e in range(pairs + 1):
            t = when[e] if e < pairs else np.inf
            if t != now:
                if now == -np.inf:
                    value += step
                else:
                    if found < room:
                        times[found], steps[found], widths[found] = now, weight * step, spread
                    found += weight * step != 0.0  # else the next one is written over it: who knows, a third of them
                if t == np.inf:
                    break
                now, step, spread = t, 0.0, 0.0
            x, y = words[e] >> HALF & LOW, words[e] & LOW
            spread = max(spread, width(t, line_s[x], line_a[x], line_s[y], line_a[y]))
            c = state[x] & counted
            if y >= walkers and size[x] == 1:  # what adds nothing comes or goes
                by = mark[y] if line_a[y] > line_a[x] else -mark[y]
                state[x] += by
                if kind == DISCOUNT:
                    step += own[x] * (worth[c + by] - worth[c])
                elif kind == PRECISION:
                    step += (high[x] + 1.0) * (worth[c + by] - worth[c])
                else:
                    step += own[x] * high[x] * (worth[c + by] - worth[c])
            elif y < walkers and size[x] == size[y] == 1 and state[y] == state[x] + mark[x]:  # neighbours
                state[y], state[x] = state[x], state[x] + mark[y]
                above_both = high[x]
                if mark[x] == mark[y] and kind != DISCOUNT:
                    high[x], high[y] = high[y], high[x]
                elif kind == CASCADE:
                    high[x], high[y] = above_both * (1.0 - own[y]), above_both
                    step += above_both * (own[y] - own[x]) * (worth[c] - worth[c + 1])
                else:
                    step += (own[y] - own[x]) * (worth[c] - worth[c + 1])
            else:
                own_passed = passed[begun[x] :]
                before = added(kind, own[x], size[x], c, high[x], cutoff, table, own_passed)
                state[x] += mark[y] if line_a[y] > line_a[x] else -mark[y]
                high[x] = _heavier(kind, state[x], bits, powers)
                after = added(kind, own[x], size[x], state[x] & counted, high[x], cutoff, table, own_passed)
                if y < walkers:
                    before += added(
                        kind, own[y], size[y], state[y] & counted, high[y], cutoff, table, passed[begun[y] :]
                    )
                    state[y] -= mark[x]
                    high[y] = _heavier(kind, state[y], bits, powers)
                    after += added(
                        kind, own[y], size[y], state[y] & counted, high[y], cutoff, table, passed[begun[y] :]
                    )
                step += after - before
        starts[q] = weight * value
    return found
