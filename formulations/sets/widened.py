"""The program of a set with soft constraints: a column for each side on which a soft row can be broken.

    maximise    Σ profit[i, j] π[i, j] - Σ price[r] (over[r] + under[r])
    subject to  lower <= a π - over + under <= upper,   0 <= over, under <= what rankings can break at most

A column with one entry neither makes nor breaks total unimodularity, and these limits are whole where the row's are:
the widened matrix is totally unimodular exactly where that of all rows is, those of soft constraints as if hard.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack

from formulations.arrays import Bools, Floats, Ints
from formulations.notation.names import Block, name_at
from formulations.notation.program import Program
from formulations.sets.rows import SetRows

__all__ = ["reach", "widened"]


def reach(stated: SetRows) -> tuple[Floats, Floats]:
    """(rows,) by how much a ranking can be over and under each soft row at most; 0 for the others. Every position takes
    one of its cells, the one of largest or of smallest coefficient."""
    return stated.kept("reach", lambda: _reach(stated))


def _reach(stated: SetRows) -> tuple[Floats, Floats]:
    over, under = np.zeros(stated.lower.size), np.zeros(stated.lower.size)
    starts = np.searchsorted(stated.cell, np.arange(stated.shape[0]) * stated.shape[1])
    assert stated.price is not None
    for row in np.flatnonzero(np.isfinite(stated.price)).tolist():
        held = stated.matrix[[row]].toarray().ravel()
        over[row] = max(0.0, float(np.maximum.reduceat(held, starts).sum()) - stated.upper[row])
        under[row] = max(0.0, stated.lower[row] - float(np.minimum.reduceat(held, starts).sum()))
    return over, under


def widened(stated: SetRows, profit: Floats, integer: bool = False, needed: Bools | None = None) -> Program:
    """The program, relaxed or in whole numbers; over the needed cells only, if these are said."""
    plain = stated.program(profit, integer, needed)
    price = stated.price
    assert price is not None
    sides = reach(stated)
    over, under = (np.flatnonzero(side > 0.0) for side in sides)
    rows = np.concatenate([over, under])
    sign = np.repeat([-1.0, 1.0], [over.size, under.size])
    columns = csr_array((sign, (rows, np.arange(rows.size))), shape=(stated.lower.size, rows.size))
    count = plain.objective.size
    whole = np.concatenate([np.ones(count, dtype=bool), stated.whole_limits[rows]])
    return Program(
        objective=np.concatenate([plain.objective, -price[rows]]),
        matrix=csr_array(hstack([plain.matrix, columns])),
        row_lower=plain.row_lower,
        row_upper=plain.row_upper,
        lower=np.zeros(count + rows.size),
        upper=np.concatenate([plain.upper, sides[0][over], sides[1][under]]),
        integer=whole if integer else None,
        variables=(*plain.variables, *_named("over", over, stated), *_named("under", under, stated)),
        rows=plain.rows,
    )


def _named(label: str, rows: Ints, stated: SetRows) -> list[Block]:
    names = tuple(name_at(stated.blocks, row) for row in rows.tolist())
    return [Block(label, names)] if names else []
