"""From a matrix that is nearly a marginal ranking to one that is.

>>> near_marginal_ranking(np.array([[0.5, 0.5 + 2e-9], [0.5, 0.5]]), 1e-6).sum(axis=0).round(12)
array([1., 1.])
"""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats
from formulations.errors import InvalidProblem

__all__ = ["near_marginal_ranking"]

NOISE = (1e-12, 1e-6)
"""Entries up to the first count as zero however well the sums agree, above the second never."""


def near_marginal_ranking(P: Floats, tolerance: float) -> Floats:
    """A (k, n) matrix near P: not negative, rows of sum 1, columns of sum 1 at most (1 if k = n), to rounding.

    After Altschuler, Weed and Rigollet 2017, algorithm 2: columns and rows too heavy are scaled down, then what rows
    lack is put where columns have room, in a row's largest entries first (theirs is an outer product, which leaves
    no zero). Entries no larger than the worst violation count as zero, as long as that is rounding.

    Raises `InvalidProblem`, naming the place, where P is further than `tolerance` from its limits.
    """
    k, n = P.shape
    if k == 0 or k > n:
        raise InvalidProblem(
            f"P has shape {P.shape}, but needs a row a position, and a column for each of as many documents"
        )
    violation = _checked(P, tolerance)
    near = np.where(np.clip(violation, *NOISE) < P, P, 0.0)
    near /= np.maximum(near.sum(axis=0), 1.0)
    near /= np.maximum(near.sum(axis=1, keepdims=True), 1.0)
    room = np.maximum(1.0 - near.sum(axis=0), 0.0)
    lacking = 1.0 - near.sum(axis=1)
    for i in np.flatnonzero(lacking > 0.0):
        largest = np.argsort(-near[i], kind="stable")
        before = np.cumsum(room[largest]) - room[largest]
        put = np.clip(lacking[i] - before, 0.0, room[largest])
        near[i, largest] += put
        room[largest] -= put
    return near


def _checked(P: Floats, tolerance: float) -> float:
    """The worst violation, if it is within the tolerance."""
    k, n = P.shape
    rows, columns = P.sum(axis=1), P.sum(axis=0)
    least = int(P.argmin())
    row = int(np.abs(rows - 1.0).argmax())
    over = columns - 1.0 if k < n else np.abs(columns - 1.0)
    column = int(over.argmax())
    violations = {
        f"position {least // n} has document {least % n} with probability {P.flat[least]:.9g}": -float(P.flat[least]),
        f"position {row} holds {rows[row]:.9g} documents, but must hold 1": abs(float(rows[row]) - 1.0),
        f"document {column} stands at {columns[column]:.9g} positions, but must at 1"
        + (" at most" if k < n else ""): float(over[column]),
    }
    place = max(violations, key=lambda words: violations[words])
    if not violations[place] <= tolerance:
        raise InvalidProblem(
            f"P is no marginal ranking: {place}; solve it more accurately, or raise the tolerance of {tolerance:g}"
        )
    return max(violations[place], 0.0)
