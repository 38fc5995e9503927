"""`lam="auto"`: λ by cross-validation over whole queries, along a path with kept planes.

The queries are dealt into two halves by their content, so that no shuffle changes them. Without each half in turn a
ranker is trained along a path of λ, in units of its own natural one (`rankopt.rankers.scale`); the half judges every
model, and the start w₀ itself, which is λ = ∞. A measure cut at k is judged by its mean over the cuts at k, k/2, k/4
and k/8, which varies less than the one at k. What is chosen is the factor of best mean; a final fit on all queries
follows. Limits of steps and time begin afterwards: what they cut off would depend on the speed of the machine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from formulations.small import is_small
from formulations.solvers.active_set import ActiveSet
from formulations.solvers.exact import Exact
from rankopt.data.canonical import canonical
from rankopt.engines import ended
from rankopt.errors import OptionError
from rankopt.measures.notation import parse
from rankopt.optimize import method_named
from rankopt.optimize.certificate import Stop
from rankopt.optimize.method import Clock
from rankopt.optimize.path import follow

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

__all__ = ["FACTORS", "FOLDS", "chosen_factor", "judged"]

Floats = NDArray[np.float64]

FOLDS = 2

FACTORS, FROM_ZERO = (10.0, 3.0, 1.0), (1.0, 1e-1, 1e-2, 1e-3)
"""λ of the path in units of the natural one, the largest first, from a start and from w₀ = 0, which has everything to
learn; before them stands w₀ itself."""

TOL, STEPS = 1e-2, 8
"""The relative gap to which the models of a fold are trained, and the steps that each may take: judging asks for no
more (what a choice costs: benchmarks/choosing.md)."""


def chosen_factor(ranker: Any, queries: Queries, weights: Floats) -> float:
    """λ in units of the natural one, as cross-validation chooses it; of equals the largest.

    Raises OptionError for fewer than two queries with something to order.
    """
    found, factors = judged(ranker, queries, weights)
    first = int(np.isnan(found[0]).all())  # w₀ is no member of a path that pulls to 0
    counted = ~np.isnan(found[first:]).any(axis=0)
    if not counted.any():
        raise OptionError(
            f"lam = 'auto' cannot choose because {ranker.measure} is defined on no query that was left out; give a "
            "number, or lam='scale'"
        )
    best = first + int(np.argmax(np.average(found[first:, counted], axis=1, weights=weights[counted])))  # the largest
    return factors[max(best - 1, 0)]


def judged(ranker: Any, queries: Queries, weights: Floats) -> tuple[Floats, tuple[float, ...]]:
    """(1 + F, m) the measure of each query under w₀ and along the path of F factors, trained without its fold."""
    grades, starts = np.asarray(queries.relevance), queries.offsets[:-1]
    counted = (weights > 0) & (np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts))
    if counted.sum() < 2:
        raise OptionError(
            "lam = 'auto' cannot choose because fewer than two queries have something to order; give a number, or "
            "lam='scale'"
        )
    folds = dealt(queries, weights, counted, min(FOLDS, int(counted.sum())))
    factors: tuple[float, ...] = FACTORS
    values = np.full((1 + max(len(FACTORS), len(FROM_ZERO)), len(queries)), np.nan)
    method = method_named(ranker.method, getattr(ranker, "random_state", None))
    for fold in range(folds.max() + 1):
        rest, left = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        engine = "serial" if ranker.engine == "serial" else "threads"  # the data are here
        one = clone(ranker).set_params(lam="scale", C=None, checkpoint=None, engine=engine, **as_of(ranker, queries))
        own = queries.select(rest)
        one.n_queries_ = rest.size
        one.n_features_in_ = queries.n_features
        one._before(own)
        objective = one.objective(own, weights[rest])
        judge = one._values(queries.select(left), steady(ranker))
        factors = FACTORS if objective.start.any() else FROM_ZERO
        lams = [factor * objective.lam for factor in factors]

        def clock() -> Clock:
            return Clock.started(STEPS, None)

        if objective.start_counts:
            values[0, left] = judge(objective.start)
        gone = 0
        with ended(objective.risk.engine, True):
            for outcome in follow(objective, method, objective.start, lams, max(TOL, ranker.tol), clock, prove=False):
                if outcome.certificate.stop is not Stop.INTERRUPTED:
                    gone += 1
                    values[gone, left] = judge(outcome.w)
        if gone < len(factors):
            raise KeyboardInterrupt("interrupted while lam was chosen, before the first step was done")
    return values[: 1 + len(factors)], factors


def as_of(ranker: Any, queries: Queries) -> dict[str, Any]:
    """The solvers that the whole data have: a fold of data that are not small has compiled ones too."""
    if is_small(queries.offsets):
        return {}
    plain = getattr(ranker, "argmax", None) == "exact" and getattr(ranker, "constraints", None) is None
    master = {"master": ActiveSet(compiled=True)} if ranker.master == "auto" else {}
    return {"argmax": Exact(compiled=True), **master} if plain else master


def dealt(queries: Queries, weights: Floats, counted: NDArray[np.bool_], folds: int) -> NDArray[np.int64]:
    """(m,) the fold of each query that is counted, dealt in turn in canonical order; -1 for the others."""
    known = dict(zip(queries.query_ids, counted.tolist(), strict=True))
    ordered = [query for query in canonical(queries, weights).query_ids if known[query]]
    place = {query: number % folds for number, query in enumerate(ordered)}
    return np.array([place.get(query, -1) for query in queries.query_ids])


def steady(ranker: Any) -> list[Any]:
    """The measure at its cut, a half, a quarter and an eighth of it, or itself where it has none."""
    measure = getattr(ranker, "measure", None)
    if measure is None:
        return [None]
    parsed: Any = parse(measure)
    cut = getattr(parsed, "cutoff", None)
    if not isinstance(cut, int):
        return [parsed]
    return [replace(parsed, cutoff=k) for k in sorted({max(round(cut / 2**part), 1) for part in range(4)})]
