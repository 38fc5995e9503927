"""Upper bounds of the regret by loss-augmented argmax, as functions of the scores alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from formulations.forms.rank_two_assignment import RankTwoBatch
from formulations.solvers.solver import Solver
from formulations.solving.batch import solve_batch
from formulations.threads import share_ranges
from rankopt.losses.argmax_admissible import AdmissibleBatch
from rankopt.losses.by_query import QUERY_ROWS, query_of_row, sorted_rows
from rankopt.losses.loss import LossAt
from rankopt.losses.margin_kernel import judged

__all__ = ["MarginLoss", "Reference"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Reference(Protocol):
    """Which bound: the weights c̄ that are subtracted; under constraints the rows of an admissible order."""

    convex: ClassVar[bool]

    def weights(self, problem: RankTwoBatch, scores: Floats) -> Floats: ...

    def admissible(self, batch: AdmissibleBatch, scores: Floats) -> Ints: ...


EXACTLY = 2
"""Queries of a shard whose proof is also checked in rational numbers, where bounds are proved by prices."""


@dataclass(frozen=True, eq=False)
class MarginLoss:
    """loss_q(s) = max_π [c[π]ᵀs - a[π]ᵀb] + max_π a[π]ᵀb - c̄ᵀs for every query q of a batch [ORM, eq. 20 to 22].

    problem: gain b, discount a, decay c and offsets (its scores do not matter). reference: the bound, which gives c̄.
    fixed: c̄ where it no longer follows the scores: the convex majorant of a nonconvex bound.
    """

    problem: RankTwoBatch
    reference: Reference
    solver: Solver
    fixed: Floats | None = None

    @property
    def convex(self) -> bool:
        return self.fixed is not None

    @classmethod
    def build(cls, problem: RankTwoBatch, reference: Reference, solver: Solver) -> MarginLoss:
        """The loss; the reference of a convex bound is computed once, here."""
        loss = cls(problem, reference, solver)
        return loss.majorant(problem.scores) if reference.convex else loss

    def majorant(self, scores: Floats) -> MarginLoss:
        """The convex loss that is nowhere below this one and touches it at `scores`."""
        if self.fixed is not None:
            return self
        return replace(self, fixed=self.reference.weights(self.problem, scores))

    def only(self, first: int, last: int) -> MarginLoss:
        """The loss of the queries first <= q < last."""
        all_, (low, high) = self.problem, self.problem.offsets[[first, last]]
        rows = slice(int(low), int(high))
        offsets = all_.offsets[first : last + 1] - low
        problem = RankTwoBatch(all_.scores[rows], all_.gain[rows], all_.discount[rows], all_.decay[rows], offsets)
        return replace(self, problem=problem, fixed=None if self.fixed is None else self.fixed[rows])

    @cached_property
    def best(self) -> Floats:
        """(m,) max_π a[π]ᵀb."""
        rows = sorted_rows(query_of_row(self.problem.offsets), self.problem.gain)
        return np.add.reduceat(self.problem.discount * self.problem.gain[rows], self.problem.offsets[:-1])

    def reference_weights(self, scores: Floats) -> Floats:
        """c̄ at these scores."""
        return self.reference.weights(self.problem, scores) if self.fixed is None else self.fixed

    def at(self, scores: Floats, prove: bool = False) -> LossAt:
        """Values, bounds and planes at `scores`, (N,)."""
        answer = solve_batch(self.problem.with_scores(scores), self.solver)
        answer = answer.proved(exactly=EXACTLY) if prove else answer
        reference = self.reference_weights(scores)
        problem, queries = answer.problems, len(answer)
        placed, height, value = np.empty(scores.size), np.empty(queries), np.empty(queries)
        weights = (problem.scores, problem.gain, problem.discount, problem.decay)
        given = (*weights, problem.offsets, answer.order, self.best, reference)
        share_ranges(
            problem.offsets, QUERY_ROWS, lambda first, last: judged(*given, first, last, placed, height, value)
        )
        return LossAt(value, value + (answer.bound - answer.value), height, placed, reference, answer.seconds)
