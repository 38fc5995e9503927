"""certify(): check what a solution claims, from the problem's data alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.certificates import rational_orders, rational_programs, rational_sets
from formulations.certificates.rational_programs import Evidence
from formulations.errors import Refuted, Unsupported
from formulations.forms.assignment import Assignment
from formulations.forms.cvxpy_problem import as_form
from formulations.forms.form import Form, Solution, Status, proven
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.forms.linear_program import LinearProgram
from formulations.forms.min_cost_flow import MinCostFlow
from formulations.forms.quadratic_program import QuadraticProgram
from formulations.forms.rank_two_assignment import RankTwoAssignment
from formulations.sets.constrained_ranking import ConstrainedRanking

__all__ = ["Certificate", "certify"]


RATIONAL: dict[type[Form], Callable[[Any, NDArray[Any], Floats | None], Evidence]] = {
    RankTwoAssignment: rational_orders.ranked,
    Assignment: rational_orders.assigned,
    ConstrainedRanking: rational_sets.constrained,
    MinCostFlow: rational_orders.routed,
    LinearProgram: rational_programs.linear,
    QuadraticProgram: rational_programs.quadratic,
    GroupedSimplexQP: rational_programs.margin,
}
"""How violation, value and bound of each form are computed in rational numbers."""


@dataclass(frozen=True)
class Certificate:
    """What is proven of a solution: its violation and value, and a bound that no feasible point can beat.

    In fractions where `exact`; then nothing is rounded, and a gap of 0 is a proof of optimality. (A point of a program
    with real variables may break a row by a rounding error, which `violation` tells; its gap may then be negative.)
    """

    value: Fraction | float
    bound: Fraction | float
    violation: Fraction | float
    maximises: bool
    exact: bool

    @property
    def gap(self) -> Fraction | float:
        return self.bound - self.value if self.maximises else self.value - self.bound


def certify(problem: Form | Any, solution: Solution, *, exact: bool = False) -> Certificate:
    """Recompute violation, value and bound of `solution` for `problem`; believe nothing that it says.

    Claims are made in double precision, so they are compared up to its rounding error (`problem.rounding`). The bound
    is proven by the solution's dual or, where that is missing or does not suffice, by prices recovered from its point.

    exact: certify in rational numbers. For assignments and flows the gap is then 0 or a proven distance. Elsewhere the
    bound may be infinite: a variable without a limit asks for a reduced cost of exactly 0, and prices are doubles.

    Raises:
        Refuted: the point is infeasible, its value is not what it says, the bound is better than what can be proven, or
            it says "optimal" and is not.
        Unsupported: exact=True and the form has no rule for rational numbers.
    """
    problem = as_form(problem)
    inaccurate = solution.status is Status.INACCURATE
    violation = problem.violation(solution.x)
    if not np.isfinite(violation) or (violation > problem.tolerance and not inaccurate):
        raise Refuted(f"the point breaks a constraint by {violation:g}, and calls itself {solution.status.name}")
    slack, sign = problem.rounding, 1 if problem.maximises else -1
    found = _evidence(problem, solution)
    _check(solution, found, slack, sign)
    if solution.status is Status.OPTIMAL and not sign * (solution.bound - solution.value) <= slack:
        raise Refuted(f"it is called optimal, with value {solution.value!r} and bound {solution.bound!r}")
    if exact:
        found = _exact_evidence(problem, solution)
        _check(solution, found, slack, sign)
    return Certificate(found.value, found.bound, found.violation, problem.maximises, exact)


def _check(solution: Solution, found: Evidence, slack: float, sign: int) -> None:
    """Refute a value that is not the value found, and a bound better than the one found."""
    if not abs(solution.value - float(found.value)) <= slack:
        raise Refuted(f"the value is said to be {solution.value!r}, and is {float(found.value)!r}")
    unproven = isinstance(found.value, Fraction) and np.isinf(float(found.bound))
    if not unproven and not sign * float(found.bound) <= sign * solution.bound + slack:
        raise Refuted(f"the bound is said to be {solution.bound!r}, but prices prove {float(found.bound)!r} only")


def _exact_evidence(problem: Form, solution: Solution) -> Evidence:
    rule = RATIONAL.get(type(problem))
    if rule is None:
        raise Unsupported(f"{type(problem).__name__} has no rule for rational numbers; certify it with exact=False")
    return rule(problem, solution.x, None if proven(problem, solution.y) is None else solution.y)


def _evidence(problem: Form, solution: Solution) -> Evidence:
    sign = 1.0 if problem.maximises else -1.0
    value: Any = problem.value(solution.x)
    recovered = problem.recovered_dual(solution.x)
    bounds = [proven(problem, dual) for dual in (solution.y, recovered)]
    bound = sign * min((sign * bound for bound in bounds if bound is not None), default=np.inf)
    return Evidence(problem.violation(solution.x), value, bound)
