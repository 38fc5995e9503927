"""The working set of planes with weight, moves of weight among them, and an updated Cholesky factor.

In every group one plane with weight is the base; the others are open. Open plane i moves weight between itself and its
base: a direction with the row slopes[i] - slopes[base]. These rows are linearly independent, so the best point for the
open planes is unique. Plane m + g, after the m planes, is the zero plane of group g: its weight is the unused capacity.

The Cholesky factor L Lᵀ = D Dᵀ of independent rows D (k × d) is updated row by row. The part of a new row orthogonal to
D is computed from the rows, not from the Gram matrix, which gives twice as many digits for nearly dependent rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from formulations.arrays import Floats, Ints, Out, Table
from formulations.compiled import compiled, inlined

ROUNDING = 8.0 * 2.0**-52


class MarginDual(NamedTuple):
    """The data of a margin dual; groups[offsets[g]:offsets[g + 1]] are the planes of group g."""

    slopes: Table[Floats]
    values: Floats
    group: Ints
    capacity: Floats
    lam: float
    groups: Ints
    offsets: Ints


class WorkingSet(NamedTuple):
    """A point and its open planes: weights (m + G), base of each group, the open and waiting planes, the
    rows and factor of the open ones, v = slopesᵀ weights, buffers, and counts (open, waiting, changes of the factor
    since it was computed)."""

    weights: Out[Floats]
    base: Out[Ints]
    open: Out[Ints]
    waiting: Out[Ints]
    rows: Out[Table[Floats]]
    factor: Out[Table[Floats]]
    v: Out[Floats]
    fresh: Out[Floats]
    mix: Out[Floats]
    shift: Out[Floats]
    counts: Out[Ints]


@compiled(reassociate=True, numpy=np.dot, internal=True)
def inner(x: Floats, y: Floats) -> float:
    """x·y, summed in the fastest order."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


def _solve(factor: Floats, count: int, right: Floats) -> None:
    for i in range(count):
        right[i] = (right[i] - factor[i, :i] @ right[:i]) / factor[i, i]
    for i in range(count - 1, -1, -1):
        right[i] /= factor[i, i]
        right[:i] -= factor[i, :i] * right[i]


@compiled(numpy=_solve, internal=True)
def solve(factor: Table[Floats], count: int, right: Out[Floats]) -> None:
    """Overwrite right with (L Lᵀ)⁻¹ right."""
    for i in range(count):
        right[i] = (right[i] - inner(factor[i, :i], right[:i])) / factor[i, i]
    for i in range(count - 1, -1, -1):
        right[i] /= factor[i, i]
        for j in range(i):
            right[j] -= factor[i, j] * right[i]


def _project(rows: Floats, factor: Floats, count: int, fresh: Floats, mix: Floats) -> bool:
    length = math.sqrt(fresh @ fresh)
    mix[:count] = 0.0
    noise, held = length, rows[:count]
    lengths = np.sqrt(np.einsum("ij,ij->i", factor[:count, :count], factor[:count, :count]))
    for _ in range(3):
        change = held @ fresh
        _solve(factor, count, change)
        mix[:count] += change
        noise = length + np.abs(mix[:count]) @ lengths
        fresh -= change @ held
        left = math.sqrt(fresh @ fresh)
        if left > 0.1 * length:
            break
        if left <= ROUNDING * noise:
            return False
    return bool(math.sqrt(fresh @ fresh) > ROUNDING * noise)


@compiled(numpy=_project, internal=True)
def project(rows: Table[Floats], factor: Table[Floats], count: int, fresh: Out[Floats], mix: Out[Floats]) -> bool:
    """Take from `fresh` its part along the rows, of coefficients `mix`; returns whether the rest exceeds rounding."""
    length = math.sqrt(inner(fresh, fresh))
    mix[:count] = 0.0
    noise = length
    change = np.empty(count)
    for _ in range(3):
        for i in range(count):
            change[i] = inner(rows[i], fresh)
        solve(factor, count, change)
        noise = length
        for i in range(count):
            mix[i] += change[i]
            noise += abs(mix[i]) * math.sqrt(inner(factor[i, : i + 1], factor[i, : i + 1]))
            for j in range(fresh.size):
                fresh[j] -= change[i] * rows[i, j]
        left = math.sqrt(inner(fresh, fresh))
        if left > 0.1 * length:
            break
        if left <= ROUNDING * noise:
            return False
    return math.sqrt(inner(fresh, fresh)) > ROUNDING * noise


@compiled(internal=True)
def join(rows: Table[Floats], factor: Out[Table[Floats]], count: int) -> bool:
    """Append rows[count] to the factor; returns whether it is numerically independent of the others."""
    row = rows[count]
    for i in range(count):
        factor[count, i] = (inner(rows[i], row) - inner(factor[i, :i], factor[count, :i])) / factor[i, i]
    square = inner(row, row)
    left = square - inner(factor[count, :count], factor[count, :count])
    if left > 1e-4 * square:
        factor[count, count] = math.sqrt(left)
        return True
    return False


@inlined
def drop(factor: Floats, count: int, gone: int) -> None:
    """Remove row `gone`: the rows below move up, and plane rotations make the factor triangular again."""
    for i in range(gone, count - 1):
        for j in range(i + 2):
            factor[i, j] = factor[i + 1, j]
    for j in range(gone, count - 1):
        size = math.hypot(factor[j, j], factor[j, j + 1])
        cosine, sine = factor[j, j] / size, factor[j, j + 1] / size
        factor[j, j] = size
        for i in range(j + 1, count - 1):
            left, right = factor[i, j], factor[i, j + 1]
            factor[i, j] = cosine * left + sine * right
            factor[i, j + 1] = cosine * right - sine * left


@compiled(internal=True)
def refresh(rows: Table[Floats], factor: Out[Table[Floats]], count: int) -> None:
    """Recompute the factor, because rounding errors of rotations accumulate."""
    mix, fresh = np.empty(count), np.empty(rows.shape[1])
    for index in range(count):
        if not join(rows, factor, index):
            for j in range(fresh.size):
                fresh[j] = rows[index, j]
            project(rows, factor, index, fresh, mix)
            factor[index, index] = max(math.sqrt(inner(fresh, fresh)), 1e-300)


@inlined
def group_of(program: MarginDual, plane: int) -> int:
    """The group of a plane; plane m + g is the zero plane of group g."""
    planes = program.values.size
    return plane - planes if plane >= planes else program.group[plane]


@inlined
def height(program: MarginDual, plane: int) -> float:
    """The value of a plane; 0 for a zero plane."""
    return 0.0 if plane >= program.values.size else program.values[plane]


@inlined
def difference(program: MarginDual, plane: int, base: int, row: Floats) -> None:
    """Write slopes[plane] - slopes[base] to row."""
    planes = program.values.size
    for j in range(row.size):  # an expression of arrays would take seconds to compile
        own = program.slopes[plane, j] if plane < planes else 0.0
        row[j] = own - program.slopes[base, j] if base < planes else own


REFRESHED = 30  # changes of the factor after which it is made anew


@inlined
def close(working: WorkingSet, index: int) -> None:
    """Close the open plane at this index."""
    count = working.counts[0]
    drop(working.factor, count, index)
    working.counts[2] += 1
    for i in range(index, count - 1):
        working.open[i] = working.open[i + 1]
        for j in range(working.v.size):
            working.rows[i, j] = working.rows[i + 1, j]
    working.counts[0] = count - 1


@compiled(internal=True)
def rebase(program: MarginDual, working: WorkingSet, g: int, other: int) -> None:
    """The base of group g has lost its weight: the heaviest open plane (or `other`) replaces it, the rest wait."""
    best = other
    for index in range(working.counts[0] - 1, -1, -1):
        plane = working.open[index]
        if group_of(program, plane) == g:
            if best < 0 or working.weights[plane] > working.weights[best]:
                best = plane
            working.waiting[working.counts[1]] = plane
            working.counts[1] += 1
            close(working, index)
    working.base[g] = best


@compiled(internal=True)
def move(program: MarginDual, working: WorkingSet, fresh: int, slope: float, longest: float) -> float:
    """Move along `mix` (for open planes) and `slope` (for the plane `fresh`, if not -1), at most `longest` times.

    If a weight falls to zero before that, its plane is closed, or its group gets another base. Returns the step length.
    """
    weights, mix, shift = working.weights, working.mix, working.shift
    count = working.counts[0]
    if fresh >= 0:
        shift[group_of(program, fresh)] = 0.0
    for index in range(count):
        shift[group_of(program, working.open[index])] = 0.0
    reach, which = longest, -1
    if fresh >= 0:
        shift[group_of(program, fresh)] -= slope
        if slope < 0.0 and -weights[fresh] / slope < reach:
            reach, which = -weights[fresh] / slope, fresh
    for index in range(count):
        plane = working.open[index]
        shift[group_of(program, plane)] -= mix[index]
        if mix[index] < 0.0 and -weights[plane] / mix[index] < reach:
            reach, which = -weights[plane] / mix[index], plane
    for index in range(-1, count):
        plane = fresh if index < 0 else working.open[index]
        if plane < 0:
            continue
        g = group_of(program, plane)
        if shift[g] < 0.0 and -weights[working.base[g]] / shift[g] < reach:
            reach, which = -weights[working.base[g]] / shift[g], working.base[g]
    if math.isinf(reach):
        return 0.0
    for index in range(-1, count):
        plane = fresh if index < 0 else working.open[index]
        if plane < 0:
            continue
        weights[plane] = max(0.0, weights[plane] + reach * (slope if index < 0 else mix[index]))
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
        for index in range(count):
            if working.open[index] == which:
                close(working, index)
                break
    return reach


@compiled(internal=True)
def admit(program: MarginDual, working: WorkingSet, plane: int, flat: float) -> None:
    """Open a plane. If its row nearly depends on those of open planes, so that curvature cannot change the objective by
    more than `flat`, weight moves uphill among them until one is empty and is closed."""
    g = group_of(program, plane)
    for index in range(working.counts[0]):
        if working.open[index] == plane:
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
        for index in range(count):
            other = working.open[index]
            lower = height(program, working.base[group_of(program, other)])
            gain -= working.mix[index] * (height(program, other) - lower)
        sign = 1.0 if gain > 0.0 else -1.0
        for index in range(count):
            working.mix[index] *= -sign
        reach = move(program, working, plane, sign, np.inf)
        for j in range(working.v.size):
            working.v[j] += sign * reach * working.fresh[j]
        if sign < 0.0 and working.weights[plane] == 0.0:
            return


@compiled(internal=True)
def newton(program: MarginDual, working: WorkingSet) -> float:
    """Move to the best point for the open planes; returns the gain, or -1 if a weight fell to zero first."""
    count, mix = working.counts[0], working.mix
    if working.counts[2] > REFRESHED:
        refresh(working.rows, working.factor, count)
        working.counts[2] = 0
    gradient = np.empty(count)
    for index in range(count):
        plane = working.open[index]
        gain = height(program, plane) - height(program, working.base[group_of(program, plane)])
        gradient[index] = gain - inner(working.rows[index], working.v) / program.lam
        mix[index] = program.lam * gradient[index]
    solve(working.factor, count, mix)
    gained = 0.5 * inner(gradient, mix[:count])
    along = working.fresh
    along[:] = 0.0
    for index in range(count):
        for j in range(along.size):
            along[j] += mix[index] * working.rows[index, j]
    reach = move(program, working, -1, 0.0, 1.0)
    for j in range(along.size):
        working.v[j] += reach * along[j]
    return gained if reach == 1.0 else -1.0
