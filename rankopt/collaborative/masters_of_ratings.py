"""Masters of a factor model drawn from ratings, for whoever swaps solvers under them.

For some users the loss is cut by planes one after the other, as the users' block does it: at the scores that the best
mixture of the planes so far gives. What a user has in the end is one program; the planes of all of them together are
the items' program. All are states that training meets, and any solver of masters takes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations import item_factors, solve, user_factors
from formulations.problems.simplex_qp import GroupedSimplexQP
from rankopt.collaborative.factors import Factors
from rankopt.errors import DataError
from rankopt.ratings.table import Ratings

Floats = NDArray[np.float64]


def drawn_masters(
    ratings: Ratings,
    loss: Any,
    factors: Factors,
    prior: Floats,
    *,
    lam: float = 1.0,
    lam_offsets: float = 10.0,
    users: int = 12,
    planes: int = 6,
    seed: int = 0,
) -> list[GroupedSimplexQP]:
    """The programs of so many users drawn with this seed, of so many planes each at most, and of their items last.

    ratings: where users come from; those with two different ratings at least. loss: a factory (relevance, offsets) of
    a loss with planes, such as `rankopt.losses.loss_named("ordinal")`. factors: of all users and items, in the order
    of the ratings; the items of a users' program and the users of the items' program. prior: (items,) b⁰.
    Raises DataError where no user has an order.
    """
    sizes = np.diff(ratings.bounds)
    starts = ratings.bounds[:-1][sizes > 0]
    told = np.zeros(ratings.n_users, dtype=bool)
    if starts.size:
        told[sizes > 0] = np.maximum.reduceat(ratings.values, starts) > np.minimum.reduceat(ratings.values, starts)
    able = np.flatnonzero(told)
    if not able.size:
        raise DataError("no master can be drawn because no user has two different ratings; give more")
    chosen = np.sort(np.random.default_rng(seed).permutation(able)[:users])
    programs, wide, heights, owner = [], [], [], []
    for place, u in enumerate(chosen.tolist()):
        rows = slice(*ratings.bounds[u : u + 2].tolist())
        columns, own = ratings.columns[rows], loss(ratings.values[rows], np.array([0, sizes[u]]))
        program, slopes, at = _cut(own, factors.items[columns], factors.offsets[columns], lam, planes)
        programs.append(program)
        spread = np.zeros((len(slopes), ratings.n_items))
        spread[:, columns] = slopes
        wide.append(spread)
        heights.append(at)
        owner.append(np.full(at.size, place))
    joined = np.concatenate(wide)
    seen = np.flatnonzero(joined.any(axis=0))
    programs.append(
        item_factors(
            joined[:, seen], np.concatenate(heights), np.concatenate(owner), factors.users[chosen], prior[seen],
            lam=lam, lam_offsets=lam_offsets,
        )
    )  # fmt: skip
    return programs


def _cut(loss: Any, items: Floats, offsets: Floats, lam: float, planes: int) -> tuple[GroupedSimplexQP, Floats, Floats]:
    """The last program of a user, and its planes."""
    found = loss.at(np.ascontiguousarray(offsets))
    slopes, heights = (found.placed - found.reference)[None], found.height
    program = user_factors(slopes, heights, items, offsets, lam=lam)
    while len(slopes) < planes:
        scores = offsets + items @ solve(program, "active_set").dual["step"]
        found = loss.at(np.ascontiguousarray(scores))
        slope, model = found.placed - found.reference, max(0.0, float((heights + slopes @ scores).max()))
        if float(found.height[0] + slope @ scores) <= model * (1.0 + 1e-9):
            break  # the model is the loss here: this user is solved
        slopes, heights = np.vstack([slopes, slope]), np.append(heights, found.height)
        program = user_factors(slopes, heights, items, offsets, lam=lam)
    return program, slopes, heights
