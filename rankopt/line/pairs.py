"""Discounts that fall by one step from place to place (`AUC`), pair by pair: a swap is worth the same wherever it is.

If l overtakes i, l gains a place and i loses one: M moves by δ (b_l - b_i), δ the step of the discount; of groups of
identical lines by δ (|I| Σ b_L - |L| Σ b_I). No order is needed.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled
from rankopt.line.crossing import first_groups, longest, width

__all__ = ["sweep_pairs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
