"""Value and bound of a sequence of groups, and the bound of a ranking under limits on prefixes, in rational arithmetic.

The prices of a ranking are recovered in whole numbers, the profits being such up to a power of two: so the best ranking
has the gap 0, not nearly so.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.bridges.integer_costs import exact_costs
from formulations.certificates.rational_programs import Evidence, Exact, Rational, fractions
from formulations.forms.prefix_group_ranking import PrefixGroupRanking
from formulations.integrality.prefix_rows import PrefixRows

__all__ = ["grouped", "limited"]


def grouped(problem: PrefixGroupRanking, x: NDArray[Any], y: Floats | None) -> Evidence:
    worth, held = fractions(problem.worth), problem.counts(x)
    value = Fraction(0)
    for g, first in enumerate(problem.start.tolist()):
        for p, count in enumerate(held[g].tolist()):
            value += sum(worth[p, first : first + count], Fraction(0))
    bound: Rational = float("inf") if y is None else _priced(problem, worth, fractions(y.reshape(problem.lower.shape)))
    return Evidence(Fraction(problem.violation(x)), value, bound)


def _priced(problem: PrefixGroupRanking, worth: Any, price: Any) -> Fraction:
    """Σ_p max_g Σ_{q >= p} ρ[g, q] + Σ_{g, p} max_N (Σ_{r < N} worth - ρ N)."""
    total, groups = Fraction(0), range(problem.groups)
    for p in range(problem.positions):
        allowed = np.flatnonzero(~problem.banned[:, p]).tolist()
        total += max(sum(price[g, p:], Fraction(0)) for g in allowed)
        for g in groups:
            first, low, high = int(problem.start[g]), int(problem.lower[g, p]), int(problem.upper[g, p])
            gained = [part - price[g, p] for part in worth[p, first : first + high]]
            total += sum(gained[:low], Fraction(0)) + sum((one for one in gained[low:] if one > 0), Fraction(0))
    return total


def limited(profit: Floats, rows: PrefixRows, order: Ints) -> Fraction:
    """What prices recovered from a ranking of the set prove: Σ_j v_j + Σ μ · limit + Σ_i max_j (profit[i, j] - v_j
    - Σ_{p >= i} μ[g(j), p]), μ the price of a limit on a prefix, v >= 0 where a document may stay out."""
    k, n = profit.shape
    costs = exact_costs(profit.ravel())
    whole = np.array(costs.values, dtype=object).reshape(k, n)
    fixed = whole[-1] if k == n else whole[-1] * 0  # what all documents earn at the last position, where all are placed
    free = whole - fixed
    steps = free - np.vstack([free[1:], free[:1] * 0])
    members = [sorted(np.flatnonzero(rows.group == g).tolist(), key=lambda j: -free[0, j]) for g in range(rows.groups)]
    held = np.cumsum(rows.group[order][None, :] == np.arange(rows.groups)[:, None], axis=1)
    passing = _passing(steps, members, held, rows.group[order], rows)
    price, total = np.zeros((rows.groups, k), dtype=object), sum(fixed.tolist())
    for g, p in np.ndindex(rows.groups, k):
        count = int(held[g, p])
        after = steps[p, members[g][count]] if count < len(members[g]) else passing[g, p]
        before = steps[p, members[g][count - 1]] if count else passing[g, p]
        over, under = after - passing[g, p], before - passing[g, p]
        if over > 0 and rows.upper_row[g, p] >= 0 and count == rows.upper[g, p]:
            price[g, p] = over
        elif under < 0 and rows.lower_row[g, p] >= 0 and count == rows.lower[g, p]:
            price[g, p] = under
        total += price[g, p] * count
    excess = steps.T - (passing + price)[rows.group]
    worth = np.where(excess > 0, excess, 0).sum(axis=1)
    behind = np.cumsum(price[:, ::-1], axis=1)[:, ::-1]
    left = free - worth - behind[rows.group].T
    for i in range(k):
        total += max(left[i, ~rows.banned[rows.group, i]].tolist())
    return Fraction(total + sum(worth.tolist()), 1 << costs.exponent)


def _passing(steps: Exact, members: list[list[int]], held: Ints, group: Ints, rows: PrefixRows) -> Exact:
    """(groups, k) the prices of passing: longest ways in what may still change, in whole numbers."""
    groups, k = held.shape
    height = np.zeros((groups, k + 1), dtype=object)
    for _ in range(groups * k + 1):
        moved = False
        for p in [*range(k), *range(k - 1, -1, -1)]:
            for g in range(groups):
                count, ends = int(held[g, p]), slice(None) if p == k - 1 else g  # all groups end at one node
                offers = []
                if count < min(len(members[g]), int(rows.upper[g, p])):
                    offers.append((ends, p + 1, height[g, p] + steps[p, members[g][count]]))
                if count > rows.lower[g, p]:
                    offers.append((g, p, height[g, p + 1] - steps[p, members[g][count - 1]]))
                if not rows.banned[g, p]:
                    offers.append((g, p, height[group[p], p]))
                for node, place, offered in offers:
                    if offered > np.max(height[node, place]):
                        height[node, place] = offered
                        moved = True
        if not moved:
            break
    return np.asarray(np.diff(height, axis=1))
