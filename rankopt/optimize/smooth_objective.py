"""J_σ(w) = (λ/2)‖w - w₀‖² + Σ_q v_q loss_q(X_q w; σ) of a loss that says a gradient and is annealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import EngineError
from rankopt.optimize.least_squares import column_units, in_units, spreads
from rankopt.risk.risk import Engine, GradientOf, ShardGradient
from rankopt.risk.shard import Shard

if TYPE_CHECKING:
    from rankopt.data.canonical_order import Arrangement

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SmoothObjective:
    """What is descended.

    units: (d,) the deviation of each feature inside queries, 0 of one that is constant there. Gradients are judged, and
    steps are taken, in u = units × w: a step of length 1 moves scores by about one deviation, whatever the features
    are measured in, and J is the same.
    """

    shards: tuple[Shard, ...]
    engine: Engine
    lam: float
    w0: Floats
    units: Floats

    def at(self, w: Floats, sigma: float) -> tuple[float, Floats]:
        """J_σ(w), and its gradient (d,)."""
        parts, away = self._asked(GradientOf(w, sigma)), w - self.w0
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.lam / 2.0 * float(away @ away) + sum(part.value for part in parts)
            gradient = self.lam * away
            for part in parts:
                gradient = gradient + part.gradient
        return value, gradient

    def risk(self, w: Floats, sigma: float = 0.0) -> float:
        """Σ_q v_q loss_q; at σ = 0 what the measure at w lacks of the best orders."""
        return sum(part.value for part in self._asked(GradientOf(w, sigma, value_only=True)))

    @property
    def best(self) -> float:
        """Σ_q v_q of the measure of the best orders."""
        losses: list[Any] = [shard.loss for shard in self.shards]
        return sum(float(shard.weights @ loss.ideal) for shard, loss in zip(self.shards, losses, strict=True))

    def slope(self, gradient: Floats) -> float:
        """‖∇_u J‖: by how much J changes, to first order, with a step in u of length 1."""
        return float(np.linalg.norm(gradient[self.moving] / self.units[self.moving]))

    @property
    def moving(self) -> NDArray[np.bool_]:
        """(d,) the features that order anything."""
        return np.asarray(self.units > 0)

    def _asked(self, question: GradientOf) -> list[ShardGradient]:
        parts = self.engine.map(question, self.shards)
        if len(parts) != len(self.shards):
            raise EngineError(f"{type(self.engine).__name__} gave {len(parts)} answers for {len(self.shards)} shards")
        return parts


def deviation(shards: Sequence[Shard], w: Floats) -> float:
    """The deviation of the scores at w inside queries: the root of Σ_q v_q (1/n_q) Σ_j (s_j - s̄)²."""
    total = 0.0
    for shard in shards:
        scores, starts, sizes = shard.scores(w), shard.offsets[:-1], np.diff(shard.offsets)
        largest = float(np.abs(scores).max(initial=0.0))
        apart = scores - np.repeat(np.add.reduceat(scores, starts) / sizes, sizes)
        apart[np.abs(apart) <= ROUNDING * largest] = 0.0
        total += float(shard.weights @ (np.add.reduceat(apart**2, starts) / sizes))
    return float(np.sqrt(total))


ROUNDING = 2.0**-46
"""Scores that differ by less than this part of the largest are equal: their mean is rounded."""


def deviations(queries: Arrangement) -> Floats:
    """(d,) the deviation of each feature inside queries, each query weighing v_q."""
    units = column_units(queries.features)
    features = queries.features if units is None else in_units(queries.features, units)
    sizes = np.diff(queries.offsets)
    shares = np.repeat(queries.weights / queries.weights.sum() / sizes, sizes)
    found = np.sqrt(spreads(features, shares, queries.rows, queries.offsets))
    return found if units is None else found / units
