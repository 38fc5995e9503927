"""The answers to a batch: arrays over queries, and a `Solution` on request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.brevity import CompactReprMixin
from formulations.certificates.certify import certify
from formulations.errors import Refuted
from formulations.forms.form import EPSILON, Solution
from formulations.forms.rank_two_assignment import RankTwoBatch

__all__ = ["BatchSolution"]

RATIONAL_DOCUMENTS = 400
"""Longest query that is proved in rational numbers, which takes a second or so."""


@dataclass(frozen=True, eq=False)
class BatchSolution(CompactReprMixin):
    """The answers to a batch, query q in rows offsets[q] : offsets[q + 1].

    `order` holds the document (counted within its query) at each position, complete beyond the last position that
    matters; `value` and `bound` one number a query, value <= optimum <= bound; `way` how it was solved. The bound of
    the exact argmax is its value and what sums in double precision may have hidden from the search, whatever cancels;
    the bound of any other solver comes from dual prices.
    """

    problems: RankTwoBatch
    order: Ints
    value: Floats
    bound: Floats
    ways: NDArray[np.int8]
    names: tuple[str, ...]
    solver: str
    seconds: float = 0.0

    @property
    def way(self) -> NDArray[Any]:
        """How each query was solved, in words."""
        return np.array(self.names, dtype=object)[self.ways]

    def recomputed(self, query: int) -> tuple[float, float]:
        """Value of the query's order from the data, and a bound a rounding error above, if the order is optimal."""
        batch, rows = self.problems, slice(int(self.problems.offsets[query]), int(self.problems.offsets[query + 1]))
        decayed = batch.decay[rows] * batch.scores[rows][self.order[rows]]
        discounted = batch.discount[rows] * batch.gain[rows][self.order[rows]]
        value, size = float((decayed - discounted).sum()), float((np.abs(decayed) + np.abs(discounted)).sum())
        return value, value + EPSILON * (8.0 + 2.0 * decayed.size) * size

    @property
    def position(self) -> Ints:
        """The position (counted within its query) of each document: the inverse of `order`."""
        start = self._first_rows()
        position = np.empty_like(self.order)
        position[start + self.order] = np.arange(self.order.size) - start
        return position

    @property
    def placed_decay(self) -> Floats:
        """The decay of the position where each document stands, c[π]."""
        return np.asarray(self.problems.decay[self._first_rows() + self.position])

    def _first_rows(self) -> Ints:
        """The first row of its query, for each row."""
        return np.repeat(self.problems.offsets[:-1], np.diff(self.problems.offsets))

    def __len__(self) -> int:
        return len(self.problems)

    def outward(self, compiled: bool | None = None) -> BatchSolution:
        """The same answer with value and bound rounded outward, of a search that reckoned them in double precision.
        compiled: whether by compiled code; None asks `is_small`."""
        left = np.maximum(self.bound - self.value, 0.0)
        value, bound = self._judged(left, compiled)
        return replace(self, value=value, bound=bound)

    def _judged(self, left: Floats, compiled: bool | None = None) -> tuple[Floats, Floats]:
        from formulations.forms.rank_two_outward import judged

        return judged(*self._given(), left, compiled)

    def _given(self) -> tuple[Floats, Floats, Floats, Floats, Ints, Ints]:
        batch = self.problems
        return batch.scores, batch.gain, batch.discount, batch.decay, batch.offsets, self.order

    def proved(self, exactly: int = 0, seed: int = 0) -> BatchSolution:
        """The same answer with bounds from dual prices of every query, whoever solved it and whatever its proof, and
        values recomputed; both rounded outward.

        exactly: of so many queries, drawn by `seed` from the shorter half (at most 400 documents), value and bound are
        taken in rational arithmetic too; raises `Refuted` where more is open between them than the answer says, up to
        rounding.
        """
        from formulations.forms.rank_two_outward import bounds_of_orders

        batch, bound = self.problems, bounds_of_orders(*self._given())
        value, _ = self._judged(np.zeros(len(self)))
        answer = replace(self, value=value, bound=bound)
        sizes = np.diff(batch.offsets)
        short = np.flatnonzero(sizes <= min(RATIONAL_DOCUMENTS, np.median(sizes)))
        for query in np.random.default_rng(seed).permutation(short)[:exactly].tolist():
            solution, said = answer[query], bound[query] - self.value[query]
            gap = certify(solution.problem, solution, exact=True).gap
            if gap > max(said, 0.0) + solution.problem.rounding:
                raise Refuted(f"query {query}: {said:g} is said to be open, in rational numbers it is {float(gap):g}")
        return answer

    def __getitem__(self, query: int) -> Solution:
        """The solution of one query, with dual prices that prove it."""
        problem = self.problems[query]
        low = int(self.problems.offsets[query])
        solution = problem.solution(self.order[low : low + problem.positions])
        return solution.told_by(solver=self.solver, message=self.names[self.ways[query]])
