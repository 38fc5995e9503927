"""Value and gradient of a smooth risk at one w, asked of each shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.losses.loss import GradientLoss, says
from rankopt.risk.shard import Shard

__all__ = ["GradientOf", "ShardGradient"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShardGradient:
    """Of a shard: Σ_q v_q loss_q, and its gradient (dimensions,), empty where it was not asked for."""

    value: float
    gradient: Floats


@dataclass(frozen=True, eq=False)
class GradientOf:
    """Σ_q v_q loss_q(X_q w; sigma) of shards whose loss says a gradient. sigma: the width of one that is annealed, None
    for its own. value_only: without the gradient, and the pass over the features that it costs."""

    w: Floats
    sigma: float | None = None
    value_only: bool = False

    def __call__(self, shard: Shard) -> ShardGradient:
        loss: Any = shard.loss
        if says(loss) != "gradient":
            raise OptionError(f"{type(loss).__name__} says no gradient; train it by planes, as LossRanker does")
        smooth: GradientLoss = loss
        there = smooth.gradient(shard.scores(self.w), self.sigma)
        value = float(shard.weights @ there.value)
        if self.value_only:
            return ShardGradient(value, np.zeros(0))
        (gradient,) = shard.summed((there.slope,), 0, len(shard), merged=True)
        return ShardGradient(value, gradient[0])
