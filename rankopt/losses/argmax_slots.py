"""Upper bounds of the loss of a matching: documents into slots that have score functions of their own [ORM, 7.3]."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from formulations.problems.matching import matching
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve
from rankopt.losses.loss import LossAt

__all__ = ["EMPTY", "SlotLoss", "matched"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

EMPTY = -1
"""Stands where no document is left for a slot."""


def matched(profit: Floats, solver: Solver | str = "auto", belongs: Bools | None = None) -> tuple[Ints, float, float]:
    """The document of each slot (EMPTY where n < k leaves none) that maximise Σ profit[j, i]; value and proven bound.

    profit: (n, k), a row a document. belongs: (n, k); a slot that some document belongs in takes one of these only.
    Every document has a slot where n <= k, every slot a document where n >= k.
    """
    n, k = profit.shape
    blanks = max(k - n, 0)
    worth = np.vstack([profit, np.zeros((blanks, k))]).T
    cells = None
    if belongs is not None:
        free = ~belongs.any(axis=0)
        cells = np.vstack([belongs | free, np.tile(free, (blanks, 1))]).T
    solution = solve(matching(worth, allowed=cells), solver)
    order = np.where(solution.order < n, solution.order, EMPTY)
    return order, solution.value, max(solution.bound, solution.value)


@dataclass(frozen=True, eq=False)
class SlotLoss:
    """loss_q(S) = max_π Σ_i (S[π_i, i] - b[π_i, i]) + max_π Σ_i b[π_i, i] - ⟨R̄, S⟩ for every query q.

    S (N, k): the score of each document for each slot. benefit b (N, k): the slot's weight where the document belongs
    there, else 0; a document belongs to one slot at most. R̄ (N, k), by `bound`:

    * "convex": the mean of best matchings: documents that belong in one slot share it, the others share the slots that
      no document belongs in
    * "tie-aware": of the best matchings the one with the largest score
    * "nonconvex": the matching with the largest score

    fixed: R̄ where it does not follow the scores.
    """

    benefit: Floats
    offsets: Ints
    bound: str
    solver: Solver | str = "auto"
    fixed: Floats | None = None

    @property
    def convex(self) -> bool:
        return self.fixed is not None

    @classmethod
    def build(cls, benefit: Floats, offsets: Ints, bound: str, solver: Solver | str = "auto") -> SlotLoss:
        loss = cls(benefit, offsets, bound, solver)
        return replace(loss, fixed=loss._shared()) if bound == "convex" else loss

    @cached_property
    def best(self) -> Floats:
        """(m,) max_π Σ_i b[π_i, i]: every slot has one of the documents that belong there."""
        return np.asarray(np.maximum.reduceat(self.benefit, self.offsets[:-1], axis=0).sum(axis=1))

    def orderable(self) -> Bools:
        """(m,) whether the best matching is worth more than the worst."""
        return np.asarray(self.best + self._argmax(-self.benefit)[1] > 1e-12 * self.best)

    def at(self, scores: Floats, prove: bool = False) -> LossAt:
        """Values, bounds and planes at `scores`, (N, k). Bounds are proven by dual prices always."""
        began = perf_counter()
        placed, value, bound = self._argmax(scores - self.benefit)
        seconds = perf_counter() - began
        reference = self.reference_weights(scores)
        missed = np.add.reduceat((placed * self.benefit).sum(axis=1), self.offsets[:-1])
        height = self.best - missed
        loss = height + np.add.reduceat(((placed - reference) * scores).sum(axis=1), self.offsets[:-1])
        return LossAt(loss, loss + (bound - value), height, placed, reference, seconds)

    def majorant(self, scores: Floats) -> SlotLoss:
        return self if self.convex else replace(self, fixed=self.reference_weights(scores))

    def only(self, first: int, last: int) -> SlotLoss:
        low, high = self.offsets[first], self.offsets[last]
        fixed = None if self.fixed is None else self.fixed[low:high]
        return replace(self, benefit=self.benefit[low:high], offsets=self.offsets[first : last + 1] - low, fixed=fixed)

    def reference_weights(self, scores: Floats) -> Floats:
        """R̄ at these scores."""
        if self.fixed is not None:
            return self.fixed
        return self._argmax(scores, best_only=self.bound == "tie-aware")[0]

    def _argmax(self, profit: Floats, best_only: bool = False) -> tuple[Floats, Floats, Floats]:
        """(N, k) ones where documents stand in the best matching of each query; values and bounds (m,).

        The place where a batch of matchings is solved: what is faster than a loop belongs here.
        """
        placed, worth = np.zeros(profit.shape), list[tuple[float, float]]()
        for low, high in pairwise(self.offsets.tolist()):
            belongs = self.benefit[low:high] > 0 if best_only else None
            order, value, bound = matched(profit[low:high], self.solver, belongs)
            filled = np.flatnonzero(order != EMPTY)
            placed[low + order[filled], filled] = 1.0
            worth.append((value, bound))
        values, bounds = np.array(worth).T
        return placed, values, bounds

    def _shared(self) -> Floats:
        """(N, k) the mean matching: it is best, its rows and columns sum to at most 1 and fill what there is to fill,
        so it is a mean of best matchings (the matching polytope and its faces are integral)."""
        shared = np.zeros(self.benefit.shape)
        for low, high in pairwise(self.offsets.tolist()):
            belongs = self.benefit[low:high] > 0
            wanted = belongs.any(axis=0)
            own = belongs / np.maximum(belongs.sum(axis=0), 1)
            free = 1.0 - own.sum(axis=1)
            left = max((high - low) - wanted.sum(), (~wanted).sum())
            if left:
                own[:, ~wanted] = (free / left)[:, None]
            shared[low:high] = own
        return shared
