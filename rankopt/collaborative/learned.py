"""A standing told in the caller's order of users, items and ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import Problem, Standing

__all__ = ["Learned", "factors_to_caller", "to_caller"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Learned:
    """Factors, and the prior b⁰ (m,), in the order of the `Ratings`; duals: the slopes ψ (ratings,) and heights δ (n,)
    that bound the users' block, and those that bound the items'."""

    factors: Factors
    prior: Floats
    duals: tuple[tuple[Floats, Floats], tuple[Floats, Floats]]


def to_caller(problem: Problem, now: Standing) -> Learned:
    """Of a standing with its dual state."""
    rated = problem.rated

    def dual(slopes: Floats, heights: Floats) -> tuple[Floats, Floats]:
        return _placed(slopes, rated.given, rated.all_ratings), _placed(heights, rated.users, rated.all_users)

    users = dual(now.slopes, now.heights)
    items = users if now.of_items is None else dual(*now.of_items)
    prior = _placed(problem.prior, rated.items, rated.n_items)
    return Learned(factors_to_caller(problem, now.factors), prior, (users, items))


def factors_to_caller(problem: Problem, factors: Factors) -> Factors:
    """Users that the loss cannot see, and that `Rated` left out, have the factors 0."""
    rated = problem.rated
    return Factors(
        _placed(factors.users, rated.users, rated.all_users),
        _placed(factors.items, rated.items, rated.n_items),
        _placed(factors.offsets, rated.items, rated.n_items),
        _placed(factors.user_offsets, rated.users, rated.all_users),
    )


def _placed(values: Floats, places: NDArray[Any], size: int) -> Floats:
    found = np.zeros((size, *values.shape[1:]))
    found[places] = values
    return found
