"""Moves of weight among planes: to the best point for the open ones, and planes opened and closed on the way."""

import math

import numba as nb
import numpy as np

from formulations.active_set.cholesky import drop, inner, join, project, refresh, solve
from formulations.active_set.working_set import (
    MARGIN_DUAL,
    WORKING,
    MarginDual,
    WorkingSet,
    difference,
    group_of,
    height,
)
from formulations.compiled import compiled

__all__ = ["admit", "newton"]

REFRESHED = 30
"""Changes of the factor after which it is made anew."""


@compiled(nb.void(WORKING, nb.int64))
def close(working: WorkingSet, place: int) -> None:
    """The open plane at this place is open no longer."""
    count = working.counts[0]
    drop(working.factor, count, place)
    working.counts[2] += 1
    for i in range(place, count - 1):
        working.open[i] = working.open[i + 1]
        for j in range(working.v.size):
            working.rows[i, j] = working.rows[i + 1, j]
    working.counts[0] = count - 1


@compiled(nb.void(MARGIN_DUAL, WORKING, nb.int64, nb.int64))
def rebase(program: MarginDual, working: WorkingSet, g: int, other: int) -> None:
    """The base of group g has lost its weight: the heaviest open plane (or `other`) takes its place, the rest wait."""
    best = other
    for place in range(working.counts[0] - 1, -1, -1):
        plane = working.open[place]
        if group_of(program, plane) == g:
            if best < 0 or working.weights[plane] > working.weights[best]:
                best = plane
            working.waiting[working.counts[1]] = plane
            working.counts[1] += 1
            close(working, place)
    working.base[g] = best


@compiled(nb.float64(MARGIN_DUAL, WORKING, nb.int64, nb.float64, nb.float64))
def move(program: MarginDual, working: WorkingSet, fresh: int, slope: float, longest: float) -> float:
    """Go along `mix` (for open planes) and `slope` (for the plane `fresh`, if not -1), at most `longest` times.

    Where a weight falls to zero before that, its plane is closed, or its group has another base from then on. Returns
    how far it went.
    """
    weights, mix, shift = working.weights, working.mix, working.shift
    count = working.counts[0]
    if fresh >= 0:
        shift[group_of(program, fresh)] = 0.0
    for place in range(count):
        shift[group_of(program, working.open[place])] = 0.0
    reach, which = longest, -1
    if fresh >= 0:
        shift[group_of(program, fresh)] -= slope
        if slope < 0.0 and -weights[fresh] / slope < reach:
            reach, which = -weights[fresh] / slope, fresh
    for place in range(count):
        plane = working.open[place]
        shift[group_of(program, plane)] -= mix[place]
        if mix[place] < 0.0 and -weights[plane] / mix[place] < reach:
            reach, which = -weights[plane] / mix[place], plane
    for place in range(-1, count):
        plane = fresh if place < 0 else working.open[place]
        if plane < 0:
            continue
        g = group_of(program, plane)
        if shift[g] < 0.0 and -weights[working.base[g]] / shift[g] < reach:
            reach, which = -weights[working.base[g]] / shift[g], working.base[g]
    if math.isinf(reach):
        return 0.0
    for place in range(-1, count):
        plane = fresh if place < 0 else working.open[place]
        if plane < 0:
            continue
        weights[plane] = max(0.0, weights[plane] + reach * (slope if place < 0 else mix[place]))
        g = group_of(program, plane)
        if shift[g] != 0.0:
            weights[working.base[g]] = max(0.0, weights[working.base[g]] + reach * shift[g])
            shift[g] = 0.0
    if which < 0:
        return reach
    weights[which] = 0.0
    g = group_of(program, which)
    if working.base[g] == which:
        rebase(program, working, g, fresh if fresh >= 0 and group_of(program, fresh) == g else -1)
    elif which != fresh:
        for place in range(count):
            if working.open[place] == which:
                close(working, place)
                break
    return reach


@compiled(nb.void(MARGIN_DUAL, WORKING, nb.int64, nb.float64))
def admit(program: MarginDual, working: WorkingSet, plane: int, flat: float) -> None:
    """Open a plane. Where its row nearly depends on those of open planes, so that curvature cannot change the objective
    by more than `flat`, weight is moved among them uphill until one of them has none left and goes."""
    g = group_of(program, plane)
    for place in range(working.counts[0]):
        if working.open[place] == plane:
            return
    for _ in range(working.rows.shape[0] + 2):
        base = working.base[g]
        if plane == base:
            return
        count = working.counts[0]
        curved = program.lam * flat / program.capacity[g] ** 2
        if count < working.rows.shape[0]:
            difference(program, plane, base, working.rows[count])
            free = join(working.rows, working.factor, count) and working.factor[count, count] ** 2 > curved
        else:
            free = False
        if not free:
            difference(program, plane, base, working.fresh)
            free = project(working.rows, working.factor, count, working.fresh, working.mix)
            square = inner(working.fresh, working.fresh)
            free = free and count < working.rows.shape[0] and square > curved
            if free:
                working.factor[count, count] = math.sqrt(square)
        if free:
            working.open[count] = plane
            working.counts[0] = count + 1
            working.counts[2] += 1
            return
        gain = height(program, plane) - height(program, base) - inner(working.fresh, working.v) / program.lam
        for place in range(count):
            other = working.open[place]
            lower = height(program, working.base[group_of(program, other)])
            gain -= working.mix[place] * (height(program, other) - lower)
        sign = 1.0 if gain > 0.0 else -1.0
        for place in range(count):
            working.mix[place] *= -sign
        reach = move(program, working, plane, sign, np.inf)
        for j in range(working.v.size):
            working.v[j] += sign * reach * working.fresh[j]
        if sign < 0.0 and working.weights[plane] == 0.0:
            return


@compiled(nb.float64(MARGIN_DUAL, WORKING))
def newton(program: MarginDual, working: WorkingSet) -> float:
    """Move to the best point for the open planes: what that gained, or -1 where a weight fell to zero on the way."""
    count, mix = working.counts[0], working.mix
    if working.counts[2] > REFRESHED:
        refresh(working.rows, working.factor, count)
        working.counts[2] = 0
    gradient = np.empty(count)
    for place in range(count):
        plane = working.open[place]
        gain = height(program, plane) - height(program, working.base[group_of(program, plane)])
        gradient[place] = gain - inner(working.rows[place], working.v) / program.lam
        mix[place] = program.lam * gradient[place]
    solve(working.factor, count, mix)
    gained = 0.5 * inner(gradient, mix[:count])
    along = working.fresh
    along[:] = 0.0
    for place in range(count):
        for j in range(along.size):
            along[j] += mix[place] * working.rows[place, j]
    reach = move(program, working, -1, 0.0, 1.0)
    for j in range(along.size):
        working.v[j] += reach * along[j]
    return gained if reach == 1.0 else -1.0
