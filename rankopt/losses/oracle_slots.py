"""Feature maps of matchings [ORM, section 7.3]: documents are assigned to slots with their own score functions, also
under constraints, or pairs of two sides are matched, with features φ(i, j) of their own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from time import perf_counter

import numpy as np
from scipy.sparse import csr_array

from formulations import Assignment, LinearProgram, RankingSet, constrained_ranking, matching, solve
from formulations.arrays import Bools, Floats, Ints
from formulations.problems.problem import Problem
from formulations.solvers.solver import Solver
from rankopt.errors import DataError, OptionError
from rankopt.losses.oracle import ArgmaxResult
from rankopt.losses.oracle_problem import ProblemOracle
from rankopt.measures.tied_ranking import query_of_row

EMPTY = -1  # marks a slot without a document


def assign_slots(
    profit: Floats, solver: Solver | str = "auto", belongs: Bools | None = None
) -> tuple[Ints, float, float]:
    """The document of each slot (EMPTY where n < k leaves none) that maximize Σ profit[j, i]; value and proven bound.
    profit: (n, k), a row a document. belongs: (n, k); a slot that some document belongs in takes one of these only.
    Every document has a slot where n <= k, every slot a document where n >= k."""
    n, k = profit.shape
    blanks = max(k - n, 0)
    worth = np.vstack([profit, np.zeros((blanks, k))]).T
    cells = None
    if belongs is not None:
        free = ~belongs.any(axis=0)
        cells = np.vstack([belongs | free, np.tile(free, (blanks, 1))]).T
    solution = solve(matching(worth, allowed=cells), solver, directed_rounding=False)
    order = np.where(solution.order < n, solution.order, EMPTY)
    return order, solution.value, max(solution.bound, solution.value)


@dataclass(frozen=True, eq=False)
class SlotArgmax:
    """gain(π) = Σ_i b[π_i, i]; r(π) is the (N, k) 0/1 matrix of assigned documents; scores are (N, k).

    benefit b (N, k): the slot's weight where the document belongs there, else 0; a document belongs to at most one
    slot. Documents of equal scores and benefits share their ones; other ties are broken by these numbers.
    """

    benefit: Floats
    offsets: Ints
    solver: Solver | str = "auto"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.benefit.shape

    @cached_property
    def best(self) -> Floats:
        """(m,) every slot has one of the documents that belong there."""
        return np.asarray(np.maximum.reduceat(self.benefit, self.offsets[:-1], axis=0).sum(axis=1))

    @property
    def worst(self) -> Floats:
        """(m,) what the worst matching earns."""
        return -self._matchings(-self.benefit, -self.benefit)[1]

    def at(self, scores: Floats, prove: bool = False) -> ArgmaxResult:
        """Bounds are always proven by dual variables."""
        began = perf_counter()
        slope, value, bound = self._matchings(scores - self.benefit, np.hstack([scores, self.benefit]))
        seconds = perf_counter() - began
        earned = np.add.reduceat((slope * self.benefit).sum(axis=1), self.offsets[:-1])
        return ArgmaxResult(slope, earned, value, bound, seconds)

    def mean_of_best(self, which: str = "average") -> Floats:
        """Documents that belong in one slot share it, the others share the slots that no document belongs in: it is
        best, its rows and columns sum to at most 1 and fill what there is to fill, so it is a mean of best matchings
        (the matching polytope and its faces are integral)."""
        if which != "average":
            raise OptionError(f"target_ranking must be 'average' for matchings; got {which!r}")
        mean = np.zeros(self.benefit.shape)
        for low, high in pairwise(self.offsets.tolist()):
            belongs = self.benefit[low:high] > 0
            wanted = belongs.any(axis=0)
            own = belongs / np.maximum(belongs.sum(axis=0), 1)
            free = 1.0 - own.sum(axis=1)
            left = max((high - low) - wanted.sum(), (~wanted).sum())
            if left:
                own[:, ~wanted] = (free / left)[:, None]
            mean[low:high] = own
        return mean

    def best_then_score(self, scores: Floats) -> Floats:
        """Of the best matchings the one with the largest score."""
        return self._matchings(scores, np.hstack([scores, self.benefit]), best_only=True)[0]

    def top_scoring(self, scores: Floats) -> Floats:
        """The matching with the largest score."""
        return self._matchings(scores, scores)[0]

    def select_queries(self, first: int, last: int) -> SlotArgmax:
        low, high = self.offsets[first], self.offsets[last]
        return replace(self, benefit=self.benefit[low:high], offsets=self.offsets[first : last + 1] - low)

    def _matchings(self, profit: Floats, content: Floats, best_only: bool = False) -> tuple[Floats, Floats, Floats]:
        """(N, k) 0/1 matrix of the best matching of each query; values and bounds (m,). content: (N, t) features of the
        documents. Documents are matched in the order of their content; equal ones share a mean. All matchings of a
        batch are solved here: replace this loop to solve them faster."""
        query = query_of_row(self.offsets)
        rows = np.lexsort((*content.T[::-1], query))
        ordered, fits = profit[rows], self.benefit[rows] > 0
        assigned, worth = np.zeros(profit.shape), list[tuple[float, float]]()
        for low, high in pairwise(self.offsets.tolist()):
            order, value, bound = assign_slots(ordered[low:high], self.solver, fits[low:high] if best_only else None)
            filled = np.flatnonzero(order != EMPTY)
            assigned[low + order[filled], filled] = 1.0
            worth.append((value, bound))
        known = content[rows]
        starts = np.flatnonzero(np.append(True, (known[1:] != known[:-1]).any(axis=1) | (query[1:] != query[:-1])))
        counts = np.diff(np.append(starts, query.size))
        means = np.add.reduceat(assigned, starts, axis=0) / counts[:, None]
        assigned[rows] = np.repeat(means, counts, axis=0)
        values, bounds = np.array(worth).T
        return assigned, values, bounds


def constrained_slots(
    benefit: Floats, offsets: Ints, sets: Sequence[RankingSet], solver: Solver | str = "auto"
) -> ProblemOracle:
    """The argmax of matchings in the set of each query: its positions are the slots, its documents those of the query
    and behind them as many blanks as leave no slot without one."""
    k = benefit.shape[1]
    problems = [constrained_ranking(np.zeros((k, one.documents)), one) for one in sets]
    cells = [
        document + one.documents * np.arange(k)
        for one, count in zip(sets, np.diff(offsets), strict=True)
        for document in range(count)
    ]
    return ProblemOracle.from_cells(problems, benefit, np.array(cells), offsets, solver)


def pair_argmax(
    benefit: Floats,
    offsets: Ints,
    sides: Sequence[Sequence[Hashable]],
    degrees: Sequence[int],
    solver: Solver | str = "auto",
) -> ProblemOracle:
    """The argmax of matchings of two sides, a row a pair, with features φ(i, j) of its own [ORM, section 7.3].

    benefit: (P,) by pair; pairs that have no row are not matched. sides: the two members of each pair. degrees: the
    largest number of pairs of a member of each side. Programs are totally unimodular (bipartite incidence matrices).
    """
    problems, cells = list[Problem](), list[Ints]()
    for low, high in pairwise(offsets.tolist()):
        own, n = [side[low:high] for side in sides], high - low
        numbers = [{member: i for i, member in enumerate(dict.fromkeys(members))} for members in own]
        left, right = (np.array([number[one] for one in members]) for number, members in zip(numbers, own, strict=True))
        counts = [len(number) for number in numbers]
        if np.unique(left * counts[1] + right).size < n:
            raise DataError("a query has two rows of one pair; pass one row for each pair")
        if tuple(degrees) == (1, 1):  # an assignment: members of the left side, to the right side or to no one
            allowed = np.hstack([np.zeros(counts, dtype=bool), np.eye(counts[0], dtype=bool)])
            allowed[left, right] = True
            problems.append(Assignment(np.zeros(allowed.shape), allowed))
            cells.append(left * allowed.shape[1] + right)
            continue
        upper, row = np.repeat(np.array(degrees, dtype=np.float64), counts), np.concatenate([left, counts[0] + right])
        matrix = csr_array((np.ones(2 * n), (row, np.tile(np.arange(n), 2))), shape=(upper.size, n))
        lower = np.full(upper.size, -np.inf)
        problems.append(LinearProgram(np.zeros(n), matrix, lower, upper, np.zeros(n), np.ones(n)))
        cells.append(np.arange(n))
    return ProblemOracle.from_cells(problems, benefit, np.concatenate(cells), offsets, solver)
