"""What a `CofiRanker` settles before it trains: tolerance, penalties, the prior of items, the strength."""

from __future__ import annotations

import math
import warnings
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankopt.collaborative.alternation import Alternation
from rankopt.collaborative.blocks.user_loss import UserLoss
from rankopt.collaborative.long_lists import long_lists
from rankopt.collaborative.prior import RATINGS, SHRUNK, Penalties
from rankopt.collaborative.rated import EncodedRatings
from rankopt.collaborative.strength import USUAL, RegularizationChoice, chosen_strength
from rankopt.evaluation.rated_lists import check_judges

__all__ = ["CofiHyperparameterMixin"]

Floats = NDArray[np.float64]

TOL = 1e-4
"""tol=None. Factors explain a small part of J, a hundredth, say, and where they are small both blocks are nearly best:
at 1e-3 some runs ended where they began."""

TRIAL_TOL, TRIAL_ROUNDS = 2e-3, 10
"""How far a model of strength="auto" is trained: its measure settles before its gaps do."""


class CofiHyperparameterMixin:
    """What follows from the options of a `CofiRanker`, and from what its `chosen_` says."""

    loss: Any
    bound: Any
    decay: Any
    measure: Any
    strength: Any
    lam: Any
    offsets: Any
    offset_strength: Any
    prior: Any
    popularity: Any
    by_counts: Any
    tol: Any
    max_iter: Any
    time_limit: Any

    @property
    def _tol(self) -> float:
        """The gap of both blocks that is asked for."""
        return TOL if self.tol is None else float(self.tol)

    def _penalties(self, loss: UserLoss, prior: str | None = None) -> Penalties:
        """With this prior, or that of the fitted ranker."""
        if prior is None:
            prior = self._prior_of(loss, getattr(self, "chosen_", None))
        own = None if self.offset_strength is None else float(self.offset_strength)
        of_items = own or (SHRUNK if prior == "means" else RATINGS)
        return Penalties(
            popularity=float(self.popularity),
            offsets=of_items if self.offsets else None,
            user_offsets=self._own_offsets() if loss.sees_levels else None,
            by_counts=bool(self.by_counts),
            means=prior == "means",
        )

    def _own_offsets(self) -> float:
        """μ of the offsets of users."""
        return RATINGS if self.offset_strength is None else float(self.offset_strength)

    def _prior_of(self, loss: UserLoss, chosen: RegularizationChoice | None) -> str:
        return self._priors(loss)[0] if chosen is None else chosen.prior

    def _pulled_to_means(self) -> bool:
        """Whether the fitted ranker pulls items to their own means."""
        loss = UserLoss.named(self.loss, self.bound, self.decay)
        return bool(self.offsets) and self._penalties(loss).means

    def _priors(self, loss: UserLoss) -> tuple[str, ...]:
        """What is compared, and without a comparison the first: losses that see levels find an item's own mean
        themselves, and a bound that is not convex would keep to an order that is far off."""
        if self.prior != "auto":
            return (self.prior,)
        if loss.sees_levels or not self.offsets:
            return ("mean",)
        return ("mean", "means") if loss.convex else ("means",)

    def _lam(self, chosen: RegularizationChoice | None) -> float:
        """λ, or as a part of λ_max."""
        if self.lam is not None:
            return float(self.lam)
        return float(self.strength) if chosen is None else chosen.strength

    def _chosen(self, rated: EncodedRatings, loss: UserLoss, engine: Any, width: int) -> RegularizationChoice | None:
        """The strength, and the prior of items with it, if that is to be chosen, in half the time at most."""
        if self.lam is not None or not isinstance(self.strength, str):
            return None
        check_judges(self.measure, rated.bounds, rated.values[:])

        def measure(some: EncodedRatings, shares: Floats) -> Floats:
            return long_lists(self.measure, some.bounds, some.values[:], shares)

        def build(prior: str, some: EncodedRatings) -> Any:
            penalties = self._penalties(loss, prior)
            return penalties.blocks(loss, loss.seen(some), engine)[0]  # a part of a user may tell nothing

        settings = Alternation(max(float(self.tol or 0.0), TRIAL_TOL), min(int(self.max_iter), TRIAL_ROUNDS))
        ends = math.inf if self.time_limit is None else perf_counter() + 0.5 * self.time_limit
        builds = {prior: partial(build, prior) for prior in self._priors(loss)}
        usual = USUAL["levels" if loss.sees_levels else "orders"]
        found = chosen_strength(rated, builds, width, measure, settings, ends, usual)
        if found.cut:
            tried = ", ".join(f"{one:g}" for one in found.tried)
            warnings.warn(
                f"half of time_limit was over when strength='auto' had tried {tried}; raise it, or give a strength",
                ConvergenceWarning, stacklevel=5,
            )  # fmt: skip
        return found
