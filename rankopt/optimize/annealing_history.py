"""What every step of an annealed descent saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.columns import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AnnealingHistory", "AnnealingStep"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AnnealingStep:
    """One step: its number, σ, the objective J_σ, the length of its gradient (features in units of their deviation),
    and seconds since the start."""

    step: int
    sigma: float
    primal: float
    gradient: float
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class AnnealingHistory(Columns[AnnealingStep]):
    """The steps of a run as columns: `history.primal[i]` is J_σ after step i, and so for each field of
    `AnnealingStep`."""

    row: ClassVar[type[AnnealingStep]] = AnnealingStep
    drawn: ClassVar[tuple[str, ...]] = ("primal",)

    step: Ints
    sigma: Floats
    primal: Floats
    gradient: Floats
    seconds: Floats

    def plot(self, axes: Axes | None = None, against: str = "step") -> Axes:
        """J_σ against "step" or "seconds", a line for each σ: the objectives of two σ are two functions."""
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1] if axes is None else axes
        x = getattr(self, against)
        for sigma in dict.fromkeys(self.sigma.tolist()):
            rows = self.sigma == sigma
            axes.plot(x[rows], self.primal[rows], label=f"σ = {sigma:g}")
        axes.set(xlabel=against, ylabel="smoothed objective")
        axes.legend(frameon=False)
        return axes
