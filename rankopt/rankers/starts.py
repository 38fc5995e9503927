"""Where training starts from and its regulariser pulls to, by name: w₀ as a function of the training queries.

A new start is one function, and one line of the table `rankopt.rankers.STARTS`. A start of the nonconvex bounds has to
have the right *scale* besides the right order: where scores lie close, the bound falls with any spread of theirs, good
or bad. A margin of 1 between documents of different grades is that scale; least squares has a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formulations.compiled import is_small
from formulations.registry import load
from rankopt.engines import ended, get_engine
from rankopt.errors import OptionError
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.optimize.bundle import Bundle
from rankopt.optimize.certificate import Stop
from rankopt.optimize.concave_convex import train
from rankopt.optimize.least_squares import least_squares
from rankopt.optimize.method import Clock
from rankopt.optimize.objective import Objective
from rankopt.rankers.regression import cross_validated_ridge, row_weights
from rankopt.rankers.scale import natural_lam
from rankopt.risk.risk import Risk
from rankopt.risk.shard import shards_of_grades
from rankopt.scorers.linear import row_scores

if TYPE_CHECKING:
    from rankopt.data.canonical_order import Arrangement

Floats = NDArray[np.float64]

RANKSVM = 1e-2
"""λ of `PairwiseRanker()`."""

TOL, STEPS = 1e-3, 300
"""The relative gap to which a start is trained, and the steps after which it is good enough in any case."""


def zeros(ranker: Any, queries: Arrangement) -> Floats:
    """w₀ = 0."""
    return np.zeros(ranker._shape(queries))


def regression(ranker: Any, queries: Arrangement) -> Floats:
    """Least squares on the gains, one intercept for all [ORM, section 6.3]."""
    gains = ranker._gains(queries)
    return least_squares(queries.features, gains, row_weights(queries), 0.0, queries.rows)


def ridge(ranker: Any, queries: Arrangement) -> Floats:
    """The weights w of `RegressionRanker()` times the t >= 0 of RankSVM with their scores as its one feature: the order
    of the ridge, with margins of 1."""
    w = cross_validated_ridge(queries)
    scores = row_scores(queries.features, queries.rows, w)
    along = replace(queries, features=scores[:, None], rows=np.arange(scores.size))
    return np.asarray(w * max(float(by_pairs(ranker, along, None)[0]), 0.0))


def bare_ridge(ranker: Any, queries: Arrangement) -> Floats:
    """The weights of `RegressionRanker()` as they are."""
    return cross_validated_ridge(queries)


def ranksvm(ranker: Any, queries: Arrangement) -> Floats:
    """The weights of `PairwiseRanker()`, whose λ is a number: it depends on the scale of the features."""
    return by_pairs(ranker, queries, RANKSVM)


def workers(ranker: Any) -> tuple[str, int | None]:
    """The engine for local computation: the ranker's threads, else serial."""
    return "serial" if ranker.engine == "serial" else "threads", None if ranker.n_jobs in (None, -1) else ranker.n_jobs


def by_pairs(ranker: Any, queries: Arrangement, lam: float | None) -> Floats:
    """RankSVM at this λ, None for the natural one. Limits of time begin afterwards: a start that they cut off would
    depend on the speed of the machine."""
    engine = get_engine(*workers(ranker))
    risk = Risk(shards_of_grades(queries, PairwiseHinge), engine)
    lam = natural_lam(queries, risk.weights.size) if lam is None else lam
    objective = Objective(risk, lam, np.zeros(queries.n_features), "auto", is_small(queries.offsets))
    with ended(engine, True):
        outcome = train(objective, Bundle(), objective.w0, TOL, Clock.started(STEPS, None))
    if outcome.certificate.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt("interrupted before the first step was done")
    return outcome.w


def get_start(name: str, known: Mapping[str, str]) -> Callable[[Any, Arrangement], Floats]:
    """The start of this name among those `known`: a function of the ranker and of its training queries to w₀. Raises
    OptionError for another one."""
    if name not in known:
        raise OptionError(f"w0 = {name!r} is unknown; use {', '.join(map(repr, known))} or an array")
    start: Callable[[Any, Arrangement], Floats] = load(known[name])
    return start
