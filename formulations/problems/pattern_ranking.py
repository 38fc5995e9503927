"""Loss-augmented ranking by positions, for measures that are no inner product: AP, RR, ERR, whatever sees grades only.

sets         positions i < n, documents j < n, chains of documents that are alike but for their scores
variables    y, the order of the documents; r(y)_j = decay[position of j]
maximise     r(y)ᵀ scores - gain(y)                                        [paper 4, φ_dorm; it calls this impossible]
equivalent   the longest path in the lattice of how many of each chain are placed: inside a chain by falling score
integrality  a path is a flow of one unit: totally unimodular (network matrix)

>>> from formulations import solve
>>> problem = pattern_ranking([0.5, 0.2, 0.1], [0, 1, 1], "AP", decay=[1.0, 0.6, 0.4])
>>> solve(problem).order
array([0, 1, 2])
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints, finite, offsets_of
from formulations.errors import InvalidProblem
from formulations.forms.feature_map import POSITIONAL, FeatureMap
from formulations.forms.pattern_ranking import PatternBatch, PatternRanking
from formulations.forms.position_weights import Weights, laid_out
from formulations.patterns.losses import PatternLoss, relevant
from formulations.patterns.named import pattern_loss

__all__ = ["pattern_ranking", "stated_batch"]


@overload
def pattern_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: PatternLoss | str, *, decay: ArrayLike | Weights
) -> PatternRanking: ...
@overload
def pattern_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: PatternLoss | str,
    *,
    decay: ArrayLike | Weights,
    offsets: ArrayLike | Ints,
) -> PatternBatch: ...
def pattern_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: PatternLoss | str,
    *,
    decay: ArrayLike | Weights,
    offsets: ArrayLike | Ints | None = None,
) -> PatternRanking | PatternBatch:
    """The problem of one query, or with `offsets` of many: max over orders of r(y)ᵀ scores - gain(y).

    gain is the measure itself, so the loss of a margin is this maximum, plus the best gain, less the reference's r(y)ᵀ
    scores. Losses that are no inner product only need this; sums of discounts have a faster one in `ranking`.

    Args:
        scores: (n,) the score of each document.
        relevance: (n,) its grade. Losses that are not graded (AUC, AP, RR, P) take grades above 0 as relevant.
        loss: a loss of `formulations.patterns`, or its name: "AUC", "AP", "RR@10", "nDCG@10", "P@5", "ERR".
        decay: position weights of the scores, non-increasing: an array (zero beyond its end), or a function from n to
            one.
        offsets: (m + 1,) rows offsets[q] : offsets[q + 1] of scores and relevance belong to query q.

    Raises:
        InvalidProblem: a number is NaN or infinite, lengths do not fit, weights increase, no loss has this name.
    """
    heights, grades, bounds = laid_flat(scores, relevance, offsets)
    batch = stated_batch(
        heights, grades, bounds, loss, FeatureMap(POSITIONAL, finite("decay", laid_out(decay, bounds), 1))
    )
    return batch[0] if offsets is None else batch


def laid_flat(scores: ArrayLike, relevance: ArrayLike, offsets: ArrayLike | Ints | None) -> tuple[Floats, Floats, Ints]:
    """Scores, grades and offsets, of a single query too."""
    heights, grades = finite("scores", scores, 1), finite("relevance", relevance, 1)
    if heights.size != grades.size:
        raise InvalidProblem(f"scores ({heights.size}) and relevance ({grades.size}) need one entry a document")
    if not heights.size:
        raise InvalidProblem("a ranking needs one document at least")
    bounds = [0, heights.size] if offsets is None else offsets
    return heights, grades, offsets_of("offsets", np.asarray(bounds), heights.size)


def stated_batch(
    scores: Floats, relevance: Floats, offsets: Ints, loss: PatternLoss | str, feature_map: FeatureMap
) -> PatternBatch:
    """The batch of a loss under a feature map."""
    chosen = pattern_loss(loss)
    grade = relevance if chosen.graded else relevant(relevance)
    return PatternBatch(scores, grade, feature_map, chosen.earnings(relevance, offsets), offsets)
