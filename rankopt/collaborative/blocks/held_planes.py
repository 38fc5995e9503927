"""Planes of users in their own block, side by side: each has a few, mixed by weights that sum to one."""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_INTS, compiled
from rankopt.collaborative.normal_equations import READ_TABLE, TABLE

__all__ = ["CUBE", "FEW", "UserBundles", "free_slot"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW = 12
"""Planes of a user from which on one without weight makes way for the next, before there are more."""

CUBE = nb.types.Array(nb.float64, 3, "C")


@dataclass(frozen=True, eq=False)
class UserBundles:
    """slopes ψ (room, ratings) and heights δ (n, room) of the planes of n users, their weights (n, room), how many each
    user has (n,); and as planes of U_u (n, d) for these M, b: their slopes Mᵀψ (n, room, d), values δ + ⟨ψ, b⟩ (n,
    room) and Gram matrices (n, room, room)."""

    slopes: Floats
    heights: Floats
    weights: Floats
    counts: Ints
    moved: Floats
    values: Floats
    gram: Floats

    @classmethod
    def none(cls, users: int, ratings: int, room: int, factors: int) -> UserBundles:
        return cls(
            np.zeros((room, ratings)), np.zeros((users, room)), np.zeros((users, room)),
            np.zeros(users, dtype=np.int64),
            np.zeros((users, room, factors)), np.zeros((users, room)), np.zeros((users, room, room)),
        )  # fmt: skip

    @property
    def room(self) -> int:
        """Planes that a user may hold."""
        return len(self.slopes)

    def full(self, users: NDArray[np.bool_]) -> bool:
        """Whether one of these users (n,) has no slot left, and none whose plane has no weight."""
        crowded = users & (self.counts == self.room)
        return bool((self.weights[crowded] > 0.0).all(axis=1).any())

    def roomier(self, room: int) -> UserBundles:
        """The same planes with room for more."""
        none, more = (0, 0), (0, room - self.room)
        return UserBundles(
            np.pad(self.slopes, (more, none)), np.pad(self.heights, (none, more)), np.pad(self.weights, (none, more)),
            self.counts, np.pad(self.moved, (none, more, none)), np.pad(self.values, (none, more)),
            np.pad(self.gram, (none, more, more)),
        )  # fmt: skip

    def mixed(self, bounds: Ints) -> tuple[Floats, Floats]:
        """The mixtures as one plane a user: slopes (ratings,), heights (n,)."""
        found = np.empty(self.slopes.shape[1])
        _mixed(bounds, self.counts, self.weights, self.slopes, found)
        return found, self._heights()

    def _heights(self) -> Floats:
        return np.asarray(np.einsum("uk,uk->u", self.weights, self.heights))


@compiled(nb.void(READ_INTS, READ_INTS, READ_TABLE, READ_TABLE, FLOATS))
def _mixed(bounds: Ints, counts: Ints, weights: Floats, slopes: Floats, found: Floats) -> None:
    """found[e] = Σ_k weights[u, k] slopes[k, e] of each user's ratings, without a temporary a rating."""
    for u in range(bounds.size - 1):
        for e in range(bounds[u], bounds[u + 1]):
            total = 0.0
            for k in range(counts[u]):
                total += weights[u, k] * slopes[k, e]
            found[e] = total


@compiled(nb.int64(nb.int64, nb.int64, nb.int64, INTS, TABLE, TABLE, TABLE, CUBE))
def free_slot(
    u: int, low: int, high: int, counts: Ints, weights: Floats, slopes: Floats, heights: Floats, gram: Floats
) -> int:
    """A slot of user u for one more plane: a new one for the first `FEW`; then that of a plane without weight, else a
    new one; and where there is no room, that of the lightest, which joins the next lightest in one plane."""
    room, count = slopes.shape[0], int(counts[u])
    if count < min(room, FEW):
        counts[u] = count + 1
        return count
    first, second = -1, -1
    for k in range(count):
        if first < 0 or weights[u, k] < weights[u, first]:
            first, second = k, first
        elif second < 0 or weights[u, k] < weights[u, second]:
            second = k
    if weights[u, first] == 0.0:
        return first
    if count < room:
        counts[u] = count + 1
        return count
    total = weights[u, first] + weights[u, second]
    p, q = weights[u, first] / total, weights[u, second] / total
    for e in range(low, high):
        slopes[second, e] = p * slopes[first, e] + q * slopes[second, e]
    heights[u, second] = p * heights[u, first] + q * heights[u, second]
    own = p * p * gram[u, first, first] + 2.0 * p * q * gram[u, first, second] + q * q * gram[u, second, second]
    for k in range(room):
        gram[u, second, k] = p * gram[u, first, k] + q * gram[u, second, k]
        gram[u, k, second] = gram[u, second, k]
    gram[u, second, second] = own
    weights[u, second] = total
    weights[u, first] = 0.0
    return first
