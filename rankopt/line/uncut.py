"""Sums over documents of f(how many, and which, stand above), each query by the way that is quicker for it.

Swap by swap (`rankopt.line.swaps`) where its pairs are few enough to be held, else document by document
(`rankopt.line.walks`). Which of them is asked of the data alone, so that no order of documents changes a bit.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled
from rankopt.line.pairs_in_time import LOW
from rankopt.line.swaps import sweep_swaps
from rankopt.line.walks import CASCADE, DISCOUNT, PRECISION, sweep_walks
from rankopt.measures.segments import totals

__all__ = ["CASCADE", "DISCOUNT", "PRECISION", "counting", "sweep_uncut"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
