"""The first τ places of every query along a line, swap by swap: for discounts that are constant behind place τ.

M_q(t) = Σ_{p < τ} (a_p - a_n) b_(p) + a_n Σ_j b_j, where (p) is the document at place p and a_n the discount of the
last place. At t = -∞ the lines of least slope stand first. A line l overtakes a line i above it iff its slope is
larger, at t = (s_i - s_l) / (a_l - a_i), and it is never asked whether that is still ahead: so every pair swaps once,
lines that meet in one point resolve themselves, and nothing is lost to rounding. The time of an event is the larger of
its own and the last. The next event is the first of the τ - 1 swaps of neighbours, of which a swap changes three, and
of the first line below that reaches place τ. Lines below are in no order of their own: of two that reach it at times
which rounding cannot tell apart the flatter one comes first, and the steeper passes it when their own time comes.

Of lines of one slope only the τ best can ever stand there: a column of few values has few lines.

Source: paper 3 (DirectRank), section 2.2, with all events at one time taken together.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled
from rankopt.line.crossing import groups_of, width
from rankopt.line.entering import entering
from rankopt.line.first_order import first_order

__all__ = ["sweep_places"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled(
    nb.int64(
        READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_INTS, nb.int64,
        nb.int64, FLOATS, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def sweep_places(
    scores: Floats,
    slopes: Floats,
    by_score: Ints,
    gain: Floats,
    discount: Floats,
    places: Ints,
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
    written. starts[q]: the value at -∞. places: (m,) τ of each query, behind which its discount is constant.
    """
    room, found = times.size, 0
    most, widest = 1, 1
    for q in range(first, last):
        most, widest = max(most, offsets[q + 1] - offsets[q]), max(widest, places[q])
    key, mean = np.empty(most), np.empty(most)
    order, spare, begins = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    line_s, line_a, line_b = np.empty(most), np.empty(most), np.empty(most)
    ahead = np.empty(widest)
    for q in range(first, last):
        low, n = offsets[q], offsets[q + 1] - offsets[q]
        s, a, b = scores[low : low + n], slopes[low : low + n], gain[low : low + n]
        weight, worth, tau = weights[q], discount[low : low + n], places[q]
        least, best, total = np.inf, -np.inf, 0.0
        for j in range(n):
            least, best, total = min(least, b[j]), max(best, b[j]), total + worth[j]
        if least >= best:  # no order is better than another
            starts[q] = weight * total * best if n else 0.0
            continue
        now = order[:n]
        first_order(s, a, by_score[low : low + n], key[:n], now, spare[:n])
        groups = groups_of(s, a, now, begins)
        start = 0.0
        if groups == n:
            for p in range(n):
                mean[p] = b[now[p]]
                start += mean[p] * worth[p]
        for g in range(groups if groups < n else 0):
            total, share = 0.0, 0.0
            for p in range(begins[g], begins[g + 1]):
                total += b[now[p]]
                share += worth[p]
            total /= begins[g + 1] - begins[g]
            start += total * share
            for p in range(begins[g], begins[g + 1]):
                mean[p] = total
        starts[q] = weight * start
        if tau == 0:
            continue
        lines, of_slope = 0, 0  # lines that can ever stand among the first τ
        for p in range(n):
            j = now[p]
            of_slope = of_slope + 1 if p > 0 and a[j] == a[now[p - 1]] else 1
            if of_slope <= tau:
                line_s[lines], line_a[lines], line_b[lines] = s[j], a[j], mean[p]
                lines += 1
        for p in range(tau - 1):
            ahead[p] = np.inf
            if line_a[p + 1] > line_a[p]:
                ahead[p] = (line_s[p] - line_s[p + 1]) / (line_a[p + 1] - line_a[p])
        at, stale, joining = -np.inf, True, -1
        while True:
            if stale:
                i, stale = tau - 1, False
                joining = entering(line_s, line_a, i, lines)
                ahead[i] = np.inf
                if joining >= 0:
                    ahead[i] = (line_s[i] - line_s[joining]) / (line_a[joining] - line_a[i])
            p, least = 0, ahead[0]
            for other in range(1, tau):
                if ahead[other] < least:
                    p, least = other, ahead[other]
            if least == np.inf:
                break
            at = max(at, least)
            i, r = p, p + 1 if p < tau - 1 else joining
            behind = worth[p + 1] if p < tau - 1 else worth[n - 1]
            step = weight * (worth[p] - behind) * (line_b[r] - line_b[i])
            if at == -np.inf:
                starts[q] += step
            else:
                if found < room:
                    times[found], steps[found] = at, step
                    widths[found] = width(at, line_s[i], line_a[i], line_s[r], line_a[r])
                found += step != 0.0  # else the next one is written over it
            left_s, left_a, left_b = line_s[i], line_a[i], line_b[i]
            line_s[i], line_a[i], line_b[i] = line_s[r], line_a[r], line_b[r]
            if p < tau - 1:
                ahead[p] = np.inf
            else:  # the line that leaves finds its place by slope
                while r > tau and line_a[r - 1] > left_a:
                    line_s[r], line_a[r], line_b[r] = line_s[r - 1], line_a[r - 1], line_b[r - 1]
                    r -= 1
            line_s[r], line_a[r], line_b[r] = left_s, left_a, left_b
            if p > 0:
                rise = line_a[p] - line_a[p - 1]
                t = np.divide(line_s[p - 1] - line_s[p], rise)  # no branch: who is steeper nobody can guess
                ahead[p - 1] = t if rise > 0.0 else np.inf
            if p + 2 < tau:
                rise = line_a[p + 2] - line_a[p + 1]
                t = np.divide(line_s[p + 1] - line_s[p + 2], rise)
                ahead[p + 1] = t if rise > 0.0 else np.inf
            stale = p + 2 >= tau
    return found
