"""Where offsets are pulled to: items that more users know are better liked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.problem import Problem
from rankopt.collaborative.rated import Rated

__all__ = ["Penalties", "popular"]

Floats = NDArray[np.float64]


def popular(rated: Rated, popularity: float) -> Floats:
    """b⁰_j = mean + c log(1 + count_j), mean the constant that leaves the residuals of the ratings a mean of 0."""
    prior = popularity * np.log1p(np.diff(rated.item_bounds))
    if rated.values.size:
        weights = rated.weights if rated.weights.size else None
        prior = prior + np.average(rated.values - prior[rated.columns], weights=weights)
    return np.asarray(prior)


@dataclass(frozen=True)
class Penalties:
    """offsets: μ of item offsets, None where these stay at b⁰; user_offsets: μ of user offsets, None for none.
    by_counts: λ and μ count once a rating of the user or item, λ_u = λ n_u, in place of once."""

    popularity: float
    offsets: float | None
    user_offsets: float | None
    by_counts: bool = False

    def problem(self, rated: Rated) -> Problem:
        """The problem of these ratings at λ = 1. A user or item without ratings counts as with one."""
        n, m = rated.n_users, rated.n_items
        users, items = np.ones(n), np.ones(m)
        if self.by_counts:
            users, items = np.maximum(np.diff(rated.bounds), 1.0), np.maximum(np.diff(rated.item_bounds), 1.0)
        none = np.zeros(0)
        return Problem(
            rated=rated,
            prior=popular(rated, self.popularity if self.offsets is not None else 0.0),
            user_scale=users,
            item_scale=items,
            of_offsets=none if self.offsets is None else self.offsets * items,
            of_user_offsets=none if self.user_offsets is None else self.user_offsets * users,
        )
