"""Objectives, and their master programs over planes of R.

J(w)   = (lam/2)‖w - w₀‖² + R(w)                      quadratic master program; ‖·‖ in units of the features
J(w)   = lam ‖w‖₁ + R(w)                              linear master program, sparse w
J_σ(w) = (λ/2)‖w - w₀‖² + Σ_q v_q loss_q(X_q w; σ)    smooth losses with a gradient, annealed

Each of them over all w, or over a box l <= w <= u.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np

from formulations.active_set.solver import LOST
from formulations.arrays import Bools, Floats, Ints
from formulations.errors import InfeasibleError, SolverError, UnboundedError
from formulations.gallery.masters import l1_margin_dual, margin_dual
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Problem, Solution, Status
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers import get_solver, solves
from formulations.solvers.active_set import ActiveSet
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve, supports_option
from rankopt.data.canonical_order import Arrangement
from rankopt.errors import MasterProblemError, OptionError
from rankopt.optimize.least_squares import column_units, in_units, spreads
from rankopt.optimize.state import ROUNDING, PlaneSet
from rankopt.risk.risk import Engine, GradientEvaluation, Planes, Risk, Shard, answers

SOFTEST = 1e-14
"""w = w₀ - slopesᵀα / lam loses its digits where lam is less than so many times (steepness of the risk)² / (risk)."""

LONGEST = 300.0  # seconds that a solver which takes a limit may spend on one master program

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
    """The regularized risk, and the solver of its master program.

    small: whether the data are too small to compile our own solver for, provided that the master is small too.
    ends: the `perf_counter` time at which training ends, if limited.
    units: (d,) if the regularizer is (lam/2) Σ_j ((w_j - w0_j) / units_j)²; w_j stays w0_j where units_j is 0.
    box: (2, d), the least and the largest value of each weight, infinite where there is none; w₀ is in it. None: all w.
    """

    risk: Risk
    lam: float
    w0: Floats
    master: Solver | str = "auto"
    small: bool = False
    ends: float | None = None
    units: Floats | None = None
    box: Floats | None = None

    form: ClassVar[type[Problem]] = GroupedSimplexQP
    """Of the master program."""

    start_counts: ClassVar[bool] = True
    """Whether the start is one of the points that a judge chooses from."""

    restarts: ClassVar[bool] = False
    """Whether each lam of a path of a nonconvex risk begins at the start, and not where the one before ended."""

    @classmethod
    def begun_at(
        cls, risk: Risk, lam: float, start: Floats, master: Solver | str, small: bool, units: Floats | None = None
    ) -> Self:
        """The objective of this penalty, training to start there; this one pulls to that point too."""
        return cls(risk, lam, start, master, small, units=units)

    @classmethod
    def check(cls, method: object) -> None:
        """Raise OptionError for a method that cannot minimize it; all methods can minimize this one."""

    @property
    def start(self) -> Floats:
        """Default starting point of training."""
        return self.w0

    def project(self, w: Floats) -> Floats:
        """The point of the box that is nearest to w."""
        return w if self.box is None else np.clip(w, *self.box)

    def within(self, box: Floats | None) -> Self:
        """The objective over this box, w₀ projected to it."""
        return self if box is None else replace(self, box=box, w0=np.clip(self.w0, *box))

    def between(self, w: Floats, least: Floats, part: float) -> Floats:
        """The point that lies a part of the way from w to where the model is least; a weight that is at a limit of the
        box there is at it, for otherwise it would only approach it."""
        there = w + part * (least - w)
        return there if self.box is None else np.where((least == self.box).any(axis=0), least, there)

    def regularizer(self, w: Floats) -> float:
        return float(self.lam / 2.0 * np.sum(self.per_unit(w - self.w0) ** 2))

    def per_unit(self, values: Floats) -> Floats:
        """(d,) or (n, d) divided by the units; 0 where these are 0."""
        if self.units is None:
            return values
        return np.divide(values, self.units, out=np.zeros_like(values), where=self.units > 0)

    @property
    def inverse_hessian(self) -> float | Floats:
        """Of the regularizer: a scalar, or the diagonal (d,)."""
        return 1.0 / self.lam if self.units is None else self.units**2 / self.lam

    def prepare(self) -> None:
        """Load what a first step needs: compiled code, workers with their data. Limits of time begin afterwards."""
        here = self.risk.at(self.w0, queries=(0, 1))
        planes = PlaneSet.empty(1, self.w0.size).plus(here.slopes, here.heights, np.zeros(1, dtype=np.int64))
        with suppress(MasterProblemError):  # unless it was this plane alone, the first step proves it
            self.solve_master(planes, np.ones(1), np.zeros(1))

    def takes_groups(self) -> bool:
        """Whether the solver of the master program takes planes of more than one group."""
        two = margin_dual(np.zeros((2, 1)), np.zeros(2), lam=self.lam, groups=[0, 1], group_mass=[1.0, 1.0])
        return solves(self.master, two)

    def upper(self, w: Floats, planes: Planes) -> float:
        """J(w) with the argmax's proven bound instead of its value."""
        return self.regularizer(w) + planes.bound

    def majorant(self, w: Floats) -> Objective:
        """The convex objective nowhere below this one that touches it at w."""
        return replace(self, risk=self.risk.majorant(w))

    def solve_master(
        self, planes: PlaneSet, capacity: Floats, alpha: Floats, precision: float | None = None
    ) -> MasterAnswer:
        """Minimize the regularizer plus the planes' maxima, starting from the dual weights alpha.

        The bound is the dual objective of the returned weights, projected to feasibility and evaluated here, less a
        rounding allowance: masters are solved to full precision, and a bound must not exceed the objective.

        precision: the sufficient relative gap, passed to solvers with a tolerance; None uses their default.

        Raises MasterProblemError if the solver returns no solution.
        """
        if self.units is not None:
            rescaled, planes = self.in_units(planes)
            answer = rescaled.solve_master(planes, capacity, alpha, precision)
            scale, center, _ = self.standard
            w = self.project(center + scale * answer.w)
            if self.box is not None and rescaled.box is not None:  # rounding must not lead away from a limit
                for limit, reached in zip(self.box, answer.w == rescaled.box, strict=True):
                    w = np.where(reached, limit, w)
            return replace(answer, w=w)
        softest = SOFTEST * self.natural_lam(planes, capacity)
        if self.lam >= softest or planes.floor < 0.0:
            return self._solved(planes, capacity, alpha, precision)
        # The model is flat around its least point: that of a larger lam is as good, and is found. Of the bound nothing
        # remains where slopesᵀα is 0 up to rounding; J is never below 0.
        answer = replace(self, lam=softest)._solved(planes, capacity, alpha, precision)
        if self.lam < SOFTEST * softest:
            return replace(answer, bound=0.0)
        own = self._solved(planes, capacity, alpha, precision)
        return replace(answer, bound=own.bound, seconds=answer.seconds + own.seconds)

    @property
    def standard(self) -> tuple[Floats, Floats, float]:
        """The scale (d,) and center (d,) of z = (w - center) / scale, whose regularizer has no units, and its lam."""
        return np.asarray(self.units / np.sqrt(self.lam)), self.w0, 1.0

    def in_units(self, planes: PlaneSet) -> tuple[Objective, PlaneSet]:
        """The same problem in the z of `standard`."""
        if self.units is None:
            return self, planes
        scale, center, lam = self.standard
        heights = planes.heights + planes.slopes @ center
        assigned, references = planes.assigned * scale, planes.references * scale
        planes = replace(planes, assigned=assigned, references=references, heights=heights)
        box = self.box
        if box is not None:  # a weight of unit 0 does not move, and its limits do not matter
            unlimited = np.broadcast_to([[-np.inf], [np.inf]], box.shape).copy()
            box = np.divide(box - center, scale, out=unlimited, where=scale > 0)
        w0 = np.zeros_like(center) if box is None else np.clip(0.0, *box)
        return replace(self, lam=lam, w0=w0, units=None, box=box), planes

    def natural_lam(self, planes: PlaneSet, capacity: Floats) -> float:
        """The lam at which a step that gains all of the risk at w₀ costs as much: (steepest slopes)² / (heights)."""
        own, planes = self.in_units(planes)
        slopes, steep, high = planes.slopes, np.zeros(capacity.size), np.zeros(capacity.size)
        np.maximum.at(steep, planes.group, norms(slopes))
        np.maximum.at(high, planes.group, planes.heights + slopes @ own.w0)
        risk = float(capacity @ high)
        unit = 1.0 if self.units is None else self.lam
        return unit * float(capacity @ steep) ** 2 / risk if risk > 0 else 0.0

    def _answer(
        self, program: GroupedSimplexQP, start: Solution | None, precision: float | None, seconds: float, spare: float
    ) -> Solution:
        """The solution of a master program, as double precision leaves it. spare: a gap that is small enough."""
        wanted: dict[str, Any] = {"rel_gap": precision, "directed_rounding": False}
        chosen = get_solver("active_set") if self.small and self.master == "auto" else self.master
        if isinstance(chosen, ActiveSet) and chosen.compiled is None:  # not where the data and the master are small
            chosen = replace(chosen, compiled=not self.small or min(program.slopes.shape) > OPEN)
        limits: dict[str, Any] = {"time_limit": seconds} if supports_option(chosen, "time_limit") else {}
        solution = solve(program, chosen, start, **limits, **wanted)
        enough = max(LOST, 4.0 * (precision or 0.0)) * solution.value + spare
        loose = self.master == "auto" and self.small and solution.gap > enough
        return solve(program, "auto", start, time_limit=seconds, **wanted) if loose else solution

    def _solved(self, planes: PlaneSet, capacity: Floats, alpha: Floats, precision: float | None) -> MasterAnswer:
        """The master program of this lam, without rescaling."""
        began = perf_counter()
        base = None
        if planes.floor < 0.0:  # the plane of greatest weight in each group that has planes, the last of equals
            order = np.lexsort((alpha, planes.group))
            base = order[np.flatnonzero(np.diff(planes.group[order], append=-1))]
        program = self._program(planes, capacity, base)
        if base is not None:
            alpha = alpha.copy()
            alpha[base] = 0.0
        if self.box is not None:
            alpha = np.append(alpha, self._pressed(program, alpha))
        start = Solution(program, alpha, None, np.nan, np.nan, Status.FEASIBLE) if alpha.any() else None
        seconds = LONGEST if self.ends is None else min(LONGEST, max(SHORTEST, self.ends - began))
        try:
            spare = 0.0 if base is None else program.rounding
            solution = self._answer(program, start, precision, seconds, spare)
        except SolverError as error:
            raise MasterProblemError(
                f"the master program was not solved: {error}; use master_solver='auto' or another solver"
            ) from error
        if base is not None or self.box is not None:
            return self._proved(planes, capacity, base, solution.x[: len(planes)], perf_counter() - began)
        step = program.step(solution.x)
        used = np.flatnonzero(solution.x)
        size = float(solution.x[used] @ (np.abs(program.values[used]) + norms(program.slopes[used]) * norms(step)))
        bound = solution.value - ROUNDING * size
        return MasterAnswer(self.w0 + step, bound, solution.x, perf_counter() - began)

    def _program(self, planes: PlaneSet, capacity: Floats, base: Ints | None) -> GroupedSimplexQP:
        """The master program. A loss >= 0 has the plane 0 and slacks >= 0, so that Σ α <= capacity in each group.

        A loss of any sign has free slacks, so that Σ α = capacity: the weight of the base plane of a group is what
        the others leave. Measured from the base planes, around their minimizer, it is a program of the first kind.
        """
        slopes, heights, w0 = planes.slopes, planes.heights, self.w0
        if base is not None:
            w0 = w0 - capacity[planes.group[base]] @ slopes[base] / self.lam
            of_plane = np.zeros(capacity.size, dtype=np.int64)
            of_plane[planes.group[base]] = base
            slopes = slopes - slopes[of_plane[planes.group]]
            heights = heights - heights[of_plane[planes.group]]
        box = self.box
        return margin_dual(slopes, heights, lam=self.lam, groups=planes.group, group_mass=capacity, w0=w0, box=box)

    def _pressed(self, program: GroupedSimplexQP, alpha: Floats) -> Floats:
        """The best dual weights of the limits of the box, which follow the planes of a master, for those of the planes:
        they take w to the box."""
        slopes, limits = np.split(program.slopes, [alpha.size])
        outside = program.values[alpha.size :] - limits @ (slopes.T @ alpha) / self.lam
        return np.asarray(np.maximum(outside, 0.0) * self.lam / np.einsum("ij,ij->i", limits, limits))

    def _proved(
        self, planes: PlaneSet, capacity: Floats, base: Ints | None, alpha: Floats, seconds: float
    ) -> MasterAnswer:
        """The answer of dual weights, to which those of the base planes are added; -inf if a group has no plane."""
        alpha = alpha.copy()
        if base is not None:
            alpha[base] = 0.0
            used = np.bincount(planes.group, alpha, capacity.size)
            alpha[base] = np.maximum(capacity - used, 0.0)[planes.group[base]]
        w, bound = self.dual_bound(planes.slopes, planes.heights, alpha)
        return MasterAnswer(w, bound if base is None or base.size == capacity.size else -np.inf, alpha, seconds)

    def dual_bound(self, slopes: Floats, heights: Floats, alpha: Floats) -> tuple[Floats, float]:
        """Where the regularizer plus Σ α (heights + slopes w) is least, the projection of its least point to the box;
        and that value, less what rounding may add. For any α >= 0, Σ α <= capacity in each group, it bounds J."""
        values, pull = heights + slopes @ self.w0, slopes.T @ alpha
        step = -self.inverse_hessian * pull
        w, curved = self.w0 + step, -0.5 * float(pull @ step)
        if self.box is not None:
            w = self.project(w)
            step, curved = w - self.w0, self.regularizer(w)
        bound = float(alpha @ values + pull @ step) + curved
        return w, bound - ROUNDING * float(alpha @ (np.abs(values) + np.abs(slopes) @ np.abs(step)))


def norms(rows: Floats) -> Floats:
    """The length of each row."""
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", rows, rows)))


@dataclass(frozen=True, eq=False)
class SmoothObjective:
    """Objective of smooth minimization.

    units: (d,) the standard deviation of each feature within queries, 0 for constant features. Gradients and steps are
    in u = units × w: a step of length 1 moves scores by about one deviation, independent of feature scales; J is
    unchanged. penalties: (d,), or 1: the regularizer is (lam/2) Σ_j penalties_j (w_j - w0_j)².
    box: as in `Objective`.
    """

    shards: tuple[Shard, ...]
    engine: Engine
    lam: float
    w0: Floats
    units: Floats
    penalties: float | Floats = 1.0
    box: Floats | None = None

    def at(self, w: Floats, sigma: float) -> tuple[float, Floats]:
        """J_σ(w), and its gradient (d,)."""
        parts, away = answers(self.engine, GradientEvaluation(w, sigma), self.shards), w - self.w0
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = self.lam * self.penalties * away
            value = float(gradient @ away) / 2.0 + sum(loss for loss, _ in parts)
            for _, slope in parts:
                gradient = gradient + slope
        return value, gradient

    def risk(self, w: Floats) -> float:
        """Σ_q v_q loss_q at σ = 0: what the measure at w lacks of the best orders."""
        parts = answers(self.engine, GradientEvaluation(w, 0.0, value_only=True), self.shards)
        return sum(loss for loss, _ in parts)

    @property
    def best(self) -> float:
        """Σ_q v_q of the measure of the best orders."""
        losses: list[Any] = [shard.loss for shard in self.shards]
        return sum(float(shard.weights @ loss.ideal) for shard, loss in zip(self.shards, losses, strict=True))

    def slope(self, w: Floats, gradient: Floats) -> float:
        """‖∇_u J‖, without what leads out of the box: the first-order fall of J with a step in u of length 1."""
        if self.box is not None:
            gradient = np.where(gradient > 0, np.where(w > self.box[0], gradient, 0.0), gradient)
            gradient = np.where(gradient < 0, np.where(w < self.box[1], gradient, 0.0), gradient)
        return float(np.linalg.norm(gradient[self.moving] / self.units[self.moving]))

    @property
    def moving(self) -> Bools:
        """(d,) the features that order anything."""
        return np.asarray(self.units > 0)


def deviation(shards: Sequence[Shard], w: Floats) -> float:
    """The deviation of the scores at w inside queries: the root of Σ_q v_q (1/n_q) Σ_j (s_j - s̄)²."""
    total = 0.0
    for shard in shards:
        scores, starts, sizes = shard.scores(w), shard.offsets[:-1], np.diff(shard.offsets)
        largest = float(np.abs(scores).max(initial=0.0))
        apart = scores - np.repeat(np.add.reduceat(scores, starts) / sizes, sizes)
        apart[np.abs(apart) <= ROUNDING_SMOOTH_OBJECTIVE * largest] = 0.0
        total += float(shard.weights @ (np.add.reduceat(apart**2, starts) / sizes))
    return float(np.sqrt(total))


ROUNDING_SMOOTH_OBJECTIVE = 2.0**-46
"""Scores that differ by less than this part of the largest are equal: their mean is rounded."""


def deviations(queries: Arrangement) -> Floats:
    """(d,) the deviation of each feature inside queries, each query weighing v_q."""
    units = column_units(queries.features)
    features = queries.features if units is None else in_units(queries.features, units)
    sizes = np.diff(queries.offsets)
    shares = np.repeat(queries.weights / queries.weights.sum() / sizes, sizes)
    found = np.sqrt(spreads(features, shares, queries.rows, queries.offsets))
    return found if units is None else found / units


FAINT = 1e-8
"""Slopes of this fraction of the largest in their feature, or less, are not passed to the solver: linear programming
codes drop such numbers silently. Bounds are computed with all slopes."""

NOTHING = 1e-7  # weights of this fraction of the largest, or less, are set to 0: interior-point solvers never return 0
IDLE = 1e-4  # A feature whose row is this part or more below lam is not binding, so its weight is 0


@dataclass(frozen=True, eq=False)
class SparseObjective(Objective):
    """J(w) = lam ‖w‖₁ + R(w) [ORM, section 3.1, Ω = ‖w‖₁]; with units, lam Σ_j |w_j| / units_j + R(w).

    The penalty is centered at 0; w0 is the point of the box nearest to it. `begins` is the starting point of training,
    which determines the critical point found under a nonconvex risk.

    Lower bound: for every α >= 0 with Σ α <= capacity in each group and |slopesᵀα| <= lam in each feature,
    Σ α heights <= min J, since Σ_g R_g(w) >= Σ α (heights + slopes w) >= Σ α heights - lam ‖w‖₁. In a box slopesᵀα is
    limited only towards sides without a limit; lam |w_j| + (slopesᵀα)_j w_j is least at a limit, or nearest to 0.
    """

    begins: Floats = field(default_factory=lambda: np.zeros(0))

    form: ClassVar[type[Problem]] = LinearProgram
    restarts: ClassVar[bool] = True  # a path that was at 0 would stay there: 0 is critical
    start_counts: ClassVar[bool] = False  # least squares, for example, leave nothing out

    @classmethod
    def begun_at(
        cls, risk: Risk, lam: float, start: Floats, master: Solver | str, small: bool, units: Floats | None = None
    ) -> Self:
        if risk.floor < 0.0:  # lam ‖w‖₁ plus planes may be unbounded below
            raise OptionError(
                "penalty='l1' needs a nonnegative loss; got one with is_nonnegative = False. Use penalty='l2', or add "
                "a constant to the loss that makes it nonnegative."
            )
        return cls(risk, lam, np.zeros_like(start), master, small, units=units, begins=start)

    @classmethod
    def check(cls, method: object) -> None:
        """Raise OptionError for a method that requires the squared norm; the others use the master program alone."""
        if getattr(method, "quadratic", False):
            name = type(method).__name__
            raise OptionError(
                f"method {name} cannot train penalty='l1' because its steps assume a squared norm; use 'bundle' "
                "or 'cutting_planes'"
            )

    @property
    def start(self) -> Floats:
        return self.project(self.begins)

    def between(self, w: Floats, least: Floats, part: float) -> Floats:
        """All of the way: a weight that is 0 there would never be 0 on the way."""
        return least

    def regularizer(self, w: Floats) -> float:
        return float(self.lam * np.abs(self.per_unit(w)).sum())

    @property
    def standard(self) -> tuple[Floats, Floats, float]:
        return np.asarray(self.units), np.zeros_like(self.w0), self.lam

    def takes_groups(self) -> bool:
        two = l1_margin_dual(np.ones((2, 1)), np.ones(2), lam=self.lam, groups=[0, 1], group_mass=[1.0, 1.0])
        return solves(self.master, two)

    def solve_master(
        self, planes: PlaneSet, capacity: Floats, alpha: Floats, precision: float | None = None
    ) -> MasterAnswer:
        """Minimize the penalty plus the planes' maxima; w from the duals of the features, the bound from the weights.

        Raises MasterProblemError if the solver returns no solution or no duals.
        """
        if self.units is not None:
            return super().solve_master(planes, capacity, alpha, precision)
        began = perf_counter()
        seconds = LONGEST if self.ends is None else min(LONGEST, max(SHORTEST, self.ends - began))
        size = np.abs(planes.slopes)
        slopes = np.where(size > FAINT * size.max(axis=0, initial=0.0), planes.slopes, 0.0)
        program = l1_margin_dual(
            slopes, planes.heights, lam=self.lam, groups=planes.group, group_mass=capacity, box=self.box
        )
        alpha = np.pad(alpha, (0, program.objective.size - alpha.size))
        start = Solution(program, alpha, None, np.nan, np.nan, Status.FEASIBLE) if alpha.any() else None
        try:
            limits: dict[str, Any] = {"time_limit": seconds} if supports_option(self.master, "time_limit") else {}
            solution = solve(program, self.master, start, rel_gap=precision, directed_rounding=False, **limits)
        except (SolverError, InfeasibleError, UnboundedError) as error:
            raise MasterProblemError(
                f"the master program was not solved: {error}; use master_solver='auto' or another solver"
            ) from error
        if not solution.dual:
            raise MasterProblemError(
                f"master_solver {solution.solver!r} returns no duals, which are the weights; use master_solver='auto'"
            )
        weights, pull, least = self._proving(planes, capacity, solution.x)
        bound = float(weights @ planes.heights) + least
        bound -= ROUNDING * float(weights @ np.abs(planes.heights))
        duals = solution.dual["feature"]
        presses = (np.abs(pull) >= (1.0 - IDLE) * self.lam) & (np.abs(duals) > NOTHING * np.abs(duals).max())
        w = self.project(np.where(presses, duals, 0.0))
        return MasterAnswer(w, bound, weights, perf_counter() - began)

    def _proving(self, planes: PlaneSet, capacity: Floats, weights: Floats) -> tuple[Floats, Floats, float]:
        """The weights of the planes that a solver gave, made feasible; slopesᵀα before they were scaled; and a lower
        bound of the least of lam ‖w‖₁ + wᵀ slopesᵀα."""
        capacities = capacity[planes.group]
        alpha = np.clip(weights[: len(planes)], 0.0, capacities)
        alpha[alpha <= NOTHING * capacities] = 0.0
        used = np.bincount(planes.group, alpha, capacity.size)
        alpha *= (capacity / np.maximum(used, capacity))[planes.group]
        pull, size = planes.slopes.T @ alpha, np.abs(planes.slopes).T @ alpha
        low, high = (-np.inf, np.inf) if self.box is None else self.box
        free = np.maximum(np.where(np.isinf(low), pull, 0.0), np.where(np.isinf(high), -pull, 0.0))
        reach = float((free + ROUNDING * size).max(initial=0.0))
        scale = self.lam / max(reach, self.lam)
        least = 0.0
        if self.box is not None:
            ends = np.where(np.isfinite(self.box), self.box, self.w0)
            ends = np.vstack([ends, self.w0])
            terms = self.lam * np.abs(ends) + scale * pull * ends - 2.0 * ROUNDING * (self.lam + size) * np.abs(ends)
            least = float(terms.min(axis=0).sum())
            least -= ROUNDING * float(np.abs(terms).max(axis=0).sum())
        return alpha * scale * (1.0 - ROUNDING), pull, least


def largest(objective: Objective) -> float:
    """A lam from which on w = 0 is optimal (of a nonconvex risk: critical): ‖g‖_∞ of the subgradient g of R at 0, each
    g_j times its unit. In a box, from which on the point nearest to 0 is: of g_j what leads from it into the box."""
    here, box = objective.risk.at(objective.project(np.zeros_like(objective.w0))), objective.box
    slope = (here.slopes - here.references)[0]
    if box is not None:
        slope = np.where(slope > 0, np.where(box[0] < 0, slope, 0.0), np.where(box[1] > 0, slope, 0.0))
    slope = slope if objective.units is None else slope * objective.units
    return float(np.abs(slope).max()) * (1.0 + FAINT)
