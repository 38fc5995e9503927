"""The parts of the training loop: a method that takes steps, and a clock that counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.certificate import Step, Stop
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import State

Floats = NDArray[np.float64]
Callback = Callable[[Step, State], bool | None]  # called after every step; stops the run by returning True


class Method(Protocol):
    """Frozen settings of a way to minimise; the state is apart.

    `objective` may be nonconvex: then the planes that it gives lie below it only with the reference of `state.planes`,
    which `State.seen` moves along with w, and the bound of the state is that of the majorant that touches J at w.

    A method may also have `aimed(state, objective)`, the state with its model minimised and the next trial chosen: a
    path of lam then goes on without a pass; `finish(state, objective)`, what is left to prove when the run ends; and
    `patience`, the steps without progress after which there is no hope, where they are not the usual number.
    """

    def start(self, objective: Objective, w: Floats) -> State: ...

    def step(self, state: State, objective: Objective) -> State: ...


@dataclass(frozen=True)
class Clock:
    """What a run may still use, steps and seconds counted over all its parts; and what asks it to stop."""

    max_iter: int
    time_limit: float | None
    callbacks: tuple[Callback, ...]
    began: float

    @classmethod
    def started(
        cls,
        max_iter: int,
        time_limit: float | None,
        callbacks: tuple[Callback, ...] = (),
        steps: Sequence[Step] = (),
    ) -> Clock:
        """A clock that runs from now on; seconds of a run that goes on after `steps` count."""
        used = steps[-1].seconds if steps else 0.0
        return cls(max_iter, time_limit, callbacks, perf_counter() - used)

    @property
    def ends(self) -> float | None:
        """The reading of `perf_counter` at which the time is over, if it is limited."""
        return None if self.time_limit is None else self.began + self.time_limit

    def record(self, state: State, number: int) -> Step:
        """The row of this step."""
        return Step(
            step=number,
            round=state.round,
            primal=state.primal,
            bound=state.bound,
            latest=state.latest,
            planes=len(state.planes),
            seconds=perf_counter() - self.began,
            seconds_argmax=state.seconds_argmax,
            seconds_master=state.seconds_master,
        )

    def stop_reason(self, state: State, steps: Sequence[Step]) -> Stop | None:
        """The reason to stop after the last of these steps, if callbacks or limits give one."""
        if any([callback(steps[-1], state) for callback in self.callbacks]):
            return Stop.CALLBACK
        return self.limit(steps)

    def limit(self, steps: Sequence[Step]) -> Stop | None:
        """The limit that these steps have reached, if they have."""
        if len(steps) >= self.max_iter:
            return Stop.ITERATIONS
        if self.time_limit is not None and steps and steps[-1].seconds >= self.time_limit:
            return Stop.TIME
        return None
