"""A ranking of a set by one pass over the positions, where that finds one: much cheaper than a search.

Each position takes the allowed document that serves the most rows still below their floor, breaks no ceiling, and is
the first such. What comes out is checked; nothing is concluded where it fails.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formulations.arrays import Ints
from formulations.sets.constraint import Constraint, broken
from formulations.sets.rows import SetRows

__all__ = ["greedy_point"]


def greedy_point(stated: SetRows, constraints: Sequence[Constraint]) -> Ints | None:
    """The document at each position of a ranking in the set, or None where the pass finds none."""
    k, n = stated.shape
    low, high = stated.lower[k:], stated.upper[k:]
    reached = np.zeros(low.size)
    used = np.zeros(n, dtype=bool)
    order = np.empty(k, dtype=np.int64)
    first = np.searchsorted(stated.cell, np.arange(k + 1) * n)
    for i in range(k):
        start, end = stated.weights.indptr[first[i]], stated.weights.indptr[first[i + 1]]
        rows, weight = stated.weights.indices[start:end], stated.weights.data[start:end]
        spans = np.diff(stated.weights.indptr[first[i] : first[i + 1] + 1])
        cell = np.repeat(np.arange(spans.size), spans)
        breaks = np.bincount(cell, reached[rows] + weight > high[rows], spans.size)
        serves = np.bincount(cell, (weight > 0) & (reached[rows] < low[rows]), spans.size)
        document = stated.cell[first[i] : first[i + 1]] % n
        worth = np.where((breaks > 0) | used[document], -1.0, serves)
        if not worth.size or worth.max() < 0:
            return None
        best = int(np.argmax(worth))
        order[i], used[document[best]] = document[best], True
        np.add.at(reached, rows[cell == best], weight[cell == best])
    return None if broken(constraints, order, n) else order
