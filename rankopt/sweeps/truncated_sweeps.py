"""Truncated sweeps: measures of the first k positions of every query along a line, swap by swap.

Discounts that are constant behind position τ:

M_q(t) = Σ_{p < τ} (a_p - a_n) b_(p) + a_n Σ_j b_j, where (p) is the document at position p and a_n the discount of the
last position. At t = -∞ lines are sorted by increasing slope. A line l overtakes a line i above it iff its slope is
larger, at t = (s_i - s_l) / (a_l - a_i); whether that is still ahead is not tested. Hence every pair swaps once,
coincident crossings resolve themselves, and no event is lost by rounding. The time of an event is the larger of its own
and the last. The next event is the first of the τ - 1 swaps of neighbors, of which a swap changes three, and of the
first line below that reaches position τ. Lines below are unordered: of two that reach it at times equal up to rounding
the flatter one comes first, and the steeper passes it when their own time comes. Of lines of one slope only the τ best
can get there: a column of few values has few lines.

AP@k and ERR@k: a document at position c + 1, with R relevant ones above it and the probability Π to get there, adds

    average precision   [c < k] (R + 1) / (c + 1) / n₊    if it is relevant
    a cascade           [c < k] p Π / (c + 1)

so a swap of neighbors changes the terms of these two only. The entries of the list are groups of identical lines,
which are tied for all t: a group adds the mean over the orders of its documents, in closed form. Any k entries fill k
positions.

Reciprocal rank: RR_q(t) = f(c), c the irrelevant documents above the first relevant line; f(c) = [c < k] / (c + 1), or
for a group of g identical lines, r of them relevant, the mean over its orders. The upper envelope of the relevant lines
is a chain of increasing slope. Each segment is followed; crossings with it change c by one. c is recounted pair by pair
at the start of each segment, so it does not drift.

Source: paper 3 (DirectRank), sections 2.2 and 3.1.2 (ERR and MAP cut at 10), with all events at one time applied
together; ties as in `rankopt.sweeps.full_sweeps` and `rankopt.measures.first_relevant`.
"""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats, Ints, Out
from formulations.compiled import compiled, inlined, longest_query
from formulations.sorting import sort_falling
from rankopt.sweeps.full_sweeps import PRECISION
from rankopt.sweeps.intersections import ROUNDING, entering, first_order, width


@compiled()
def sweep_positions(
    scores: Floats, slopes: Floats, by_score: Ints, gain: Floats, discount: Floats, cutoffs: Ints, weights: Floats,
    offsets: Ints, first: int, last: int, starts: Out[Floats], times: Out[Floats], steps: Out[Floats],
    widths: Out[Floats],
) -> int:  # fmt: skip
    """cutoffs: (m,) τ of each query, after which its discount is constant."""
    capacity, found = times.size, 0
    most, widest = 1, 1
    for q in range(first, last):
        most, widest = max(most, offsets[q + 1] - offsets[q]), max(widest, cutoffs[q])
    key, mean = np.empty(most), np.empty(most)
    order, spare, begins = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    line_s, line_a, line_b = np.empty(most), np.empty(most), np.empty(most)
    ahead = np.empty(widest)
    for q in range(first, last):
        low, n = offsets[q], offsets[q + 1] - offsets[q]
        s, a, b = scores[low : low + n], slopes[low : low + n], gain[low : low + n]
        weight, worth, tau = weights[q], discount[low : low + n], cutoffs[q]
        least, best, total = np.inf, -np.inf, 0.0
        for j in range(n):
            least, best, total = min(least, b[j]), max(best, b[j]), total + worth[j]
        if least >= best:  # no order is better than another
            starts[q] = weight * total * best if n else 0.0
            continue
        now = order[:n]
        groups = first_order(s, a, by_score[low : low + n], key[:n], now, spare[:n], begins)
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
        lines, of_slope = 0, 0  # lines that can ever be among the first τ
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
                if found < capacity:
                    times[found], steps[found] = at, step
                    widths[found] = width(at, line_s[i], line_a[i], line_s[r], line_a[r])
                found += step != 0.0  # else the next one is written over it
            left_s, left_a, left_b = line_s[i], line_a[i], line_b[i]
            line_s[i], line_a[i], line_b[i] = line_s[r], line_a[r], line_b[r]
            if p < tau - 1:
                ahead[p] = np.inf
            else:  # insert the leaving line by slope
                while r > tau and line_a[r - 1] > left_a:
                    line_s[r], line_a[r], line_b[r] = line_s[r - 1], line_a[r - 1], line_b[r - 1]
                    r -= 1
            line_s[r], line_a[r], line_b[r] = left_s, left_a, left_b
            if p > 0:
                rise = line_a[p] - line_a[p - 1]
                t = np.divide(line_s[p - 1] - line_s[p], rise)  # branch-free: the outcome is unpredictable
                ahead[p - 1] = t if rise > 0.0 else np.inf
            if p + 2 < tau:
                rise = line_a[p + 2] - line_a[p + 1]
                t = np.divide(line_s[p + 1] - line_s[p + 2], rise)
                ahead[p + 1] = t if rise > 0.0 else np.inf
            stale = p + 2 >= tau
    return found


@compiled(internal=True)
def _group_value(
    kind: int, size: int, own: float, cutoff: int, above: int, heavier: float, passed: Out[Floats]
) -> float:
    """What a group of `size` lines below `above` documents adds. own: relevant documents, or the sum of p. heavier: R
    or Π above it. passed[i]: of a cascade, the mean chance to pass i of its documents."""
    reached = min(size, cutoff - above)
    if own == 0.0 or reached <= 0:
        return 0.0
    if size == 1:
        return (heavier + 1.0 if kind == PRECISION else own * heavier) / (above + 1.0)
    total = 0.0
    if kind == PRECISION:
        others = (own - 1.0) / (size - 1.0)  # relevant documents of the group per position
        for i in range(reached):
            total += (heavier + 1.0 + others * i) / (above + i + 1.0)
        return total * own / size
    for i in range(reached):
        total += (passed[i] - passed[i + 1]) / (above + i + 1.0)
    return total * heavier


@compiled()
def sweep_cuts(
    kind: int, cutoff: int, scores: Floats, slopes: Floats, by_score: Ints, gain: Floats, weights: Floats,
    offsets: Ints, first: int, last: int, starts: Out[Floats], times: Out[Floats], steps: Out[Floats],
    widths: Out[Floats],
) -> int:  # fmt: skip
    """gain: 1 where relevant, or p; 0 of documents that add nothing. cutoff: k."""
    capacity, found, most = times.size, 0, longest_query(offsets, first, last)
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
        groups = first_order(s, a, by_score[low : low + n], key[:n], now, spare[:n], begins)
        tau = min(cutoff, groups)
        lines, of_slope = 0, 0  # groups that can ever be among the first τ
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
            starts[q] += weight * _group_value(kind, size[p], own[p], cutoff, above[p], heavier[p], passed[group[p]])
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
                    _group_value(kind, size[r], own[r], cutoff, c, high, passed[group[r]])
                    + _group_value(kind, size[i], own[i], cutoff, c + size[r], next_r, passed[group[i]])
                    - _group_value(kind, size[i], own[i], cutoff, c, high, passed[group[i]])
                    - _group_value(kind, size[r], own[r], cutoff, c + size[i], next_i, passed[group[r]])
                )
            if step != 0.0:
                if at == -np.inf:
                    starts[q] += step
                else:
                    if found < capacity:
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
            else:  # insert the leaving group by slope
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


@inlined
def _reciprocal(above: int, size: int, relevant: int, cutoff: int) -> float:
    """The mean of [position <= k] / position of the first relevant document in a tied group below `above` documents."""
    total, missed = 0.0, 1.0
    for i in range(min(size - relevant + 1, cutoff - above)):
        chance = relevant / (size - i)
        total += missed * chance / (above + i + 1.0)
        missed *= 1.0 - chance
    return total


@compiled()
def sweep_envelope(
    cutoff: int, scores: Floats, slopes: Floats, by_score: Ints, relevant: Floats, weights: Floats, offsets: Ints,
    first: int, last: int, starts: Out[Floats], times: Out[Floats], steps: Out[Floats], widths: Out[Floats],
) -> int:  # fmt: skip
    """relevant: 1 where relevant, else 0."""
    capacity, found, most = times.size, 0, longest_query(offsets, first, last)
    key, when, line_s, line_a = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    order, spare, begins = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    hits, turns, crossers = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    for q in range(first, last):
        low, n = offsets[q], offsets[q + 1] - offsets[q]
        s, a, marked = scores[low : low + n], slopes[low : low + n], relevant[low : low + n]
        starts[q], some = 0.0, False
        for j in range(n):
            some = some or marked[j] != 0.0
        if not some:
            continue
        groups = first_order(s, a, by_score[low : low + n], key[:n], order[:n], spare[:n], begins)
        top = -1
        for g in range(groups):
            hits[g] = 0
            for p in range(begins[g], begins[g + 1]):
                hits[g] += marked[order[p]] != 0.0
            line_s[g], line_a[g] = s[order[begins[g]]], a[order[begins[g]]]
            if top < 0 and hits[g] > 0:
                top = g
        at, value, begun, widest = -np.inf, 0.0, False, 0.0
        while True:
            following, until = -1, np.inf  # the next line of the envelope
            for other in range(top + 1, groups):
                if hits[other] > 0 and line_a[other] > line_a[top]:
                    t = (line_s[top] - line_s[other]) / (line_a[other] - line_a[top])
                    if t < until - ROUNDING * abs(t):  # else the flatter one is first, and this one passes it
                        following, until = other, t
            until = max(until, at)
            above, met = 0, 0
            for other in range(groups):
                rise = line_a[other] - line_a[top]
                if hits[other] > 0 or other == top:
                    continue
                if rise == 0.0:
                    above += begins[other + 1] - begins[other] if line_s[other] > line_s[top] else 0
                    continue
                t = (line_s[top] - line_s[other]) / rise
                if (t <= at) == (rise > 0.0):
                    above += begins[other + 1] - begins[other]
                if at < t <= until and t < np.inf:
                    when[met], crossers[met], turns[met] = -t, other, met
                    met += 1
            size = begins[top + 1] - begins[top]
            after = weights[q] * _reciprocal(above, size, hits[top], cutoff)
            if not begun or at == -np.inf:
                starts[q], begun = after, True
            elif after != value:
                if found < capacity:
                    times[found], steps[found], widths[found] = at, after - value, widest
                found += 1
            value = after
            sort_falling(turns[:met], when[:met], spare[:met])
            e = 0
            while e < met:
                t, widest = -when[turns[e]], 0.0
                while e < met and -when[turns[e]] == t:
                    other = crossers[turns[e]]
                    crossing = begins[other + 1] - begins[other]
                    above += crossing if line_a[other] > line_a[top] else -crossing
                    widest = max(widest, width(t, line_s[top], line_a[top], line_s[other], line_a[other]))
                    e += 1
                after = weights[q] * _reciprocal(above, size, hits[top], cutoff)
                if after != value:
                    if found < capacity:
                        times[found], steps[found], widths[found] = t, after - value, widest
                    found += 1
                value = after
            if following < 0:
                break
            widest = width(until, line_s[top], line_a[top], line_s[following], line_a[following])
            top, at = following, until
    return found
