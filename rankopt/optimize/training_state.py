"""Where training stands between two steps: plain data, all that is needed to go on to the same end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from rankopt.optimize.certificate import Stop
from rankopt.optimize.state import State

Floats = NDArray[np.float64]

STALLED_AFTER = 60
"""Steps without any progress of primal or bound beyond rounding after which a run ends."""


@dataclass(frozen=True, eq=False)
class IterationInfo(CompactReprMixin):
    """Weights that a run passed through, J there, and a proven lower bound of J or of the majorant that touches it."""

    w: Floats
    primal: float
    bound: float


@dataclass(frozen=True, eq=False)
class TrainingState(CompactReprMixin):
    """state: the method's. passed: the points from which the result is taken. taken: steps so far. round, idle, least:
    the state's round, steps since the gap was last narrowed in it, and that gap. stop: why the run is over, None while
    it is not."""

    state: State
    passed: tuple[IterationInfo, ...] = ()
    taken: int = 0
    round: int = 0
    idle: int = 0
    least: float = np.inf
    stop: Stop | None = None

    def after(self, state: State, tol: float, every: bool) -> TrainingState:
        """Where the run stands after a step that led to `state`.

        every: each point that w moved to is wanted, not the last alone.
        """
        passed = self.passed
        if np.isfinite(state.primal):
            moved = not passed or state.primal < passed[-1].primal
            kept = passed if every and moved else passed[:-1] if every else ()
            passed = (*kept, IterationInfo(state.w, state.primal, state.bound))
        over = Stop.GAP if state.gap <= tol * abs(state.primal) else None
        return replace(self, state=state, passed=passed, taken=self.taken + 1, stop=over)

    def with_best(self, stop: Stop) -> TrainingState:
        """The run is over for this reason; the best point of the state is its result if it has no other."""
        best = IterationInfo(self.state.w, self.state.primal, self.state.bound)
        return replace(self, passed=self.passed or (best,), stop=stop)

    def watched(self, patience: float) -> TrainingState:
        """The same, with a look at whether the last step narrowed the gap: the run is over after many that did not."""
        gap, round = self.state.gap, self.state.round
        if round > self.round or not gap >= self.least - 1e-15 * abs(self.state.primal):
            return replace(self, round=round, idle=0, least=gap)
        idle = self.idle + 1
        return replace(self, idle=idle, stop=Stop.STALLED if idle >= patience else None)
