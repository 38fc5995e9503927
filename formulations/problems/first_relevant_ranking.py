"""Loss-augmented ranking by the first relevant document: the most violated order under φ_mrr.

sets         documents j < n, relevant ones and others
variables    y, the order; r(y) = 1 on every document above the first relevant one, minus their number on that one
maximise     r(y)ᵀ scores - gain(y)                                                      [paper 4, φ_mrr, SVMmrr]
equivalent   the longest path in the lattice of counts: others by falling score, the first relevant one the lowest
integrality  a path is a flow of one unit: totally unimodular (network matrix)

>>> from formulations import solve
>>> solve(first_relevant_ranking([0.5, 0.2, 0.1], [0, 1, 1], "RR")).order
array([0, 2, 1])
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Ints
from formulations.forms.feature_map import FIRST, FeatureMap, strength_of
from formulations.forms.pattern_ranking import PatternBatch, PatternRanking
from formulations.patterns.losses import PatternLoss, relevant
from formulations.problems.pattern_ranking import laid_flat, stated_batch

__all__ = ["first_relevant_ranking"]


@overload
def first_relevant_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: PatternLoss | str = "RR",
    *,
    strength: float = 1.0,
    shared: bool = False,
) -> PatternRanking: ...
@overload
def first_relevant_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: PatternLoss | str = "RR",
    *,
    offsets: ArrayLike | Ints,
    strength: float = 1.0,
    shared: bool = False,
) -> PatternBatch: ...
def first_relevant_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: PatternLoss | str = "RR",
    *,
    offsets: ArrayLike | Ints | None = None,
    strength: float = 1.0,
    shared: bool = False,
) -> PatternRanking | PatternBatch:
    """The problem of one query, or with `offsets` of many: max over orders of r(y)ᵀ scores - gain(y).

    Args:
        scores, relevance, loss, offsets: as in `pattern_ranking`; relevant are grades above 0, for graded losses too.
        strength: what each document above the first relevant one has in r.
        shared: whether the strength is divided by the number of others n₋ of the query, so that r is of the size that
            it has under the pairwise map.

    A query without relevant documents has r = 0.

    Raises:
        InvalidProblem: a number is NaN or infinite, lengths do not fit, no loss has this name, strength is no number
            from 0 on.
    """
    heights, grades, bounds = laid_flat(scores, relevance, offsets)
    good = np.add.reduceat(relevant(grades), bounds[:-1])
    others = np.diff(bounds) - good
    whole = strength_of(strength)
    weight = np.where(good > 0, whole / np.maximum(others, 1.0) if shared else whole, 0.0)
    batch = stated_batch(heights, grades, bounds, loss, FeatureMap(FIRST, weight))
    return batch[0] if offsets is None else batch
