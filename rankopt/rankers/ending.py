"""What a fit says of how its training ended: a warning where the gap is open, or where nothing beat the start."""

import warnings

from sklearn.exceptions import ConvergenceWarning

from rankopt.errors import OptimumAtStart
from rankopt.optimize.certificate import Stop
from rankopt.optimize.concave_convex import Training

__all__ = ["tell"]

CURES = {
    Stop.ITERATIONS: "raise max_iter or time_limit",
    Stop.TIME: "raise max_iter or time_limit",
    Stop.STALLED: "scale the features",
    Stop.MASTER: "take another master (a checkpoint goes on with it), scale the features",
}
"""What helps where training ended before the gap closed, beside a larger lam or tol."""


def tell(outcome: Training, cures_at_start: str) -> None:
    """Warn of how the run ended, if there is something to warn of; called by a method that `fit` calls."""
    proved = outcome.certificate
    if proved.at_start and proved.stop is Stop.GAP and outcome.judged is None:
        warnings.warn(
            f"the optimum is at w0, so the ranker orders as w0 does: {cures_at_start}",
            OptimumAtStart,
            stacklevel=6,
        )
    if proved.stop in CURES:
        failure = f": {outcome.failure}" if outcome.failure else ""
        warnings.warn(
            f"training stopped before the gap closed ({proved}){failure}; {CURES[proved.stop]}, enlarge lam or accept "
            "a larger tol",
            ConvergenceWarning,
            stacklevel=6,
        )
