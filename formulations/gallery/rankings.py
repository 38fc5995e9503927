"""Loss-augmented ranking: the most violated order of one query, or of a whole batch.

sets         positions i < k, documents j < n
variables    π[i, j] = 1 where document j stands at position i
maximise     Σ (decay[i] scores[j] - discount[i] gain[j]) π[i, j]                      [ORM, eq. 27, 28]
subject to   position   each position holds one document
             document   each document stands at one position at most
integrality  totally unimodular (assignment); the profit matrix has rank two, so `exact` needs sorts and merges only

>>> from formulations import solve
>>> problem = ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])
>>> solve(problem).order
array([1, 2])

Loss-augmented ranking by positions, for measures that are no inner product: AP, RR, ERR, whatever sees grades only.

sets         positions i < n, documents j < n, chains of documents that are alike but for their scores
variables    y, the order of the documents; r(y)_j = decay[position of j]
maximise     r(y)ᵀ scores - gain(y)                                        [paper 4, φ_dorm; it calls this impossible]
equivalent   the longest path in the lattice of how many of each chain are placed: inside a chain by falling score
integrality  a path is a flow of one unit: totally unimodular (network matrix)

>>> from formulations import solve
>>> problem = relevance_ranking([0.5, 0.2, 0.1], [0, 1, 1], "AP", position_weights=[1.0, 0.6, 0.4])
>>> solve(problem).order
array([0, 1, 2])

Loss-augmented ranking by pairs: the most violated order of one query, or of a whole batch, under φ_po.

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

Loss-augmented ranking by the first relevant document: the most violated order under φ_mrr.

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

from formulations.arrays import Floats, Ints, finite, offsets_of
from formulations.errors import InvalidProblemError
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch, Weights, laid_out, weights_for
from formulations.problems.relevance_losses import RelevanceLoss, get_relevance_loss, relevant
from formulations.problems.relevance_ranking import RelevanceBatch, RelevanceRanking
from formulations.problems.relevance_values import (
    FIRST,
    PAIRWISE,
    POSITIONAL,
    FeatureMap,
    GainTable,
    strength_of,
    unequal_pairs,
)


@overload
def ranking(
    scores: ArrayLike, gain: ArrayLike, *, discount: ArrayLike | Weights, position_weights: ArrayLike | Weights
) -> RankTwoAssignment: ...
@overload
def ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    position_weights: ArrayLike | Weights,
    offsets: ArrayLike | Ints,
) -> RankTwoBatch: ...
def ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    position_weights: ArrayLike | Weights,
    offsets: ArrayLike | Ints | None = None,
) -> RankTwoAssignment | RankTwoBatch:
    """The problem of one query, or with `offsets` of many.

    Args:
        scores: (n,) the score of each document.
        gain: (n,) what the measure counts for each document, b(y).
        discount: position weights of the measure: an array (cut to n positions; weight zero beyond its end), or a
            function from n to one. Non-increasing.
        position_weights: position weights of the scores, in the same way; the longer of the two says how many positions
        there are.
        offsets: (m + 1,) rows offsets[q] : offsets[q + 1] of scores and gain belong to query q.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, weights increase.
    """
    heights, worth = np.asarray(scores, dtype=np.float64), np.asarray(gain, dtype=np.float64)
    if offsets is not None:
        bounds = np.asarray(offsets, dtype=np.int64)
        return RankTwoBatch(heights, worth, laid_out(discount, bounds), laid_out(position_weights, bounds), bounds)
    weights = [weights_for(given, heights.size) for given in (discount, position_weights)]
    positions = min(max(part.size for part in weights), heights.size)
    a, c = (np.pad(part[:positions], (0, positions - part[:positions].size)) for part in weights)
    return RankTwoAssignment(heights, worth, a, c)


@overload
def relevance_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: GainTable | RelevanceLoss | str,
    *,
    position_weights: ArrayLike | Weights,
) -> RelevanceRanking: ...
@overload
def relevance_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: GainTable | RelevanceLoss | str,
    *,
    position_weights: ArrayLike | Weights,
    offsets: ArrayLike | Ints,
) -> RelevanceBatch: ...
def relevance_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: GainTable | RelevanceLoss | str,
    *,
    position_weights: ArrayLike | Weights,
    offsets: ArrayLike | Ints | None = None,
) -> RelevanceRanking | RelevanceBatch:
    """The problem of one query, or with `offsets` of many: max over orders of r(y)ᵀ scores - gain(y).

    gain is the measure itself, so the loss of a margin is this maximum, plus the best gain, less the reference's r(y)ᵀ
    scores. Losses that are no inner product only need this; sums of discounts have a faster one in `ranking`.

    Args:
        scores: (n,) the score of each document.
        relevance: (n,) its grade. Losses that are not graded (AUC, AP, RR, P) take grades above 0 as relevant.
        loss: the gains: a name ("AUC", "AP", "RR@10", "nDCG@10", "P@5", "ERR"), a loss such as
            `TableLoss`, or a `GainTable`.
        position_weights: position weights of the scores, non-increasing: an array (zero beyond its end), or a function
        from n to
            one.
        offsets: (m + 1,) rows offsets[q] : offsets[q + 1] of scores and relevance belong to query q.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, weights increase, no loss has this name.
    """
    heights, grades, bounds = laid_flat(scores, relevance, offsets)
    batch = stated_batch(
        heights,
        grades,
        bounds,
        loss,
        FeatureMap(POSITIONAL, finite("position_weights", laid_out(position_weights, bounds), 1)),
    )
    return batch[0] if offsets is None else batch


def laid_flat(scores: ArrayLike, relevance: ArrayLike, offsets: ArrayLike | Ints | None) -> tuple[Floats, Floats, Ints]:
    """Scores, grades and offsets, of a single query too."""
    heights, grades = finite("scores", scores, 1), finite("relevance", relevance, 1)
    if heights.size != grades.size:
        raise InvalidProblemError(f"scores ({heights.size}) and relevance ({grades.size}) need one entry a document")
    if not heights.size:
        raise InvalidProblemError("a ranking needs one document at least")
    bounds = [0, heights.size] if offsets is None else offsets
    return heights, grades, offsets_of("offsets", np.asarray(bounds), heights.size)


def stated_batch(
    scores: Floats, relevance: Floats, offsets: Ints, loss: GainTable | RelevanceLoss | str, feature_map: FeatureMap
) -> RelevanceBatch:
    """The batch of a loss under a feature map."""
    if isinstance(loss, GainTable):
        return RelevanceBatch(scores, relevance, feature_map, loss, offsets)
    gains = get_relevance_loss(loss).gain_table(relevance, offsets)
    return RelevanceBatch(scores, grade_classes(relevance, loss), feature_map, gains, offsets)


def grade_classes(relevance: Floats, loss: GainTable | RelevanceLoss | str) -> Floats:
    """The grades that the loss distinguishes: relevant or not where it is not graded; those of a table as they are."""
    graded = isinstance(loss, GainTable) or get_relevance_loss(loss).graded
    return relevance if graded else relevant(relevance)


@overload
def pairwise_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: GainTable | RelevanceLoss | str = "AUC", *, scale: float = 1.0
) -> RelevanceRanking: ...
@overload
def pairwise_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: GainTable | RelevanceLoss | str = "AUC",
    *,
    offsets: ArrayLike | Ints,
    scale: float = 1.0,
) -> RelevanceBatch: ...
def pairwise_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: GainTable | RelevanceLoss | str = "AUC",
    *,
    offsets: ArrayLike | Ints | None = None,
    scale: float = 1.0,
) -> RelevanceRanking | RelevanceBatch:
    """The problem of one query, or with `offsets` of many: max over orders of r(y)ᵀ scores - gain(y).

    Args:
        scores, relevance, loss, offsets: as in `relevance_ranking`. Pairs are of a relevant document and another, and
        of
            any two unequal grades where the loss is graded.
        scale: κ times the number of pairs; a query without pairs has κ = 0.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, no loss has this name, strength is no
        number
            from 0 on.
    """
    heights, grades, bounds = laid_flat(scores, relevance, offsets)
    pairs = unequal_pairs(grade_classes(grades, loss), bounds)
    kappa: Floats = np.divide(strength_of(scale), pairs, out=np.zeros(pairs.size), where=pairs > 0)
    batch = stated_batch(heights, grades, bounds, loss, FeatureMap(PAIRWISE, kappa))
    return batch[0] if offsets is None else batch


@overload
def first_relevant_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: GainTable | RelevanceLoss | str = "RR",
    *,
    scale: float = 1.0,
    shared: bool = False,
) -> RelevanceRanking: ...
@overload
def first_relevant_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: GainTable | RelevanceLoss | str = "RR",
    *,
    offsets: ArrayLike | Ints,
    scale: float = 1.0,
    shared: bool = False,
) -> RelevanceBatch: ...
def first_relevant_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: GainTable | RelevanceLoss | str = "RR",
    *,
    offsets: ArrayLike | Ints | None = None,
    scale: float = 1.0,
    shared: bool = False,
) -> RelevanceRanking | RelevanceBatch:
    """The problem of one query, or with `offsets` of many: max over orders of r(y)ᵀ scores - gain(y).

    Args:
        scores, relevance, loss, offsets: as in `relevance_ranking`; relevant are grades above 0, for graded losses too.
        scale: what each document above the first relevant one has in r.
        shared: whether the strength is divided by the number of others n₋ of the query, so that r is of the size that
            it has under the pairwise map.

    A query without relevant documents has r = 0.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, no loss has this name, strength is no
        number
            from 0 on.
    """
    heights, grades, bounds = laid_flat(scores, relevance, offsets)
    good = np.add.reduceat(relevant(grades), bounds[:-1])
    others = np.diff(bounds) - good
    whole = strength_of(scale)
    weight = np.where(good > 0, whole / np.maximum(others, 1.0) if shared else whole, 0.0)
    batch = stated_batch(heights, grades, bounds, loss, FeatureMap(FIRST, weight))
    return batch[0] if offsets is None else batch
