"""What an ascent proves of its end: that no direction of a list leads higher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.brevity import CompactReprMixin
from formulations.notebook_view import lines
from rankopt.optimize.certificate import Stop
from rankopt.optimize.line_search import LineSearch

__all__ = ["DirectionCertificate", "proved"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AT_ONCE = 16
"""Directions whose lines are held in memory at once."""


@dataclass(frozen=True, eq=False)
class DirectionCertificate(CompactReprMixin):
    """For each direction v of the list, and every t that is no jumping point: M(w + t v) <= value + epsilon, value =
    M(w), M the mean of the measure over the training queries, documents of equal score averaged.

    features: (k,) the numbers of those features whose unit vectors are in the list. vectors: (r, d) the others.
    at_start: w is where the ascent began.

    It says nothing of several directions at once: a higher place may lie one step along each of two of them. At jumping
    points, where documents tie, the measure may exceed both of its neighbours; nothing is said of these either.
    """

    value: float
    epsilon: float
    features: Ints
    vectors: Floats
    stop: Stop
    at_start: bool = False
    kind: ClassVar[str] = "direction-wise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", Stop(self.stop))  # a saved certificate holds the plain text
        features, vectors = self.features, self.vectors
        if not (isinstance(features, np.ndarray) and features.dtype == np.int64 and features.ndim == 1):
            raise ValueError("features of a certificate are no numbers of features")
        if np.any(features < 0) or np.unique(features).size < features.size:
            raise ValueError("features of a certificate are named twice, or below 0")
        if not (isinstance(vectors, np.ndarray) and vectors.dtype == np.float64 and vectors.ndim == 2):
            raise ValueError("vectors of a certificate are no rows of numbers")
        if not np.isfinite(vectors).all() or not isinstance(self.at_start, bool):
            raise ValueError("vectors of a certificate are not finite, or at_start is no truth")
        numbers = (self.value, self.epsilon)
        if any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
            raise ValueError(f"a certificate of M = {self.value!r} and epsilon = {self.epsilon!r}")
        if not np.isfinite(self.value) or not 0 <= self.epsilon < np.inf:
            raise ValueError(f"a certificate of M = {self.value!r} and epsilon = {self.epsilon!r}")

    def __len__(self) -> int:
        """How many directions are in the list."""
        return int(self.features.size + len(self.vectors))

    def _repr_html_(self) -> str:
        return lines(str(self))

    def __str__(self) -> str:
        if not len(self):
            return f"{self.kind}: M = {self.value:.8g}, no direction was tried from here, {self.stop.value}"
        parts = [f"{self.features.size} features", f"{len(self.vectors)} other directions"]
        told = " and ".join(part for part in parts if not part.startswith("0 "))
        return (
            f"{self.kind}: M = {self.value:.8g}, along {told}, each alone, nothing is higher by more than "
            f"{self.epsilon:.2g}, {self.stop.value}"
        )


def proved(search: LineSearch, w: Floats, value: float, directions: Sequence[int | Floats]) -> float:
    """epsilon of these directions at w: by how much the best open interval of any of them exceeds M(w) = value."""
    excess = 0.0
    for begin in range(0, len(directions), AT_ONCE):
        found = search.along_all(w, directions[begin : begin + AT_ONCE], "middle")
        excess = max(excess, *(line.best - value for line in found))
    return excess
