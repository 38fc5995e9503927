"""From a margin dual and weights to start from to the best weights found, their gap, and the steps taken."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formulations.active_set.ascent import ascend
from formulations.active_set.coordinate_ascent import swept
from formulations.active_set.working_set import MarginDual, WorkingSet
from formulations.arrays import Floats, Ints, frozen
from formulations.errors import SolverFailed

__all__ = ["LOST", "climbed"]

LOST = 1e-7
"""The relative gap above which a start from given weights is given up for one from nothing: among nearly dependent
planes a start may leave no way on that rounding can tell from noise."""

SWEEPS = 200
"""At most so many sweeps over the groups come first."""


class AscentResult(NamedTuple):
    """The weights α of the planes, the step -slopesᵀα / lam, the steps taken, and the gap that is left."""

    weights: Floats
    step: Floats
    steps: int
    gap: float


def climbed(
    slopes: Floats,
    values: Floats,
    group: Ints,
    capacity: Floats,
    lam: float,
    start: Floats | None,
    tolerance: float,
    limit: int,
    compiled: bool = True,
) -> AscentResult:
    """The best weights from the feasible ones of `start` (one a plane), if given; else, or where they lead nowhere,
    from none. The steps are limited to `limit`, 0 for 200 and 50 a plane. compiled: else as Python runs it."""
    planes, groups = values.size, capacity.size
    steps = limit or 200 + 50 * planes
    order = np.arange(planes) if groups == 1 else np.argsort(group, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))])
    program = MarginDual(
        slopes, values, group, capacity, lam, frozen(order.astype(np.int64)), frozen(offsets.astype(np.int64))
    )
    working, taken, gap = None, 0, np.inf
    if start is not None:
        working, gap, taken = _climb(program, start, tolerance, steps, compiled)
    lost = max(LOST, 2.0 * tolerance)
    if working is None or (taken < steps and gap > lost * abs(_value(program, working.weights[:planes]))):
        cold, left, more = _climb(program, np.zeros(planes), tolerance, steps - taken, compiled)
        taken += more
        if working is None or left < gap:
            working, gap = cold, left
    weights = working.weights[:planes]
    if not np.isfinite(weights).all():
        raise SolverFailed("the active set lost its point: the planes are far out of scale")
    return AscentResult(weights, -working.v / lam, taken, gap)


def _value(program: MarginDual, alpha: Floats) -> float:
    """Σ values α - ‖slopesᵀα‖² / (2 lam)."""
    step = program.slopes.T @ alpha
    return float(program.values @ alpha - step @ step / (2.0 * program.lam))


def _climb(
    program: MarginDual, alpha: Floats, tolerance: float, limit: int, compiled: bool
) -> tuple[WorkingSet, float, int]:
    """Weights, gap and steps from alpha."""
    planes, features = program.slopes.shape
    groups = program.capacity.size
    room = max(1, min(planes, features))
    weights = np.concatenate([alpha, np.maximum(program.capacity - np.bincount(program.group, alpha, groups), 0.0)])
    if groups > 1:
        sweep = swept if compiled else swept.in_python
        sweep(program, weights, program.slopes.T @ alpha, tolerance, SWEEPS)
    used = np.flatnonzero(weights[:planes] > 0)
    base = planes + np.arange(groups)
    rising = used[np.argsort(weights[used], kind="stable")]
    base[program.group[rising]] = rising  # the heaviest of each group is written last
    base = np.where(weights[planes:] > weights[base], planes + np.arange(groups), base)
    half = np.concatenate([planes + np.flatnonzero((weights[planes:] > 0) & (base < planes)), rising])
    half = half[base[np.where(half < planes, program.group[np.minimum(half, planes - 1)], half - planes)] != half]
    waiting = np.zeros(planes + groups, dtype=np.int64)
    waiting[: half.size] = half  # taken from the end: the heaviest first
    working = WorkingSet(
        weights,
        base.astype(np.int64),
        np.zeros(room, dtype=np.int64),
        waiting,
        np.zeros((room, features)),
        np.zeros((room, room)),
        np.zeros(features),
        np.zeros(features),
        np.zeros(room),
        np.zeros(groups),
        np.array([0, half.size, 0], dtype=np.int64),
    )
    gap, steps = (ascend if compiled else ascend.in_python)(program, working, tolerance, limit)
    return working, gap, int(steps)
