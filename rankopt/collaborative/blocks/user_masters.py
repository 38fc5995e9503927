"""The users' block by planes: one small bundle problem a user, all users of a chunk at once.

User u, for fixed M, b: minimise (λ_u/2)‖U_u‖² + l_u(b + M U_u). Each plane δ + ⟨ψ, f⟩ of l_u is one of U_u with the
slope Mᵀψ and the height δ + ⟨ψ, b⟩; the best mixture of the planes gives U_u = -Mᵀψ_u/λ_u and a proven bound.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.active_set.cholesky import inner
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.threads import share_ranges
from rankopt.collaborative.blocks.held_planes import CUBE, FEW, UserBundles, free_slot
from rankopt.collaborative.blocks.mixture import mix
from rankopt.collaborative.factors import pair_scores
from rankopt.collaborative.normal_equations import READ_TABLE, TABLE

__all__ = ["solved_users"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

ROOM = 24
"""Planes that a user holds at most; there is room for `FEW` until one of them needs more."""

STEPS = 200
"""Planes that a user is given at most in one solution."""

ENTRIES = 1 << 12
"""Ratings of whole users that one thread takes at a time."""

READ_BOOLS = nb.types.Array(nb.boolean, 1, "C", readonly=True)


def solved_users(
    loss: Any,
    user_weights: Floats,
    bounds: Ints,
    columns: Shorts,
    items: Floats,
    offsets: Floats,
    penalty: Floats,
    slopes: Floats,
    heights: Floats,
    users: Floats,
    tolerance: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    """U (n, d), ψ (ratings,), δ (n,), and l_u (n,) at U, where each user's gap is at most its tolerance (n,).

    loss: of these users' scores, by planes. slopes, heights: a plane of each to start from. users: U that is given up
    for a better one only. The weights of users are in slopes, heights and l_u, not in the loss.
    """
    n, d = bounds.size - 1, items.shape[1]
    spread = np.repeat(user_weights, np.diff(bounds))
    none = np.zeros(n)
    held = UserBundles.none(n, columns.size, FEW, d)
    given = (bounds, columns, items, offsets, penalty)
    trial, dual, open_ = np.zeros((n, d)), np.full(n, -np.inf), np.ones(n, dtype=bool)

    def admit(fresh: Floats, height: Floats) -> None:
        nonlocal held
        if held.room < ROOM and held.full(open_):
            held = held.roomier(ROOM)
        planes = (held.slopes, held.heights, held.weights, held.counts, held.gram, held.moved, held.values)
        arrays: tuple[Any, ...] = (*given, fresh, height, open_, tolerance, *planes, trial, dual)
        share_ranges(bounds, ENTRIES, lambda first, last: _admitted(*arrays, first, last))  # type: ignore[call-arg]

    def valued(at: Floats) -> tuple[Any, Floats, Floats]:
        found = loss.at(pair_scores(at, items, offsets, none, bounds, columns))
        lost = user_weights * found.value
        return found, lost, lost + 0.5 * penalty * np.einsum("ij,ij->i", at, at)

    admit(slopes, heights)
    _, best_lost, best = valued(users)
    kept = users.copy()
    for _ in range(STEPS):
        found, lost, primal = valued(trial)
        better = primal < best
        kept[better], best_lost[better], best[better] = trial[better], lost[better], primal[better]
        open_[:] = best - dual > tolerance
        if not open_.any():
            break
        admit(spread * (found.placed - found.reference), user_weights * found.height)
    return kept, *held.mixed(bounds), best_lost


@compiled(
    nb.void(
        READ_INTS, READ_SHORTS, READ_TABLE, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_BOOLS,
        READ_FLOATS, TABLE, TABLE, TABLE, INTS, CUBE, CUBE, TABLE, TABLE, FLOATS, nb.int64, nb.int64,
    )
)  # fmt: skip
def _admitted(
    bounds: Ints,
    columns: Shorts,
    items: Floats,
    offsets: Floats,
    penalty: Floats,
    fresh: Floats,
    height: Floats,
    open_: NDArray[np.bool_],
    tolerance: Floats,
    slopes: Floats,
    heights: Floats,
    weights: Floats,
    counts: Ints,
    gram: Floats,
    moved: Floats,
    values: Floats,
    trial: Floats,
    dual: Floats,
    first: int,
    last: int,
) -> None:
    """One more plane for each open user, and its best mixture: trial U_u and the bound."""
    room, d = slopes.shape[0], items.shape[1]
    rise = np.empty(room)
    for u in range(first, last):
        if not open_[u]:
            continue
        low, high = bounds[u], bounds[u + 1]
        before = counts[u] == room
        k = free_slot(u, low, high, counts, weights, slopes, heights, gram)
        if before:  # planes may have been joined
            for other in range(room):
                _plane(
                    low,
                    high,
                    columns,
                    items,
                    offsets,
                    slopes[other],
                    heights[u, other],
                    moved[u, other],
                    values[u],
                    other,
                )
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


@compiled(
    nb.void(nb.int64, nb.int64, READ_SHORTS, READ_TABLE, READ_FLOATS, READ_FLOATS, nb.float64, FLOATS, FLOATS, nb.int64)
)
def _plane(
    low: int,
    high: int,
    columns: Shorts,
    items: Floats,
    offsets: Floats,
    slope: Floats,
    height: float,
    moved: Floats,
    values: Floats,
    k: int,
) -> None:
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
