"""A loss of each user's scores by name, the blocks that minimize it, and the factors of new users.

The factors of new users minimize Σ_u l_u + (λ_U/2)‖U‖² (+ (μ/2)‖b_u‖²) for fixed items: one users' block if the loss is
convex, else a sequence of convex majorants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.compiled import is_small
from formulations.parallel import threads
from formulations.solvers.exact import ExactArgmax
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.least_squares import Regression
from rankopt.collaborative.plane_blocks import PlaneBlocks
from rankopt.collaborative.problem import FactorProblem, Factors, ModelState
from rankopt.collaborative.regularization import Penalties
from rankopt.data.canonical_order import Arrangement
from rankopt.engines import Threads
from rankopt.errors import DataError, OptionError
from rankopt.losses import LOSSES, get_bound, get_loss
from rankopt.losses.loss import SquaredError, is_nonnegative, protocol_of
from rankopt.losses.oracle_positional import orderable
from rankopt.losses.position_weights import parse_position_weights
from rankopt.losses.regret import RegretBound
from rankopt.measures.measure import Measure
from rankopt.measures.notation import MeasureMix
from rankopt.ratings.evaluation import from_which_on, measured
from rankopt.ratings.table import Ratings
from rankopt.risk.risk import cut

SHIFTED = "shifted(0.25)"  # the paper's position weights


@dataclass(frozen=True)
class UserLoss:
    """regret: the bound of a measure's; factory: else a loss made of ratings and bounds; neither: a regression."""

    regret: RegretBound | None = None
    factory: Callable[..., Any] | None = None

    @classmethod
    def named(cls, spec: Any, bound: Any, position_weights: Any) -> UserLoss:
        """From a name or a value; OptionError and MeasureError for what does not go together."""
        kind, weights = get_bound(bound), parse_position_weights(position_weights)
        named = isinstance(spec, str) and spec in ("regression", *LOSSES)
        if named or (callable(spec) and not isinstance(spec, Measure)):
            if not (isinstance(bound, str) and bound == "convex"):
                raise OptionError(f"bound = {bound!r} is of a measure's regret, which loss = {spec!r} has not; omit it")
            if weights != parse_position_weights(SHIFTED):
                raise OptionError(
                    f"position_weights = {position_weights!r} weigh positions, which loss = {spec!r} has not; omit it"
                )
            if spec == "regression":
                return cls()
            if why := _unfit(spec):
                raise OptionError(f"loss = {spec!r} {why}")
            return cls(factory=get_loss(spec))
        try:
            return cls(regret=RegretBound.named(spec, "positional", kind, weights))
        except ValueError as error:
            known = ", ".join(map(repr, ("regression", *(name for name in LOSSES if not _unfit(name)))))
            raise OptionError(f"loss = {spec!r} is none of {known} nor a measure of bounded regret: {error}") from error

    @property
    def sees_levels(self) -> bool:
        """Whether a constant added to a user's scores changes the loss."""
        return self.regret is None and self.factory is None

    @property
    def convex(self) -> bool:
        """Whether it is, and need not be majorized."""
        return self.regret is None or self.regret.bound.convex

    def check_weights(self, by_rating: bool) -> None:
        """DataError where weights of ratings mean nothing."""
        if by_rating and not self.sees_levels:
            raise DataError("sample_weight weighs ratings, but this loss judges orders of them; give user_weight")

    def seen(self, rated: EncodedRatings) -> EncodedRatings:
        """The ratings of users that the loss can learn from; DataError where there are none."""
        if self.sees_levels:
            return rated
        sizes = np.diff(rated.bounds)
        ordered = sizes > 1
        some = distinguished = rated.select_users(ordered)
        if some.n_users:
            if self.regret is None:
                low, high = (one.reduceat(some.values, some.bounds[:-1]) for one in (np.minimum, np.maximum))
                useful = low < high
            else:
                with measured(self.regret.measure, some.values, "loss"):
                    useful = _orderable(some, self.regret.measure)
            some = some.select_users(useful) if useful.any() else some.select_users(np.zeros(some.n_users, dtype=bool))
        if not some.n_users:
            measure = None if self.regret is None else self.regret.measure
            cure = from_which_on(measure, distinguished.bounds, distinguished.values, orderable) or "give more"
            raise DataError(f"these ratings have no order to learn because no user has two of different worth; {cure}")
        return some

    def check_parts(self, seen: EncodedRatings) -> None:
        """DataError for a part of a mix to which all ratings of every user are worth the same: it would not count."""
        mix = None if self.regret is None else self.regret.measure
        for part in mix.parts if isinstance(mix, MeasureMix) else ():
            if not _orderable(seen, part.measure).any():
                cure = from_which_on(part.measure, seen.bounds, seen.values, orderable) or "leave it out"
                raise DataError(
                    f"{part.measure} of {mix} would not count because no user has two ratings that it distinguishes; "
                    f"{cure}"
                )

    def blocks(self, problem: FactorProblem, engine: Any) -> Any:
        if self.sees_levels:
            return Regression(problem, engine or Threads())
        rated = problem.rated
        weights = rated.weights[rated.bounds[:-1]] if rated.weights.size else np.ones(rated.n_users)
        solver = ExactArgmax(compiled=None if is_small(rated.bounds) else True)  # no shard of many is few
        loss = partial(self._loss, solver=solver)
        first = self._loss(rated.values[: rated.bounds[1]], rated.bounds[:2])
        return PlaneBlocks(problem, loss, weights, first.convex, is_nonnegative(first), engine or Threads())

    def _loss(self, values: Floats, bounds: Ints, solver: ExactArgmax | None = None) -> Any:
        """Of the ratings of users that were `seen`."""
        if self.factory is not None:
            try:
                return self.factory(values, bounds)
            except TypeError as error:
                raise OptionError(
                    f"loss = {self.factory!r:.80} is no function of (relevance, offsets): {error}"
                ) from error
        m = bounds.size - 1
        lists = Arrangement(
            np.zeros((values.size, 0)), np.arange(values.size), bounds, np.ones(m), values, tuple(range(m)), {}
        )
        return self.regret.loss(lists, solver or ExactArgmax())  # type: ignore[union-attr]


def _unfit(spec: Any) -> str:
    """Why a loss cannot be that of users' scores, and what can; "" where it can."""
    factory = get_loss(spec)
    if protocol_of(factory) != "plane":
        return "provides no cutting planes, which both blocks need; use another loss"
    if not getattr(factory, "exact", True):
        return "is known within bounds only, and so would be J; take another"
    if getattr(factory, "func", factory) is SquaredError:
        return "is not of orders, and levels want offsets of users; take 'regression'"
    return ""


def _orderable(rated: EncodedRatings, measure: Any) -> Bools:
    """(n,) whose ratings the measure distinguishes; of some users at a time, since it takes some numbers a rating."""
    found, values = np.empty(rated.n_users, dtype=bool), rated.values
    for first, last in cut(rated.bounds):
        bounds = rated.bounds[first : last + 1]
        found[first:last] = orderable(values[bounds[0] : bounds[-1]], bounds - bounds[0], measure)
    return found


MAX_MAJORANTS = 30  # convex majorants of a bound that is not convex, at most
MAX_CONVEX = 2  # solutions of a convex block; the first tolerance is too large if its value was far above the best


@dataclass(frozen=True, eq=False)
class FoldInResult:
    """users (n, d), user_offsets (n,). value: Σ_u l_u + (λ/2)‖U‖² (+ (μ/2)‖b_u‖²); bound: what it cannot fall below for
    these items, of the majorant if `kind` is that."""

    users: Floats
    user_offsets: Floats
    value: float
    bound: float
    kind: str

    @property
    def relative_gap(self) -> float:
        """The gap as a part of the value."""
        away = max(self.value - self.bound, 0.0)
        return away / abs(self.value) if self.value else np.inf if away else 0.0


def fold_in(
    loss: UserLoss, penalties: Penalties, lam: float, model: Factors, ratings: Ratings, weights: Floats | None = None,
    tol: float = 1e-3,
) -> FoldInResult:  # fmt: skip
    """The best users for the items of the model. ratings: over its items, in their order, with weights (n_ratings,); a
    user whose ratings do not enter the loss has the factors 0."""
    n, d = ratings.n_users, model.dimensions
    users, user_offsets = np.zeros((n, d)), np.zeros(n)
    nothing = FoldInResult(users, user_offsets, 0.0, 0.0, "blocks")
    if not ratings.n_ratings:
        return nothing
    try:
        rated = loss.seen(EncodedRatings.from_ratings(ratings, weights))
    except DataError:  # no order to learn from
        return nothing
    problem = penalties.problem(rated).at_strength(lam, min(lam, 1.0))  # what items cost is taken off: let it be small
    items = Factors(users[rated.users], model.items[rated.items], model.offsets[rated.items], user_offsets[rated.users])
    blocks = loss.blocks(problem, Threads(threads()))  # local threads, independent of the engine of training
    found = best_users(blocks, blocks.at(items), tol)
    users[rated.users], user_offsets[rated.users] = found.factors.users, found.factors.user_offsets
    kind = "blocks" if blocks.convex else "blocks of the majorant"
    return FoldInResult(users, user_offsets, *_users_alone(problem, found), kind)


def best_users(blocks: Any, now: ModelState, tol: float) -> ModelState:
    """From a state, with its users replaced by better ones only, to a gap relative to the cost of users, or as close as
    their block gets; of a bound that is not convex until a majorant gains no more than that, or `MAX_MAJORANTS` were
    taken. Items cost the same throughout and count for nothing here."""
    cost, _ = _users_alone(blocks.problem, now)
    for _ in range(MAX_CONVEX if blocks.convex else MAX_MAJORANTS):
        found = blocks.with_users(now, 0.5 * tol * abs(cost) / (abs(now.value) or 1.0))
        before, (cost, bound) = cost, _users_alone(blocks.problem, found)
        now = found
        if (cost - bound if blocks.convex else before - cost) <= tol * abs(cost):
            break
    return now


def _users_alone(problem: FactorProblem, now: ModelState) -> tuple[float, float]:
    """What users cost, their losses with it, and what that cannot fall below for these items."""
    cost = now.lost + problem.users_penalty(now.factors)
    return cost, min(now.users - problem.items_penalty(now.factors), cost)
