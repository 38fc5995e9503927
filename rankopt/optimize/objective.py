"""J(w) = (lam/2)‖w - w₀‖² + R(w), and its master program over planes of R."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from formulations.active_set.solver import LOST
from formulations.errors import SolverFailed
from formulations.forms.form import Form, Solution, Status
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.problems.master_programs import margin_dual
from formulations.solvers import named, solves
from formulations.solvers.active_set import ActiveSet
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve, takes
from rankopt.errors import MasterFailed
from rankopt.optimize.planes import PlaneSet
from rankopt.risk.risk import Planes, Risk

Floats = NDArray[np.float64]

ROUNDING = 8 * 2.0**-52
"""Rounding of a sum of products, relative to the sum of their magnitudes."""

SOFTEST = 1e-14
"""w = w₀ - slopesᵀα / lam loses its digits where lam is less than so many times (steepness of the risk)² / (risk)."""

LONGEST = 300.0
"""Seconds that a solver which takes a limit may spend on one master program."""

OPEN = 64
"""Planes, and features, from which on a master of small data is compiled too: so many planes may carry weight at once,
and Python would spend seconds on each master where features differ in scale."""

SHORTEST = 1.0
"""Seconds that it gets in any case, though those of training are over: no limit leaves a solver without an answer."""


@dataclass(frozen=True, eq=False)
class MasterAnswer:
    """Where the model of J is least (w), a proven lower bound of J, the dual weights alpha, and seconds spent."""

    w: Floats
    bound: float
    alpha: Floats
    seconds: float


@dataclass(frozen=True, eq=False)
class Objective:
    """The regularised risk that is minimised, and the solver of its master program.

    small: whether the data are so little that our own solver compiles nothing for them, if the master is small too.
    ends: the reading of `perf_counter` at which the seconds of training are over, if they are limited.
    """

    risk: Risk
    lam: float
    w0: Floats
    master: Solver | str = "auto"
    small: bool = False
    ends: float | None = None

    form: ClassVar[type[Form]] = GroupedSimplexQP
    """Of the master program."""

    start_counts: ClassVar[bool] = True
    """Whether the start is one of the points that a judge chooses from."""

    restarts: ClassVar[bool] = False
    """Whether each lam of a path of a nonconvex risk begins at the start, and not where the one before ended."""

    @classmethod
    def begun_at(cls, risk: Risk, lam: float, start: Floats, master: Solver | str, small: bool) -> Self:
        """The objective of this penalty, training to start there; this one pulls to that point too."""
        return cls(risk, lam, start, master, small)

    @classmethod
    def check(cls, method: object) -> None:
        """Raise OptionError for a method that cannot minimise it; this one all can."""

    @property
    def start(self) -> Floats:
        """Where training starts, if nothing else is said."""
        return self.w0

    def between(self, w: Floats, least: Floats, part: float) -> Floats:
        """The point that lies a part of the way from w to where the model is least."""
        return w + part * (least - w)

    def regulariser(self, w: Floats) -> float:
        return float(self.lam / 2.0 * np.sum((w - self.w0) ** 2))

    def prepare(self) -> None:
        """Load what a first step needs: compiled code, workers with their data. Limits of time begin afterwards."""
        here = self.risk.at(self.w0, queries=(0, 1))
        planes = PlaneSet.empty(1, self.w0.size).plus(here.slopes, here.heights, np.zeros(1, dtype=np.int64))
        with suppress(MasterFailed):  # the first step says so, if it was not this plane alone
            self.solve_master(planes, np.ones(1), np.zeros(1))

    def takes_groups(self) -> bool:
        """Whether the solver of the master program takes planes of more than one group."""
        two = margin_dual(np.zeros((2, 1)), np.zeros(2), lam=self.lam, groups=[0, 1], capacity=[1.0, 1.0])
        return solves(self.master, two)

    def upper(self, w: Floats, planes: Planes) -> float:
        """J(w) with the argmax's proven bound in place of its value."""
        return self.regulariser(w) + planes.bound

    def majorant(self, w: Floats) -> Objective:
        """The convex objective nowhere below this one that touches it at w."""
        return replace(self, risk=self.risk.majorant(w))

    def solve_master(
        self, planes: PlaneSet, capacity: Floats, alpha: Floats, precision: float | None = None
    ) -> MasterAnswer:
        """Minimise the regulariser and the planes' maxima, from the dual weights alpha.

        The bound is the dual objective of whatever weights the solver returned, made feasible and evaluated by us, less
        what rounding may have added: masters are solved to the last digit, and a bound must not pass an objective.

        precision: the relative gap that suffices, handed to solvers that have a tolerance; None leaves them theirs.

        Raises MasterFailed where the solver gives no answer.
        """
        softest = SOFTEST * self._natural_lam(planes, capacity)
        if self.lam >= softest:
            return self._solved(planes, capacity, alpha, precision)
        # The model is flat around its least point: that of a larger lam is as good, and is found. Of the bound nothing
        # is left where slopesᵀα cannot be told from 0; J is never below 0.
        answer = replace(self, lam=softest)._solved(planes, capacity, alpha, precision)
        if self.lam < SOFTEST * softest:
            return replace(answer, bound=0.0)
        own = self._solved(planes, capacity, alpha, precision)
        return replace(answer, bound=own.bound, seconds=answer.seconds + own.seconds)

    def _natural_lam(self, planes: PlaneSet, capacity: Floats) -> float:
        """The lam at which a step that gains all of the risk at w₀ costs as much: (steepest slopes)² / (heights)."""
        slopes, steep, high = planes.slopes, np.zeros(capacity.size), np.zeros(capacity.size)
        np.maximum.at(steep, planes.group, norms(slopes))
        np.maximum.at(high, planes.group, planes.heights + slopes @ self.w0)
        risk = float(capacity @ high)
        return float(capacity @ steep) ** 2 / risk if risk > 0 else 0.0

    def _answer(
        self, program: GroupedSimplexQP, start: Solution | None, precision: float | None, seconds: float
    ) -> Solution:
        """The solution of a master program, as double precision leaves it."""
        wanted: dict[str, Any] = {"precision": precision, "outward": False}
        chosen = self._solver(program)
        limits: dict[str, Any] = {"time_limit": seconds} if takes(chosen, "time_limit") else {}
        solution = solve(program, chosen, start, **limits, **wanted)
        enough = max(LOST, 4.0 * (precision or 0.0)) * solution.value
        loose = self.master == "auto" and self.small and solution.gap > enough
        return solve(program, "auto", start, time_limit=seconds, **wanted) if loose else solution

    def _solver(self, program: GroupedSimplexQP) -> Solver | str:
        """The solver of the master; ours without compiled code where the data and the master are small."""
        solver = named("active_set") if self.small and self.master == "auto" else self.master
        if isinstance(solver, ActiveSet) and solver.compiled is None:
            return replace(solver, compiled=not self.small or min(program.slopes.shape) > OPEN)
        return solver

    def _solved(self, planes: PlaneSet, capacity: Floats, alpha: Floats, precision: float | None) -> MasterAnswer:
        """The master of this lam as it stands."""
        began = perf_counter()
        program = margin_dual(
            planes.slopes,
            planes.heights,
            lam=self.lam,
            groups=planes.group,
            capacity=capacity,
            w0=self.w0,
        )
        start = Solution(program, alpha, None, np.nan, np.nan, Status.FEASIBLE) if alpha.any() else None
        seconds = LONGEST if self.ends is None else min(LONGEST, max(SHORTEST, self.ends - began))
        try:
            solution = self._answer(program, start, precision, seconds)
        except SolverFailed as error:
            raise MasterFailed(f"the master program was not solved: {error}; use master='auto', or another") from error
        step = program.step(solution.x)
        used = np.flatnonzero(solution.x)
        size = float(solution.x[used] @ (np.abs(program.values[used]) + norms(program.slopes[used]) * norms(step)))
        bound = solution.value - ROUNDING * size
        return MasterAnswer(self.w0 + step, bound, solution.x, perf_counter() - began)


def norms(rows: Floats) -> Floats:
    """The length of each row."""
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", rows, rows)))
