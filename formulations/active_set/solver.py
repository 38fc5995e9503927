"""Solvers of the margin dual from initial weights: the active-set loop and block-coordinate ascent.

Block-coordinate ascent: each group in turn moves weight from its lowest plane to its highest one.
"""

from __future__ import annotations

import numpy as np

from formulations.active_set.working_set import (
    MarginDual,
    WorkingSet,
    admit,
    difference,
    inner,
    newton,
)
from formulations.arrays import Bools, Floats, Ints, Out, frozen
from formulations.compiled import compiled, inlined
from formulations.errors import SolverError
from formulations.problems.problem import EPSILON
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.sorting import sort_few

FLAT = 1e-11

CREEP = 1e-5
"""Less than this part of the gap is no progress: where rows nearly depend on each other, steps may stay that short."""


def _price_group(
    program: MarginDual, working: WorkingSet, g: int, barred: np.ndarray, best: Ints, excess: Floats
) -> float:
    planes, base = program.values.size, working.base[g]
    held = program.groups[program.offsets[g] : program.offsets[g + 1]]
    rise = program.values[held] - program.slopes[held] @ working.v / program.lam
    at_base = 0.0 if base >= planes else float(rise[np.searchsorted(held, base)])
    choice, free = planes + g, 0.0
    open_ = np.where(barred[held], 0.0, rise)
    if held.size:
        highest = int(open_.argmax())
        if open_[highest] > 0.0:
            choice, free = held[highest], float(open_[highest])
    if free == 0.0 and barred[planes + g]:
        choice, free = base, at_base
    best[g], excess[g] = choice, program.capacity[g] * (free - at_base)
    return float(program.capacity[g] * rise.max(initial=0.0) - working.weights[held] @ rise)


@compiled(numpy=_price_group, internal=True)
def price_group(
    program: MarginDual, working: WorkingSet, g: int, barred: Bools, best: Out[Ints], excess: Out[Floats]
) -> float:
    """The contribution of group g to the gap; best[g], its plane with the largest excess over the base; excess[g]."""
    planes, weights = program.values.size, working.weights
    base = working.base[g]
    at_base, highest, free = 0.0, 0.0, 0.0
    carried = 0.0
    choice = planes + g
    for at in range(program.offsets[g], program.offsets[g + 1]):
        i = program.groups[at]
        rise = program.values[i] - inner(program.slopes[i], working.v) / program.lam
        carried += weights[i] * rise
        if i == base:
            at_base = rise
        highest = max(highest, rise)
        if rise > free and not barred[i]:
            choice, free = i, rise
    if free == 0.0 and barred[planes + g]:
        choice, free = base, at_base
    best[g], excess[g] = choice, program.capacity[g] * (free - at_base)
    gap: float = program.capacity[g] * highest - carried
    return gap


@compiled(internal=True)
def settle(program: MarginDual, working: WorkingSet, small: float, flat: float, rounds: int) -> None:
    """Newton steps to the best point for the open planes, dropping those without weight; at most so many full steps."""
    quiet = 0
    for _ in range(4 * working.weights.size + 100):
        for _ in range(20 + 10 * working.rows.shape[0]):  # open all waiting planes
            if working.counts[1] == 0:
                break
            working.counts[1] -= 1
            plane = working.waiting[working.counts[1]]
            if working.weights[plane] > 0.0:
                admit(program, working, plane, flat)
        gained = newton(program, working)
        if gained < 0.0:
            quiet = 0
            continue
        quiet += 1
        if gained <= small or quiet == rounds:
            return


@inlined
def _copy(source: Floats, target: Floats) -> None:
    for i in range(source.size):
        target[i] = source[i]


def _combined(program: MarginDual, working: WorkingSet) -> None:
    planes, weights = program.values.size, working.weights
    total = weights[planes:] + np.bincount(program.group, weights[:planes], program.capacity.size)
    factor = program.capacity / total
    weights[planes:] *= factor
    weights[:planes] *= factor[program.group]
    working.v[:] = weights[:planes] @ program.slopes


@compiled(numpy=_combined, internal=True)
def combined(program: MarginDual, working: WorkingSet) -> None:
    """Rescale each group's weights to its capacity, and recompute v."""
    planes, weights = program.values.size, working.weights
    working.v[:] = 0.0
    for g in range(program.capacity.size):
        total = weights[planes + g]
        for at in range(program.offsets[g], program.offsets[g + 1]):
            total += weights[program.groups[at]]
        factor = program.capacity[g] / total
        weights[planes + g] *= factor
        for at in range(program.offsets[g], program.offsets[g + 1]):
            i = program.groups[at]
            if weights[i] > 0.0:
                weights[i] *= factor
                for j in range(working.v.size):
                    working.v[j] += weights[i] * program.slopes[i, j]


def _started(program: MarginDual, working: WorkingSet) -> float:
    _combined(program, working)
    best = float(working.weights[: program.values.size] @ program.values - 0.5 * working.v @ working.v / program.lam)
    curvature = np.einsum("ij,ij->i", program.slopes, program.slopes) / program.lam
    share, rises = program.capacity[program.group], program.values > 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(program.values < curvature * share, program.values / curvature, share)
        alone = share * (program.values - 0.5 * share * curvature)
    return max(best, float(alone[rises].max(initial=-np.inf)))


@compiled(numpy=_started, internal=True)
def started(program: MarginDual, working: WorkingSet) -> float:
    """A lower bound of the optimum: the objective of the current weights, or of a single plane."""
    planes, v = program.values.size, working.v
    combined(program, working)
    best = -0.5 * inner(v, v) / program.lam
    for i in range(planes):
        best += working.weights[i] * program.values[i]
    for i in range(planes):
        curvature = inner(program.slopes[i], program.slopes[i]) / program.lam
        share = program.capacity[program.group[i]]
        if program.values[i] <= 0.0:
            continue
        if program.values[i] < curvature * share:
            share = program.values[i] / curvature
        best = max(best, share * (program.values[i] - 0.5 * share * curvature))
    return best


@compiled()
def ascend(program: MarginDual, working: WorkingSet, tolerance: float, limit: int) -> tuple[float, float]:
    """Open planes above their base until there is none; leaves the best weights, returns their gap and the steps."""
    planes, groups = program.values.size, program.capacity.size
    weights = working.weights
    barred = np.zeros(planes + groups, np.bool_)
    best, excess = np.zeros(groups, np.int64), np.zeros(groups)
    order = np.empty(groups, np.int64)
    flat = FLAT * started(program, working)
    steepest = 0.0
    for i in range(planes):
        steepest = max(steepest, inner(program.slopes[i], program.slopes[i]))
    steepest = np.sqrt(steepest)
    found, least, highest, value, small = np.empty(planes + groups), np.inf, -np.inf, 0.0, 0.0
    capacity = 0.0
    for g in range(groups):
        capacity += program.capacity[g]
    idle, steps = 0, 0
    settled = False
    while True:
        combined(program, working)
        if settled:
            settle(program, working, 0.01 * small, flat, 3)
        gap = 0.0
        for g in range(groups):
            gap += price_group(program, working, g, barred, best, excess)
        linear = rough = 0.0
        for i in range(planes):
            linear += weights[i] * program.values[i]
            rough += weights[i] * abs(program.values[i])
        value = linear - 0.5 * inner(working.v, working.v) / program.lam
        # v is updated, not recomputed from the weights, so rounding of the weights affects the objective only
        lengths = steepest * np.sqrt(inner(working.v, working.v)) / program.lam
        rounding = 2.0 * EPSILON * (rough + lengths * capacity)
        small = max(tolerance * abs(value), rounding)
        if gap < least:
            _copy(weights, found)
        rises = value > highest + 4.0 * EPSILON * abs(value)
        moves = value > highest + CREEP * least or gap < (1.0 - CREEP) * least
        idle = 0 if moves else idle + 1
        if rises:
            barred[:] = False
        highest, least = max(highest, value), min(gap, least)
        if gap <= small or steps >= limit or idle > 10 + working.counts[0]:
            _copy(found, weights)
            return least, float(steps)
        if not settled:  # the start is not optimal
            settled = True
            continue
        for g in range(groups):
            order[g] = g
        sort_few(order, excess)
        for turn in range(groups):
            g = int(order[turn])
            if turn:
                price_group(program, working, g, barred, best, excess)
            if excess[g] <= 0.25 * small / groups or best[g] == working.base[g]:
                continue
            barred[best[g]] = True
            admit(program, working, best[g], flat)
            if turn < groups - 1:
                settle(program, working, 0.01 * small, flat, 1)
            steps += 1
            if steps >= limit:
                break


PATIENCE = 8  # sweeps in which the gap must halve, or no more are made


@compiled()
def swept(program: MarginDual, weights: Out[Floats], v: Out[Floats], tolerance: float, limit: int) -> int:
    """Sweep over all groups until the gap is small or falls slowly; v = slopesᵀ weights is updated. Returns the sweeps.

    A sweep costs one evaluation of all planes. It finds the plane of most groups with a single active plane; weights
    shared by several planes converge slowly.
    """
    planes, groups = program.values.size, program.capacity.size
    rise, apart = np.zeros(planes + 1), np.empty(v.size)
    mark, at_mark = np.inf, 0
    for sweep in range(limit):
        gap = value = 0.0
        for g in range(groups):
            first, end = program.offsets[g], program.offsets[g + 1]
            high, highest = planes + g, 0.0
            low, lowest = planes + g, np.inf
            carried = 0.0
            if weights[planes + g] > 0.0:
                lowest = 0.0
            for at in range(first, end):
                i = program.groups[at]
                rise[i] = program.values[i] - inner(program.slopes[i], v) / program.lam
                carried += weights[i] * rise[i]
                value += weights[i] * program.values[i]
                if rise[i] > highest:
                    high, highest = i, rise[i]
                if weights[i] > 0.0 and rise[i] < lowest:
                    low, lowest = i, rise[i]
            gap += program.capacity[g] * highest - carried
            if high == low or highest <= lowest:
                continue
            difference(program, high, low, apart)
            curvature = 0.0
            for j in range(v.size):
                curvature += apart[j] ** 2
            moved = weights[low]
            if curvature * moved > program.lam * (highest - lowest):
                moved = program.lam * (highest - lowest) / curvature
                weights[low] -= moved
            else:
                weights[low] = 0.0
            weights[high] += moved
            for j in range(v.size):
                v[j] += moved * apart[j]
        value -= 0.5 * inner(v, v) / program.lam
        if gap <= tolerance * abs(value):
            return sweep + 1
        if gap <= 0.5 * mark:
            mark, at_mark = gap, sweep
        elif sweep - at_mark >= PATIENCE:
            return sweep + 1
    return limit


LOST = 1e-7
"""Relative gap above which the solver restarts from zero: with nearly dependent planes a start may allow no progress
above rounding."""

SWEEPS = 200  # maximum number of initial sweeps over the groups


def climbed(
    problem: GroupedSimplexQP, start: Floats | None, tolerance: float, limit: int, compiled: bool
) -> tuple[Floats, Floats, int, float]:
    """The best weights α of the planes from the feasible `start` if passed, without it or progress from zero; the step
    -slopesᵀα / lam, the number of steps, and the remaining gap. limit: the maximum number of steps, 0 for 200 and 50
    per plane. compiled: else in pure Python."""
    slopes, values, group, capacity = problem.slopes, problem.values, problem.group, problem.capacity
    lam = float(problem.lam)
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
    if working is None or (taken < steps and gap > lost * abs(problem.value(working.weights[:planes]))):
        cold, left, more = _climb(program, np.zeros(planes), tolerance, steps - taken, compiled)
        taken += more
        if working is None or left < gap:
            working, gap = cold, left
    weights = working.weights[:planes]
    if not np.isfinite(weights).all():
        raise SolverError("the active-set solver lost accuracy: the planes differ too much in scale. Rescale them.")
    return weights, -working.v / lam, taken, gap


def _climb(
    program: MarginDual, alpha: Floats, tolerance: float, limit: int, compiled: bool
) -> tuple[WorkingSet, float, int]:
    """Weights, gap and steps from alpha."""
    planes, features = program.slopes.shape
    groups = program.capacity.size
    capacity = max(1, min(planes, features))
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
        np.zeros(capacity, dtype=np.int64),
        waiting,
        np.zeros((capacity, features)),
        np.zeros((capacity, capacity)),
        np.zeros(features),
        np.zeros(features),
        np.zeros(capacity),
        np.zeros(groups),
        np.array([0, half.size, 0], dtype=np.int64),
    )
    gap, steps = (ascend if compiled else ascend.in_python)(program, working, tolerance, limit)
    return working, gap, int(steps)
