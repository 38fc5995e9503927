"""Both blocks of a loss with cutting planes: bundles of users in parallel, and the items by block-coordinate ascent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from formulations.arrays import Floats, Ints, Shorts
from rankopt.collaborative.encoded_ratings import RatedShard, user_shards
from rankopt.collaborative.item_block import MAX_PLANES, UserPlanes, ascend_users, form_gram
from rankopt.collaborative.least_squares import balanced
from rankopt.collaborative.linear_algebra import row_sums
from rankopt.collaborative.problem import FactorProblem, Factors, ModelState, items_bound, pair_scores
from rankopt.collaborative.user_block import solved_users
from rankopt.engines import Threads
from rankopt.losses.loss import check_sign

CHUNK = 1 << 14  # minimum ratings (of complete users) whose planes are formed at a time
CHUNKS = 64, 8  # number of chunks of more ratings; with several threads up to this many times as many
CROWD = 1 << 25  # entries of all Gram matrices, 256 MiB, beyond which the two lightest planes of a user are joined
PASSES = 2000  # passes over all users in one solution of the items' block that bring new planes, at most
SWEEPS = 4  # passes over the planes at hand after each that brings new ones
WAY = 0.5  # step from the best items to those of the current planes; few planes overshoot
FIRST = 1e-2  # the relative gap to which users are solved for the items of the start


@dataclass(frozen=True, eq=False)
class RatingPlanesEvaluation:
    """v_u l_u and its plane of every user at these factors: values, heights (users,), slopes (entries,); of the
    majorant that touches the loss at the factors `touch`."""

    factors: Factors
    touch: Factors | None = None

    def __call__(self, shard: RatedShard) -> tuple[Floats, Floats, Floats]:
        touch = None if self.touch is None else shard_scores(shard, self.touch)
        loss, scores = shard.loss_at(touch), shard_scores(shard, self.factors)
        found = loss.at(scores)
        check_sign(loss, found.value, scores)
        v, slopes = shard.user_weights, found.assigned - found.reference
        return v * found.value, v * found.height, np.repeat(v, np.diff(shard.bounds)) * slopes


@dataclass(frozen=True, eq=False)
class UsersFor:
    """The users' block of a shard: U (users, d), slopes (entries,), heights and v_u l_u (users,). slopes, heights: the
    plane of each user to begin with, in the order of all ratings, of which the shard's begin at `entries[first]`."""

    factors: Factors
    penalty: Floats
    tolerance: float
    entries: Ints
    slopes: Floats
    heights: Floats
    convex: bool

    def __call__(self, shard: RatedShard) -> tuple[Floats, Floats, Floats, Floats]:
        low, high = int(self.entries[shard.first]), int(self.entries[shard.last])
        slopes, heights, touch = self.slopes[low:high], self.heights[shard.rows], None
        if not self.convex:
            touch = shard_scores(shard, self.factors)
            _, heights, slopes = RatingPlanesEvaluation(self.factors, touch=self.factors)(shard)
        return solved_users(
            shard.loss_at(touch), shard.user_weights, shard.bounds, shard.columns, self.factors.items,
            self.factors.offsets, self.penalty[shard.rows], slopes, heights, self.factors.users[shard.rows],
            np.full(shard.last - shard.first, self.tolerance),
        )  # fmt: skip


def shard_scores(shard: RatedShard, factors: Factors) -> Floats:
    """The scores of the rated pairs of a shard, without the offsets of users."""
    none = np.zeros(shard.last - shard.first)
    own = np.ascontiguousarray(factors.users[shard.rows])
    return pair_scores(own, factors.items, factors.offsets, none, shard.bounds, shard.columns)


@dataclass(frozen=True, eq=False)
class PlaneBlocks:
    """loss: from ratings and bounds of users to their loss; weights: (n,) how much each counts. convex: it is, else its
    majorants are minimized. nonnegative: it declares to be."""

    problem: FactorProblem
    loss: Callable[[Floats, Ints], Any]
    weights: Floats
    convex: bool = True
    nonnegative: bool = True
    engine: Any = field(default_factory=Threads)
    known: dict[int, tuple[RatedShard, ...]] = field(default_factory=dict, repr=False)

    def at_strength(self, lam_users: float, lam_items: float) -> PlaneBlocks:
        return replace(self, problem=self.problem.at_strength(lam_users, lam_items))

    def begun(self, factors: Factors) -> ModelState:
        """The state of these items, with optimal users for them."""
        now = self.with_users(self.at(factors), FIRST)
        return self.at(balanced(self.problem, now.factors))

    def complete(self, now: ModelState) -> ModelState:
        """The state with its dual state, of which that of the items may be left to the planes, and without these."""
        if now.planes is None or not now.by_planes:
            return replace(now, planes=None)
        slopes, heights = self._mixtures(now.planes)
        items = items_bound(self.problem, now.factors, [(slice(0, heights.size), slopes, heights)])
        return replace(now, items=items, of_items=(slopes, heights), planes=None, by_planes=False)

    def planes_of(self, stored: Sequence[Mapping[str, Any]]) -> list[UserPlanes]:
        """The stored planes of the users of each shard; ValueError or TypeError if they are invalid."""
        if len(stored) != len(self._shards):
            raise ValueError("planes are of other ratings")
        for one, shard in zip(found := [UserPlanes(**one) for one in stored], self._shards, strict=True):
            one.check(shard.bounds)
        return found

    def around(self, now: ModelState, precision: float) -> tuple[ModelState, ModelState]:
        """The current state with the bound of the items' block; and after it and the users' block. All three share
        one list of planes, which the items' block updates."""
        items = self.with_items(now, precision)
        dual: dict[str, Any] = {"planes": items.planes, "of_items": None, "by_planes": True}
        if not self.convex:  # no planes are stored then
            dual = {"of_items": (items.slopes, items.heights)}
        checked = replace(now, items=items.items, **dual) if now.by_planes or items.items > now.items else now
        if not self.convex:
            return checked, self.with_users(items, precision)
        found = replace(self.with_users(items, precision, items.slopes), planes=items.planes)
        mixtures = ((shard.rows, *one.mixed()) for one, shard in zip(items.planes or (), self._shards, strict=True))
        proved = items_bound(self.problem, found.factors, mixtures)  # planes of the loss for any users
        return checked, replace(found, items=proved, **dual) if proved > found.items else found

    def offsets_only(self) -> ModelState:
        """The best model without factors."""
        return self.with_items(self.at(self.problem.without_factors()), 1e-4)

    @property
    def has_global_bound(self) -> bool:
        """Whether the dual state bounds J over all factors: the proof needs that 0 is a plane of the loss."""
        return self.convex and self.nonnegative

    def bend(self) -> float:
        """Σψ²/(2Σl) at b⁰ without weights of users, 1 where nothing is lost there: what a rating of this loss adds to
        the pull on an offset, as 1 is what it adds in a regression, where the same quotient is 1 at all scores."""
        bends, losses = np.empty(self.weights.size), np.empty(self.weights.size)
        question = RatingPlanesEvaluation(self.problem.without_factors())
        for shard, _, (lost, _, slopes) in self._answers(question):
            slopes = slopes / np.repeat(shard.user_weights, np.diff(shard.bounds))
            bends[shard.rows] = row_sums(shard.bounds, slopes * slopes)
            losses[shard.rows] = lost / shard.user_weights
        bent, total = float(bends.sum()), 2.0 * float(losses.sum())
        return bent / total if total > 0.0 and 0.0 < bent < np.inf else 1.0

    def curvature(self, slopes: Floats) -> float:
        """0: planes that are made flatter cost nothing."""
        return 0.0

    @cached_property
    def _shards(self) -> tuple[RatedShard, ...]:
        key = id(self.problem.rated)
        if key not in self.known:
            part, most = CHUNKS
            size = min(max(self.problem.rated.n_ratings // part, CHUNK), most * CHUNK)
            self.known[key] = user_shards(self.problem.rated, size, self.weights, self.loss)
        return self.known[key]

    def _answers(self, question: Any) -> Iterator[tuple[RatedShard, slice, Any]]:
        """Each shard, its ratings among all, and its answer; one by one where the engine can."""
        bounds, each = self.problem.rated.bounds, getattr(self.engine, "each", self.engine.map)
        for shard, answer in zip(self._shards, each(question, self._shards), strict=True):
            yield shard, slice(int(bounds[shard.first]), int(bounds[shard.last])), answer

    def at(self, factors: Factors) -> ModelState:
        rated = self.problem.rated
        lost, heights, slopes = np.empty(rated.n_users), np.empty(rated.n_users), np.empty(rated.n_ratings)
        for shard, rows, answer in self._answers(RatingPlanesEvaluation(factors)):
            lost[shard.rows], heights[shard.rows], slopes[rows] = answer
        return ModelState.at(self.problem, factors, float(lost.sum()), slopes, heights)

    def with_users(self, now: ModelState, precision: float, buffer: Floats | None = None) -> ModelState:
        """U of least J for fixed items, to this part of J. buffer: memory for slopes, perhaps those of `now`."""
        problem, rated, factors = self.problem, self.problem.rated, now.factors
        tolerance = precision * abs(now.value) / max(rated.n_users, 1)
        question = UsersFor(factors, problem.of_users, tolerance, rated.bounds, now.slopes, now.heights, self.convex)
        users, slopes = np.empty(factors.users.shape), np.empty(rated.n_ratings) if buffer is None else buffer
        lost, heights = np.empty(rated.n_users), np.empty(rated.n_users)
        for shard, rows, answer in self._answers(question):
            users[shard.rows], slopes[rows], heights[shard.rows], lost[shard.rows] = answer
        found = replace(factors, users=users)
        total = float(lost.sum()) if self.convex else self._weighted_loss(found)  # the majorant's loss is not J's
        return ModelState.at(problem, found, total, slopes, heights)

    def _weighted_loss(self, factors: Factors) -> float:
        """Σ v_u l_u."""
        answers = self._answers(RatingPlanesEvaluation(factors))
        return float(np.concatenate([lost for _, _, (lost, _, _) in answers]).sum())

    def with_items(self, now: ModelState, precision: float) -> ModelState:
        """M and b of least J for fixed users, to this part of J. The planes of the state are updated: at any time they
        are valid, and their mixture proves no less than before."""
        touch = None if self.convex else now.factors
        planes = self._initial_planes(now, touch)
        try:
            best, best_lost = self._ascend(now, touch, planes, precision)
        finally:  # an interruption leaves them valid, and they are retained
            for i, one in enumerate(planes):
                planes[i] = one.with_weight()
        proved = ModelState.at(self.problem, best, best_lost, *self._mixtures(planes))
        return replace(proved, planes=planes) if self.convex else proved

    def _ascend(
        self, now: ModelState, touch: Factors | None, planes: list[UserPlanes], precision: float
    ) -> tuple[Factors, float]:
        """The best factors found, and their loss. planes: the state of the ascent, updated."""
        rated = self.problem.rated
        at = self._items_of(now.factors, self._mixtures(planes)[0])
        for one, shard in zip(planes, self._shards, strict=True):
            form_gram(one.bounds, *self._pass_arguments(shard, at), one.slopes, one.counts, one.gram)
        best, best_value, best_lost, before = now.factors, now.value, np.nan, -np.inf
        for number in range(PASSES):
            size = min(abs(now.value), 2.0 * abs(best_value))  # where it began J may be far larger
            tolerance = precision * size / max(rated.n_users, 1)
            if number or now.planes is not None:
                for one, shard in [*zip(planes, self._shards, strict=True)] * SWEEPS:
                    ascend_users(*self._pass_arguments(shard, at), one, None, tolerance, at.items, at.offsets)
            bound = self._under(planes, at)
            trial = _between(best, at, WAY if bound > before else 1.0)  # nearer by, no plane may be worth its weight
            before = bound
            losses, found = [], []
            for _, _, (lost, heights, slopes) in self._answers(RatingPlanesEvaluation(trial, touch)):
                losses.append(lost)
                found.append((slopes, heights))
            lost = float(np.concatenate(losses).sum())
            value = lost + self._penalty(trial)
            if value < best_value:
                best, best_value, best_lost = trial, value, lost
            if best_value - bound <= precision * abs(best_value):
                break
            most = 0 if sum(one.gram.size for one in planes) > CROWD else MAX_PLANES
            for i, (fresh, heights) in enumerate(found):
                planes[i], index = planes[i].with_plane(fresh, heights, most)
                arguments = self._pass_arguments(self._shards[i], at)
                ascend_users(*arguments, planes[i], index, tolerance, at.items, at.offsets)
        if not self.convex or np.isnan(best_lost):  # of J itself
            best_lost = self._weighted_loss(best)
        return best, best_lost

    def _initial_planes(self, now: ModelState, touch: Factors | None) -> list[UserPlanes]:
        """Planes of each shard: those of the last block, where there was one, since a plane of a convex loss is one for
        any users; else one of each user, of the loss at the current state."""
        if now.planes is not None:
            for i, one in enumerate(now.planes):
                now.planes[i] = one.writable()
            return now.planes
        return [
            UserPlanes.first(shard.bounds, slopes, heights)
            for shard, _, (_, heights, slopes) in self._answers(RatingPlanesEvaluation(now.factors, touch))
        ]

    def _pass_arguments(self, shard: RatedShard, at: Factors) -> tuple[Shorts, Floats, Floats, Floats]:
        return shard.columns, at.users[shard.rows], self.problem.of_items, self.problem.of_offsets

    def _mixtures(self, planes: Sequence[UserPlanes]) -> tuple[Floats, Floats]:
        """The mixtures of all users as one plane each: slopes (ratings,), heights (n,)."""
        slopes, heights = zip(*(one.mixed() for one in planes), strict=True)
        return np.concatenate(slopes), np.concatenate(heights)

    def _under(self, planes: Sequence[UserPlanes], at: Factors) -> float:
        """The bound of J that the mixtures prove, whose items are these."""
        parts = []
        for one, shard in zip(planes, self._shards, strict=True):
            slopes, heights = one.mixed()
            slopes *= shard_scores(shard, at)
            parts.append(row_sums(one.bounds, slopes) + heights)
        return float(np.concatenate(parts).sum()) + self._penalty(at)

    def _penalty(self, factors: Factors) -> float:
        return self.problem.users_penalty(factors) + self.problem.items_penalty(factors)

    def _items_of(self, factors: Factors, slopes: Floats) -> Factors:
        """M = -ΨᵀU/λ, b = b⁰ - Ψᵀ1/μ."""
        problem, rated = self.problem, self.problem.rated
        moved = rated.table(slopes).T @ factors.users
        items, offsets = -moved / problem.of_items[:, None], problem.prior.copy()
        if problem.of_offsets.size:
            offsets -= rated.per_item(slopes) / problem.of_offsets
        return replace(factors, items=items, offsets=offsets)


def _between(best: Factors, model: Factors, share: float) -> Factors:
    """The items at this share of the step from `best` to `model`."""
    items = best.items + share * (model.items - best.items)
    return replace(model, items=items, offsets=best.offsets + share * (model.offsets - best.offsets))
