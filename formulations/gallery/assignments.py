"""Rankings with any profit matrix: matchings, diverse retrieval, and rankings in a set."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Bools, Floats, finite
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.ranking_set import RankingSet
from formulations.errors import InvalidProblemError
from formulations.problems.assignment import Assignment
from formulations.problems.ranking import RankTwoAssignment


def matching(
    profit: ArrayLike, *, allowed: ArrayLike | None = None, sense: Literal["max", "min"] = "max"
) -> Assignment:
    """Matching: assign documents to positions with any matrix of profits, or of costs; see `Assignment`.

    A position can be any slot: a rank in a list, a topic, or the other side of a matching [ORM, section 7.3].

    integrality  totally unimodular: the incidence matrix of a bipartite graph

    Args:
        profit: (k, n), one row per position, one column per document. Forbidden cells are masked, or have a profit of
            -inf or a cost of inf.
        allowed: (k, n) booleans, False for further forbidden cells.
        sense: "max" for profits; "min" for costs: value and bound are then costs.

    Raises:
        InvalidProblemError: a profit or cost is NaN or infinite in the wrong direction, or shapes do not fit.
        InfeasibleError: k > n, or some positions share too few allowed documents; names them.

    >>> from formulations import solve
    >>> profit = [[3.0, 2.0, 9.0], [2.0, 1.0, 8.5]]
    >>> solve(matching(profit), "scipy").order
    array([0, 2])
    >>> solve(matching(profit, allowed=[[True, True, True], [True, True, False]]), "scipy").order
    array([2, 0])
    >>> cheapest = solve(matching([[4.0, 1.0, 3.0], [2.0, 0.0, np.inf]], sense="min"))
    >>> cheapest.order, cheapest.value, cheapest.bound
    (array([1, 0]), 3.0, 3.0)
    """
    return Assignment(cast("Floats", profit), cast("Bools | None", allowed), sense)


def diverse_retrieval(profit: ArrayLike, groups: Sequence[Hashable | None]) -> ConstrainedRanking:
    """The best k of n documents, at most one from each block: Π(B, k) of [ORM, Definition 5].

    maximize     Σ profit[i, j] π[i, j]                                                              [ORM, eq. 41]
    subject to   position   each position holds one document
                 block      each block fills at most one of the k positions
    integrality  totally unimodular: every variable is in one position row and one block row (Heller-Tompkins)

    It collapses to an assignment of positions to blocks: only the best document per position and block matters.

    Args:
        profit: (k, n), one row per position, one column per document.
        groups: (n,) the block of each document: site, topic, author. None for a document in no block.

    Raises:
        InvalidProblemError: a profit is NaN or infinite, or lengths do not fit.
        InfeasibleError: fewer blocks than positions; names the conflict.

    >>> from formulations import solve
    >>> profit = np.array([[3.0, 2.0, 9.0], [2.0, 1.0, 7.0]])
    >>> solution = solve(diverse_retrieval(profit, groups=["a.org", "a.org", "b.org"]))
    >>> solution.order, solution.value, solution.solver
    (array([2, 0]), 11.0, 'scipy via collapsed assignment')
    """
    worth = finite("profit", profit, 2)
    k, n = np.shape(worth)
    return ConstrainedRanking(worth, RankingSet(n, k).at_most(1, by=groups, name="block"))


def constrained_ranking(profit: ArrayLike | RankTwoAssignment, admissible: RankingSet) -> ConstrainedRanking:
    """The best ranking in a set with quotas, fixed and forbidden cells, precedence or rows of any kind.

    Solved by its most special structure: an assignment, a flow, a linear program, else an integer program.

    integrality  depends on the rows: `verify_integrality(problem)` proves it or returns a violating submatrix

    Args:
        profit: (k, n), one row per position, one column per document; or a `ranking` problem of the same k and n.
        admissible: the set, as `RankingSet(n, k).at_most(...)` states it. Soft constraints (`penalized`) may be
            violated, and their penalties are subtracted from the value: `solution.violations` lists the violations.

    Raises:
        InvalidProblemError: a profit is NaN or infinite, or its shape is not that of the set.
        InfeasibleError: no ranking is in the set; names an irreducible set of conflicting constraints.

    >>> from formulations import solve
    >>> site = ["a.org", "a.org", "b.org", "a.org"]
    >>> admissible = RankingSet(4, 3).at_most(2, by=site, name="site")
    >>> solution = solve(constrained_ranking(np.outer([3.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]), admissible))
    >>> solution.order, solution.value, solution.solver
    (array([0, 1, 2]), 19.0, 'ortools via laminar flow')
    """
    if not isinstance(admissible, RankingSet):
        raise InvalidProblemError(f"admissible must be a RankingSet(n, k); got a {type(admissible).__name__}.")
    ranked = None
    if isinstance(profit, RankTwoAssignment):
        ranked, profit = profit, profit.assignment().profit
    worth = finite("profit", profit, 2)
    if admissible.soft_constraints:
        return PenalizedRanking(worth, admissible)
    return ConstrainedRanking(worth, admissible, ranked)
