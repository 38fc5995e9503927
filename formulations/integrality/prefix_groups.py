"""Limits on prefixes over disjoint groups: whole for this objective, though the matrix is not totally unimodular.

Let the rows be those of `prefix_rows`, and let D[p, j] = profit[p, j] - profit[p + 1, j], profit[k, ·] being 0. If the
documents of each group have an order in which no D[p, ·] rises (p = k - 1 may be left out where k = n), the linear
program has a whole optimum, and is feasible if and only if a ranking is. With y[p, j] = Σ_{i <= p} π[i, j],

    Σ profit π  =  Σ_p Σ_j D[p, j] y[p, j]  <=  Σ_p Σ_g  the N[g, p] first D[p, ·] of g,   N[g, p] = Σ_{j in g} y[p, j]

the right-hand side is concave in N with whole breakpoints, the steps of N are a flow over groups × positions with
whole limits, so a whole N is best; it names one group a position, and taking the next document of that group there
attains it.

Profits of rank one, c_i s_j with c_1 >= ... >= c_k >= 0, are of this kind, with the order by s; so are c sᵀ - a bᵀ
where a = κ c or b is constant inside the groups, and a decay for each group with worths w[g, i] added.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from formulations.arrays import Floats, Ints, frozen
from formulations.integrality.evidence import PrefixGroups, Proof
from formulations.integrality.prefix_rows import PrefixRows
from formulations.integrality.statement import Statement

__all__ = ["common_order", "prefix_proof"]


def prefix_proof(statement: Statement) -> Proof | None:
    """A proof that this linear program, of the cells π of a ranking, has a whole optimum; None where its rows or its
    objective are of another kind. An objective of zeros asks nothing."""
    program = statement.program
    if program is None or program.objective.size != statement.matrix.shape[1] or not program.objective.any():
        return None
    cells = program.variables[0] if len(program.variables) == 1 else None
    if cells is None or cells.labelled or len(cells.shape) != 2 or (program.lower != 0).any():
        return None
    k, n = cells.shape
    rows = (
        PrefixRows.of(statement.matrix, program.row_lower, program.row_upper, k) if (program.upper == 1).all() else ""
    )
    if isinstance(rows, str):
        return None
    profit = (program.objective if program.maximises else -program.objective).reshape(k, n)
    order = common_order(profit, rows.group)
    if order is None:
        return None
    return Proof("prefix groups", statement.matrix.shape, PrefixGroups(k, frozen(rows.group), frozen(order)))


def common_order(profit: Floats, group: Ints) -> Ints | None:
    """Group after group, the documents of each in an order in which no D[p, ·] rises, of the very numbers; or None.

    The sum of all D[p, ·] does not rise in it either, so it is an order by that sum, and where two sums are equal so
    are all D[p, ·].
    """
    k, n = profit.shape
    whole = profit[0] - profit[-1] if k == n else profit[0]
    order = np.lexsort((-whole, group))
    placed = profit[:, order]
    together = group[order][1:] == group[order][:-1]
    if k < n:
        placed = np.vstack([placed, np.zeros(n)])
    steps = placed[:-1] - placed[1:]
    falls = (steps[:, :-1] - steps[:, 1:])[:, together]
    size = np.abs(placed).max(axis=0)
    noise = 2.0**-49 * np.maximum(size[:-1], size[1:])[together]
    doubtful = falls <= noise
    first, second = np.flatnonzero(together), np.flatnonzero(together) + 1
    doubtful &= (placed[:, first] != placed[:, second])[:-1] | (placed[:, first] != placed[:, second])[1:]
    doubtful &= (placed[:-1] != placed[1:])[:, first] | (placed[:-1] != placed[1:])[:, second]
    for p, place in np.argwhere(doubtful).tolist():
        now, after = (tuple(map(Fraction, placed[i, first[place] : second[place] + 1].tolist())) for i in (p, p + 1))
        if now[0] - after[0] < now[1] - after[1]:
            return None
    return np.asarray(order, dtype=np.int64)
