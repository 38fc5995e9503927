"""Combination of several losses of the same scores, query by query: weighted sum or maximum.

    separate    loss_q = Σ_l C_l loss_lq
    shared      loss_q = max_l C_l loss_lq                       one slack for all [paper 4, SVMcombo]

Each part is C_l (H_l - R_l) with H_l and R_l convex. Their maximum is

    max_l [C_l H_l + Σ_{k ≠ l} C_k R_k] - Σ_l C_l R_l

a difference of convex functions. The active part gives a plane of the first term: its slope plus the references of the
other parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.losses.loss import Loss, LossValue


@dataclass(frozen=True, eq=False)
class PartOf:
    """C_l loss_l. queries: increasing indices of the combination's queries on which the part is defined; 0 elsewhere.
    rows: the combination's documents in these queries."""

    weight: float
    loss: Loss
    queries: Ints
    rows: Ints

    def only(self, first: int, last: int, offsets: Ints) -> PartOf | None:
        """Restriction to the queries first <= q < last of the combination; None if the part is undefined on all of
        them."""
        begin, end = np.searchsorted(self.queries, [first, last]).tolist()
        if begin == end:
            return None
        low, high = np.searchsorted(self.rows, offsets[[first, last]]).tolist()
        loss = self.loss if end - begin == self.queries.size else self.loss.only(begin, end)
        return PartOf(self.weight, loss, self.queries[begin:end] - first, self.rows[low:high] - offsets[first])


@dataclass(frozen=True, eq=False)
class Combination:
    """parts: the losses. offsets: (m + 1,) of the combined queries. shared: maximum of the parts instead of their sum.
    fixed: the reference of a majorant of the maximum."""

    parts: tuple[PartOf, ...]
    offsets: Ints
    shared: bool = False
    fixed: Floats | None = None

    @property
    def convex(self) -> bool:
        return self.fixed is not None or all(part.loss.convex for part in self.parts)

    @property
    def unit(self) -> Floats:
        """(m,) the λ that is natural to slopes of this size, in units of that of slopes of 1: C λ of C times a loss."""
        units = np.zeros((len(self.parts), self.offsets.size - 1))
        for own, part in zip(units, self.parts, strict=True):
            own[part.queries] = part.weight * getattr(part.loss, "unit", 1.0)
        return np.asarray(units.max(axis=0) if self.shared else units.sum(axis=0))

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values, bounds and planes at `scores`, (N,)."""
        found = [self._part_at(part, scores, prove) for part in self.parts]
        seconds = sum(one.seconds for one in found)
        reference = _sum([one.reference for one in found])
        if not self.shared:
            value, bound, height, placed = (
                _sum([getattr(one, name) for one in found]) for name in ("value", "bound", "height", "placed")
            )
            return LossValue(value, bound, height, placed, reference, seconds)
        values = np.array([one.value for one in found])
        largest, query = values.argmax(axis=0), np.repeat(np.arange(len(values[0])), np.diff(self.offsets))
        chosen, which = np.arange(values.shape[1]), largest[query]
        every = np.arange(query.size)
        own = np.array([one.placed - one.reference for one in found])[which, every]
        height = np.array([one.height for one in found])[largest, chosen]
        value, bound = values.max(axis=0), np.array([one.bound for one in found]).max(axis=0)
        fixed = reference if self.fixed is None else self.fixed
        if self.fixed is not None:
            more = np.add.reduceat((reference - fixed) * scores, self.offsets[:-1])
            value, bound = value + more, bound + more
        return LossValue(value, bound, height, own + reference, fixed, seconds)

    def majorant(self, scores: Floats) -> Combination:
        """The convex loss that is nowhere below this one and touches it at `scores`; itself if convex."""
        if self.convex:
            return self
        if self.shared:
            return replace(self, fixed=self.reference_weights(scores))
        parts = [replace(part, loss=part.loss.majorant(scores[part.rows])) for part in self.parts]
        return replace(self, parts=tuple(parts))

    def only(self, first: int, last: int) -> Combination:
        """The loss of the queries first <= q < last."""
        low, high = self.offsets[[first, last]].tolist()
        parts = [part.only(first, last, self.offsets) for part in self.parts]
        return Combination(
            tuple(part for part in parts if part is not None),
            self.offsets[first : last + 1] - low,
            self.shared,
            None if self.fixed is None else self.fixed[low:high],
        )

    def reference_weights(self, scores: Floats) -> Floats:
        """Σ_l C_l r̄_l at these scores."""
        if self.fixed is not None:
            return self.fixed
        references = [part.weight * part.loss.reference_weights(scores[part.rows]) for part in self.parts]
        return _sum([self._spread(part.rows, own) for part, own in zip(self.parts, references, strict=True)])

    def _part_at(self, part: PartOf, scores: Floats, prove: bool) -> LossValue:
        """A part's loss in the combination's queries, times its weight."""
        found = part.loss.at(scores[part.rows], prove)
        m = self.offsets.size - 1

        def queries(values: Floats) -> Floats:
            padded = np.zeros(m)
            padded[part.queries] = part.weight * values
            return padded

        return LossValue(
            queries(found.value),
            queries(found.bound),
            queries(found.height),
            self._spread(part.rows, part.weight * found.placed),
            self._spread(part.rows, part.weight * found.reference),
            found.seconds,
        )

    def _spread(self, rows: Ints, values: Floats) -> Floats:
        padded = np.zeros(int(self.offsets[-1]))
        padded[rows] = values
        return padded


def _sum(arrays: list[Floats]) -> Floats:
    """Added up from the first to the last."""
    total = np.zeros_like(arrays[0])
    for array in arrays:
        total += array
    return total
