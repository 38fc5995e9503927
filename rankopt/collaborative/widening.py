"""As many factors as the problem wants: the top singular pairs of its own dual state are added until nothing is left.

Where ‖Ψ‖₂ in the units of the regulariser exceeds 1, some pair p, q with pᵀΨq < -1 is a direction along which J falls
and which the present factors lack; where it does not, the bound of the whole is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rankopt.collaborative.alternation import Alternated
from rankopt.collaborative.blocks.balance import balanced
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import Standing
from rankopt.collaborative.proved import whole_bound
from rankopt.collaborative.top_pairs import scaled, top_pairs
from rankopt.optimize.certificate import Stop

__all__ = ["FIRST", "widened"]

FIRST = 8
"""Factors to begin with."""

FINER = 100.0
"""How much finer than the gap of the whole both blocks are solved."""

GAIN = 0.05
"""The part of the open gap that a widening must close for another to follow."""


def widened(
    blocks: Any, done: Alternated, go_on: Callable[[Alternated, Standing, float], Alternated], tol: float
) -> Alternated:
    """Twice as many factors, again and again, while the gap of the whole is above `tol` and closes. go_on: the run from
    a standing of more factors, after the rounds before, to a gap of both blocks: a part of the gap of the whole, which
    new factors would else end within before they have grown."""
    most = min(blocks.problem.rated.n_users, blocks.problem.rated.n_items)
    gap = _gap(blocks, done.best)
    while gap > tol and done.best.factors.dimensions < most and done.stop in (Stop.GAP, Stop.CHOSEN):
        wider = _with_pairs(blocks, done.best, most)
        if wider is None:
            break
        tried = go_on(done, blocks.begun(wider), gap / FINER)
        left = _gap(blocks, tried.best)
        closes = left <= (1.0 - GAIN) * gap
        if left < gap:
            done, gap = tried, left
        if not closes:
            break
    return done


def _gap(blocks: Any, now: Standing) -> float:
    return whole_bound(blocks, now).gap(now.value)


def _with_pairs(blocks: Any, now: Standing, most: int) -> Factors | None:
    """The factors and as many more, along the singular pairs of -Ψ above 1, of the size of
    those there are: smaller ones would not have grown before the blocks count as closed."""
    problem, factors = blocks.problem, balanced(blocks.problem, now.factors)
    d = factors.dimensions
    table = scaled(problem.rated.table(blocks.whole(now).slopes), problem.of_users, problem.of_items)
    left, size, right = top_pairs(table, min(d, most - d))
    fresh = size > 1.0
    if not fresh.any():
        return None
    held = problem.of_users @ factors.users**2  # λ‖column‖², twice what each factor costs
    root = np.sqrt(np.median(held[held > 0]) if (held > 0).any() else size[fresh])
    users = -left[:, fresh] * root / np.sqrt(problem.of_users)[:, None]
    items = right[:, fresh] * root / np.sqrt(problem.of_items)[:, None]
    return replace(
        factors,
        users=np.ascontiguousarray(np.hstack([factors.users, users])),
        items=np.ascontiguousarray(np.hstack([factors.items, items])),
    )
