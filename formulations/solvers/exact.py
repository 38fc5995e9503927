"""The exact argmax: sorting, splitting, merging; the remainder is an assignment of few candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, overload

import numpy as np

from formulations.argmax.assignment import assign_queries, candidates_of
from formulations.argmax.group_limits import prefix_argmax
from formulations.argmax.layout import ANY, WAYS, Answers, Layout, fill_cones
from formulations.argmax.relevance_batch import argmax_of_patterns, kernels_for
from formulations.argmax.relevance_layout import PATTERN_WAYS, layout_of
from formulations.argmax.relevance_numpy import search_small
from formulations.arrays import Floats, Ints
from formulations.compiled import Deferral, is_small
from formulations.problems.group_sequence import GroupSequence
from formulations.problems.lattice_path import LatticePath
from formulations.problems.problem import Solution
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch
from formulations.problems.relevance_ranking import RelevanceBatch, RelevanceRanking
from formulations.solvers.batch_solution import BatchSolution, RelevanceSolution
from formulations.solvers.solver import Solver, SolverResult

DEFERRAL = Deferral(9.0)  # seconds that compiling the argmax takes, about


@dataclass(frozen=True)
class ExactArgmax(Solver):
    """The loss-augmented argmax by its structure (see `formulations.argmax`), exact for every input.

    Weights that are negligible against the largest are omitted from the search; the bound includes their possible
    effect.

    compiled: whether to use compiled code; otherwise small batches are assignments for SciPy. None: for small batches
    (`is_small`; of pattern rankings also by the states of their lattices) if it lies on disk, or once this process has
    spent as long without it as compiling takes; last bits, and orders among exact ties, may then depend on that.
    Training decides by its data alone, once for the full batch (`for_batch`). max_states: the limit of the dynamic
    program per query, by default where an assignment becomes cheaper; a larger query is solved as an assignment, by
    shortest paths from a good order.
    """

    max_states: int | None = None
    compiled: bool | None = None

    accepts = (RankTwoAssignment, RelevanceRanking, LatticePath, GroupSequence)
    package: ClassVar[str] = "rankopt"
    spec = "exact"

    def solve(self, problem: Any, warm_start: Solution | None = None) -> SolverResult:
        if isinstance(problem, GroupSequence):
            group, price = prefix_argmax(problem)
            return SolverResult(group, price.ravel(), message="shortest paths")
        if isinstance(problem, LatticePath):
            return SolverResult(problem.levels.path(problem.edges, problem.potentials), message="lattice")
        if isinstance(problem, RelevanceRanking):
            found = self.solve_batch(problem.alone())
            return SolverResult(found.order, message=found.algorithm[0], details={"way": found.algorithm[0]})
        alone = problem.alone()
        if alone is None:  # a negative weight at the last position: left-out documents are worth more than ranked ones
            order, way = _few_candidates(problem)
        else:
            answer = self.solve_batch(alone)
            order, way = answer.order[: problem.positions], answer.algorithm[0]
        return SolverResult(order, message=way, details={"way": way})

    def for_batch(self, offsets: Ints) -> ExactArgmax:
        """The same for a batch of these queries and for any part of it, by the data alone."""
        large = self.max_states is not None or not is_small(offsets)
        return self if self.compiled is not None else replace(self, compiled=large)

    def for_data(self, batch: RankTwoBatch | RelevanceBatch) -> ExactArgmax:
        """The same for this batch, by its data alone."""
        return self if self.compiled is not None else replace(self, compiled=self._is_large(batch))

    def _is_large(self, batch: RankTwoBatch | RelevanceBatch) -> bool:
        """Whether compiled code is used in any case."""
        small = is_small(batch.offsets) if isinstance(batch, RankTwoBatch) else layout_of(batch).is_small(batch)
        return self.max_states is not None or not small

    @overload
    def solve_batch(self, batch: RankTwoBatch) -> BatchSolution: ...
    @overload
    def solve_batch(self, batch: RelevanceBatch) -> RelevanceSolution: ...
    def solve_batch(self, batch: RankTwoBatch | RelevanceBatch) -> BatchSolution | RelevanceSolution:
        """All queries at once, on all threads; the method is reported for each."""
        if isinstance(batch, RelevanceBatch):
            return self._solve_patterns(batch)
        from formulations.argmax.batch import argmax_of, merge_range

        compiled, deferral = self.compiled, DEFERRAL if self.compiled is None else None
        if compiled is None:
            compiled = self._is_large(batch) or DEFERRAL.ends(merge_range, fill_cones)
        if not compiled:
            found = Answers.empty(batch.offsets, ANY)
            weights = (batch.scores, batch.gain, batch.discount, batch.position_weights, batch.offsets)
            with DEFERRAL.counted():
                assign_queries(*weights, np.arange(len(batch)), found)
            return BatchSolution(batch, *found, WAYS, self.spec)

        layout = batch.cached(
            "layout", lambda: Layout.from_arrays(batch.gain, batch.discount, batch.position_weights, batch.offsets)
        )
        limit = 0 if self.max_states is None else max(self.max_states, 2)
        order, value, bound, ways = argmax_of(batch, layout, limit, deferral)
        if layout.lost_discount.any() or layout.lost_position_weights.any():
            value, bound = _with_all_weights(batch, layout, order, bound - value)
        return BatchSolution(batch, order, value, bound, ways, WAYS, self.spec)

    def _solve_patterns(self, batch: RelevanceBatch) -> RelevanceSolution:
        layout = layout_of(batch)
        compiled = self.compiled
        if compiled is None:
            compiled = self._is_large(batch) or DEFERRAL.ends(*kernels_for(batch, layout.algorithm))
        if not compiled:
            with DEFERRAL.counted():
                order, ways = search_small(batch, layout)
                values = batch.judged(order)
        else:
            ways = layout.algorithm
            order, values = argmax_of_patterns(batch, layout, ways)
        bound = values.value + layout.hidden(batch, ways)
        return RelevanceSolution(batch, order, values.value, bound, ways, PATTERN_WAYS, self.spec, known=values)


def _with_all_weights(batch: RankTwoBatch, layout: Layout, order: Ints, gap: Floats) -> tuple[Floats, Floats]:
    """Value and bound by all weights, for orders found with the significant ones."""
    starts = batch.offsets[:-1]
    assigned = order + np.repeat(starts, np.diff(batch.offsets))
    profit = batch.position_weights * batch.scores[assigned] - batch.discount * batch.gain[assigned]
    value = np.add.reduceat(profit, starts)
    score, gain = (np.maximum.reduceat(np.abs(part), starts) for part in (batch.scores, batch.gain))
    return value, value + gap + 2.0 * (layout.lost_position_weights * score + layout.lost_discount * gain)


def _few_candidates(problem: RankTwoAssignment) -> tuple[Ints, str]:
    """The document at each position, and the problem that was solved: an assignment, of few candidates if possible.

    Of documents with equal gain only the best-scored can be needed at positions of decay >= 0, only the worst-scored at
    positions of decay < 0, and at most as many as there are such positions.
    """
    from scipy.optimize import linear_sum_assignment

    below = int((problem.position_weights < 0).sum())
    candidates = candidates_of(problem.scores, problem.gain, problem.positions - below, below)
    # Documents by positions: scipy solves this way round in less than half the time of the other.
    profit = np.outer(problem.scores[candidates], problem.position_weights) - np.outer(
        problem.gain[candidates], problem.discount
    )
    assigned, position = linear_sum_assignment(profit, maximize=True)
    chosen = np.empty(problem.positions, dtype=np.int64)
    chosen[position] = assigned
    way = "few candidates" if candidates.size < problem.documents else "assignment"
    return np.asarray(candidates[chosen], dtype=np.int64), way
