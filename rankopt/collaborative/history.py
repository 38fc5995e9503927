"""What every round of an alternation saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.columns import Columns

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


@dataclass(frozen=True, eq=False, repr=False)
class AlternationHistory(Columns[AlternationStep]):
    """The rounds of a run as columns: `history.primal[i]` is J after round i, and so for each field of
    `AlternationStep`."""

    row: ClassVar[type[AlternationStep]] = AlternationStep
    drawn: ClassVar[tuple[str, ...]] = ("primal", "users", "items")

    step: Ints
    primal: Floats
    users: Floats
    items: Floats
    judged: Floats
    seconds: Floats

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
