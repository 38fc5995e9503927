"""Where an annealed descent stands between two stages: plain data, all that is needed to go on to the same end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.annealing_history import AnnealingHistory

__all__ = ["Reached"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reached:
    """stages: how many are done. w: where the next one begins. best, sigma: the w that is the result so far, and the
    width at which it was reached. history: the steps so far."""

    stages: int
    w: Floats
    best: Floats
    sigma: float
    history: AnnealingHistory

    @property
    def plain(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return dict(vars(self))

    @classmethod
    def read(cls, kept: Mapping[str, Any], features: int, sigmas: tuple[float, ...], max_iter: int) -> Self | None:
        """What a checkpoint held; None where it is nothing that a run of these stages leaves. Of J and of measures it
        claims nothing: they are worked out afresh."""
        found = cls(**kept)
        history, steps = found.history, len(found.history)
        sound = (
            type(found.stages) is int
            and 0 < found.stages <= len(sigmas)
            and found.sigma in sigmas[: found.stages]
            and all(
                isinstance(w, np.ndarray)
                and w.dtype == np.float64
                and w.shape == (features,)
                and bool(np.isfinite(w).all())
                for w in (found.w, found.best)
            )
            and steps <= found.stages * max_iter
            and all(np.isfinite(getattr(history, name)).all() for name in ("primal", "gradient", "seconds"))
            and bool(np.isin(history.sigma, sigmas).all())
            and np.array_equal(history.step, np.arange(1, steps + 1))
            and bool((np.diff(history.seconds, prepend=0.0) >= 0).all())
        )
        return found if sound else None
