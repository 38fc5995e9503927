"""certify(): check the claims of a solution from the problem's data alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.argmax.relevance_batch import searched_bound
from formulations.arrays import Floats, check_type
from formulations.certificates import rational
from formulations.certificates.rational import Evidence
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.display import CompactReprMixin, view
from formulations.errors import CertificateError, InvalidSolutionError, UnsupportedProblemError
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
    RankTwoAssignment: rational.rank_two_evidence,
    Assignment: rational.assignment_evidence,
    ConstrainedRanking: rational.constrained_evidence,
    PenalizedRanking: rational.penalized_evidence,
    MinCostFlow: rational.flow_evidence,
    RelevanceRanking: rational.relevance_evidence,
    LatticePath: rational.path_evidence,
    GroupSequence: rational.group_sequence_evidence,
    LinearProgram: rational.linear_evidence,
    QuadraticProgram: rational.quadratic_evidence,
    GroupedSimplexQP: rational.margin_dual_evidence,
}
"""How violation, value and bound of each form are computed in rational numbers."""

NEARBY = (LinearProgram, QuadraticProgram)
"""Problem classes whose bound may be that of exact duals near the solution's, by directed rounding: the solution's own
duals may prove less in rational numbers, or nothing where a variable has no limit."""


@dataclass(frozen=True)
class SolutionCertificate(CompactReprMixin):
    """Proved violation and value of a solution, and a bound that no feasible point exceeds.

    Fractions if `exact`: without rounding, a gap of 0 proves optimality. (A point of a program with real variables may
    violate a row by a rounding error, reported in `violation`; its gap may then be negative.) `claim` is a verdict that
    is the solver's word alone, such as "optimal (claimed)"; "" without one.
    """

    value: Fraction | float
    bound: Fraction | float
    violation: Fraction | float
    is_maximization: bool
    exact: bool
    rounding: float = 0.0
    claim: str = ""

    @property
    def gap(self) -> Fraction | float:
        """Distance from value to bound; negative beyond rounding only if a row is violated within tolerance."""
        apart = self.bound - self.value if self.is_maximization else self.value - self.bound
        return 0.0 if not self.exact and -self.rounding <= apart < 0.0 else apart

    def _repr_html_(self) -> str:
        fields = {name: _decimal(getattr(self, name)) for name in ("value", "bound", "gap", "violation")}
        fields |= {"claim": self.claim} if self.claim else {}
        fields["sense"] = "maximized" if self.is_maximization else "minimized"
        if self.exact and not self.gap and not self.violation:
            fields["gap"] = "0: the optimum, proved"
        return view(f"Certificate, {'in fractions' if self.exact else 'in double precision'}", fields)


def _decimal(number: Fraction | float) -> str:
    """A short decimal for a fraction that may be very long."""
    try:
        return f"{float(number):.9g}"
    except OverflowError:
        return "beyond double precision"


def certify(problem: AnyProblem, solution: Solution, *, exact: bool = False) -> SolutionCertificate:
    """Recompute violation, value and bound of `solution` for `problem`, without trusting what it states.

    Checked are `x`, `y`, `value`, `bound` and `status`, up to the rounding error of double precision
    (`problem.rounding`). The bound is proved by the solution's dual or, if that is missing or insufficient, by duals
    recovered from its point. Not checked are `reported_status` and `reported_bound`, what the solver itself claims: no
    dual proves the end of an integer search. A verdict that rests on them is the certificate's `claim`.

    exact: certify in rational numbers. For assignments, flows and sets the gap is then 0 or a proved distance; a proof
    by cases that omits rankings is refused. For programs with real variables it is the bound of the solution's own
    duals, which may be worse than `solution.bound`, or infinite: a variable without a limit needs a reduced cost of
    exactly 0, and duals are doubles. The bound of exact duals nearby is proved by directed rounding.

    Raises:
        CertificateError: the point is infeasible, the value or bound is better than what can be proved, the status
            "optimal" is false, or the solution is malformed.
        UnsupportedProblemError: exact=True, and the problem class has no exact rule.
    """
    problem = problem if isinstance(problem, Problem) else as_form(problem)
    _check_record(solution)
    check_type("exact", exact, bool)
    inaccurate = solution.status is Status.INACCURATE
    try:
        violation = problem.check_point(solution.x)
    except InvalidSolutionError as error:
        with np.errstate(all="ignore"):
            violation = problem.violation(solution.x)
        raise CertificateError(f"the point breaks a constraint by {violation:g}: {error}") from error
    if violation > problem.tolerance and not inaccurate:
        raise CertificateError(f"the point breaks a constraint by {violation:g}, and claims {solution.status.name}")
    own = proven(problem, solution.y)
    if solution.y is not None and own is None:
        raise CertificateError("the duals must be finite numbers, one per row of this problem")
    slack, sign = problem.rounding_at(solution.x), 1 if problem.is_maximization else -1
    found = _evidence(problem, solution, own)
    _check(solution, found, slack, sign)
    if solution.status is Status.OPTIMAL and not sign * (solution.bound - solution.value) <= slack:
        raise CertificateError(f"it is called optimal, with value {solution.value!r} and bound {solution.bound!r}")
    if exact:
        found = _exact_evidence(problem, solution)
        _check(solution, found, slack, sign, unproven=type(problem) in NEARBY)
    proved = SolutionCertificate(found.value, found.bound, found.violation, problem.is_maximization, exact, slack)
    is_claim = proved.gap > slack and solution.verdict.endswith("(claimed)")
    return replace(proved, claim=solution.verdict) if is_claim else proved


def _check_record(solution: Any) -> None:
    """Refute a malformed solution: the point must be real numbers, value and bound numbers."""
    if not isinstance(solution, Solution):
        raise CertificateError(f"a {type(solution).__name__} is no Solution")
    if not isinstance(solution.x, np.ndarray) or solution.x.dtype.kind not in "iuf":
        fields = solution.x.dtype if isinstance(solution.x, np.ndarray) else type(solution.x).__name__
        raise CertificateError(f"the point is {fields} and no array of numbers")
    for name in ("value", "bound"):
        claimed = getattr(solution, name)
        if not isinstance(claimed, float | int | np.floating | np.integer) or isinstance(claimed, bool):
            raise CertificateError(f"the {name} must be a number; the solution claims {claimed!r}")
    if not isinstance(solution.status, Status):
        raise CertificateError(f"unknown status {solution.status!r}")


def _check(solution: Solution, found: Evidence, slack: float, sign: int, unproven: bool = False) -> None:
    """Refute a value other than the recomputed one, and a better bound unless the recomputed one is `unproven`."""
    if not abs(float(solution.value) - float(found.value)) <= slack:
        raise CertificateError(f"the solution claims value {solution.value!r}; its point has {float(found.value)!r}")
    if not unproven and not sign * float(found.bound) <= sign * float(solution.bound) + slack:
        raise CertificateError(f"the solution claims bound {solution.bound!r}; its duals prove {float(found.bound)!r}")


def _exact_evidence(problem: Problem, solution: Solution) -> Evidence:
    rule = RATIONAL.get(type(problem))
    if rule is None:
        raise UnsupportedProblemError(f"{type(problem).__name__} has no rule for fractions; certify with exact=False")
    y = solution.y if solution.y is not None else problem.recover_dual(solution.x)
    return rule(problem, solution.x, None if proven(problem, y) is None else y)


def _evidence(problem: Problem, solution: Solution, own: float | None) -> Evidence:
    """own: the bound that the solution's duals prove. Others are recovered from its point if these leave a gap."""
    sign = 1.0 if problem.is_maximization else -1.0
    value: Any = problem.value_lower_bound(solution.x)
    bounds = [own]
    if own is None or not sign * (own - value) <= problem.rounding_at(solution.x):
        bounds.append(proven(problem, problem.recover_dual(solution.x)))
    bound = sign * min((sign * bound for bound in bounds if bound is not None), default=np.inf)
    if bound - value > problem.rounding_at(solution.x) and isinstance(problem, RelevanceRanking):
        bound = min(bound, searched_bound(problem))
    return Evidence(problem.violation(solution.x), value, bound)
