"""What every step of a run saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.columns import Columns

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


@dataclass(frozen=True, eq=False, repr=False)
class History(Columns[Step]):
    """The steps of a run as columns: `history.primal[i]` is the primal of step i, and so for each field of `Step`."""

    row: ClassVar[type[Step]] = Step
    drawn: ClassVar[tuple[str, ...]] = ("primal", "bound")

    step: Ints
    round: Ints
    primal: Floats
    bound: Floats
    latest: Floats
    planes: Ints
    seconds: Floats
    seconds_argmax: Floats
    seconds_master: Floats

    @property
    def gap(self) -> Floats:
        """primal - bound after each step."""
        return np.asarray(self.primal - self.bound)

    def plot(self, axes: Axes | None = None, against: str = "step") -> Axes:
        """Primal and proven bound against "step" or "seconds"; the area between them is what is not yet proven.

        Each round of the concave-convex procedure has a convex problem and a bound of its own: of several rounds each
        is one line, at the bound that was proven when it ended, and the area is that of the last.
        """
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1] if axes is None else axes
        x, ends = getattr(self, against), np.flatnonzero(np.append(self.round[1:] != self.round[:-1], True))
        axes.plot(x, self.primal, color="C0", label="best objective")
        rows, bound = np.arange(x.size), self.bound
        if ends.size > 1:
            begun = np.append(0, ends[:-1])
            rows, bound = np.arange(begun[-1], ends[-1] + 1), np.full(x.size, bound[-1])
            lines = np.column_stack([x[begun], x[ends], np.full(ends.size, np.nan)]).ravel()
            axes.plot(lines, np.repeat(self.bound[ends], 3), color="C1", label="proven lower bound of a round")
        else:
            axes.plot(x, bound, color="C1", label="proven lower bound")
        axes.fill_between(x[rows], bound[rows], self.primal[rows], color="C0", alpha=0.15, linewidth=0, label="gap")
        axes.set(xlabel=against, ylabel="objective")
        axes.legend(frameon=False)
        return axes
