"""What a fit says of how its training ended: a warning where the gap is open, or where nothing beat the start."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankopt.errors import BelowStart, OptimumAtStart
from rankopt.losses.argmax_positional import PositionalArgmax
from rankopt.losses.bounds.bounds import Nonconvex
from rankopt.losses.regret import RegretBound
from rankopt.optimize.certificate import Stop
from rankopt.optimize.concave_convex import Training

Floats = NDArray[np.float64]

CURES = {
    Stop.ITERATIONS: "raise max_iter or time_limit",
    Stop.TIME: "raise max_iter or time_limit",
    Stop.STALLED: "scale the features",
    Stop.MASTER: "take another master (a checkpoint goes on with it), scale the features",
}
"""What helps where training ended before the gap closed, beside a larger lam or tol."""


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
    return k is not None and part.map is PositionalArgmax and bool(part.decay.weights(k + 1, part.measure)[k] > 0)


def tell(outcome: Training, cures_at_start: str, stacklevel: int = 5) -> None:
    """Warn of how the run ended, if there is something to warn of. stacklevel: frames up to the user's, 5 from a method
    that `fit` calls."""
    proved = outcome.certificate
    if proved.at_start and proved.stop is Stop.GAP and outcome.judged is None and proved.primal > NOTHING:
        warnings.warn(
            f"the optimum is at w0, so the ranker orders as w0 does: {cures_at_start}",
            OptimumAtStart,
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
            BelowStart,
            stacklevel=5,
        )
