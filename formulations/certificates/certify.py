"""certify(): check what a solution claims, from the problem's data alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.argmax.relevance_batch import searched_bound
from formulations.arrays import Floats
from formulations.certificates import rational as rational_groups
from formulations.certificates import rational as rational_orders
from formulations.certificates import rational as rational_paths
from formulations.certificates import rational as rational_programs
from formulations.certificates import rational as rational_sets
from formulations.certificates.rational import Evidence
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.display import CompactReprMixin, view
from formulations.errors import CertificateError, UnsupportedProblemError
from formulations.problems.assignment import Assignment
from formulations.problems.cvxpy_problem import AnyProblem, as_form
from formulations.problems.group_sequence import GroupSequence
from formulations.problems.lattice_path import LatticePath
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import Problem, Solution, Status, proven
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.problems.simplex_qp import GroupedSimplexQP

RATIONAL: dict[type[Problem], Callable[[Any, NDArray[Any], Floats | None], Evidence]] = {
    RankTwoAssignment: rational_orders.ranked,
    Assignment: rational_orders.assigned,
    ConstrainedRanking: rational_sets.constrained,
    PenalizedRanking: rational_sets.softened,
    MinCostFlow: rational_orders.routed,
    RelevanceRanking: rational_paths.patterned,
    LatticePath: rational_paths.walked,
    GroupSequence: rational_groups.grouped,
    LinearProgram: rational_programs.linear,
    QuadraticProgram: rational_programs.quadratic,
    GroupedSimplexQP: rational_programs.margin,
}
"""How violation, value and bound of each form are computed in rational numbers."""

ENDLESS = (LinearProgram, QuadraticProgram)
"""Forms with variables that may have no limit: prices in doubles may then prove nothing in rational numbers."""


@dataclass(frozen=True)
class SolutionCertificate(CompactReprMixin):
    """What is proven of a solution: its violation and value, and a bound that no feasible point can beat.

    In fractions where `exact`; then nothing is rounded, and a gap of 0 is a proof of optimality. (A point of a program
    with real variables may break a row by a rounding error, which `violation` tells; its gap may then be negative.)
    """

    value: Fraction | float
    bound: Fraction | float
    violation: Fraction | float
    is_maximization: bool
    exact: bool
    rounding: float = 0.0

    @property
    def gap(self) -> Fraction | float:
        """Distance from value to bound; negative only by more than rounding, where a row is broken within tolerance."""
        apart = self.bound - self.value if self.is_maximization else self.value - self.bound
        return 0.0 if not self.exact and -self.rounding <= apart < 0.0 else apart

    def _repr_html_(self) -> str:
        said = {name: _decimal(getattr(self, name)) for name in ("value", "bound", "gap", "violation")}
        said["sense"] = "maximised" if self.is_maximization else "minimised"
        if self.exact and not self.gap and not self.violation:
            said["gap"] = "0: the optimum, proved"
        return view(f"Certificate, {'in fractions' if self.exact else 'in double precision'}", said)


def _decimal(number: Fraction | float) -> str:
    """A number at a glance, whose fraction may be pages long."""
    try:
        return f"{float(number):.9g}"
    except OverflowError:
        return "beyond double precision"


def certify(problem: AnyProblem, solution: Solution, *, exact: bool = False) -> SolutionCertificate:
    """Recompute violation, value and bound of `solution` for `problem`; believe nothing that it says.

    Claims are made in double precision, so they are compared up to its rounding error (`problem.rounding`). The bound
    is proven by the solution's dual or, where that is missing or does not suffice, by prices recovered from its point.

    exact: certify in rational numbers. For assignments, flows and sets the gap is then 0 or a proven distance, and a
    proof by cases that leaves rankings out is refused. Of programs with real variables the bound may be infinite: a
    variable without a limit asks for a reduced cost of exactly 0, and prices are doubles.

    Raises:
        Refuted: the point is infeasible, its value is not what it says, the bound is better than what can be proven, it
            says "optimal" and is not, or what is given is not made of what solutions are made of.
        Unsupported: exact=True and the form has no rule for rational numbers.
    """
    problem = as_form(problem)
    _check_record(solution)
    inaccurate = solution.status is Status.INACCURATE
    with np.errstate(all="ignore"):
        violation = problem.violation(solution.x)
    if not np.isfinite(violation) or (violation > problem.tolerance and not inaccurate):
        raise CertificateError(
            f"the point breaks a constraint by {violation:g}, and calls itself {solution.status.name}"
        )
    if solution.y is not None and proven(problem, solution.y) is None:
        raise CertificateError("the prices are none of this problem: they are of another shape, or no finite numbers")
    slack, sign = problem.rounding, 1 if problem.is_maximization else -1
    found = _evidence(problem, solution)
    _check(solution, found, slack, sign)
    if solution.status is Status.OPTIMAL and not sign * (solution.bound - solution.value) <= slack:
        raise CertificateError(f"it is called optimal, with value {solution.value!r} and bound {solution.bound!r}")
    if exact:
        found = _exact_evidence(problem, solution)
        unproven = type(problem) in ENDLESS and np.isinf(float(found.bound))
        _check(solution, found, slack, sign, unproven)
    return SolutionCertificate(found.value, found.bound, found.violation, problem.is_maximization, exact, slack)


def _check_record(solution: Any) -> None:
    """Refute what is no record of a solution: a point of real numbers, and a value and bound that are such."""
    if not isinstance(solution, Solution):
        raise CertificateError(f"a {type(solution).__name__} is no Solution")
    if not isinstance(solution.x, np.ndarray) or solution.x.dtype.kind not in "iuf":
        said = solution.x.dtype if isinstance(solution.x, np.ndarray) else type(solution.x).__name__
        raise CertificateError(f"the point is {said} and no array of numbers")
    for name in ("value", "bound"):
        claimed = getattr(solution, name)
        if not isinstance(claimed, float | int | np.floating | np.integer) or isinstance(claimed, bool):
            raise CertificateError(f"the {name} is said to be {claimed!r}, which is no number")
    if not isinstance(solution.status, Status):
        raise CertificateError(f"the status is said to be {solution.status!r}, which is none")


def _check(solution: Solution, found: Evidence, slack: float, sign: int, unproven: bool = False) -> None:
    """Refute a value that is not the value found, and a bound better than the one found (unless that is `unproven`)."""
    if not abs(float(solution.value) - float(found.value)) <= slack:
        raise CertificateError(f"the value is said to be {solution.value!r}, and is {float(found.value)!r}")
    if not unproven and not sign * float(found.bound) <= sign * float(solution.bound) + slack:
        raise CertificateError(
            f"the bound is said to be {solution.bound!r}, but prices prove {float(found.bound)!r} only"
        )


def _exact_evidence(problem: Problem, solution: Solution) -> Evidence:
    rule = RATIONAL.get(type(problem))
    if rule is None:
        raise UnsupportedProblemError(
            f"{type(problem).__name__} has no rule for rational numbers; certify it with exact=False"
        )
    y = solution.y if solution.y is not None else problem.recover_dual(solution.x)
    return rule(problem, solution.x, None if proven(problem, y) is None else y)


def _evidence(problem: Problem, solution: Solution) -> Evidence:
    sign = 1.0 if problem.is_maximization else -1.0
    value: Any = problem.value_lower_bound(solution.x)
    recovered = problem.recover_dual(solution.x)
    bounds = [proven(problem, dual) for dual in (solution.y, recovered)]
    bound = sign * min((sign * bound for bound in bounds if bound is not None), default=np.inf)
    if bound - value > problem.rounding and isinstance(problem, RelevanceRanking):
        bound = min(bound, searched_bound(problem))
    return Evidence(problem.violation(solution.x), value, bound)
