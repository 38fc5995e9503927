"""Quadratic programming solvers called directly, through the package qpsolvers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csc_matrix

from formulations.arrays import Floats, check_type
from formulations.errors import InfeasibleError, SolverError, UnboundedError, UnknownSolverError
from formulations.problems.linear_program import row_sides
from formulations.problems.problem import Solution
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.solvers.back_ends import QPSOLVERS, crashes, missing, present
from formulations.solvers.highs import Highs, cost_unit
from formulations.solvers.solver import Solver, SolverResult, check_limits
from formulations.time_limit import is_used_up

TOLERANCES = {
    "clarabel": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "daqp": ("primal_tol", "dual_tol"),
    "highs": ("primal_feasibility_tolerance", "dual_feasibility_tolerance"),
    **dict.fromkeys(("osqp", "piqp", "scs"), ("eps_abs", "eps_rel")),
}
"""Each back end's names of its tolerances; others keep their defaults."""

TIME_LIMIT = {**dict.fromkeys(("clarabel", "daqp", "highs", "osqp"), "time_limit"), "scs": "time_limit_secs"}
"""Each back end's name of its time limit in seconds; the others have none."""

MOST_DENSE = 50_000_000  # entries of dense matrices, 0.4 GiB

DEFAULTS: dict[str, dict[str, Any]] = {
    "highs": {"qp_iteration_limit": 20_000},  # it may cycle forever on a simplex, without reacting to signals
    "osqp": {"polishing": False, "max_iter": 50_000, "raise_error": False},  # its polishing prints
    "scs": {"max_iters": 20_000},
}


@dataclass(frozen=True)
class QpSolvers(Solver):
    """A back end by its name in `qpsolvers.available_solvers`; the objective is scaled to order one by a power of two.

    time_limit: seconds, for back ends that have one. verbose: whether the back end prints its log. options: passed to
    the back end unchanged.
    """

    backend: str = "clarabel"
    tolerance: float | None = 1e-9
    time_limit: float | None = None
    verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    accepts = (QuadraticProgram,)
    package: ClassVar[str] = "qpsolvers"

    def __post_init__(self) -> None:
        check_type("backend", self.backend, str, error=UnknownSolverError)
        check_limits(self.time_limit, verbose=self.verbose, options=self.options)
        if self.time_limit is not None and not self.supports_time_limit:
            raise UnknownSolverError(f"{self.spec!r} has no time limit; {', '.join(TIME_LIMIT)} have one")
        requested = set(self.options)
        wrong = requested - _known_options(self.backend, requested) if requested else requested
        if wrong:
            raise UnknownSolverError(f"{self.spec!r} has no option {', '.join(sorted(wrong))}")

    @classmethod
    def with_backend(cls, backend: str) -> QpSolvers:
        check_type("backend", backend, str, error=UnknownSolverError)
        if backend not in cls.backends() and (backend in QPSOLVERS or backend not in _known_to_qpsolvers()):
            raise UnknownSolverError(missing("qpsolvers", QPSOLVERS, backend))
        return cls(backend)

    @classmethod
    def backends(cls) -> tuple[str, ...]:
        return present(QPSOLVERS)

    @property
    def spec(self) -> str:
        return f"qpsolvers:{self.backend}"

    @property
    def supports_time_limit(self) -> bool:
        return self.backend in TIME_LIMIT

    def reason_unsupported(self, problem: Any) -> str | None:
        import qpsolvers

        if (crash := crashes(self.backend)) is not None:
            return crash
        entries = problem.linear.size * (problem.linear.size + problem.row_lower.size)
        if self.backend in qpsolvers.sparse_solvers or entries <= MOST_DENSE:
            return None
        return f"it takes dense matrices, {entries / 2**27:.3g} GiB here; use 'qpsolvers:clarabel' or 'qpsolvers:piqp'"

    def _dense(self, problem: QuadraticProgram) -> bool:
        """Whether matrices are dense: if the back end accepts no others, or is faster."""
        import qpsolvers

        full = problem.hessian.nnz > 0.3 * problem.linear.size**2
        return self.backend not in qpsolvers.sparse_solvers or (full and self.backend in qpsolvers.dense_solvers)

    def solve(self, problem: QuadraticProgram, warm_start: Solution | None = None) -> SolverResult:
        import qpsolvers

        problem = problem.minimum
        began, options = perf_counter(), dict(DEFAULTS.get(self.backend, {}))
        if self.tolerance is not None:
            options.update(dict.fromkeys(TOLERANCES.get(self.backend, ()), self.tolerance))
        if self.time_limit is not None:
            options[TIME_LIMIT[self.backend]] = self.time_limit
        options.update(self.options)
        scale = cost_unit(np.append(problem.linear, problem.hessian.data))
        try:
            with warnings.catch_warnings():  # the status contains what back ends warn of
                warnings.simplefilter("ignore")
                answer = qpsolvers.solve_problem(
                    _posed(problem, scale, self._dense(problem)), self.backend, verbose=self.verbose, **options
                )
        except (TypeError, AttributeError, ValueError) as error:
            if self.options and any(name in str(error) for name in self.options):
                raise UnknownSolverError(f"{self.spec!r} refuses the options {dict(self.options)}: {error}") from error
            raise SolverError(f"{self.spec!r} gave up: {error}") from error
        except qpsolvers.ProblemError as error:
            if "unbounded" in str(error):
                raise UnboundedError(f"{self.spec!r} found the objective unbounded ({error})") from error
            raise SolverError(f"{self.spec!r} gave up: {error}") from error
        status = _status(answer)
        if not answer.found:
            if "unbound" in status.lower() or "dual infeasible" in status.lower() or "DualInfeasible" in status:
                raise UnboundedError(f"{self.spec!r} found the objective unbounded ({status})")
            if "infeasible" in status.lower():
                raise InfeasibleError(f"{self.spec!r} found no feasible point ({status})")
            if not answer.extras and not is_used_up(self.time_limit, perf_counter() - began):
                Highs().solve(problem.linearized(np.zeros(problem.linear.size)))  # InfeasibleError if no point exists
            if answer.x is None or not np.isfinite(answer.x).all():
                raise SolverError(f"{self.spec!r} returned no point ({status})")
        x = np.asarray(answer.x, dtype=np.float64)
        prices = None if answer.z is None else np.concatenate([_prices(problem, answer) * scale, x])
        cut = is_used_up(self.time_limit, perf_counter() - began) and ("time" in status.lower() or not answer.found)
        details = {**_iterations(answer), **({"reported_status": "TIME_LIMIT"} if cut else {})}
        return SolverResult(x, prices, status, details)


def _iterations(answer: Any) -> dict[str, int]:
    """The number of iterations, wherever the back end reports it."""
    held = answer.extras.get("info", answer.extras)
    for name in ("iter", "iterations"):
        count = held.get(name) if isinstance(held, dict) else getattr(held, name, None)
        if isinstance(count, int | np.integer):
            return {"iterations": int(count)}
    return {}


def _known_to_qpsolvers() -> tuple[str, ...]:
    """The installed back ends, as qpsolvers finds them by loading each."""
    import qpsolvers

    return tuple(qpsolvers.available_solvers)


def _posed(problem: QuadraticProgram, scale: float, dense: bool) -> Any:
    """min ½ xᵀPx + qᵀx subject to Gx <= h (upper limits, then lower ones), Ax = b, lb <= x <= ub."""
    import qpsolvers

    equal, lower, upper = row_sides(problem.row_lower, problem.row_upper)
    sign = np.concatenate([np.ones(upper.size), -np.ones(lower.size)])
    limit = np.concatenate([problem.row_upper[upper], -problem.row_lower[lower]])
    inequalities = problem.matrix[np.concatenate([upper, lower])].multiply(sign[:, None])

    def shaped(matrix: Any) -> Any:
        return matrix.toarray() if dense else csc_matrix(matrix)

    return qpsolvers.Problem(
        shaped(problem.hessian / scale),
        problem.linear / scale,
        shaped(inequalities) if limit.size else None,
        limit if limit.size else None,
        shaped(problem.matrix[equal]) if equal.size else None,
        problem.row_lower[equal] if equal.size else None,
        problem.lower if np.isfinite(problem.lower).any() else None,
        problem.upper if np.isfinite(problem.upper).any() else None,
    )


def _prices(problem: QuadraticProgram, answer: Any) -> Floats:
    """One dual per row, positive for an active lower limit."""
    equal, lower, upper = row_sides(problem.row_lower, problem.row_upper)
    prices = np.zeros(problem.row_lower.size)
    if answer.y is not None and len(answer.y) == equal.size:
        prices[equal] = -np.asarray(answer.y)
    if answer.z is not None and len(answer.z) == upper.size + lower.size:
        prices[upper] -= np.asarray(answer.z)[: upper.size]
        prices[lower] += np.asarray(answer.z)[upper.size :]
    return prices


def _status(answer: Any) -> str:
    """The back end's own status, wherever qpsolvers stores it."""
    status = answer.extras.get("status", getattr(answer.extras.get("info"), "status", None))
    return str(status) if status is not None else "solved" if answer.found else "not solved"


def _known_options(backend: str, requested: set[str]) -> set[str]:
    """The existing options, for back ends that ignore unknown ones silently; the requested ones for the rest."""
    if backend == "piqp":
        import piqp

        settings = piqp.DenseSolver().settings
        return {name for name in dir(settings) if not name.startswith("_")} | {"backend"}
    if backend == "highs":
        import highspy

        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        return {name for name in requested if solver.getOptionValue(name)[0] == highspy.HighsStatus.kOk}
    return requested
