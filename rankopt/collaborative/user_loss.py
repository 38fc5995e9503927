"""A loss of each user's scores by name, and the blocks that minimise it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.compiled import is_small
from formulations.solvers.exact import ExactArgmax
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.least_squares import Regression
from rankopt.collaborative.plane_blocks import PlaneBlocks
from rankopt.collaborative.problem import FactorProblem
from rankopt.data.canonical_order import Arrangement
from rankopt.engines import Threads
from rankopt.errors import DataError, OptionError
from rankopt.losses import LOSSES, get_bound, get_loss
from rankopt.losses.loss import says
from rankopt.losses.oracle_positional import orderable
from rankopt.losses.position_weights import parse_position_weights
from rankopt.losses.regret import RegretBound
from rankopt.losses.squared import SquaredError
from rankopt.measures.measure import Measure
from rankopt.measures.notation import MeasureMix
from rankopt.ratings.evaluation import from_which_on, measured
from rankopt.risk.risk import cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHIFTED = "shifted(0.25)"
"""The paper's decay of position weights."""


@dataclass(frozen=True)
class UserLoss:
    """regret: the bound of a measure's; factory: else a loss made of ratings and bounds; neither: a regression. ours:
    the loss is known to be never below 0."""

    regret: RegretBound | None = None
    factory: Callable[..., Any] | None = None
    ours: bool = True

    @classmethod
    def named(cls, spec: Any, bound: Any, position_weights: Any) -> UserLoss:
        """Of what is said by name or by value; OptionError and MeasureError for what does not go together."""
        kind, weights = get_bound(bound), parse_position_weights(position_weights)
        named = isinstance(spec, str) and spec in ("regression", *LOSSES)
        if named or (callable(spec) and not isinstance(spec, Measure)):
            if not (isinstance(bound, str) and bound == "convex"):
                raise OptionError(f"bound = {bound!r} is of a measure's regret, which loss = {spec!r} has not; omit it")
            if weights != parse_position_weights(SHIFTED):
                raise OptionError(
                    f"decay = {position_weights!r} weighs positions, which loss = {spec!r} has not; omit it"
                )
            return cls() if spec == "regression" else cls._made(spec)
        try:
            return cls(regret=RegretBound.named(spec, "positional", kind, weights))
        except ValueError as error:
            known = ", ".join(map(repr, ("regression", *(name for name in LOSSES if not _unfit(name)))))
            raise OptionError(
                f"loss = {spec!r} is neither one of {known} nor a measure with a bounded regret: {error}"
            ) from error

    @classmethod
    def _made(cls, spec: Any) -> UserLoss:
        if why := _unfit(spec):
            raise OptionError(f"loss = {spec!r} {why}")
        factory = get_loss(spec)
        made = getattr(factory, "func", factory)  # of a partial: one of ours with other costs is never below 0 either
        return cls(factory=factory, ours=any(made is get_loss(name) for name in LOSSES))

    @property
    def sees_levels(self) -> bool:
        """Whether a constant added to a user's scores changes the loss."""
        return self.regret is None and self.factory is None

    @property
    def convex(self) -> bool:
        """Whether it is, and need not be majorised."""
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
            cure = _cure(measure, distinguished) or "give more"
            raise DataError(f"these ratings have no order to learn because no user has two of different worth; {cure}")
        return some

    def check_parts(self, seen: EncodedRatings) -> None:
        """DataError for a part of a mix to which all ratings of every user are worth the same: it would not count."""
        mix = None if self.regret is None else self.regret.measure
        for part in mix.parts if isinstance(mix, MeasureMix) else ():
            if not _orderable(seen, part.measure).any():
                cure = _cure(part.measure, seen) or "leave it out"
                raise DataError(
                    f"{part.measure} of {mix} would not count because no user has two ratings that it distinguishes; "
                    f"{cure}"
                )

    def blocks(self, problem: FactorProblem, engine: Any) -> Any:
        """The two blocks of the problem."""
        if self.sees_levels:
            return Regression(problem, engine or Threads())
        rated = problem.rated
        weights = rated.weights[rated.bounds[:-1]] if rated.weights.size else np.ones(rated.n_users)
        solver = ExactArgmax(
            compiled=None if is_small(rated.bounds) else True
        )  # no shard of many ratings counts as few
        loss = partial(self._loss, solver=solver)
        return PlaneBlocks(problem, loss, weights, self.convex, self.ours, engine or Threads())

    def _loss(self, values: Floats, bounds: Ints, solver: ExactArgmax | None = None) -> Any:
        """Of the ratings of users that were `seen`."""
        if self.factory is not None:
            return self.factory(values, bounds)
        m = bounds.size - 1
        lists = Arrangement(
            np.zeros((values.size, 0)), np.arange(values.size), bounds, np.ones(m), values, tuple(range(m)), {}
        )
        return self.regret.loss(lists, solver or ExactArgmax())  # type: ignore[union-attr]


def _unfit(spec: Any) -> str:
    """Why a loss cannot be that of users' scores, and what can; "" where it can."""
    factory = get_loss(spec)
    if says(factory) != "plane":
        return "provides no cutting planes, which both blocks need; use another loss"
    if not getattr(factory, "exact", True):
        return "is known within bounds only, and so would be J; take another"
    if getattr(factory, "func", factory) is SquaredError:
        return "is not of orders, and levels want offsets of users; take 'regression'"
    return ""


def _orderable(rated: EncodedRatings, measure: Any) -> NDArray[np.bool_]:
    """(n,) whose ratings the measure tells apart; of some users at a time, since it takes some numbers a rating."""
    found, values = np.empty(rated.n_users, dtype=bool), rated.values
    for first, last in cut(rated.bounds):
        bounds = rated.bounds[first : last + 1]
        found[first:last] = orderable(values[bounds[0] : bounds[-1]], bounds - bounds[0], measure)
    return found


def _cure(measure: Any, rated: EncodedRatings) -> str:
    return from_which_on(measure, rated.bounds, rated.values, orderable)
