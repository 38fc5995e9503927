"""Google OR-Tools' CP-SAT: integer programs, by search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from formulations.bridges.widening import rounded_costs
from formulations.errors import InfeasibleError, SolverError, UnknownSolverError
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Solution
from formulations.solvers.ortools import load
from formulations.solvers.solver import Solver, SolverResult, check_limits, search_claim

LARGEST = 1 << 40  # coefficients and limits of this magnitude or more could overflow in a sum


@dataclass(frozen=True)
class CpSat(Solver):
    """`ortools.sat.python.cp_model`. Accepts programs whose variables, coefficients and limits are all integers; costs
    are rounded to integers. It has no duals: the bound is that of the relaxation, recomputed by us; the bound claimed
    by the search is in `details["reported_bound"]`.

    time_limit: seconds; a feasible point found by then is returned. threads: of the search; 1 is reproducible. rel_gap:
    the relative gap at which the search may end. verbose: whether it prints its log. options: further fields of its
    `SatParameters`, by their names.
    """

    time_limit: float | None = None
    threads: int = 1
    seed: int = 0
    rel_gap: float = 0.0
    verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    accepts = (LinearProgram,)
    package: ClassVar[str] = "ortools"
    spec = "cp_sat"

    def __post_init__(self) -> None:
        check_limits(self.time_limit, self.threads, self.verbose, self.options)

    def reason_unsupported(self, problem: Any) -> str | None:
        if problem.integer is None or not problem.integer.all():
            real = problem.objective.size if problem.integer is None else int((~problem.integer).sum())
            count = f"{real} variable{'s are' if real > 1 else ' is'} continuous"
            return f"it accepts integer programs only, and {count}; use 'highs'"
        endless = np.flatnonzero(np.isinf(problem.lower) | np.isinf(problem.upper))
        if endless.size:
            name = problem.variable_name(int(endless[0]))
            return f"variable {name} has no lower or upper limit, and it needs both; use 'highs'"
        for numbers in (problem.matrix.data, problem.row_lower, problem.row_upper, problem.lower, problem.upper):
            known = numbers[np.isfinite(numbers)]
            if (known != np.round(known)).any() or (np.abs(known) >= LARGEST).any():
                return "coefficients and limits must be integers of moderate size; use 'highs'"
        return None

    def solve(self, problem: LinearProgram, warm_start: Solution | None = None) -> SolverResult:
        cp_model = load("sat.python.cp_model")
        model = cp_model.CpModel()
        limits = zip(problem.lower.tolist(), problem.upper.tolist(), strict=True)
        x = [model.new_int_var(int(low), int(high), "") for low, high in limits]
        for row, (low, high) in enumerate(zip(problem.row_lower, problem.row_upper, strict=True)):
            part = slice(problem.matrix.indptr[row], problem.matrix.indptr[row + 1])
            terms = [x[column] for column in problem.matrix.indices[part]]
            total = cp_model.LinearExpr.weighted_sum(terms, problem.matrix.data[part].astype(np.int64).tolist())
            lowest = int(low) if np.isfinite(low) else cp_model.INT_MIN
            highest = int(high) if np.isfinite(high) else cp_model.INT_MAX
            model.add_linear_constraint(total, lowest, highest)
        units = int(np.ceil(np.maximum(np.abs(problem.lower), np.abs(problem.upper)).sum()))
        costs = rounded_costs(problem.objective, units, len(x), shift=False)
        goal = cp_model.LinearExpr.weighted_sum(x, [int(cost) for cost in costs.values])
        (model.maximize if problem.is_maximization else model.minimize)(goal)
        if warm_start is not None and warm_start.has_point_for(problem):
            for variable, value in zip(x, np.round(warm_start.x).tolist(), strict=True):
                model.add_hint(variable, int(value))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers, solver.parameters.random_seed = int(self.threads), self.seed
        solver.parameters.log_search_progress = self.verbose
        solver.parameters.catch_sigint_signal = False  # its handler would remain, and Ctrl-C end the process
        solver.parameters.linearization_level = 2  # all rows relaxed: proves assignments and flows at once
        solver.parameters.relative_gap_limit, solver.parameters.absolute_gap_limit = self.rel_gap, 0.0
        if self.time_limit is not None:
            solver.parameters.max_time_in_seconds = float(self.time_limit)
        for name, value in self.options.items():
            try:
                setattr(solver.parameters, name, value)
            except (AttributeError, TypeError, ValueError) as error:
                raise UnknownSolverError(f"'cp_sat' refuses {name} = {value!r}: {error}") from error
        status = solver.solve(model)
        if status == cp_model.INFEASIBLE:
            raise InfeasibleError("'cp_sat' proved that no point satisfies the constraints")
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise SolverError(f"'cp_sat' ended without a feasible point ({solver.status_name(status)})")
        point = np.array([solver.value(variable) for variable in x], dtype=np.float64)
        bound = float(np.ldexp(solver.best_objective_bound, -costs.exponent))
        claim = {"reported_status": "TIME_LIMIT"}
        if status == cp_model.OPTIMAL:
            claim = search_claim(solver.objective_value, solver.best_objective_bound)
        details = {**costs.details, "reported_bound": bound, **claim}
        return SolverResult(point, None, solver.status_name(status), details)
