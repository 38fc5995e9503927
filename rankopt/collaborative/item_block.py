"""The items' block by planes: M and b for fixed U, user after user.

minimise Σ_u l_u(b + M U_u) + Σ_j (λ_j/2)‖M_j‖² + Σ_j (μ_j/2)(b_j - b⁰_j)². For a plane ψ_u of every user the best items
are M_j = -Σ_u ψ_uj U_u/λ_j, b_j = b⁰_j - Σ_u ψ_uj/μ_j. Each user in turn takes the best mixture of his planes, given
those of all others, and sends what it changes: (ψ_uj - ψ⁻_uj) U_u and ψ_uj - ψ⁻_uj, no rating [paper 5, section 7].
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.active_set.working_set import inner
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from rankopt.collaborative.linear_algebra import READ_TABLE, TABLE
from rankopt.collaborative.user_block import mix
from rankopt.collaborative.user_planes import SLOPES, UserPlanes, read_slopes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


def ascend_users(
    columns: Shorts,
    users: Floats,
    of_items: Floats,
    of_offsets: Floats,
    planes: UserPlanes,
    place: Ints | None,
    tolerance: float,
    items: Floats,
    offsets: Floats,
) -> None:
    """One pass over the users of a shard; items and offsets follow. place: of each one's new plane, if there is any."""
    fresh = np.zeros(0, dtype=np.int64) if place is None else place
    _passed(
        planes.bounds, columns, users, of_items, of_offsets, *planes.slopes, planes.counts, planes.heights, fresh,
        tolerance, planes.weights, planes.gram, items, offsets,
    )  # fmt: skip


def form_gram(columns: Shorts, users: Floats, of_items: Floats, of_offsets: Floats, planes: UserPlanes) -> None:
    """The Gram matrices of planes that are new, or were held for other users' factors."""
    _formed(planes.bounds, columns, users, of_items, of_offsets, *planes.slopes, planes.counts, planes.gram)


@compiled(
    nb.void(READ_INTS, READ_SHORTS, READ_TABLE, READ_FLOATS, READ_FLOATS, *SLOPES, READ_INTS, FLOATS)
)  # fmt: skip
def _formed(
    bounds: Ints,
    columns: Shorts,
    users: Floats,
    of_items: Floats,
    of_offsets: Floats,
    scale: Floats,
    codes: Any,
    reference: Any,
    book: Floats,
    plain: Floats,
    counts: Ints,
    gram: Floats,
) -> None:
    at, table = 0, 0
    for u in range(bounds.size - 1):
        low, size, count = bounds[u], bounds[u + 1] - bounds[u], counts[u]
        metric, slopes = np.empty(size), np.empty((count, size))
        _measured(low, columns, users[u], of_items, of_offsets, metric)
        read_slopes(u, low, at, count, scale, codes, reference, book, plain, slopes)
        for k in range(count):
            _related(k, k + 1, slopes, metric, gram[table : table + count * count].reshape((count, count)))
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
        READ_INTS, READ_SHORTS, READ_TABLE, READ_FLOATS, READ_FLOATS, *SLOPES, READ_INTS, READ_FLOATS, READ_INTS,
        nb.float64, FLOATS, FLOATS, TABLE, FLOATS,
    )
)  # fmt: skip
def _passed(
    bounds: Ints,
    columns: Shorts,
    users: Floats,
    of_items: Floats,
    of_offsets: Floats,
    scale: Floats,
    codes: Any,
    reference: Any,
    book: Floats,
    plain: Floats,
    counts: Ints,
    heights: Floats,
    place: Ints,
    tolerance: float,
    weights: Floats,
    gram: Floats,
    items: Floats,
    offsets: Floats,
) -> None:
    d, longest, most = users.shape[1], 1, 1
    for u in range(bounds.size - 1):
        longest, most = max(longest, bounds[u + 1] - bounds[u]), max(most, counts[u])
    rise, before, value = np.empty(most), np.empty(most), np.empty(most)
    scores, all_metric, room = np.empty(longest), np.empty(longest), np.empty(1)
    first, at, table = 0, 0, 0
    for u in range(bounds.size - 1):
        low, high, count = bounds[u], bounds[u + 1], counts[u]
        size = high - low
        if size == 0:
            continue
        if room.size < count * size:
            room = np.empty(2 * count * size)
        slopes, weight = room[: count * size].reshape((count, size)), weights[first : first + count]
        own = gram[table : table + count * count].reshape((count, count))
        read_slopes(u, low, at, count, scale, codes, reference, book, plain, slopes)
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
