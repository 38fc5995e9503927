"""A measure along lines through w, and the Plackett-Luce likelihood of ideal rankings along a line, shard by shard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.errors import OptionError
from rankopt.measures.tied_ranking import position_in_query, query_of_row, running
from rankopt.risk.risk import Shard
from rankopt.scorers.linear import Linear
from rankopt.sweeps.step_function import StepEvents
from rankopt.sweeps.sweep import LineSweep

AT_ONCE = 16  # lines whose slopes are held in memory at once
REMEMBERED = 8  # positions that a shard caches: for each path the current point and the next candidate


@dataclass(frozen=True, eq=False)
class ShardAlong:
    """A shard along D lines. events: of each line. score_variance, slope_variances (D,): Σ_q v_q times the variance of
    the scores at w, and of the slopes, inside query q."""

    events: tuple[StepEvents, ...]
    score_variance: float
    slope_variances: Floats


@dataclass(frozen=True, eq=False)
class LineEvaluation:
    """The events of t -> Σ_q v_q measure_q(X (w + t v)) for each of D directions v, of shards that hold a `LineSweep`.

    w: (d,). directions: (D,) numbers of features, for the unit vectors, or vectors (D, d).
    """

    w: Floats
    directions: Floats | Ints

    def __call__(self, shard: Shard) -> ShardAlong:
        sweep, here = swept(shard), line_data(shard, self.w)
        events: list[StepEvents] = []
        variances: list[float] = []
        for begin in range(0, len(self.directions), AT_ONCE):
            some = self.directions[begin : begin + AT_ONCE]
            slopes = self._slopes(shard, some)
            events += sweep.events(here.scores, slopes, here.order)
            variances += self._variances(shard, some, slopes)
        return ShardAlong(tuple(events), here.variance, np.array(variances, dtype=np.float64))

    def _variances(self, shard: Shard, some: Floats | Ints, slopes: Floats) -> list[float]:
        """Of the slopes; of single features they are found once."""
        if some.ndim == 2:
            return [_variance(shard, line) for line in slopes]
        known: dict[int, float] = shard.remembered.setdefault("variances", {})
        for number, line in zip(some.tolist(), slopes, strict=True):
            if number not in known:
                known[number] = _variance(shard, line)
        return [known[number] for number in some.tolist()]

    def _slopes(self, shard: Shard, some: Floats | Ints) -> Floats:
        """(D, N) of some of the directions."""
        if some.ndim == 2:
            return np.array([shard.scores(direction) for direction in some.astype(np.float64)])
        if not isinstance(shard.scorer, Linear):
            raise OptionError("single features are directions of linear scores only; pass directions as vectors")
        return shard.scorer.columns(some.astype(np.int64))


@dataclass(frozen=True, eq=False)
class MeasureAt:
    """Σ_q v_q measure_q(X w), documents of equal score averaged, of shards that hold a `LineSweep`."""

    w: Floats

    def __call__(self, shard: Shard) -> float:
        return swept(shard).value(line_data(shard, self.w).scores)


@dataclass(frozen=True, eq=False)
class SpreadAt:
    """Σ_q v_q times the variance of the scores X w inside query q."""

    w: Floats

    def __call__(self, shard: Shard) -> float:
        return line_data(shard, self.w).variance


@dataclass(frozen=True)
class FeatureVariances:
    """(d,) Σ_q v_q times the variance of each feature inside query q: 0, not the rounding of its means, of one that has
    one value in each query."""

    def __call__(self, shard: Shard) -> Floats:
        every, found = np.arange(shard.scorer.dimensions), []
        same_query = np.diff(query_of_row(shard.offsets)) == 0
        for begin in range(0, every.size, AT_ONCE):
            line = LineEvaluation(np.zeros(0), every[begin : begin + AT_ONCE])
            slopes = line._slopes(shard, line.directions)
            variances = line._variances(shard, line.directions, slopes)
            differs = ((slopes[:, 1:] != slopes[:, :-1]) & same_query).any(axis=1)
            found += np.where(differs, variances, 0.0).tolist()
        return np.array(found, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class LineData:
    """Data shared by all lines through w on a shard: the scores X w (N,), the documents by decreasing score (None if
    the sweeps do not use it), and Σ_q v_q times the variance of the scores within query q."""

    w: Floats
    scores: Floats
    order: Ints | None
    variance: float


def line_data(shard: Shard, w: Floats) -> LineData:
    """The data shared by lines through w. The shard caches the last few w, so that only an accepted step costs a
    product. Scores are computed from w itself, never as sums of steps, so they do not depend on the path to w.
    """
    known: tuple[LineData, ...] = shard.remembered.get("line_data", ())
    for one in known:
        if np.array_equal(one.w, w):
            return one
    scores = shard.scores(w)
    found = LineData(w.copy(), scores, swept(shard).order(scores), _variance(shard, scores))
    shard.remembered["line_data"] = (found, *known[: REMEMBERED - 1])  # one assignment: thread-safe
    return found


def swept(shard: Shard) -> LineSweep:
    """The sweep that a shard holds; OptionError where it holds a loss."""
    if not isinstance(shard.loss, LineSweep):
        raise OptionError(
            f"{type(shard.loss).__name__} cannot be swept along a line; build the shards with a measure's Sweep"
        )
    return shard.loss


def _variance(shard: Shard, values: Floats) -> float:
    """Σ_q v_q times the variance of the values (N,) inside query q."""
    offsets, query, sizes = shard.offsets, query_of_row(shard.offsets), np.diff(shard.offsets)
    shares = (shard.weights / np.maximum(sizes, 1))[query]
    filled = sizes > 0
    means = np.zeros(sizes.size)
    means[filled] = np.add.reduceat(values, offsets[:-1][filled]) / sizes[filled]
    apart = values - means[query]
    with np.errstate(over="ignore"):  # infinite, then: the caller divides by it
        return float(shares @ (apart * apart))


@dataclass(frozen=True, eq=False)
class PlackettLuceEvaluation:
    """Σ_q v_q Σ_{i <= k} [z_i - log Σ_{l >= i} exp(z_l)], z the scores X w in the ideal order: by decreasing grade, and
    within a grade by decreasing score at `start`.

    k is the cutoff of the measure, by default the length of the list. Requires shards that hold a `Sweep`. On the line
    w = start + t v it is concave in t. Unlike the measure it depends on the scale of w. Source: paper 3, section 2.3.
    """

    w: Floats
    start: Floats

    def __call__(self, shard: Shard) -> float:
        sweep = swept(shard)
        query, position = query_of_row(shard.offsets), position_in_query(shard.offsets)
        order = np.lexsort((-shard.scores(self.start), -sweep.relevance, query))
        z = shard.scores(self.w)[order]
        backwards = shard.offsets[-1] - shard.offsets[::-1]
        later = running(np.logaddexp, z[::-1], backwards)[::-1]
        counted = position < (sweep.measure.cutoff or z.size)
        return float(np.sum(np.where(counted, shard.weights[query] * (z - later), 0.0)))
