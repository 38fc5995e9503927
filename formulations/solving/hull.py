"""The product of loss and margin over all rankings: vertices of the hull of (D, M), by a search over directions.

A call of the argmax in direction t > 0 finds a ranking of greatest D + t M: a vertex of the hull. Two vertices enclose
the best product of the hull; the next direction is that of the edge between them, or, where the product is greatest at
one of them, the one in which it rises there. The search ends where a call finds nothing beyond the edge: it is one of
the hull, and its bound is the least that any direction proves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.display import CompactReprMixin
from formulations.problems.problem import Solution
from formulations.problems.ranking import RankTwoBatch
from formulations.problems.rescaled_ranking import RescaledBatch, RescaledRanking, product_bound
from formulations.solvers.batch_solution import BatchSolution

Ask = Callable[[RankTwoBatch], tuple[Ints, Floats]]
"""From rankings to orders (N,), documents counted within their query, and proven bounds (m,)."""

MOST = 40
"""Calls of a query after which its search ends, with what is proven so far."""

ENOUGH = 1e-9
"""Relative distance of value and bound, or of a vertex from the edge, that counts as none."""

FARTHEST = 1e12
"""The steepest direction: where no margin is positive nothing else proves that."""


@dataclass(frozen=True, eq=False)
class RescaledSolution(CompactReprMixin):
    """For every query of a batch: the best order found, documents counted within their query, its value, a proven
    bound, the direction t that proves it, the order which is best there, and the calls it took."""

    problems: RescaledBatch
    order: Ints
    value: Floats
    bound: Floats
    direction: Floats
    proof: Ints
    calls: Ints
    solver: str = ""
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.problems)

    @property
    def loss(self) -> Floats:
        """(m,) D of each order, which its margin multiplies."""
        return _measured(self.problems, self.order)[0]

    def proved(self, exactly: int = 0) -> RescaledSolution:
        """The same answer with bounds from dual prices of the rankings that prove it, whoever found them; of so many
        the prices are checked in rational numbers too (`BatchSolution.proved`)."""
        ranking, t = self.problems.ranking, self.direction
        ahead = ranking.with_scores(np.repeat(t, np.diff(ranking.offsets)) * ranking.scores)
        nothing, ways = np.zeros(len(self)), np.zeros(len(self), dtype=np.int8)
        there = BatchSolution(ahead, self.proof, nothing, nothing, ways, (self.solver,), self.solver).proved()
        there = there.proved(exactly) if exactly else there
        bound = product_bound(_constant(self.problems, t) + there.bound, t)
        return replace(self, bound=np.maximum(bound, self.value))

    def __getitem__(self, query: int) -> Solution:
        """The solution of one query, with the direction and the prices that prove its bound."""
        return self.solution(query, self.problems[query])

    def solution(self, query: int, problem: RescaledRanking) -> Solution:
        """The same of this query as it is stated, perhaps with positions of weight 0."""
        low = int(self.problems.ranking.offsets[query])
        order, proof = (orders[low : low + problem.positions] for orders in (self.order, self.proof))
        t = float(self.direction[query])
        prices = problem.toward(t).recovered_dual(proof)
        solution = problem.solution(order, np.concatenate([[t], prices]))
        return solution.told_by(solver=self.solver, message=f"{self.calls[query]} vertices of the hull")


def search(problems: RescaledBatch, ask: Ask) -> RescaledSolution:
    """The search for every query of the batch at once; queries that are done are left out once they are half of it."""
    ranking = problems.ranking
    kept = _corners(problems)
    direction = _next(kept)
    order = kept.order_of_best()
    best = _measured(problems, order)
    value = best[0] * best[1]
    bound, proven, proof = np.full(len(problems), np.inf), direction.copy(), order.copy()
    calls = np.zeros(len(problems), dtype=np.int64)
    mine, part = np.arange(len(problems)), problems
    open_ = np.ones(len(problems), dtype=bool)
    while open_.any() and int(calls.max()) < MOST:
        if 2 * int(open_[mine].sum()) <= mine.size:
            mine = np.flatnonzero(open_)
            part = _only(problems, mine)
        t, offsets = direction[mine], part.ranking.offsets
        found, bounds = ask(part.ranking.with_scores(np.repeat(t, np.diff(offsets)) * part.ranking.scores))
        found = _tidied(part, found)
        loss, margin = _measured(part, found)
        proved = product_bound(_constant(part, t) + bounds, t)
        better, rises = proved < bound[mine], _better((loss, margin), (best[0][mine], best[1][mine]))
        _put(proof, ranking.offsets, mine, found, offsets, better)
        _put(order, ranking.offsets, mine, found, offsets, rises)
        bound[mine[better]], proven[mine[better]] = proved[better], t[better]
        best[0][mine[rises]], best[1][mine[rises]] = loss[rises], margin[rises]
        value = best[0] * best[1]
        calls[mine] += open_[mine]
        ahead = kept.moved(mine, loss, margin, t)
        done = ~ahead | (bound[mine] - value[mine] <= ENOUGH * np.maximum(value[mine], 0.0))
        open_[mine[done]] = False
        direction = _next(kept)
    return RescaledSolution(problems, order, value, np.maximum(bound, value), proven, proof, calls)


@dataclass(eq=False)
class _Kept:
    """Two vertices of every hull between which the best product lies, each (loss, margin), and their orders."""

    first: tuple[Floats, Floats]
    last: tuple[Floats, Floats]
    orders: tuple[Ints, Ints]
    offsets: Ints

    def order_of_best(self) -> Ints:
        """(N,) the order of the better vertex of each query."""
        takes_last = _better(self.last, self.first)
        return np.where(np.repeat(takes_last, np.diff(self.offsets)), self.orders[1], self.orders[0])

    def moved(self, mine: Ints, loss: Floats, margin: Floats, t: Floats) -> NDArray[np.bool_]:
        """Which of these queries a vertex found in direction t brings further; it replaces the one on its side."""
        (d, m), (e, n) = [(part[0][mine], part[1][mine]) for part in (self.first, self.last)]
        edge = np.maximum(d + t * m, e + t * n)
        ahead = loss + t * margin > edge + ENOUGH * (np.abs(d) + np.abs(t * m) + np.abs(e) + np.abs(t * n))
        down = ahead & (loss > t * margin)  # along the tangent the product rises towards less loss
        for part, side in ((self.first, down), (self.last, ahead & ~down)):
            part[0][mine[side]], part[1][mine[side]] = loss[side], margin[side]
        return ahead


def _better(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> NDArray[np.bool_]:
    """Whether the product of one (loss, margin) is above that of the other; of equals, to rounding, the larger loss is
    better, so that the order of the input does not choose."""
    (d, m), (e, n) = one, other
    slack = ENOUGH * np.abs(e * n)
    return np.asarray((d * m > e * n + slack) | ((d * m >= e * n - slack) & (d > e * (1.0 + ENOUGH))))


def _corners(problems: RescaledBatch) -> _Kept:
    """The order of greatest loss and that of greatest margin."""
    ranking = problems.ranking
    query = np.repeat(np.arange(len(problems)), np.diff(ranking.offsets))
    starts = np.repeat(ranking.offsets[:-1], np.diff(ranking.offsets))
    worst = _tidied(problems, np.lexsort((-ranking.scores, ranking.gain, query)) - starts)
    widest = np.lexsort((ranking.gain, -ranking.scores, query)) - starts
    return _Kept(_measured(problems, worst), _measured(problems, widest), (worst, widest), ranking.offsets)


def _next(kept: _Kept) -> Floats:
    """The direction to ask next."""
    (d, m), (e, n) = kept.first, kept.last
    less, more = d - e, n - m
    at_first = (less * m >= more * d) | (more <= 0.0)
    at_last = (less * n <= more * e) | (less <= 0.0)
    with np.errstate(all="ignore"):
        inside = less / more
        t = np.where(at_first & (m > 0.0), d / m, np.where(at_last, e / n, inside))
    t = np.where((t > 0.0) & np.isfinite(t), t, np.where(d > 0.0, FARTHEST, 0.0))  # no margin, or no loss, to be had
    return np.clip(t, 1.0 / FARTHEST, FARTHEST)


def _tidied(problems: RescaledBatch, order: Ints) -> Ints:
    """The same orders, inside each run of positions of equal discount sorted by score, then by gain: the loss stays,
    the margin does not fall, and which of equally good orders it is does not follow the order of the input."""
    ranking = problems.ranking
    sizes = np.diff(ranking.offsets)
    starts, query = np.repeat(ranking.offsets[:-1], sizes), np.repeat(np.arange(sizes.size), sizes)
    run = np.cumsum(np.diff(ranking.discount, prepend=ranking.discount[0]) != 0.0)
    rows = starts + order
    return np.asarray(order[np.lexsort((ranking.gain[rows], -ranking.scores[rows], run, query))])


def _measured(problems: RescaledBatch, order: Ints) -> tuple[Floats, Floats]:
    """(m,) loss and margin of orders."""
    ranking, offsets = problems.ranking, problems.ranking.offsets
    rows = np.repeat(offsets[:-1], np.diff(offsets)) + order
    earned = _sums(ranking.discount * ranking.gain[rows], offsets)
    placed = _sums(ranking.decay * ranking.scores[rows], offsets)
    return np.maximum(_ideal(problems) - earned, 0.0), 1.0 + placed - _sums(
        problems.reference * ranking.scores, offsets
    )


def _constant(problems: RescaledBatch, t: Floats) -> Floats:
    """(m,) what D + t M is more than a ranking at the scores times t is worth."""
    ranking = problems.ranking
    return _ideal(problems) + t * (1.0 - _sums(problems.reference * ranking.scores, ranking.offsets))


def _ideal(problems: RescaledBatch) -> Floats:
    """(m,) best: the largest gains at the first positions."""
    ranking = problems.ranking
    query = np.repeat(np.arange(len(problems)), np.diff(ranking.offsets))
    return _sums(ranking.discount * ranking.gain[np.lexsort((-ranking.gain, query))], ranking.offsets)


def _sums(values: Floats, offsets: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, offsets[:-1]))


def _only(problems: RescaledBatch, queries: Ints) -> RescaledBatch:
    """The batch of these queries alone."""
    ranking, sizes = problems.ranking, np.diff(problems.ranking.offsets)[queries]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(offsets[-1]) + np.repeat(ranking.offsets[queries] - offsets[:-1], sizes)
    scores, gain, discount, decay = (
        part[rows] for part in (ranking.scores, ranking.gain, ranking.discount, ranking.decay)
    )
    return RescaledBatch(RankTwoBatch(scores, gain, discount, decay, offsets), problems.reference[rows])


def _put(all_: Ints, bounds: Ints, mine: Ints, found: Ints, offsets: Ints, which: NDArray[np.bool_]) -> None:
    """Write the orders of some of these queries to where they stand in the whole batch."""
    sizes = np.diff(offsets)
    there = np.arange(found.size) + np.repeat(bounds[mine] - offsets[:-1], sizes)
    rows = np.repeat(which, sizes)
    all_[there[rows]] = found[rows]
