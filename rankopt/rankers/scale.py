"""The λ that is natural to the data: what `lam="scale"` means.

Scores s = Xw have inside query q the mean square (1/n_q) Σ_j (s_j - s̄)² <= ‖w‖² U_q, U_q = (1/n_q) Σ_j ‖x_j - x̄_q‖². So
‖w‖² U, U = Σ_q v_q U_q, is the spread of the scores that w allows, and

    λ = 3 U / m        (λ/2) ‖w‖² = (3/2) (spread) / m

weighs that spread, in units of the margin, against the mean loss of m queries. Features c times as large, all of
them, need weights 1/c times as large: U grows by c² and the problem stays the same, and so it does when constants are
added to the features of a query. The strength falls with 1/m as a fixed C = 1 / (λ m) does. The 3 was chosen where data
were at hand to measure it: from 1 to 10 little changes.

A feature map whose slopes are f times as large has the same orders at weights 1/f times as large, under f² times the λ:

    λ = 3 U/m Σ_q v_q f_q²         f = 1 for positions and pairs, n₋ for the first relevant document (`FEATURE_MAPS`)

and a loss times C has its optimum under C times the λ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from formulations.errors import InvalidProblemError
from rankopt.errors import DataError
from rankopt.optimize import least_squares as within
from rankopt.optimize.least_squares import largest_magnitudes

if TYPE_CHECKING:
    from rankopt.data.canonical_order import Arrangement
    from rankopt.risk.shard import Shard

STRENGTH = 3.0
"""λ in units of U / m."""

FAINT = 1e-280
"""Spreads below this lose digits in double precision."""


def natural_lam(queries: Arrangement, count: int) -> float:
    """λ = 3 U / m of so many queries with something to order; features that vary nowhere leave 3 / m.

    Raises InvalidProblemError where squares of the features are too large for double precision, and DataError where
    they are too small.
    """
    unit = spread(queries)
    if not np.isfinite(unit):
        raise InvalidProblemError("the squares of the features leave double precision")
    if unit < FAINT and 0.0 < largest_magnitudes(queries.features).max(initial=0.0) < np.sqrt(FAINT):
        raise DataError(
            "lam='scale' cannot be found because squares of the features are next to nothing in double precision; "
            "multiply the features by 1e150, or give lam a number"
        )
    return STRENGTH * (unit if unit > 0 else 1.0) / count


def unit_of(shards: Sequence[Shard]) -> float:
    """Σ_q v_q f_q² of the losses of these shards, 1 of those that say nothing of it."""
    known = [getattr(shard.loss, "unit", np.ones(len(shard))) for shard in shards]
    if all((unit == 1.0).all() for unit in known):
        return 1.0  # to the bit, which a sum of weights is not
    return float(sum(shard.weights @ unit for shard, unit in zip(shards, known, strict=True)))


def spread(queries: Arrangement) -> float:
    """U, the mean square distance of a document's features from the mean of its query, each query weighing v_q."""
    sizes = np.diff(queries.offsets)
    shares = np.repeat(queries.weights / queries.weights.sum() / sizes, sizes)
    return within.spread(queries.features, shares, queries.rows, queries.offsets)
