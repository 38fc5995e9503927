"""Warnings at the end of training (open gap, no improvement over the start), and progress displays.

Progress is shown on a terminal or in a notebook only.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankopt.ascent.ascent import Round
from rankopt.collaborative.alternation import AlternationStep
from rankopt.errors import NoProgressWarning, WorseThanInitWarning
from rankopt.losses.margin import Nonconvex
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.regret import RegretBound
from rankopt.optimize.annealing import AnnealingStep
from rankopt.optimize.certificate import Stop
from rankopt.optimize.concave_convex import Training

if TYPE_CHECKING:
    from rankopt.optimize.certificate import Step


Floats = NDArray[np.float64]

CURES = {
    Stop.ITERATIONS: "raise max_iter or time_limit",
    Stop.TIME: "raise max_iter or time_limit",
    Stop.STALLED: "scale the features",
    Stop.MASTER: "take another master (a checkpoint goes on with it), scale the features",
}
"""Remedies for an open gap, in addition to a larger lam or tol."""


NOTHING = 1e-12
"""A risk, or a gap, of this much or less is nothing but rounding: losses are in units of the measure, about 1."""


def cures_at_start(bound: Any, parts: Sequence[RegretBound]) -> str:
    """What helps where the optimum is at w₀, of what is not done already. parts: the regrets that are bounded, of which
    those over positions may have a decay that goes on beyond the measure's k."""
    cures = ["a smaller lam"]
    if bound != "nonconvex" and not isinstance(bound, Nonconvex):
        cures.append("bound='nonconvex'")
    if any(_goes_on(part) for part in parts):
        cures.append("a decay cut at the measure's k")
    return f"try {' or '.join(cures)}"


def _goes_on(part: RegretBound) -> bool:
    k = part.measure.cutoff
    return (
        k is not None
        and part.feature_map is PositionalOracle
        and bool(part.position_weights.weights(k + 1, part.measure)[k] > 0)
    )


def tell(outcome: Training, cures_at_start: str, stacklevel: int = 5) -> None:
    """Warn of how the run ended, if there is something to warn of. stacklevel: frames up to the user's, 5 from a method
    that `fit` calls."""
    proved = outcome.certificate
    if proved.at_start and proved.stop is Stop.GAP and outcome.judged is None and proved.primal > NOTHING:
        warnings.warn(
            f"the optimum is at w0, so the ranker orders as w0 does: {cures_at_start}",
            NoProgressWarning,
            stacklevel=stacklevel,
        )
    if proved.stop in CURES and proved.gap > NOTHING:
        failure = f": {outcome.failure}" if outcome.failure else ""
        warnings.warn(
            f"training stopped before the gap closed ({proved}){failure}; {CURES[proved.stop]}, enlarge lam or accept "
            "a larger tol",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def tell_below(values: Callable[[Floats], Floats], w: Floats, start: Floats) -> None:
    """Warn where the training queries are ordered worse by w than by the start, by more than two standard errors of
    the mean difference: the bound fell, and the measure with it. values: from w to the measure (m,) of each query."""
    if np.array_equal(w, start) or not start.any():
        return
    before, after = values(start), values(w)
    lost = (before - after)[~np.isnan(before - after)]
    if lost.size > 1 and lost.mean() > 2.0 * lost.std(ddof=1) / np.sqrt(lost.size):
        warnings.warn(
            f"the measure on the training queries is {after[~np.isnan(after)].mean():.4f}, below the "
            f"{before[~np.isnan(before)].mean():.4f} of the start w0: raise lam, which keeps the result nearer to w0, "
            "or choose another bound or decay; an eval_set may choose w0 itself",
            WorseThanInitWarning,
            stacklevel=5,
        )


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
    """Whether IPython is running with rich display."""
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
    text = f"step {step.step}: objective {step.primal:.6g}"
    if isinstance(step, AnnealingStep):
        return f"sigma {step.sigma:g}, {text}, gradient {step.gradient:.2g}, {step.seconds:.1f} s"
    if isinstance(step, AlternationStep):
        gaps = ", ".join(f"{max(step.primal - bound, 0.0):.2g}" for bound in (step.users, step.items))
        return f"{text}, gaps of users and items {gaps}, {step.seconds:.1f} s"
    round = f"round {step.round}, " if step.round else ""
    return f"{round}{text}, bound {step.bound:.6g}, gap {step.primal - step.bound:.2g}, {step.seconds:.1f} s"
