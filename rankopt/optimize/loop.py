"""The one loop: a method takes steps until the gap is closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.certificate import Stop
from rankopt.optimize.history import Step
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import State

__all__ = ["Callback", "Clock", "Method", "minimise"]

Floats = NDArray[np.float64]
Callback = Callable[[Step, State], bool | None]
"""Called after every step; stops the run by returning True."""

STALLED_AFTER = 60
"""Steps without any progress of primal or bound beyond rounding after which a run ends."""


class Method(Protocol):
    """Frozen settings of a way to minimise; the state is apart."""

    def start(self, objective: Objective, w: Floats) -> State: ...

    def step(self, state: State, objective: Objective) -> State: ...


@dataclass
class Clock:
    """What a run may still use: steps and seconds, counted over all rounds; and what it has recorded."""

    max_iter: int
    time_limit: float | None
    callbacks: tuple[Callback, ...]
    steps: list[Step]
    began: float

    @classmethod
    def started(cls, max_iter: int, time_limit: float | None, callbacks: tuple[Callback, ...] = ()) -> Clock:
        return cls(max_iter, time_limit, callbacks, [], perf_counter())

    def record(self, state: State, round: int) -> Stop | None:
        """Record a step; the reason to stop, if callbacks or limits give one."""
        seconds = perf_counter() - self.began
        self.steps.append(
            Step(
                step=len(self.steps) + 1,
                round=round,
                primal=state.primal,
                bound=state.bound,
                latest=state.latest,
                planes=len(state.planes),
                seconds=seconds,
                seconds_argmax=state.seconds_argmax,
                seconds_master=state.seconds_master,
            )
        )
        asked = [callback(self.steps[-1], state) for callback in self.callbacks]
        if any(asked):
            return Stop.CALLBACK
        if len(self.steps) >= self.max_iter:
            return Stop.ITERATIONS
        if self.time_limit is not None and seconds >= self.time_limit:
            return Stop.TIME
        return None


def minimise(
    objective: Objective,
    method: Method,
    state: State,
    enough: Callable[[State], bool],
    clock: Clock,
    round: int = 0,
) -> tuple[State, Stop]:
    """Take steps on a convex objective until `enough` of the state, or the clock, says stop.

    An interruption from the keyboard ends the run with the best point so far.
    """
    idle, least = 0, np.inf
    try:
        while True:
            state = method.step(state, objective)
            reason = clock.record(state, round)
            if enough(state):
                return state, Stop.GAP
            if reason is not None:
                return state, reason
            progress = state.gap < least - 1e-15 * abs(state.primal)
            idle, least = (0, state.gap) if progress else (idle + 1, least)
            if idle >= STALLED_AFTER:
                return state, Stop.STALLED
    except KeyboardInterrupt:
        return state, Stop.INTERRUPTED
