"""The loss-augmented argmax of a loss of the relevance vector, under one of three feature maps.

The bound for long queries needs no explicit lattice: under the pairwise map each irrelevant document is inserted
independently. Let cell(i, b) be the gain of relevant document i below b irrelevant ones. An order has the value
Σ_i cell(i, 0) + Σ_j f(j, i_j), f(j, i) = Σ_{i' >= i} [cell(i', j) - cell(i', j - 1)]. Here i_j is the first relevant
document below the j-th best irrelevant one, nondecreasing in j. Without monotonicity the sum of max over i of f(j, i)
is an upper bound for any cells, attained if all rows of cells are concave. O(n₊ n₋) time, O(n) memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import LARGEST, Floats, Ints, Memoized, check_type, finite, memoized, offsets_of
from formulations.errors import InvalidProblemError, UnsupportedProblemError
from formulations.problems.assignment import OrderProblem
from formulations.problems.lattice_path import MOST_STATES, Chains, LatticePath, edges_of
from formulations.problems.problem import EPSILON, Solution, status_of
from formulations.problems.program import Program
from formulations.problems.ranking import ScoredBatch, non_increasing_by_query
from formulations.problems.relevance_values import (
    FIRST,
    PAIRWISE,
    POSITIONAL,
    RANK,
    FeatureMap,
    GainTable,
    OrderedBatch,
    OrderValues,
    exact_value,
    reach_of,
)
from formulations.registry import load
from formulations.sorting import alike


def every_bad_for_itself(good: Floats, bad: Floats, share: Floats, discount: Floats, kappa: float) -> float:
    """The bound of this module's docstring without constants, rounded up; scores in falling order."""
    earned = share[: good.size] * discount[: good.size]
    assigned, size, most = np.zeros(bad.size), np.zeros(bad.size), np.zeros(bad.size)
    for i in range(good.size - 1, -1, -1):
        lost = share[i] * (discount[i : i + bad.size] - discount[i + 1 : i + 1 + bad.size])
        assigned += kappa * (bad - good[i]) + lost
        size += kappa * (np.abs(bad) + abs(good[i])) + 2.0 * abs(share[i]) * np.abs(discount[i : i + bad.size])
        np.maximum(most, assigned, out=most)
    off = EPSILON * (8.0 + good.size) * float(size.sum() * (1.0 + 1e-9))
    off += EPSILON * (8.0 + bad.size + good.size) * float(most.sum() + np.abs(earned).sum())
    return float(np.nextafter(most.sum() - earned.sum() + off, np.inf))


FEW_STATES = 1 << 16  # states of a lattice whose potentials are computed where the bound without them is as good

EXACT_DOCUMENTS = 400  # longest query whose value is rounded once, from rational numbers: a few milliseconds


@dataclass(frozen=True, eq=False)
class RelevanceRanking(Memoized, OrderProblem):
    """max over orders y of all documents of r(y)ᵀ scores - gain(y).

    r is the slope of the feature map `map`, gain is that of `earnings`. Both depend on the `grade` of a document and on
    the counts of each grade above it. Documents of one grade with equal gains form a chain. Some optimal order has
    every chain in order of score, by exchange (under the first-relevant map, relevant documents in ascending order). So
    the problem is a longest path in the lattice of chain counts.

    scores, grade: (n,). A point x is the order, the document at each position. A dual y has one potential per state of
    the lattice, as in `LatticePath`, or is empty, for the bound without a lattice. Lists that are longer still have the
    bound of the search (`searched_bound`).
    """

    scores: Floats
    grade: Floats
    map: FeatureMap
    earnings: GainTable

    def __post_init__(self) -> None:
        for name in ("scores", "grade"):
            object.__setattr__(self, name, finite(name, getattr(self, name), 1))
        if not self.scores.size:
            raise InvalidProblemError("a ranking needs at least one document")
        object.__setattr__(self, "map", self.alone().map)

    @memoized
    def alone(self) -> RelevanceBatch:
        """The batch of this single query."""
        return RelevanceBatch(self.scores, self.grade, self.map, self.earnings, np.array([0, self.scores.size]))

    @property
    def documents(self) -> int:
        return int(self.scores.size)

    @property
    def positions(self) -> int:
        return int(self.scores.size)

    @cached_property
    def chains(self) -> Chains:
        return Chains.from_scores(self.scores, self.grade, self.map, self.earnings)

    @property
    def scale(self) -> float:
        """The largest sum, in magnitude, of the documents' contributions, and of all shares at the first discount."""
        most = float(np.abs(self.earnings.discount).max() * np.abs(self.earnings.share).sum())
        return float(self.alone().reach[0]) + most

    @property
    def rounding(self) -> float:
        return 16.0 * EPSILON * (self.documents + 4.0) * self.scale

    @property
    def shape_text(self) -> str:
        return f"{self.documents} documents, {' × '.join(str(len(chain) + 1) for chain in self.chains.members)} states"

    @property
    def size(self) -> int:
        return self.chains.states * len(self.chains.members)

    @memoized
    def lattice(self) -> LatticePath:
        """The longest path with explicit edges, cached."""
        if self.chains.states > MOST_STATES:
            raise UnsupportedProblemError(f"{self.shape_text} exceed {MOST_STATES}; use 'exact' or a cutoff.")
        edges = edges_of(self.chains, self.map, self.earnings)
        return LatticePath(edges, float(self.earnings.constant[0]))

    @property
    def program(self) -> Program:
        return self.lattice().program

    @property
    def full_program(self) -> Program:
        return self.lattice().full_program

    def _order_values(self, x: NDArray[Any]) -> OrderValues:
        return self.alone().judged(np.asarray(x, dtype=np.int64))

    def value(self, x: NDArray[Any]) -> float:
        return float(self._order_values(x).value[0])

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        if self.documents > EXACT_DOCUMENTS:
            return float(self._order_values(x).least[0])
        value = exact_value(self.scores, self.grade, self.map, self.earnings, np.asarray(x, dtype=np.int64))
        near = float(value)
        return near if Fraction(near) <= value else float(np.nextafter(near, -np.inf))

    def bound(self, y: Floats) -> float:
        if np.size(y) == 0:
            return self._relaxation_bound
        # Each explicit edge is rounded by less than its share of the reach.
        left, known = float(self.alone().left[0]), self.lattice().bound(y)
        return float(np.nextafter(known + left, np.inf)) if left > 0.0 else known

    def bound_float64(self, y: Floats) -> float:
        return self.lattice().bound(y) if np.size(y) else self._relaxation_bound

    @cached_property
    def _relaxation_bound(self) -> float:
        """The bound without potentials; infinite if there is none."""
        chains, earnings = self.chains, self.earnings
        if self.map.kind != PAIRWISE or earnings.kind != RANK or len(chains.members) != 2:
            return np.inf
        bad, good = chains.heights
        known = every_bad_for_itself(good, bad, earnings.share, earnings.discount, float(self.map.weight[0]))
        return float(np.nextafter(known + float(earnings.constant[0]), np.inf))

    def improve_bound(self, solution: Solution) -> Solution:
        """The bound from a search for the best order, if less than the dual bound."""
        if solution.bound - solution.value <= self.rounding:
            return solution
        searched = load("formulations.argmax.relevance_batch:searched_bound")(self)
        bound = min(solution.bound, max(searched, solution.value))
        status = status_of(bound - solution.value, solution.violation, self.rounding, self.tolerance)
        return replace(solution, bound=bound, status=status)

    def recover_dual(self, x: NDArray[Any]) -> Floats | None:
        states = self.chains.states
        if states > MOST_STATES:
            layout = load("formulations.argmax.relevance_layout:layout_of")(self.alone())
            if layout.hidden(self.alone(), layout.algorithm)[0] <= self.rounding:
                return None  # the bound of the search proves the optimum, in a few sorts
        elif states <= FEW_STATES or self._relaxation_bound - self.value(x) > self.rounding:
            return self.lattice().recover_dual(x)
        return np.zeros(0) if np.isfinite(self._relaxation_bound) else None

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"order": np.asarray(x), "slope": self._order_values(x).slope}

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return self.lattice().named_dual(y) if y.size else {}

    def to_text(self) -> str:
        return (
            "maximize    r(y)ᵀs - gain(y)\n"
            f"subject to  y is an order of {self.documents} documents, r(y) its slope by the {self.map.kind} map"
        )


@dataclass(frozen=True, eq=False)
class RelevanceBatch(ScoredBatch):
    """One `RelevanceRanking` a query, in flat arrays: query q owns rows offsets[q] : offsets[q + 1] of both.

    Cached values of a batch do not depend on the scores.
    """

    scores: Floats
    grade: Floats
    map: FeatureMap
    earnings: GainTable
    offsets: Ints

    def __post_init__(self) -> None:
        for name in ("scores", "grade"):
            object.__setattr__(self, name, finite(name, getattr(self, name), 1))
        object.__setattr__(self, "offsets", offsets_of("offsets", self.offsets, self.scores.size))
        check_type("map", self.map, FeatureMap)
        check_type("earnings", self.earnings, GainTable)
        if self.map.kind == FIRST and self.map.weight.size == len(self) and self.grade.size == self.scores.size:
            # Without a relevant document r = 0.
            relevant = np.logical_or.reduceat(self.grade > 0, self.offsets[:-1])
            if not relevant[self.map.weight > 0].all():
                object.__setattr__(self, "map", FeatureMap(FIRST, np.where(relevant, self.map.weight, 0.0)))
        rows, queries = self.scores.size, len(self)
        if self.grade.size != rows or self.earnings.discount.size != rows:
            raise InvalidProblemError(f"scores ({rows}), grade and earnings need one entry a document")
        weights = rows if self.map.kind == POSITIONAL else queries
        if self.map.weight.size != weights or self.earnings.constant.size != queries:
            raise InvalidProblemError(f"feature map and earnings must describe the same {queries} queries as scores")
        if self.map.kind == POSITIONAL:
            non_increasing_by_query("position_weights", self.map.weight, self.offsets)
        self.check_magnitude()

    @property
    def sizes(self) -> Ints:
        """(m,) the number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def reach(self) -> Floats:
        """(m,) a bound on the magnitude of the value of each query."""
        slope, most = self._reach()
        return slope * np.add.reduceat(np.abs(self.scores), self.offsets[:-1]) + most

    @memoized
    def _reach(self) -> tuple[Floats, Floats]:
        return reach_of(self.map, self.earnings, self.offsets)

    @property
    def left(self) -> Floats:
        """(m,) a bound on the rounding errors of the search and of the value of an order."""
        return EPSILON * (32.0 + 8.0 * self.sizes) * self.reach

    def judged(self, order: Ints) -> OrderValues:
        """The values of orders: (N,) the document, counted within its query, at each position."""
        return OrderedBatch(self.grade, self.level, self.map, self.earnings, self.offsets, order).judged(self.scores)

    @property
    @memoized
    def level(self) -> Ints:
        """(N,) the rank of each document's grade among those of its query, from 0."""
        return alike(self.offsets, self.grade).astype(np.int64)

    def __getitem__(self, query: int) -> RelevanceRanking:
        alone = self.select_queries(query, query + 1)
        return RelevanceRanking(alone.scores, alone.grade, alone.map, alone.earnings)

    def select_queries(self, first: int, last: int) -> RelevanceBatch:
        """The queries first <= q < last."""
        low, high = self.offsets[[first, last]].tolist()
        part = (first, last, low, high)
        offsets = self.offsets[first : last + 1] - low
        rows = slice(low, high)
        return RelevanceBatch(
            self.scores[rows],
            self.grade[rows],
            self.map.select_queries(*part),
            self.earnings.select_queries(*part),
            offsets,
        )

    def check_magnitude(self) -> None:
        slope, most = self._reach()
        scores = max(float(self.scores.max()), -float(self.scores.min()))
        reach = float((slope * self.sizes).max()) * scores + float(most.max())
        if not reach <= LARGEST:
            raise InvalidProblemError(f"values must be below {LARGEST:g}; got {reach:g}. Rescale scores or gains.")
