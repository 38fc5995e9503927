"""The items' block by planes: M and b for fixed U, user after user.

minimise Σ_u l_u(b + M U_u) + Σ_j (λ_j/2)‖M_j‖² + Σ_j (μ_j/2)(b_j - b⁰_j)². For a plane ψ_u of every user the best items
are M_j = -Σ_u ψ_uj U_u/λ_j, b_j = b⁰_j - Σ_u ψ_uj/μ_j. Each user in turn takes the best mixture of its planes with
those of all others fixed, and sends the change: (ψ_uj - ψ⁻_uj) U_u and ψ_uj - ψ⁻_uj, no rating [paper 5, section 7].

A plane is δ + ⟨ψ, f⟩, a height and a slope a rating. Planes of a shard lie user after user and plane after plane; a
user has those with positive weight, and few more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba as nb
import numpy as np

from formulations.active_set.working_set import inner
from formulations.arrays import Floats, Ints, Shorts
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from rankopt.collaborative.linear_algebra import READ_TABLE, TABLE
from rankopt.collaborative.user_block import mix

FEW = 6
"""Number of planes of a user from which a plane without weight is replaced by the next one; fewer than in the users'
block, since they are stored from pass to pass and from round to round."""

MAX_PLANES = 512
"""Planes of a user from which on the two lightest are joined in one."""


@dataclass(frozen=True, eq=False)
class UserPlanes:
    """bounds (n + 1,) of the ratings of n users; counts (n,) of planes, weights, which sum to one, and heights
    (planes,) user after user; slopes plane after plane, of each as many as the user has ratings. gram: of each user a
    matrix of its planes in the metric of the block, row after row. Weights and gram are updated in-place."""

    bounds: Ints
    counts: Ints
    weights: Floats
    heights: Floats
    slopes: Floats
    gram: Floats

    @classmethod
    def first(cls, bounds: Ints, slopes: Floats, heights: Floats) -> UserPlanes:
        """One plane of each user with ratings: slopes (ratings,), heights (n,)."""
        counts = (np.diff(bounds) > 0).astype(np.int64)
        planes = heights[counts > 0]
        return cls(bounds, counts, np.ones(planes.size), planes, slopes, np.zeros(planes.size))

    def with_plane(self, slopes: Floats, heights: Floats, most: int = MAX_PLANES) -> tuple[UserPlanes, Ints]:
        """With one more plane of each user, slopes (ratings,) and heights (n,), without weight, and its index (n,)
        among those of the user: the next of the first `FEW`, else that of a plane without weight, else the next; of
        `most` or more, all with weight, the two lightest are joined; gram keeps the entries of the remaining planes."""
        most = max(most, FEW)
        if _is_crowded(self.counts, self.weights, most):
            joined = replace(
                self, weights=self.weights.copy(), heights=self.heights.copy(), slopes=self.slopes.copy(),
                gram=self.gram.copy(),
            )  # fmt: skip
            _join_lightest(self.bounds, self.counts, most, joined.slopes, joined.weights, joined.heights, joined.gram)
            return joined.with_plane(slopes, heights, most)
        place, counts = np.zeros(self.counts.size, dtype=np.int64), self.counts.copy()
        _place_fresh(self.bounds, self.counts, self.weights, place, counts)
        planes, grown = int(counts.sum()), np.empty(int(counts @ np.diff(self.bounds)))
        weights, higher, gram = np.zeros(planes), np.empty(planes), np.zeros(int(counts @ counts))
        _insert_slopes(self.bounds, self.counts, counts, place, self.slopes, slopes, grown)
        _insert_numbers(
            self.counts, counts, place, self.weights, self.heights, self.gram, heights, weights, higher, gram
        )
        return UserPlanes(self.bounds, counts, weights, higher, grown, gram), place

    def with_weight(self) -> UserPlanes:
        """The planes that have weight, which sums to one again, since moves of weight round; no gram."""
        there = self.weights > 0.0
        owner = np.repeat(np.arange(self.counts.size), self.counts)
        totals = np.bincount(owner, self.weights, self.counts.size)
        return UserPlanes(
            self.bounds, np.bincount(owner[there], minlength=self.counts.size),
            self.weights[there] / totals[owner[there]], self.heights[there],
            self.slopes[np.repeat(there, np.diff(self.bounds)[owner])], np.zeros(0),
        )  # fmt: skip

    def writable(self) -> UserPlanes:
        """A copy with its own weights and memory for gram."""
        return replace(self, weights=self.weights.copy(), gram=np.zeros(int(self.counts @ self.counts)))

    def mixed(self) -> tuple[Floats, Floats]:
        """The mixtures as one plane a user: slopes (ratings,), heights (n,)."""
        found, heights = np.empty(self.bounds[-1]), np.empty(self.counts.size)
        _mix_planes(self.bounds, self.slopes, self.counts, self.weights, self.heights, found, heights)
        return found, heights

    def check(self, bounds: Ints) -> None:
        """ValueError for what is not planes `with_weight` of users with these ratings."""
        sizes, counts = np.diff(bounds), self.counts
        if not np.array_equal(self.bounds, bounds):
            raise ValueError("planes are of other ratings")
        users = counts.dtype == np.int64 and counts.shape == sizes.shape and counts.min(initial=0) >= 0
        if not users or not ((counts > 0) == (sizes > 0)).all():
            raise ValueError("users of planes are not those of the ratings")
        planes = int(counts.sum())
        for name, size in (("weights", planes), ("heights", planes), ("slopes", int(counts @ sizes)), ("gram", 0)):
            array = getattr(self, name)
            if array.dtype != np.float64 or array.shape != (size,) or not np.isfinite(array).all():
                raise ValueError(f"{name} of planes have another shape, or are not finite")
        sums = np.bincount(np.repeat(np.arange(counts.size), counts), self.weights, counts.size)
        if (self.weights < 0.0).any() or not np.allclose(sums[counts > 0], 1.0, rtol=1e-6):
            raise ValueError("weights of planes are none")


@compiled(nb.boolean(READ_INTS, READ_FLOATS, nb.int64))
def _is_crowded(counts: Ints, weights: Floats, most: int) -> bool:
    """Whether a user has so many planes, or more, that all have weight."""
    first = 0
    for u in range(counts.size):
        if counts[u] >= most:
            full = True
            for k in range(counts[u]):
                full &= weights[first + k] > 0.0
            if full:
                return True
        first += counts[u]
    return False


@compiled(nb.void(READ_INTS, READ_INTS, nb.int64, FLOATS, FLOATS, FLOATS, FLOATS))
def _join_lightest(
    bounds: Ints, counts: Ints, most: int, slopes: Floats, weights: Floats, heights: Floats, gram: Floats
) -> None:
    """The same mixtures, the two lightest planes of each user with so many joined, and the other without weight."""
    first, at, table = 0, 0, 0
    for u in range(counts.size):
        own, size = counts[u], bounds[u + 1] - bounds[u]
        light, other = -1, -1
        for k in range(own):
            if light < 0 or weights[first + k] < weights[first + light]:
                light, other = k, light
            elif other < 0 or weights[first + k] < weights[first + other]:
                other = k
        if own >= most and weights[first + light] > 0.0:
            total = weights[first + light] + weights[first + other]
            p, q = weights[first + light] / total, weights[first + other] / total
            for e in range(size):
                to = at + other * size + e
                slopes[to] = p * slopes[at + light * size + e] + q * slopes[to]
            heights[first + other] = p * heights[first + light] + q * heights[first + other]
            square = gram[table : table + own * own].reshape((own, own))
            alone = p * p * square[light, light] + 2.0 * p * q * square[light, other] + q * q * square[other, other]
            for k in range(own):
                square[other, k] = p * square[light, k] + q * square[other, k]
                square[k, other] = square[other, k]
            square[other, other] = alone
            weights[first + other], weights[first + light] = total, 0.0
        first, at, table = first + own, at + own * size, table + own * own


@compiled(nb.void(READ_INTS, READ_INTS, READ_FLOATS, INTS, INTS))
def _place_fresh(bounds: Ints, counts: Ints, weights: Floats, place: Ints, grown: Ints) -> None:
    """The index of each user's next plane, and the resulting number of planes."""
    first = 0
    for u in range(counts.size):
        own = counts[u]
        place[u] = own
        if own >= FEW:
            for k in range(own):
                if weights[first + k] == 0.0:
                    place[u] = k
                    break
        if bounds[u + 1] > bounds[u]:
            grown[u] = max(own, place[u] + 1)
        first += own


@compiled(nb.void(READ_INTS, READ_INTS, READ_INTS, READ_INTS, READ_FLOATS, READ_FLOATS, FLOATS))
def _insert_slopes(
    bounds: Ints, counts: Ints, grown: Ints, place: Ints, held: Floats, fresh: Floats, found: Floats
) -> None:
    """Slopes of all planes with the new ones inserted."""
    old, new = 0, 0
    for u in range(counts.size):
        low, size = bounds[u], bounds[u + 1] - bounds[u]
        for e in range(counts[u] * size):
            found[new + e] = held[old + e]
        for e in range(size):
            found[new + place[u] * size + e] = fresh[low + e]
        old += counts[u] * size
        new += grown[u] * size


@compiled(
    nb.void(READ_INTS, READ_INTS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, FLOATS, FLOATS, FLOATS)
)
def _insert_numbers(
    counts: Ints, grown: Ints, place: Ints, weights: Floats, heights: Floats, gram: Floats, fresh: Floats,
    more_weights: Floats, more_heights: Floats, more_gram: Floats,
) -> None:  # fmt: skip
    """Weights, heights and gram likewise; the fresh planes have the weight 0, and no entries yet."""
    old, new, at, to = 0, 0, 0, 0
    for u in range(counts.size):
        own, more = counts[u], grown[u]
        for k in range(own):
            more_weights[new + k], more_heights[new + k] = weights[old + k], heights[old + k]
            for other in range(own):
                more_gram[to + k * more + other] = gram[at + k * own + other]
        if more:
            more_heights[new + place[u]] = fresh[u]
        old, new, at, to = old + own, new + more, at + own * own, to + more * more


@compiled(nb.void(READ_INTS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_FLOATS, FLOATS, FLOATS))
def _mix_planes(
    bounds: Ints, slopes: Floats, counts: Ints, weights: Floats, heights: Floats, found: Floats, height: Floats
) -> None:
    first, at = 0, 0
    for u in range(counts.size):
        low, size = bounds[u], bounds[u + 1] - bounds[u]
        for e in range(size):
            total = 0.0
            for k in range(counts[u]):
                total += weights[first + k] * slopes[at + k * size + e]
            found[low + e] = total
        height[u] = 0.0
        for k in range(counts[u]):
            height[u] += weights[first + k] * heights[first + k]
        first += counts[u]
        at += counts[u] * size


def ascend_users(
    columns: Shorts, users: Floats, of_items: Floats, of_offsets: Floats, planes: UserPlanes, place: Ints | None,
    tolerance: float, items: Floats, offsets: Floats,
) -> None:  # fmt: skip
    """One pass over the users of a shard; items and offsets follow. place: the index of each new plane, if any."""
    fresh = np.zeros(0, dtype=np.int64) if place is None else place
    _passed(
        planes.bounds, columns, users, of_items, of_offsets, planes.slopes, planes.counts, planes.heights, fresh,
        tolerance, planes.weights, planes.gram, items, offsets,
    )  # fmt: skip


@compiled(nb.void(READ_INTS, READ_SHORTS, READ_TABLE, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, FLOATS))
def form_gram(
    bounds: Ints, columns: Shorts, users: Floats, of_items: Floats, of_offsets: Floats, slopes: Floats, counts: Ints,
    gram: Floats,
) -> None:  # fmt: skip
    """The Gram matrices of planes that are new, or were held for other users' factors."""
    at, table = 0, 0
    for u in range(bounds.size - 1):
        low, size, count = bounds[u], bounds[u + 1] - bounds[u], counts[u]
        metric, own = np.empty(size), slopes[at : at + count * size].reshape((count, size))
        _measured(low, columns, users[u], of_items, of_offsets, metric)
        for k in range(count):
            _related(k, k + 1, own, metric, gram[table : table + count * count].reshape((count, count)))
        at, table = at + count * size, table + count * count


@compiled(nb.void(nb.int64, READ_SHORTS, READ_FLOATS, READ_FLOATS, READ_FLOATS, FLOATS))
def _measured(low: int, columns: Shorts, user: Floats, of_items: Floats, of_offsets: Floats, metric: Floats) -> None:
    """metric[e]: how much the score of a user's e-th rating falls as its slope rises by one."""
    square = inner(user, user)
    for e in range(metric.size):
        j = columns[low + e]
        metric[e] = square / of_items[j] + (1.0 / of_offsets[j] if of_offsets.size else 0.0)


@compiled(nb.void(nb.int64, nb.int64, READ_TABLE, READ_FLOATS, TABLE))
def _related(k: int, count: int, slopes: Floats, metric: Floats, gram: Floats) -> None:
    """The entries of plane k of a user with his first `count` ones."""
    for other in range(count):
        total = 0.0
        for e in range(metric.size):
            total += slopes[k, e] * slopes[other, e] * metric[e]
        gram[k, other] = total
        gram[other, k] = total


@compiled(
    nb.void(
        READ_INTS, READ_SHORTS, READ_TABLE, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, READ_INTS,
        nb.float64, FLOATS, FLOATS, TABLE, FLOATS,
    )
)  # fmt: skip
def _passed(
    bounds: Ints, columns: Shorts, users: Floats, of_items: Floats, of_offsets: Floats, all_slopes: Floats,
    counts: Ints, heights: Floats, place: Ints, tolerance: float, weights: Floats, gram: Floats, items: Floats,
    offsets: Floats,
) -> None:  # fmt: skip
    d, longest, most = users.shape[1], 1, 1
    for u in range(bounds.size - 1):
        longest, most = max(longest, bounds[u + 1] - bounds[u]), max(most, counts[u])
    rise, before, value = np.empty(most), np.empty(most), np.empty(most)
    scores, all_metric = np.empty(longest), np.empty(longest)
    first, at, table = 0, 0, 0
    for u in range(bounds.size - 1):
        low, high, count = bounds[u], bounds[u + 1], counts[u]
        size = high - low
        if size == 0:
            continue
        slopes, weight = all_slopes[at : at + count * size].reshape((count, size)), weights[first : first + count]
        own = gram[table : table + count * count].reshape((count, count))
        for e in range(low, high):
            scores[e - low] = offsets[columns[e]] + inner(users[u], items[columns[e]])
        if place.size:
            metric = all_metric[:size]
            _measured(low, columns, users[u], of_items, of_offsets, metric)
            _related(place[u], count, slopes, metric, own)
        for k in range(count):  # at the items as they are, which hold this user's own part
            total = heights[first + k]
            for e in range(size):
                total += slopes[k, e] * scores[e]
            for other in range(count):
                total += own[k, other] * weight[other]
            value[k] = total
            before[k] = weight[k]
        mix(own, value, count, 0.1 * tolerance, weight, rise)
        for k in range(count):
            changed = weight[k] - before[k]
            if changed == 0.0:
                continue
            for e in range(size):
                r, j = changed * slopes[k, e], columns[low + e]
                if r != 0.0:
                    if of_offsets.size:
                        offsets[j] -= r / of_offsets[j]
                    step = r / of_items[j]
                    for a in range(d):
                        items[j, a] -= step * users[u, a]
        first, at, table = first + count, at + count * size, table + count * count
