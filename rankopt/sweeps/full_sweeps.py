"""Sweeps over all pairs: sums over documents of f(which documents precede it), as step functions along a line.

    uncut discounts   f = b_j a[c + 1]                          c documents above
    average precision f = [c < k] (R + 1) / (c + 1) / n₊        R of them relevant
    a cascade         f = [c < k] p_j Π / (c + 1)               Π = ∏ (1 - p) over those above

A query is swept swap by swap if all its pairs fit into memory, else document by document. The choice depends on the
data alone, so that results do not depend on the order of documents.

Swap by swap (`sweep_swaps`): all pairs in order of time. If l overtakes its neighbor j, the sum changes by a product,
such as Π (p_l - p_j) (1 / (c + 1) - 1 / (c + 2)), and not at all if their gains are equal. Documents that contribute
nothing (p = 0, irrelevant) only change c, so two of these are not a pair. The state of a document is one number that
encodes how many documents, and how many of each gain, are above it. Two documents are neighbors iff these numbers are
consistent. Where rounding orders coincident crossings inconsistently, both are recomputed from their numbers, so the
state after the last of these crossings is exact. Identical lines are tied for all t and move as one.

Document by document (`sweep_paths`), in memory for one document: a group of g identical lines adds the mean over the
orders of its documents, in closed form. A document (or group) j is overtaken by l at t = (s_j - s_l) / (a_l - a_j) if
a_l > a_j, and overtakes it at the same t if a_l < a_j. Its crossings are sorted; those of one time are applied
together.

Discounts that decrease by a constant step δ from position to position (`AUC`) are swept pair by pair: if l overtakes i,
M changes by δ (b_l - b_i), for groups of identical lines by δ (|I| Σ b_L - |L| Σ b_I). No order is needed.

Sources: paper 3 (DirectRank), section 2.2; ties as in `rankopt.measures.average_precision` and
`rankopt.measures.user_models`.
"""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats, Ints, Out
from formulations.compiled import compiled, inlined, longest_query
from rankopt.measures.tied_ranking import totals
from rankopt.sweeps.intersections import DIGIT, HALF, LOW, first_groups, pairs_in_time, sort_times, width

DISCOUNT, PRECISION, CASCADE = 0, 1, 2  # what is summed


@compiled(internal=True)
def added(
    kind: int, own: float, size: int, above: int, heavier: float, cutoff: int, table: Floats, passed: Floats
) -> float:
    """f of a group of `size` lines below `above` documents.

    own: the sum of b, of relevant documents, or of p. heavier: R, or exp(U). table: prefix sums of a or of 1 / i.
    passed[i]: for a group of a cascade, the mean probability of passing i of its documents.
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
        others = (own - 1.0) / max(size - 1.0, 1.0)  # relevant documents of the group per position
        share = (heavier + 1.0 - others * (above + 1.0)) * (table[above + reached] - table[above])
        total = own / size * (share + others * reached)
    elif kind == CASCADE and reached > 0:
        for i in range(reached):
            total += (passed[i] - passed[i + 1]) / (above + i + 1.0)
        total *= heavier
    return total


@inlined
def mean_passed(weight: Floats, order: Ints, low: int, high: int, passed: Floats) -> None:
    """passed[i]: the mean over all subsets of i documents of the group of Π (1 - p), for i up to all of them."""
    passed[0] = 1.0
    for m in range(high - low):
        going_on = np.exp(weight[order[low + m]])
        passed[m + 1] = going_on * passed[m]
        for i in range(m, 0, -1):
            passed[i] = ((m + 1 - i) * passed[i] + i * going_on * passed[i - 1]) / (m + 1)


@compiled(internal=True)
def sweep_paths(
    kind: int, cutoff: int, scores: Floats, slopes: Floats, by_score: Ints, gain: Floats, weight_above: Floats,
    discount: Floats, weights: Floats, offsets: Ints, first: int, last: int, starts: Out[Floats], times: Out[Floats],
    steps: Out[Floats], widths: Out[Floats],
) -> int:  # fmt: skip
    """gain: b, 1 if relevant, or p; documents of gain 0 are not followed. weight_above: what a document adds to R or U
    of those below it. discount: a of every position, or 1 / i."""
    capacity, found, most = times.size, 0, longest_query(offsets, first, last)
    key, table, passed = np.empty(most), np.zeros(most + 1), np.empty(most + 1)
    order, spare, begins = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    line_s, line_a, own, above = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    when, turns, crossers = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
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
                    when[met], crossers[met] = t, other
                    met += 1
                sort_times(when[:met], crossers[:met], key, turns, spare, counts)
                above_all = np.exp(heavier) if kind == CASCADE else heavier
                value = weight * added(kind, own[g], size, count, above_all, cutoff, table, passed)
                starts[q] += value
                e = 0
                while e < met:
                    t, widest = when[e], 0.0
                    while e < met and when[e] == t:
                        other = crossers[e]
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
                            if found < capacity:
                                times[found], steps[found], widths[found] = t, after - value, widest
                            found += 1
                    value = after
            higher += above[g]
    return found


@inlined
def _heavier(kind: int, state: int, bits: int, powers: Floats) -> float:
    """R or Π of all documents above."""
    above = state >> bits
    if kind == PRECISION:
        return float(above)
    product, begin = 1.0, 0
    while above > 0:
        product *= powers[begin + (above & ((1 << bits) - 1))]
        above >>= bits
        begin += 1 << bits
    return product


@compiled(internal=True)
def sweep_swaps(
    kind: int, cutoff: int, scores: Floats, slopes: Floats, by_score: Ints, gain: Floats, weight_above: Floats,
    discount: Floats, unit: Ints, bits: int, powers: Floats, weights: Floats, offsets: Ints, first: int, last: int,
    starts: Out[Floats], times: Out[Floats], steps: Out[Floats], widths: Out[Floats],
) -> int:  # fmt: skip
    """kind, cutoff, gain, weight_above, discount: as in `sweep_paths`. unit: (N,) 1 + [the document is of kind k]
    << (k + 1) bits; documents of one gain are of one kind, and `bits` bits count those of a query. powers: of
    a cascade, 1, 1 - p, (1 - p)², ... of each kind, 1 << bits of them.
    """
    capacity, found, most, widest = times.size, 0, longest_query(offsets, first, last), 0
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
        walker, still, above, filled = 0, walkers, 0, 0  # walkers first, then documents that contribute nothing
        for g in range(groups):
            moves = key[g] != 0.0
            x = walker if moves else still
            line_s[x], line_a[x], own[x] = s[order[begins[g]]], a[order[begins[g]]], key[g]
            size[x], state[x], mark[x] = begins[g + 1] - begins[g], above, 0
            for p in range(begins[g], begins[g + 1]):
                mark[x] += unit[low + order[p]]
            above += mark[x]
            if moves:
                walker, begun[x] = walker + 1, filled
                high[x] = _heavier(kind, state[x], bits, powers)
                if kind == CASCADE:
                    mean_passed(heavy, order, begins[g], begins[g + 1], passed[filled:])
                    filled += size[x] + 1
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
                    if found < capacity:
                        times[found], steps[found], widths[found] = now, weight * step, spread
                    found += weight * step != 0.0  # else the next one overwrites it; about a third remain
                if t == np.inf:
                    break
                now, step, spread = t, 0.0, 0.0
            x, y = words[e] >> HALF & LOW, words[e] & LOW
            spread = max(spread, width(t, line_s[x], line_a[x], line_s[y], line_a[y]))
            c = state[x] & counted
            if y >= walkers and size[x] == 1:  # a document that contributes nothing crosses
                by = mark[y] if line_a[y] > line_a[x] else -mark[y]
                state[x] += by
                if kind == DISCOUNT:
                    step += own[x] * (worth[c + by] - worth[c])
                elif kind == PRECISION:
                    step += (high[x] + 1.0) * (worth[c + by] - worth[c])
                else:
                    step += own[x] * high[x] * (worth[c + by] - worth[c])
            elif y < walkers and size[x] == size[y] == 1 and state[y] == state[x] + mark[x]:  # neighbors
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


PAIRS = 1 << 20  # pairs of a query that are held at once, at most
BITS = 63  # one number encodes the count of all documents above, and of each kind


def counting(gain: Floats, kinds: Floats, offsets: Ints) -> tuple[Ints, int, Floats, Ints]:
    """Inputs of `sweep_uncut` for documents counted by kind: unit, bits, powers and swapped.

    gain: (N,), 0 for documents that are not followed. kinds: (N,) p of the documents counted by kind, else 0.
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


@compiled()
def sweep_uncut(
    kind: int, cutoff: int, scores: Floats, slopes: Floats, by_score: Ints, gain: Floats, weight_above: Floats,
    discount: Floats, unit: Ints, bits: int, powers: Floats, swapped: Ints, weights: Floats, offsets: Ints, first: int,
    last: int, starts: Out[Floats], times: Out[Floats], steps: Out[Floats], widths: Out[Floats],
) -> int:  # fmt: skip
    """swapped: (m,) 1 where swaps are listed, 0 where documents are followed one by one; the rest as in
    `sweep_swaps`."""
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
            found += sweep_paths(
                kind, cutoff, scores, slopes, by_score, gain, weight_above, discount, weights, offsets, begin, end,
                starts, times[free:], steps[free:], widths[free:],
            )  # fmt: skip
        begin = end
    return found


@compiled()
def sweep_pairs(
    scores: Floats, slopes: Floats, by_score: Ints, gain: Floats, discount: Floats, weights: Floats, offsets: Ints,
    first: int, last: int, starts: Out[Floats], times: Out[Floats], steps: Out[Floats], widths: Out[Floats],
) -> int:  # fmt: skip
    """gain: b. discount: a of every position."""
    capacity, found, most = times.size, 0, longest_query(offsets, first, last)
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
                    if found < capacity:
                        times[found], steps[found] = t, step
                        widths[found] = width(t, line_s[g], line_a[g], line_s[other], line_a[other])
                    found += 1
    return found
