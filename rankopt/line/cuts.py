"""AP@k and ERR@k along a line: the first k places of every query, swap by swap.

A document at place c + 1, R relevant ones and the chance Π to get that far above it, adds

    average precision   [c < k] (R + 1) / (c + 1) / n₊    if it is relevant
    a cascade           [c < k] p Π / (c + 1)

so a swap of neighbours changes what the two of them add and nothing else. The list is that of `rankopt.line.places`,
where it is said why no crossing is lost; only its entries are groups of identical lines, which are tied for all t and
move as one: such a group adds the mean over the orders of its documents, in closed form. Any k entries fill k places.

Source: paper 3 (DirectRank), sections 2.2 and 3.1.2 (ERR and MAP cut at 10); ties as in `rankopt.line.walks`.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled
from rankopt.line.crossing import groups_of, longest, width
from rankopt.line.entering import entering
from rankopt.line.first_order import first_order
from rankopt.line.walks import PRECISION

__all__ = ["sweep_cuts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TABLE = nb.types.Array(nb.float64, 2, "C")


@compiled(nb.float64(nb.int64, nb.int64, nb.float64, nb.int64, nb.int64, nb.float64, FLOATS))
def _added(kind: int, size: int, own: float, cutoff: int, above: int, heavier: float, passed: Floats) -> float:
    """What a group of `size` lines below `above` documents adds. own: relevant documents, or the sum of p. heavier: R
    or Π above it. passed[i]: of a cascade, the mean chance to pass i of its documents."""
    reached = min(size, cutoff - above)
    if own == 0.0 or reached <= 0:
        return 0.0
    if size == 1:
        return (heavier + 1.0 if kind == PRECISION else own * heavier) / (above + 1.0)
    total = 0.0
    if kind == PRECISION:
        others = (own - 1.0) / (size - 1.0)  # relevant documents of the group before its next place, a place
        for i in range(reached):
            total += (heavier + 1.0 + others * i) / (above + i + 1.0)
        return total * own / size
    for i in range(reached):
        total += (passed[i] - passed[i + 1]) / (above + i + 1.0)
    return total * heavier


@compiled(
    nb.int64(
        nb.int64, nb.int64, READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64,
        nb.int64, FLOATS, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def sweep_cuts(
    kind: int,
    cutoff: int,
    scores: Floats,
    slopes: Floats,
    by_score: Ints,
    gain: Floats,
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
    written. starts[q]: the value at -∞. gain: 1 where relevant, or p; 0 of documents that add nothing. cutoff: k.
    """
    room, found, most = times.size, 0, longest(offsets, first, last)
    key, order, spare = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    begins = np.empty(most + 1, np.int64)
    line_s, line_a, own, factor = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    size, group = np.empty(most, np.int64), np.empty(most, np.int64)
    passed = np.zeros((most, cutoff + 1))
    ahead, above, heavier = np.empty(cutoff), np.zeros(cutoff + 1, np.int64), np.empty(cutoff + 1)
    heavier[0] = 0.0 if kind == PRECISION else 1.0
    for q in range(first, last):
        low, n = offsets[q], offsets[q + 1] - offsets[q]
        s, a, b = scores[low : low + n], slopes[low : low + n], gain[low : low + n]
        weight = weights[q]
        starts[q], some = 0.0, False
        for j in range(n):
            some = some or b[j] != 0.0
        if not some:
            continue
        now = order[:n]
        first_order(s, a, by_score[low : low + n], key[:n], now, spare[:n])
        groups = groups_of(s, a, now, begins)
        tau = min(cutoff, groups)
        lines, of_slope = 0, 0  # groups that can ever stand among the first τ
        for g in range(groups):
            j = now[begins[g]]
            of_slope = of_slope + 1 if g > 0 and a[j] == a[now[begins[g - 1]]] else 1
            if of_slope > tau:
                continue
            line_s[lines], line_a[lines] = s[j], a[j]
            size[lines], group[lines] = begins[g + 1] - begins[g], lines
            total, chance = 0.0, 1.0
            for p in range(begins[g], begins[g + 1]):
                total += b[now[p]]
                chance *= 1.0 - b[now[p]]
            own[lines], factor[lines] = total, total if kind == PRECISION else chance
            if size[lines] > 1 and kind != PRECISION and total != 0.0:
                row = passed[lines]
                row[:] = 0.0
                row[0] = 1.0
                for m in range(size[lines]):
                    going_on = 1.0 - b[now[begins[g] + m]]
                    for i in range(min(m + 1, cutoff), 0, -1):
                        row[i] = ((m + 1 - i) * row[i] + i * going_on * row[i - 1]) / (m + 1)
            lines += 1
        for p in range(tau):
            starts[q] += weight * _added(kind, size[p], own[p], cutoff, above[p], heavier[p], passed[group[p]])
            above[p + 1] = above[p] + size[p]
            heavier[p + 1] = heavier[p] + factor[p] if kind == PRECISION else heavier[p] * factor[p]
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
            p = 0
            for other in range(1, tau):
                if ahead[other] < ahead[p]:
                    p = other
            if ahead[p] == np.inf:
                break
            at = max(at, ahead[p])
            i, r = p, p + 1 if p < tau - 1 else joining
            step = 0.0
            if own[i] != 0.0 or own[r] != 0.0:
                c, high = above[p], heavier[p]
                next_i = high + factor[i] if kind == PRECISION else high * factor[i]
                next_r = high + factor[r] if kind == PRECISION else high * factor[r]
                step = weight * (
                    _added(kind, size[r], own[r], cutoff, c, high, passed[group[r]])
                    + _added(kind, size[i], own[i], cutoff, c + size[r], next_r, passed[group[i]])
                    - _added(kind, size[i], own[i], cutoff, c, high, passed[group[i]])
                    - _added(kind, size[r], own[r], cutoff, c + size[i], next_i, passed[group[r]])
                )
            if step != 0.0:
                if at == -np.inf:
                    starts[q] += step
                else:
                    if found < room:
                        times[found], steps[found] = at, step
                        widths[found] = width(at, line_s[i], line_a[i], line_s[r], line_a[r])
                    found += 1
            left_s, left_a, left_own, left_factor = line_s[i], line_a[i], own[i], factor[i]
            left_size, left_group = size[i], group[i]
            line_s[i], line_a[i], own[i], factor[i] = line_s[r], line_a[r], own[r], factor[r]
            size[i], group[i] = size[r], group[r]
            above[p + 1] = above[p] + size[p]
            heavier[p + 1] = heavier[p] + factor[p] if kind == PRECISION else heavier[p] * factor[p]
            if p < tau - 1:
                ahead[p] = np.inf
            else:  # what leaves finds its place by slope
                while r > tau and line_a[r - 1] > left_a:
                    line_s[r], line_a[r], own[r], factor[r] = line_s[r - 1], line_a[r - 1], own[r - 1], factor[r - 1]
                    size[r], group[r] = size[r - 1], group[r - 1]
                    r -= 1
            line_s[r], line_a[r], own[r], factor[r] = left_s, left_a, left_own, left_factor
            size[r], group[r] = left_size, left_group
            if p > 0:
                ahead[p - 1] = np.inf
                if line_a[p] > line_a[p - 1]:
                    ahead[p - 1] = (line_s[p - 1] - line_s[p]) / (line_a[p] - line_a[p - 1])
            if p + 2 < tau:
                ahead[p + 1] = np.inf
                if line_a[p + 2] > line_a[p + 1]:
                    ahead[p + 1] = (line_s[p + 1] - line_s[p + 2]) / (line_a[p + 2] - line_a[p + 1])
            stale = p + 2 >= tau
    return found
