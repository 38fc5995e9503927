"""A measure along lines through w, asked of each shard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.line.events import Events
from rankopt.line.sweep import Sweep
from rankopt.measures.segments import query_of_row
from rankopt.risk.shard import Shard
from rankopt.scorers.linear import Linear

__all__ = ["AlongLine", "MeasureAt", "ShardAlong", "swept"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AT_ONCE = 16
"""Lines whose slopes are held in memory at once."""


@dataclass(frozen=True, eq=False)
class ShardAlong:
    """A shard along D lines. events: of each line. score_variance, slope_variances (D,): Σ_q v_q times the variance of
    the scores at w, and of the slopes, inside query q."""

    events: tuple[Events, ...]
    score_variance: float
    slope_variances: Floats


@dataclass(frozen=True, eq=False)
class AlongLine:
    """The events of t -> Σ_q v_q measure_q(X (w + t v)) for each of D directions v, of shards that hold a `Sweep`.

    w: (d,). directions: (D,) numbers of features, for the unit vectors, or vectors (D, d).
    """

    w: Floats
    directions: Floats | Ints

    def __call__(self, shard: Shard) -> ShardAlong:
        sweep, scores = swept(shard), shard.scores(self.w)
        query, sizes = query_of_row(shard.offsets), np.diff(shard.offsets)
        shares = (shard.weights / np.maximum(sizes, 1))[query]
        events: list[Events] = []
        variances: list[float] = []
        for begin in range(0, len(self.directions), AT_ONCE):
            slopes = self._slopes(shard, self.directions[begin : begin + AT_ONCE])
            events += sweep.events(scores, slopes)
            variances += [_variance(line, shares, shard.offsets, query, sizes) for line in slopes]
        return ShardAlong(
            tuple(events), _variance(scores, shares, shard.offsets, query, sizes), np.array(variances, dtype=np.float64)
        )

    def _slopes(self, shard: Shard, some: Floats | Ints) -> Floats:
        """(D, N) of some of the directions."""
        if some.ndim == 2:
            return np.array([shard.scores(direction) for direction in some.astype(np.float64)])
        if not isinstance(shard.scorer, Linear):
            raise OptionError("single features are directions of linear scores only; give directions as vectors")
        return shard.scorer.columns(some.astype(np.int64))


@dataclass(frozen=True, eq=False)
class MeasureAt:
    """Σ_q v_q measure_q(X w), documents of equal score averaged, of shards that hold a `Sweep`."""

    w: Floats

    def __call__(self, shard: Shard) -> float:
        return swept(shard).value(shard.scores(self.w))


def swept(shard: Shard) -> Sweep:
    """The sweep that a shard holds; OptionError where it holds a loss."""
    if not isinstance(shard.loss, Sweep):
        raise OptionError(f"{type(shard.loss).__name__} cannot be swept along a line; give shards a measure's Sweep")
    return shard.loss


def _variance(values: Floats, shares: Floats, offsets: Ints, query: Ints, sizes: Ints) -> float:
    filled = sizes > 0
    means = np.zeros(sizes.size)
    means[filled] = np.add.reduceat(values, offsets[:-1][filled]) / sizes[filled]
    apart = values - means[query]
    return float(shares @ (apart * apart))
