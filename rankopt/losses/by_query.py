"""Sorting and averaging inside queries, for all queries at once."""

import numpy as np
from numpy.typing import NDArray

from formulations.sorted_queries import QUERY_ROWS, falling_rows

__all__ = ["QUERY_ROWS", "mean_of_alike", "mean_of_runs", "query_of_row", "sorted_rows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def query_of_row(offsets: Ints) -> Ints:
    """The query of each row."""
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets))


def sorted_rows(query: Ints, *keys: NDArray[np.generic]) -> Ints:
    """Rows by query, which does not fall from row to row, then by each key in turn from the largest value down, then as
    they come: row at each place."""
    begins = np.flatnonzero(query[1:] != query[:-1]) + 1
    return falling_rows(np.concatenate([[0], begins, [query.size]]), *keys)


def mean_of_alike(values: Floats, order: Ints, *traits: NDArray[np.generic]) -> Floats:
    """The mean of `values` over all that are equal in every trait, for each; `order` brings these side by side.

    Values are added one after the other as they come, as compiled code does.
    """
    differs = np.zeros(order.size, dtype=bool)
    for trait in traits:
        differs[1:] |= trait[order[1:]] != trait[order[:-1]]
    group = np.empty(order.size, dtype=np.int64)
    group[order] = np.cumsum(differs)
    return np.asarray((np.bincount(group, values) / np.bincount(group))[group])


def mean_of_runs(values: Floats, *keys: NDArray[np.generic]) -> Floats:
    """Each run of neighbours with all keys equal gets the mean of `values` over the run."""
    starts = np.zeros(values.size, dtype=bool)
    starts[0] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    first = np.flatnonzero(starts)
    lengths = np.diff(np.append(first, values.size))
    return np.repeat(np.add.reduceat(values, first) / lengths, lengths)
