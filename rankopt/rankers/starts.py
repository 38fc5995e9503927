"""Where training starts from: w₀ by name, the natural strength of the regularizer, and the paths of `DirectRanker`.

A new start is one function, and one line of the table `rankopt.rankers.STARTS`. A start of the nonconvex bounds has to
have the right *scale* and the right order: where scores lie close, the bound falls with any spread of theirs, good
or bad. A margin of 1 between documents of different grades is that scale; least squares has a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from formulations.arrays import Floats
from formulations.compiled import is_small
from formulations.errors import InvalidProblemError
from formulations.registry import load
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.engines import ended, get_engine
from rankopt.errors import DataError, OptionError
from rankopt.fitting import raise_interruptions
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.losses.preferences import PreferenceHinge
from rankopt.losses.smooth import smoothable
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import MeasureMix, parse
from rankopt.optimize import least_squares as within
from rankopt.optimize.bundle import Bundle
from rankopt.optimize.certificate import Stop
from rankopt.optimize.concave_convex import follow
from rankopt.optimize.least_squares import largest_magnitudes, least_squares
from rankopt.optimize.line_search import LineSearch
from rankopt.optimize.objective import Objective, deviations
from rankopt.options import as_numbers
from rankopt.rankers import STARTS
from rankopt.rankers.linear import cross_validated_ridge, row_weights
from rankopt.risk.risk import Risk, Shard, shards_of_grades
from rankopt.scorers.linear import row_scores

TOL, STEPS = 1e-3, 300
"""The relative gap to which a start is trained, and the steps after which it is good enough in any case."""


def zeros(ranker: Any, queries: Arrangement, box: Floats | None = None) -> Floats:
    """w₀ = 0."""
    return np.zeros(ranker._shape(queries))


def regression(ranker: Any, queries: Arrangement, box: Floats | None = None) -> Floats:
    """Least squares on the gains, one intercept for all [ORM, section 6.3]."""
    gains = ranker._gains(queries)
    return least_squares(queries.features, gains, row_weights(queries), 0.0, queries.rows)


def ridge(ranker: Any, queries: Arrangement, box: Floats | None = None) -> Floats:
    """The weights w of `RegressionRanker()` times the t >= 0 of RankSVM with their scores as its one feature: the order
    of the ridge, with margins of 1."""
    w = cross_validated_ridge(queries, signs(box))
    scores = row_scores(queries.features, queries.rows, w)
    along = replace(queries, features=scores[:, None], rows=np.arange(scores.size))
    return np.asarray(w * max(float(by_pairs(ranker, along, STRENGTH)[0]), 0.0))


def bare_ridge(ranker: Any, queries: Arrangement, box: Floats | None = None) -> Floats:
    """The weights of `RegressionRanker()` as they are."""
    return cross_validated_ridge(queries, signs(box))


def ranksvm(ranker: Any, queries: Arrangement, box: Floats | None = None) -> Floats:
    """The weights of `PairwiseRanker()`."""
    return by_pairs(ranker, queries, ZERO_STRENGTH, signs(box))


def signs(box: Floats | None) -> Floats | None:
    """The box with its limits of sign alone, which a start keeps whatever it is multiplied with."""
    return None if box is None else np.stack([np.where(box[0] < 0, -np.inf, 0.0), np.where(box[1] > 0, np.inf, 0.0)])


def workers(ranker: Any) -> tuple[str, int | None]:
    """The engine for local computation: the ranker's threads, else serial."""
    return "serial" if ranker.engine == "serial" else "threads", None if ranker.n_jobs in (None, -1) else ranker.n_jobs


def by_pairs(ranker: Any, queries: Arrangement, strength: float, box: Floats | None = None) -> Floats:
    """RankSVM at the `natural_lam` of this strength, on gains with pairs `by_difference`. Limits of time begin
    afterwards: a start that they cut off would depend on the speed of the machine."""
    engine = get_engine(*workers(ranker))
    pairs, loss = (by_difference(queries), LINEAR) if queries.has_gains else (queries, PairwiseHinge)
    risk = Risk(shards_of_grades(pairs, loss), engine)
    count = 1.0 / float(risk.weights @ risk.weights) if queries.has_gains else risk.weights.size
    lam, units = natural_lam(queries, count, strength), feature_units(queries)
    objective = Objective(
        risk, lam, np.zeros(queries.n_features), "auto", is_small(queries.offsets), units=units
    ).within(box)
    with ended(engine, True):
        (outcome,) = follow(objective, Bundle(), objective.w0, (lam,), TOL, (STEPS, None, ()))
    if outcome.certificate.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt("interrupted before the first step was done")
    return outcome.w


LINEAR = partial(PreferenceHinge, gain="linear")


def by_difference(queries: Arrangement) -> Arrangement:
    """The queries with gains whose mean difference over pairs is 1, and the deviation of the gains as a factor of their
    weight: the mean hinge, weighted by differences of gains, is continuous in them. Pairs that count equally are not:
    estimates from clicks have no equal gains, and half of the pairs of equally relevant documents are wrong. The number
    of queries that count is 1 / Σ_q v_q² then."""
    starts, sizes = queries.offsets[:-1], np.diff(queries.offsets)
    gains = queries.graded - np.repeat(np.add.reduceat(queries.graded, starts) / sizes, sizes)
    gains /= np.abs(gains).max() or 1.0
    mean = LINEAR(gains, queries.offsets).at(np.zeros(gains.size)).value
    gains /= np.repeat(np.where(mean > 0, mean, 1.0), sizes)
    deviation = np.sqrt(np.add.reduceat(gains**2, starts) / sizes) * mean
    return replace(queries, relevance=gains, weights=queries.weights * deviation)


def get_start(name: str, known: Mapping[str, str]) -> Callable[..., Floats]:
    """The start of this name among those `known`: a function of the ranker, its training queries and the box to w₀.
    Raises OptionError for another one."""
    if name not in known:
        raise OptionError(f"w0 = {name!r} is unknown; use {', '.join(map(repr, known))} or an array")
    start: Callable[..., Floats] = load(known[name])
    return start


def passed_weights(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """The weights that the user passes as a start; OptionError where they have another shape or are not finite."""
    w = as_numbers(name, values)
    if w.shape != shape or not np.isfinite(w).all():
        size = " × ".join(map(str, shape))
        raise OptionError(f"{name} has shape {w.shape}; it needs {size} finite numbers, one a feature")
    return w


STRENGTH = 3.0  # λ in units of U / m
ZERO_STRENGTH = 0.1  # the same for rankers that start at w = 0
FAINT = 1e-280  # spreads below this lose digits in double precision


def natural_lam(queries: Arrangement, count: float, strength: float = STRENGTH) -> float:
    """λ = 3 U / m of m = count queries with something to order: `lam="scale"`. Features that vary nowhere leave 3 / m.

    The regularizer is (λ/2) Σ_j ((w_j - w₀_j) / units_j)², in `feature_units`: no column of another scale can spoil it.
    Scores s = Xw have in query q the mean square (1/n_q) Σ_j (s_j - s̄)² <= ‖w‖² U_q, with U_q the mean of ‖x_j - x̄_q‖².
    So ‖w‖² U, U = Σ_q v_q U_q, is the spread of the scores that w allows. (λ/2) ‖w‖² = (3/2) (spread) / m weighs it,
    in units of the margin, against the mean loss of m queries. Each feature times a c of its own, or plus a constant in
    a query, leaves the problem the same. The 3 was chosen on data; from 1 to 10 little changes. Rankers of losses that
    start at w = 0 have 0.1: from 0.03 to 0.3 little changes.

    A feature map whose slopes are f times as large has the same orders at weights 1/f times as large, under f² times
    the λ: `unit_of` is Σ_q v_q f_q². f is 1 for positions and pairs, n₋ for the first relevant document
    (`FEATURE_MAPS`). A loss times C has its optimum under C times the λ. Gains times c have the same orders at weights
    c times as large, under 1/c times the λ: see `unit_of_gains`.

    Raises InvalidProblemError where squares of the features are too large for double precision, and DataError where
    they are too small.
    """
    return strength * _checked(spread(queries), queries) / count


def feature_penalties(queries: Arrangement) -> Floats:
    """(d,) the square of the deviation of each feature within queries over the mean of those that are not 0: all are 1
    where the features have one deviation."""
    found = deviations(queries)
    squares = (found / found.max(initial=FAINT)) ** 2
    return np.asarray(squares / squares[found > 0].mean() if found.any() else squares)


def feature_units(queries: Arrangement) -> Floats:
    """(d,) the roots of 1 / `feature_penalties`; 0 where these are 0."""
    penalties = feature_penalties(queries)
    return np.divide(1.0, np.sqrt(penalties), out=np.zeros_like(penalties), where=penalties > 0)


def _checked(unit: float, queries: Arrangement) -> float:
    if not np.isfinite(unit):
        raise InvalidProblemError("the squares of the features leave double precision")
    if unit < FAINT and 0.0 < largest_magnitudes(queries.features).max(initial=0.0) < np.sqrt(FAINT):
        raise DataError(
            "lam='scale' cannot be found because squares of the features are next to nothing in double precision; "
            "multiply the features by 1e150, or give lam a number"
        )
    return unit if unit > 0 else 1.0


def unit_of(shards: Sequence[Shard]) -> float:
    """Σ_q v_q f_q² of the losses of these shards. Losses without this number: f²/l, with l their mean value at scores
    of 0 and f half the mean of Σ_j |slope_j|, so that C times a loss gets C times the λ; 1 where l is not positive."""
    if any(not hasattr(shard.loss, "unit") for shard in shards):
        at = [(shard.weights, shard.offsets, shard.loss.at(np.zeros(shard.offsets[-1]))) for shard in shards]
        value = sum(float(weights @ one.value) for weights, _, one in at)
        slopes = sum(
            float(weights @ np.add.reduceat(np.abs(one.assigned - one.reference), offsets[:-1]))
            for weights, offsets, one in at
        )
        return 0.25 * slopes**2 / value if slopes > 0 and value > 0 else 1.0
    losses: list[Any] = [shard.loss for shard in shards]
    known = [np.asarray(loss.unit) for loss in losses]
    if all((unit == 1.0).all() for unit in known):
        return 1.0  # to the bit, which a sum of weights is not
    return float(sum(shard.weights @ unit for shard, unit in zip(shards, known, strict=True)))


def unit_of_gains(measure: Any, queries: Arrangement) -> float:
    """1 of a measure that is at most 1, else its mean best value; of a mix the mean of its parts."""
    parsed = parse(measure)
    parts = [(one.weight, one.measure) for one in parsed.parts] if isinstance(parsed, MeasureMix) else [(1.0, parsed)]
    units = [1.0] * len(parts)
    for number, (_, one) in enumerate(parts):
        if isinstance(one, PositionalMeasure) and one.max_value == np.inf:
            best = float(np.average(one.best(queries.graded, queries.offsets), weights=queries.weights))
            units[number] = best if best > 0 else 1.0
    return float(np.average(units, weights=[weight for weight, _ in parts]))


def spread(queries: Arrangement) -> float:
    """U, the mean square distance of a document's features from the mean of its query, each query weighing v_q."""
    sizes = np.diff(queries.offsets)
    shares = np.repeat(queries.weights / queries.weights.sum() / sizes, sizes)
    return within.spread(queries.features, shares, queries.rows, queries.offsets)


NAMED = {"smooth": "rankopt.rankers.smooth:SmoothRanker", "ridge": STARTS["ridge"], "zeros": STARTS["zeros"]}
"""Starts by name: a ranker, or a function of w₀."""

APART = 0.5  # the deviation of the scores by which restarts are moved away from the start, whose own is about 1
SMOOTHED = "nDCG@10"  # what the smooth start climbs where the measure itself cannot be smoothed on these queries


def check_start(start: Any) -> None:
    """Raise OptionError for what is no start."""
    if isinstance(start, str):
        if start not in NAMED:
            raise OptionError(f"init = {start!r} is unknown; use {', '.join(map(repr, NAMED))}, a ranker or an array")
    elif hasattr(start, "fit"):
        if isinstance(start, type):
            raise OptionError(f"init = {start.__name__} is a class; give a ranker of it: {start.__name__}()")
        if getattr(start, "normalize", None) not in (None, "auto"):
            raise OptionError(
                f"init = {start} cannot normalize by itself, or it would learn weights of other features; give "
                "normalize to the ranker that it starts"
            )
    elif np.ndim(as_numbers("init", start)) != 1:
        raise OptionError(f"init has the shape {np.shape(start)}; give one number a feature")


def start_weights(ranker: Any, queries: Queries, weights: Floats, arranged: Arrangement) -> Floats:
    """The weights (d,) of `ranker.init` on its training queries, weights (m,), in whatever scale."""
    start = ranker.init
    if isinstance(start, str) and start == "zeros":
        return np.zeros(queries.n_features)
    if isinstance(start, str) and start != "smooth":
        return np.asarray(get_start(start, NAMED)(ranker, arranged))
    if isinstance(start, str):
        engine, n_jobs = workers(ranker)
        smooth = load(NAMED["smooth"])
        taken = smoothable(ranker.measure, arranged.graded, arranged.offsets)
        start = smooth(ranker.measure if taken else SMOOTHED, engine=engine, n_jobs=n_jobs)
    if hasattr(start, "fit"):
        if getattr(start, "normalize", None) == "auto":  # the features are those of the ranker that it starts
            start = clone(start).set_params(normalize=None)
        with raise_interruptions():
            fitted = clone(start).fit(queries, query_weight=weights)
        coef = getattr(fitted, "coef_", None)
        if not isinstance(coef, np.ndarray) or coef.shape != (queries.n_features,):
            raise OptionError(f"init = {start} has no coef_ of one weight a feature; give a linear ranker")
        return coef
    return passed_weights("init", start, (queries.n_features,))


def begun_at(search: LineSearch, start: Floats, count: int, seed: int) -> list[tuple[Floats, dict[str, Any]]]:
    """Where each of `count` paths begins, and the generator of its draws: the first at the start, the others away from
    it at random, each by draws of its own, so that more paths change none of those before."""
    start = scale_to_one(start, search.deviation(start))
    units = np.where(search.deviations > 0, search.deviations, 1.0)
    begun = []
    for number in range(count):
        generator = np.random.PCG64(np.random.SeedSequence([seed, number]))
        w = start
        if number:
            away = np.random.Generator(generator).normal(size=start.size) / units
            width = search.deviation(away)
            apart = APART if start.any() else 1.0
            w = start + away * (apart / width) if width > 0 else start
        begun.append((w, dict(generator.state)))
    return begun


def scale_to_one(w: Floats, deviation: float) -> Floats:
    """w times the power of two that brings this deviation nearest to 1, which changes no bit of any order."""
    if not (0 < deviation < np.inf):
        return w
    made = np.ldexp(w, -int(np.round(np.log2(deviation))))
    return made if np.isfinite(made).all() else w
