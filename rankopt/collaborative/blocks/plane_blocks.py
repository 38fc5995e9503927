"""Both blocks of a loss that says planes: bundles of users side by side, and the items by block-coordinate ascent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.blocks.balance import balanced
from rankopt.collaborative.blocks.held_planes import Held, Planes
from rankopt.collaborative.blocks.item_ascent import ascend_users, form_gram
from rankopt.collaborative.blocks.rated_shards import PlanesAt, RatedShard, UsersFor, user_shards
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import Problem, Standing, block_bounds
from rankopt.collaborative.pull import pulled
from rankopt.engines.threads import Threads

__all__ = ["PlaneBlocks"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Given = tuple[Ints, NDArray[np.int32], Floats, Floats, Floats, Held]

CHUNK = 1 << 15
"""Ratings of whole users whose planes are formed at a time."""

ROOM = (3, 512)
"""Planes that a user holds in the items' block, at least and at most. Most users need few, those whose many ratings are
tied need hundreds: with 12, or 64, the block of such users comes to no end."""

BYTES = 1 << 26
"""What these may take: on more ratings fewer are held."""

PASSES = (40, 2000)
"""Passes over all users in one solution of the items' block, at most: so many a plane that may be held, and in all."""

SWEEPS = 4
"""Passes over the planes at hand after each that brings new ones."""

WAY = 0.5
"""How far from the best items so far to those of the planes at hand the loss is asked; few planes overshoot."""

FIRST = 1e-2
"""The relative gap to which users are solved for the items of the start."""


@dataclass(frozen=True, eq=False)
class PlaneBlocks:
    """loss: from ratings and bounds of users to their loss; weights: (n,) how much each counts. convex: it is, else its
    majorants are minimised. positive: it is never below 0."""

    problem: Problem
    loss: Callable[[Floats, Ints], Any]
    weights: Floats
    convex: bool = True
    positive: bool = True
    engine: Any = field(default_factory=Threads)
    known: dict[int, tuple[RatedShard, ...]] = field(default_factory=dict, repr=False)

    def at_strength(self, lam_users: float, lam_items: float) -> PlaneBlocks:
        return replace(self, problem=self.problem.at_strength(lam_users, lam_items))

    def begun(self, factors: Factors) -> Standing:
        """The standing of given items, with users that are best for them, both of one size."""
        now = self._users(self.at(factors), FIRST)
        return self.at(balanced(self.problem, now.factors))

    def whole(self, now: Standing) -> Standing:
        """The standing with its dual state, which it has."""
        return now

    def value(self, factors: Factors) -> float:
        """J."""
        return self.at(factors).value

    def around(self, now: Standing, precision: float) -> tuple[Standing, Standing]:
        """What the items' block proves of where it stands; and after it and the users'."""
        items = self._items(now, precision)
        checked = now
        if items.items > now.items:
            checked = replace(now, items=items.items, of_items=(items.slopes, items.heights))
        found = self._users(items, precision)
        if self.convex:  # the items' planes are planes of the loss for any users
            proved = block_bounds(self.problem, found.factors, items.slopes, items.heights)[1]
            if proved > found.items:
                found = replace(found, items=proved, of_items=(items.slopes, items.heights))
        return checked, replace(found, planes=items.planes)

    def with_users(self, now: Standing, precision: float) -> Standing:
        """U of least J for the items as they are, to this part of J."""
        return self._users(now, precision)

    def with_items(self, now: Standing, precision: float) -> Standing:
        """M and b of least J for the users as they are, to this part of J."""
        return self._items(now, precision)

    def offsets_only(self) -> Standing:
        """The best model without factors."""
        return self._items(self.at(self.problem.without_factors()), 1e-4)

    @property
    def proves_whole(self) -> bool:
        """Whether the dual state bounds J over all factors."""
        return self.convex and self.positive

    def bend(self) -> float:
        """Σψ²/(2Σl) at b⁰ without weights of users, 1 where nothing is lost there: what a rating of this loss adds to
        the pull on an offset, as 1 is what it adds in a regression, where the same quotient is 1 at all scores."""
        lost, slopes, _ = self._found(self.problem.without_factors())
        spread = np.repeat(self.weights, np.diff(self.problem.rated.bounds))
        bent, total = float(((slopes / spread) ** 2).sum()), 2.0 * float((lost / self.weights).sum())
        return bent / total if total > 0.0 and 0.0 < bent < np.inf else 1.0

    def curvature(self, slopes: Floats) -> float:
        """0: planes that are made flatter cost nothing."""
        return 0.0

    @cached_property
    def _shards(self) -> tuple[RatedShard, ...]:
        key = id(self.problem.rated)
        if key not in self.known:
            self.known[key] = user_shards(self.problem.rated, CHUNK, self.weights, self.loss)
        return self.known[key]

    def _found(self, factors: Factors, touch: Factors | None = None) -> tuple[Floats, Floats, Floats]:
        """v_u l_u (n,) and their planes, slopes (ratings,) and heights (n,), at these factors; of the majorant that
        touches the loss at the factors `touch`."""
        known = None if touch is None or self.convex else (touch.users, touch.items, touch.offsets)
        question = PlanesAt(factors.users, factors.items, factors.offsets, known)
        lost, heights, slopes = zip(*self.engine.map(question, self._shards), strict=True)
        return np.concatenate(lost), np.concatenate(slopes), np.concatenate(heights)

    def at(self, factors: Factors) -> Standing:
        """The standing of factors as they are."""
        lost, slopes, heights = self._found(factors)
        return Standing.at(self.problem, factors, float(lost.sum()), slopes, heights)

    def _users(self, now: Standing, precision: float) -> Standing:
        """U of least J for the items as they are, to this part of J."""
        problem, rated, factors = self.problem, self.problem.rated, now.factors
        tolerance = precision * abs(now.value) / max(rated.n_users, 1)
        question = UsersFor(
            factors.users, factors.items, factors.offsets, problem.of_users, tolerance, rated.bounds, now.slopes,
            now.heights, self.convex,
        )  # fmt: skip
        users, slopes, heights, lost = map(np.concatenate, zip(*self.engine.map(question, self._shards), strict=True))
        found = replace(factors, users=users)
        if not self.convex:  # the majorant's loss is not J's
            lost = self._found(found)[0]
        return Standing.at(problem, found, float(lost.sum()), slopes, heights)

    def _items(self, now: Standing, precision: float) -> Standing:
        """M and b of least J for the users as they are, to this part of J."""
        rated, room = self.problem.rated, self._room()
        slopes, heights, touch = now.slopes, now.heights, None
        if not self.convex:
            touch = now.factors
            _, slopes, heights = self._found(touch, touch)
        given, at = self._begun(now, slopes, room)
        held = given[-1]
        tolerance = np.full(rated.n_users, precision * abs(now.value) / max(rated.n_users, 1))
        ascend_users(*given, slopes, heights, tolerance, at.items, at.offsets)
        del slopes
        best, best_value = now.factors, now.value
        for _ in range(min(PASSES[0] * room, PASSES[1])):
            mixed, heights = held.at(rated.bounds, at.scores(rated.bounds, rated.columns))
            bound = float((heights + mixed).sum()) + self._penalty(at)
            trial = _between(best, at)
            lost, fresh, height = self._found(trial, touch)
            value = float(lost.sum()) + self._penalty(trial)
            if value < best_value:
                best, best_value = trial, value
            if best_value - bound <= precision * abs(best_value):
                break
            ascend_users(*given, fresh, height, tolerance, at.items, at.offsets)
            del fresh
            for _ in range(SWEEPS):
                ascend_users(*given, None, None, tolerance, at.items, at.offsets)
        slopes, heights = held.mixed(rated.bounds)
        lost, _, _ = self._found(best)
        found = Standing.at(self.problem, best, float(lost.sum()), slopes, heights)
        return replace(found, planes=held.with_weight(rated.bounds)) if self.convex else found

    def _begun(self, now: Standing, slopes: Floats, room: int) -> tuple[Given, Factors]:
        """What passes over the users are given, and the items of the planes that are held when they begin: those of the
        last block, where there was one, since a plane of a convex loss is one for any users; else none."""
        problem, rated = self.problem, self.problem.rated
        planes = Planes.none(rated.n_users) if now.planes is None else now.planes
        held = Held.of(planes, rated.bounds, room)
        given = (rated.bounds, rated.columns, now.factors.users, problem.of_items, problem.of_offsets, held)
        if now.planes is not None:
            form_gram(*given)
            slopes, _ = held.mixed(rated.bounds)
        return given, self._items_of(now.factors, slopes)

    def _penalty(self, factors: Factors) -> float:
        return self.problem.users_penalty(factors) + self.problem.items_penalty(factors)

    def _room(self) -> int:
        """Planes a user of which slopes and Gram matrices stay within `BYTES`."""
        rated = self.problem.rated
        planes, users = float(max(rated.values.size, 1)), float(rated.n_users)
        most = (np.sqrt(planes * planes + 0.5 * users * BYTES) - planes) / (2.0 * users) if users else 0.0
        return int(np.clip(most, *ROOM))

    def _items_of(self, factors: Factors, slopes: Floats) -> Factors:
        """M = -ΨᵀU/λ, b = b⁰ - Ψᵀ1/μ."""
        problem, rated = self.problem, self.problem.rated
        moved = pulled(rated.item_bounds, rated.item_users, slopes, factors.users, rated.item_order)
        items, offsets = -moved / problem.of_items[:, None], problem.prior.copy()
        if problem.of_offsets.size:
            offsets -= rated.per_item(slopes) / problem.of_offsets
        return replace(factors, items=items, offsets=offsets)


def _between(best: Factors, model: Factors) -> Factors:
    """`WAY` from the items of one to those of the other."""
    items, offsets = best.items + WAY * (model.items - best.items), best.offsets + WAY * (model.offsets - best.offsets)
    return replace(model, items=items, offsets=offsets)
