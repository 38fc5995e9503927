"""Our master for the bundle method and for one slack a query: an active-set method on simplices.

A guess at the best weights of a small margin dual, by the package daqp: nearly right, and nothing is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.problems.problem import Form, Solution
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers.solver import Answer

FEW = 32
"""Planes that Python copes with in a millisecond."""


@dataclass(frozen=True)
class ActiveSet:
    """Maximise the margin dual, of one group or of many: the best point for the planes in use, then another plane, and
    so on. Named `active_set` and `block_ascent`.

    The planes in use hold weight and are independent: a Cholesky factor of their Gram matrix gives the best point for
    them, kept up to date as planes come and go. The step is cut where a weight would turn negative, and that plane
    leaves; at the best point the plane that rises highest above the model enters. One that depends on those in use
    takes the weight of one of them. No Gram matrix of all planes is formed: its digits end where planes are steep and
    nearly parallel. Ends when the Frank-Wolfe gap, summed over the groups, falls below `tolerance` of the objective (or
    below rounding), or when neither gap nor objective moves any more. A start is used, and given up if it leads
    nowhere.

    Of many groups those are passed over in which a plane rises above the one that holds the capacity, the worst first.
    With d features no more than d planes beside one a group need hold weight, so the factor is d × d at most, however
    many groups and planes there are; a price costs d, and the best plane of a group is looked for only when it is the
    group's turn.

    compiled: whether compiled code is used; for small data Python is enough, from weights that daqp guesses, and
        rankers ask for that. None: if there are more than FEW planes.
    max_steps: planes that may enter; 0 means 50 times as many as there are and 200 more.
    """

    tolerance: float = 1e-10
    max_steps: int = 0
    compiled: bool | None = None

    accepts = (GroupedSimplexQP,)
    package: ClassVar[str] = "rankopt"
    spec = "active_set"

    def declines(self, problem: Form) -> str | None:
        return None

    def solve(self, problem: GroupedSimplexQP, start: Solution | None = None) -> Answer:
        from formulations.active_set.solver import climbed

        planes, hot = problem.values.size, None
        compiled = planes > FEW if self.compiled is None else self.compiled
        if start is not None and 0 < start.x.size <= planes:
            hot = problem.feasible(np.pad(start.x, (0, planes - start.x.size)))
        if not compiled:
            guess = guessed(problem.slopes, problem.values, problem.group, problem.capacity, float(problem.lam))
            if guess is not None and np.isfinite(guess).all():
                guess = problem.feasible(guess)
                hot = guess if hot is None or problem.value(guess) > problem.value(hot) else hot
        weights, step, steps, gap = climbed(
            problem.slopes, problem.values, problem.group, problem.capacity, float(problem.lam),
            hot, self.tolerance, self.max_steps, compiled,
        )  # fmt: skip
        return Answer(weights, step, f"{steps} steps", {"gap": gap})


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
    _, _, flag, told = daqp.solve(hessian, linear, rows, upper, lower, np.zeros(upper.size, np.int32), primal_tol=1e-11)
    return np.asarray(told["lam"][size + groups :]) * most if flag in (1, 2) else None
