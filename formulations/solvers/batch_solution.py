"""Solutions of batches: arrays over queries, and a `Solution` on request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from formulations.argmax.relevance_batch import argmax_of_patterns, judge
from formulations.argmax.relevance_layout import GRID, LATTICE, SORT, TAIL, layout_of
from formulations.arrays import Bools, Floats, Ints, as_integer, generator
from formulations.certificates.certify import certify
from formulations.compiled import is_small
from formulations.display import CompactReprMixin
from formulations.errors import CertificateError
from formulations.problems.problem import Solution
from formulations.problems.ranking import RankTwoBatch
from formulations.problems.relevance_ranking import RelevanceBatch
from formulations.problems.relevance_values import OrderValues

if TYPE_CHECKING:
    from formulations.problems.ranking_duals import RankedQueries

RATIONAL_DOCUMENTS = 400  # largest query that is proved in rational numbers, which takes about a second


Batch = TypeVar("Batch", RankTwoBatch, RelevanceBatch)


@dataclass(frozen=True, eq=False)
class QuerySolutions(CompactReprMixin, Generic[Batch]):
    """The solutions of all queries of a batch; query q is rows offsets[q] : offsets[q + 1]."""

    problems: Batch
    order: Ints
    value: Floats
    bound: Floats
    ways: NDArray[np.int8]
    names: tuple[str, ...]
    solver: str
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.problems)

    def __getitem__(self, query: int) -> Solution:
        """The solution of one query, with duals that prove it."""
        problem, low = self.problems[query], int(self.problems.offsets[query])
        solution = problem.solution(self.order[low : low + problem.positions])
        return replace(solution, solver=self.solver, message=self.names[self.ways[query]])

    @property
    def algorithm(self) -> NDArray[Any]:
        """The method by which each query was solved."""
        return np.array(self.names, dtype=object)[self.ways]

    @property
    def position(self) -> Ints:
        """The position (counted within its query) of each document: the inverse of `order`."""
        start = np.repeat(self.problems.offsets[:-1], np.diff(self.problems.offsets))
        position = np.empty_like(self.order)
        position[start + self.order] = np.arange(self.order.size) - start
        return position

    def _check_exactly(self, proven: QuerySolutions[Batch], short: Bools, count: int, seed: int) -> None:
        """Evaluate `count` of the short queries in rational arithmetic; raises `CertificateError` if a gap exceeds that
        of the proven value and bound beyond rounding."""
        count = as_integer("exactly", count)
        for query in generator("seed", seed).permutation(np.flatnonzero(short))[:count].tolist():
            solution, reported = proven[query], proven.bound[query] - self.value[query]
            gap = certify(solution.problem, solution, exact=True).gap
            if gap > max(reported, 0.0) + solution.problem.rounding:
                raise CertificateError(f"query {query} claims gap {reported:g}; in rationals it is {float(gap):g}")


@dataclass(frozen=True, eq=False)
class BatchSolution(QuerySolutions[RankTwoBatch]):
    """The solution of a batch; query q is rows offsets[q] : offsets[q + 1].

    `order` holds the document (counted within its query) at each position, also beyond the last position of nonzero
    weight; `value` and `bound` one number per query, value <= optimum <= bound; `algorithm` the method. The bound of
    the exact argmax is its value plus the rounding errors of the search; the bound of any other solver comes from
    duals.
    """

    def outward(self, compiled: bool | None = None) -> BatchSolution:
        """The same solution with value and bound rounded outward, for a search in double precision. compiled: whether
        by compiled code; None: for batches that are not small, and if it lies on disk."""
        left = np.maximum(self.bound - self.value, 0.0)
        value, bound = self._judged(left, compiled)
        return replace(self, value=value, bound=bound)

    def _judged(self, left: Floats, compiled: bool | None = None) -> tuple[Floats, Floats]:
        from formulations.problems.ranking_duals import judged

        return judged(self._ranked(), left, compiled)

    def _ranked(self) -> RankedQueries:
        from formulations.problems.ranking_duals import RankedQueries

        batch = self.problems
        return RankedQueries(
            batch.scores, batch.gain, batch.discount, batch.position_weights, batch.offsets, self.order
        )

    def proved(self, exactly: int = 0, seed: int = 0) -> BatchSolution:
        """The same solution with values recomputed and bounds from duals of every query, for any solver and proof; both
        rounded outward.

        exactly: this many queries, drawn by `seed` from the shorter half (at most 400 documents), are also evaluated in
        rational arithmetic; raises `CertificateError` if their gap exceeds the claimed one beyond rounding.
        """
        from formulations.problems.ranking_duals import bounds_of_orders

        batch, bound = self.problems, bounds_of_orders(self._ranked())
        value, _ = self._judged(np.zeros(len(self)), not is_small(batch.offsets))
        answer = replace(self, value=value, bound=bound)
        sizes = np.diff(batch.offsets)
        self._check_exactly(answer, sizes <= min(RATIONAL_DOCUMENTS, np.median(sizes)), exactly, seed)
        return answer


RATIONAL_EDGES = 1 << 11
"""Edges of the largest lattice proved in rational numbers, at about a tenth of a millisecond each."""

PROVED_STATES, PROVED_COUNTS = 1 << 20, 1 << 13
"""States of the largest grid, and of the largest lattice of other chains, for which a bound is computed: milliseconds,
a few times the cost of the argmax."""


@dataclass(frozen=True, eq=False)
class RelevanceSolution(QuerySolutions[RelevanceBatch]):
    """The solution of a batch; query q is rows offsets[q] : offsets[q + 1].

    As `BatchSolution`, but `value` is max over orders of r(y)ᵀs - gain(y), with the measure as gain; `known` holds the
    values of the orders, if known. The bound of other solvers comes from the potentials of the lattice.
    """

    known: OrderValues | None = None

    @cached_property
    def _judged(self) -> OrderValues:
        if self.known is not None:
            return self.known
        if is_small(self.problems.offsets):
            return self.problems.judged(self.order)
        return judge(self.problems, np.ascontiguousarray(self.order, dtype=np.int64))

    @property
    def slope(self) -> Floats:
        """(N,) r(y) of the orders, one entry per document; documents of equal score and grade are not averaged."""
        return self._judged.slope

    @property
    def earned(self) -> Floats:
        """(m,) gain(y) of the orders: the measure."""
        return self._judged.earned

    def outward(self) -> RelevanceSolution:
        """The same solution with value and bound rounded outward, for a search in double precision."""
        left = np.maximum(self.bound - self._judged.value, 2.0 * self.problems.left)
        bound = np.where(left > 0.0, np.nextafter(self._judged.value + left, np.inf), self._judged.value)
        return replace(self, value=self._judged.least, bound=bound)

    def proved(self, exactly: int = 0, seed: int = 0) -> RelevanceSolution:
        """As `BatchSolution.proved`, with bounds from the complete lattice of every query. For small batches
        (`is_small`) the potentials are checked at every edge; otherwise longest paths are recomputed by the compiled
        grid and lattice. Queries with more states (`PROVED_STATES`, `PROVED_COUNTS`) keep their bound; exactly: of the
        queries whose lattice has few edges (`RATIONAL_EDGES`).
        """
        batch, layout = self.problems, layout_of(self.problems)
        states = layout.states(batch.sizes)
        graded = (layout.algorithm == LATTICE) | (layout.algorithm == TAIL)
        taken = states <= np.where(graded, PROVED_COUNTS, PROVED_STATES)
        bound = np.where(taken, self._full_lattice_bound(taken), self.bound)
        answer = replace(self, value=self._judged.least, bound=bound)
        edges = states * np.diff(layout.first_chain)
        self._check_exactly(answer, (batch.sizes <= np.median(batch.sizes)) & (edges <= RATIONAL_EDGES), exactly, seed)
        return answer

    def _full_lattice_bound(self, taken: Bools) -> Floats:
        """(m,) upper bounds of the queries within the size limits, rounded up."""
        batch, layout, bound = self.problems, layout_of(self.problems), np.full(len(self), np.inf)
        if layout.is_small(batch):
            for query in np.flatnonzero(taken).tolist():
                problem = batch[query]
                bound[query] = problem.bound(problem.lattice().potentials)
            return bound
        algorithm = np.where((layout.algorithm == LATTICE) | (layout.algorithm == TAIL), LATTICE, GRID)
        _, values = argmax_of_patterns(batch, layout, np.where(taken, algorithm, SORT).astype(np.int8))
        left = 2.0 * batch.left
        above = np.where(left > 0.0, np.nextafter(values.value + left, np.inf), values.value)
        return np.where(taken, above, bound)
