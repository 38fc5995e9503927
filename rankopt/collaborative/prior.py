"""Where offsets are pulled to: items that more users know are better liked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.problem import FactorProblem
from rankopt.collaborative.rated import EncodedRatings

__all__ = ["PRIORS", "RATINGS", "SHRUNK", "Penalties", "of_unrated", "popular"]

Floats = NDArray[np.float64]


PRIORS = ("mean", "means")
"""What items may be pulled to: the mean of all ratings, or also their own."""

RATINGS = 10.0
"""How many ratings the first counts for; the second, made of the same ratings as the model, counts for `SHRUNK`."""

SHRUNK = 30.0
"""Ratings of the mean of all that are added to those of an item, where it is pulled to its own mean."""


def popular(rated: EncodedRatings, popularity: float, means: bool = False) -> Floats:
    """b⁰_j = mean + c log(1 + count_j), mean the constant that leaves the residuals of the ratings a mean of 0; with
    means, plus the item's mean residual times count_j/(count_j + 30): what levels of ratings tell and orders do not."""
    counts = np.diff(rated.item_bounds)
    prior = popularity * np.log1p(counts)
    if not rated.values.size:
        return np.asarray(prior)
    weights = rated.weights if rated.weights.size else None
    left = prior[rated.columns]
    np.subtract(rated.values[:], left, out=left)
    mean = np.average(left, weights=weights)
    prior = prior + mean
    if means:
        left -= mean
        if weights is not None:
            left *= weights / weights.mean()
        prior = prior + rated.per_item(left) / (counts + SHRUNK)
    return np.asarray(prior)


def of_unrated(rated: EncodedRatings, popularity: float) -> float:
    """b⁰ of an item without ratings."""
    first = rated.item_bounds[:2]
    return float(popular(rated, popularity)[0] - popularity * np.log1p(first[1] - first[0]))


@dataclass(frozen=True)
class Penalties:
    """offsets: μ of item offsets, None where these stay at b⁰; user_offsets: μ of user offsets, None for none.
    by_counts: λ and μ count once a rating of the user or item, λ_u = λ n_u, in place of once. means: items are pulled
    to their own means."""

    popularity: float
    offsets: float | None
    user_offsets: float | None
    by_counts: bool = False
    means: bool = False

    def blocks(self, loss: Any, rated: EncodedRatings, engine: Any) -> tuple[Any, float]:
        """The blocks of a `UserLoss` of these ratings at λ = 1, and how much a rating of that loss bends it: the pull
        on item offsets is μ times that, so that the prior counts for μ ratings under every loss."""
        found = loss.blocks(self.problem(rated), engine)
        if self.offsets is None:
            return found, 1.0
        bend = found.bend()
        return (found if bend == 1.0 else replace(found, problem=found.problem.with_pull(bend))), bend

    def problem(self, rated: EncodedRatings) -> FactorProblem:
        """The problem of these ratings at λ = 1. A user or item without ratings counts as with one."""
        n, m = rated.n_users, rated.n_items
        users, items = np.ones(n), np.ones(m)
        if self.by_counts:
            users, items = np.maximum(np.diff(rated.bounds), 1.0), np.maximum(np.diff(rated.item_bounds), 1.0)
        none = np.zeros(0)
        return FactorProblem(
            rated=rated,
            prior=popular(
                rated, self.popularity if self.offsets is not None else 0.0, self.means and self.offsets is not None
            ),
            user_scale=users,
            item_scale=items,
            of_offsets=none if self.offsets is None else self.offsets * items,
            of_user_offsets=none if self.user_offsets is None else self.user_offsets * users,
        )
