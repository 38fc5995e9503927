"""The best group at each position under limits on prefixes: positions enter one by one along shortest paths.

Node (g, p) is a unit of group g before position p + 1. From it a unit passes position p (N[g, p] rises: it earns the
next worth), goes back over position p - 1 (N[g, p - 1] falls), or changes to another group where position p does. Units
that lower limits still ask for come first, whatever they earn: lengths are pairs (asked for, earned). Sweeps along the
positions, forth and back, settle the lengths; few are needed, as paths turn around seldom.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.compiled import INTS, READ_INTS, compiled
from formulations.errors import Infeasible
from formulations.forms.prefix_group_ranking import NOISE, WORK, PrefixGroupRanking

__all__ = ["place_groups", "prefix_argmax"]

WORTH = nb.types.Array(nb.float64, 2, "C", readonly=True)
LIMITS = nb.types.Array(nb.int64, 2, "C", readonly=True)
MASK = nb.types.Array(nb.bool_, 2, "C", readonly=True)
COUNTS = nb.types.Array(nb.int64, 2, "C")

FOUND, NONE, LOST = 1, 0, -1

STARTS, PASSES, GOES_BACK = -2, -3, -4
"""How a path came to a node: from outside, over the position before, over its own position; else from a group."""


@compiled(nb.int64(WORTH, READ_INTS, LIMITS, LIMITS, MASK, nb.float64, INTS, COUNTS))
def place_groups(
    worth: Floats, start: Ints, lower: Ints, upper: Ints, banned: Bools, noise: float, group: Ints, held: Ints
) -> int:
    """group[p] of the best sequence, held[g, p] how many of g stand at positions 0 .. p. FOUND; NONE
    where limits leave none; LOST where rounding hides which way is longer: then ask with more noise.

    start: the first column of each group in worth, whose rows are positions. upper counts no more than there are of a
    group. What is earned within `noise` is equal.
    """
    groups, k = lower.shape
    asked = np.empty((groups, k), np.int64)
    earned = np.empty((groups, k))
    came = np.empty((groups, k), np.int64)
    reached = np.empty((groups, k), np.bool_)
    group[:] = -1
    held[:, :] = 0
    for entering in range(k):
        reached[:, :] = False
        for g in range(groups):
            if not banned[g, entering]:
                reached[g, entering], asked[g, entering], earned[g, entering] = True, 0, 0.0
                came[g, entering] = STARTS
        end, end_asked, end_earned = -1, 0, 0.0
        moved, sweeps = True, 0
        while moved and sweeps <= groups * k:
            moved = False
            sweeps += 1
            for p in range(k):
                h = group[p]
                if h >= 0 and reached[h, p]:
                    for g in range(groups):
                        if g == h or banned[g, p]:
                            continue
                        more = asked[h, p] - asked[g, p] if reached[g, p] else 1
                        if more > 0 or (more == 0 and earned[h, p] > earned[g, p] + noise):
                            reached[g, p], asked[g, p], earned[g, p], came[g, p] = True, asked[h, p], earned[h, p], h
                            moved = True
                for g in range(groups):
                    n = held[g, p]
                    if not reached[g, p] or n >= upper[g, p]:
                        continue
                    wanted = asked[g, p] + (1 if n < lower[g, p] else 0)
                    worthy = earned[g, p] + worth[p, start[g] + n]
                    if p == k - 1:
                        more = wanted - end_asked if end >= 0 else 1
                        if more > 0 or (more == 0 and worthy > end_earned + noise):
                            end, end_asked, end_earned = g, wanted, worthy
                        continue
                    more = wanted - asked[g, p + 1] if reached[g, p + 1] else 1
                    if more > 0 or (more == 0 and worthy > earned[g, p + 1] + noise):
                        reached[g, p + 1], asked[g, p + 1], earned[g, p + 1] = True, wanted, worthy
                        came[g, p + 1] = PASSES
                        moved = True
            for p in range(k - 1, -1, -1):
                h = group[p]
                if h >= 0 and reached[h, p]:
                    for g in range(groups):
                        if g == h or banned[g, p]:
                            continue
                        more = asked[h, p] - asked[g, p] if reached[g, p] else 1
                        if more > 0 or (more == 0 and earned[h, p] > earned[g, p] + noise):
                            reached[g, p], asked[g, p], earned[g, p], came[g, p] = True, asked[h, p], earned[h, p], h
                            moved = True
                if p == 0:
                    continue
                for g in range(groups):
                    n = held[g, p - 1]
                    if not reached[g, p] or n == 0:
                        continue
                    wanted = asked[g, p] - (1 if n <= lower[g, p - 1] else 0)
                    worthy = earned[g, p] - worth[p - 1, start[g] + n - 1]
                    more = wanted - asked[g, p - 1] if reached[g, p - 1] else 1
                    if more > 0 or (more == 0 and worthy > earned[g, p - 1] + noise):
                        reached[g, p - 1], asked[g, p - 1], earned[g, p - 1] = True, wanted, worthy
                        came[g, p - 1] = GOES_BACK
                        moved = True
        if end < 0:
            return NONE
        g, p = end, k - 1
        held[g, p] += 1
        steps = 0
        while came[g, p] != STARTS:
            steps += 1
            if steps > groups * k:
                return LOST
            way = came[g, p]
            if way == PASSES:
                p -= 1
                held[g, p] += 1
            elif way == GOES_BACK:
                held[g, p] -= 1
                p += 1
            else:
                group[p] = g
                g = way
        group[entering] = g
    for g in range(groups):
        for p in range(k):
            if held[g, p] < lower[g, p]:
                return NONE
    return FOUND


def prefix_argmax(problem: PrefixGroupRanking) -> tuple[Ints, Floats]:
    """The best sequence of groups, and prices (groups, k) that prove it. Raises `Infeasible` where there is none."""
    group, held = np.empty(problem.positions, dtype=np.int64), np.empty(problem.lower.shape, dtype=np.int64)
    small = not place_groups.pays(WORK * problem.groups * problem.positions**2)
    for noise in NOISES:
        told = (place_groups.in_python if small else place_groups)(*problem.network, noise * problem.scale, group, held)
        if told == FOUND:
            return group, problem.priced(group, held, compiled=not small)
        if told == NONE:
            break
    raise Infeasible(
        f"no sequence of {problem.groups} groups meets the limits on {problem.positions} prefixes; loosen one"
    )


NOISES = (NOISE, 2.0**-40, 2.0**-30)
"""Differences that count as none, to the largest worths."""
