"""Our master for the bundle method: an active-set method on one simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from formulations.arrays import Floats
from formulations.errors import SolverFailed
from formulations.modeling.form import EPSILON, Form
from formulations.modeling.grouped_simplex import GroupedSimplexQP
from formulations.modeling.solution import Solution
from formulations.modeling.solve import Answer

__all__ = ["ActiveSet"]


@dataclass(frozen=True)
class ActiveSet:
    """Minimise ½ βᵀHβ - pᵀβ over a simplex, where β is α in a unit of its own and a zero plane takes up the slack.

    The planes in use are solved as an equality-constrained program; the step is cut where a weight would turn
    negative, and that plane leaves; when the planes in use gain nothing any more, the plane with the smallest gradient
    enters. β is measured in the share of the capacity that one plane alone would take, tiny where planes are steep and
    lam is small. Ends when the Frank-Wolfe gap falls below `tolerance` of what one plane alone would reach (or below
    rounding), or when neither gap nor objective falls any more.

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
        planes = problem.values.size
        capacity, highest = float(problem.capacity[0]), float(np.abs(problem.values).max())
        steepest = float(problem.gram.diagonal().max()) * capacity / problem.lam
        # With steep planes and a small lam good weights are a tiny share of the capacity: measure them by that share.
        share = min(1.0, max(highest / steepest, 1e-12)) if steepest > 0 else 1.0
        unit, total = capacity * share, 1.0 / share
        scale = max(highest, steepest * share, 1e-300)
        # One more plane of zeros turns "at most" into "equal".
        hessian = np.zeros((planes + 1, planes + 1))
        hessian[:planes, :planes] = problem.gram * (unit / problem.lam / scale)
        linear = np.append(problem.values / scale, 0.0)
        cold = np.zeros(planes + 1)
        cold[planes] = total
        if start is None or not 0 < start.x.size <= planes:
            beta, steps, gap = self._minimise(hessian, linear, cold, total)
        else:
            hot = np.append(problem.feasible(np.pad(start.x, (0, planes - start.x.size))) / unit, 0.0)
            hot[planes] = max(0.0, total - hot.sum())
            beta, steps, gap = self._minimise(hessian, linear, hot, total)
            if gap > 1e-6 * total:  # lost among dependent planes: a poor start has many
                beta, steps, gap = self._minimise(hessian, linear, cold, total)
        return Answer(beta[:planes] * unit, message=f"{steps} steps", details={"gap": gap * unit * scale})

    def _minimise(self, hessian: Floats, linear: Floats, beta: Floats, total: float) -> tuple[Floats, int, float]:
        """The best β found with Σβ = total, the steps it took, and its Frank-Wolfe gap."""
        limit = self.max_steps or 200 + 50 * linear.size
        highest = float(np.abs(linear).max())
        small = max(self.tolerance, 4.0 * EPSILON * total) * highest
        ridge = 1e-13 * max(1.0, float(np.trace(hessian)) / linear.size)
        used = np.flatnonzero(beta > 0)
        best, least, lowest = beta.copy(), np.inf, np.inf
        idle = 0
        for step in range(limit):
            gradient = hessian @ beta - linear
            entering = int(np.argmin(gradient))
            gap = float(beta @ gradient - total * gradient[entering])
            value = 0.5 * float(beta @ (gradient - linear))
            falls = value < lowest - 4.0 * EPSILON * abs(value)
            idle = 0 if falls or gap < least else idle + 1
            lowest = min(lowest, value)
            if gap < least:
                best, least = beta.copy(), gap
            # Rounding may keep a tiny gap alive: stop when nothing has fallen for some steps.
            if gap <= max(small, self.tolerance * abs(value)) or idle > 10 + used.size:
                return best, step, least
            move = _newton(hessian, gradient, used, ridge)
            # Where the planes in use gain nothing any more, another one enters.
            if entering not in used and float(gradient[used] @ move) >= -1e-2 * small:
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
            size = beta.sum()
            if not (size > 0 and np.isfinite(size)):
                raise SolverFailed("the active set lost its point: the planes are not finite or far out of scale")
            beta *= total / size
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
