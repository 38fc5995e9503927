"""Loss-augmented ranking by pairs: the most violated order of one query, or of a whole batch, under φ_po.

sets         documents j < n, chains of documents that are alike but for their scores
variables    y, the order of the documents; r(y)_j = κ (higher grades below j - lower grades above j)
maximise     r(y)ᵀ scores - gain(y)                                                         [paper 4, φ_po, SVMmap]
equivalent   the longest path in the lattice of how many of each chain are placed: inside a chain by falling score
integrality  a path is a flow of one unit: totally unimodular (network matrix)

With two grades κ = 1/(n₊ n₋) and r = -κ b on a relevant document with b others above it. The order by grade has r = 0,
and with AUC the loss, maximum + 1, is the mean of max(0, 1 - s_i + s_j) over pairs: the pairwise hinge.

>>> from formulations import solve
>>> problem = pairwise_ranking([0.5, 0.2, 0.1], [0, 1, 1], "AP")
>>> solution = solve(problem)
>>> solution.order, round(solution.value, 6)
(array([0, 1, 2]), -0.233333)
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints
from formulations.forms.feature_map import PAIRWISE, FeatureMap, strength_of, unequal_pairs
from formulations.forms.pattern_ranking import PatternBatch, PatternRanking
from formulations.patterns.losses import PatternLoss, relevant
from formulations.patterns.named import pattern_loss
from formulations.problems.pattern_ranking import laid_flat, stated_batch

__all__ = ["pairwise_ranking"]


@overload
def pairwise_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: PatternLoss | str = "AUC", *, strength: float = 1.0
) -> PatternRanking: ...
@overload
def pairwise_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: PatternLoss | str = "AUC",
    *,
    offsets: ArrayLike | Ints,
    strength: float = 1.0,
) -> PatternBatch: ...
def pairwise_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: PatternLoss | str = "AUC",
    *,
    offsets: ArrayLike | Ints | None = None,
    strength: float = 1.0,
) -> PatternRanking | PatternBatch:
    """The problem of one query, or with `offsets` of many: max over orders of r(y)ᵀ scores - gain(y).

    Args:
        scores, relevance, loss, offsets: as in `pattern_ranking`. Pairs are of a relevant document and another, and of
            any two unequal grades where the loss is graded.
        strength: κ times the number of pairs; a query without pairs has κ = 0.

    Raises:
        InvalidProblem: a number is NaN or infinite, lengths do not fit, no loss has this name, strength is no number
            from 0 on.
    """
    heights, grades, bounds = laid_flat(scores, relevance, offsets)
    chosen = pattern_loss(loss)
    pairs = unequal_pairs(grades if chosen.graded else relevant(grades), bounds)
    kappa: Floats = np.divide(strength_of(strength), pairs, out=np.zeros(pairs.size), where=pairs > 0)
    batch = stated_batch(heights, grades, bounds, chosen, FeatureMap(PAIRWISE, kappa))
    return batch[0] if offsets is None else batch
