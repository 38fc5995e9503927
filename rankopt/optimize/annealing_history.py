"""What every step of an annealed descent saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, eq=False)
class AnnealingHistory:
    """The steps of a run as columns: `history.primal[i]` is J_σ after step i, and so for each field of
    `AnnealingStep`."""

    step: Ints
    sigma: Floats
    primal: Floats
    gradient: Floats
    seconds: Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            column = getattr(self, field.name)
            if not isinstance(column, np.ndarray) or column.shape != np.shape(self.step) or column.ndim != 1:
                raise ValueError(f"{field.name} of a history is no column of numbers, one a step")

    @classmethod
    def of(cls, steps: Sequence[AnnealingStep]) -> AnnealingHistory:
        """The history of these steps."""
        columns = {field.name: np.array([getattr(one, field.name) for one in steps]) for field in fields(AnnealingStep)}
        return cls(**{**columns, "step": columns["step"].astype(np.int64)})

    def __len__(self) -> int:
        return int(self.step.size)

    def __getitem__(self, index: int) -> AnnealingStep:
        return AnnealingStep(**{field.name: getattr(self, field.name)[index].item() for field in fields(AnnealingStep)})

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
