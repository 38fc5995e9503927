"""Matching: place documents by any benefit of standing at a position.

sets         positions i < k, documents j < n, the cells (i, j) that are allowed
variables    π[i, j] = 1 where document j stands at position i
maximise     Σ benefit[i, j] π[i, j]                                                          [ORM, section 7.3]
subject to   position   each position holds one document
             document   each document stands at one position at most
integrality  totally unimodular: the incidence matrix of a bipartite graph

A position need not be a place in a list: it may be a slot for a topic, or the other side of a matching.

>>> from formulations import solve
>>> benefit = [[3.0, 2.0, 9.0], [2.0, 1.0, 8.5]]
>>> solve(matching(benefit), "scipy").order
array([0, 2])
>>> solve(matching(benefit, allowed=[[True, True, True], [True, True, False]]), "scipy").order
array([2, 0])

The best k of n documents, at most one from each block: Π(B, k) of [ORM, Definition 5].

sets         positions i < k, documents j < n, blocks B_s (a partition of the documents)
variables    π[i, j] = 1 where document j stands at position i
maximise     Σ profit[i, j] π[i, j]                                                              [ORM, eq. 41]
subject to   position   each position holds one document
             block      each block fills at most one of the k positions
integrality  totally unimodular: every variable is in one position row and one block row (Heller-Tompkins)

It collapses to an assignment of positions to blocks: per position and block keep the best document.

>>> from formulations import solve
>>> profit = np.array([[3.0, 2.0, 9.0], [2.0, 1.0, 7.0]])
>>> solution = solve(diverse_retrieval(profit, groups=["a.org", "a.org", "b.org"]))
>>> solution.order, solution.value, solution.solver
(array([2, 0]), 11.0, 'scipy via collapsed assignment')

The best ranking of a set of your own: quotas, pins, bans, precedence, rows of any kind.

sets         positions i < k, documents j < n, a `RankingSet` of admissible rankings
variables    π[i, j] = 1 where document j stands at position i (where the set allows it)
maximise     Σ profit[i, j] π[i, j]
subject to   position   each position holds one document
             document   each document stands at one position at most (where no other row implies it)
             and every row of the set, by its name; soft ones with what they are over and under (`sets.widened`)
integrality  a property of the statement: `verify_integrality(problem)` proves it or refutes it by a witness

Solved by the narrowest structure that the set has: an assignment, a flow, a linear program, else in whole numbers.

>>> from formulations import solve
>>> import numpy as np
>>> site = ["a.org", "a.org", "b.org", "a.org"]
>>> admissible = RankingSet(4, 3).at_most(2, by=site, name="site")
>>> solution = solve(constrained_ranking(np.outer([3.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]), admissible))
>>> solution.order, solution.value, solution.solver
(array([0, 1, 2]), 19.0, 'ortools via laminar flow')
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import finite
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.ranking_set import RankingSet
from formulations.errors import InvalidProblemError
from formulations.problems.assignment import Assignment
from formulations.problems.ranking import RankTwoAssignment


def matching(profit: ArrayLike, *, allowed: ArrayLike | None = None) -> Assignment:
    """The best placing of k of n documents.

    Args:
        profit: (k, n), a row a position, a column a document; the unit is the caller's.
        allowed: (k, n) booleans, False where a document must not stand. Everything is allowed by default.

    Raises:
        InvalidProblemError: a benefit is NaN or infinite (forbid a cell by `allowed`), or shapes do not fit.
        Infeasible: k > n, or some positions share too few allowed documents; names them.
    """
    if np.isneginf(np.asarray(profit, dtype=np.float64)).any():
        raise InvalidProblemError("benefit holds -inf, which is no number to add up: forbid cells by `allowed`")
    return Assignment(finite("profit", profit, 2), None if allowed is None else np.asarray(allowed))


def diverse_retrieval(profit: ArrayLike, groups: Sequence[Hashable | None]) -> ConstrainedRanking:
    """The best ranking of Π(B, k).

    Args:
        profit: (k, n), a row a position, a column a document; the unit is the caller's.
        groups: (n,) the block of each document: site, topic, author. None for a document in no block.

    Raises:
        InvalidProblemError: a profit is NaN or infinite, or lengths do not fit.
        Infeasible: fewer blocks than positions; names the conflict.
    """
    worth = finite("profit", profit, 2)
    k, n = np.shape(worth)
    return ConstrainedRanking(worth, RankingSet(n, k).at_most(1, by=groups, name="block"))


def constrained_ranking(profit: ArrayLike | RankTwoAssignment, admissible: RankingSet) -> ConstrainedRanking:
    """The best ranking of a set.

    Args:
        profit: (k, n), a row a position, a column a document; or a loss-augmented `ranking` of the same k and n.
        admissible: the set, as `RankingSet(n, k).at_most(...)` states it. Soft constraints (`penalized`) may be
            violated, and their penalties are subtracted from the value: `solution.broken` lists the violations.

    Raises:
        InvalidProblemError: a profit is NaN or infinite, or its shape is not that of the set.
        Infeasible: no ranking is in the set; names an irreducible set of conflicting constraints.
    """
    if not isinstance(admissible, RankingSet):
        raise InvalidProblemError(
            f"admissible must be a RankingSet; got a {type(admissible).__name__}. Start from RankingSet(n, k)."
        )
    if isinstance(profit, RankTwoAssignment):
        ranked, profit = profit, profit.assignment().profit
        return (
            PenalizedRanking(profit, admissible)
            if admissible.soft_constraints
            else ConstrainedRanking(profit, admissible, ranked)
        )
    return (PenalizedRanking if admissible.soft_constraints else ConstrainedRanking)(
        finite("profit", profit, 2), admissible
    )
