"""Where a run stands: plain data, so that it can be kept and taken up again at any step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.planes import PlaneSet

__all__ = ["State"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """planes and alpha: the model and the last dual weights. trial: where to evaluate next. w, primal: the best point
    evaluated and its proven objective. bound: the best proven lower bound. latest: the objective at the last trial.
    model: what the model promises at `trial`. Seconds are totals."""

    planes: PlaneSet
    alpha: Floats
    trial: Floats
    w: Floats
    primal: float = np.inf
    bound: float = 0.0
    latest: float = np.inf
    steps: int = 0
    seconds_argmax: float = 0.0
    seconds_master: float = 0.0

    @property
    def gap(self) -> float:
        return self.primal - self.bound

    def seen(self, objective: float, seconds: float) -> State:
        """The state after all queries were evaluated at `trial`, where the objective is proven to be `objective`."""
        state = replace(self, latest=objective, seconds_argmax=self.seconds_argmax + seconds)
        return replace(state, w=self.trial, primal=objective) if objective < self.primal else state

    def restarted(self, w: Floats) -> State:
        """The state for another objective over the same planes: nothing is proven yet, the next trial is w."""
        return replace(self, trial=w, w=w, primal=np.inf, bound=0.0, latest=np.inf)
