"""Sums, products and orders inside queries, for all queries at once.

Rows of query q are `offsets[q]:offsets[q + 1]`; queries may be empty. Nothing here loops over queries.
"""

import numpy as np

from formulations.arrays import Floats, Ints

MANY = 1 << 14
"""Number of values from which compiled code sorts."""


def query_of_row(offsets: Ints) -> Ints:
    """The number of its query for every row (N,)."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def position_in_query(offsets: Ints) -> Ints:
    """The position (N,) of every row in its query, from 0."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def totals(values: Floats, offsets: Ints) -> Floats:
    """The sum (m,) of the values of each query."""
    sums = np.bincount(query_of_row(offsets), weights=values, minlength=len(offsets) - 1)
    return sums.astype(np.float64, copy=False)


def descending(values: Floats, offsets: Ints) -> Floats:
    """The values (N,), largest first inside each query."""
    if values.size < MANY:
        return np.asarray(values[np.lexsort((-values, query_of_row(offsets)))])
    from formulations.sorting import falling_rows

    return np.asarray(values[falling_rows(offsets, values)])


def running(combine: np.ufunc, values: Floats, offsets: Ints) -> Floats:
    """`combine.accumulate` inside each query: running sums, products or maxima (N,). Loops over positions, so that the
    rounding of a query does not depend on other queries."""
    result = np.array(values, dtype=np.float64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    for position in range(1, int(lengths.max(initial=0))):
        rows = starts[lengths > position] + position
        result[rows] = combine(result[rows - 1], result[rows])
    return result
