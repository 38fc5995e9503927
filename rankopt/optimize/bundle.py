"""Cutting plane and bundle methods.

Bundle method [ORM, Algorithm 3, with its misprint corrected], with a slack for each group of queries. Cutting planes
with a slack for every query [ORM, eq. 34; paper 2, section 3.2].

R(w) = Σ_g R_g(w), R_g(w) = Σ_{q in g} v_q loss_q(w): the sum of the groups' maxima is a closer model of R than the
maximum of the sums, and needs fewer passes over the queries (Birge and Louveaux 1988). The model of J is the
regularizer plus the maximum of the planes found so far in each group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Floats, Ints
from rankopt.errors import OptionError
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import PlaneSet, State
from rankopt.options import check_part, set_integers
from rankopt.risk.risk import Planes, Risk

NUMBERS = 2**22  # slopes of one pass hold no more numbers than this: with many features there are fewer groups


def batches_of(risk: Risk, most: int) -> int:
    """How many groups the queries make, at most `most`."""
    return max(1, min(most, risk.weights.size, NUMBERS // risk.features))


def groups_of(objective: Objective, most: int) -> int:
    """How many groups the queries make, at most `most`; one where the solver of the master takes one alone."""
    groups = batches_of(objective.risk, most)
    return groups if groups == 1 or objective.takes_groups() else 1


def cuts(risk: Risk, groups: int) -> Ints:
    """(groups + 1,) where the groups begin in the order of the risk, and where the last ends."""
    if risk.cuts is not None and risk.cuts.size == groups + 1:
        return risk.cuts
    return np.arange(groups + 1) * risk.weights.size // groups


def at_groups(risk: Risk, w: Floats, groups: int) -> Planes:
    """The risk at w with one plane for each group of consecutive queries, and the weights of the queries.

    If the slopes of all queries exceed the memory limit, each group is evaluated separately.
    """
    if groups == 1:
        return risk.at(w)
    weights, first = risk.weights, cuts(risk, groups)
    if weights.size * risk.features <= 4 * NUMBERS:
        there = risk.at(w, merged=False)
        sums = csr_array((weights, np.arange(weights.size), first), shape=(groups, weights.size))
        return _with(there, *(sums @ part for part in (there.heights, there.slopes, there.references, there.paid)))
    parts = [risk.at(w, queries=queries) for queries in pairwise(first.tolist())]
    value, bound, seconds = (sum(getattr(part, name) for part in parts) for name in ("value", "bound", "seconds"))
    names = ("losses", "heights", "slopes", "references", "paid")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Planes(value, bound, seconds=seconds, **joined)


def one_each(risk: Risk, w: Floats, queries: tuple[int, int] | None = None) -> Planes:
    """One weighted plane for each query; `queries` restricts them to first <= q < last."""
    there = risk.at(w, merged=False, queries=queries)
    weights = risk.weights[slice(*(queries or (None,)))]
    scaled = (weights * there.heights, weights[:, None] * there.slopes, weights[:, None] * there.references)
    return _with(replace(there, losses=weights * there.losses), *scaled, weights * there.paid)


def _with(there: Planes, heights: Floats, slopes: Floats, references: Floats, paid: Floats) -> Planes:
    return replace(there, heights=heights, slopes=slopes, references=references, paid=paid)


Kind = TypeVar("Kind", bound=State)

RISE = 1e-9  # A plane is new if it rises above the model by more than this part of the objective

COARSEST, FINEST = 1e-4, 1e-9  # range of relative gaps for master solves; beyond it the solver's own tolerance applies
CARE = 0.02  # the part of the gap that the master may leave: it is solved no finer than the bound can use

SHARPER = 0.1
"""What the precision is multiplied with when the bound did not rise: a coarse master may be what is in the way."""


def grown(state: Kind, here: Planes, groups: Ints | None = None) -> Kind:
    """The state with the planes found at `trial` that rise above the model there; plane i belongs to groups[i]."""
    groups = np.arange(here.heights.size) if groups is None else groups
    own = state.planes.references[groups]
    heights = here.heights + (state.planes.paid[groups] - here.paid)  # as they are under the references of the state
    values = heights + (here.slopes - own) @ state.trial
    model = state.planes.heights_at(state.trial)[groups]
    new = values > model + RISE / state.planes.references.shape[0] * max(abs(state.primal), 1e-300)
    if not new.any():
        return state
    planes = state.planes.plus(here.slopes[new], heights[new], groups[new])
    return replace(state, planes=planes, alpha=np.append(state.alpha, np.zeros(int(new.sum()))))


def solved(state: Kind, objective: Objective, keep_idle: int) -> tuple[Kind, Floats]:
    """The state with the master solved, its bound and its weights; and where the model is least.

    Planes that carried no weight for more than `keep_idle` masters are dropped.
    """
    if not len(state.planes):
        return state, objective.w0
    groups = state.planes.references.shape[0]
    relative = state.gap / max(abs(state.primal), 1e-300)
    precision = min(state.precision, COARSEST, CARE * relative)
    requested = precision if precision > FINEST else None
    answer = objective.solve_master(state.planes, np.ones(groups), state.alpha, requested)
    planes, alpha = state.planes.without_idle(answer.alpha, keep_idle)
    rises = answer.bound > state.bound + CARE * state.gap
    state = replace(state, precision=precision if rises else max(SHARPER * precision, SHARPER * FINEST))
    seconds = state.seconds_master + answer.seconds
    return replace(state, planes=planes, alpha=alpha, seconds_master=seconds).bounded(answer.bound), answer.w


@dataclass(frozen=True)
class Bundle:
    """Minimize (lam/2)‖w - w₀‖² + Σ_g R_g(w): each R_g is replaced by the maximum of its planes, the master program
    minimizes that model, and the next planes are taken on the way from the best point so far to where it is least.

    groups: how many groups the queries make at most; one, where a solver of one's own takes one alone.
        `Bundle(groups=1, damping=1)` is the plain method, which needs many more passes (benchmarks/training.md).
    damping: which part of that way is gone, 0 < damping <= 1. The bound is the model's either way.
    keep_idle: master solves that a plane may lie idle before it is dropped.
    """

    groups: int = 256
    damping: float = 0.7
    keep_idle: int = 10

    def __post_init__(self) -> None:
        check_part(True, damping=self.damping)
        set_integers(self, 1, "groups")
        set_integers(self, 0, "keep_idle")

    def start(self, objective: Objective, w: Floats) -> State:
        groups, floor = groups_of(objective, self.groups), objective.risk.floor
        return State(PlaneSet.empty(groups, w.size, floor), np.zeros(0), trial=w, w=w, bound=floor)

    def step(self, state: State, objective: Objective) -> State:
        here = at_groups(objective.risk, state.trial, state.planes.references.shape[0])
        state = state.seen(objective.upper(state.trial, here), here, objective.risk.convex)
        return self.aimed(replace(grown(state, here), steps=state.steps + 1), objective)

    def aimed(self, state: State, objective: Objective) -> State:
        """The state with the model minimized, and where to look next."""
        state, least = solved(state, objective, self.keep_idle)
        return replace(state, trial=objective.between(state.w, least, self.damping))


@dataclass(frozen=True)
class CuttingPlanes:
    """Minimize (lam/2)‖w - w₀‖² + Σ_q ξ_q, each ξ_q above the planes found for query q with its weight v_q.

    Each pass evaluates all queries at one w, which gives the primal. Then planes are added query by query, and the
    master is solved after every `master_every` of them: "pass" (all at once), "plane" (after each), or a number. A
    "plane" costs a master and an evaluation a query, which grows with the square of the number of queries. A plane is
    added only where it rises above the slack.

    keep_idle: master solves that a plane may lie idle before it is dropped.
    """

    master_every: str | int = "pass"
    keep_idle: int = 50

    def __post_init__(self) -> None:
        set_integers(self, 0, "keep_idle")
        if isinstance(self.master_every, str) and self.master_every not in ("pass", "plane"):
            raise OptionError(f"master_every = {self.master_every!r} is unknown; give 'pass', 'plane' or a number")
        if not isinstance(self.master_every, str):
            set_integers(self, 1, "master_every")

    def start(self, objective: Objective, w: Floats) -> State:
        queries, floor = objective.risk.weights.size, objective.risk.floor
        return State(PlaneSet.empty(queries, w.size, floor), np.zeros(0), trial=w, w=w, bound=floor)

    def step(self, state: State, objective: Objective) -> State:
        here = one_each(objective.risk, state.trial)
        state = state.seen(objective.upper(state.trial, here), here, objective.risk.convex)
        state = replace(state, steps=state.steps + 1)
        queries = here.losses.size
        size = int({"pass": queries, "plane": 1}.get(str(self.master_every), self.master_every))
        for first in range(0, queries, size):
            last = min(first + size, queries)
            if size < queries:  # w has moved: evaluate these queries at the current w
                here = one_each(objective.risk, state.trial, (first, last))
                state = replace(state, seconds_argmax=state.seconds_argmax + here.seconds)
            state = grown(state, here, np.arange(first, last))
            state, least = solved(state, objective, self.keep_idle)
            state = replace(state, trial=least)
        return state
