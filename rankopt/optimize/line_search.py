"""Exact line search of a ranking measure: the best t of M(w + t v), among all t [paper 3].

M(w) = Σ_q v_q measure_q(X_q w) / Σ_q v_q, over the queries on which the measure is defined, documents of equal score
averaged, as in `evaluate`. Along a line it is a step function; its jumps are found query by query, so optima are exact.

>>> from rankopt.data import load_sample
>>> search = LineSearch.from_measure("nDCG@10", load_sample("les-miserables").train)
>>> w = np.zeros(search.features)
>>> best = max((search.along(w, j) for j in range(search.features)), key=lambda line: line.value)
>>> best.value > search.value(w)
True
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, check_type
from formulations.parallel import at_most, share
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.data.validation import in_order_of
from rankopt.engines import get_engine
from rankopt.errors import DataError, OptionError
from rankopt.losses.loss import Loss
from rankopt.measures.measure import Measure
from rankopt.measures.notation import parse
from rankopt.options import POSITIVE, as_numbers
from rankopt.risk.along_line import FeatureVariances, LineEvaluation, MeasureAt, PlackettLuceEvaluation, SpreadAt
from rankopt.risk.risk import Engine, Shard, shards
from rankopt.sweeps.step_function import (
    LinePoint,
    StepEvents,
    StepFunction,
    joined,
    middle_point,
    penalized_point,
    window_point,
)
from rankopt.sweeps.sweep import LineSweep

Point = Literal["window", "middle", "plackett-luce"]  # rule for the point on the line: see `LineSearch.along`


@dataclass(frozen=True, eq=False)
class LineSearch:
    """A measure of queries as a function of w, and its exact line search.

    shards: the queries on which the measure is defined, each with a `LineSweep`. engine: computes the shards; results
    are bit-identical for every engine.
    """

    measure: Measure
    shards: tuple[Shard, ...]
    engine: Engine

    @classmethod
    def from_measure(
        cls,
        measure: str | Measure,
        queries: Queries | Arrangement,
        query_weight: ArrayLike | Mapping[Hashable, float] | None = None,
        engine: str | Engine = "threads",
    ) -> LineSearch:
        """From queries with grades; query_weight (m,), or a mapping from query id, default 1. DataError if the
        measure is undefined on every query."""
        parsed = parse(measure)

        def build(queries: Arrangement) -> tuple[Arrangement, Loss]:
            useful = parsed.defined(queries.graded, queries.offsets)
            queries = queries.learnable(useful, f"give {parsed} a value")
            return queries, LineSweep.from_measure(parsed, queries.graded, queries.offsets, queries.weights)

        return cls(parsed, shards(_arrange(queries, query_weight), build), get_engine(engine))

    @property
    def features(self) -> int:
        """The length of w."""
        return self.shards[0].scorer.dimensions

    def value(self, w: ArrayLike) -> float:
        """M(w), measured."""
        return sum(self.engine.map(MeasureAt(self._vector("w", w)), self.shards))

    def deviation(self, w: ArrayLike) -> float:
        """The deviation of the scores X w inside queries."""
        return float(np.sqrt(sum(self.engine.map(SpreadAt(self._vector("w", w)), self.shards))))

    @cached_property
    def deviations(self) -> Floats:
        """(d,) the deviation of each feature inside queries."""
        return np.asarray(np.sqrt(np.sum(self.engine.map(FeatureVariances(), self.shards), axis=0)))

    def along(
        self,
        w: ArrayLike,
        direction: int | ArrayLike,
        point: Point = "window",
        window: float = 0.2,
        pull: tuple[float, float] | None = None,
    ) -> LinePoint:
        """The best t of M(w + t v), v a vector (d,), or the unit vector of a feature if `direction` is its number.

        point      "window": the t whose surroundings are best, the largest mean of M over [t - h, t + h], h so
                   large that scores move by `window` of their deviation inside queries; "middle" of the interval of the
                   largest value; "plackett-luce": where in that interval the ideal order is most likely
        value      M there, as predicted: M is constant on the open interval (low, high) around t
        pull       (slope, curvature) of a parabola: what is maximized is M(t) - slope t - curvature t²/2, and `point`
                   has no effect
        """
        if pull is not None and pull[1] > 0:
            ((events, reach),) = self._lines(self._vector("w", w), [direction], window)
            return penalized_point(events, reach, *pull)
        return self.along_all(w, [direction], point, window)[0]

    def along_all(
        self,
        w: ArrayLike,
        directions: Sequence[int | ArrayLike] | None = None,
        point: Point = "window",
        window: float = 0.2,
    ) -> list[LinePoint]:
        """`along` for each of the directions, all from the same w; None: for every feature."""
        if not isinstance(point, str) or point not in get_args(Point):
            raise OptionError(f"point {point!r} is unknown; known are {', '.join(get_args(Point))}")
        if window not in POSITIVE:
            raise OptionError(
                f"window = {window!r} is invalid; pass a fraction of the scores' standard deviation, such as 0.2"
            )
        start = self._vector("w", w)
        chosen = list(range(self.features)) if directions is None else list(directions)
        lines = self._lines(start, chosen, window)
        found: list[LinePoint] = [None] * len(chosen)  # type: ignore[list-item]

        def find(number: int) -> None:
            if point == "window":
                found[number] = window_point(*lines[number])
                return
            found[number] = middle_point(*lines[number])
            if point == "plackett-luce":
                found[number] = self._most_likely(start, chosen[number], found[number], lines[number][1])

        with at_most(getattr(self.engine, "workers", 1) if point != "plackett-luce" else 1):  # which uses the engine
            share(len(chosen), find)
        return found

    def steps(self, w: ArrayLike, direction: int | ArrayLike) -> StepFunction:
        """All of t -> M(w + t v): its open intervals and their values."""
        ((events, _),) = self._lines(self._vector("w", w), [direction], 1.0)
        return StepFunction.from_events(events)

    def _lines(self, w: Floats, directions: Sequence[int | ArrayLike], window: float) -> list[tuple[StepEvents, float]]:
        """The events along each direction, and the t by which scores move by `window` of their deviation."""
        single = [isinstance(one, int | np.integer) for one in directions]
        vectors: list[tuple[StepEvents, float]] = [None] * len(single)  # type: ignore[list-item]
        for kind in (True, False):
            positions = [position for position, one in enumerate(single) if one == kind]
            if positions:
                requested = [self._direction(directions[position]) for position in positions]
                parts = self.engine.map(LineEvaluation(w, np.array(requested)), self.shards)
                variance = sum(part.score_variance for part in parts)
                of_slopes = np.sum([part.slope_variances for part in parts], axis=0)
                for number, position in enumerate(positions):
                    spread, slope = _deviation(variance), _deviation(of_slopes[number])
                    vectors[position] = joined([part.events[number] for part in parts]), float(window * spread / slope)
        return vectors

    def _most_likely(self, w: Floats, direction: int | ArrayLike, found: LinePoint, reach: float) -> LinePoint:
        """Where in the interval the ideal order is most likely; an interval without an end ends where `middle` goes."""
        from scipy.optimize import minimize_scalar

        chosen = self._direction(direction)
        v = np.eye(1, self.features, chosen)[0] if isinstance(chosen, int) else chosen
        low = found.low if np.isfinite(found.low) else min(found.t, found.high - reach)
        high = found.high if np.isfinite(found.high) else max(found.t, found.low + reach)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            return found

        def unlikely(t: float) -> float:
            return -sum(self.engine.map(PlackettLuceEvaluation(w + t * v, w), self.shards))

        best = minimize_scalar(unlikely, bounds=(low, high), method="bounded")
        t = float(best.x)
        inside = found.low < t < found.high and -best.fun >= -unlikely(found.t)
        return replace(found, t=t) if inside else found

    def _direction(self, direction: int | ArrayLike) -> int | Floats:
        if isinstance(direction, int | np.integer):
            if not 0 <= direction < self.features:
                raise OptionError(f"direction {direction} is no feature; pass an index from 0 to {self.features - 1}")
            return int(direction)
        return self._vector("direction", direction)

    def _vector(self, what: str, values: ArrayLike) -> Floats:
        try:
            vector = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{what} cannot be read as numbers: {error}") from error
        if vector.shape != (self.features,) or not np.isfinite(vector).all():
            raise DataError(
                f"{what} must be {self.features} finite numbers, one for each feature; it has shape {vector.shape}"
            )
        return vector


def _deviation(variance: float) -> float:
    """The root of a variance; 1 for none, and a number that can be divided by where squares left double precision."""
    return float(np.sqrt(np.nan_to_num(variance, nan=np.finfo(np.float64).max))) or 1.0


def _arrange(queries: Queries | Arrangement, query_weight: ArrayLike | Mapping[Hashable, float] | None) -> Arrangement:
    """The queries unchanged, with their weights."""
    if isinstance(queries, Arrangement):
        return queries
    check_type("queries", queries, Queries, error=DataError)
    queries = queries.grouped()
    weights = np.ones(len(queries))
    if query_weight is not None:
        weights = as_numbers("query_weight", in_order_of("query_weight", query_weight, queries.query_ids))
    if weights.shape != (len(queries),) or not np.isfinite(weights).all() or np.any(weights < 0):
        raise DataError(f"query_weight must be {len(queries)} finite numbers >= 0, one for each query")
    rows = np.arange(queries.n_documents)
    return Arrangement(
        queries.features, rows, queries.offsets, weights, queries.relevance, queries.query_ids, queries.attributes
    )
