"""Feature map of decisions: the points of any problem with a linear objective, scored variable by variable.

An instance has known profits b, one a variable, and predicted profits s. Decisions y are the points of its problem; the
regret of a decision is max_y bᵀy - bᵀy. With `MarginLoss`, the convex bound

    max_y [sᵀy - bᵀy] + bᵀy* - sᵀy*,   y* of greatest profit

is for s = -2 ĉ and b = -c the SPO+ loss of the predicted costs ĉ [Elmachtoub and Grigas 2022, definition 3]. For
observed decisions y° it is the structured hinge loss [Tsochantaridis et al. 2005]: b = 2 y° - 1 makes -bᵀy the Hamming
distance, up to a constant, and y* is y°.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from time import perf_counter
from typing import Any, cast

import numpy as np

from formulations import solve
from formulations.arrays import Bools, Floats, Ints
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.display import CompactReprMixin
from formulations.errors import FormulationError, InfeasibleError, SolverError, UnboundedError, UnsupportedProblemError
from formulations.problems.assignment import Assignment, ProfitProblem, shortest_path_prices
from formulations.problems.cvxpy_problem import as_form
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow, shortest_paths
from formulations.problems.problem import Problem, Solution, Status
from formulations.problems.program import without_constant
from formulations.solvers import default_solvers
from formulations.solvers.highs import Highs
from formulations.solvers.solver import Solver
from rankopt.errors import DataError, OptionError
from rankopt.losses.oracle import ArgmaxResult
from rankopt.options import as_numbers

LINEAR = ("objective", "profit", "cost")  # fields that hold a linear objective
FEASIBLE = 1e-9  # of the terms of a row, by which a point may break it
ROWS = 64  # instances at once in the dynamic program of knapsacks
STATES = 1_000_000  # items times capacities of a knapsack, up to which it is solved by a dynamic program
UNPROVED = 1e-6  # of the terms of its profit, by which the best decision may be below its bound
TIES = 1e-7  # weight of the predicted profits where they only decide among decisions of greatest known profit


@dataclass(frozen=True, eq=False)
class Decisions(CompactReprMixin):
    """Decisions of m instances: decision (m, n), their value (m,), and the proven bound (m,) of the best value."""

    decision: Floats
    value: Floats
    bound: Floats

    @property
    def gap(self) -> Floats:
        """(m,) how far each decision may be from the best one."""
        return np.abs(self.bound - self.value)

    def are_proved(self, profit: Floats) -> Bools:
        """(m,) whether the bound, up to rounding, is the value, under these profits or costs (m, n)."""
        return np.asarray(self.gap <= UNPROVED * np.abs(profit * self.decision).sum(axis=1))


def feasible_set(problem: Any) -> Problem:
    """The problem, or that of a model of another tool, without a constant of its objective, which is a variable."""
    form = as_form(problem)
    if not isinstance(form, LinearProgram):
        return form
    program, _ = without_constant(form.program)
    return form if program.objective.size == form.objective.size else LinearProgram.from_program(program)


@dataclass(frozen=True, eq=False)
class ProblemOracle(CompactReprMixin):
    """gain(y) = bᵀy and r(y) = y over the points y of a problem, for m instances.

    Value and bound of the argmax are kept apart, so that a solver may be inexact: a plane from any point is valid, and
    the objective of training counts the bound. Where best decisions are `unproved`, the loss is of those found.

    problems: one for all instances, or m of them; linear programs with or without integers, flows, assignments and
        constrained rankings. Their objectives are replaced.
    profit: (m, n) the known profits b, costs negated, of which sense the problem ever is.
    solver: as in `formulations.solve`; `Highs(time_limit=1)` limits each instance. "auto" solves shortest paths in
        networks without cycles and small knapsacks of integer weights by dynamic programs, linear programs by HiGHS
        and assignments by SciPy; duals prove the bounds. No instance depends on another.
    observed: (m, n) observed decisions in place of those of greatest profit.
    relaxed: whether the loss-augmented argmax of an integer program or a constrained ranking is taken over its linear
        relaxation: a larger loss, convex too.
    proven: whether bounds of integer programs are recomputed from duals of the relaxation. By default that of a
        finished integer search is the one that the solver reports.
    flat: whether scores are (m n,), a document a variable, and not (m, n), a slot a variable.
    cells, rows: where instances differ in size, the index in profit.ravel() of the variable of each score, (N,) or
        (N, slots), and the bounds (m + 1,) of the rows of each instance in it. Variables without a score have score 0.
    """

    problems: tuple[Problem, ...]
    profit: Floats
    solver: Solver | str | Any = "auto"
    observed: Floats | None = None
    relaxed: bool = False
    proven: bool = False
    flat: bool = False
    cells: Ints | None = None
    rows: Ints | None = None

    def __post_init__(self) -> None:
        problems = self.problems if isinstance(self.problems, Sequence) else (self.problems,)
        object.__setattr__(self, "problems", tuple(problems))
        object.__setattr__(self, "profit", as_numbers("profit", self.profit))
        for problem in self.problems:
            size = variables_of(problem)
            width = self.profit.shape[1] if self.profit.ndim == 2 else -1
            if size > width or (size < width and self.cells is None):
                raise DataError(
                    f"profits must have the shape (instances, {size}), one a variable of {type(problem).__name__}; got "
                    f"{self.profit.shape}"
                )
        if not np.isfinite(self.profit).all():
            raise DataError("profits must be finite; got inf or nan")
        if self.observed is not None and (
            np.shape(self.observed) != self.profit.shape or not np.isfinite(self.observed).all()
        ):
            raise DataError(
                f"observed must have the shape {self.profit.shape} and be finite; got {np.shape(self.observed)}, or nan"
            )
        if len(self.problems) not in (1, len(self.profit)):
            raise DataError(f"{len(self.problems)} problems do not fit {len(self.profit)} instances; pass one, or each")

    @classmethod
    def from_cells(
        cls, problems: Sequence[Problem], profit: Floats, cells: Ints, rows: Ints, solver: Any = "auto"
    ) -> ProblemOracle:
        """Of problems of several sizes. profit and cells have the shape of the scores; cells count in the instance."""
        width = max(map(variables_of, problems))
        table = np.zeros((len(problems), width))
        first = np.repeat(np.arange(len(problems)) * width, np.diff(rows))
        cells = cells + (first if cells.ndim == 1 else first[:, None])
        table.flat[cells.ravel()] = profit.ravel()
        return cls(tuple(problems), table, solver, cells=cells, rows=rows)

    @property
    def shape(self) -> tuple[int, ...]:
        if self.cells is not None:
            return self.cells.shape
        return (self.profit.size,) if self.flat else self.profit.shape

    @property
    def offsets(self) -> Ints:
        if self.rows is not None:
            return self.rows
        return np.arange(len(self.profit) + 1) * (self.profit.shape[1] if self.flat else 1)

    @property
    def claimed(self) -> str:
        """What bounds take from the solver unproved; "" if all is proved."""
        exact = self.proven or (self.relaxed and self.observed is not None) or self._knapsack
        reported = not exact and any(map(is_integer, self.problems))
        parts = ["bounds of integer programs as solvers report"] * reported
        return " and ".join([*parts, *["best decisions that are not proved best"] * bool(self.unproved)])

    @property
    def unproved(self) -> int:
        """The number of instances whose decision of greatest profit is not proved best: the loss is then of the one
        that was found, with the bound for its profit, and may lie on either side of that of the best decision."""
        return 0 if self.observed is not None else int(np.count_nonzero(~self.optimal.are_proved(self.profit)))

    @cached_property
    def _knapsack(self) -> tuple[Ints, Ints] | None:
        """Weights and capacities, if a dynamic program solves all instances."""
        return knapsack_of(self.problems[0]) if len(self.problems) == 1 and self.solver == "auto" else None

    @cached_property
    def optimal(self) -> Decisions:
        """Decisions of greatest profit."""
        return self.solve(self.profit)

    @cached_property
    def target(self) -> Floats:
        """(m, n) y*: the observed decisions, or those of greatest profit that were found."""
        return self.optimal.decision if self.observed is None else self.observed

    @cached_property
    def best(self) -> Floats:
        """(m,) the proven bound of the greatest profit; the profit of observed decisions."""
        return self.optimal.bound if self.observed is None else (self.profit * self.observed).sum(axis=1)

    @cached_property
    def is_admissible(self) -> Bools:
        """(m,) whether the target keeps the constraints, which an observed decision may break."""
        if self.observed is None:
            return np.ones(len(self.profit), dtype=np.bool_)
        problems = [self.problems[i % len(self.problems)] for i in range(len(self.observed))]
        pairs = zip(problems, self.observed, strict=True)
        return np.array([is_feasible(one, row[: variables_of(one)]) for one, row in pairs], dtype=np.bool_)

    @property
    def broken(self) -> int:
        """The number of observed decisions that break the constraints."""
        return int(np.count_nonzero(~self.is_admissible))

    @property
    def worst(self) -> Floats:
        """(m,) the least profit."""
        return -self.solve(-self.profit).value

    def _table(self, scores: Floats) -> Floats:
        """(m, n) the scores of the variables."""
        if self.cells is None:
            return scores.reshape(self.profit.shape)
        table = np.zeros(self.profit.shape)
        table.flat[self.cells.ravel()] = scores.ravel()
        return table

    def _slope(self, decision: Floats) -> Floats:
        """The variables of decisions (m, n) that have scores, in their shape."""
        return decision.reshape(self.shape) if self.cells is None else decision.ravel()[self.cells]

    def at(self, scores: Floats, prove: bool = False) -> ArgmaxResult:
        began, augmented = perf_counter(), self._table(scores) - self.profit
        found = self.solve(augmented, outward=prove, relaxed=self.relaxed, known=self.target)
        decision, value = found.decision, found.value
        known = (augmented * self.target).sum(axis=1)
        worse = (known > value) & self.is_admissible  # a poor solver's decision: the target is better
        decision, value = np.where(worse[:, None], self.target, decision), np.where(worse, known, value)
        earned = (decision * self.profit).sum(axis=1)
        bound = np.maximum(found.bound, value)
        return ArgmaxResult(self._slope(decision), earned, value, bound, perf_counter() - began)

    def mean_of_best(self, which: str = "average") -> Floats:
        """y*, the one that was found where there are several."""
        return self._slope(self.target)

    def best_then_score(self, scores: Floats) -> Floats:
        """A decision of greatest profit, where there are several one of greatest score; y* if the solver misses it."""
        if self.observed is not None:
            return self.mean_of_best()
        own = self._table(scores)
        largest, size = np.abs(self.profit).max(axis=1), np.abs(own).max(axis=1)
        weight = TIES * np.where(size > 0.0, largest / np.where(size > 0.0, size, 1.0), 0.0)
        found = self.solve(self.profit + weight[:, None] * own, known=self.target).decision
        short = (self.profit * (self.target - found)).sum(axis=1) > 1e-9 * np.abs(self.profit * self.target).sum(axis=1)
        lower = (own * (self.target - found)).sum(axis=1) > 0.0
        return self._slope(np.where((short | lower)[:, None], self.target, found))

    def top_scoring(self, scores: Floats) -> Floats:
        return self._slope(self.solve(self._table(scores), known=self.target).decision)

    def select_queries(self, first: int, last: int) -> ProblemOracle:
        """The instances first <= i < last; what was solved for them is not solved again."""
        part = slice(first, last)
        problems = self.problems if len(self.problems) == 1 else self.problems[part]
        observed = None if self.observed is None else self.observed[part]
        chosen = replace(self, problems=problems, profit=self.profit[part], observed=observed)
        if self.cells is not None and self.rows is not None:
            low, high = self.rows[first], self.rows[last]
            cells = self.cells[low:high] - first * self.profit.shape[1]
            chosen = replace(chosen, cells=cells, rows=self.rows[first : last + 1] - low)
        if self.observed is None:
            known = self.optimal
            chosen.__dict__["optimal"] = Decisions(known.decision[part], known.value[part], known.bound[part])
        return chosen

    def solve(
        self, profit: Floats, outward: bool = False, relaxed: bool = False, known: Floats | None = None
    ) -> Decisions:
        """The best decisions under other profits (m, n), with values and bounds of these profits.

        outward: round values and bounds outward. known: (m, n) decisions that take the place of those that a solver
        does not find in its time; the bound is then that of the linear relaxation. Raises what `formulations.solve`
        raises, with the instance's index.
        """
        first = self.problems[0]
        alone = len(self.problems) == 1 and variables_of(first) == profit.shape[1]
        if alone and self.solver == "auto" and isinstance(first, MinCostFlow) and first.path_order is not None:
            flows, least = shortest_paths(first, -profit)
            value = (profit * flows).sum(axis=1)
            return Decisions(flows, value, np.maximum(-least, value))
        if self._knapsack and not relaxed:
            return best_knapsacks(*self._knapsack, profit)
        decision, value, bound = nothing_known(profit)
        for i, program in enumerate(self.problems if self.solver in ("auto", "highs") else ()):
            part, n = slice(None) if len(self.problems) == 1 else slice(i, i + 1), variables_of(program)
            if isinstance(program, LinearProgram) and (relaxed or program.integer is None):
                decision[part, :n], value[part], bound[part] = linear_decisions(program, profit[part, :n])
            elif isinstance(program, Assignment) and self.solver == "auto":
                decision[part, :n], value[part], bound[part] = best_assignments(program, profit[part, :n])
        for i in np.flatnonzero(~(bound - value <= 1e-9 * np.abs(profit * decision).sum(axis=1))).tolist():
            stated = self.problems[i % len(self.problems)]
            n = variables_of(stated)
            own = profit[i, :n]
            problem = with_profit(stated, own, relaxed)
            try:
                found = self._solution(problem, outward)
            except (InfeasibleError, UnboundedError, SolverError) as error:
                limit = np.inf if known is None or type(error) is not SolverError else relaxed_bound(problem, own)
                if known is None or not (limit < np.inf and is_feasible(stated, known[i, :n])):
                    raise type(error)(f"instance {i}: {error}") from error
                decision[i], value[i], bound[i] = known[i], own @ known[i, :n], limit
                continue
            point, sign = decision_of(found), 1.0 if problem.is_maximization else -1.0
            decision[i, slice(n) if point.size == n else cast("Any", stated).cells] = point
            trusted = not self.proven and is_integer(problem) and found.verdict == "optimal (claimed)"
            claimed = found.reported_bound if trusted else None
            value[i], bound[i] = sign * found.value, sign * (found.bound if claimed is None else claimed)
        return Decisions(decision, value, np.maximum(bound, value))

    def _solution(self, problem: Problem, outward: bool) -> Solution:
        """By the first solver of "auto"; by all of them if that leaves a gap, fails or does not accept the problem."""
        if self.solver == "auto":
            with suppress(SolverError, UnsupportedProblemError):
                found = solve(problem, default_solvers(problem)[0], directed_rounding=outward)
                if found.status is Status.OPTIMAL or found.verdict == "optimal (claimed)":
                    return found
        return solve(problem, self.solver, directed_rounding=outward)


def is_integer(problem: Problem) -> bool:
    """Whether it is a linear program with integer variables."""
    return isinstance(problem, LinearProgram) and problem.integer is not None and bool(problem.integer.any())


def check_unit_box(oracle: ProblemOracle) -> None:
    """Raise DataError if a variable can be below 0 or above 1, so that the distance of decisions is not linear."""
    for problem in oracle.problems:
        if isinstance(problem, ProfitProblem):
            continue
        program, units = problem.program, np.eye(variables_of(problem))
        if (program.lower >= 0.0).all() and (program.upper <= 1.0).all():
            continue
        limits = replace(oracle, problems=(problem,), profit=np.vstack([units, -units]), observed=None).optimal
        if (limits.value > np.repeat([1.0, 0.0], len(units)) + FEASIBLE).any():
            raise DataError(
                "a variable can be below 0 or above 1, so that the Hamming distance is not linear; train on costs by "
                "another loss, or on observed decisions by recover_costs(..., ties=True)"
            )


def knapsack_of(problem: Problem) -> tuple[Ints, Ints] | None:
    """Weights (rows, n) and capacities (rows,), if the points are the 0/1 vectors whose integer weights are within the
    capacities, and these are few (`STATES`). None for other problems."""
    if not is_integer(problem):
        return None
    program = cast("LinearProgram", problem)
    binary = np.all(program.integer) and not program.lower.any() and (program.upper == 1.0).all()
    entries, capacity = program.matrix.data, np.floor(np.minimum(program.row_upper, program.matrix.sum(axis=1)))
    if not binary or (entries < 0.0).any() or (entries % 1.0).any() or (program.row_lower > 0.0).any():
        return None
    if (capacity < 0.0).any() or capacity.size > 9 or np.prod(capacity + 1.0) * program.objective.size > STATES:
        return None
    return program.matrix.toarray().astype(np.int64), capacity.astype(np.int64)


def best_knapsacks(weights: Ints, capacity: Ints, profit: Floats) -> Decisions:
    """The best selections (m, n) under profits (m, n), by a dynamic program over items and capacities; their values,
    and bounds, which are the same up to rounding."""
    n, chosen, bound = weights.shape[1], np.zeros(profit.shape), np.zeros(len(profit))
    items = [j for j in range(n) if (weights[:, j] <= capacity).all()]
    for start in range(0, len(profit), ROWS):
        own = profit[start : start + ROWS]
        best = np.zeros((len(own), *(capacity + 1)))  # of the items so far, in a knapsack of each capacity
        taken = np.zeros((n, *best.shape), dtype=bool)
        for j in items:
            room = (slice(None), *(slice(weight, None) for weight in weights[:, j]))
            rest = (slice(None), *(slice(None, top) for top in capacity + 1 - weights[:, j]))
            with_item = best[rest] + own[:, j].reshape(-1, *np.ones_like(capacity))
            np.greater(with_item, best[room], out=taken[j][room])
            np.maximum(with_item, best[room], out=best[room])
        rows, left = np.arange(len(own)), np.tile(capacity[:, None], len(own))
        bound[start : start + ROWS] = best[(rows, *left)]
        for j in reversed(items):
            found = taken[j][(rows, *left)]
            chosen[start : start + ROWS, j] = found
            left -= weights[:, j, None] * found
    value = np.where(chosen == 1.0, profit, 0.0).sum(axis=1)
    return Decisions(chosen, value, np.maximum(bound, value))


def best_assignments(problem: Assignment, profit: Floats) -> tuple[Floats, Floats, Floats]:
    """Optimal assignments (m, n) under profits (m, n), their values (m,) and the bounds (m,) of their duals."""
    from scipy.optimize import linear_sum_assignment

    allowed = True if problem.allowed is None else problem.allowed
    tables = np.where(allowed, profit.reshape(-1, *problem.profit.shape), -np.inf)
    cells, bound = np.zeros(tables.shape), np.empty(len(tables))
    for i, table in enumerate(tables):
        order = linear_sum_assignment(table, maximize=True)[1]
        cells[i, np.arange(order.size), order] = 1.0
        prices = shortest_path_prices(table, order)
        bound[i] = (table - prices).max(axis=1).sum() + prices.sum()
    decision = cells.reshape(profit.shape)
    return decision, np.where(decision == 1.0, profit, 0.0).sum(axis=1), bound


def nothing_known(profit: Floats) -> tuple[Floats, Floats, Floats]:
    """Decisions (m, n), values and bounds (m,) before anything is solved."""
    return np.zeros(profit.shape), np.full(len(profit), -np.inf), np.full(len(profit), np.inf)


def linear_decisions(program: LinearProgram, profit: Floats) -> tuple[Floats, Floats, Floats]:
    """Optimal points (m, n) of a relaxation under profits (m, n) by HiGHS, their values
    (m,) and the bounds (m,) of its duals. Values are -inf where a point breaks a constraint, or HiGHS fails."""
    costs = profit if program.is_maximization else -profit
    try:
        points, duals = Highs().solve_costs(program, costs)
    except FormulationError:
        return nothing_known(profit)
    points = np.clip(points, program.lower, program.upper) + 0.0
    rows = (program.matrix @ points.T).T
    size = FEASIBLE * (abs(program.matrix) @ np.abs(points).T).T
    kept = ((rows >= program.row_lower - size) & (rows <= program.row_upper + size)).all(axis=1)
    sign = 1.0 if program.is_maximization else -1.0
    value = np.where(kept, (profit * points).sum(axis=1), -np.inf)
    return points, value, sign * program.bounds_float64(costs, duals)


def relaxed_bound(problem: Problem, profit: Floats) -> float:
    """The proven bound of the linear relaxation of a linear program under profits (n,); infinite for other problems."""
    if not isinstance(problem, LinearProgram):
        return np.inf
    return float(linear_decisions(replace(problem, integer=None), profit[None])[2][0])


def objective_of(problem: Problem) -> str:
    """The field that holds the linear objective of a problem; OptionError for a problem without one."""
    known = {one.name for one in fields(cast("Any", problem))} if isinstance(problem, Problem) else set()
    name = next((name for name in LINEAR if name in known), None)
    if isinstance(problem, type):
        raise OptionError(f"problem is the class {problem.__name__}; pass an instance of it")
    if name is None or getattr(problem, "takes_soft", False):
        raise OptionError(
            f"decisions cannot be learned for a {type(problem).__name__} because its objective is not linear in one "
            "profit a variable; state it as a LinearProgram, a MinCostFlow or by matching()"
        )
    return name


def variables_of(problem: Problem) -> int:
    """n, the number of variables that have a profit or cost."""
    return int(np.size(getattr(problem, objective_of(problem))))


def with_profit(problem: Problem, profit: Floats, relaxed: bool = False) -> Problem:
    """The problem with these profits (n,), negated if it minimizes; as a linear relaxation if `relaxed`."""
    name = objective_of(problem)
    values = profit if problem.is_maximization else -profit
    changes: dict[str, Any] = {name: values.reshape(np.shape(getattr(problem, name)))}
    if relaxed and isinstance(problem, LinearProgram):
        changes["integer"] = None
    elif relaxed and isinstance(problem, ConstrainedRanking):
        return replace(problem, ranked=None, **changes).linear_program()
    if getattr(problem, "ranked", None) is not None:
        changes["ranked"] = None
    changed: Problem = replace(cast("Any", problem), **changes)
    return changed


def decision_of(solution: Solution) -> Floats:
    """(n,) the value of each variable."""
    if not isinstance(solution.problem, ProfitProblem):
        return np.asarray(solution.x, dtype=np.float64) + 0.0  # no -0.0
    cells = np.zeros(solution.problem.profit.shape)
    cells[np.arange(solution.x.size), solution.x] = 1.0
    return cells.ravel()


def is_feasible(problem: Problem, decision: Floats) -> bool:
    """Whether a decision (n,) keeps the constraints."""
    if not isinstance(problem, ProfitProblem):
        return problem.violation(decision) <= problem.tolerance
    cells = decision.reshape(problem.profit.shape)
    order = cells.argmax(axis=1)
    chosen = np.zeros(cells.shape)
    chosen[np.arange(order.size), order] = 1.0
    return np.array_equal(chosen, cells) and problem.violation(order) <= problem.tolerance
