"""A standing told in the caller's order of users, items and ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import FactorProblem, ModelState

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Factors, and the prior b⁰ (m,), in the order of the `Ratings`; duals: the slopes ψ (ratings,) and heights δ (n,)
    that bound the users' block, and those that bound the items'."""

    factors: Factors
    prior: Floats
    duals: tuple[tuple[Floats, Floats], tuple[Floats, Floats]]


def to_caller(problem: FactorProblem, now: ModelState, unknown: float) -> FittedModel:
    """Of a standing with its dual state. unknown: b⁰ of items without ratings, which `Rated` may have left out."""
    rated = problem.rated

    def dual(slopes: Floats, heights: Floats) -> tuple[Floats, Floats]:
        return _placed(slopes, rated.given, rated.all_ratings), _placed(heights, rated.users, rated.all_users)

    users = dual(now.slopes, now.heights)
    items = users if now.of_items is None else dual(*now.of_items)
    prior = _placed(problem.prior, rated.items, rated.all_items, unknown)
    return FittedModel(factors_to_caller(problem, now.factors, unknown), prior, (users, items))


def factors_to_caller(problem: FactorProblem, factors: Factors, unknown: float) -> Factors:
    """Users and items that `Rated` left out, for the loss cannot see them, have the factors 0, items b⁰."""
    rated = problem.rated
    return Factors(
        _placed(factors.users, rated.users, rated.all_users),
        _placed(factors.items, rated.items, rated.all_items),
        _placed(factors.offsets, rated.items, rated.all_items, unknown),
        _placed(factors.user_offsets, rated.users, rated.all_users),
    )


def _placed(values: Floats, places: NDArray[Any], size: int, others: float = 0.0) -> Floats:
    found = np.full((size, *values.shape[1:]), others)
    found[places] = values
    return found
