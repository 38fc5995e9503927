"""Which planes carry weight, and the moves among them.

In every group one plane with weight is its base; the others are open, and open plane i moves weight between itself and
its base: a direction with the row slopes[i] - slopes[base]. These rows are kept independent, so that there is one best
point for the open planes; at an optimum of many groups most have a base only. Plane m + g, after the m planes, is the
zero plane of group g: its weight is what the group leaves unused.
"""

import math
from typing import NamedTuple

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from formulations.masters.factor import MATRIX, drop, inner, join, project, refresh, solve

__all__ = ["PROGRAM", "WORKING", "Program", "Working", "admit", "combined", "newton", "opened"]


REFRESHED = 30
"""Changes of the factor after which it is made anew."""


class Program(NamedTuple):
    """The data of a margin dual; groups[offsets[g]:offsets[g + 1]] are the planes of group g."""

    slopes: Floats
    values: Floats
    group: Ints
    capacity: Floats
    lam: float
    groups: Ints
    offsets: Ints


class Working(NamedTuple):
    """A point and its open planes: weights (m + G), base of each group, the planes that are open or wait to be, the
    rows and factor of those open, v = slopesᵀ weights, room for vectors, and counts (open, waiting, and
    changes of the factor since it was made)."""

    weights: Floats
    base: Ints
    open: Ints
    waiting: Ints
    rows: Floats
    factor: Floats
    v: Floats
    fresh: Floats
    mix: Floats
    shift: Floats
    counts: Ints


READ_MATRIX = nb.types.Array(nb.float64, 2, "C", readonly=True)
PROGRAM = nb.types.NamedTuple(
    (READ_MATRIX, READ_FLOATS, READ_INTS, READ_FLOATS, nb.float64, READ_INTS, READ_INTS), Program
)
WORKING = nb.types.NamedTuple((FLOATS, INTS, INTS, INTS, MATRIX, MATRIX, FLOATS, FLOATS, FLOATS, FLOATS, INTS), Working)


@compiled(nb.int64(PROGRAM, nb.int64))
def group_of(program: Program, plane: int) -> int:
    planes = program.values.size
    return plane - planes if plane >= planes else program.group[plane]


@compiled(nb.float64(PROGRAM, nb.int64))
def height(program: Program, plane: int) -> float:
    return 0.0 if plane >= program.values.size else program.values[plane]


@compiled(nb.void(PROGRAM, nb.int64, nb.int64, FLOATS))
def difference(program: Program, plane: int, base: int, row: Floats) -> None:
    """Write slopes[plane] - slopes[base] to row."""
    planes = program.values.size
    if plane < planes:
        row[:] = program.slopes[plane]
    else:
        row[:] = 0.0
    if base < planes:
        row -= program.slopes[base]


@compiled(nb.void(PROGRAM, WORKING))
def combined(program: Program, working: Working) -> None:
    """Make each group's weights sum to its capacity again, and v what they give."""
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


@compiled(nb.void(WORKING, nb.int64))
def close(working: Working, place: int) -> None:
    """The open plane at this place is open no longer."""
    count = working.counts[0]
    drop(working.factor, count, place)
    working.counts[2] += 1
    for i in range(place, count - 1):
        working.open[i] = working.open[i + 1]
        working.rows[i] = working.rows[i + 1]
    working.counts[0] = count - 1


@compiled(nb.void(PROGRAM, WORKING, nb.int64, nb.int64))
def rebase(program: Program, working: Working, g: int, other: int) -> None:
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


@compiled(nb.float64(PROGRAM, WORKING, nb.int64, nb.float64, nb.float64))
def move(program: Program, working: Working, fresh: int, slope: float, longest: float) -> float:
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


@compiled(nb.void(PROGRAM, WORKING, nb.int64, nb.float64))
def admit(program: Program, working: Working, plane: int, flat: float) -> None:
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


@compiled(nb.void(PROGRAM, WORKING, nb.float64))
def opened(program: Program, working: Working, flat: float) -> None:
    """Open all planes that wait."""
    for _ in range(20 + 10 * working.rows.shape[0]):
        if working.counts[1] == 0:
            break
        working.counts[1] -= 1
        plane = working.waiting[working.counts[1]]
        if working.weights[plane] > 0.0:
            admit(program, working, plane, flat)


@compiled(nb.float64(PROGRAM, WORKING))
def newton(program: Program, working: Working) -> float:
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
