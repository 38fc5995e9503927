"""New users under items that stay as they are: one small convex problem a user, solved to a proven gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.blocks.plane_blocks import CHUNK, PlaneBlocks
from rankopt.collaborative.blocks.user_loss import UserLoss
from rankopt.collaborative.blocks.user_masters import solved_users
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.normal_equations import solve_ridges
from rankopt.collaborative.prior import Penalties
from rankopt.collaborative.problem import Problem, block_bounds
from rankopt.collaborative.rated import Rated
from rankopt.collaborative.row_sums import squared_loss
from rankopt.data.ratings.table import Ratings
from rankopt.errors import DataError
from rankopt.risk.sharding import cut

__all__ = ["Folded", "folded"]

Floats = NDArray[np.float64]

MAJORANTS = 30
"""Convex majorants of a bound that is not convex, each touching it where the last one ended, at most."""


@dataclass(frozen=True, eq=False)
class Folded:
    """users (n, d), user_offsets (n,). value: Σ_u l_u + (λ/2)‖U‖² (+ (μ/2)‖b_u‖²); bound: what it cannot fall below for
    these items, of the majorant where kind says so."""

    users: Floats
    user_offsets: Floats
    value: float
    bound: float
    kind: str

    @property
    def relative_gap(self) -> float:
        """The gap as a part of the value."""
        return max(self.value - self.bound, 0.0) / abs(self.value) if self.value else 0.0


def folded(
    loss: UserLoss, penalties: Penalties, lam: float, model: Factors, ratings: Ratings, weights: Floats | None = None,
    tol: float = 1e-3,
) -> Folded:  # fmt: skip
    """The best users for the items of the model. ratings: over its items, in their order, with weights (n_ratings,); a
    user whose ratings tell the loss nothing has the factors 0."""
    n, d = ratings.n_users, model.dimensions
    users, user_offsets = np.zeros((n, d)), np.zeros(n)
    rated = Rated.of(ratings, weights)
    try:
        rated = loss.seen(rated)
    except DataError:  # nothing to learn from
        return Folded(users, user_offsets, 0.0, 0.0, "blocks")
    problem = penalties.problem(rated).at_strength(lam, lam)
    items = Factors(users[rated.users], model.items[rated.items], model.offsets[rated.items], user_offsets[rated.users])
    blocks = loss.blocks(problem, None)
    if isinstance(blocks, PlaneBlocks):
        found, value, bound = _by_planes(blocks, items, tol)
    else:
        found, value, bound = _by_ridges(problem, items)
    users[rated.users], user_offsets[rated.users] = found.users, found.user_offsets
    return Folded(users, user_offsets, value, bound, "blocks" if blocks.convex else "blocks of the majorant")


def _by_ridges(problem: Problem, items: Factors) -> tuple[Factors, float, float]:
    rated = problem.rated
    left = rated.values - items.offsets[rated.columns]
    users, user_offsets = solve_ridges(
        rated.bounds, rated.columns, left, rated.weights, items.items, problem.of_users, problem.of_user_offsets
    )
    found = Factors(users, items.items, items.offsets, user_offsets)
    slopes = found.scores(rated.bounds, rated.columns)
    lost, heights = squared_loss(rated.bounds, rated.values, rated.weights, slopes)
    return found, lost + problem.users_penalty(found), _bound(problem, found, slopes, heights)


def _by_planes(blocks: PlaneBlocks, items: Factors, tol: float) -> tuple[Factors, float, float]:
    rated, problem = blocks.problem.rated, blocks.problem
    users = items.users.copy()
    slopes, heights, value = np.empty(rated.values.size), np.empty(rated.n_users), 0.0
    for first, last in cut(rated.bounds, CHUNK):
        bounds = rated.bounds[first : last + 1]
        rows, own = slice(int(bounds[0]), int(bounds[-1])), slice(first, last)
        loss, weights = blocks.loss(rated.values[rows], bounds - bounds[0]), blocks.weights[own]
        spread = np.repeat(weights, np.diff(bounds))
        before = np.inf
        for _ in range(1 if loss.convex else MAJORANTS):
            here = Factors(users[own], items.items, items.offsets, items.user_offsets[own])
            scores = here.scores(bounds - bounds[0], rated.columns[rows])
            touching = loss if loss.convex else loss.majorant(scores)
            at = touching.at(scores)
            now = float((weights * loss.at(scores).value).sum()) + _size(problem, users, own)
            if before - now <= tol * abs(now):
                break
            before = now
            tolerance = np.full(last - first, 0.5 * tol * abs(now) / (last - first))
            users[own], slopes[rows], heights[own], _ = solved_users(
                touching, weights, bounds - bounds[0], rated.columns[rows], items.items, items.offsets,
                problem.of_users[own], spread * (at.placed - at.reference), weights * at.height, users[own], tolerance,
            )  # fmt: skip
        here = Factors(users[own], items.items, items.offsets, items.user_offsets[own])
        scores = here.scores(bounds - bounds[0], rated.columns[rows])
        value += float((weights * touching.at(scores).value).sum()) + _size(problem, users, own)
    found = Factors(users, items.items, items.offsets, items.user_offsets)
    return found, value, _bound(problem, found, slopes, heights)


def _size(problem: Problem, users: Floats, own: slice) -> float:
    return 0.5 * float(problem.of_users[own] @ np.einsum("ij,ij->i", users[own], users[own]))


def _bound(problem: Problem, found: Factors, slopes: Floats, heights: Floats) -> float:
    """The bound of the users' block, without what the items cost."""
    return block_bounds(problem, found, slopes, heights)[0] - problem.items_penalty(found)
