"""What the argmax knows of a batch before the scores: chains of equal gain, cones of steps, where weights end."""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from formulations.argmax.cones import find_cones
from formulations.arrays import Floats, Ints, Shorts
from formulations.compiled import INTS, READ_FLOATS, READ_INTS, SHORTS, compiled
from formulations.sorted_queries import falling_rows

__all__ = ["Layout", "significant"]


NOTHING = 2.0**-400


def significant(weights: Floats, offsets: Ints) -> tuple[Floats, Floats]:
    """The weights, small ones zero, and for each query the sum of what was left out; weights fall in each query."""
    largest = np.maximum(np.abs(weights[offsets[:-1]]), np.abs(weights[offsets[1:] - 1]))
    size = np.abs(weights)
    small = size < NOTHING * np.repeat(largest, np.diff(offsets))
    lost = np.add.reduceat(np.where(small, size, 0.0), offsets[:-1])
    return np.where(small, 0.0, weights) if lost.any() else weights, lost


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_INTS, SHORTS, SHORTS, INTS))
def _cones(discount: Floats, decay: Floats, offsets: Ints, low: Shorts, high: Shorts, stop: Ints) -> None:
    for q in range(offsets.size - 1):
        rows = slice(offsets[q], offsets[q + 1])
        stop[q] = find_cones(discount[rows], decay[rows], low[rows], high[rows])


@dataclass(frozen=True, eq=False)
class Layout:
    """by_gain: the documents of each query, counted within it, by rising gain and then as they come.

    chain_start: places in by_gain where a chain of one gain begins, worth its gain, those of query q being entries
    first_chain[q] : first_chain[q + 1]. low, high, stop: see `cones`. discount, decay: the weights that are searched
    with, and for each query how much of them was left out (see `significant`).
    """

    by_gain: Shorts
    chain_start: Ints
    worth: Floats
    first_chain: Ints
    low: Shorts
    high: Shorts
    stop: Ints
    discount: Floats
    decay: Floats
    lost_discount: Floats
    lost_decay: Floats

    @classmethod
    def of(cls, gain: Floats, discount: Floats, decay: Floats, offsets: Ints) -> Layout:
        lengths = np.diff(offsets)
        by_gain = falling_rows(offsets, -gain)
        sorted_gain = gain[by_gain]
        begins = np.append(True, sorted_gain[1:] != sorted_gain[:-1])
        begins[offsets[:-1]] = True
        chain_start = np.append(np.flatnonzero(begins), gain.size)
        low, high = np.zeros(gain.size, dtype=np.int32), np.zeros(gain.size, dtype=np.int32)
        stop = np.empty(lengths.size, dtype=np.int64)
        discount, lost_discount = significant(discount, offsets)
        decay, lost_decay = significant(decay, offsets)
        _cones(discount, decay, offsets, low, high, stop)
        within = (by_gain - np.repeat(offsets[:-1], lengths)).astype(np.int32)
        first_chain = np.searchsorted(chain_start, offsets)
        return cls(
            within, chain_start, sorted_gain[chain_start[:-1]], first_chain, low, high, stop,
            discount, decay, lost_discount, lost_decay,
        )  # fmt: skip
