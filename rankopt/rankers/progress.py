"""Progress of training on a terminal, and nothing anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankopt.optimize.history import Step
    from rankopt.optimize.state import State

__all__ = ["shown"]


@contextmanager
def shown(verbose: int) -> Iterator[list[Callable[[Step, State], None]]]:
    """Callbacks that show step, objective, bound and gap in one line while training runs; none if verbose is 0 or
    standard error is no terminal."""
    if not verbose:
        yield []
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield []
        return
    with Live(Text("training ..."), console=console, refresh_per_second=8, transient=True) as live:

        def show(step: Step, state: State) -> None:
            gap = step.primal - step.bound
            round = f"round {step.round}, " if step.round else ""
            live.update(
                Text(
                    f"{round}step {step.step}: objective {step.primal:.6g}, bound {step.bound:.6g}, gap {gap:.2g}, "
                    f"{step.seconds:.1f} s"
                )
            )

        yield [show]
