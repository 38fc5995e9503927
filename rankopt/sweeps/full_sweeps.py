"""Sums over documents of f(how many, and which, stand above), each query by the way that is quicker for it.

Swap by swap (`rankopt.sweeps.full_sweeps`) where its pairs are few enough to be held, else document by document
(`rankopt.sweeps.full_sweeps`). Which of them is asked of the data alone, so that no order of documents changes a bit.

Sums over documents of f(how many, and which, stand above), swap by swap: all pairs of a query in order of time.

    uncut discounts   f = b_j a[c]                                                 c documents stand above
    average precision f = [c < k] (R + 1) / (c + 1) / n₊                           R of them relevant
    a cascade         f = [c < k] p_j Π / (c + 1)                                  Π = ∏ (1 - p) over those above

If l overtakes j, both neighbours, the sum moves by a product: Π (p_l - p_j) (1 / (c + 1) - 1 / (c + 2)), say; and by
nothing at all if their gains are equal, relevant documents among them. What adds nothing itself (p = 0, not relevant)
only moves a walker's c, and two of these are no pair. Of each walker is kept what stands above it, as one number: how
many documents, and how many of each gain. Two are neighbours iff these numbers say so. Where rounding has put crossings
of one point in an order that no list could take, they do not, and both are computed anew from their numbers: after the
last crossing of such a point all is as if they had come in order. Identical lines are tied for all t and walk as one.

`rankopt.sweeps.full_sweeps` says the same document by document, in memory for one: for queries of too many pairs.

Sources: paper 3 (DirectRank), section 2.2; ties as in `rankopt.sweeps.full_sweeps`.

Measures that are sums over documents of f(how many, and which, stand above): every document walks along the line.

    uncut discounts   f = b_j a[c + 1]                                             c documents stand above
    average precision f = [c < k] (R + 1) / (c + 1) / n₊                           R of them relevant
    a cascade         f = [c < k] p_j exp(U) / (c + 1)                             U = Σ log(1 - p) over those above

Identical lines are tied for all t; a group of g of them adds the mean over the orders of its documents, in closed form,
and walks as one. A document (or group) j is overtaken by l at t = (s_j - s_l) / (a_l - a_j) if a_l > a_j and l began
below, and overtakes it at the same t if a_l < a_j. Its crossings are sorted, and those of one time are taken together.

Sources: paper 3 (DirectRank), section 2.2; ties as in `rankopt.measures.average_precision` and
`rankopt.measures.user_models`.

Discounts that fall by one step from place to place (`AUC`), pair by pair: a swap is worth the same wherever it is.

If l overtakes i, l gains a place and i loses one: M moves by δ (b_l - b_i), δ the step of the discount; of groups of
identical lines by δ (|I| Σ b_L - |L| Σ b_I). No order is needed.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from rankopt.measures.segments import totals
from rankopt.sweeps.intersections import DIGIT, HALF, LOW, first_groups, longest, pairs_in_time, sort_times, width

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DISCOUNT, PRECISION, CASCADE = 0, 1, 2
"""What is summed."""


@compiled(
    nb.float64(
        nb.int64, nb.float64, nb.int64, nb.int64, nb.float64, nb.int64, READ_FLOATS, READ_FLOATS
    )
)  # fmt: skip
def added(
    kind: int,
    own: float,
    size: int,
    above: int,
    heavier: float,
    cutoff: int,
    table: Floats,
    passed: Floats,
) -> float:
    """f of a group of `size` lines below `above` documents.

    own: the sum of b, of relevant documents, or of p. heavier: R, or exp(U). table: sums of a or of 1 / i over the
    first places. passed[i]: of a group of a cascade, the mean chance to pass i of its documents.
    """
    total = 0.0
    reached = min(size, cutoff - above)
    if size == 1 and kind == PRECISION:
        if reached > 0:
            total = own * (heavier + 1.0) * (table[above + 1] - table[above])
    elif size == 1 and kind == DISCOUNT:
        total = own * (table[above + 1] - table[above])
    elif kind == DISCOUNT:
        total = own * (table[above + size] - table[above]) / size
    elif kind == PRECISION and reached > 0:
        others = (own - 1.0) / max(size - 1.0, 1.0)  # relevant documents of the group before its next place, a place
        share = (heavier + 1.0 - others * (above + 1.0)) * (table[above + reached] - table[above])
        total = own / size * (share + others * reached)
    elif kind == CASCADE and reached > 0:
        for i in range(reached):
            total += (passed[i] - passed[i + 1]) / (above + i + 1.0)
        total *= heavier
    return total


@compiled(nb.void(READ_FLOATS, INTS, nb.int64, nb.int64, FLOATS))
def mean_passed(weight: Floats, order: Ints, low: int, high: int, passed: Floats) -> None:
    """passed[i]: the mean over all subsets of i documents of the group of Π (1 - p), for i up to all of them."""
    passed[0] = 1.0
    for m in range(high - low):
        going_on = np.exp(weight[order[low + m]])
        passed[m + 1] = going_on * passed[m]
        for i in range(m, 0, -1):
            passed[i] = ((m + 1 - i) * passed[i] + i * going_on * passed[i - 1]) / (m + 1)


@compiled(
    nb.int64(
        nb.int64, nb.int64, READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS,
        READ_INTS, nb.int64, nb.int64, FLOATS, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def sweep_walks(
    kind: int,
    cutoff: int,
    scores: Floats,
    slopes: Floats,
    by_score: Ints,
    gain: Floats,
    weight_above: Floats,
    discount: Floats,
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

    gain: b, 1 where relevant, or p; documents of gain 0 do not walk. weight_above: what a document adds to R or U of
    those below it. discount: a of every place, or 1 / i.
    """
    room, found, most = times.size, 0, longest(offsets, first, last)
    key, table, passed = np.empty(most), np.zeros(most + 1), np.empty(most + 1)
    order, spare, begins = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    line_s, line_a, own, above = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    when, turns, who = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    counts = np.empty(most + 1, np.int64)
    for q in range(first, last):
        low, n = offsets[q], offsets[q + 1] - offsets[q]
        s, a, b = scores[low : low + n], slopes[low : low + n], gain[low : low + n]
        heavy, weight = weight_above[low : low + n], weights[q]
        starts[q] = 0.0
        walkers = 0
        for j in range(n):
            walkers += b[j] != 0.0
        if walkers == 0:
            continue
        for p in range(n):
            table[p + 1] = table[p] + discount[low + p]
        groups = first_groups(s, a, by_score[low : low + n], b, own[:n], order[:n], spare[:n], begins)
        for g in range(groups):
            above[g] = 0.0
            for p in range(begins[g], begins[g + 1]):
                above[g] += heavy[order[p]]
            line_s[g], line_a[g] = s[order[begins[g]]], a[order[begins[g]]]
        higher = 0.0
        for g in range(groups):
            begin, size = begins[g], begins[g + 1] - begins[g]
            if own[g] != 0.0:
                if kind == CASCADE:
                    mean_passed(heavy, order, begin, begin + size, passed)
                count, heavier = begin, higher
                met = 0
                for other in range(groups):
                    rise = line_a[other] - line_a[g]
                    if rise == 0.0:
                        continue
                    t = (line_s[g] - line_s[other]) / rise
                    if t == np.inf:
                        continue
                    when[met], who[met] = t, other
                    met += 1
                sort_times(when[:met], who[:met], key, turns, spare, counts)
                above_all = np.exp(heavier) if kind == CASCADE else heavier
                value = weight * added(kind, own[g], size, count, above_all, cutoff, table, passed)
                starts[q] += value
                e = 0
                while e < met:
                    t, widest = when[e], 0.0
                    while e < met and when[e] == t:
                        other = who[e]
                        if other > g:  # it began below and overtakes
                            count += begins[other + 1] - begins[other]
                            heavier += above[other]
                        else:
                            count -= begins[other + 1] - begins[other]
                            heavier -= above[other]
                        widest = max(widest, width(t, line_s[g], line_a[g], line_s[other], line_a[other]))
                        e += 1
                    above_all = np.exp(heavier) if kind == CASCADE else heavier
                    after = weight * added(kind, own[g], size, count, above_all, cutoff, table, passed)
                    if after != value:
                        if t == -np.inf:
                            starts[q] += after - value
                        else:
                            if found < room:
                                times[found], steps[found], widths[found] = t, after - value, widest
                            found += 1
                    value = after
            higher += above[g]
    return found


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


PAIRS = 1 << 20
"""Pairs of a query that are held at once, at most."""

BITS = 63
"""One number counts all that stand above, and those of each kind."""


def counting(gain: Floats, kinds: Floats, offsets: Ints) -> tuple[Ints, int, Floats, Ints]:
    """What `sweep_uncut` is told of documents that are counted by kind: unit, bits, powers and swapped.

    gain: (N,), 0 of what does not walk. kinds: (N,) chances p of the documents that are told apart, 0 of the others.
    """
    lengths, walkers = np.diff(offsets), totals((gain != 0).astype(np.float64), offsets)
    chances = np.unique(kinds[kinds != 0])
    needed = np.array([int(length).bit_length() for length in lengths], dtype=np.int64)
    swapped = walkers * (lengths - walkers) + walkers * (walkers - 1) / 2 <= PAIRS
    swapped &= (lengths <= LOW) & ((chances.size + 1) * needed <= BITS)
    bits = int(needed[swapped].max(initial=1))
    chances = chances if swapped.any() else chances[:1]
    unit = np.ones(gain.size, np.int64)
    for number, chance in enumerate(chances, 1):
        unit[kinds == chance] += 1 << number * bits
    powers = (1.0 - chances[:, None]) ** np.arange(1 << bits)
    return unit, bits, powers.ravel(), swapped.astype(np.int64)


@compiled(
    nb.int64(
        nb.int64, nb.int64, READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS,
        nb.int64, READ_FLOATS, READ_INTS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, FLOATS, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def sweep_uncut(
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
    swapped: Ints,
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
    written. starts[q]: the value at -∞. swapped: (m,) 1 where swaps are listed, 0 where documents walk; the rest as
    `sweep_swaps` has it."""
    found, begin = 0, first
    while begin < last:
        end = begin + 1
        while end < last and swapped[end] == swapped[begin]:
            end += 1
        free = min(found, times.size)
        if swapped[begin]:
            found += sweep_swaps(
                kind, cutoff, scores, slopes, by_score, gain, weight_above, discount, unit, bits, powers, weights,
                offsets, begin, end, starts, times[free:], steps[free:], widths[free:],
            )  # fmt: skip
        else:
            found += sweep_walks(
                kind, cutoff, scores, slopes, by_score, gain, weight_above, discount, weights, offsets, begin, end,
                starts, times[free:], steps[free:], widths[free:],
            )  # fmt: skip
        begin = end
    return found


@compiled(
    nb.int64(
        READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, nb.int64,
        FLOATS, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def sweep_pairs(
    scores: Floats,
    slopes: Floats,
    by_score: Ints,
    gain: Floats,
    discount: Floats,
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
    written. starts[q]: the value at -∞."""
    room, found, most = times.size, 0, longest(offsets, first, last)
    line_s, line_a, own = np.empty(most), np.empty(most), np.empty(most)
    order, spare, begins = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    for q in range(first, last):
        low, n = offsets[q], offsets[q + 1] - offsets[q]
        s, a, b = scores[low : low + n], slopes[low : low + n], gain[low : low + n]
        starts[q] = 0.0
        groups = first_groups(s, a, by_score[low : low + n], b, own[:n], order[:n], spare[:n], begins)
        for g in range(groups):
            share = 0.0
            for p in range(begins[g], begins[g + 1]):
                share += discount[low + p]
            starts[q] += weights[q] * own[g] * share / (begins[g + 1] - begins[g])
            line_s[g], line_a[g] = s[order[begins[g]]], a[order[begins[g]]]
        fall = weights[q] * (discount[low] - discount[low + 1]) if n > 1 else 0.0
        for g in range(groups):
            size = begins[g + 1] - begins[g]
            for other in range(g + 1, groups):
                rise = line_a[other] - line_a[g]
                step = fall * (size * own[other] - (begins[other + 1] - begins[other]) * own[g])
                if rise == 0.0 or step == 0.0:
                    continue
                t = (line_s[g] - line_s[other]) / rise
                if t == -np.inf:
                    starts[q] += step
                elif t < np.inf:
                    if found < room:
                        times[found], steps[found] = t, step
                        widths[found] = width(t, line_s[g], line_a[g], line_s[other], line_a[other])
                    found += 1
    return found
