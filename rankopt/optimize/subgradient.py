"""Stochastic subgradient steps of length 1/t with averaging [ORM, section 4.4, eq. 33], and steepest subgradient
descent with a line search [paper 2, section 3.3.1].

The state of the random generator is plain data, so that a resumed run draws the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.errors import OptionError
from rankopt.optimize.bundle import at_groups, batches_of, cuts, groups_of, grown, solved
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import PlaneSet, State
from rankopt.options import check_number, check_part, set_integers
from rankopt.risk.risk import Risk

STUCK = 20  # number of steps without progress after which two subgradients at a time do not suffice


@dataclass(frozen=True, eq=False)
class SteepestState(State):
    """down: the way down from w, minus the shortest subgradient known there. length: how far to go along it next.
    idle: steps since one narrowed the gap, STUCK once and for all when there were so many."""

    down: Floats = field(default_factory=lambda: np.zeros(0))
    length: float = 0.0
    idle: int = 0


@dataclass(frozen=True)
class SteepestSubgradient:
    """w ← w - t g, g a subgradient of J at w, t by backtracking: halved until J falls by `armijo` t ‖g‖², then doubled.

    A step is one evaluation of all queries. At a kink none of the computed subgradients may be a descent direction. So
    each point at which the search fails contributes its subgradient, and g becomes the shortest point between the two
    (Wolfe 1975): the conjugate subgradient method mentioned in paper 2. At a kink of many faces two are too few: after
    20 steps without progress, each step minimizes the model of all planes.

    armijo: the sufficient fraction of the predicted decrease, 0 < armijo < 1.
    certify_every: steps between two solutions of the master over the planes found, which gives the bound.
    groups, keep_idle: of the planes, as in `Bundle`.
    """

    armijo: float = 0.1
    certify_every: int = 5
    groups: int = 256
    keep_idle: int = 5

    quadratic: ClassVar[bool] = True  # steps are those of the squared norm

    def __post_init__(self) -> None:
        check_part(False, armijo=self.armijo)
        set_integers(self, 1, "certify_every", "groups")
        set_integers(self, 0, "keep_idle")

    def start(self, objective: Objective, w: Floats) -> SteepestState:
        floor = objective.risk.floor
        planes = PlaneSet.empty(groups_of(objective, self.groups), w.size, floor)
        return SteepestState(planes, np.zeros(0), trial=w, w=w, bound=floor, down=np.zeros_like(w))

    def step(self, state: SteepestState, objective: Objective) -> SteepestState:
        here = at_groups(objective.risk, state.trial, state.planes.references.shape[0])
        value, before = objective.upper(state.trial, here), state
        fall = state.length * float(state.down @ state.down)
        state = state.seen(value, here, objective.risk.convex, enough=self.armijo * fall)
        slope = (here.slopes - state.planes.references).sum(axis=0)  # of what touches J at w
        heights = here.heights - here.paid + state.planes.paid
        height = objective.regularizer(state.trial) + heights.sum() + slope @ state.trial
        uphill = objective.lam * objective.per_unit(objective.per_unit(state.trial - objective.w0)) + slope
        state = replace(grown(state, here), steps=state.steps + 1)
        least = None
        due = (state.steps - 1) % self.certify_every == 0 or state.bound == -np.inf
        if due or before.idle >= STUCK:
            state, least = solved(state, objective, self.keep_idle)
        narrowed = state.round > before.round or not state.gap >= before.gap - 1e-15 * abs(state.primal)
        idle = STUCK if before.idle >= STUCK else 0 if narrowed else before.idle + 1
        state = replace(state, idle=idle)
        if idle >= STUCK and least is not None:
            return replace(state, trial=least, length=0.0)
        state = self._search_direction(before, state, float(height), uphill)
        return replace(state, trial=objective.project(state.trial))

    def finish(self, state: SteepestState, objective: Objective) -> SteepestState:
        """The state with all that its planes prove."""
        return solved(state, objective, self.keep_idle)[0]

    def _search_direction(
        self, before: SteepestState, state: SteepestState, height: float, uphill: Floats
    ) -> SteepestState:
        """The state with a way to go and the next trial on it, by height and subgradient at the last trial."""
        if state.w is not before.w or not before.length:
            down, length = -uphill, 2.0 * before.length
            if not length:  # the length that would close the gap if J were as steep all the way (Polyak)
                length = state.gap / max(float(uphill @ uphill), 1e-300)
        else:
            down, length = before.down, before.length / 2.0
            error = state.primal - (height + uphill @ (state.w - before.trial))
            if error <= before.length * float(down @ down):  # nearly a subgradient at w
                down = _shortest(down, -uphill)
                far = before.length * float(np.linalg.norm(before.down))  # as far as before, another way
                length = far / max(float(np.linalg.norm(down)), 1e-300)
        return replace(state, down=down, length=length, trial=state.w + length * down)


def _shortest(one: Floats, other: Floats) -> Floats:
    """The point between the two that is nearest to 0."""
    across = other - one
    size = float(across @ across)
    part = float(np.clip(-(one @ across) / size, 0.0, 1.0)) if size else 0.0
    return one + part * across


def generator_of(seed: int) -> dict[str, Any]:
    return dict(np.random.PCG64(seed).state)


def permuted(size: int, generator: dict[str, Any]) -> tuple[Ints, dict[str, Any]]:
    """The numbers below `size` in random order, and the state of the generator after that."""
    bits: Any = np.random.PCG64()
    bits.state = generator
    return np.random.Generator(bits).permutation(size), dict(bits.state)


@dataclass(frozen=True, eq=False)
class StochasticState(State):
    """iterate: where the next mini-batch is evaluated; its average is `trial`. updates: how many there were.
    radius: no better point lies farther from w₀. certified: the step after which all queries were evaluated last.
    generator: of the order of the queries."""

    iterate: Floats = field(default_factory=lambda: np.zeros(0))
    updates: int = 0
    radius: float = np.inf
    certified: int = 0
    generator: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StochasticSubgradient:
    """w ← w - η_t (lam (w - w₀) + p Σ_{q in B} v_q g_q),  η_t = 1 / (lam (t + shift)), B the t-th of p mini-batches.

    g_q is a subgradient of loss_q at w, with the reference of a nonconvex bound at w. A step is a pass over all p
    mini-batches (consecutive queries in canonical order) in random order. w stays within √(2 R(w₀) / lam) of w₀,
    outside of which J exceeds J(w₀). The result is a weighted mean of the iterates, with increasing weights.

    batch: queries in a mini-batch. A mini-batch has an overhead of 0.2 ms, so small ones are expensive.
    shift: that of η_t, in passes: a larger one makes smaller first steps.
    averaging: the t-th iterate has a weight of about t ** averaging; 0 is the plain mean.
    certify_every: number of passes after which all queries are evaluated at the mean, which proves J there, and the
        master program over the planes of all mini-batches (or their sums, for solvers of one group) gives the bound;
        0: at the start and the end only. In between w, primal and bound do not change.
    keep_idle: master solves after which an unused plane is dropped.
    seed: of the order, an integer; a ranker's `random_state` sets it.
    """

    batch: int = 8
    shift: float = 1.0
    averaging: float = 3.0
    certify_every: int = 5
    keep_idle: int = 5
    seed: int = 0

    patience: ClassVar[float] = np.inf  # chance may help at any time
    quadratic: ClassVar[bool] = True  # steps are those of the squared norm

    def __post_init__(self) -> None:
        set_integers(self, 1, "batch")
        set_integers(self, 0, "certify_every", "keep_idle", "seed")
        check_number(0.0, averaging=self.averaging, shift=self.shift)
        if not self.shift:
            raise OptionError("shift must be > 0; got 0, which makes the first step infinite")

    def start(self, objective: Objective, w: Floats) -> StochasticState:
        floor, generator = objective.risk.floor, generator_of(self.seed)
        planes = PlaneSet.empty(groups_of(objective, self._parts(objective.risk)), w.size, floor)
        return StochasticState(planes, np.zeros(0), trial=w, w=w, bound=floor, iterate=w, generator=generator)

    def step(self, state: StochasticState, objective: Objective) -> StochasticState:
        if not state.steps:
            state = self._certify(replace(state, steps=1), objective)
            risk = state.primal - objective.regularizer(state.w) - state.planes.floor
            far = np.sqrt(2.0 * risk / objective.lam) + np.linalg.norm(objective.per_unit(state.w - objective.w0))
            return replace(state, radius=float(far))
        state = self._run_pass(replace(state, steps=state.steps + 1), objective)
        due = self.certify_every and (state.steps - 1) % self.certify_every == 0
        return self._certify(state, objective) if due else state

    def _parts(self, risk: Risk) -> int:
        """How many mini-batches the queries make."""
        return batches_of(risk, -(-risk.weights.size // self.batch))

    def finish(self, state: StochasticState, objective: Objective) -> StochasticState:
        """The state with all queries evaluated at the mean."""
        return state if state.certified == state.steps else self._certify(state, objective)

    def _run_pass(self, state: StochasticState, objective: Objective) -> StochasticState:
        """The state after a pass of mini-batches, with the plane that each of them gave."""
        risk, parts = objective.risk, self._parts(objective.risk)
        order, generator = permuted(parts, state.generator)
        first = cuts(risk, parts)
        w, mean, updates, seconds = state.iterate, state.trial, state.updates, state.seconds_argmax
        heights, slopes = np.zeros(parts), np.zeros((parts, w.size))
        for turn, part in enumerate(order):
            here = risk.at(w, queries=(int(first[part]), int(first[part + 1])))
            own = here.heights[0] - here.paid[0]  # with what the references of its planes pay added below
            heights[turn], slopes[turn], seconds = own, here.slopes[0], seconds + here.seconds
            updates += 1
            length = 1.0 / (updates + self.shift * parts)  # η_t lam
            away = (1.0 - length) * (w - objective.w0)
            away -= length * parts * objective.inverse_hessian * (here.slopes - here.references)[0]
            size = float(np.linalg.norm(objective.per_unit(away)))
            w = objective.project(objective.w0 + away * (min(1.0, state.radius / size) if size else 1.0))
            mean = mean + (self.averaging + 1.0) / (self.averaging + updates) * (w - mean)
        if state.planes.references.shape[0] < parts:  # planes of all parts sum to one of the risk
            slopes, heights, order = (
                slopes.sum(axis=0, keepdims=True),
                heights.sum(keepdims=True),
                np.zeros_like(order[:1]),
            )
        planes = state.planes.plus(slopes, heights + state.planes.paid[order], order)
        alpha = np.append(state.alpha, np.zeros(heights.size))
        state = replace(state, planes=planes, alpha=alpha, seconds_argmax=seconds)
        return replace(state, iterate=w, trial=mean, updates=updates, generator=generator)

    def _certify(self, state: StochasticState, objective: Objective) -> StochasticState:
        """The state with all queries evaluated at `trial`, and the bound of the planes found there and before. If that
        leaves the majorant of a nonconvex bound as it is, also where the model of it is least: the mean may approach
        another critical point."""
        mean, state, least = state.trial, *self._evaluate(state, objective)
        if not objective.risk.convex and state.w is not mean:
            state = replace(self._evaluate(replace(state, trial=least), objective)[0], trial=mean)
        return replace(state, certified=state.steps)

    def _evaluate(self, state: StochasticState, objective: Objective) -> tuple[StochasticState, Floats]:
        """The state with the planes at `trial` and the master solved, and where the model is least."""
        here = at_groups(objective.risk, state.trial, state.planes.references.shape[0])
        state = state.seen(objective.upper(state.trial, here), here, objective.risk.convex)
        return solved(grown(state, here), objective, self.keep_idle)
