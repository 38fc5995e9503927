"""The arrays of a model of two factors, and its scores.

Scores of pairs that a fitted model may or may not know: never NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba as nb
import numpy as np

from formulations.active_set.working_set import inner
from formulations.arrays import Floats, Ints, Shorts
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.display import CompactReprMixin
from formulations.parallel import share_ranges
from rankopt.collaborative.linear_algebra import READ_TABLE

ENTRIES = 1 << 14
"""Ratings (of complete users) that one thread scores at a time."""


@dataclass(frozen=True, eq=False)
class Factors(CompactReprMixin):
    """F[u, j] = offsets[j] + user_offsets[u] + ⟨users[u], items[j]⟩: users (n, d), items (m, d), offsets (m,),
    user_offsets (n,)."""

    users: Floats
    items: Floats
    offsets: Floats
    user_offsets: Floats

    @property
    def dimensions(self) -> int:
        return int(self.items.shape[1])

    @property
    def used(self) -> int:
        """How many of the dimensions scores depend on: those that are 0 neither of all users nor of all items."""
        return int(np.count_nonzero(self.users.any(axis=0) & self.items.any(axis=0)))

    def offsets_alone(self) -> Factors:
        """The same with U = M = 0."""
        return replace(self, users=np.zeros_like(self.users), items=np.zeros_like(self.items))

    def scores(self, bounds: Ints, columns: Shorts) -> Floats:
        """(entries,) of the pairs: user u with the items columns[bounds[u] : bounds[u + 1]]."""
        return pair_scores(self.users, self.items, self.offsets, self.user_offsets, bounds, columns)


def pair_scores(
    users: Floats, items: Floats, offsets: Floats, user_offsets: Floats, bounds: Ints, columns: Shorts
) -> Floats:
    """(entries,) the scores of the pairs that bounds and columns name, parallel over users."""
    found = np.empty(columns.size)
    arguments = (users, items, offsets, user_offsets, bounds, columns)
    if found.size:
        share_ranges(bounds, ENTRIES, lambda first, last: _scored(*arguments, first, last, found))
    return found


@compiled(nb.void(READ_TABLE, READ_TABLE, READ_FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, nb.int64, nb.int64, FLOATS))
def _scored(
    users: Floats, items: Floats, offsets: Floats, user_offsets: Floats, bounds: Ints, columns: Shorts, first: int,
    last: int, found: Floats,
) -> None:  # fmt: skip
    for u in range(first, last):
        for e in range(bounds[u], bounds[u + 1]):
            j = columns[e]
            found[e] = offsets[j] + user_offsets[u] + inner(users[u], items[j])


AT_ONCE = 1 << 16
"""Pairs whose factors are gathered at a time."""


def scores_of_pairs(factors: Factors, users: Ints, items: Ints, unknown: float) -> Floats:
    """(n,) b_j + b_u + ⟨U_u, M_j⟩ of the users and items with these indices, -1 for unknown: such a user adds 0,
    such an item has the offset `unknown` of an item without ratings."""
    found = np.empty(users.size)
    for begin in range(0, users.size, AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        u, j = users[part], items[part]
        some = np.where(j >= 0, factors.offsets[j] if factors.offsets.size else unknown, unknown)
        some += np.where(u >= 0, factors.user_offsets[u], 0.0)
        both = (u >= 0) & (j >= 0)
        some[both] += np.einsum("ij,ij->i", factors.users[u[both]], factors.items[j[both]])
        found[part] = some
    return found
