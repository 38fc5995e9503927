"""The items' block by planes: M and b for fixed U, user after user.

minimise Σ_u l_u(b + M U_u) + Σ_j (λ_j/2)‖M_j‖² + Σ_j (μ_j/2)(b_j - b⁰_j)². For a plane ψ_u of every user the best items
are M_j = -Σ_u ψ_uj U_u/λ_j, b_j = b⁰_j - Σ_u ψ_uj/μ_j. Each user in turn takes the best mixture of his planes, given
those of all others, and sends what it changes: (ψ_uj - ψ⁻_uj) U_u and ψ_uj - ψ⁻_uj, no rating [paper 5, section 7].
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.active_set.cholesky import inner
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from rankopt.collaborative.blocks.held_planes import CUBE, Held, free_slot
from rankopt.collaborative.blocks.mixture import mix
from rankopt.collaborative.normal_equations import READ_TABLE, TABLE

__all__ = ["ascend_users", "form_gram"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


def ascend_users(
    bounds: Ints,
    columns: Shorts,
    users: Floats,
    of_items: Floats,
    of_offsets: Floats,
    held: Held,
    fresh: Floats | None,
    height: Floats | None,
    tolerance: Floats,
    items: Floats,
    offsets: Floats,
) -> None:
    """One pass over all users; items and offsets follow. fresh, height: a plane for each to begin with, if any."""
    some = (np.zeros(0), np.zeros(0)) if fresh is None or height is None else (fresh, height)
    _passed(
        bounds, columns, users, of_items, of_offsets, *some, tolerance, held.slopes, held.heights, held.weights,
        held.counts, held.gram, items, offsets,
    )  # fmt: skip


def form_gram(bounds: Ints, columns: Shorts, users: Floats, of_items: Floats, of_offsets: Floats, held: Held) -> None:
    """The Gram matrices of planes that were held for other users' factors."""
    _formed(bounds, columns, users, of_items, of_offsets, held.slopes, held.counts, held.gram)


@compiled(nb.void(READ_INTS, READ_SHORTS, READ_TABLE, READ_FLOATS, READ_FLOATS, READ_TABLE, READ_INTS, CUBE))
def _formed(
    bounds: Ints,
    columns: Shorts,
    users: Floats,
    of_items: Floats,
    of_offsets: Floats,
    slopes: Floats,
    counts: Ints,
    gram: Floats,
) -> None:
    for u in range(bounds.size - 1):
        low = bounds[u]
        metric = np.empty(bounds[u + 1] - low)
        _measured(low, columns, users[u], of_items, of_offsets, metric)
        for k in range(counts[u]):
            _related(u, k, k + 1, low, slopes, metric, gram)


@compiled(nb.void(nb.int64, READ_SHORTS, READ_FLOATS, READ_FLOATS, READ_FLOATS, FLOATS))
def _measured(low: int, columns: Shorts, user: Floats, of_items: Floats, of_offsets: Floats, metric: Floats) -> None:
    """metric[e]: how much the score of a user's e-th rating falls as its slope rises by one."""
    square = inner(user, user)
    for e in range(metric.size):
        j = columns[low + e]
        metric[e] = square / of_items[j] + (1.0 / of_offsets[j] if of_offsets.size else 0.0)


@compiled(nb.void(nb.int64, nb.int64, nb.int64, nb.int64, READ_TABLE, READ_FLOATS, CUBE))
def _related(u: int, k: int, count: int, low: int, slopes: Floats, metric: Floats, gram: Floats) -> None:
    """The entries of plane k of user u with his first `count` ones."""
    for other in range(count):
        total = 0.0
        for e in range(metric.size):
            total += slopes[k, low + e] * slopes[other, low + e] * metric[e]
        gram[u, k, other] = total
        gram[u, other, k] = total


@compiled(
    nb.void(
        READ_INTS, READ_SHORTS, READ_TABLE, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, TABLE,
        TABLE, TABLE, INTS, CUBE, TABLE, FLOATS,
    )
)  # fmt: skip
def _passed(
    bounds: Ints,
    columns: Shorts,
    users: Floats,
    of_items: Floats,
    of_offsets: Floats,
    fresh: Floats,
    height: Floats,
    tolerance: Floats,
    slopes: Floats,
    heights: Floats,
    weights: Floats,
    counts: Ints,
    gram: Floats,
    items: Floats,
    offsets: Floats,
) -> None:
    room, d, longest = slopes.shape[0], users.shape[1], 1
    for u in range(bounds.size - 1):
        longest = max(longest, bounds[u + 1] - bounds[u])
    rise, before, value = np.empty(room), np.empty(room), np.empty(room)
    scores, metric = np.empty(longest), np.empty(longest)
    for u in range(bounds.size - 1):
        low, high = bounds[u], bounds[u + 1]
        if low == high:
            continue
        for e in range(low, high):
            scores[e - low] = offsets[columns[e]] + inner(users[u], items[columns[e]])
        if fresh.size:
            _measured(low, columns, users[u], of_items, of_offsets, metric[: high - low])
            k = free_slot(u, low, high, counts, weights, slopes, heights, gram)
            for e in range(low, high):
                slopes[k, e] = fresh[e]
            heights[u, k] = height[u]
            _related(u, k, counts[u], low, slopes, metric[: high - low], gram)
            if counts[u] == 1:
                weights[u, 0] = 1.0
        count = counts[u]
        for k in range(count):  # at the items as they are, which hold this user's own part
            total = heights[u, k]
            for e in range(low, high):
                total += slopes[k, e] * scores[e - low]
            for other in range(count):
                total += gram[u, k, other] * weights[u, other]
            value[k] = total
            before[k] = weights[u, k]
        mix(gram[u], value, count, 0.1 * tolerance[u], weights[u], rise)
        for k in range(count):
            changed = weights[u, k] - before[k]
            if changed == 0.0:
                continue
            for e in range(low, high):
                r, j = changed * slopes[k, e], columns[e]
                if r != 0.0:
                    if of_offsets.size:
                        offsets[j] -= r / of_offsets[j]
                    step = r / of_items[j]
                    for a in range(d):
                        items[j, a] -= step * users[u, a]
