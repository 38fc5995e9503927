"""What a grower learns from, and how large its trees may be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from rankopt.direct_trees.certificate import MeasureObjective

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    """leaves of a tree, at most. fewest: documents of a leaf. highest: the largest weight of a stage. seed: of draws.
    threads: 0 leaves their number to the package."""

    leaves: int
    fewest: int
    highest: float
    seed: int
    threads: int


@dataclass(frozen=True, eq=False)
class TrainingDocuments(CompactReprMixin):
    """features: (N + E, d), dense: the N documents that are learned from, in their order, and those of eval_set, which
    only land on the leaves. problem: the measure of the former."""

    features: Floats
    problem: MeasureObjective

    @property
    def learned(self) -> Floats:
        """(N, d)"""
        return self.features[: self.problem.grades.size]
