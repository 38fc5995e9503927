"""Our master for the bundle method: an active-set method on one simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from formulations.arrays import Floats
from formulations.errors import SolverFailed
from formulations.modeling.form import Form
from formulations.modeling.grouped_simplex import GroupedSimplexQP
from formulations.modeling.solution import Solution
from formulations.modeling.solve import Answer

__all__ = ["ActiveSet"]


@dataclass(frozen=True)
class ActiveSet:
    """Minimise ½ βᵀHβ - pᵀβ over the unit simplex, where β = α / capacity and a zero plane takes up the slack.

    The planes in use are solved as an equality-constrained program; the step is cut where a weight would turn
    negative, and that plane leaves; when none does, the plane with the smallest gradient enters. Ends when the
    Frank-Wolfe gap βᵀg - min g falls below `tolerance` of the largest |p| (the size of what is maximised: H may be
    many orders larger where planes are steep and lam is small), or can fall no further.

    max_steps: 0 means 50 steps a plane and 200 more.
    """

    tolerance: float = 1e-10
    max_steps: int = 0

    accepts: ClassVar[tuple[type[Form], ...]] = (GroupedSimplexQP,)
    package: ClassVar[str] = "rankopt"
    spec: ClassVar[str] = "active_set"

    def declines(self, problem: Form) -> str | None:
        if isinstance(problem, GroupedSimplexQP) and problem.capacity.size > 1:
            return f"it takes one group and this has {problem.capacity.size}; use 'qpsolvers:clarabel'"
        return None

    def solve(self, problem: GroupedSimplexQP, start: Solution | None = None) -> Answer:
        capacity = float(problem.capacity[0])
        planes = problem.values.size
        gram, values = problem.gram * (capacity / problem.lam), problem.values
        scale = max(float(np.abs(values).max()), float(np.abs(gram).max()), 1e-300)
        # One more plane of zeros turns "at most" into "equal".
        hessian = np.zeros((planes + 1, planes + 1))
        hessian[:planes, :planes] = gram / scale
        linear = np.append(values / scale, 0.0)
        beta = np.zeros(planes + 1)
        if start is not None and 0 < start.x.size <= planes:
            beta[: start.x.size] = problem.feasible(np.pad(start.x, (0, planes - start.x.size)))[: start.x.size]
            beta /= capacity
        beta[planes] = max(0.0, 1.0 - beta.sum())
        beta /= beta.sum()
        beta, steps, gap = self._minimise(hessian, linear, beta)
        return Answer(problem.feasible(beta[:planes] * capacity), message=f"{steps} steps", details={"gap": gap})

    def _minimise(self, hessian: Floats, linear: Floats, beta: Floats) -> tuple[Floats, int, float]:
        limit = self.max_steps or 200 + 50 * linear.size
        small = self.tolerance * float(np.abs(linear).max())
        ridge = 1e-13 * max(1.0, float(np.trace(hessian)) / linear.size)
        used = np.flatnonzero(beta > 0)
        best, least = beta.copy(), np.inf
        idle = 0
        for step in range(limit):
            gradient = hessian @ beta - linear
            entering = int(np.argmin(gradient))
            gap = float(beta @ gradient - gradient[entering])
            if gap < least:
                best, least, idle = beta.copy(), gap, 0
            else:
                idle += 1
            # Rounding may keep a tiny gap alive: stop when it has not fallen for many steps.
            if gap <= small or idle > 20 + 2 * used.size:
                return best, step, least
            move = _newton(hessian, gradient, used, ridge)
            if float(np.abs(move).max(initial=0.0)) <= 1e-15 or float(gradient[used] @ move) >= -1e-2 * small:
                if entering in used:
                    return best, step, least
                used = np.append(used, entering)
                move = _newton(hessian, gradient, used, ridge)
            shrinking = move < 0
            reach = np.full(move.size, np.inf)
            reach[shrinking] = -beta[used][shrinking] / move[shrinking]
            length = min(1.0, float(reach.min()))
            beta[used] = np.maximum(beta[used] + length * move, 0.0)
            if length < 1.0:
                leaving = int(np.argmin(reach))
                beta[used[leaving]] = 0.0
                used = np.delete(used, leaving)
            total = beta.sum()
            if not (total > 0 and np.isfinite(total)):
                raise SolverFailed("the active set lost its point: the planes are not finite or far out of scale")
            beta /= total
        return best, limit, least


def _newton(hessian: Floats, gradient: Floats, used: np.ndarray[tuple[int], np.dtype[np.intp]], ridge: float) -> Floats:
    """The step to the minimum on the plane Σ = 0 of the used weights; along flat directions it is long, not lost."""
    size = used.size
    system = np.zeros((size + 1, size + 1))
    system[:size, :size] = hessian[np.ix_(used, used)]
    system[np.arange(size), np.arange(size)] += ridge
    system[:size, size] = system[size, :size] = 1.0
    right = np.append(-gradient[used], 0.0)
    try:
        return np.asarray(np.linalg.solve(system, right)[:size])
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0][:size])
