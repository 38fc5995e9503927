"""Of the states of one layer those worth most."""

import numpy as np
from numba import int64

from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, SHORTS, compiled

__all__ = ["best_of"]


@compiled(int64(INTS, FLOATS, SHORTS, BYTES, int64, int64))
def best_of(key: Ints, value: Floats, origin: Shorts, chain: Bytes, width: int, beam: int) -> int:
    """Keep the `beam` states of greatest value, in their order."""
    least = np.sort(value[:width])[width - beam]
    kept = 0
    for t in range(width):
        if value[t] >= least and kept < beam:
            key[kept], value[kept], origin[kept], chain[kept] = key[t], value[t], origin[t], chain[t]
            kept += 1
    return kept
