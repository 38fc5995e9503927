"""Planes of users held side by side: each user has a few, mixed by weights that sum to one."""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from rankopt.collaborative.normal_equations import READ_TABLE, TABLE

__all__ = ["CUBE", "Held", "Planes", "free_slot"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW = 12
"""Planes of a user from which on one without weight makes way for the next, before there are more."""

READ_BOOL_TABLE = nb.types.Array(nb.boolean, 2, "C", readonly=True)
CUBE = nb.types.Array(nb.float64, 3, "C")


@dataclass(frozen=True, eq=False)
class Planes:
    """Planes of n users without room for more: how many each user has (n,), their weights and heights (planes,), user
    after user, and their slopes, of each as many as the user has ratings."""

    counts: Ints
    weights: Floats
    heights: Floats
    slopes: Floats

    @classmethod
    def none(cls, users: int) -> Planes:
        return cls(np.zeros(users, dtype=np.int64), np.zeros(0), np.zeros(0), np.zeros(0))

    def check(self, bounds: Ints) -> None:
        """ValueError for what no mixture of planes of users with these ratings is."""
        counts, sizes = self.counts, np.diff(bounds)
        if counts.dtype != np.int64 or counts.shape != sizes.shape or not (counts >= (sizes > 0)).all():
            raise ValueError("users of planes are not those of the ratings")
        lengths = {"weights": counts.sum(), "heights": counts.sum(), "slopes": counts @ sizes}
        for name, length in lengths.items():
            array = getattr(self, name)
            if array.dtype != np.float64 or array.shape != (length,) or not np.isfinite(array).all():
                raise ValueError(f"{name} of planes have another shape, or are not finite")
        sums = np.bincount(np.repeat(np.arange(counts.size), counts), self.weights, counts.size)
        if (self.weights < 0.0).any() or not np.allclose(sums[counts > 0], 1.0, rtol=1e-6):
            raise ValueError("weights of planes are none")


@dataclass(frozen=True, eq=False)
class Held:
    """slopes (room, ratings) and heights (n, room) of the planes of n users, their weights (n, room), how many each
    user has (n,), and their Gram matrices (n, room, room) in whatever metric the block has."""

    slopes: Floats
    heights: Floats
    weights: Floats
    counts: Ints
    gram: Floats

    @classmethod
    def none(cls, users: int, ratings: int, room: int) -> Held:
        return cls(
            np.zeros((room, ratings)), np.zeros((users, room)), np.zeros((users, room)),
            np.zeros(users, dtype=np.int64), np.zeros((users, room, room)),
        )  # fmt: skip

    @classmethod
    def of(cls, planes: Planes, bounds: Ints, room: int) -> Held:
        """These planes, with room for so many or more; Gram matrices are not formed."""
        held = cls.none(planes.counts.size, int(bounds[-1]), max(room, int(planes.counts.max(initial=0))))
        held.counts[:] = planes.counts
        there = np.arange(held.slopes.shape[0]) < held.counts[:, None]
        held.weights[there], held.heights[there] = planes.weights, planes.heights
        _unpacked(bounds, held.counts, planes.slopes, held.slopes)
        return held

    def with_weight(self, bounds: Ints) -> Planes:
        """The planes that have weight, which sums to one again: moves of weight round."""
        there, totals = self.weights > 0.0, self.weights.sum(axis=1)
        counts = there.sum(axis=1)
        slopes = np.empty(counts @ np.diff(bounds))
        _packed(bounds, there, self.slopes, slopes)
        return Planes(counts, self.weights[there] / np.repeat(totals, counts), self.heights[there], slopes)

    def mixed(self, bounds: Ints) -> tuple[Floats, Floats]:
        """The mixtures as one plane a user: slopes (ratings,), heights (n,)."""
        found = np.empty(self.slopes.shape[1])
        _mixed(bounds, self.counts, self.weights, self.slopes, found)
        return found, self._heights()

    def at(self, bounds: Ints, scores: Floats) -> tuple[Floats, Floats]:
        """Of the mixtures: slopes times scores (ratings,), summed over each user, and heights, (n,) each."""
        found = np.empty(bounds.size - 1)
        _times(bounds, self.counts, self.weights, self.slopes, scores, found)
        return found, self._heights()

    def _heights(self) -> Floats:
        return np.asarray(np.einsum("uk,uk->u", self.weights, self.heights))


@compiled(nb.void(READ_INTS, READ_INTS, READ_TABLE, READ_TABLE, READ_FLOATS, FLOATS))
def _times(bounds: Ints, counts: Ints, weights: Floats, slopes: Floats, scores: Floats, found: Floats) -> None:
    for u in range(bounds.size - 1):
        product = 0.0
        for e in range(bounds[u], bounds[u + 1]):
            total = 0.0
            for k in range(counts[u]):
                total += weights[u, k] * slopes[k, e]
            product += total * scores[e]
        found[u] = product


@compiled(nb.void(READ_INTS, READ_INTS, READ_TABLE, READ_TABLE, FLOATS))
def _mixed(bounds: Ints, counts: Ints, weights: Floats, slopes: Floats, found: Floats) -> None:
    """found[e] = Σ_k weights[u, k] slopes[k, e] of each user's ratings, without a temporary a rating."""
    for u in range(bounds.size - 1):
        for e in range(bounds[u], bounds[u + 1]):
            total = 0.0
            for k in range(counts[u]):
                total += weights[u, k] * slopes[k, e]
            found[e] = total


@compiled(nb.void(READ_INTS, READ_BOOL_TABLE, READ_TABLE, FLOATS))
def _packed(bounds: Ints, there: NDArray[np.bool_], slopes: Floats, found: Floats) -> None:
    at = 0
    for u in range(bounds.size - 1):
        for k in range(there.shape[1]):
            if there[u, k]:
                for e in range(bounds[u], bounds[u + 1]):
                    found[at] = slopes[k, e]
                    at += 1


@compiled(nb.void(READ_INTS, READ_INTS, READ_FLOATS, TABLE))
def _unpacked(bounds: Ints, counts: Ints, packed: Floats, slopes: Floats) -> None:
    at = 0
    for u in range(bounds.size - 1):
        for k in range(counts[u]):
            for e in range(bounds[u], bounds[u + 1]):
                slopes[k, e] = packed[at]
                at += 1


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
