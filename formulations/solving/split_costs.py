"""Integer programs whose costs differ by many orders of magnitude, such as penalties next to profits, in two steps.

A solver's tolerance of integrality, 1e-6, times a penalty of 1e9 hides every profit. Let large costs be integer
multiples of a unit, on integer variables, and let all small costs together be less than that unit. Then an optimum for
the large costs alone comes first: no small cost makes up for one unit more. The small costs choose among these optima.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array, vstack

from formulations.arrays import Floats
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Solution
from formulations.solvers.solver import Solver, SolverResult

WIDE = 1e5  # a ratio of costs that solvers take in one step
LARGEST = 1e6  # of the large costs, in their unit


def solve_in_steps(solver: Solver, problem: LinearProgram, start: Solution | None) -> SolverResult:
    """The result of the solver for an integer program, in two steps if its costs require and allow it."""
    split = _split(problem)
    if split is None:
        return solver.solve(problem, start)
    large, unit, small = split
    first = solver.solve(replace(problem, objective=large), start)
    most = float(np.round(large @ problem.rounded(first.x)))
    reached = replace(
        problem,
        objective=small,
        matrix=csr_array(vstack([problem.matrix, large[None, :]])),
        row_lower=np.append(problem.row_lower, most),
        row_upper=np.append(problem.row_upper, most),
        rows=(),
    )
    found = solver.solve(reached, None)
    details = dict(found.details)
    if first.details.get("reported_status") != "OPTIMAL":  # the second claim is about what the first one left
        details.pop("reported_bound", None)
        details["reported_status"] = first.details.get("reported_status")
    elif isinstance(details.get("reported_bound"), float):
        details["reported_bound"] += most * unit
    return SolverResult(found.x, None, f"{found.message}, after the large costs alone", details)


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
