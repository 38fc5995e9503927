"""Upper bounds of the regret where only the rankings of a set are admissible [ORM, section 7.1]."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.losses.argmax_admissible import AdmissibleBatch
from rankopt.losses.loss import LossAt
from rankopt.losses.margin import Reference

__all__ = ["ConstrainedLoss"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ConstrainedLoss:
    """loss_q(s) = max_{π in S_q} [c[π]ᵀs - a[π]ᵀb] + max_{π in S_q} a[π]ᵀb - c̄ᵀs for every query q of a batch.

    Regret is measured from the best admissible order; a and c are cut to the positions of S_q. The bound of the loss is
    that of the programs solved: it stays above the value where a relaxation is fractional. reference: the bound, which
    gives c̄ = c[π̄] of an admissible π̄. fixed: c̄ where it no longer follows the scores.
    """

    batch: AdmissibleBatch
    reference: Reference
    fixed: Floats | None = None

    @property
    def convex(self) -> bool:
        return self.fixed is not None

    @classmethod
    def build(cls, batch: AdmissibleBatch, reference: Reference, start: Floats) -> ConstrainedLoss:
        """The loss. The reference of a convex bound is chosen once, here: ties for the measure fall by the scores
        `start`, then by the order of the documents."""
        batch = batch if batch.best is not None else batch.with_best()
        loss = cls(batch, reference)
        return loss.majorant(_told_apart(start, batch.offsets)) if reference.convex else loss

    def majorant(self, scores: Floats) -> ConstrainedLoss:
        """The convex loss that is nowhere below this one and touches it at `scores`."""
        return self if self.convex else replace(self, fixed=self.reference_weights(scores))

    def only(self, first: int, last: int) -> ConstrainedLoss:
        """The loss of the queries first <= q < last."""
        rows = slice(int(self.batch.offsets[first]), int(self.batch.offsets[last]))
        fixed = None if self.fixed is None else self.fixed[rows]
        return replace(self, batch=self.batch.some(np.arange(first, last)), fixed=fixed)

    def reference_weights(self, scores: Floats) -> Floats:
        """c̄ at these scores."""
        if self.fixed is not None:
            return self.fixed
        return self.batch.placed(self.reference.admissible(self.batch, scores))

    def at(self, scores: Floats, prove: bool = False) -> LossAt:
        """Values, bounds and planes at `scores`, (N,). Bounds are proven by dual prices always."""
        ones = np.ones(len(self.batch))
        answer, best = self.batch.argmax(-ones, ones, scores), self.batch.best_orders
        placed, reference = self.batch.placed(answer.rows), self.reference_weights(scores)
        height = best.value - self.batch.measured(answer.rows)
        value = height + np.add.reduceat((placed - reference) * scores, self.batch.offsets[:-1])
        unproven = (answer.bound - answer.value) + (best.bound - best.value)
        return LossAt(value, value + unproven, height, placed, reference, answer.seconds)


def _told_apart(scores: Floats, offsets: Ints) -> Floats:
    """The scores, brought to size 1, with equal ones falling by the order of the documents."""
    sizes = np.diff(offsets)
    size = np.maximum.reduceat(np.abs(scores), offsets[:-1])
    place = (np.arange(scores.size) - np.repeat(offsets[:-1], sizes)) / np.repeat(sizes, sizes)
    return np.asarray(scores / np.repeat(np.where(size > 0, size, 1.0), sizes) - 1e-6 * place)
