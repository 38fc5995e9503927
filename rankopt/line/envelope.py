"""Reciprocal rank along a line: the upper envelope of the relevant documents, and who stands above it.

RR_q(t) = f(c), c the documents that are not relevant above the first relevant line; f(c) = [c < k] / (c + 1), or for a
group of g identical lines, r of them relevant, the mean over its orders. The envelope is a chain of lines of rising
slope; each is followed until the next, and what crosses it on the way moves c by one. Where a chain's link begins c is
counted anew, pair by pair, so it never drifts.

Source: paper 3 (DirectRank), section 2.2; ties as in `rankopt.measures.reciprocal_rank`.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled
from formulations.stable_sort import sort_falling
from rankopt.line.crossing import ROUNDING, groups_of, longest, width
from rankopt.line.first_order import first_order

__all__ = ["sweep_envelope"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled(nb.float64(nb.int64, nb.int64, nb.int64, nb.int64))
def _reciprocal(above: int, size: int, relevant: int, cutoff: int) -> float:
    """The mean of [place <= k] / place of the first of `relevant` documents in a group of `size` below `above` ones."""
    total, missed = 0.0, 1.0
    for i in range(min(size - relevant + 1, cutoff - above)):
        chance = relevant / (size - i)
        total += missed * chance / (above + i + 1.0)
        missed *= 1.0 - chance
    return total


@compiled(
    nb.int64(
        nb.int64, READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, FLOATS,
        FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def sweep_envelope(
    cutoff: int,
    scores: Floats,
    slopes: Floats,
    by_score: Ints,
    relevant: Floats,
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
    written. starts[q]: the value at -∞. relevant: 1 where relevant, else 0."""
    room, found, most = times.size, 0, longest(offsets, first, last)
    key, when, line_s, line_a = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    order, spare, begins = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    hits, turns, who = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    for q in range(first, last):
        low, n = offsets[q], offsets[q + 1] - offsets[q]
        s, a, marked = scores[low : low + n], slopes[low : low + n], relevant[low : low + n]
        starts[q], some = 0.0, False
        for j in range(n):
            some = some or marked[j] != 0.0
        if not some:
            continue
        first_order(s, a, by_score[low : low + n], key[:n], order[:n], spare[:n])
        groups = groups_of(s, a, order[:n], begins)
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
                    when[met], who[met], turns[met] = -t, other, met
                    met += 1
            size = begins[top + 1] - begins[top]
            after = weights[q] * _reciprocal(above, size, hits[top], cutoff)
            if not begun or at == -np.inf:
                starts[q], begun = after, True
            elif after != value:
                if found < room:
                    times[found], steps[found], widths[found] = at, after - value, widest
                found += 1
            value = after
            sort_falling(turns[:met], when[:met], spare[:met])
            e = 0
            while e < met:
                t, widest = -when[turns[e]], 0.0
                while e < met and -when[turns[e]] == t:
                    other = who[turns[e]]
                    crossing = begins[other + 1] - begins[other]
                    above += crossing if line_a[other] > line_a[top] else -crossing
                    widest = max(widest, width(t, line_s[top], line_a[top], line_s[other], line_a[other]))
                    e += 1
                after = weights[q] * _reciprocal(above, size, hits[top], cutoff)
                if after != value:
                    if found < room:
                        times[found], steps[found], widths[found] = t, after - value, widest
                    found += 1
                value = after
            if following < 0:
                break
            widest = width(until, line_s[top], line_a[top], line_s[following], line_a[following])
            top, at = following, until
    return found
