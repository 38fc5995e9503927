"""What every step of a run saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["History", "Step"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """One step: its number, how many majorants there were (0 for a convex bound), the best proven objective and the
    best proven lower bound of that majorant, the objective at the step's own w, planes kept, seconds since the start,
    and of these in the argmax and in the master so far."""

    step: int
    round: int
    primal: float
    bound: float
    latest: float
    planes: int
    seconds: float
    seconds_argmax: float
    seconds_master: float


@dataclass(frozen=True, eq=False)
class History:
    """The steps of a run as columns: `history.primal[i]` is the primal of step i, and so for each field of `Step`."""

    step: Ints
    round: Ints
    primal: Floats
    bound: Floats
    latest: Floats
    planes: Ints
    seconds: Floats
    seconds_argmax: Floats
    seconds_master: Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            column = getattr(self, field.name)
            if not isinstance(column, np.ndarray) or column.shape != np.shape(self.step) or column.ndim != 1:
                raise ValueError(f"{field.name} of a history is no column of numbers, one a step")

    @classmethod
    def of(cls, steps: Sequence[Step]) -> History:
        """The history of these steps."""
        return cls(**{field.name: np.array([getattr(step, field.name) for step in steps]) for field in fields(Step)})

    def __len__(self) -> int:
        return int(self.step.size)

    def __getitem__(self, index: int) -> Step:
        return Step(**{field.name: getattr(self, field.name)[index].item() for field in fields(Step)})

    @property
    def gap(self) -> Floats:
        """primal - bound after each step."""
        return np.asarray(self.primal - self.bound)

    def plot(self, axes: Axes | None = None, against: str = "step") -> Axes:
        """Primal and proven bound against "step" or "seconds"; the area between them is what is not yet proven.

        Rounds of the concave-convex procedure, each with a convex problem and a gap of its own, are parted by lines.
        """
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1] if axes is None else axes
        x = getattr(self, against)
        for number, round in enumerate(np.unique(self.round)):
            rows = self.round == round
            first = number == 0  # one entry of the legend for all rounds
            axes.fill_between(
                x[rows], self.bound[rows], self.primal[rows],
                color="C0", alpha=0.15, linewidth=0, label="gap" if first else None,
            )  # fmt: skip
            axes.plot(x[rows], self.primal[rows], color="C0", label="best objective" if first else None)
            axes.plot(x[rows], self.bound[rows], color="C1", label="proven lower bound" if first else None)
            if not first:
                axes.axvline(x[rows][0], color="0.8", linewidth=0.8, zorder=0)
        axes.set(xlabel=against, ylabel="objective")
        axes.legend(frameon=False)
        return axes
