"""A standing told in the caller's order of users, items and ratings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import Problem, Standing

__all__ = ["Learned", "from_caller", "to_caller"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Learned:
    """Factors, and the prior b⁰ (m,), in the order of the `Ratings`; slopes ψ (ratings,) and heights δ (n,)."""

    factors: Factors
    prior: Floats
    slopes: Floats
    heights: Floats


def to_caller(problem: Problem, now: Standing) -> Learned:
    """Users that the loss cannot see, and that `Rated` left out, have the factors 0."""
    rated, factors = problem.rated, now.factors

    def placed(values: Floats, places: NDArray[np.int64], size: int) -> Floats:
        found = np.zeros((size, *values.shape[1:]))
        found[places] = values
        return found

    n, m = rated.all_users, rated.n_items
    told = Factors(
        placed(factors.users, rated.users, n),
        placed(factors.items, rated.items, m),
        placed(factors.offsets, rated.items, m),
        placed(factors.user_offsets, rated.users, n),
    )
    slopes = np.zeros(rated.all_ratings)
    slopes[rated.given] = now.slopes
    return Learned(told, placed(problem.prior, rated.items, m), slopes, placed(now.heights, rated.users, n))


def from_caller(problem: Problem, factors: Factors) -> Factors:
    """Factors in the caller's order as training has them."""
    rated = problem.rated
    return Factors(
        factors.users[rated.users], factors.items[rated.items], factors.offsets[rated.items],
        factors.user_offsets[rated.users],
    )  # fmt: skip
