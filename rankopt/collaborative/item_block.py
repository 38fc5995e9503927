"""The items' block by planes: M and b for fixed U, user after user.

minimize Σ_u l_u(b + M U_u) + Σ_j (λ_j/2)‖M_j‖² + Σ_j (μ_j/2)(b_j - b⁰_j)². For a plane ψ_u of every user the best items
are M_j = -Σ_u ψ_uj U_u/λ_j, b_j = b⁰_j - Σ_u ψ_uj/μ_j. Each user in turn takes the best mixture of its planes with
those of all others fixed, and sends the change: (ψ_uj - ψ⁻_uj) U_u and ψ_uj - ψ⁻_uj, no rating [paper 5, section 7].

A plane is δ + ⟨ψ, f⟩, a height and a slope a rating. Planes of a shard lie user after user and plane after plane; a
user has those with positive weight, and few more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.active_set.working_set import inner
from formulations.arrays import Floats, Ints, Out, Shorts, Table
from formulations.compiled import compiled, inlined
from rankopt.collaborative.user_block import mix

FEW = 6
"""Number of planes of a user from which a plane without weight is replaced by the next one; fewer than in the users'
block, since they are stored from pass to pass and from round to round."""

MAX_PLANES = 512  # planes of a user from which on the two lightest are joined in one


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
        counts, sizes, owner = self.counts, np.diff(self.bounds), np.repeat(np.arange(self.counts.size), self.counts)
        used = np.bincount(owner, self.weights > 0.0, counts.size)
        crowded = np.flatnonzero((counts >= most) & (used == counts))
        if crowded.size:
            return self._with_lightest_joined(crowded).with_plane(slopes, heights, most)
        rank, slot = np.arange(owner.size) - _starts(counts)[owner], counts.copy()
        unused = np.flatnonzero((self.weights == 0.0) & (counts[owner] >= FEW))[::-1]  # the first is written last
        slot[owner[unused]] = rank[unused]
        grown = np.where(sizes > 0, np.maximum(counts, slot + 1), counts)
        weights, higher, gram = np.zeros(grown.sum()), np.empty(grown.sum()), np.zeros(grown @ grown)
        first, before = _starts(grown), _segments(_starts(grown), counts)
        weights[before], higher[before] = self.weights, self.heights
        higher[(first + slot)[grown > 0]] = heights[grown > 0]
        rows = _starts(grown * grown)[owner] + rank * grown[owner]
        gram[_segments(rows, counts[owner])] = self.gram
        first, all_slopes = _starts(grown * sizes), np.empty(grown @ sizes)
        all_slopes[_segments(first, counts * sizes)] = self.slopes
        all_slopes[_segments(first + slot * sizes, sizes)] = slopes
        return UserPlanes(self.bounds, grown, weights, higher, all_slopes, gram), slot

    def _with_lightest_joined(self, users: Ints) -> UserPlanes:
        """The same mixtures, the two lightest planes of each of these users joined, and the other without weight."""
        found = replace(
            self, weights=self.weights.copy(), heights=self.heights.copy(), slopes=self.slopes.copy(),
            gram=self.gram.copy(),
        )  # fmt: skip
        sizes = np.diff(self.bounds)
        starts, at, table = _starts(self.counts), _starts(self.counts * sizes), _starts(self.counts**2)
        for u in users.tolist():
            own = int(self.counts[u])
            planes = slice(starts[u], starts[u] + own)
            weights, heights = found.weights[planes], found.heights[planes]
            slopes = found.slopes[at[u] : at[u] + own * sizes[u]].reshape(own, sizes[u])
            square = found.gram[table[u] : table[u] + own * own].reshape(own, own)
            light, other = np.argsort(weights, kind="stable")[:2]
            total = weights[light] + weights[other]
            p, q = weights[light] / total, weights[other] / total
            slopes[other] = p * slopes[light] + q * slopes[other]
            heights[other] = p * heights[light] + q * heights[other]
            alone = p * p * square[light, light] + 2.0 * p * q * square[light, other] + q * q * square[other, other]
            square[other] = square[:, other] = p * square[light] + q * square[other]
            square[other, other] = alone
            weights[other], weights[light] = total, 0.0
        return found

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
        owner = np.repeat(np.arange(self.counts.size), self.counts)
        sizes = np.diff(self.bounds)[owner]
        ratings = _segments(self.bounds[:-1][owner], sizes)
        slopes = np.bincount(ratings, np.repeat(self.weights, sizes) * self.slopes, self.bounds[-1])
        heights = np.bincount(owner, self.weights * self.heights, self.counts.size)
        return slopes.astype(np.float64, copy=False), heights.astype(np.float64, copy=False)

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


def _starts(lengths: Ints) -> Ints:
    """Where segments of these lengths begin, one after the other."""
    return np.cumsum(lengths) - lengths


def _segments(first: Ints, lengths: Ints) -> Ints:
    """The indices of segments that begin at `first`, one segment after the other."""
    return np.arange(lengths.sum()) + np.repeat(first - _starts(lengths), lengths)


def ascend_users(
    columns: Shorts, users: Floats, of_items: Floats, of_offsets: Floats, planes: UserPlanes, slot: Ints | None,
    tolerance: float, items: Floats, offsets: Floats,
) -> None:  # fmt: skip
    """One pass over the users of a shard; items and offsets follow. slot: the index of each new plane, if any."""
    fresh = np.zeros(0, dtype=np.int64) if slot is None else slot
    _run_pass(
        planes.bounds, columns, users, of_items, of_offsets, planes.slopes, planes.counts, planes.heights, fresh,
        tolerance, planes.weights, planes.gram, items, offsets,
    )  # fmt: skip


@compiled()
def form_gram(
    bounds: Ints, columns: Shorts, users: Table[Floats], of_items: Floats, of_offsets: Floats, slopes: Floats,
    counts: Ints, gram: Out[Floats],
) -> None:  # fmt: skip
    """The Gram matrices of planes that are new, or were held for other users' factors."""
    at, table = 0, 0
    for u in range(bounds.size - 1):
        low, size, count = bounds[u], bounds[u + 1] - bounds[u], counts[u]
        metric, own = np.empty(size), slopes[at : at + count * size].reshape((count, size))
        _metric(low, columns, users[u], of_items, of_offsets, metric)
        for k in range(count):
            _fill_gram_row(k, k + 1, own, metric, gram[table : table + count * count].reshape((count, count)))
        at, table = at + count * size, table + count * count


@inlined
def _metric(low: int, columns: Shorts, user: Floats, of_items: Floats, of_offsets: Floats, metric: Floats) -> None:
    """metric[e]: how much the score of a user's e-th rating falls as its slope rises by one."""
    square = inner(user, user)
    for e in range(metric.size):
        j = columns[low + e]
        metric[e] = square / of_items[j] + (1.0 / of_offsets[j] if of_offsets.size else 0.0)


@inlined
def _fill_gram_row(k: int, count: int, slopes: Floats, metric: Floats, gram: Floats) -> None:
    """The entries of plane k of a user with his first `count` ones."""
    for other in range(count):
        total = 0.0
        for e in range(metric.size):
            total += slopes[k, e] * slopes[other, e] * metric[e]
        gram[k, other] = total
        gram[other, k] = total


@compiled()
def _run_pass(
    bounds: Ints, columns: Shorts, users: Table[Floats], of_items: Floats, of_offsets: Floats, all_slopes: Floats,
    counts: Ints, heights: Floats, slot: Ints, tolerance: float, weights: Out[Floats], gram: Out[Floats],
    items: Out[Table[Floats]], offsets: Out[Floats],
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
        if slot.size:
            metric = all_metric[:size]
            _metric(low, columns, users[u], of_items, of_offsets, metric)
            _fill_gram_row(slot[u], count, slopes, metric, own)
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
