"""How long a list a set leaves room for, when it cannot fill all of its positions."""

from __future__ import annotations

import numpy as np

from formulations.errors import Infeasible
from formulations.modeling.constrained_ranking import ConstrainedRanking
from formulations.modeling.ranking_set import RankingSet
from formulations.modeling.solve import solve

__all__ = ["room"]


def room(admissible: RankingSet) -> int:
    """The most positions, from the first on, that documents can fill while every row of the set holds; 0 where it
    cannot hold at all.

    Stated as a ranking of the documents and of k blanks that no row counts: no document stands below a blank.
    """
    k, n = admissible.positions, admissible.documents
    cells = np.arange(k * n)
    place = cells // n * (n + k) + cells % n
    padded = RankingSet(n + k, k)
    for constraint in admissible.constraints:
        if constraint.forbids is not None:
            rows, columns = np.nonzero(constraint.forbids)
            for row in np.unique(rows).tolist():
                padded = padded.ban(columns[rows == row], row, name=constraint.name)
        if constraint.rows:
            matrix = constraint.matrix.tocoo()
            wide = np.zeros((constraint.rows, k * (n + k)))
            wide[matrix.row, place[matrix.col]] = matrix.data
            padded = padded.rows(wide, constraint.lower, constraint.upper, name=constraint.name)
    if k > 1:
        filled = np.zeros((k, k, n + k))
        filled[np.arange(k), np.arange(k), :n] = 1.0
        padded = padded.rows((filled[1:] - filled[:-1]).reshape(k - 1, -1), upper=0.0, name="unbroken")
    profit = np.zeros((k, n + k))
    profit[:, :n] = 1.0
    try:
        return round(solve(ConstrainedRanking(profit, padded), "highs").value)
    except Infeasible:
        return 0
