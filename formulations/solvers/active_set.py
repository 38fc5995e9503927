"""An active-set method on simplices for the master problem of the bundle method and of one slack per query; initial
weights from the package daqp for small problems, without compiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.problems.problem import Solution
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers.solver import Solver, SolverResult

FEW = 32  # number of planes that Python handles in a millisecond
MANY = 512  # number of planes that Python handles in seconds, where daqp gives no initial weights


@dataclass(frozen=True)
class ActiveSet(Solver):
    """Maximize the margin dual, of one group or of many, by an active-set method. Named `active_set` and
    `block_ascent`.

    The active planes hold weight and are independent. A Cholesky factor of their Gram matrix, updated as planes enter
    and leave, gives their best point; the Gram matrix of all planes, which loses digits, is never formed. A plane
    leaves where its weight would become negative; the plane that exceeds the model most enters, and replaces one that
    it depends on. The method ends if the Frank-Wolfe gap, summed over the groups, is below `tolerance` of the objective
    (or rounding), or if neither gap nor objective improves. A warm start is dropped if it leads nowhere. Of many
    groups, those with a plane above the one that holds the capacity are processed, the worst first.

    compiled: whether to use compiled code; None: if there are more than FEW planes. For small data Python is fast
        enough, with initial weights from daqp; if it finds none for more than MANY planes, compiled code is used.
    max_steps: planes that may enter; 0 means 50 times their number plus 200.
    """

    tolerance: float = 1e-10
    max_steps: int = 0
    compiled: bool | None = None

    accepts = (GroupedSimplexQP,)
    package: ClassVar[str] = "rankopt"
    spec = "active_set"

    def solve(self, problem: GroupedSimplexQP, warm_start: Solution | None = None) -> SolverResult:
        from formulations.active_set.solver import climbed

        planes, hot = problem.values.size, None
        compiled = planes > FEW if self.compiled is None else self.compiled
        if warm_start is not None and 0 < warm_start.x.size <= planes:
            hot = problem.feasible(np.pad(warm_start.x, (0, planes - warm_start.x.size)))
        if not compiled:
            guess = guessed(problem.slopes, problem.values, problem.group, problem.capacity, float(problem.lam))
            if guess is not None and np.isfinite(guess).all():
                guess = problem.feasible(guess)
                hot = guess if hot is None or problem.value(guess) > problem.value(hot) else hot
            compiled = guess is None and planes > MANY
        weights, step, steps, gap = climbed(problem, hot, self.tolerance, self.max_steps, compiled)
        return SolverResult(weights, step, f"{steps} steps", {"gap": gap})


INFINITE = 1e30


def guessed(slopes: Floats, values: Floats, group: Ints, capacity: Floats, lam: float) -> Floats | None:
    """The multipliers α of

        min over δ, ξ of (lam/2) ‖δ‖² + Σ_g capacity[g] ξ_g   subject to   ξ_g >= values[i] + slopes[i]·δ,  ξ_g >= 0

    by a dual active-set method [Arnström, Bemporad and Axehill 2022], or None. Of d features and m planes there are
    min(d, m) + G variables, δ being a combination of the planes. The heights ξ have no curvature, which costs digits.
    """
    import daqp

    planes, groups = values.size, capacity.size
    slopes = slopes if slopes.shape[1] <= planes else np.asarray(np.linalg.qr(slopes.T, mode="r")).T
    size, most, high = slopes.shape[1], float(capacity.max()), float(np.abs(values).max())
    if not high > 0.0:
        return None
    # In units of the highest plane, and of the step that costs as much as one group at that height.
    far = np.sqrt(most * high / lam)
    hessian, rows = np.zeros((size + groups, size + groups)), np.zeros((planes, size + groups))
    hessian[range(size), range(size)] = 1.0
    rows[:, :size] = slopes * (far / high)
    rows[range(planes), size + group] = -1.0
    linear = np.concatenate([np.zeros(size), capacity / most])
    upper = np.concatenate([np.full(size + groups, INFINITE), -values / high])
    lower = np.concatenate([np.full(size, -INFINITE), np.zeros(groups), np.full(planes, -INFINITE)])
    _, _, flag, details = daqp.solve(
        hessian, linear, rows, upper, lower, np.zeros(upper.size, np.int32), primal_tol=1e-11
    )
    return np.asarray(details["lam"][size + groups :]) * most if flag in (1, 2) else None
