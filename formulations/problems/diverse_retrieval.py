"""The best k of n documents, at most one from each block: Π(B, k) of [ORM, Definition 5].

sets         positions i < k, documents j < n, blocks B_s (a partition of the documents)
variables    π[i, j] = 1 where document j stands at position i
maximise     Σ profit[i, j] π[i, j]                                                              [ORM, eq. 41]
subject to   position   each position holds one document
             block      each block fills at most one of the k positions
integrality  totally unimodular: every variable is in one position row and one block row (Heller-Tompkins)

It collapses to an assignment of positions to blocks: per position and block keep the best document.

>>> from formulations import solve
>>> profit = np.array([[3.0, 2.0, 9.0], [2.0, 1.0, 7.0]])
>>> solution = solve(diverse_retrieval(profit, blocks=["a.org", "a.org", "b.org"]))
>>> solution.order, solution.value, solution.solver
(array([2, 0]), 11.0, 'scipy via collapsed assignment')
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import finite
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.ranking_set import RankingSet

__all__ = ["diverse_retrieval"]


def diverse_retrieval(profit: ArrayLike, blocks: Sequence[Hashable | None]) -> ConstrainedRanking:
    """The best ranking of Π(B, k).

    Args:
        profit: (k, n), a row a position, a column a document; the unit is the caller's.
        blocks: (n,) the block of each document: site, topic, author. None for a document in no block.

    Raises:
        InvalidProblem: a profit is NaN or infinite, or lengths do not fit.
        Infeasible: fewer blocks than positions; names the conflict.
    """
    worth = finite("profit", profit, 2)
    k, n = np.shape(worth)
    return ConstrainedRanking(worth, RankingSet(n, k).at_most(1, by=blocks, name="block"))
