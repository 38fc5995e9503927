"""Loss-augmented ranking under slack rescaling: the product of loss and margin, a search with a proven bound.

maximize     D(π) M(π),   D = best - Σ discount[i] gain[π_i] >= 0                            [paper 2, section 6]
                          M = 1 + Σ c[i] scores[π_i] - Σ reference[j] scores[j]
subject to   π ranks k of n documents at k positions; c the position weights
integrality  none: a quadratic assignment problem, NP-hard even for c = discount = 1 at k positions and 0 behind

Every ranking is a point (D, M). A ranking that maximizes D + t M for some t > 0 is a vertex of their convex hull, and
finding it is the loss-augmented argmax of `ranking`. Two vertices enclose the best product of the hull. The next
direction t is that of the edge between them, or, where the product is greatest at a vertex, the one in which it rises
there. The search ends where no ranking lies beyond the edge, after about 8 calls. The best vertex is the value. The
best product may lie inside the hull, but if D + t M <= h for all rankings, D M <= h² / 4t; the least such bound is
returned.

>>> problem = slack_rescaled_ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6, 0.0],
...     position_weights=[2.0, 1.0, 0.5])
>>> solution = solve_slack_rescaled(problem)
>>> solution.order, round(solution.value, 6), solution.gap < 0.05
(array([1, 2, 0]), 1.65, True)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import nextafter
from time import perf_counter
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.arrays import Floats, Ints, check_type, finite, numbers
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblemError
from formulations.gallery.rankings import ranking
from formulations.problems.assignment import OrderProblem
from formulations.problems.directed_rounding import above, below, products
from formulations.problems.problem import EPSILON, Solution
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch, Weights
from formulations.solvers import as_solver
from formulations.solvers.batch_solution import BatchSolution
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve_batch

MAX_CALLS = 40  # calls of the argmax per query after which the search ends with the best bound so far
RELATIVE_GAP = 1e-9  # relative distance of value and bound, or of a vertex from the edge, that counts as zero
STEEPEST = 1e12  # the largest direction t; needed where no ranking has a positive margin

Point = tuple[Floats, Floats]  # (m,) losses and (m,) margins


@dataclass(frozen=True, eq=False)
class SlackRescaledRanking(OrderProblem):
    """`scores`, `gain` and `reference` have one entry per document, `position_weights` and `discount` one per position.
    A point x is the order. A dual vector y is a direction t > 0 and a dual per document, which bound D + t M
    (`toward`)."""

    scores: Floats
    gain: Floats
    discount: Floats
    position_weights: Floats
    reference: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference", finite("reference", self.reference, 1))
        checked = RankTwoAssignment(self.scores, self.gain, self.discount, self.position_weights)
        for name in ("scores", "gain", "discount", "position_weights"):
            object.__setattr__(self, name, getattr(checked, name))
        if self.reference.size != self.scores.size:
            raise InvalidProblemError(f"reference has {self.reference.size} entries for {self.scores.size} documents")
        if self.positions < self.documents and min(self.discount[-1], self.position_weights[-1]) < 0:
            raise InvalidProblemError("negative weights need a position for every document; give weights of length n")

    @cached_property
    def _best(self) -> tuple[Floats, Floats, float]:
        """Terms of the greatest Σ discount gain: the largest gains first, as discounts do not increase."""
        return products(self.discount, np.sort(self.gain)[::-1][: self.discount.size])

    @cached_property
    def best(self) -> float:
        """The greatest Σ discount gain of an order."""
        return float(np.sum(self._best[0]))

    def toward(self, t: float) -> RankTwoAssignment:
        """The ranking problem that maximizes D + t M, without its constant."""
        return RankTwoAssignment(t * self.scores, self.gain, self.discount, self.position_weights)

    def loss(self, x: NDArray[Any]) -> float:
        """D at x."""
        return self.best - float(self.discount @ self.gain[x])

    def margin(self, x: NDArray[Any]) -> float:
        """M at x."""
        return 1.0 + float(self.position_weights @ self.scores[x]) - float(self.reference @ self.scores)

    @property
    def positions(self) -> int:
        return int(self.discount.size)

    @property
    def documents(self) -> int:
        return int(self.scores.size)

    @property
    def scale(self) -> float:
        """The largest loss times a bound on the magnitude of the margin."""
        heights = np.abs(self.scores)
        reach = 1.0 + heights.max() * np.abs(self.position_weights).sum() + float(np.abs(self.reference) @ heights)
        return float(2.0 * np.abs(self.discount).sum() * np.abs(self.gain).max() * reach)

    def to_text(self) -> str:
        return f"maximize D · M over the placings of {self.documents} documents at {self.positions} positions"

    def value(self, x: NDArray[Any]) -> float:
        return self.loss(x) * self.margin(x)

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        ideal, ideal_digits, off = self._best
        lost, lost_digits, more = products(-self.discount, self.gain[x])
        least = max(below(ideal, ideal_digits, lost, lost_digits, -(off + more)), 0.0)
        most = above(ideal, ideal_digits, lost, lost_digits, off + more)
        assigned, assigned_digits, off = products(self.position_weights, self.scores[x])
        back, back_digits, more = products(-self.reference, self.scores)
        margin = below(1.0, assigned, assigned_digits, back, back_digits, -(off + more))
        return float(nextafter((least if margin >= 0.0 else most) * margin, -np.inf)) if least or margin < 0 else 0.0

    def bound(self, y: Floats) -> float:
        if np.shape(y) != (self.documents + 1,):
            raise InvalidProblemError(f"y needs {self.documents + 1} entries, a direction and duals; got {np.shape(y)}")
        t = float(y[0])
        if not (t > 0.0 and np.isfinite(t)):
            return np.inf
        ahead = self.toward(t)
        # t · scores was rounded: what that may have hidden, at every position
        off = 1.01 * EPSILON * float(np.abs(self.position_weights).sum() * np.abs(ahead.scores).max())
        back, back_digits, lost = products(-t * self.reference, self.scores)
        off += lost + EPSILON * float(np.abs(back).sum())
        ideal, ideal_digits, more = self._best
        h = above(ideal, ideal_digits, t, back, back_digits, ahead.bound(np.asarray(y[1:])), off + more)
        return float(product_bound(np.array([h]), np.array([t]))[0])

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return self.toward(1.0).named_primal(x)


def product_bound(h: Floats, t: Floats) -> Floats:
    """h² / 4t, rounded up: if D >= 0 and D + t M <= h then D M is no more. For h < 0 all M are negative: 0."""
    return np.asarray(np.maximum(h, 0.0) ** 2 / (4.0 * t) * (1.0 + 8.0 * EPSILON))


@dataclass(frozen=True, eq=False)
class RescaledBatch(CompactReprMixin):
    """One `SlackRescaledRanking` per query: the flat arrays of `ranking`, and reference (N,)."""

    ranking: RankTwoBatch
    reference: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference", finite("reference", self.reference, 1))
        rows = self.ranking.scores.size
        if self.reference.size != rows:
            raise InvalidProblemError(f"reference has {self.reference.size} entries for {rows} documents")

    def __len__(self) -> int:
        return len(self.ranking)

    def __getitem__(self, query: int) -> SlackRescaledRanking:
        rows, one = slice(*self.ranking.offsets[query : query + 2].tolist()), self.ranking[query]
        return SlackRescaledRanking(one.scores, one.gain, one.discount, one.position_weights, self.reference[rows])

    def with_scores(self, scores: Floats) -> RescaledBatch:
        return RescaledBatch(self.ranking.with_scores(scores), self.reference)

    def scaled(self, t: Floats) -> RankTwoBatch:
        """The rankings that maximize D + t M, t (m,), without their constants."""
        return self.ranking.with_scores(np.repeat(t, np.diff(self.ranking.offsets)) * self.ranking.scores)

    def sums(self, values: Floats) -> Floats:
        """(m,) sums of values (N,)."""
        return np.asarray(np.add.reduceat(values, self.ranking.offsets[:-1]))

    @cached_property
    def query(self) -> Ints:
        """(N,) the query of each row."""
        return np.repeat(np.arange(len(self)), np.diff(self.ranking.offsets))

    @cached_property
    def best(self) -> Floats:
        """(m,) the greatest Σ discount gain."""
        ranking = self.ranking
        return self.sums(ranking.discount * ranking.gain[np.lexsort((-ranking.gain, self.query))])

    @property
    def margin_offset(self) -> Floats:
        """(m,) the part of the margin that no order changes."""
        return 1.0 - self.sums(self.reference * self.ranking.scores)

    def evaluate(self, order: Ints) -> Point:
        """Loss and margin of orders (N,), documents counted within their query."""
        ranking = self.ranking
        rows = ranking.offsets[self.query] + order
        loss = np.maximum(self.best - self.sums(ranking.discount * ranking.gain[rows]), 0.0)
        return loss, self.margin_offset + self.sums(ranking.position_weights * ranking.scores[rows])

    def bound(self, t: Floats, bounds: Floats) -> Floats:
        """(m,) bounds on D M from bounds on the rankings `scaled(t)`."""
        return product_bound(self.best + t * self.margin_offset + bounds, t)

    def sort_ties(self, order: Ints) -> Ints:
        """Sort each run of positions of equal discount by score, then gain: the loss stays, the margin does not fall,
        and the result does not depend on the order of the input."""
        ranking = self.ranking
        run = np.cumsum(np.diff(ranking.discount, prepend=ranking.discount[0]) != 0.0)
        rows = ranking.offsets[self.query] + order
        return np.asarray(order[np.lexsort((ranking.gain[rows], -ranking.scores[rows], run, self.query))])

    def select(self, queries: Ints) -> RescaledBatch:
        """The batch of these queries alone."""
        ranking, rows = self.ranking, np.flatnonzero(np.isin(self.query, queries))
        offsets = np.concatenate([[0], np.cumsum(np.diff(ranking.offsets)[queries])])
        scores, gain, discount, position_weights = (
            part[rows] for part in (ranking.scores, ranking.gain, ranking.discount, ranking.position_weights)
        )
        return RescaledBatch(RankTwoBatch(scores, gain, discount, position_weights, offsets), self.reference[rows])


@overload
def slack_rescaled_ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    position_weights: ArrayLike | Weights,
    reference: ArrayLike | None = None,
) -> SlackRescaledRanking: ...
@overload
def slack_rescaled_ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    position_weights: ArrayLike | Weights,
    reference: ArrayLike | None = None,
    offsets: ArrayLike | Ints,
) -> RescaledBatch: ...
def slack_rescaled_ranking(
    scores: ArrayLike,
    gain: ArrayLike,
    *,
    discount: ArrayLike | Weights,
    position_weights: ArrayLike | Weights,
    reference: ArrayLike | None = None,
    offsets: ArrayLike | Ints | None = None,
) -> SlackRescaledRanking | RescaledBatch:
    """The problem of one query, or of many if `offsets` is given.

    Args:
        scores, gain, discount, position_weights, offsets: as in `ranking`.
        reference: (n,) the weight of each document in the order that the margin is measured from. Default: the mean
            over the orders that sort by gain; documents of equal gain share their position weights.

    Raises:
        InvalidProblemError: a number is NaN or infinite, lengths do not fit, weights increase.
    """
    if offsets is not None:
        batch = ranking(scores, gain, discount=discount, position_weights=position_weights, offsets=offsets)
        shared = _mean_position_weights(batch.gain, batch.position_weights, batch.offsets)
        return RescaledBatch(batch, shared if reference is None else numbers("reference", reference))
    one = ranking(scores, gain, discount=discount, position_weights=position_weights)
    padded = np.pad(one.position_weights, (0, one.documents - one.positions))
    shared = _mean_position_weights(one.gain, padded, np.array([0, one.documents]))
    known = shared if reference is None else numbers("reference", reference)
    return SlackRescaledRanking(one.scores, one.gain, one.discount, one.position_weights, known)


def _mean_position_weights(gain: Floats, position_weights: Floats, offsets: Ints) -> Floats:
    """(N,) the weight of each document's position when sorted by gain, averaged over documents of equal gain."""
    query = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    rows = np.lexsort((-gain, query))
    starts = np.ones(rows.size, dtype=bool)
    starts[1:] = (gain[rows[1:]] != gain[rows[:-1]]) | (query[rows[1:]] != query[rows[:-1]])
    first = np.flatnonzero(starts)
    lengths = np.diff(np.append(first, rows.size))
    shared = np.empty(rows.size)
    shared[rows] = np.repeat(np.add.reduceat(position_weights, first) / lengths, lengths)
    return shared


@dataclass(frozen=True, eq=False)
class RescaledSolution(CompactReprMixin):
    """For every query of a batch: the best order found (documents counted within their query), its value, a proven
    bound, the direction t that proves it, the order that is best in this direction, and the number of calls."""

    problems: RescaledBatch
    order: Ints
    value: Floats
    bound: Floats
    direction: Floats
    best_in_direction: Ints
    calls: Ints
    solver: str = ""
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.problems)

    @property
    def loss(self) -> Floats:
        """(m,) D of each order."""
        return self.problems.evaluate(self.order)[0]

    def proved(self, exactly: int = 0) -> RescaledSolution:
        """The same orders with bounds recomputed from duals; those of `exactly` queries are also checked in
        rational numbers (`BatchSolution.proved`)."""
        zeros, ways = np.zeros(len(self)), np.zeros(len(self), dtype=np.int8)
        ahead = self.problems.scaled(self.direction)
        there = BatchSolution(ahead, self.best_in_direction, zeros, zeros, ways, (self.solver,), self.solver).proved()
        there = there.proved(exactly) if exactly else there
        return replace(self, bound=np.maximum(self.problems.bound(self.direction, there.bound), self.value))

    def __getitem__(self, query: int) -> Solution:
        """The solution of one query, with the direction and the duals that prove its bound."""
        return self.solution(query, self.problems[query])

    def solution(self, query: int, problem: SlackRescaledRanking) -> Solution:
        """The same, of a problem that may leave out the positions of weight 0."""
        low, t = int(self.problems.ranking.offsets[query]), float(self.direction[query])
        order, best = (one[low : low + problem.positions] for one in (self.order, self.best_in_direction))
        solution = problem.solution(order, np.concatenate([[t], problem.toward(t).recover_dual(best)]))
        message = f"{self.calls[query]} vertices of the hull"
        return replace(solution, solver=self.solver, message=message, seconds=self.seconds)


@overload
def solve_slack_rescaled(
    problem: SlackRescaledRanking, solver: Solver | str = "exact", *, outward: bool = True
) -> Solution: ...
@overload
def solve_slack_rescaled(
    problem: RescaledBatch, solver: Solver | str = "exact", *, outward: bool = True
) -> RescaledSolution: ...
def solve_slack_rescaled(
    problem: SlackRescaledRanking | RescaledBatch, solver: Solver | str = "exact", *, outward: bool = True
) -> Solution | RescaledSolution:
    """The best vertex of the hull of loss and margin, and a proven bound, of one query or of a batch.

    solver: any solver of `ranking`. outward: round its bounds outward, as in `solve_batch`.
    """
    chosen = as_solver(solver)
    check_type("problem", problem, SlackRescaledRanking, RescaledBatch, cure="Build it by slack_rescaled_ranking().")
    check_type("outward", outward, bool)
    if isinstance(problem, RescaledBatch):
        return _search(problem, chosen, outward)
    rest, offsets = (0, problem.documents - problem.positions), np.array([0, problem.documents])
    discount, position_weights = np.pad(problem.discount, rest), np.pad(problem.position_weights, rest)
    batch = RankTwoBatch(problem.scores, problem.gain, discount, position_weights, offsets)
    return _search(RescaledBatch(batch, problem.reference), chosen, outward).solution(0, problem)


def _search(problems: RescaledBatch, solver: Solver, outward: bool) -> RescaledSolution:
    """Search all queries at once; finished queries are dropped from the calls once they are half of the batch."""
    began, query = perf_counter(), problems.query
    order, first, last = _corners(problems)
    best = tuple(part.copy() for part in problems.evaluate(order))
    direction = _next_direction(first, last)
    bound, proven, proof = np.full(len(problems), np.inf), direction.copy(), order.copy()
    calls = np.zeros(len(problems), dtype=np.int64)
    mine, part, is_open = np.arange(len(problems)), problems, np.ones(len(problems), dtype=bool)
    while is_open.any() and int(calls.max()) < MAX_CALLS:
        if 2 * int(is_open[mine].sum()) <= mine.size:
            mine = np.flatnonzero(is_open)
            part = problems.select(mine)
        t, rows = direction[mine], np.isin(query, mine)
        answer = solve_batch(part.scaled(t), solver, directed_rounding=outward)
        found = part.sort_ties(answer.order)
        loss, margin = part.evaluate(found)
        bounds = part.bound(t, answer.bound)
        lower, rises = bounds < bound[mine], _is_better((loss, margin), (best[0][mine], best[1][mine]))
        for orders, takes in ((proof, lower), (order, rises)):
            orders[rows] = np.where(takes[part.query], found, orders[rows])
        bound[mine[lower]], proven[mine[lower]] = bounds[lower], t[lower]
        best[0][mine[rises]], best[1][mine[rises]] = loss[rises], margin[rises]
        value = best[0] * best[1]
        calls[mine] += is_open[mine]
        ahead = _move(first, last, mine, (loss, margin), t)
        done = ~ahead | (bound[mine] - value[mine] <= RELATIVE_GAP * np.maximum(value[mine], 0.0))
        is_open[mine[done]] = False
        direction = _next_direction(first, last)
    value, seconds = best[0] * best[1], perf_counter() - began
    bound = np.maximum(bound, value)
    return RescaledSolution(problems, order, value, bound, proven, proof, calls, solver.spec, seconds)


def _corners(problems: RescaledBatch) -> tuple[Ints, Point, Point]:
    """The order of greatest loss and that of greatest margin: the better of the two, and both points."""
    ranking, starts = problems.ranking, problems.ranking.offsets[problems.query]
    worst = problems.sort_ties(np.lexsort((-ranking.scores, ranking.gain, problems.query)) - starts)
    widest = np.lexsort((ranking.gain, -ranking.scores, problems.query)) - starts
    first, last = problems.evaluate(worst), problems.evaluate(widest)
    return np.where(_is_better(last, first)[problems.query], widest, worst), first, last


def _move(first: Point, last: Point, mine: Ints, found: Point, t: Floats) -> NDArray[np.bool_]:
    """Whether the point found in direction t lies beyond the edge; if so it replaces the vertex on its side."""
    (d, m), (e, n) = [(part[0][mine], part[1][mine]) for part in (first, last)]
    loss, margin = found
    edge = np.maximum(d + t * m, e + t * n)
    ahead = loss + t * margin > edge + RELATIVE_GAP * (np.abs(d) + np.abs(t * m) + np.abs(e) + np.abs(t * n))
    down = ahead & (loss > t * margin)  # along the tangent the product rises towards less loss
    for part, side in ((first, down), (last, ahead & ~down)):
        part[0][mine[side]], part[1][mine[side]] = loss[side], margin[side]
    return np.asarray(ahead)


def _is_better(one: Point, other: Point) -> NDArray[np.bool_]:
    """Whether the product is larger; of products equal to rounding, the one of larger loss counts as larger, so that
    the order of the input does not choose."""
    (d, m), (e, n) = one, other
    slack = RELATIVE_GAP * np.abs(e * n)
    return np.asarray((d * m > e * n + slack) | ((d * m >= e * n - slack) & (d > e * (1.0 + RELATIVE_GAP))))


def _next_direction(first: Point, last: Point) -> Floats:
    (d, m), (e, n) = first, last
    less, more = d - e, n - m
    at_first = (less * m >= more * d) | (more <= 0.0)
    at_last = (less * n <= more * e) | (less <= 0.0)
    with np.errstate(all="ignore"):
        t = np.where(at_first & (m > 0.0), d / m, np.where(at_last, e / n, less / more))
    t = np.where((t > 0.0) & np.isfinite(t), t, np.where(d > 0.0, STEEPEST, 0.0))  # no positive margin, or no loss
    return np.clip(t, 1.0 / STEEPEST, STEEPEST)
