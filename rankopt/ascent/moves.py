"""What every accepted step of an ascent saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.columns import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Move", "Moves"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Move:
    """One accepted step: of which path, in which round, after how many line searches of its path; along which feature
    (-1 for Powell's direction, -2 and below for those drawn), by t, inside (low, high); the measure before it, as
    predicted there, and as measured; seconds since the start."""

    path: int
    round: int
    lines: int
    feature: int
    t: float
    low: float
    high: float
    before: float
    predicted: float
    value: float
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Moves(Columns[Move]):
    """The accepted steps as columns: `history.value[i]` is the measure after step i, and so for each field of `Move`.
    Steps of one path stand together, in their order."""

    row: ClassVar[type[Move]] = Move
    drawn: ClassVar[tuple[str, ...]] = ("value",)

    path: Ints
    round: Ints
    lines: Ints
    feature: Ints
    t: Floats
    low: Floats
    high: Floats
    before: Floats
    predicted: Floats
    value: Floats
    seconds: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, kind in self.kinds().items():
            if getattr(self, name).dtype != kind:
                raise ValueError(f"{name} of a history has another type")

    def plot(self, axes: Axes | None = None, against: str = "lines") -> Axes:
        """The measure of each path after every accepted step, against line searches ("lines") or "seconds"."""
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1] if axes is None else axes
        for path in np.unique(self.path):
            own = self.path == path
            axes.step(getattr(self, against)[own], self.value[own], where="post", label=f"path {path}")
        axes.set(xlabel="line searches" if against == "lines" else against, ylabel="measure")
        if 1 < np.unique(self.path).size <= 8:
            axes.legend(frameon=False)
        return axes
