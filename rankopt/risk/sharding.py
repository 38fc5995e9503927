"""The plan: how queries are cut into shards. It belongs to the data, never to the number of workers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formulations.problems.ranking import ranking
from formulations.solvers.solver import Solver
from rankopt.errors import DataError
from rankopt.losses.argmax_admissible import AdmissibleBatch
from rankopt.losses.argmax_slots import SlotLoss
from rankopt.losses.by_query import query_of_row, sorted_rows
from rankopt.losses.constrained import ConstrainedLoss
from rankopt.losses.decay import Decay
from rankopt.losses.loss import Loss
from rankopt.losses.margin import MarginLoss, Reference
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.risk.shard import Shard
from rankopt.scorers.linear import row_scores

if TYPE_CHECKING:
    from rankopt.constraints.admissible import Admissible
    from rankopt.data.arrangement import Arrangement

__all__ = ["SHARD_ROWS", "constrained_shards", "margin_shards", "orderable", "pairwise_shards", "slot_shards"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHARD_ROWS = 1 << 17
"""Rows after which a shard is closed."""


def orderable(gain: Floats, discount: Floats, offsets: Ints) -> NDArray[np.bool_]:
    """(m,) whether a query has something to order: its best order is worth more than its worst."""
    query = query_of_row(offsets)
    best, worst = gain[sorted_rows(query, gain)], gain[sorted_rows(query, -gain)]
    return np.asarray(np.add.reduceat(discount * (best - worst), offsets[:-1]) > 0)


def cut(offsets: Ints, rows: int | None = None) -> list[tuple[int, int]]:
    """Ranges of queries, each of at least `rows` rows but the last; None is SHARD_ROWS."""
    rows = SHARD_ROWS if rows is None else rows
    ranges, first = [], 0
    for query in range(1, offsets.size):
        if offsets[query] - offsets[first] >= rows or query == offsets.size - 1:
            ranges.append((first, query))
            first = query
    return ranges


def margin_shards(
    queries: Arrangement,
    measure: Any,
    decay: Decay,
    reference: Reference,
    solver: Solver,
) -> tuple[Shard, ...]:
    """Shards of the queries that have something to order, with the margin bound of a positional measure.

    The weights of the queries that stay are scaled to sum to 1.
    Raises DataError where no query has anything to order.
    """
    relevance = _relevance(queries)
    gain = measure.gain(relevance, queries.offsets)
    useful = orderable(gain, measure.discounts(queries.offsets), queries.offsets)
    queries = _kept(queries, useful, f"{measure} tells apart")
    gain = measure.gain(_relevance(queries), queries.offsets)
    shards = []
    for first, last in cut(queries.offsets):
        low, high = queries.offsets[first], queries.offsets[last]
        offsets = queries.offsets[first : last + 1] - low
        problem = ranking(
            np.zeros(high - low),
            gain[low:high],
            discount=measure.discount,
            decay=lambda n: decay.weights(n, measure),
            offsets=offsets,
        )
        loss = MarginLoss.build(problem, reference, solver)
        shards.append(_shard(queries, first, last, loss))
    return tuple(shards)


def constrained_shards(
    queries: Arrangement,
    measure: Any,
    decay: Decay,
    reference: Reference,
    solver: Solver | str,
    admissible: Admissible,
    start: Floats,
) -> tuple[Shard, ...]:
    """Shards of the queries in which admissible orders differ in worth, with the margin bound under the set.

    start: (d,) the weights whose scores break ties of the convex reference. Raises DataError naming a query that has
    no admissible ranking.
    """
    gain = measure.gain(_relevance(queries), queries.offsets)
    useful = orderable(gain, measure.discounts(queries.offsets), queries.offsets)
    queries = _kept(queries, useful, f"{measure} tells apart")
    sets = admissible.of_queries(queries)
    lengths = [(one.documents, one.positions) for one in sets]
    batch = AdmissibleBatch(
        sets,
        measure.gain(_relevance(queries), queries.offsets),
        np.concatenate([measure.discount(n)[:k] for n, k in lengths]),
        np.concatenate([decay.weights(n, measure)[:k] for n, k in lengths]),
        queries.offsets,
        solver,
    ).with_best()
    useful = batch.orderable()
    queries = _kept(queries, useful, f"{measure} tells apart in the admissible rankings")
    batch = batch.some(np.flatnonzero(useful))
    shards = []
    for first, last in cut(queries.offsets):
        low, high = queries.offsets[first], queries.offsets[last]
        scores = row_scores(queries.features, queries.rows[low:high], start)
        loss = ConstrainedLoss.build(batch.some(np.arange(first, last)), reference, scores)
        shards.append(_shard(queries, first, last, loss))
    return tuple(shards)


def pairwise_shards(queries: Arrangement) -> tuple[Shard, ...]:
    """Shards of the queries with documents of different grades, with the pairwise hinge."""
    relevance, starts = _relevance(queries), queries.offsets[:-1]
    useful = np.maximum.reduceat(relevance, starts) > np.minimum.reduceat(relevance, starts)
    queries = _kept(queries, useful, "have different grades")
    shards = []
    for first, last in cut(queries.offsets):
        low, high = queries.offsets[first], queries.offsets[last]
        offsets = queries.offsets[first : last + 1] - low
        loss = PairwiseHinge(_relevance(queries)[low:high], offsets)
        shards.append(_shard(queries, first, last, loss))
    return tuple(shards)


def slot_shards(queries: Arrangement, benefit: Floats, bound: str, solver: Solver | str) -> tuple[Shard, ...]:
    """Shards of the queries in which matchings differ in worth, with a bound of the loss of a matching.

    benefit: (N, k) what a document is worth in each slot.
    """
    useful = SlotLoss(benefit, queries.offsets, bound, solver).orderable()
    rows = np.repeat(useful & (queries.weights > 0), np.diff(queries.offsets))
    queries = _kept(queries, useful, "belong in different slots")
    benefit = benefit[rows]
    shards = []
    for first, last in cut(queries.offsets):
        low, high = queries.offsets[first], queries.offsets[last]
        offsets = queries.offsets[first : last + 1] - low
        loss = SlotLoss.build(benefit[low:high], offsets, bound, solver)
        shards.append(_shard(queries, first, last, loss, benefit.shape[1]))
    return tuple(shards)


def _relevance(queries: Arrangement) -> Floats:
    if queries.relevance is None:
        raise DataError("training cannot learn an order because the queries carry no relevance; give y")
    return queries.relevance


def _kept(queries: Arrangement, useful: NDArray[np.bool_], trait: str) -> Arrangement:
    """The queries with something to order and a weight, their weights scaled to sum to 1."""
    kept = np.flatnonzero(useful & (queries.weights > 0))
    if not kept.size:
        raise DataError(
            f"training cannot learn an order because no query has documents that {trait}; "
            "give queries with at least two different grades"
        )
    chosen = queries if kept.size == len(queries) else queries.select(kept)
    return replace(chosen, weights=chosen.weights / chosen.weights.sum())


def _shard(queries: Arrangement, first: int, last: int, loss: Loss, slots: int | None = None) -> Shard:
    """The queries first <= q < last with their loss."""
    low, high = queries.offsets[first], queries.offsets[last]
    offsets = queries.offsets[first : last + 1] - low
    return Shard(queries.features, queries.rows[low:high], offsets, queries.weights[first:last], loss, slots, first)
