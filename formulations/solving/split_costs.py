"""Integer programs whose numbers differ by many orders of magnitude, restated for solvers.

Costs that differ, such as penalties next to profits, are taken in two steps.

A solver's tolerance of integrality, 1e-6, times a penalty of 1e9 hides every profit. Let large costs be integer
multiples of a unit, on integer variables, and let all small costs together be less than that unit. Then an optimum for
the large costs alone comes first: no small cost makes up for one unit more. The small costs choose among these optima.

A row x - M b <= 0 with b in {0, 1}, x <= 10 and M = 1e9 is x - 16 b <= 0 for integers, whereas a solver takes b = 1e-8
for 0 (coefficient tightening).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from formulations.arrays import Floats
from formulations.problems.dual_enclosure import CARE
from formulations.problems.linear_program import LinearProgram, implied_limits
from formulations.problems.problem import Solution, unit
from formulations.solvers.solver import Solver, SolverResult
from formulations.time_limit import LEAST

WIDE = 1e5  # a ratio of numbers that solvers take in one step
LARGEST = 1e6  # of the large costs, in their unit


def solve_in_steps(solver: Solver, problem: LinearProgram, start: Solution | None) -> SolverResult:
    """The result of the solver for an integer program, in two steps if its costs require and allow it."""
    problem = tightened(problem)
    split = _split(problem)
    if split is None:
        return solver.solve(problem, start)
    large, unit, small = split
    began, first = perf_counter(), solver.solve(replace(problem, objective=large), start)
    limit: float | None = getattr(solver, "time_limit", None)
    left: Any = solver
    if limit is not None:
        left = replace(left, time_limit=max(LEAST, limit - (perf_counter() - began)))
    most = float(np.round(large @ problem.rounded(first.x)))
    reached = replace(
        problem,
        objective=small,
        matrix=csr_array(vstack([problem.matrix, large[None, :]])),
        row_lower=np.append(problem.row_lower, most),
        row_upper=np.append(problem.row_upper, most),
        rows=(),
    )
    found = left.solve(reached, None)
    details = dict(found.details)
    if first.details.get("reported_status") != "OPTIMAL":  # the second claim is about what the first one left
        details.pop("reported_bound", None)
        details["reported_status"] = first.details.get("reported_status")
    elif isinstance(details.get("reported_bound"), float):
        details["reported_bound"] += most * unit
    return SolverResult(found.x, None, f"{found.message}, after the large costs alone", details)


def tightened(problem: LinearProgram) -> LinearProgram:
    """The program with less than 1e-5 of a coefficient of a binary variable, where that leaves the same integer points:
    the row is redundant at one value of the variable, and stays as it is at the other.

    >>> rows = [[1.0, -1e9], [1.0, 1e9]]
    >>> limits = np.full(2, -np.inf), np.array([0.0, 1e9]), np.zeros(2), np.array([10.0, 1.0])
    >>> program = tightened(LinearProgram(np.ones(2), rows, *limits, integer=[False, True]))
    >>> program.matrix.toarray().tolist(), program.row_upper.tolist()
    ([[1.0, -16.0], [1.0, 16.0]], [0.0, 16.0])
    """
    assert problem.integer is not None
    matrix, sizes = problem.matrix.copy(), np.abs(problem.matrix.data)
    row_of = np.repeat(np.arange(problem.row_lower.size), np.diff(matrix.indptr))
    one_sided = np.isinf(problem.row_lower) != np.isinf(problem.row_upper)
    sign = np.where(np.isfinite(problem.row_upper), 1.0, -1.0)  # sign * row <= limit
    limit = np.where(sign > 0.0, problem.row_upper, -problem.row_lower)
    binary = problem.integer & (problem.upper - problem.lower == 1.0)
    is_large = sizes > WIDE * sizes[sizes > 0.0].min(initial=np.inf)
    entries = np.flatnonzero(is_large & binary[matrix.indices] & one_sided[row_of])
    if not entries.size:
        return problem
    lower, upper = implied_limits(problem.matrix, problem.row_lower, problem.row_upper, problem.lower, problem.upper)
    for entry in entries.tolist():
        row, column = row_of[entry], matrix.indices[entry]
        others = np.setdiff1d(np.arange(matrix.indptr[row], matrix.indptr[row + 1]), entry)
        part, at = sign[row] * matrix.data[others], matrix.indices[others]
        terms = part * np.where(part > 0.0, upper[at], lower[at])
        most = float(terms.sum() + (CARE - 1.0) * np.abs(terms).sum())  # of the other variables
        weight, side = float(sign[row] * matrix.data[entry]), float(limit[row])
        value = float(problem.upper[column] if weight > 0.0 else problem.lower[column])  # at which the row may bind
        rest = side - weight * value
        needed = unit(np.array([most - rest])) if most > rest else 0.0
        changed = np.copysign(needed, weight)
        moved = rest + changed * value
        exact = [Fraction(end) - Fraction(by) * Fraction(value) for end, by in ((side, weight), (moved, changed))]
        if np.isfinite(most) and WIDE * needed < abs(weight) and exact[0] == exact[1]:
            matrix.data[entry], limit[row] = sign[row] * changed, moved
    above, below = one_sided & (sign > 0.0), one_sided & (sign < 0.0)
    return replace(
        problem,
        matrix=matrix,
        row_upper=np.where(above, limit, problem.row_upper),
        row_lower=np.where(below, -limit, problem.row_lower),
    )


def _split(problem: LinearProgram) -> tuple[Floats, float, Floats] | None:
    """Large costs in their unit, the unit, and small costs; None if one step is enough or two are no use."""
    sizes = np.sort(np.abs(problem.objective[problem.objective != 0.0]))
    if sizes.size < 2 or sizes[-1] <= WIDE * sizes[0]:
        return None
    cut = int(np.argmax(sizes[1:] / sizes[:-1])) + 1
    is_large = np.abs(problem.objective) >= sizes[cut]
    assert problem.integer is not None
    if not problem.integer[is_large].all():
        return None
    unit = _unit(problem.objective[is_large], WIDE * sizes[cut - 1])
    large = np.where(is_large, np.round(problem.objective / unit), 0.0)
    if np.abs(large).max() > LARGEST:
        return None
    small = np.array(
        [
            float(Fraction(cost) - int(part) * Fraction(unit))
            for cost, part in zip(problem.objective.tolist(), large.tolist(), strict=True)
        ]
    )
    used = small != 0.0
    reach = np.maximum(np.abs(problem.upper), np.abs(problem.lower))[used]
    return (large, unit, small) if 2.0 * float(np.abs(small[used]) @ reach) < unit else None


def _unit(costs: Floats, rest: float) -> float:
    """A common divisor of costs up to remainders of `rest`, by Euclid's algorithm, of few digits if possible."""
    unit = 0.0
    for cost in np.abs(costs).tolist():
        larger, smaller = max(unit, cost), min(unit, cost)
        while smaller > rest:
            larger, smaller = smaller, abs(larger - round(larger / smaller) * smaller)
        unit = larger
    rounded = [float(f"{unit:.{digits}e}") for digits in range(9)]
    off = [float(np.abs(costs - np.round(costs / one) * one).max()) for one in rounded]
    best = int(np.argmin(off))
    return rounded[best] if off[best] <= rest else unit
