"""A standing told in the caller's order of users, items and ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import Problem, Standing

__all__ = ["Learned", "from_caller", "to_caller"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Learned:
    """Factors, and the prior b⁰ (m,), in the order of the `Ratings`; duals: the slopes ψ (ratings,) and heights δ (n,)
    that bound the users' block, and those that bound the items'."""

    factors: Factors
    prior: Floats
    duals: tuple[tuple[Floats, Floats], tuple[Floats, Floats]]


def to_caller(problem: Problem, now: Standing) -> Learned:
    """Users that the loss cannot see, and that `Rated` left out, have the factors 0."""
    rated, factors = problem.rated, now.factors

    def placed(values: Floats, places: NDArray[Any], size: int) -> Floats:
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

    def dual(slopes: Floats, heights: Floats) -> tuple[Floats, Floats]:
        return placed(slopes, rated.given, rated.all_ratings), placed(heights, rated.users, n)

    users = dual(now.slopes, now.heights)
    items = users if now.of_items is None else dual(*now.of_items)
    return Learned(told, placed(problem.prior, rated.items, m), (users, items))


def from_caller(problem: Problem, factors: Factors) -> Factors:
    """Factors in the caller's order as training has them."""
    rated = problem.rated
    return Factors(
        factors.users[rated.users], factors.items[rated.items], factors.offsets[rated.items],
        factors.user_offsets[rated.users],
    )  # fmt: skip
