"""The parts of the training loop: a method that takes steps, and a clock that counts them.

Validation of settings: the error names the setting, its value, and the accepted range.

>>> check_whole(1, groups=3)
>>> check_number(0.0, averaging=float("nan"))
Traceback (most recent call last):
    ...
rankopt.errors.OptionError: averaging must be a finite number of 0 or more; got nan
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.optimize.certificate import Step, Stop
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import State

Floats = NDArray[np.float64]
Callback = Callable[[Step, State], bool | None]
"""Called after every step; stops the run by returning True."""


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


@dataclass
class Clock:
    """What a run may still use: steps and seconds, counted over all rounds; and what it has recorded."""

    max_iter: int
    time_limit: float | None
    callbacks: tuple[Callback, ...]
    steps: list[Step]
    began: float

    @classmethod
    def started(
        cls,
        max_iter: int,
        time_limit: float | None,
        callbacks: tuple[Callback, ...] = (),
        steps: Sequence[Step] = (),
    ) -> Clock:
        """A clock that runs from now on; steps and seconds of a run that goes on after `steps` count."""
        used = steps[-1].seconds if steps else 0.0
        return cls(max_iter, time_limit, callbacks, list(steps), perf_counter() - used)

    @property
    def ends(self) -> float | None:
        """The reading of `perf_counter` at which the time is over, if it is limited."""
        return None if self.time_limit is None else self.began + self.time_limit

    def record(self, state: State) -> None:
        """Record a step."""
        self.steps.append(
            Step(
                step=len(self.steps) + 1,
                round=state.round,
                primal=state.primal,
                bound=state.bound,
                latest=state.latest,
                planes=len(state.planes),
                seconds=perf_counter() - self.began,
                seconds_argmax=state.seconds_argmax,
                seconds_master=state.seconds_master,
            )
        )

    def asked(self, state: State) -> Stop | None:
        """The reason to stop after the step that was recorded last, if callbacks or limits give one."""
        asked = [callback(self.steps[-1], state) for callback in self.callbacks]
        if any(asked):
            return Stop.CALLBACK
        return self.limit()

    def limit(self) -> Stop | None:
        """The limit that the recorded steps have reached, if they have."""
        if len(self.steps) >= self.max_iter:
            return Stop.ITERATIONS
        if self.time_limit is not None and self.steps and self.steps[-1].seconds >= self.time_limit:
            return Stop.TIME
        return None


def check_whole(least: int, **settings: Any) -> None:
    """Raise OptionError unless each value is an integer of `least` or more."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
            raise OptionError(f"{name} must be an integer of {least} or more; got {value!r}")


def check_number(least: float, **settings: Any) -> None:
    """Raise OptionError unless each value is a finite number of `least` or more."""
    for name, value in settings.items():
        if not (_is_finite(value) and value >= least):
            raise OptionError(f"{name} must be a finite number of {least:g} or more; got {value!r}")


def check_part(whole: bool, **settings: Any) -> None:
    """Raise OptionError unless each value is greater than 0 and less than 1 (or 1, if `whole`)."""
    for name, value in settings.items():
        if not (_is_finite(value) and value > 0 and (value < 1 or (whole and value == 1))):
            most = "at most" if whole else "less than"
            raise OptionError(f"{name} must be a number greater than 0 and {most} 1; got {value!r}")


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False
