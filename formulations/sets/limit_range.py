"""Between which limits the rankings differ: beyond them a limit cannot bind, or leaves nothing.

A row a π of a ranking is no more than

    min( Σ_i max(0, max_j a[i, j]),  Σ_j max(0, max_i a[i, j]) )

for each position holds one document and each document stands at one position at most: of a group at some positions, the
smaller of the two numbers. The rows of positions and documents alone prove it, so it holds in the linear program too.
What it is no less than, likewise.

>>> from formulations import RankingSet
>>> from formulations.sets.limits import limit_of
>>> site = RankingSet(6, 4).at_most(1, by=["a.org", "a.org", "a.org", "b.org", "b.org", None], name="site")
>>> limit_range(limit_of(site, "site"))
(-1.0, 3.0)
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Floats, Ints
from formulations.sets.constraint import row_rounding
from formulations.sets.limits import ConstraintLimit

__all__ = ["limit_range"]


def limit_range(limit: ConstraintLimit) -> tuple[float, float]:
    """The limit that stands for all below it, and the one for all above it: they admit the same rankings.

    On its loose end the constraint cannot bind, on the other no ranking meets it; a soft constraint has no other end,
    for each unit costs.
    """
    least, most = _reach(limit)
    soft = any(one.constraint is limit.constraint for one in limit.admissible.softened)
    below, above = (-np.inf, np.inf) if soft else (-_beyond(-float(least.max())), _beyond(float(most.min())))
    if limit.side == "at most":
        return below, float(most.max())
    return (float(least.min()) if limit.side == "at least" else below), above


def _beyond(reach: float) -> float:
    """A limit that a row of this reach is clearly below."""
    return reach + max(1.0, 1e-9 * reach)


def _reach(limit: ConstraintLimit) -> tuple[Floats, Floats]:
    """What each of the rows that are moved is at least and at most, of any ranking."""
    held, n = limit.constraint, limit.admissible.documents
    matrix = csr_array(held.matrix[np.flatnonzero(limit.rows)])
    matrix.sum_duplicates()
    found = []
    for r in range(matrix.shape[0]):
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        position, document = np.divmod(matrix.indices[part], n)
        lines = (position, limit.admissible.positions), (document, n)
        found.append([-min(_largest(-matrix.data[part], *line) for line in lines),
                      min(_largest(matrix.data[part], *line) for line in lines)])  # fmt: skip
    least, most = np.array(found).T
    off = row_rounding(matrix, least, most, limit.admissible.positions)
    whole = matrix.copy()
    whole.data = np.abs(matrix.data - np.round(matrix.data))
    off *= whole.sum(axis=1) > 0.0  # sums of whole numbers are exact
    return least - off, most + off


def _largest(weights: Floats, line: Ints, lines: int) -> float:
    """Σ over lines of the largest weight in each, 0 where all are below it."""
    largest = np.zeros(lines)
    np.maximum.at(largest, line, weights)
    return float(largest.sum())
