"""Where training stands between two steps: plain data, all that is needed to go on to the same end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.certificate import Stop
from rankopt.optimize.state import State

__all__ = ["Passed", "Standing"]

Floats = NDArray[np.float64]

STALLED_AFTER = 60
"""Steps without any progress of primal or bound beyond rounding after which a run ends."""


@dataclass(frozen=True, eq=False)
class Passed:
    """Weights that a run passed through, J there, and a proven lower bound of J or of the majorant that touches it."""

    w: Floats
    primal: float
    bound: float


@dataclass(frozen=True, eq=False)
class Standing:
    """state: the method's. touch: where the majorant of this round touches J (a convex J is its own majorant).
    at_touch: J there, known after the first step of the round. passed: the points from which the result is taken.
    taken: steps so far. round: 0 for a convex J. idle, least: steps since the gap was last narrowed, and that gap.
    stop: why the run is over, None while it is not."""

    state: State
    touch: Floats
    at_touch: float | None = None
    passed: tuple[Passed, ...] = ()
    taken: int = 0
    round: int = 0
    idle: int = 0
    least: float = np.inf
    stop: Stop | None = None

    def watched(self) -> Standing:
        """The same, with a look at whether the last step narrowed the gap: the run is over after many that did not."""
        gap = self.state.gap
        if gap < self.least - 1e-15 * abs(self.state.primal):
            return replace(self, idle=0, least=gap)
        idle = self.idle + 1
        return replace(self, idle=idle, stop=Stop.STALLED if idle >= STALLED_AFTER else None)

    def next_round(self) -> Standing:
        """The standing before the first step of another round, whose majorant touches J at the best point of this."""
        assert self.at_touch is not None
        done = Passed(self.touch, self.at_touch, self.state.bound)
        state = self.state.restarted(self.state.w)
        return Standing(state, state.w, passed=(*self.passed, done), taken=self.taken, round=self.round + 1)
