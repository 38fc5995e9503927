"""The argmax of small batches of relevance rankings in NumPy, one row of the grid at a time, without compiling.

A binary query is a grid, others a full lattice. Ties, as in the kernels: relevant documents as high as possible.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from formulations.argmax.relevance_layout import GRID, LATTICE, SORT, TAIL, RelevanceLayout
from formulations.arrays import Bytes, Floats, Ints
from formulations.problems.relevance_ranking import RelevanceBatch
from formulations.problems.relevance_values import FIRST, PAIRWISE, POSITIONAL, TABLE


def search_lattices(batch: RelevanceBatch, queries: Ints, order: Ints) -> None:
    """Fill the order of these queries. Raises `UnsupportedProblemError` for a lattice of too many states."""
    for query in queries.tolist():
        problem = batch[query]
        lattice = problem.lattice()
        path = lattice.levels.path(lattice.edges, lattice.potentials)
        order[batch.offsets[query] : batch.offsets[query + 1]] = problem.chains.order(path)


def search_small(batch: RelevanceBatch, layout: RelevanceLayout) -> tuple[Ints, Bytes]:
    """(N,) the document, counted within its query, at each position; (m,) the way of each query."""
    order = np.empty(batch.scores.size, dtype=np.int64)
    ways = np.full(len(batch), GRID, dtype=np.int8)
    ways[layout.algorithm == SORT] = SORT
    ways[(layout.algorithm == LATTICE) | (layout.algorithm == TAIL)] = LATTICE
    search_lattices(batch, np.flatnonzero(ways == LATTICE), order)
    for query, (low, high) in enumerate(pairwise(batch.offsets.tolist())):
        if ways[query] == LATTICE:
            continue
        members, scores = layout.members[low:high].astype(np.int64), batch.scores[low:high]
        bad, good = np.split(members, [layout.irrelevant[query]])
        upwards = batch.map.kind == FIRST and batch.grade[low + good[0]] > 0
        bad = bad[np.argsort(-scores[bad], kind="stable")]
        good = good[np.argsort(-scores[good], kind="stable")]
        good = good[::-1] if upwards else good
        if not bad.size:
            order[low:high] = good
            continue
        above = _above(batch, layout, query, scores[bad], scores[good])
        positions = np.arange(good.size) + above
        rest = np.ones(high - low, dtype=bool)
        rest[positions] = False
        order[low + positions] = good
        order[low:high][rest] = bad
    return order, ways


def _above(batch: RelevanceBatch, layout: RelevanceLayout, query: int, bad: Floats, good: Floats) -> Ints:
    """The number of irrelevant documents above each relevant one: the grid row by row."""
    low, high = batch.offsets[query : query + 2].tolist()
    begin, end = batch.earnings.starts[query : query + 2].tolist()
    kind, weight, b = batch.map.kind, batch.map.weight, bad.size
    tables = batch.earnings.table[begin:end].reshape(2, b + 1, -1) if batch.earnings.kind == TABLE else None
    discount, passed, count = batch.earnings.discount[low:high], np.append(0.0, np.cumsum(bad)), np.arange(b + 1.0)

    def along(x: int) -> Floats:
        """The contribution of the first 0, 1, ... irrelevant documents below x relevant ones."""
        steps = np.zeros(b)
        if kind == POSITIONAL:
            steps = weight[low + x : low + x + b] * bad
        elif kind == FIRST and x == 0:
            steps = weight[query] * bad
        if tables is not None:
            steps = steps - tables[0, :-1, x]
        return np.append(0.0, np.cumsum(steps))

    offered, reached = np.empty((good.size, b + 1)), along(0)
    for x, s in enumerate(good.tolist()):
        if kind == POSITIONAL:
            step = weight[low + x : low + x + b + 1] * s
        elif kind == PAIRWISE:
            step = weight[query] * (passed - count * s)
        else:
            step = -weight[query] * count * s if x == 0 else np.zeros(b + 1)
        earned = layout.share[low + x] * discount[x : x + b + 1] if tables is None else tables[1, :, x]
        others_add = along(x + 1)
        offered[x] = reached + (step - earned) - others_add
        reached = np.maximum.accumulate(offered[x]) + others_add
    above, j = np.empty(good.size, dtype=np.int64), b
    for x in range(good.size - 1, -1, -1):
        j = int(np.argmax(offered[x, : j + 1]))
        above[x] = j
    return above
