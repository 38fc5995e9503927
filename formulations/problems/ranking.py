"""Loss-augmented ranking: the most violated order of one query, or of a whole batch.

sets         positions i < k, documents j < n
variables    π[i, j] = 1 where document j stands at position i
maximise     Σ (decay[i] scores[j] - discount[i] gain[j]) π[i, j]                      [ORM, eq. 27, 28]
subject to   position   each position holds one document
             document   each document stands at one position at most
integrality  totally unimodular (assignment); the profit matrix has rank two, so `exact` needs sorts and merges only

>>> from formulations import solve
>>> problem = ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], decay=[2.0, 1.0])
>>> solve(problem).order
array([1, 2])
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Ints
from formulations.forms.position_weights import Weights, laid_out, weights_for
from formulations.forms.rank_two_assignment import RankTwoAssignment, RankTwoBatch

__all__ = ["ranking"]


@overload
def ranking(
    scores: ArrayLike, gain: ArrayLike, *, discount: ArrayLike | Weights, decay: ArrayLike | Weights
) -> RankTwoAssignment: ...
@overload
def ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    decay: ArrayLike | Weights,
    offsets: ArrayLike | Ints,
) -> RankTwoBatch: ...
def ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    decay: ArrayLike | Weights,
    offsets: ArrayLike | Ints | None = None,
) -> RankTwoAssignment | RankTwoBatch:
    """The problem of one query, or with `offsets` of many.

    Args:
        scores: (n,) the score of each document.
        gain: (n,) what the measure counts for each document, b(y).
        discount: position weights of the measure: an array (cut to n positions; weight zero beyond its end), or a
            function from n to one. Non-increasing.
        decay: position weights of the scores, in the same way; the longer of the two says how many positions there are.
        offsets: (m + 1,) rows offsets[q] : offsets[q + 1] of scores and gain belong to query q.

    Raises:
        InvalidProblem: a number is NaN or infinite, lengths do not fit, weights increase.
    """
    heights, worth = np.asarray(scores, dtype=np.float64), np.asarray(gain, dtype=np.float64)
    if offsets is not None:
        bounds = np.asarray(offsets, dtype=np.int64)
        return RankTwoBatch(heights, worth, laid_out(discount, bounds), laid_out(decay, bounds), bounds)
    weights = [weights_for(given, heights.size) for given in (discount, decay)]
    positions = min(max(part.size for part in weights), heights.size)
    a, c = (np.pad(part[:positions], (0, positions - part[:positions].size)) for part in weights)
    return RankTwoAssignment(heights, worth, a, c)
