"""HiGHS: linear programs, with or without integers.

Programs with integer and real variables are solved without presolve, because that of HiGHS 1.14.0 loses optima: min 2x
+ 3z, x + z >= 4.5, z integer, 0 <= x, z <= 10 gives 15 instead of 9 (ERGO-Code/HiGHS#2957; repaired by #2961 in
1.15.0, which cannot be loaded together with OR-Tools).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, check_type
from formulations.errors import FormulationError, InfeasibleError, SolverError, UnboundedError, UnknownSolverError
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Solution, Status, row_units, unit
from formulations.solvers.solver import Solver, SolverResult, check_limits, search_claim
from formulations.time_limit import LEAST, seconds_left


def presolve(integers: int, variables: int, options: Mapping[str, Any], spec: str) -> dict[str, Any]:
    """The presolve option of HiGHS for so many integers; UnknownSolverError if the options require another."""
    needed = {"presolve": "off"} if 0 < integers < variables else {}
    if any(options.get(name, value) != value for name, value in needed.items()):
        raise UnknownSolverError(
            f"{spec!r} cannot presolve a program with integer and real variables because HiGHS then reports suboptimal "
            "points as optimal (ERGO-Code/HiGHS#2957); remove the option presolve"
        )
    return needed


DROPPED = 1e-9  # HiGHS silently drops matrix entries of this magnitude or less
CONFLICT_SECONDS = 5.0  # the longest search for a conflict
SMALL_BREACH = 1e-9  # of a row by the rounded point of an integer search that is none
FINEST = 1e-10  # the least tolerance that HiGHS takes
FREE = 1  # the status of a column in an irreducible infeasible set of HiGHS whose limits are not in it
ENDLESS = 1e20  # HiGHS treats limits of this magnitude or more as infinite


def cost_unit(costs: Floats) -> float:
    """The power of two by which costs are divided: 1 unless some are below 1e-3, where the absolute tolerances of HiGHS
    (1e-7) take them for 0, or above 5e14, near its infinity.

    >>> cost_unit(np.array([1e12, 2.0])), cost_unit(np.array([0.5, 0.001])), cost_unit(np.array([2.0**60]))
    (1.0, 1.0, 4096.0)
    >>> cost_unit(np.array([0.5, 2e-9])) == 2.0**-19
    True
    """
    sizes = np.abs(costs[costs != 0.0])
    if not sizes.size:
        return 1.0
    most, least = unit(sizes), unit(np.array([sizes.min()]))
    return most * 2.0**-49 if most > 2.0**49 else min(1.0, max(least * 2.0**9, most * 2.0**-20))


@dataclass(frozen=True)
class Highs(Solver):
    """HiGHS through highspy. Rows with entries that it would drop are scaled by powers of two, and so are costs beyond
    its range.

    time_limit: seconds; a feasible point found by then is returned. threads: HiGHS's own choice by default. method: the
    simplex method ends at a vertex, "ipm" crosses over to one, "pdlp" does not. presolve: "on" or "off" for all
    problems; "choose" leaves it to HiGHS, except for mixed-integer programs (off). rel_gap: the relative gap at which
    an integer search may end. verbose: whether HiGHS prints its log. options: further ones by HiGHS's own names,
    {"simplex_strategy": 4}.

    The dual of a program with integers is that of its relaxation, a bound that can be recomputed. The bound of the
    search tree is in `details["reported_bound"]`.
    """

    time_limit: float | None = None
    threads: int | None = None
    method: Literal["choose", "simplex", "ipm", "pdlp"] = "choose"
    presolve: Literal["choose", "on", "off"] = "choose"
    rel_gap: float = 0.0
    verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    accepts = (LinearProgram,)
    package: ClassVar[str] = "highspy"
    spec = "highs"

    def __post_init__(self) -> None:
        for name, known in (("method", ("choose", "simplex", "ipm", "pdlp")), ("presolve", ("choose", "on", "off"))):
            value = getattr(self, name)
            check_type(name, value, str, error=UnknownSolverError)
            if value not in known:
                raise UnknownSolverError(f"'highs' has no {name} {value!r}; it has {', '.join(known)}")
        check_limits(self.time_limit, self.threads, self.verbose, self.options)
        if self.options:
            import highspy

            probe = highspy.Highs()
            probe.setOptionValue("output_flag", False)
            for name, value in self.options.items():
                if probe.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                    raise UnknownSolverError(f"'highs' has no option {name!r} = {value!r}; see the options of HiGHS")

    def reason_unsupported(self, problem: Any) -> str | None:
        entries = np.abs(problem.matrix.data) / np.repeat(row_units(problem.matrix), np.diff(problem.matrix.indptr))
        if ((entries <= DROPPED) & (entries > 0)).any():
            return "it drops coefficients that are 1e-24 or less of the largest in their row; rescale columns"
        for limit in (problem.lower, problem.upper, problem.row_lower, problem.row_upper):
            if (np.abs(limit[np.isfinite(limit)]) >= ENDLESS).any():
                return f"it takes limits of {ENDLESS:g} or more for infinite; rescale"
        return None

    def solve(self, problem: LinearProgram, warm_start: Solution | None = None) -> SolverResult:
        integer = problem.integer is not None and bool(problem.integer.any())
        relaxed, own = None, self
        if integer and self.time_limit is not None:  # first, because the search may use up all of the time
            began = perf_counter()
            relaxed = self._relaxed_duals(problem, self.time_limit / 2)
            least = min(LEAST, self.time_limit)
            own = replace(self, time_limit=max(self.time_limit - (perf_counter() - began), least))
        run = _Run(problem, own, relaxed=False)
        warm = not integer and warm_start is not None and run.set_basis(warm_start.details.get("basis"))
        if not warm and warm_start is not None and warm_start.has_point_for(problem):
            run.suggest(warm_start.x)
        message = run.solve()
        if not integer:
            found = run.result(message)
            if warm_start and problem.solution(found.x, found.y).status is not Status.OPTIMAL:  # ERGO-Code/HiGHS#3194
                run.highs.clearSolver()
                found = run.result(run.solve())
            if run.sharpen():
                with suppress(SolverError):
                    found = run.result(run.solve())
            return found
        if problem.violation(problem.rounded(run.point())) > SMALL_BREACH:  # the tolerance hides a broken row
            found = self._searched_again(problem, run, message)
        else:
            found = run.result(message)
        limited = self.time_limit is not None
        return replace(found, y=relaxed if limited else self._relaxed_duals(problem, None))

    def solve_costs(self, problem: LinearProgram, costs: Floats) -> tuple[Floats, Floats]:
        """(m, n) optimal points and (m, rows) duals of a program without integers under each row of costs (m, n), each
        from the basis of a feasible point, so that no row depends on another; not verified. Errors as in `solve`."""
        run = _Run(problem, self, relaxed=True, explains=False)
        points, duals, columns = np.empty(costs.shape), np.zeros((len(costs), problem.row_lower.size)), costs.shape[1]
        sign = -1.0 if problem.is_maximization else 1.0
        indices, feasible = np.arange(columns, dtype=np.int32), None
        for i, own in enumerate([np.zeros(columns), *costs], start=-1):
            run.scale = cost_unit(own)
            run.highs.changeColsCost(columns, indices, sign * own / run.scale)
            if feasible is not None:
                run.highs.clearSolver()
                run.highs.setBasis(feasible)
            run.solve()
            if feasible is None:
                feasible = run.highs.getBasis()
                continue
            prices = run.prices()
            if prices is None:
                raise SolverError("HiGHS has no duals")
            points[i], duals[i] = run.point(), prices
        return points, duals

    def _searched_again(self, problem: LinearProgram, run: _Run, message: str) -> SolverResult:
        """With the least tolerances, because those of the first search hid a broken row. Either search may miss the
        optimum then: the better of both points, real variables solved for, without a claim if it is the first."""
        first = refit(problem, problem.rounded(run.point()))
        run.set_tolerances("mip_feasibility_tolerance", "primal_feasibility_tolerance")
        try:
            message, second = run.solve(), run.point()
        except (InfeasibleError, SolverError) as error:  # a verdict on what its tolerances make of the program
            if problem.violation(first) <= problem.tolerance:
                return SolverResult(first, None, message, {"iterations": run.iterations})
            raise SolverError("HiGHS found only points that break a row once integers are rounded") from error
        ahead = (problem.value(first) - problem.value(second)) * (1.0 if problem.is_maximization else -1.0)
        if problem.violation(first) <= problem.tolerance and ahead > 1e-9 * problem.magnitude_at(first):
            return SolverResult(first, None, message, {"iterations": run.iterations})
        return run.result(message)

    def _relaxed_duals(self, problem: LinearProgram, limit: float | None) -> Floats | None:
        """Duals of the relaxation; None if there are none within the limit in seconds."""
        relaxation = _Run(problem, replace(self, time_limit=limit), relaxed=True, explains=False)
        with suppress(InfeasibleError, UnboundedError, SolverError):
            relaxation.solve()
            return relaxation.prices()
        return None


def refit(problem: LinearProgram, x: Floats) -> Floats:
    """The best point with the rounded integers of x; x if it breaks no row, or if there is no such point."""
    if problem.integer is None or problem.integer.all() or problem.violation(x) <= SMALL_BREACH:
        return x
    fixed = np.where(problem.integer, x, problem.lower), np.where(problem.integer, x, problem.upper)
    with suppress(FormulationError):
        found = Highs(time_limit=seconds_left()).solve(replace(problem, integer=None, lower=fixed[0], upper=fixed[1]))
        point = np.where(problem.integer, x, found.x)
        if problem.violation(point) < problem.violation(x):
            return point
    return x


def rescaled(problem: LinearProgram) -> tuple[LinearProgram, Floats]:
    """The program with real columns in units, powers of two that bring coefficients together; and these units."""
    row = np.repeat(np.arange(problem.row_lower.size), np.diff(problem.matrix.indptr))
    column, entries = problem.matrix.indices, np.abs(problem.matrix.data)
    held = entries > 0.0
    row, column, logs = row[held], column[held], np.log2(entries[held])
    size = np.zeros(problem.objective.size)
    per_column = np.maximum(np.bincount(column, minlength=size.size), 1)
    per_row = np.maximum(np.bincount(row, minlength=problem.row_lower.size), 1)
    for _ in range(3):  # a column's mean distance to its rows
        of_row = np.bincount(row, logs + size[column], per_row.size) / per_row
        size = np.bincount(column, of_row[row] - logs, size.size) / per_column
        if problem.integer is not None:
            size[problem.integer] = 0.0
    units = np.ldexp(1.0, np.round(size).astype(int))
    scaled = replace(
        problem,
        objective=problem.objective * units,
        matrix=csr_array(problem.matrix.multiply(units[None, :])),
        lower=problem.lower / units,
        upper=problem.upper / units,
    )
    return scaled, units


def feasible_point(problem: LinearProgram, seconds: float) -> Floats:
    """A point that satisfies all constraints, found without presolve; the errors of `Highs.solve`."""
    scaled, units = rescaled(problem)
    indifferent = replace(scaled, objective=np.zeros(problem.objective.size))
    run = _Run(indifferent, Highs(time_limit=seconds, presolve="off"), relaxed=False, explains=False)
    if problem.integer is not None:
        run.set_tolerances("mip_feasibility_tolerance", "primal_feasibility_tolerance")
    run.solve()
    return run.point() * units


def _is_infeasible(problem: LinearProgram, rows: Bools, columns: Bools, relaxed: bool, seconds: float) -> bool:
    """Whether these rows and these limits of variables alone are proved infeasible within the time."""
    low, high = np.where(columns, problem.lower, -np.inf), np.where(columns, problem.upper, np.inf)
    part = replace(
        problem,
        objective=np.zeros_like(problem.objective),
        row_lower=np.where(rows, problem.row_lower, -np.inf),
        row_upper=np.where(rows, problem.row_upper, np.inf),
        lower=low,
        upper=high,
    )
    try:
        _Run(part, Highs(time_limit=seconds), relaxed, explains=False).solve()
    except InfeasibleError:
        return True
    except SolverError:
        return False
    return False


class _Run:
    """One HiGHS object with the problem passed to it as a scaled minimum; `explains` infeasible ones by a conflict."""

    def __init__(self, problem: LinearProgram, options: Highs, relaxed: bool, explains: bool = True) -> None:
        import highspy

        self.problem, self.status, self.explains = problem, highspy.HighsStatus, explains
        if options.threads is not None:  # the pool of threads is shared by the process, and of fixed size
            highspy.Highs.resetGlobalScheduler(True)
        self.highs = highspy.Highs()
        self.scale, self.row_scale = cost_unit(problem.objective), row_units(problem.matrix)
        limits = [problem.lower, problem.upper, problem.row_lower / self.row_scale, problem.row_upper / self.row_scale]
        known = np.concatenate([limit[np.isfinite(limit)] for limit in limits])
        self.length = min(1.0, unit(known)) if problem.integer is None else 1.0
        self._set(output_flag=options.verbose, solver=options.method, presolve=options.presolve)
        self._set(mip_rel_gap=float(options.rel_gap), mip_abs_gap=0.0)
        self._set(**options.options)
        if options.time_limit is not None:
            self._set(time_limit=float(options.time_limit))
        if options.threads is not None:
            self._set(threads=int(options.threads))
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = problem.matrix.shape
        program.col_cost_ = problem.objective / (-self.scale if problem.is_maximization else self.scale)
        program.col_lower_, program.col_upper_, program.row_lower_, program.row_upper_ = (
            limit / self.length for limit in limits
        )
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.num_row_, matrix.num_col_ = problem.matrix.shape
        matrix.start_, matrix.index_ = problem.matrix.indptr, problem.matrix.indices
        matrix.value_ = problem.matrix.data / np.repeat(self.row_scale, np.diff(problem.matrix.indptr))
        self.integer = problem.integer is not None and not relaxed
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
        """Start the integer search from x, or the simplex method if x is a vertex; other points are ignored."""
        import highspy

        point = highspy.HighsSolution()
        point.col_value = (x / self.length).tolist()
        self._check(self.highs.setSolution(point), "setSolution")

    def set_basis(self, basis: Any) -> bool:
        """Start the simplex method from the basis of another solution; new rows and columns are added to it. False if
        it has more rows or columns than the problem, or HiGHS refuses it."""
        import highspy

        try:
            columns, rows = np.asarray(basis["columns"]), np.asarray(basis["rows"])
        except (TypeError, KeyError):
            return False
        more_columns, more_rows = self.problem.objective.size - columns.size, self.problem.row_lower.size - rows.size
        if more_columns < 0 or more_rows < 0:
            return False
        state = highspy.HighsBasisStatus
        start, kinds = highspy.HighsBasis(), [state(kind) for kind in range(5)]
        at_limit = np.where(np.isfinite(self.problem.lower[columns.size :]), int(state.kLower), int(state.kNonbasic))
        start.col_status = [kinds[kind] for kind in [*columns.tolist(), *at_limit.tolist()]]
        start.row_status = [kinds[kind] for kind in rows.tolist()] + [state.kBasic] * more_rows
        return bool(self.highs.setBasis(start) == self.status.kOk)

    def basis(self) -> dict[str, Any]:
        """The final basis as {"basis": {"columns": statuses, "rows": statuses}}; empty if there is none."""
        basis = self.highs.getBasis()
        if not basis.valid:
            return {}
        kinds = (np.fromiter(map(int, part), np.int8, len(part)) for part in (basis.col_status, basis.row_status))
        return {"basis": dict(zip(("columns", "rows"), kinds, strict=True))}

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
            raise InfeasibleError(f"HiGHS found no feasible point. {self._conflict() if self.explains else ''}".strip())
        if reached in (state.kUnbounded, state.kUnboundedOrInfeasible):
            raise UnboundedError(f"HiGHS reports: {word}; limit the variables on the side where the objective improves")
        if reached in (state.kOptimal, state.kModelEmpty):
            return word
        feasible = self.highs.getInfo().primal_solution_status == highspy.kSolutionStatusFeasible
        if reached in (state.kTimeLimit, state.kIterationLimit, state.kSolutionLimit, state.kInterrupt) and feasible:
            return word
        raise SolverError(f"HiGHS ended without a feasible point: {word}")

    def set_tolerances(self, *names: str) -> None:
        """Set these tolerances to the least that HiGHS takes."""
        self._set(**dict.fromkeys(names, FINEST))

    def sharpen(self) -> bool:
        """Set the least tolerances, to continue from the final basis; False if the optimum is as sharp already."""
        info = self.highs.getInfo()
        off = max(info.max_dual_infeasibility, info.max_primal_infeasibility)
        if not FINEST < off < np.inf or not self.highs.getBasis().valid:
            return False
        self.set_tolerances("primal_feasibility_tolerance", "dual_feasibility_tolerance")
        return True

    def result(self, message: str) -> SolverResult:
        """The point with the claim of an integer search, or with the duals of a program without integers."""
        if self.integer:
            bound = (-self.scale if self.problem.is_maximization else self.scale) * self.highs.getInfo().mip_dual_bound
            details = {"reported_bound": bound, "iterations": self.iterations, **self.claim(integer=True)}
            return SolverResult(self.point(), None, message, details)
        return SolverResult(
            self.point(),
            self.prices(),
            message,
            {"iterations": self.iterations, **self.basis(), **self.claim(integer=False)},
        )

    def claim(self, integer: bool) -> dict[str, str]:
        """The status that HiGHS reports: an integer search that ended, or a time limit."""
        import highspy

        reached = self.highs.getModelStatus()
        if reached == highspy.HighsModelStatus.kTimeLimit:
            return {"reported_status": "TIME_LIMIT"}
        info = self.highs.getInfo()
        ended = integer and reached == highspy.HighsModelStatus.kOptimal
        return search_claim(info.objective_function_value, info.mip_dual_bound) if ended else {}

    def point(self) -> Floats:
        """The values of the variables, in the problem's own scale."""
        return np.array(self.highs.getSolution().col_value, dtype=np.float64) * self.length

    def _conflict(self) -> str:
        """An irreducible infeasible set of rows and limits, found within the time limit. HiGHS narrows the relaxation
        down, if it is infeasible; each remaining row and limit is then left out if the others stay infeasible."""
        import highspy

        highs, known, state = self.highs, "The conflict is not known", highspy.HighsModelStatus
        ends = perf_counter() + min(CONFLICT_SECONDS, seconds_left() or np.inf)
        highs.setOptionValue("time_limit", highs.getRunTime() + ends - perf_counter())
        highs.setOptionValue("iis_time_limit", ends - perf_counter())
        if self.integer:
            size = self.problem.objective.size
            kinds = np.full(size, int(highspy.HighsVarType.kContinuous), dtype=np.uint8)
            highs.changeColsIntegrality(size, np.arange(size, dtype=np.int32), kinds)
            highs.run()
        rows = np.ones(self.problem.row_lower.size, dtype=bool)
        columns = np.isfinite(self.problem.lower) | np.isfinite(self.problem.upper)
        relaxed = not self.integer or highs.getModelStatus() == state.kInfeasible
        if relaxed:
            self._set(iis_strategy=int(highspy.IisStrategy.kIisStrategyFromLp))
            status, subset = highs.getIis()
            if status != self.status.kOk or not (subset.row_index_ or subset.col_index_):
                return known
            rows, limited = np.isin(np.arange(rows.size), subset.row_index_), np.zeros_like(columns)
            limited[[j for j, side in zip(subset.col_index_, subset.col_bound_, strict=True) if side != FREE]] = True
            columns &= limited
        for chosen in (columns, rows):
            for index in np.flatnonzero(chosen):
                left = ends - perf_counter()
                if left < LEAST and not relaxed:
                    return (
                        f"{known}: without its integers, the program has a feasible point or is not decided, and the "
                        "search with them ran out of time. Leave out rows to find those that conflict"
                    )
                chosen[index] = False  # without time a conflict stays as HiGHS found it
                chosen[index] = left < LEAST or not _is_infeasible(self.problem, rows, columns, relaxed, left)
        names = [self.problem.row_name(row) for row in np.flatnonzero(rows).tolist()]
        names += [f"limits of {self.problem.variable_name(column)}" for column in np.flatnonzero(columns).tolist()]
        integers = "" if relaxed else " for integers"
        return f"Conflict{integers}: {', '.join(names)}"

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
