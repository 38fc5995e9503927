"""Sorting and averaging inside queries, for all queries at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from formulations.threads import share

__all__ = ["mean_of_runs", "query_of_row", "share_queries", "sorted_rows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def query_of_row(offsets: Ints) -> Ints:
    """The query of each row."""
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets))


def sorted_rows(query: Ints, *keys: NDArray[np.generic]) -> Ints:
    """Rows by query, then by each key in turn from the largest value down, then as they come: row at each place."""
    return np.lexsort((*(-key for key in reversed(keys)), query)) if keys else np.arange(query.size)


def mean_of_runs(values: Floats, *keys: NDArray[np.generic]) -> Floats:
    """Each run of neighbours with all keys equal gets the mean of `values` over the run."""
    starts = np.zeros(values.size, dtype=bool)
    starts[0] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    first = np.flatnonzero(starts)
    lengths = np.diff(np.append(first, values.size))
    return np.repeat(np.add.reduceat(values, first) / lengths, lengths)


def share_queries(offsets: Ints, compute: Callable[[int, int], object], rows: int = 1 << 12) -> None:
    """compute(first, last) for ranges of queries of about `rows` rows, on all threads; it releases the interpreter."""
    marks = np.append(np.arange(0, offsets[-1], rows), offsets[-1])
    cuts = np.unique(np.searchsorted(offsets, marks))
    share(cuts.size - 1, lambda part: compute(cuts[part], cuts[part + 1]))
