"""What every round of an alternation saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AlternationHistory", "AlternationStep"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AlternationStep:
    """One round, 0 the start: J after it, the lower bounds of J over the users' and over the items' block, the measure
    on eval_set (NaN without one), and seconds since the start."""

    step: int
    primal: float
    users: float
    items: float
    judged: float
    seconds: float

    @property
    def bound(self) -> float:
        """The lower of the two bounds: no optimum of the whole."""
        return min(self.users, self.items)


@dataclass(frozen=True, eq=False)
class AlternationHistory:
    """The rounds of a run as columns: `history.primal[i]` is J after round i, and so for each field of
    `AlternationStep`."""

    step: Ints
    primal: Floats
    users: Floats
    items: Floats
    judged: Floats
    seconds: Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            column = getattr(self, field.name)
            if not isinstance(column, np.ndarray) or column.shape != np.shape(self.step) or column.ndim != 1:
                raise ValueError(f"{field.name} of a history is no column of numbers, one a round")

    @classmethod
    def of(cls, steps: Sequence[AlternationStep]) -> AlternationHistory:
        """The history of these rounds."""
        names = [field.name for field in fields(AlternationStep)]
        columns: dict[str, Any] = {
            name: np.array([getattr(one, name) for one in steps], dtype=np.float64) for name in names
        }
        return cls(**{**columns, "step": columns["step"].astype(np.int64)})

    def __len__(self) -> int:
        return int(self.step.size)

    def __getitem__(self, index: int) -> AlternationStep:
        names = [field.name for field in fields(AlternationStep)]
        return AlternationStep(**{name: getattr(self, name)[index].item() for name in names})

    def plot(self, axes: Axes | None = None, against: str = "step") -> Axes:
        """J and the bounds of both blocks against "step" or "seconds"."""
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1] if axes is None else axes
        x = getattr(self, against)
        axes.plot(x, self.primal, label="objective")
        axes.plot(x, self.users, label="bound of the users' block")
        axes.plot(x, self.items, label="bound of the items' block")
        axes.set(xlabel=against, ylabel="objective")
        axes.legend(frameon=False)
        return axes
