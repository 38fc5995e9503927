"""The smallest proved change of one limit, or of the objective, that makes a fractional optimum integral.

An optimum is integral if duals prove the value of a ranking optimal: then no point of the linear program exceeds it.

*A limit* of a row is changed by 1, 2, ... to either side until that is so.

*The objective* is changed by d so that the best ranking π becomes an optimum of the linear program, with minimal max
|d|: an inverse program [Ahuja and Orlin 2001], linear in d, the duals y and the duals u of the positions,

    minimize    t
    subject to  u[i] + Σ_r y[r] a[r, c] >= profit[c] + d[c]   at every cell c of position i, = where π holds c
                -t <= d <= t
                y[r] > 0 only where π is at the upper limit of r, < 0 only at the lower

No change below gap / 2k makes any ranking an optimum: the fractional point exceeds it by `gap`, and the two differ by
at most 2k, summed over all cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

from formulations.arrays import Floats, Ints, check_type, frozen
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.constraint import Constraint
from formulations.constraints.duals import case_bound, relaxation_prices
from formulations.display import CompactReprMixin
from formulations.errors import FormulationError, SolverError
from formulations.problems.problem import Solution
from formulations.solving.solve import solve

MAX_STEP = 3  # largest change of a limit
MAX_PRINTED = 4  # number of limit changes that are printed, those of largest value first
MARGIN = 1e-6  # relative excess of the change of an objective, against rounding


@dataclass(frozen=True, eq=False)
class RhsChange(CompactReprMixin):
    """The limit `side` ("at most", "at least") of `row` changed by `step`; problem: with this limit; solution: its best
    ranking, proved by duals."""

    row: str
    side: str
    step: int
    problem: ConstrainedRanking
    solution: Solution

    def __str__(self) -> str:
        return f"{self.side} of {self.row} {self.step:+d} (worth {self.solution.value:g})"


@dataclass(frozen=True, eq=False)
class ObjectiveChange(CompactReprMixin):
    """Changes of profits of at most `largest` that make the best ranking an optimum of the linear program; no change
    below `least` does this for any ranking."""

    largest: float
    least: float
    problem: ConstrainedRanking
    solution: Solution

    def __str__(self) -> str:
        return (
            f"profits changed by {self.largest:.3g} at most, and {self.solution.order.tolist()} is an optimum of the "
            f"linear program; no change below {self.least:.3g} makes any ranking one"
        )


@dataclass(frozen=True, eq=False)
class NearestIntegral(CompactReprMixin):
    """gap: the overestimate of the relaxation; limits: the smallest changes of one limit, all of one size, empty if
    none of up to 3 suffices; objective: None if the gap is 0, or none was found."""

    gap: float
    limits: tuple[RhsChange, ...]
    objective: ObjectiveChange | None

    def __str__(self) -> str:
        if self.gap == 0.0:
            return "nothing changed: it is integral"
        several = sorted(self.limits, key=lambda one: -one.solution.value)
        lines = ["one limit moved: " + ", or ".join(map(str, several[:MAX_PRINTED]))] if several else []
        lines += [] if self.objective is None else [f"another objective: {self.objective}"]
        return "\n".join(lines or ["no small change that was found"])


def nearest_integral(problem: ConstrainedRanking) -> NearestIntegral:
    """The smallest changes of a limit and of the objective that make the optimum of a ranking problem integral.

    Raises what `solve` raises.
    """
    check_type("problem", problem, ConstrainedRanking, cure="Build one by constrained_ranking(profit, admissible).")
    best = solve(problem)
    prices = relaxation_prices(problem.compiled, problem.worth)
    if prices is None:
        raise SolverError("the relaxation could not be solved; its optimum is not known")
    gap = problem.bound(prices) - best.value
    if gap <= _slack(problem):
        return NearestIntegral(0.0, (), None)
    return NearestIntegral(gap, _limits(problem), _objective(problem, best, gap))


def _slack(problem: ConstrainedRanking) -> float:
    return max(1e-9 * problem.scale, problem.rounding)


def _integral_optimum(problem: ConstrainedRanking) -> Solution | None:
    """The best ranking, if duals without cases prove it."""
    solution = solve(problem)
    prices = relaxation_prices(problem.compiled, problem.worth)
    return None if prices is None else _prove(problem, solution.x, prices)


def _prove(problem: ConstrainedRanking, ranking: Any, prices: Floats) -> Solution | None:
    """The ranking with the bound of these duals, if the linear program does not exceed its value. (`solution` uses
    cases if duals leave a gap, which proves the ranking optimal, but not the program integral.)"""
    if problem.bound(prices) - problem.value(ranking) > _slack(problem):
        return None
    return problem.solution(ranking, prices)


def _limits(problem: ConstrainedRanking) -> tuple[RhsChange, ...]:
    for step in range(1, MAX_STEP + 1):
        found = [
            change
            for number, held in enumerate(problem.admissible.constraints)
            for row in range(held.rows)
            for side in ("upper", "lower")
            for way in (step, -step)
            if (change := _change_limit(problem, number, held, row, side, way)) is not None
        ]
        if found:
            return tuple(found)
    return ()


def _change_limit(
    problem: ConstrainedRanking, number: int, held: Constraint, row: int, side: str, way: int
) -> RhsChange | None:
    limits = getattr(held, side).copy()
    if not np.isfinite(limits[row]):
        return None
    limits[row] += way
    if (limits[row] < 0 and held.lower[row] >= 0) or (held.lower if side == "upper" else limits)[row] > (
        limits if side == "upper" else held.upper
    )[row]:
        return None
    fresh = replace(held, lower=limits) if side == "lower" else replace(held, upper=limits)
    constraints = (*problem.admissible.constraints[:number], fresh, *problem.admissible.constraints[number + 1 :])
    try:
        moved = replace(problem, admissible=replace(problem.admissible, constraints=constraints))
        solution = _integral_optimum(moved)
    except FormulationError:  # no ranking is left, or no solver is sure
        return None
    word = "at most" if side == "upper" else "at least"
    return None if solution is None else RhsChange(held.block.name(row), word, way, moved, solution)


def _objective(problem: ConstrainedRanking, best: Solution, gap: float) -> ObjectiveChange | None:
    change = _inverse(problem, best.order)
    if change is None or type(problem) is not ConstrainedRanking:
        return None
    changed = replace(problem, profit=frozen(problem.profit + change), ranked=None)
    prices = relaxation_prices(changed.compiled, changed.worth)
    if prices is None or case_bound(changed.compiled, changed.worth, prices, np.empty(0)) == np.inf:
        return None
    proved = _prove(changed, best.x, prices)
    if proved is None:
        return None
    least = gap / (2.0 * problem.positions)
    return ObjectiveChange(float(np.abs(change).max()), least, changed, proved)


def _inverse(problem: ConstrainedRanking, order: Ints) -> Floats | None:
    """(k, n) the smallest change of the profits, by its largest entry, that makes the ranking an optimum."""
    from scipy.optimize import linprog

    stated, (k, n) = problem.compiled, problem.profit.shape
    cells, rows = stated.cell.size, stated.lower.size - k
    scale = max(problem.scale, 1e-300)
    held = stated.index[np.arange(k) * n + order]
    sums = np.asarray(stated.matrix[k:, held].sum(axis=1)).ravel()
    high, low = sums >= stated.upper[k:] - stated.rounding, sums <= stated.lower[k:] + stated.rounding
    earned = csr_array((np.ones(cells), (np.arange(cells), stated.cell // n)), shape=(cells, k))
    # profit + d <= u + A y, columns d, u, y, t
    nowhere = csr_array((cells, 1))
    under = csr_array(hstack([eye_array(cells), -earned, -stated.weights, nowhere]))
    profit = problem.worth.ravel()[stated.cell] / scale
    one = csr_array(np.ones((cells, 1)))
    rest = csr_array((cells, k + rows))
    within = vstack([hstack([eye_array(cells), rest, -one]), hstack([-eye_array(cells), rest, -one])])
    found = linprog(
        np.concatenate([np.zeros(cells + k + rows), [1.0]]),
        A_ub=csr_array(vstack([under, within])),
        b_ub=np.concatenate([-profit, np.zeros(2 * cells)]),
        A_eq=csr_array(under[held]),
        b_eq=-profit[held],
        bounds=np.array(
            [[-np.inf, np.inf]] * (cells + k)
            + [[-np.inf if b else 0.0, np.inf if a else 0.0] for a, b in zip(high, low, strict=True)]
            + [[0.0, np.inf]]
        ),
        method="highs-ds",
    )
    if found.status != 0:
        return None
    change = np.zeros(k * n)
    change[stated.cell] = found.x[:cells] * scale
    change = change.reshape(k, n)
    change[np.arange(k), order] += MARGIN * float(np.abs(change).max())
    return change
