"""Colours of users and items: what ratings say of them, blind to names and to the order of rows.

The colour of a user is made of the multiset of ratings and of the colours of the items, that of an item of the users'
in turn, some rounds long (colour refinement). Sums of 64 bits commute, so a pass over the ratings in any order will do.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from rankopt.data.fingerprints import HASHES, SALT, mixed

__all__ = ["refine_colors"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Hashes = NDArray[np.uint64]

ROUNDS = 4
"""Rounds of refinement: on sparse ratings the fourth tells no more apart than the third."""


def refine_colors(bounds: Ints, columns: Shorts, values: Floats, weights: Floats, items: int) -> tuple[Hashes, Hashes]:
    """(users,) and (items,) 64 bits each; weights: (ratings,) or empty."""
    of_users, of_items = np.zeros(bounds.size - 1, np.uint64), np.zeros(items, np.uint64)
    for _ in range(ROUNDS):
        found = np.zeros(of_users.size, np.uint64)
        _gathered(bounds, columns, values, weights, of_items, found)
        of_users, found = mixed(found), np.zeros(items, np.uint64)
        _spread(bounds, columns, values, weights, of_users, found)
        of_items = mixed(found)
    return of_users, of_items


@compiled(nb.uint64(nb.uint64))
def _mixed(bits: np.uint64) -> np.uint64:
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))


@compiled(nb.uint64(nb.float64, nb.float64, nb.uint64))
def _said(value: float, weight: float, other: np.uint64) -> np.uint64:
    """A rating with the colour of its other end."""
    bits = _mixed(np.float64(value + 0.0).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    bits += _mixed(np.float64(weight).view(np.uint64)) * np.uint64(0xD1342543DE82EF95)
    return _mixed(bits + other)


@compiled(nb.void(READ_INTS, READ_SHORTS, READ_FLOATS, READ_FLOATS, SALT, HASHES))
def _gathered(bounds: Ints, columns: Shorts, values: Floats, weights: Floats, of_items: Hashes, found: Hashes) -> None:
    for u in range(bounds.size - 1):
        for e in range(bounds[u], bounds[u + 1]):
            found[u] += _said(values[e], weights[e] if weights.size else 1.0, of_items[columns[e]])


@compiled(nb.void(READ_INTS, READ_SHORTS, READ_FLOATS, READ_FLOATS, SALT, HASHES))
def _spread(bounds: Ints, columns: Shorts, values: Floats, weights: Floats, of_users: Hashes, found: Hashes) -> None:
    for u in range(bounds.size - 1):
        for e in range(bounds[u], bounds[u + 1]):
            found[columns[e]] += _said(values[e], weights[e] if weights.size else 1.0, of_users[u])
