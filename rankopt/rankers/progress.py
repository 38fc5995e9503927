"""Progress of training on a terminal or in a notebook, and nothing anywhere else."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rankopt.ascent.ascent import Round
from rankopt.collaborative.alternation import AlternationStep
from rankopt.optimize.annealing import AnnealingStep

if TYPE_CHECKING:
    from rankopt.optimize.certificate import Step

EVERY = 0.125
"""Seconds between two changes of what is shown."""


@contextmanager
def shown(verbose: int) -> Iterator[list[Callable[[Any, Any], None]]]:
    """Callbacks that show a step in one line while training runs: objective, bound and gap, or σ and the gradient of
    what has no bound, or the measure itself; none if verbose is 0 or nobody looks: no notebook, and standard error is
    no terminal."""
    if not verbose:
        yield []
        return
    if _in_notebook():
        yield [_Cell()]
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield []
        return
    with Live(Text("training ..."), console=console, refresh_per_second=8, transient=True) as live:
        yield [lambda step, state: live.update(Text(_line(step)))]


def _in_notebook() -> bool:
    """Whether IPython, loaded by whoever runs this, shows what is displayed."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"


class _Cell:
    """One line below the cell, changed at most eight times a second."""

    def __init__(self) -> None:
        self.shown_at = -math.inf
        self.handle = sys.modules["IPython"].display.display(_Text("training ..."), display_id=True)

    def __call__(self, step: Any, state: Any) -> None:
        if perf_counter() - self.shown_at >= EVERY:
            self.shown_at = perf_counter()
            self.handle.update(_Text(_line(step)))


class _Text(str):
    """Text without quotes around it."""

    __repr__ = str.__str__


def _line(step: Step | AnnealingStep | AlternationStep | Round) -> str:
    """What is shown of a step."""
    if isinstance(step, Round):
        left = f"{step.open} paths on their way, {step.lines} line searches"
        return f"round {step.step}: measure {step.value:.6g}, {left}, {step.seconds:.1f} s"
    told = f"step {step.step}: objective {step.primal:.6g}"
    if isinstance(step, AnnealingStep):
        return f"sigma {step.sigma:g}, {told}, gradient {step.gradient:.2g}, {step.seconds:.1f} s"
    if isinstance(step, AlternationStep):
        gaps = ", ".join(f"{max(step.primal - bound, 0.0):.2g}" for bound in (step.users, step.items))
        return f"{told}, gaps of users and items {gaps}, {step.seconds:.1f} s"
    round = f"round {step.round}, " if step.round else ""
    return f"{round}{told}, bound {step.bound:.6g}, gap {step.primal - step.bound:.2g}, {step.seconds:.1f} s"
