"""Block-coordinate Frank-Wolfe on the dual with a slack for every query (Lacoste-Julien and others 2013)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats
from rankopt.optimize.bundle import one_each
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import PlaneSet, State
from rankopt.optimize.subgradient import generator_of, permuted
from rankopt.options import set_integers

STILL = 1e-15  # A rise of the dual by less than this part of the objective is none


@dataclass(frozen=True, eq=False)
class FrankWolfeState(State):
    """planes: one a query, the mean of what was found for it, `alpha` its weight. mean: of the dual's w, late ones
    weighing more. updates: how many queries were visited. generator: of their order."""

    mean: Floats = field(default_factory=lambda: np.zeros(0))
    updates: int = 0
    generator: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BlockFrankWolfe:
    """Maximize the dual of (lam/2)‖w - w₀‖² + Σ_q ξ_q query by query. For each query the dual stores one plane, the
    mean of those found for it. It moves towards the plane at w = w₀ - Σ α slopes / lam with an exact line search. In a
    box w is the projection of that point, and the step is the exact one without the box, which raises the dual too.

    A step visits all queries once, in mini-batches of consecutive queries in random order. The planes of a mini-batch
    are found at one w, then each is used in turn at the current w (any plane is valid). Then all queries are evaluated
    at the mean of the w (at w itself once the dual is stationary), which proves J there: two evaluations a query a
    step. The dual objective is the bound; no master is solved, and memory is one plane a query.

    batch: queries in a mini-batch. A mini-batch has an overhead of 0.2 ms, so small ones are expensive.
    seed: of the order, an integer; a ranker's `random_state` sets it.
    """

    batch: int = 16
    seed: int = 0

    quadratic: ClassVar[bool] = True  # steps are those of the squared norm

    def __post_init__(self) -> None:
        set_integers(self, 1, "batch")
        set_integers(self, 0, "seed")

    def start(self, objective: Objective, w: Floats) -> FrankWolfeState:
        queries, features = objective.risk.weights.size, w.size
        floor = objective.risk.floor
        nothing = PlaneSet.empty(queries, features, floor)
        planes = nothing.plus(np.zeros((queries, features)), np.zeros(queries), np.arange(queries))
        generator = generator_of(self.seed)
        return FrankWolfeState(planes, np.zeros(queries), trial=w, w=w, bound=floor, mean=w, generator=generator)

    def step(self, state: FrankWolfeState, objective: Objective) -> FrankWolfeState:
        risk = objective.risk
        here, round = one_each(risk, state.trial), state.round
        state = state.seen(objective.upper(state.trial, here), here, risk.convex)
        dual = _Dual(state, objective)
        if state.round > round:  # means of points under another reference are forgotten
            if state.planes.floor == 0.0:
                dual.shrink()
            state = replace(state, mean=dual.w, updates=0)
        mean, updates, seconds = state.mean, state.updates, state.seconds_argmax
        queries, generator = here.heights.size, state.generator
        for query in range(queries):
            dual.move(query, here.heights[query] - here.paid[query], here.slopes[query])
        order, generator = permuted(-(-queries // self.batch), generator)
        for part in order:
            first, last = int(part) * self.batch, min((int(part) + 1) * self.batch, queries)
            there = one_each(risk, dual.w, (first, last))
            seconds += there.seconds
            for query in range(first, last):
                own = query - first
                dual.move(query, there.heights[own] - there.paid[own], there.slopes[own])
                updates += 1
                mean = mean + 2.0 / (updates + 1.0) * (dual.w - mean)
        state = replace(state, planes=dual.planes(), alpha=dual.alpha, trial=mean, steps=state.steps + 1)
        state = replace(state, mean=mean, updates=updates, seconds_argmax=seconds, generator=generator)
        value = objective.dual_bound(state.planes.slopes, state.planes.heights, state.alpha)[1]
        if value <= state.bound + STILL * abs(state.primal):  # the dual is at its best, and so is its w; the mean lags
            state = replace(state, trial=dual.w)
        return state.bounded(value)


class _Dual:
    """The dual point as a step moves it: of each query α slopes and α heights, and w."""

    def __init__(self, state: FrankWolfeState, objective: Objective) -> None:
        self.before, self.inverse, self.w0 = state.planes, objective.inverse_hessian, objective.w0
        self.project = objective.project
        self.alpha = state.alpha.copy()
        self.slopes = state.alpha[:, None] * state.planes.slopes
        self.heights = state.alpha * state.planes.heights
        self.free = self.w0 - self.inverse * self.slopes.sum(axis=0)
        self.w = self.project(self.free)

    def move(self, query: int, height: float, assigned: Floats) -> None:
        """Move the plane of a query towards another one, as far as the dual objective rises; its height without what
        its reference pays."""
        across = assigned - self.before.references[query] - self.slopes[query]
        rise = height + self.before.paid[query] - self.heights[query]
        step = self.inverse * across
        size, ahead = float(across @ step), float(rise + across @ self.w)
        part = min(1.0, max(0.0, ahead / size)) if size else float(ahead > 0)
        if self.before.floor < 0 and not self.alpha[query]:  # 0 is no plane of the loss
            part = 1.0
        if part:
            self.slopes[query] += part * across
            self.heights[query] += part * rise
            self.alpha[query] += part * (1.0 - self.alpha[query])
            self.free = self.free - part * step
            self.w = self.project(self.free)

    def shrink(self) -> None:
        """Scale all α by the factor in [0, 1] that maximizes the dual objective, which is then >= 0.

        Planes change with their references, and α that were good for the old ones may give a dual value far below 0.
        Without scaling the dual needs many passes to reach the trivial bound of 0, which looks like stagnation.
        """
        step, slopes = self.free - self.w0, self.slopes.sum(axis=0)
        curvature = -float(slopes @ step)
        slope = float(self.heights.sum() + slopes @ self.w0)
        part = min(1.0, max(0.0, slope / curvature)) if curvature else float(slope > 0)
        self.alpha, self.slopes, self.heights = part * self.alpha, part * self.slopes, part * self.heights
        self.free = self.w0 + part * step
        self.w = self.project(self.free)

    def planes(self) -> PlaneSet:
        """One plane a query, where it has weight."""
        share = np.maximum(self.alpha, 1e-300)
        assigned = self.slopes / share[:, None] + self.before.references
        return replace(self.before, assigned=assigned, heights=self.heights / share)
