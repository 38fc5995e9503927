"""HiGHS: linear programs, with or without integers.

Programs with integer and real variables are solved without presolve, because that of HiGHS 1.14.0 loses optima: min 2x
+ 3z, x + z >= 4.5, z integer, 0 <= x, z <= 10 gives 15 instead of 9 (ERGO-Code/HiGHS#2957; repaired by #2961 in
1.15.0, which cannot be loaded together with OR-Tools).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from formulations.arrays import Floats, check_type
from formulations.errors import InfeasibleError, SolverError, UnboundedError, UnknownSolverError
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Problem, Solution, row_units, unit
from formulations.solvers.solver import Solver, SolverResult, check_limits


def presolve(integers: int, variables: int, options: Mapping[str, Any], spec: str) -> dict[str, Any]:
    """The presolve option of HiGHS for a program with this many integer variables among all of its variables;
    UnknownSolverError if the options require another."""
    needed = {"presolve": "off"} if 0 < integers < variables else {}
    if any(options.get(name, value) != value for name, value in needed.items()):
        raise UnknownSolverError(
            f"{spec!r} cannot presolve a program with integer and real variables because HiGHS then reports suboptimal "
            "points as optimal (ERGO-Code/HiGHS#2957); remove the option presolve"
        )
    return needed


DROPPED = 1e-9  # HiGHS silently drops matrix entries of this magnitude or less
ENDLESS = 1e20  # HiGHS treats limits of this magnitude or more as infinite


@dataclass(frozen=True)
class Highs(Solver):
    """HiGHS through highspy. Costs are scaled by a power of two, as are rows with entries that it would drop.

    time_limit: seconds; a feasible point found by then is returned. threads: HiGHS's own choice by default. method: the
    simplex method ends at a vertex, "ipm" crosses over to one, "pdlp" does not. presolve: "on" or "off" for all
    problems; "choose" leaves it to HiGHS, except for mixed-integer programs (off). verbose: whether HiGHS prints its
    log. options: further ones by HiGHS's own names, {"simplex_strategy": 4}.

    The dual of a program with integers is that of its relaxation, a bound that can be recomputed. The bound of the
    search tree is in `details["reported_bound"]`.
    """

    time_limit: float | None = None
    threads: int | None = None
    method: Literal["choose", "simplex", "ipm", "pdlp"] = "choose"
    presolve: Literal["choose", "on", "off"] = "choose"
    verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    accepts = (LinearProgram,)
    package: ClassVar[str] = "highspy"
    spec = "highs"

    def __post_init__(self) -> None:
        for name in ("method", "presolve"):
            check_type(name, getattr(self, name), str, error=UnknownSolverError)
        if self.method not in ("choose", "simplex", "ipm", "pdlp"):
            raise UnknownSolverError(f"'highs' has no method {self.method!r}; it has choose, simplex, ipm and pdlp")
        if self.presolve not in ("choose", "on", "off"):
            raise UnknownSolverError(f"'highs' has no presolve {self.presolve!r}; it has choose, on and off")
        check_limits(self.time_limit, self.threads, self.verbose, self.options)
        if self.options:
            import highspy

            probe = highspy.Highs()
            probe.setOptionValue("output_flag", False)
            for name, value in self.options.items():
                if probe.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                    raise UnknownSolverError(
                        f"'highs' has no option {name!r} of value {value!r}; see the list of options of HiGHS"
                    )

    def reason_unsupported(self, problem: Problem) -> str | None:
        if not isinstance(problem, LinearProgram):
            return None
        entries = np.abs(problem.matrix.data) / np.repeat(row_units(problem.matrix), np.diff(problem.matrix.indptr))
        if ((entries <= DROPPED) & (entries > 0)).any():
            return f"it drops coefficients that are {DROPPED:g} or less of the largest in their row; rescale columns"
        for limit in (problem.lower, problem.upper, problem.row_lower, problem.row_upper):
            if (np.abs(limit[np.isfinite(limit)]) >= ENDLESS).any():
                return f"it takes limits of {ENDLESS:g} or more for infinite; rescale"
        return None

    def solve(self, problem: LinearProgram, warm_start: Solution | None = None) -> SolverResult:
        integer = problem.integer is not None and bool(problem.integer.any())
        run = _Run(problem, self, relaxed=False)
        if integer and warm_start is not None:
            run.suggest(warm_start.x)
        message = run.solve()
        x = np.array(run.highs.getSolution().col_value, dtype=np.float64)
        if not integer:
            return SolverResult(x, run.prices(), message, {"iterations": run.iterations})
        x[problem.integer] = np.round(x[problem.integer])
        scale = -run.scale if problem.is_maximization else run.scale
        bound = scale * run.highs.getInfo().mip_dual_bound
        details = {"reported_bound": bound, "iterations": run.iterations}
        relaxation = _Run(problem, self, relaxed=True)
        try:
            relaxation.solve()
        except SolverError:
            return SolverResult(x, None, message, details)
        return SolverResult(x, relaxation.prices(), message, details)


class _Run:
    """One HiGHS object with the problem passed to it as a scaled minimum."""

    def __init__(self, problem: LinearProgram, options: Highs, relaxed: bool) -> None:
        import highspy

        self.problem, self.status = problem, highspy.HighsStatus
        if options.threads is not None:  # the pool of threads is shared by the process, and of fixed size
            highspy.Highs.resetGlobalScheduler(True)
        self.highs = highspy.Highs()
        self.scale, self.row_scale = unit(problem.objective), row_units(problem.matrix)
        self._set(output_flag=options.verbose, solver=options.method, presolve=options.presolve)
        self._set(**options.options)
        if options.time_limit is not None:
            self._set(time_limit=float(options.time_limit))
        if options.threads is not None:
            self._set(threads=int(options.threads))
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = problem.matrix.shape
        program.col_cost_ = problem.objective / (-self.scale if problem.is_maximization else self.scale)
        program.col_lower_, program.col_upper_ = problem.lower, problem.upper
        program.row_lower_, program.row_upper_ = problem.row_lower / self.row_scale, problem.row_upper / self.row_scale
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.num_row_, matrix.num_col_ = problem.matrix.shape
        matrix.start_, matrix.index_ = problem.matrix.indptr, problem.matrix.indices
        matrix.value_ = problem.matrix.data / np.repeat(self.row_scale, np.diff(problem.matrix.indptr))
        if problem.integer is not None and not relaxed:
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            program.integrality_ = [kinds[int(flag)] for flag in problem.integer]
            needed = presolve(int(problem.integer.sum()), problem.integer.size, options.options, "highs")
            if options.presolve == "choose":
                self._set(**needed)
        self._check(self.highs.passModel(program), "passModel")

    def _set(self, **options: Any) -> None:
        for name, value in options.items():
            if self.highs.setOptionValue(name, value) != self.status.kOk:
                raise UnknownSolverError(f"HiGHS refuses {name} = {value!r}")

    def _check(self, status: Any, step: str) -> None:
        if status == self.status.kError:
            raise SolverError(f"HiGHS failed in {step}: {self.highs.modelStatusToString(self.highs.getModelStatus())}")

    def suggest(self, x: Floats) -> None:
        """Start the integer search from x."""
        import highspy

        point = highspy.HighsSolution()
        point.col_value = [float(value) for value in x]
        self._check(self.highs.setSolution(point), "setSolution")

    def solve(self) -> str:
        """Run HiGHS and return its status text. Raises the error of the model status."""
        import highspy

        state = highspy.HighsModelStatus
        self._check(self.highs.run(), "run")
        reached = self.highs.getModelStatus()
        if reached == state.kUnboundedOrInfeasible:  # presolve cannot decide which
            self._set(presolve="off")
            self._check(self.highs.run(), "run")
            reached = self.highs.getModelStatus()
        word = str(self.highs.modelStatusToString(reached))
        if reached == state.kInfeasible:
            raise InfeasibleError(f"HiGHS found no feasible point. {self._conflict()}")
        if reached in (state.kUnbounded, state.kUnboundedOrInfeasible):
            raise UnboundedError(f"HiGHS reports: {word}")
        if reached in (state.kOptimal, state.kModelEmpty):
            return word
        feasible = self.highs.getInfo().primal_solution_status == highspy.kSolutionStatusFeasible
        if reached in (state.kTimeLimit, state.kIterationLimit, state.kSolutionLimit, state.kInterrupt) and feasible:
            return word
        raise SolverError(f"HiGHS ended without a feasible point: {word}")

    def _conflict(self) -> str:
        """An irreducible infeasible set of rows and limits, as HiGHS finds it."""
        import highspy

        self._set(iis_strategy=int(highspy.IisStrategy.kIisStrategyFromLp))
        status, subset = self.highs.getIis()
        if status != self.status.kOk or not (subset.row_index_ or subset.col_index_):
            return "The conflict is not known"
        names = [self.problem.row_name(row) for row in subset.row_index_]
        names += [f"limits of {self.problem.variable_name(column)}" for column in subset.col_index_]
        return f"Conflict: {', '.join(names)}"

    @property
    def iterations(self) -> int:
        """Iterations of the simplex, interior-point or first-order method."""
        info = self.highs.getInfo()
        return int(max(0, info.simplex_iteration_count, info.ipm_iteration_count, info.pdlp_iteration_count))

    def prices(self) -> Floats | None:
        """A dual per row, in the problem's own scale; None where HiGHS has none."""
        solution = self.highs.getSolution()
        if not solution.dual_valid:
            return None
        return np.asarray(np.array(solution.row_dual, dtype=np.float64) * self.scale / self.row_scale)
