"""Measures that are sums over documents of f(how many, and which, stand above): every document walks along the line.

    uncut discounts   f = b_j a[c + 1]                                             c documents stand above
    average precision f = [c < k] (R + 1) / (c + 1) / n₊                           R of them relevant
    a cascade         f = [c < k] p_j exp(U) / (c + 1)                             U = Σ log(1 - p) over those above

Identical lines are tied for all t; a group of g of them adds the mean over the orders of its documents, in closed form,
and walks as one. A document (or group) j is overtaken by l at t = (s_j - s_l) / (a_l - a_j) if a_l > a_j and l began
below, and overtakes it at the same t if a_l < a_j. Its crossings are sorted, and those of one time are taken together.

Sources: paper 3 (DirectRank), section 2.2; ties as in `rankopt.measures.average_precision` and
`rankopt.measures.expected_reciprocal_rank`.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from rankopt.line.crossing import first_groups, longest, width
from rankopt.line.times import sort_times

__all__ = ["CASCADE", "DISCOUNT", "PRECISION", "added", "mean_passed", "sweep_walks"]

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
