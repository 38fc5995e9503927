"""J(w) = lam ‖w‖₁ + R(w), and its master over planes of R: a linear program, so that most weights are exactly 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from formulations.errors import Infeasible, SolverFailed, Unbounded
from formulations.forms.form import Form, Solution, Status
from formulations.forms.linear_program import LinearProgram
from formulations.problems.master_programs import sparse_margin_dual
from formulations.solvers import solves
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve, takes
from rankopt.errors import MasterFailed, OptionError
from rankopt.optimize.objective import LONGEST, ROUNDING, SHORTEST, MasterAnswer, Objective
from rankopt.optimize.planes import PlaneSet
from rankopt.risk.risk import Risk

Floats = NDArray[np.float64]

FAINT = 1e-8
"""Slopes of this part of the largest in their feature or less are kept from the solver: linear programming drops such
numbers without a word. What is proven is reckoned with all of them."""

NOTHING = 1e-7
"""Weights of this part of the greatest or less are 0: solvers that end inside the feasible set never say 0."""

IDLE = 1e-4
"""A feature whose row is this part or more below lam does not press, so its weight is 0."""


@dataclass(frozen=True, eq=False)
class SparseObjective(Objective):
    """J(w) = lam ‖w‖₁ + R(w) [ORM, section 3.1, Ω = ‖w‖₁].

    w0 is 0, what the penalty pulls to; `begins` is where training starts, which under a nonconvex risk says which
    critical point is found.

    Lower bound: for every α >= 0 with Σ α <= capacity in each group and |slopesᵀα| <= lam in each feature,
    Σ α heights <= min J, since Σ_g R_g(w) >= Σ α (heights + slopes w) >= Σ α heights - lam ‖w‖₁.
    """

    begins: Floats = field(default_factory=lambda: np.zeros(0))

    form: ClassVar[type[Form]] = LinearProgram
    restarts: ClassVar[bool] = True  # a path that was at 0 would stay there: 0 is critical
    start_counts: ClassVar[bool] = False  # least squares, say, leave nothing out

    @classmethod
    def begun_at(cls, risk: Risk, lam: float, start: Floats, master: Solver | str, small: bool) -> Self:
        return cls(risk, lam, np.zeros_like(start), master, small, begins=start)

    @classmethod
    def check(cls, method: object) -> None:
        """Raise OptionError for a method that needs the squared norm: the others ask the master program alone."""
        if getattr(method, "quadratic", False):
            name = type(method).__name__
            raise OptionError(
                f"method {name} cannot train penalty='l1' because its steps are those of a squared norm; use 'bundle' "
                "or 'cutting_planes'"
            )

    @property
    def start(self) -> Floats:
        return self.begins

    def between(self, w: Floats, least: Floats, part: float) -> Floats:
        """All of the way: a weight that is 0 there would never be 0 on the way."""
        return least

    def regulariser(self, w: Floats) -> float:
        return float(self.lam * np.abs(w).sum())

    def takes_groups(self) -> bool:
        two = sparse_margin_dual(np.ones((2, 1)), np.ones(2), lam=self.lam, groups=[0, 1], capacity=[1.0, 1.0])
        return solves(self.master, two)

    def solve_master(
        self, planes: PlaneSet, capacity: Floats, alpha: Floats, precision: float | None = None
    ) -> MasterAnswer:
        """Minimise the penalty and the planes' maxima; w from the prices of the features, the bound from the weights.

        Raises MasterFailed where the solver gives no answer, or no prices.
        """
        began = perf_counter()
        seconds = LONGEST if self.ends is None else min(LONGEST, max(SHORTEST, self.ends - began))
        program = sparse_margin_dual(
            _without_faint(planes.slopes), planes.heights, lam=self.lam, groups=planes.group, capacity=capacity
        )
        start = Solution(program, alpha, None, np.nan, np.nan, Status.FEASIBLE) if alpha.any() else None
        try:
            limits: dict[str, Any] = {"time_limit": seconds} if takes(self.master, "time_limit") else {}
            solution = solve(program, self.master, start, precision=precision, outward=False, **limits)
        except (SolverFailed, Infeasible, Unbounded) as error:
            raise MasterFailed(f"the master program was not solved: {error}; use master='auto', or another") from error
        if not solution.dual:
            raise MasterFailed(f"master {solution.solver!r} tells no prices, which are the weights; use 'auto'")
        weights, pull = self._proving(planes, capacity, solution.x)
        bound = float(weights @ planes.heights)
        bound -= ROUNDING * float(weights @ np.abs(planes.heights))
        prices = solution.dual["feature"]
        presses = (np.abs(pull) >= (1.0 - IDLE) * self.lam) & (np.abs(prices) > NOTHING * np.abs(prices).max())
        return MasterAnswer(np.where(presses, prices, 0.0), bound, weights, perf_counter() - began)

    def _proving(self, planes: PlaneSet, capacity: Floats, given: Floats) -> tuple[Floats, Floats]:
        """The weights of the planes that a solver gave, made feasible, and slopesᵀα before they were scaled."""
        room = capacity[planes.group]
        alpha = np.clip(given, 0.0, room)
        alpha[alpha <= NOTHING * room] = 0.0
        used = np.bincount(planes.group, alpha, capacity.size)
        alpha *= (capacity / np.maximum(used, capacity))[planes.group]
        pull, size = planes.slopes.T @ alpha, np.abs(planes.slopes).T @ alpha
        reach = float((np.abs(pull) + ROUNDING * size).max(initial=0.0))
        return alpha * (self.lam / max(reach, self.lam)) * (1.0 - ROUNDING), pull


def _without_faint(slopes: Floats) -> Floats:
    """The slopes without numbers that are next to nothing in their feature: what linear programming sees."""
    largest = np.abs(slopes).max(axis=0, initial=0.0)
    return np.where(np.abs(slopes) > FAINT * largest, slopes, 0.0)


def largest(objective: Objective) -> float:
    """A lam from which on w = 0 is optimal (of a nonconvex risk: critical): ‖g‖_∞ of the subgradient g of R at 0."""
    here = objective.risk.at(np.zeros_like(objective.w0))
    return float(np.abs(here.slopes - here.references).max()) * (1.0 + FAINT)
