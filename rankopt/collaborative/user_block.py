"""The users' block by planes: one small bundle problem a user, all users of a chunk at once.

User u, for fixed M, b: minimize (λ_u/2)‖U_u‖² + l_u(b + M U_u). Each plane δ + ⟨ψ, f⟩ of l_u is one of U_u with the
slope Mᵀψ and the height δ + ⟨ψ, b⟩; the best mixture of the planes gives U_u = -Mᵀψ_u/λ_u and a proven bound.

Each user has a few planes, mixed by weights that sum to one. The best mixture is a quadratic program over a simplex,
solved by moving weight from the worst plane to the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.active_set.working_set import inner
from formulations.arrays import Bools, Cube, Floats, Ints, Out, Shorts, Table
from formulations.compiled import compiled, inlined
from formulations.parallel import share_ranges
from rankopt.collaborative.problem import pair_scores

FEW = 12  # planes of a user from which on one without weight makes way for the next, before there are more


@dataclass(frozen=True, eq=False)
class UserBundles:
    """slopes ψ (c, ratings) and heights δ (n, c), c the capacity, of the planes of n users, their weights (n, c), the
    number of each user (n,); and as planes of U_u (n, d) for these M, b: their slopes Mᵀψ (n, c, d), values δ + ⟨ψ, b⟩
    (n, c) and Gram matrices (n, c, c)."""

    slopes: Floats
    heights: Floats
    weights: Floats
    counts: Ints
    moved: Floats
    values: Floats
    gram: Floats

    @classmethod
    def none(cls, users: int, ratings: int, capacity: int, factors: int) -> UserBundles:
        return cls(
            np.zeros((capacity, ratings)), np.zeros((users, capacity)), np.zeros((users, capacity)),
            np.zeros(users, dtype=np.int64),
            np.zeros((users, capacity, factors)), np.zeros((users, capacity)), np.zeros((users, capacity, capacity)),
        )  # fmt: skip

    @property
    def capacity(self) -> int:
        """Planes that a user may hold."""
        return len(self.slopes)

    def full(self, users: Bools) -> bool:
        """Whether one of these users (n,) has no slot left, and none whose plane has no weight."""
        crowded = users & (self.counts == self.capacity)
        return bool((self.weights[crowded] > 0.0).all(axis=1).any())

    def with_capacity(self, capacity: int) -> UserBundles:
        none, more = (0, 0), (0, capacity - self.capacity)
        return UserBundles(
            np.pad(self.slopes, (more, none)), np.pad(self.heights, (none, more)), np.pad(self.weights, (none, more)),
            self.counts, np.pad(self.moved, (none, more, none)), np.pad(self.values, (none, more)),
            np.pad(self.gram, (none, more, more)),
        )  # fmt: skip

    def mixed(self, bounds: Ints) -> tuple[Floats, Floats]:
        """The mixtures as one plane a user: slopes (ratings,), heights (n,)."""
        found, rows = np.zeros(self.slopes.shape[1]), np.repeat(np.arange(bounds.size - 1), np.diff(bounds))
        for weight, slopes in zip(self.weights.T, self.slopes, strict=True):
            found += weight[rows] * slopes
        return found, np.asarray(np.einsum("uk,uk->u", self.weights, self.heights))


@inlined
def free_slot(
    u: int, low: int, high: int, counts: Ints, weights: Floats, slopes: Floats, heights: Floats, gram: Floats
) -> int:
    """A slot of user u for one more plane: a new one for the first `FEW`; then that of a plane without weight, else a
    new one; and if there is no memory, that of the lightest, which joins the next lightest in one plane."""
    capacity, count = slopes.shape[0], int(counts[u])
    if count < min(capacity, FEW):
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
    if count < capacity:
        counts[u] = count + 1
        return count
    total = weights[u, first] + weights[u, second]
    p, q = weights[u, first] / total, weights[u, second] / total
    for e in range(low, high):
        slopes[second, e] = p * slopes[first, e] + q * slopes[second, e]
    heights[u, second] = p * heights[u, first] + q * heights[u, second]
    own = p * p * gram[u, first, first] + 2.0 * p * q * gram[u, first, second] + q * q * gram[u, second, second]
    for k in range(capacity):
        gram[u, second, k] = p * gram[u, first, k] + q * gram[u, second, k]
        gram[u, k, second] = gram[u, second, k]
    gram[u, second, second] = own
    weights[u, second] = total
    weights[u, first] = 0.0
    return first


MOVES = 60  # moves a plane that are made at most


@compiled(internal=True)
def mix(
    gram: Table[Floats], value: Floats, count: int, tolerance: float, weight: Out[Floats], rise: Out[Floats]
) -> float:
    """Maximize valueᵀα - αᵀ gram α / 2 over α >= 0, Σα = 1 from the current weights, until no plane rises above the
    mixture by more than the tolerance; by how much one does. rise: memory for one number per plane."""
    for k in range(count):
        total = value[k]
        for other in range(count):
            total -= gram[k, other] * weight[other]
        rise[k] = total
    excess = 0.0
    for _ in range(MOVES * count):
        best, worst, mean = 0, -1, 0.0
        for k in range(count):
            mean += weight[k] * rise[k]
            if rise[k] > rise[best]:
                best = k
            if weight[k] > 0.0 and (worst < 0 or rise[k] < rise[worst]):
                worst = k
        excess = rise[best] - mean
        if excess <= tolerance or best == worst:
            break
        curved = gram[best, best] + gram[worst, worst] - 2.0 * gram[best, worst]
        moved = weight[worst]
        if moved * curved > rise[best] - rise[worst]:
            moved = (rise[best] - rise[worst]) / curved
            weight[worst] -= moved
        else:
            weight[worst] = 0.0
        weight[best] += moved
        for k in range(count):
            rise[k] -= moved * (gram[k, best] - gram[k, worst])
    return max(excess, 0.0)


MAX_PLANES = 24  # maximum number of planes of a user; memory is allocated for `FEW` until one of them needs more
STEPS = 200  # maximum number of new planes of a user in one solution
ENTRIES = 1 << 12  # ratings (of complete users) that one thread takes at a time


def solved_users(
    loss: Any, user_weights: Floats, bounds: Ints, columns: Shorts, items: Floats, offsets: Floats, penalty: Floats,
    slopes: Floats, heights: Floats, users: Floats, tolerance: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:  # fmt: skip
    """U (n, d), ψ (ratings,), δ (n,), and l_u (n,) at U, where each user's gap is at most its tolerance (n,). loss: of
    these users' scores, by planes. slopes, heights: a plane of each to start from. users: U that is replaced by a
    better one only. The weights of users are in slopes, heights and l_u, not in the loss."""
    n, d = bounds.size - 1, items.shape[1]
    spread = np.repeat(user_weights, np.diff(bounds))
    none = np.zeros(n)
    held = UserBundles.none(n, columns.size, FEW, d)
    arguments = (bounds, columns, items, offsets, penalty)
    trial, dual, open_ = np.zeros((n, d)), np.full(n, -np.inf), np.ones(n, dtype=bool)

    def admit(fresh: Floats, height: Floats) -> None:
        nonlocal held
        if held.capacity < MAX_PLANES and held.full(open_):
            held = held.with_capacity(MAX_PLANES)
        planes = (held.slopes, held.heights, held.weights, held.counts, held.gram, held.moved, held.values)
        arrays: tuple[Any, ...] = (*arguments, fresh, height, open_, tolerance, *planes, trial, dual)
        share_ranges(bounds, ENTRIES, lambda first, last: _admit_plane(*arrays, first, last))  # type: ignore[call-arg]

    def valued(at: Floats) -> tuple[Any, Floats, Floats]:
        found = loss.at(pair_scores(at, items, offsets, none, bounds, columns))
        lost = user_weights * found.value
        return found, lost, lost + 0.5 * penalty * np.einsum("ij,ij->i", at, at)

    admit(slopes, heights)
    _, best_lost, best = valued(users)
    best_users = users.copy()
    for _ in range(STEPS):
        found, lost, primal = valued(trial)
        better = primal < best
        best_users[better], best_lost[better], best[better] = trial[better], lost[better], primal[better]
        open_[:] = best - dual > tolerance
        if not open_.any():
            break
        admit(spread * (found.assigned - found.reference), user_weights * found.height)
    return best_users, *held.mixed(bounds), best_lost


@compiled()
def _admit_plane(
    bounds: Ints, columns: Shorts, items: Table[Floats], offsets: Floats, penalty: Floats, fresh: Floats,
    height: Floats, open_: Bools, tolerance: Floats, slopes: Out[Table[Floats]], heights: Out[Table[Floats]],
    weights: Out[Table[Floats]], counts: Out[Ints], gram: Out[Cube[Floats]], moved: Out[Cube[Floats]],
    values: Out[Table[Floats]], trial: Out[Table[Floats]], dual: Out[Floats], first: int, last: int,
) -> None:  # fmt: skip
    """One more plane for each open user, and its best mixture: trial U_u and the bound."""
    capacity, d = slopes.shape[0], items.shape[1]
    rise = np.empty(capacity)
    for u in range(first, last):
        if not open_[u]:
            continue
        low, high = bounds[u], bounds[u + 1]
        before = counts[u] == capacity
        k = free_slot(u, low, high, counts, weights, slopes, heights, gram)
        if before:  # planes may have been joined
            for other in range(capacity):
                _plane(
                    low, high, columns, items, offsets, slopes[other], heights[u, other], moved[u, other], values[u],
                    other,
                )  # fmt: skip
        for e in range(low, high):
            slopes[k, e] = fresh[e]
        heights[u, k] = height[u]
        _plane(low, high, columns, items, offsets, slopes[k], height[u], moved[u, k], values[u], k)
        for other in range(counts[u]):
            gram[u, k, other] = inner(moved[u, k], moved[u, other]) / penalty[u]
            gram[u, other, k] = gram[u, k, other]
        if counts[u] == 1:
            weights[u, 0] = 1.0
        mix(gram[u], values[u], counts[u], 0.1 * tolerance[u], weights[u], rise)
        for a in range(d):
            total = 0.0
            for other in range(counts[u]):
                total -= weights[u, other] * moved[u, other, a]
            trial[u, a] = total / penalty[u]
        bound = -0.5 * penalty[u] * inner(trial[u], trial[u])
        for other in range(counts[u]):
            bound += weights[u, other] * values[u, other]
        dual[u] = bound


@inlined
def _plane(
    low: int, high: int, columns: Shorts, items: Floats, offsets: Floats, slope: Floats, height: float, moved: Floats,
    values: Floats, k: int,
) -> None:  # fmt: skip
    """moved = Mᵀψ and values[k] = δ + ⟨ψ, b⟩ of one plane."""
    for a in range(moved.size):
        moved[a] = 0.0
    total = height
    for e in range(low, high):
        r, row = slope[e], items[columns[e]]
        if r != 0.0:
            total += r * offsets[columns[e]]
            for a in range(moved.size):
                moved[a] += r * row[a]
    values[k] = total
