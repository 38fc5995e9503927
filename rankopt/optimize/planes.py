"""Cutting planes found so far: a lower model of the risk, in groups."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PlaneSet(CompactReprMixin):
    """Plane i lies under the loss of group g = group[i]: heights[i] + ⟨placed[i] - references[g], w⟩.

    `placed` (p, d) holds for every reference, lam and w₀. From one round of the concave-convex procedure to the next
    `references` (G, d) change, and with them `paid` (G,), what they pay for soft constraints, which is in `heights`
    (p,). idle: master solves since the plane last carried weight.
    """

    placed: Floats
    heights: Floats
    group: Ints
    references: Floats
    idle: Ints
    paid: Floats

    @classmethod
    def empty(cls, groups: int, features: int) -> PlaneSet:
        none = np.zeros(0, dtype=np.int64)
        return cls(np.zeros((0, features)), np.zeros(0), none, np.zeros((groups, features)), none, np.zeros(groups))

    def __len__(self) -> int:
        return int(self.heights.size)

    @property
    def slopes(self) -> Floats:
        slopes: Floats = self.placed - self.references[self.group]
        slopes.setflags(write=False)  # a form takes what cannot change as it is, and copies the rest
        return slopes

    def heights_at(self, w: Floats) -> Floats:
        """(G,) the model of each group's loss at w: its highest plane, 0 if none is above 0."""
        heights = np.zeros(self.references.shape[0])
        np.maximum.at(heights, self.group, self.heights + self.slopes @ w)
        return heights

    def with_references(self, references: Floats, paid: Floats) -> PlaneSet:
        """The same planes for another reference."""
        if np.array_equal(references, self.references) and np.array_equal(paid, self.paid):
            return self
        heights = self.heights + (paid - self.paid)[self.group] if (paid != self.paid).any() else self.heights
        return replace(self, references=references, heights=heights, paid=paid)

    def plus(self, placed: Floats, heights: Floats, group: Ints) -> PlaneSet:
        """The set with further planes."""
        return replace(
            self,
            placed=np.vstack([self.placed, placed]),
            heights=np.append(self.heights, heights),
            group=np.append(self.group, group),
            idle=np.append(self.idle, np.zeros(heights.size, dtype=np.int64)),
        )

    def without_idle(self, alpha: Floats, patience: int) -> tuple[PlaneSet, Floats]:
        """Count idleness by the weights alpha and drop planes idle for more than `patience` solves; alpha of the rest.

        Dropping a plane never spoils a lower bound: any planes give one.
        """
        idle = np.where(alpha > 0, 0, self.idle + 1)
        stays = idle <= patience
        if stays.all():
            return replace(self, idle=idle), alpha
        remaining = replace(
            self,
            placed=self.placed[stays],
            heights=self.heights[stays],
            group=self.group[stays],
            idle=idle[stays],
        )
        return remaining, alpha[stays]
