"""What each feature moves scores by: its weight times what it varies by inside queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.brevity import CompactReprMixin
from rankopt.explanations.deviations import deviations_within

__all__ = ["Weights"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights(CompactReprMixin):
    """Features (d,) by falling magnitude of `effect` = coef × deviation, the deviation being that within queries: in
    units of the score, so that features of other units can be compared. `share`: its part of the sum of magnitudes.
    `column`: where each stands in the data."""

    features: tuple[str, ...]
    coef: Floats
    deviation: Floats
    column: NDArray[np.int64]

    @classmethod
    def of(cls, names: Sequence[str], coef: Floats, deviation: Floats) -> Weights:
        """The weights `coef` (d,) of features that vary by `deviation` (d,)."""
        order = np.argsort(-np.abs(coef * deviation), kind="stable")
        return cls(tuple(names[j] for j in order.tolist()), coef[order], deviation[order], order)

    @classmethod
    def on(cls, names: Sequence[str], coef: Floats, queries: Any) -> Weights:
        """The same, deviations taken of the documents of `queries`."""
        return cls.of(names, coef, deviations_within(queries.features, queries.offsets))

    def __len__(self) -> int:
        return len(self.features)

    @property
    def effect(self) -> Floats:
        return self.coef * self.deviation

    @property
    def share(self) -> Floats:
        size = np.abs(self.effect)
        return size / total if (total := float(size.sum())) > 0.0 else size

    @property
    def finding(self) -> str:
        """One sentence: how many features carry most of the score."""
        few = min(int(np.searchsorted(np.cumsum(self.share), 0.8)) + 1, len(self))
        if not self.share.any():
            return "No feature moves the scores: all weights are 0, or no feature varies within a query."
        unused = int((self.effect == 0.0).sum())
        most = f"{self.features[0]} moves scores most, by {self.effect[0]:+.3g} a deviation"
        rest = f"; {unused} move nothing" if unused else ""
        return f"{most}; {few} of {len(self)} features make up four fifths of what moves them{rest}."
