"""What long lists of a user are worth under a measure, told from a few ratings that were left out.

Lists of two or ten ratings hardly tell models apart, and those that are asked for are longer: what a model overrates
comes first among many. But an order is worth a sum over its items, Σ_j b_j a[rank of j] - constant, so that each rating
tells a part of it once it is known where it would stand: behind the share of what might be listed that scores higher.
Of n ratings with worths b_j, drawn from a list of L whose shares above them are h_j, the list is worth

    b̄ Σ_i a_i + (L - 1)/(n - 1) Σ_j (b_j - b̄) a[1 + (L - 1) h_j] - constant

in expectation: L times the means of a and b, and their covariance. At n = L that is the measure itself.

What users rate is what they like. So their ratings stand above what others rate, the more so the closer a model follows
them, and that tells nothing of the order among what they rate: `levelled` takes it off.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.active_set.cholesky import inner
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.threads import share_ranges
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.measured import rated_only
from rankopt.collaborative.normal_equations import READ_TABLE
from rankopt.collaborative.rated import EncodedRatings
from rankopt.evaluation.rated_lists import measured, ordered_lists
from rankopt.measures.notation import parse
from rankopt.measures.positional import Positional

__all__ = ["levelled", "long_lists", "shares_above"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

LISTED = 50
"""Items of a list at least."""

CANDIDATES = 500
"""Items, drawn by how many ratings they have, that a rating is compared with."""

FEWEST = 5
"""Ratings of a user below which they tell of no list."""

ENTRIES = 1 << 10
"""Ratings left out of whole users that one thread places at a time."""


def shares_above(left: EncodedRatings, kept: EncodedRatings, factors: Factors) -> Floats:
    """(ratings left out,) which share of the items that might stand in a list is scored higher, equal scores half.

    These are items as often as they have ratings in `kept`, without those that the user has there. left, kept: ratings
    of the same users and items. factors: of all users.
    """
    found = np.full(left.values.size, 0.5)
    reached = np.cumsum(np.diff(kept.item_bounds))
    if found.size and reached[-1]:
        at = (np.arange(CANDIDATES) + 0.5) * (reached[-1] / CANDIDATES)
        candidates = np.searchsorted(reached, at, side="right")
        given = (factors.users, factors.items, factors.offsets, candidates)
        lists = (left.bounds, left.columns, kept.bounds, kept.columns)
        share_ranges(left.bounds, ENTRIES, lambda first, last: _above(*given, *lists, first, last, found))
    return found


@compiled(
    nb.void(
        READ_TABLE, READ_TABLE, READ_FLOATS, READ_INTS, READ_INTS, READ_SHORTS, READ_INTS, READ_SHORTS, nb.int64,
        nb.int64, FLOATS,
    )
)  # fmt: skip
def _above(
    users: Floats,
    items: Floats,
    offsets: Floats,
    candidates: Ints,
    bounds: Ints,
    columns: Shorts,
    kept_bounds: Ints,
    kept_columns: Shorts,
    first: int,
    last: int,
    found: Floats,
) -> None:
    mark = np.full(items.shape[0], -1)
    scores = np.empty(candidates.size)
    for u in range(first, last):
        if bounds[u] == bounds[u + 1]:
            continue
        for e in range(kept_bounds[u], kept_bounds[u + 1]):
            mark[kept_columns[e]] = u
        held = 0
        for j in candidates:
            if mark[j] != u:
                scores[held] = offsets[j] + inner(users[u], items[j])
                held += 1
        for e in range(bounds[u], bounds[u + 1]):
            j = columns[e]
            own, above = offsets[j] + inner(users[u], items[j]), 0.0
            for c in range(held):
                if scores[c] > own:
                    above += 1.0
                elif scores[c] == own:
                    above += 0.5
            if held:
                found[e] = above / held


def levelled(shares: Floats) -> Floats:
    """(ratings,) as shares of all of them: from 0 to 1 evenly, in the same order; equal ones have the mean."""
    _, which, often = np.unique(shares, return_inverse=True, return_counts=True)
    return np.asarray(((np.cumsum(often) - 0.5 * often) / max(shares.size, 1))[which])


def long_lists(measure: Any, bounds: Ints, values: Floats, shares: Floats) -> Floats:
    """(n,) the worth of a list of each user, of `LISTED` items or more, by the shares (ratings,) above his ratings; NaN
    for users of too few ratings, and where all are worth the same. The gains of a list are those of his ratings, each
    as often. Of a measure that is no such sum, the worth of the ratings themselves in that order."""
    wanted = parse(measure)
    if not (isinstance(wanted, Positional) and wanted.inner(values, bounds)):
        return rated_only(bounds, values, -shares, measure)
    sizes = np.diff(bounds)
    often = np.where(sizes, -(-LISTED // np.maximum(sizes, 1)), 0)
    lengths = sizes * often
    ends, times = np.concatenate([[0], np.cumsum(lengths)]), np.repeat(often, sizes)
    listed = np.repeat(values, times)
    with measured(measure, values):
        gain, constant = wanted.gain(listed, ends)[np.cumsum(times) - times], wanted.constant(listed, ends)
    del listed
    user, told = np.repeat(np.arange(sizes.size), sizes), (sizes >= FEWEST) & ordered_lists(bounds, gain)
    of_rating, total, discounted = lengths[user], np.zeros(sizes.size), np.zeros(values.size)
    by_length = np.argsort(of_rating, kind="stable")
    of_rating = of_rating[by_length]
    for length in np.unique(lengths[told]).tolist():
        low, high = np.searchsorted(of_rating, [length, length + 1])
        some, discount = by_length[low:high], np.append(wanted.discount(length), 0.0)
        discounted[some] = np.interp(1.0 + (length - 1) * shares[some], np.arange(1, length + 2), discount)
        total[lengths == length] = discount.sum()
    mean = np.bincount(user, gain, sizes.size) / np.maximum(sizes, 1)
    spread = np.bincount(user, (gain - mean[user]) * discounted, sizes.size)
    found = mean * total + (lengths - 1) / np.maximum(sizes - 1, 1) * spread - constant
    return np.where(told, found, np.nan)
