"""Training state after an iteration, and its cutting planes: plain data, enough to resume with identical results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.display import CompactReprMixin
from rankopt.optimize.certificate import History, Stop
from rankopt.risk.risk import Planes


@dataclass(frozen=True, eq=False)
class PlaneSet(CompactReprMixin):
    """Plane i lies under the loss of group g = group[i]: heights[i] + ⟨assigned[i] - references[g], w⟩.

    `assigned` (p, d) holds for every reference, lam and w₀. From one round of the concave-convex procedure to the next
    `references` (G, d) change, and with them `paid` (G,), what they pay for soft constraints, which is in `heights`
    (p,). idle: master solves since the plane last carried weight. floor: what each loss is never below, planes apart:
    0, or -inf for losses of any sign.
    """

    assigned: Floats
    heights: Floats
    group: Ints
    references: Floats
    idle: Ints
    paid: Floats
    floor: float = 0.0

    @classmethod
    def empty(cls, groups: int, features: int, floor: float = 0.0) -> PlaneSet:
        none, references = np.zeros(0, dtype=np.int64), np.zeros((groups, features))
        return cls(np.zeros((0, features)), np.zeros(0), none, references, none, np.zeros(groups), floor)

    def __len__(self) -> int:
        return int(self.heights.size)

    @property
    def slopes(self) -> Floats:
        slopes: Floats = self.assigned - self.references[self.group]
        slopes.setflags(write=False)  # a form takes what cannot change as it is, and copies the rest
        return slopes

    def heights_at(self, w: Floats) -> Floats:
        """(G,) the model of each group's loss at w: its highest plane, or `floor` if none is above it."""
        heights = np.full(self.references.shape[0], self.floor)
        np.maximum.at(heights, self.group, self.heights + self.slopes @ w)
        return heights

    def with_references(self, references: Floats, paid: Floats) -> PlaneSet:
        if np.array_equal(references, self.references) and np.array_equal(paid, self.paid):
            return self
        heights = self.heights + (paid - self.paid)[self.group] if (paid != self.paid).any() else self.heights
        return replace(self, references=references, heights=heights, paid=paid)

    def plus(self, assigned: Floats, heights: Floats, group: Ints) -> PlaneSet:
        return replace(
            self,
            assigned=np.vstack([self.assigned, assigned]),
            heights=np.append(self.heights, heights),
            group=np.append(self.group, group),
            idle=np.append(self.idle, np.zeros(heights.size, dtype=np.int64)),
        )

    def without_idle(self, alpha: Floats, patience: int) -> tuple[PlaneSet, Floats]:
        """Count idleness by the weights alpha and drop planes idle for more than `patience` solves; alpha of the rest.

        Dropping a plane never spoils a lower bound: any planes give one.
        """
        idle = np.where(alpha > 0, 0, self.idle + 1)
        stays = idle <= patience
        if stays.all():
            return replace(self, idle=idle), alpha
        rest = {name: getattr(self, name)[stays] for name in ("assigned", "heights", "group")}
        return replace(self, **rest, idle=idle[stays]), alpha[stays]


ROUNDING = 8 * 2.0**-52  # rounding of a sum of products, relative to the sum of their magnitudes

NEGLIGIBLE = 1e-10  # a gap in units of the loss, about 1

SERIOUS = 0.1
"""Under a nonconvex bound the reference moves to a new point that gains at least this part of what the proven bound
leaves. Points that gain less only give planes: so the model grows until it is either believed or right."""


@dataclass(frozen=True, eq=False)
class State(CompactReprMixin):
    """planes and alpha: the model and the last dual weights. trial: where to evaluate next. w, primal: the best point
    evaluated and its proven objective. bound: proven from below, for J if convex, else for the majorant that touches J
    at w. rounding: what double precision leaves open of J at w. latest: the objective at the last trial. round: how
    many majorants there were, 0 if J is convex. steps: how many were taken. Seconds are totals."""

    planes: PlaneSet
    alpha: Floats
    trial: Floats
    w: Floats
    primal: float = np.inf
    bound: float = 0.0
    rounding: float = 0.0
    latest: float = np.inf
    round: int = 0
    steps: int = 0
    precision: float = np.inf
    seconds_argmax: float = 0.0
    seconds_master: float = 0.0

    @property
    def gap(self) -> float:
        return self.primal - self.bound

    def seen(self, value: float, here: Planes, convex: bool, enough: float | None = None) -> Self:
        """The state after all queries were evaluated at `trial`, where J is proven to be `value`.

        If J improves by more than `enough`, w moves there. Under a nonconvex bound the reference moves too: the planes
        found so far remain valid, and nothing is proven of the new majorant yet [ORM, Algorithm 1, each convex problem
        solved only as far as it helps].
        """
        state = replace(self, latest=value, seconds_argmax=self.seconds_argmax + here.seconds)
        first = not np.isfinite(self.primal)
        if enough is None:
            enough = 0.0 if convex or first else SERIOUS * self.gap
        if not value < self.primal - enough:
            return state
        planes = self.planes.with_references(here.references, here.paid)
        sizes = (np.abs(here.slopes) + np.abs(here.references)) @ np.abs(self.trial)
        rounding = 16 * ROUNDING * float(np.abs(here.heights).sum() + sizes.sum())
        state = replace(state, w=self.trial, primal=value, rounding=rounding, planes=planes)
        return state if convex else replace(state, bound=planes.floor, round=self.round + 1)

    def bounded(self, bound: float) -> Self:
        """The state once `bound` is proven too."""
        return replace(self, bound=max(self.bound, bound))

    def is_closed(self, value: float, bound: float, tol: float) -> bool:
        """Whether the gap of an objective is within tol of it, or nothing but rounding: of separable data J is 0. An
        objective of any sign may pass 0: there `NEGLIGIBLE` is enough."""
        return value - bound <= max(tol * abs(value), self.rounding if self.planes.floor == 0.0 else NEGLIGIBLE)


STALLED_AFTER = 60  # steps without any progress of primal or bound beyond rounding after which a run ends


@dataclass(frozen=True, eq=False)
class IterationInfo(CompactReprMixin):
    """Weights that a run passed through, J there, and a proven lower bound of J or of the majorant that touches it."""

    w: Floats
    primal: float
    bound: float


@dataclass(frozen=True, eq=False)
class TrainingState(CompactReprMixin):
    """Where a run is between two iterations: all that is needed to go on to the same result.

    method_state: of the method. iteration: how many were taken. stop: why the run is over, None while it is not.
    history: the rows of its steps. Of methods with planes also passed, the points from which the result is taken; and
    round, idle, least: the state's round, steps since the gap was last narrowed in it, and that gap.
    """

    method_state: Any
    iteration: int = 0
    stop: Stop | None = None
    history: tuple[Any, ...] = ()
    passed: tuple[IterationInfo, ...] = ()
    round: int = 0
    idle: int = 0
    least: float = np.inf

    def as_data(self, row: type[Any]) -> dict[str, Any]:
        """What a checkpoint holds, with the history as columns."""
        return {"standing": replace(self, history=()), "history": History.from_rows(row, self.history)}

    @classmethod
    def from_data(cls, stored: Mapping[str, Any], row: type[Any]) -> TrainingState:
        """The state of a checkpoint. ValueError or KeyError for parts that are missing or of another type."""
        standing, history = stored["standing"], stored["history"]
        if not isinstance(standing, cls) or not isinstance(history, History) or history.row != row.__name__:
            raise ValueError(f"a stored run needs a training state and a history of {row.__name__}")
        return replace(standing, history=tuple(history))

    def after(self, state: State, tol: float, every: bool) -> TrainingState:
        """The state of the run after a step that led to `state`.

        every: record each point that w moved to, not only the last.
        """
        passed = self.passed
        if np.isfinite(state.primal):
            moved = not passed or state.primal < passed[-1].primal
            earlier = passed if every and moved else passed[:-1] if every else ()
            passed = (*earlier, IterationInfo(state.w, state.primal, state.bound))
        over = Stop.GAP if state.is_closed(state.primal, state.bound, tol) else None
        return replace(self, method_state=state, passed=passed, iteration=self.iteration + 1, stop=over)

    def with_best(self, stop: Stop) -> TrainingState:
        """The run is over for this reason; the best point of the state is its result if it has no other."""
        state = self.method_state
        best = IterationInfo(state.w, state.primal, state.bound)
        return replace(self, passed=self.passed or (best,), stop=stop)

    def watched(self, patience: float) -> TrainingState:
        """The same, with a look at whether the last step narrowed the gap: the run is over after many that did not."""
        gap, round = self.method_state.gap, self.method_state.round
        if round > self.round or not gap >= self.least - 1e-15 * abs(self.method_state.primal):
            return replace(self, round=round, idle=0, least=gap)
        idle = self.idle + 1
        return replace(self, idle=idle, stop=Stop.STALLED if idle >= patience else None)
