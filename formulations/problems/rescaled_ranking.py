"""Loss-augmented ranking with a rescaled slack: the product of loss and margin, a heuristic with a proven bound.

sets         positions i < k, documents j < n
variables    π[i, j] = 1 where document j stands at position i
maximise     D(π) M(π),   D = best - Σ discount[i] gain[j] π[i, j]                          [paper 2, section 6]
                          M = 1 + Σ (decay[i] - reference[j]) scores[j] π[i, j]
subject to   position   each position holds one document
             document   each document stands at one position at most
integrality  none to be had: a quadratic assignment, NP-hard even for decay = discount = 1 at k positions, 0 behind

Every ranking is a point (D, M). Vertices of their convex hull are orders that maximise D + t M for some t, each a call
of the loss-augmented argmax of `ranking`; the solver that is given makes these calls. The best vertex is the value. The
best product may lie inside the hull; but no point is above the last edge, so h² / 4t, with h the most that D + t M is
proven to be, bounds it: the search asks for the t of least bound, some 8 calls a query.

>>> from formulations import solve
>>> problem = rescaled_ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6, 0.0], decay=[2.0, 1.0, 0.5])
>>> solution = solve(problem)
>>> solution.order, round(solution.value, 6), solution.gap < 0.05
(array([1, 2, 0]), 1.65, True)
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints
from formulations.forms.position_weights import Weights
from formulations.forms.rescaled_ranking import RescaledBatch, RescaledRanking
from formulations.problems.ranking import ranking

__all__ = ["rescaled_ranking"]


@overload
def rescaled_ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    decay: ArrayLike | Weights,
    reference: ArrayLike | None = None,
) -> RescaledRanking: ...
@overload
def rescaled_ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    decay: ArrayLike | Weights,
    reference: ArrayLike | None = None,
    offsets: ArrayLike | Ints,
) -> RescaledBatch: ...
def rescaled_ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    decay: ArrayLike | Weights,
    reference: ArrayLike | None = None,
    offsets: ArrayLike | Ints | None = None,
) -> RescaledRanking | RescaledBatch:
    """The problem of one query, or with `offsets` of many.

    Args:
        scores, gain, discount, decay, offsets: as in `ranking`.
        reference: (n,) the weight of each document in the order that the margin is measured from; by default the mean
            over the orders that are best by gain: documents of equal gain share their decays.

    Raises:
        InvalidProblem: a number is NaN or infinite, lengths do not fit, weights increase.
    """
    if offsets is not None:
        batch = ranking(scores, gain, discount=discount, decay=decay, offsets=offsets)
        bounds = batch.offsets
        known = _shared(batch.gain, batch.decay, bounds) if reference is None else np.asarray(reference, dtype=float)
        return RescaledBatch(batch, known)
    one = ranking(scores, gain, discount=discount, decay=decay)
    decays = np.pad(one.decay, (0, one.documents - one.positions))
    alone = np.array([0, one.documents])
    known = _shared(one.gain, decays, alone) if reference is None else np.asarray(reference, dtype=float)
    return RescaledRanking(one.scores, one.gain, one.discount, one.decay, known)


def _shared(gain: Floats, decay: Floats, offsets: Ints) -> Floats:
    """(N,) the decay of each document's position when sorted by gain, documents of equal gain sharing theirs."""
    query = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    rows = np.lexsort((-gain, query))
    starts = np.ones(rows.size, dtype=bool)
    starts[1:] = (gain[rows[1:]] != gain[rows[:-1]]) | (query[rows[1:]] != query[rows[:-1]])
    first = np.flatnonzero(starts)
    lengths = np.diff(np.append(first, rows.size))
    shared = np.empty(rows.size)
    shared[rows] = np.repeat(np.add.reduceat(decay, first) / lengths, lengths)
    return shared
