"""Loss-augmented rankings: the most violated order of a query, or of each query of a batch."""

from __future__ import annotations

from typing import TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints, check_type, finite, numbers, offsets_of
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
)
from formulations.sorting import alike, count_pairs

Loss: TypeAlias = GainTable | RelevanceLoss | str
"""A name ("AUC", "AP", "RR@10", "nDCG@10", "P@5", "ERR"), a loss such as `TableLoss`, or a `GainTable`."""


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
    offsets: ArrayLike,
) -> RankTwoBatch: ...
def ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    position_weights: ArrayLike | Weights,
    offsets: ArrayLike | None = None,
) -> RankTwoAssignment | RankTwoBatch:
    """Loss-augmented ranking of one query, or of a batch with `offsets`.

    variables    π[i, j] = 1 if document j < n is at position i < k
    maximize     Σ (position_weights[i] scores[j] - discount[i] gain[j]) π[i, j]              [ORM, eq. 27, 28]
    subject to   position   each position holds one document
                 document   each document is at one position at most
    integrality  totally unimodular (assignment); the profit has rank two, so `exact` needs sorts and merges only

    Args:
        scores: (n,) the score of each document.
        gain: (n,) the gain of each document in the measure, b(y).
        discount: position weights of the measure: an array (cut to n positions; weight zero beyond its end), or a
            function from n to one. Non-increasing.
        position_weights: position weights of the scores, in the same way; the longer of the two gives the number of
            positions.
        offsets: (m + 1,) rows offsets[q] : offsets[q + 1] of scores and gain belong to query q.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, weights increase.

    >>> from formulations import solve
    >>> problem = ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])
    >>> solve(problem).order
    array([1, 2])
    """
    heights, worth = numbers("scores", scores), numbers("gain", gain)
    if offsets is not None:
        bounds = offsets_of("offsets", offsets, heights.size)
        return RankTwoBatch(heights, worth, laid_out(discount, bounds), laid_out(position_weights, bounds), bounds)
    weights = [weights_for(each, heights.size) for each in (discount, position_weights)]
    positions = min(max(part.size for part in weights), heights.size)
    a, c = (np.pad(part[:positions], (0, positions - part[:positions].size)) for part in weights)
    return RankTwoAssignment(heights, worth, a, c)


@overload
def relevance_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: Loss, *, position_weights: ArrayLike | Weights
) -> RelevanceRanking: ...
@overload
def relevance_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: Loss, *, position_weights: ArrayLike | Weights, offsets: ArrayLike
) -> RelevanceBatch: ...
def relevance_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: Loss,
    *,
    position_weights: ArrayLike | Weights,
    offsets: ArrayLike | None = None,
) -> RelevanceRanking | RelevanceBatch:
    """Loss-augmented ranking with the positional map, for losses that depend on grades only: AP, RR, ERR and others.

    variables    y, the order of the documents; r(y)_j = position_weights[position of j]
    maximize     r(y)ᵀ scores - gain(y), gain the measure itself                                     [paper 4, φ_dorm]
    equivalent   the longest path in the lattice of counts of each chain (documents that differ in their scores only);
                 inside a chain by falling score
    integrality  a path is a flow of one unit: totally unimodular (network matrix)

    The margin loss is this maximum plus the best gain minus the reference's r(y)ᵀ scores. Sums of discounts have a
    faster argmax in `ranking`.

    Args:
        scores: (n,) the score of each document.
        relevance: (n,) its grade. Losses that are not graded (AUC, AP, RR, P) take grades above 0 as relevant.
        loss: the gains, see `Loss`.
        position_weights: position weights of the scores, non-increasing: an array (zero beyond its end), or a function
            from n to one.
        offsets: (m + 1,) rows offsets[q] : offsets[q + 1] of scores and relevance belong to query q; without them the
            problem is one query.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, weights increase, no loss has this name.

    >>> from formulations import solve
    >>> problem = relevance_ranking([0.5, 0.2, 0.1], [0, 1, 1], "AP", position_weights=[1.0, 0.6, 0.4])
    >>> solve(problem).order
    array([0, 1, 2])
    """
    heights, grades, bounds = flatten_queries(scores, relevance, offsets)
    weight = FeatureMap(POSITIONAL, laid_out(position_weights, bounds))
    batch = relevance_batch(heights, grades, bounds, loss, weight)
    return batch[0] if offsets is None else batch


def flatten_queries(scores: ArrayLike, relevance: ArrayLike, offsets: ArrayLike | None) -> tuple[Floats, Floats, Ints]:
    """Scores, grades and offsets as flat arrays, also for a single query."""
    heights, grades = finite("scores", scores, 1), finite("relevance", relevance, 1)
    if heights.size != grades.size:
        raise InvalidProblemError(f"scores ({heights.size}) and relevance ({grades.size}) need one entry a document")
    if not heights.size:
        raise InvalidProblemError("a ranking needs at least one document")
    bounds = [0, heights.size] if offsets is None else offsets
    return heights, grades, offsets_of("offsets", bounds, heights.size)


def relevance_batch(
    scores: Floats, relevance: Floats, offsets: Ints, loss: Loss, feature_map: FeatureMap
) -> RelevanceBatch:
    """The batch of a loss under a feature map."""
    if isinstance(loss, GainTable):
        return RelevanceBatch(scores, relevance, feature_map, loss, offsets)
    gains = get_relevance_loss(loss).gain_table(relevance, offsets)
    return RelevanceBatch(scores, grade_classes(relevance, loss), feature_map, gains, offsets)


def grade_classes(relevance: Floats, loss: Loss) -> Floats:
    """The grades that the loss distinguishes: binary if it is not graded; unchanged for a table."""
    graded = isinstance(loss, GainTable) or get_relevance_loss(loss).graded
    return relevance if graded else relevant(relevance)


@overload
def pairwise_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: Loss = "AUC", *, scale: float = 1.0
) -> RelevanceRanking: ...
@overload
def pairwise_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: Loss = "AUC", *, offsets: ArrayLike, scale: float = 1.0
) -> RelevanceBatch: ...
def pairwise_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: Loss = "AUC", *, offsets: ArrayLike | None = None, scale: float = 1.0
) -> RelevanceRanking | RelevanceBatch:
    """Loss-augmented ranking with the pairwise map.

    variables    y, the order of the documents; r(y)_j = κ (higher grades below j - lower grades above j)
    maximize     r(y)ᵀ scores - gain(y)                                                     [paper 4, φ_po, SVMmap]
    equivalent   as `relevance_ranking`, with its integrality

    With two grades κ = 1/(n₊ n₋) and r = -κ b on a relevant document with b others above it. The order by grade has
    r = 0, and with AUC the loss, maximum + 1, is the mean of max(0, 1 - s_i + s_j) over pairs: the pairwise hinge.

    Args:
        scores, relevance, loss, offsets: as in `relevance_ranking`. A pair is a relevant and an irrelevant document, or
            for graded losses any two documents of unequal grade.
        scale: κ times the number of pairs; a query without pairs has κ = 0.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, no loss has this name, or scale is not
            a number >= 0.

    >>> from formulations import solve
    >>> solution = solve(pairwise_ranking([0.5, 0.2, 0.1], [0, 1, 1], "AP"))
    >>> solution.order, round(solution.value, 6)
    (array([0, 1, 2]), -0.233333)
    """
    heights, grades, bounds = flatten_queries(scores, relevance, offsets)
    pairs = count_pairs(alike(bounds, grade_classes(grades, loss)), bounds)
    kappa: Floats = np.divide(strength_of(scale), pairs, out=np.zeros(pairs.size), where=pairs > 0)
    batch = relevance_batch(heights, grades, bounds, loss, FeatureMap(PAIRWISE, kappa))
    return batch[0] if offsets is None else batch


@overload
def first_relevant_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: Loss = "RR", *, scale: float = 1.0, shared: bool = False
) -> RelevanceRanking: ...
@overload
def first_relevant_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: Loss = "RR",
    *,
    offsets: ArrayLike,
    scale: float = 1.0,
    shared: bool = False,
) -> RelevanceBatch: ...
def first_relevant_ranking(
    scores: ArrayLike,
    relevance: ArrayLike,
    loss: Loss = "RR",
    *,
    offsets: ArrayLike | None = None,
    scale: float = 1.0,
    shared: bool = False,
) -> RelevanceRanking | RelevanceBatch:
    """Loss-augmented ranking with the first-relevant map.

    variables    y, the order; r(y) = 1 on every document above the first relevant one, minus their number on that one
    maximize     r(y)ᵀ scores - gain(y)                                                   [paper 4, φ_mrr, SVMmrr]
    equivalent   the longest path in the lattice of counts: others by falling score, the first relevant one the lowest
    integrality  as `relevance_ranking`

    A query without relevant documents has r = 0.

    Args:
        scores, relevance, loss, offsets: as in `relevance_ranking`; relevant are grades above 0, for graded losses too.
        scale: the value of r for each document above the first relevant one.
        shared: whether the scale is divided by the number n₋ of irrelevant documents, for an r of the same size as
            under the pairwise map.

    Raises:
        InvalidProblemError: as `pairwise_ranking`.

    >>> from formulations import solve
    >>> solve(first_relevant_ranking([0.5, 0.2, 0.1], [0, 1, 1], "RR")).order
    array([0, 2, 1])
    """
    heights, grades, bounds = flatten_queries(scores, relevance, offsets)
    check_type("shared", shared, bool)
    good = np.add.reduceat(relevant(grades), bounds[:-1])
    others = np.diff(bounds) - good
    strength = strength_of(scale)
    weight = np.where(good > 0, strength / np.maximum(others, 1.0) if shared else strength, 0.0)
    batch = relevance_batch(heights, grades, bounds, loss, FeatureMap(FIRST, weight))
    return batch[0] if offsets is None else batch
