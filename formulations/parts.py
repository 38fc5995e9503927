"""Many queries on all threads: ranges of whole queries, cut by the data alone, so that all bits stay the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from formulations.arrays import Ints
from formulations.threads import share

__all__ = ["share_ranges"]


def share_ranges(offsets: Ints, rows: int, compute: Callable[[int, int], object]) -> None:
    """compute(first, last) for ranges of queries first <= q < last of about `rows` rows; it frees the interpreter."""
    if offsets[-1] <= rows:
        compute(0, offsets.size - 1)
        return
    marks = np.append(np.arange(0, offsets[-1], rows), offsets[-1])
    cuts = np.unique(np.searchsorted(offsets, marks)).tolist()
    share(len(cuts) - 1, lambda part: compute(cuts[part], cuts[part + 1]))
