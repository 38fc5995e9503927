"""What feature maps of orders under measures of the pattern of grades share: the argmax itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from formulations import solve_batch
from formulations.compiled import STATES
from formulations.solvers.exact import Exact
from formulations.solvers.solver import Solver
from rankopt.losses.argmax import ArgmaxResult
from rankopt.losses.criterion import Criterion
from rankopt.losses.segment_ops import shared

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXACTLY = 1
"""Queries of a shard whose proof is also checked in rational numbers, where bounds are proved by prices."""


def settled(solver: Solver, criterion: Criterion) -> Solver:
    """The solver, where it is the exact one told once for all these queries whether it is compiled: shards of them must
    not differ. Many kinds of documents make many states of few documents."""
    if not isinstance(solver, Exact) or solver.compiled is not None:
        return solver
    starts = criterion.offsets[:-1][criterion.query]  # a query has no more kinds than documents
    states = np.multiply.reduceat(
        np.bincount(starts + criterion.kind, minlength=starts.size) + 1.0, criterion.offsets[:-1]
    )
    return solver.for_batch(criterion.offsets) if states.sum() <= STATES else replace(solver, compiled=True)


@dataclass(frozen=True, eq=False)
class OrdersArgmax:
    """A map of orders: a subclass states the problem of the loss-augmented order and says its references.

    criterion: the measure on the queries. solver: who finds the orders.
    """

    criterion: Criterion
    solver: Solver

    @property
    def shape(self) -> tuple[int, ...]:
        return self.criterion.relevance.shape

    @property
    def offsets(self) -> Ints:
        return self.criterion.offsets

    @property
    def best(self) -> Floats:
        return self.criterion.best

    @cached_property
    def problem(self) -> Any:
        """The batch of max over orders of r(π)ᵀs - gain(π), a `PatternBatch`; its scores do not matter."""
        raise NotImplementedError(f"{type(self).__name__} has no `problem`; write it.")

    def at(self, scores: Floats, prove: bool = False) -> ArgmaxResult:
        answer = solve_batch(self.problem.with_scores(scores), self.solver, outward=False)
        answer = answer.proved(exactly=EXACTLY) if prove else answer
        slope = shared(answer.slope.copy(), answer.problems.scores, self.criterion.kind, self.offsets, answer.order)
        constant = self.criterion.constant
        return ArgmaxResult(
            slope, answer.earned + constant, answer.value - constant, answer.bound - constant, answer.seconds
        )

    def only(self, first: int, last: int) -> Self:
        return replace(self, criterion=self.criterion.only(first, last))
