"""What every step of a run saw."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["History", "Step"]


@dataclass(frozen=True)
class Step:
    """One step: its number, the round of the concave-convex procedure (0 for a convex bound), the best proven objective
    and the best proven lower bound of that round, the objective at the step's own w, planes kept, seconds since the
    start, and of these in the argmax and in the master so far."""

    step: int
    round: int
    primal: float
    bound: float
    latest: float
    planes: int
    seconds: float
    seconds_argmax: float
    seconds_master: float


@dataclass(frozen=True)
class History:
    """The steps of a run, in order; `history.primal`, `history.bound`, ... are columns."""

    steps: tuple[Step, ...] = ()

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: int) -> Step:
        return self.steps[index]

    def column(self, name: str) -> NDArray[np.float64]:
        """One figure of all steps, such as "primal" or "seconds"."""
        return np.array([getattr(step, name) for step in self.steps], dtype=np.float64)

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        if name in {field.name for field in fields(Step)}:
            return self.column(name)
        raise AttributeError(name)

    def plot(self, axes: Axes | None = None, against: str = "step") -> Axes:
        """Primal and proven bound against "step" or "seconds"; the area between them is what is not yet proven."""
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1] if axes is None else axes
        x = self.column(against)
        primal, bound = self.column("primal"), self.column("bound")
        axes.fill_between(x, bound, primal, alpha=0.15, linewidth=0, label="gap")
        axes.plot(x, primal, label="best objective")
        axes.plot(x, bound, label="proven lower bound")
        for start in np.flatnonzero(np.diff(self.column("round")) > 0) + 1:
            axes.axvline(x[start], color="0.8", linewidth=0.8, zorder=0)
        axes.set(xlabel=against, ylabel="objective")
        axes.legend(frameon=False)
        return axes

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists."""
        return {field.name: [getattr(step, field.name) for step in self.steps] for field in fields(Step)}
