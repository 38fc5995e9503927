"""The best ranking of a set of your own: quotas, pins, bans, precedence, rows of any kind.

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
>>> solution = solve(ranking_set(np.outer([3.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]), admissible))
>>> solution.order, solution.value, solution.solver
(array([0, 1, 2]), 19.0, 'ortools via laminar flow')
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from formulations.arrays import finite
from formulations.errors import InvalidProblem
from formulations.forms.rank_two_assignment import RankTwoAssignment
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.ranking_set import RankingSet
from formulations.sets.soft_ranking import SoftRanking

__all__ = ["ranking_set"]


def ranking_set(profit: ArrayLike | RankTwoAssignment, admissible: RankingSet) -> ConstrainedRanking:
    """The best ranking of a set.

    Args:
        profit: (k, n), a row a position, a column a document; or a loss-augmented `ranking` of the same k and n.
        admissible: the set, as `RankingSet(n, k).at_most(...)` states it. What it says softly (`soft`) may be
            broken, and its price is taken off the value: `solution.broken` says what was.

    Raises:
        InvalidProblem: a profit is NaN or infinite, or its shape is not that of the set.
        Infeasible: no ranking is in the set; names an irreducible set of conflicting constraints.
    """
    if not isinstance(admissible, RankingSet):
        raise InvalidProblem(f"admissible is a {type(admissible).__name__}; state a RankingSet(n, k)")
    if isinstance(profit, RankTwoAssignment):
        ranked, profit = profit, profit.assignment().profit
        return (
            SoftRanking(profit, admissible) if admissible.softened else ConstrainedRanking(profit, admissible, ranked)
        )
    return (SoftRanking if admissible.softened else ConstrainedRanking)(finite("profit", profit, 2), admissible)
