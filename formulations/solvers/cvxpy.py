"""Solvers reached through cvxpy; the margin dual as a cvxpy problem [paper 2, eq. 10, 11]."""

from __future__ import annotations

import copy
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats, check_type
from formulations.errors import InfeasibleError, SolverError, UnboundedError, UnknownSolverError
from formulations.problems.cvxpy_problem import CvxpyProblem
from formulations.problems.linear_program import LinearProgram, row_sides
from formulations.problems.problem import Problem, Solution, row_units, unit
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers.back_ends import CVXPY, BackEnd, crashes, missing, present
from formulations.solvers.highs import cost_unit, presolve
from formulations.solvers.solver import Solver, SolverResult, check_limits
from formulations.time_limit import LEAST, is_used_up

TIME_LIMIT = {
    **dict.fromkeys(("CLARABEL", "DAQP", "HIGHS", "OSQP"), "time_limit"),
    **dict.fromkeys(("GLOP", "PDLP"), "time_limit_sec"),
    "SCIPY": "time_limit",
    "SCS": "time_limit_secs",
}
"""Each back end's name of its time limit in seconds; the others have none."""

THREADS = {"CLARABEL": "max_threads", "COPT": "Threads", "GUROBI": "Threads", "HIGHS": "threads", "XPRESS": "threads"}
"""Each back end's name of its number of threads; the others use one, or choose themselves."""

TOLERANCES = {
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "DAQP": ("primal_tol", "dual_tol"),
    **dict.fromkeys(("OSQP", "PIQP", "SCS"), ("eps_abs", "eps_rel")),
}
"""Each back end's names of its tolerances; the others keep their defaults."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "HIGHS": {"qp_iteration_limit": 20_000},  # it may cycle forever on a simplex, without reacting to signals
    "OSQP": {"polishing": False, "max_iter": 50_000},  # its polishing prints
    "SCS": {"max_iters": 50_000},
}

GAPS: dict[str, dict[str, Any]] = {
    "COPT": {"RelGap": 0.0, "AbsGap": 0.0},
    "CPLEX": {"cplex_params": {"mip.tolerances.mipgap": 0.0, "mip.tolerances.absmipgap": 0.0}},
    "GUROBI": {"MIPGap": 0.0, "MIPGapAbs": 0.0},
    "HIGHS": {
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
        **dict.fromkeys(("mip_feasibility_tolerance", "primal_feasibility_tolerance"), 1e-9),
    },
    "SCIPY": {"scipy_options": {"mip_rel_gap": 0.0}},
    "XPRESS": {"miprelstop": 0.0, "mipabsstop": 0.0},
}
"""Options with which an integer search of a back end ends at a gap of 0 only; it is the default of the others. With the
usual tolerances of HIGHS, 1e-6, rounded points break rows or miss optima."""

CLOSED = {
    "DAQP": {"primal_tol", "dual_tol", "iter_limit", "eps_prox", "time_limit"},
    "GLOP": {"parameters_proto", "time_limit_sec"},
    "PDLP": {"parameters_proto", "time_limit_sec"},
    "SCIPY": {"scipy_options"},
}
"""Options of the back ends that ignore unknown ones silently; unknown names are an error here."""

Prices = Callable[[], Floats]


@dataclass(frozen=True)
class Cvxpy(Solver):
    """A cvxpy back end by its cvxpy name; "" leaves the choice to cvxpy.

    tolerance: for back ends that have one (None: their default). time_limit: seconds, likewise. threads: likewise.
    verbose: whether cvxpy and the back end print their logs. options: passed to the back end unchanged.
    """

    backend: str = ""
    tolerance: float | None = 1e-9
    time_limit: float | None = None
    threads: int | None = None
    verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    package: ClassVar[str] = "cvxpy"

    def __post_init__(self) -> None:
        check_type("backend", self.backend, str, error=UnknownSolverError)
        check_limits(self.time_limit, self.threads, self.verbose, self.options)
        if self.backend and self.backend not in CVXPY and self.backend not in _known_to_cvxpy():
            raise UnknownSolverError(missing("cvxpy", CVXPY, self.backend))
        if self.time_limit is not None and not self.supports_time_limit:
            raise UnknownSolverError(f"{self.spec!r} has no time limit; {', '.join(TIME_LIMIT)} have one")
        if self.threads is not None and not self.supports_threads:
            raise UnknownSolverError(f"{self.spec!r} has no choice of threads; {', '.join(THREADS)} have one")
        wrong = set(self.options) - CLOSED.get(self.backend, set(self.options))
        if wrong:
            known = ", ".join(sorted(CLOSED[self.backend]))
            raise UnknownSolverError(f"{self.spec!r} has no option {', '.join(sorted(wrong))}; it knows {known}")

    @classmethod
    def with_backend(cls, backend: str) -> Cvxpy:
        check_type("backend", backend, str, error=UnknownSolverError)
        name = backend.upper()
        if name not in cls.backends() and (name in CVXPY or name not in _known_to_cvxpy()):
            raise UnknownSolverError(missing("cvxpy", CVXPY, backend))
        return cls(name)

    @classmethod
    def backends(cls) -> tuple[str, ...]:
        return present(CVXPY)

    @property
    def spec(self) -> str:
        return f"cvxpy:{self.backend}" if self.backend else "cvxpy"

    @property
    def supports_time_limit(self) -> bool:
        return self.backend in TIME_LIMIT

    @property
    def supports_threads(self) -> bool:
        return self.backend in THREADS

    @property
    def accepts(self) -> tuple[type[Problem], ...]:
        """Linear programs, and quadratic ones where the back end has quadratic objectives or second-order cones."""
        if not self.backend or back_end_of(self.backend).quadratic:
            return (LinearProgram, GroupedSimplexQP, QuadraticProgram, CvxpyProblem)
        return (LinearProgram, CvxpyProblem)

    def reason_unsupported(self, problem: Problem) -> str | None:
        if (crash := crashes(self.backend)) is not None:
            return crash
        if isinstance(problem, CvxpyProblem):
            return self._refusal_of_cvxpy(problem.statement)
        integer = isinstance(problem, LinearProgram) and problem.integer is not None
        if integer and self.backend and not back_end_of(self.backend).integer:
            return "it has integers; use 'highs' or 'cvxpy:HIGHS'"
        return None

    def _refusal_of_cvxpy(self, statement: Any) -> str | None:
        """Why cvxpy finds no way from a model to this back end."""
        import cvxpy

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                statement.get_problem_data(self.backend or None)
        except cvxpy.error.SolverError as error:
            return f"cvxpy refuses it: {str(error).strip().splitlines()[0]}"
        except Exception:  # parameters without values and the like: `solve` says so
            return None
        return None

    def solve(self, problem: Any, warm_start: Solution | None = None) -> SolverResult:
        if isinstance(problem, CvxpyProblem):
            seconds = self._run(problem.statement, warm=warm_start is not None)
            details = {**_counted(problem.statement), **self._claim(problem.statement, seconds)}
            return SolverResult(problem.point(), None, str(problem.statement.status), details)
        began = perf_counter()
        try:
            simplex = self.backend in ("GLOP", "GLPK") or (self.backend and back_end_of(self.backend).integer)
            # With costs of 5e7 an integer search of HiGHS 1.14.0 through cvxpy ended the process.
            searched = self.backend == "HIGHS" and isinstance(problem, LinearProgram) and problem.integer is not None
            return self._solve_scaled(problem, warm_start, cost_unit if simplex and not searched else usual_unit)
        except SolverError:
            if not isinstance(problem, LinearProgram) or unit(problem.objective) == usual_unit(problem.objective):
                raise
        left = self
        if self.time_limit is not None:
            left = replace(self, time_limit=max(LEAST, self.time_limit - (perf_counter() - began)))
        return left._solve_scaled(problem, warm_start, unit)

    def _solve_scaled(
        self, problem: Any, warm_start: Solution | None, unit_of: Callable[[Floats], float]
    ) -> SolverResult:
        """The result for the problem with costs divided by this unit of them."""
        import cvxpy

        statement, x, prices = _stated(problem, unit_of)
        if warm_start is not None and isinstance(x, cvxpy.Variable):
            x.value = warm_start.x
        seconds = self._run(statement, warm=warm_start is not None)
        if x.value is None:
            raise SolverError(f"{self.spec!r} returned no point ({statement.status})")
        point = np.asarray(x.value, dtype=np.float64)
        y = prices() if isinstance(problem, LinearProgram) else None
        if isinstance(problem, QuadraticProgram):
            y = np.concatenate([prices(), point])
        return SolverResult(point, y, str(statement.status), {**_counted(statement), **self._claim(statement, seconds)})

    def _claim(self, statement: Any, seconds: float) -> dict[str, str]:
        """The status that the back end reports: an integer search that ended, or a time limit."""
        status = str(statement.status)
        if is_used_up(self.time_limit, seconds) and status in ("user_limit", "optimal_inaccurate"):  # the latter of SCS
            return {"reported_status": "TIME_LIMIT"}
        if status in ("user_limit", "optimal_inaccurate"):
            return {"reported_status": "ITERATION_LIMIT" if status == "user_limit" else "INACCURATE"}
        return {"reported_status": "OPTIMAL"} if status == "optimal" and statement.is_mixed_integer() else {}

    def _run(self, statement: Any, warm: bool) -> float:
        """Solve in cvxpy, and return the seconds that it took; raise the error of its status."""
        import cvxpy

        began, options = perf_counter(), dict(DEFAULTS.get(self.backend, {}))
        if self.tolerance is not None:
            options.update(dict.fromkeys(TOLERANCES.get(self.backend, ()), self.tolerance))
        if self.time_limit is not None:
            limit = {TIME_LIMIT[self.backend]: self.time_limit}
            options.update({"scipy_options": limit} if self.backend == "SCIPY" else limit)
        if self.threads is not None:
            options[THREADS[self.backend]] = int(self.threads)
            if self.backend == "HIGHS":  # its pool of threads is shared by the process, and of fixed size
                import highspy

                highspy.Highs.resetGlobalScheduler(True)
        try:
            with warnings.catch_warnings():  # the status contains what cvxpy warns of
                warnings.simplefilter("ignore")
                for more in (self._integer_options(statement), self.options):
                    for name, value in more.items():
                        within = options.get(name)
                        options[name] = {**within, **value} if isinstance(within, dict) else value
                backend = self.backend or None
                if backend is None and crashes("OSQP") is not None and not statement.is_mixed_integer():
                    backend = "CLARABEL"  # cvxpy would choose OSQP for quadratic objectives
                statement.solve(solver=backend, warm_start=warm, verbose=self.verbose, **options)
        except UnknownSolverError:
            raise
        except (cvxpy.error.SolverError, ArithmeticError, ValueError, TypeError, AttributeError) as error:
            if self.options and any(name in str(error) for name in self.options):
                raise UnknownSolverError(f"{self.spec!r} refuses the options {dict(self.options)}: {error}") from error
            raise SolverError(f"{self.spec!r} gave up: {error}") from error
        # cvxpy does not raise for a status without a solution.
        status = str(statement.status)
        if status in (cvxpy.INFEASIBLE, cvxpy.INFEASIBLE_INACCURATE, cvxpy.settings.INFEASIBLE_OR_UNBOUNDED):
            raise InfeasibleError(f"{self.spec!r} found no feasible point ({status})")
        if status in (cvxpy.UNBOUNDED, cvxpy.UNBOUNDED_INACCURATE):
            raise UnboundedError(f"{self.spec!r} found the objective unbounded ({status})")
        if status not in (*cvxpy.settings.SOLUTION_PRESENT, cvxpy.USER_LIMIT):
            raise SolverError(f"{self.spec!r} returned no point ({status})")
        return perf_counter() - began

    def _integer_options(self, statement: Any) -> dict[str, Any]:
        """For programs with integers: a gap of 0; and the presolve option of HiGHS, whether it was requested or chosen
        by cvxpy."""
        import cvxpy

        if not statement.is_mixed_integer():
            return {}
        if self.backend not in ("", cvxpy.HIGHS):
            return copy.deepcopy(GAPS.get(self.backend, {}))
        data, chain, _ = statement.get_problem_data(self.backend or None)
        gaps = copy.deepcopy(GAPS.get(chain.solver.name(), {}))
        if chain.solver.name() != cvxpy.HIGHS:
            return gaps
        integers = len(data["bool_vars_idx"]) + len(data["int_vars_idx"])
        return {**gaps, **presolve(integers, data["c"].size, self.options, self.spec)}


def _known_to_cvxpy() -> tuple[str, ...]:
    """The installed back ends, as cvxpy finds them by loading each."""
    import cvxpy

    with warnings.catch_warnings():  # back ends emit warnings when they load
        warnings.simplefilter("ignore")
        return tuple(cvxpy.installed_solvers())


def back_end_of(backend: str) -> BackEnd:
    """The problems that this back end supports: from our table, or from cvxpy for others."""
    if backend in CVXPY:
        return CVXPY[backend]
    from cvxpy.constraints import SOC
    from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC, SOLVER_MAP_QP

    cones = SOLVER_MAP_CONIC.get(backend)
    quadratic = backend in SOLVER_MAP_QP or SOC in getattr(cones, "SUPPORTED_CONSTRAINTS", ())
    return BackEnd("", "", quadratic, bool(getattr(cones, "MIP_CAPABLE", False)))


def _counted(statement: Any) -> dict[str, Any]:
    """The back end's iteration count, if it reports one."""
    count = getattr(statement.solver_stats, "num_iters", None)
    return {} if count is None or count < 0 else {"iterations": int(count)}


def usual_unit(costs: Floats) -> float:
    """The power of two above the median magnitude of the costs: one large cost leaves the others as they are."""
    sizes = np.abs(costs[costs != 0.0])
    return unit(np.array([np.median(sizes)])) if sizes.size else 1.0


def _stated(
    problem: LinearProgram | QuadraticProgram | GroupedSimplexQP, unit_of: Callable[[Floats], float] = usual_unit
) -> tuple[Any, Any, Prices]:
    """The cvxpy problem (a minimum with an objective of order one, so that signs and tolerances have one meaning), the
    expression of the point, and a function that reads the row duals after the solve."""
    import cvxpy

    if isinstance(problem, GroupedSimplexQP):
        return *stated(problem), lambda: np.empty(0)
    columns = problem.lower.size
    if isinstance(problem, LinearProgram):
        integer = False if problem.integer is None else (np.flatnonzero(problem.integer),)
        x = cvxpy.Variable(columns, integer=integer, name="x")
        scale = unit_of(problem.objective)
        costs = problem.objective / (-scale if problem.is_maximization else scale)
        objective = costs @ x
    else:
        problem, x = problem.minimum, cvxpy.Variable(columns, name="x")
        scale = cost_unit(np.append(problem.linear, problem.hessian.data))
        curved = cvxpy.quad_form(x, cvxpy.psd_wrap(problem.hessian / scale))
        objective = curved / 2 + (problem.linear / scale) @ x
    units = row_units(problem.matrix)
    rows = problem.matrix.multiply(1.0 / units[:, None]).tocsr() @ x
    low, high = problem.row_lower / units, problem.row_upper / units
    equal, lower, upper = row_sides(low, high)
    sides = [  # rows, their constraint, the sign of its multiplier in our duals
        (part, related(rows[part], limit[part]), sign)
        for part, related, limit, sign in (
            (equal, operator.eq, low, -1.0),
            (lower, operator.ge, low, 1.0),
            (upper, operator.le, high, -1.0),
        )
        if part.size
    ]
    above, below = np.flatnonzero(np.isfinite(problem.lower)), np.flatnonzero(np.isfinite(problem.upper))
    limits = [x[above] >= problem.lower[above]] if above.size else []
    limits += [x[below] <= problem.upper[below]] if below.size else []

    def prices() -> Floats:
        y = np.zeros(units.size)
        for part, constraint, sign in sides:
            if constraint.dual_value is None:
                return np.full(y.size, np.nan)
            y[part] += sign * scale * np.asarray(constraint.dual_value) / units[part]
        return y

    return cvxpy.Problem(cvxpy.Minimize(objective), [side[1] for side in sides] + limits), x, prices


def stated(program: GroupedSimplexQP) -> tuple[Any, Any]:
    """The program as `GroupedSimplexQP` defines it, in cvxpy, and its variable α.

    The step is a variable of its own, so that cvxpy never sees the Gram matrix. cvxpy's solvers want numbers of order
    one: the variable is β = α / (capacity · usual share), and α an expression in it.
    """
    import cvxpy

    planes, features = program.slopes.shape
    unit = program.capacity[program.group] * program.usual_share
    beta = cvxpy.Variable(planes, nonneg=True, name="beta")
    step = cvxpy.Variable(features, name="step")
    slopes, values = program.slopes * unit[:, None], program.values * unit
    size = max(float(np.einsum("ij,ij->i", slopes, slopes).max()) / program.lam, float(np.abs(values).max()), 1e-300)
    held = np.zeros((program.capacity.size, planes))
    held[program.group, np.arange(planes)] = 1.0
    objective = cvxpy.Maximize((values / size) @ beta - cvxpy.sum_squares(step) / 2)
    constraints = [step == (slopes / np.sqrt(program.lam * size)).T @ beta, held @ beta <= 1.0 / program.usual_share]
    return cvxpy.Problem(objective, constraints), cvxpy.multiply(unit, beta)
