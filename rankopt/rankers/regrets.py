"""Regret of the displayed rankings, and the oracle that bounds it.

A bound holds for every ranking that maximizes the score, so it is compared with the regret of the worst of them: if
scores tie, the order that loses most. Under constraints it is the regret of the one displayed ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from formulations.solvers import get_solver
from rankopt.constraints.admissible import Admissible
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.errors import OptionError
from rankopt.losses.oracle import Criterion, MaxOracle
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.oracle_positional import with_distinct_grades
from rankopt.losses.position_weights import Decay, parse_position_weights
from rankopt.losses.regret import RegretBound
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import parse
from rankopt.rankers.deployment import Deployment

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RegretReport(CompactReprMixin):
    """The queries that have something to order, with their scores, argmax, and regret (m,): of the worst order that
    the scores allow, and its mean over these orders."""

    queries: Arrangement
    scores: Floats
    argmax: MaxOracle
    regret: Floats
    expected: Floats
    measure: str
    position_weights: str
    feature_map: str = "positional"


def as_arranged(queries: Queries) -> Arrangement:
    """All queries in the order in which they stand, each of weight 1."""
    return Arrangement(
        features=queries.features,
        rows=np.arange(queries.n_documents),
        offsets=queries.offsets,
        weights=np.ones(len(queries)),
        relevance=queries.relevance,
        query_ids=queries.query_ids,
        attributes=queries.attributes,
    )


def _positional(measure: Any) -> PositionalMeasure:
    """The measure, if its regret can be bounded in a set; OptionError with the cure for others."""
    found = parse(measure)
    if not isinstance(found, PositionalMeasure):
        raise OptionError(
            f"the regret of {found} has no such bounds under constraints because it is no inner product of position "
            "weights and gains; pass measure='nDCG@10' or another positional measure"
        )
    return found


def judged_rankings(queries: Arrangement, scores: Floats, regret: RegretBound) -> RegretReport:
    """Rankings by score, scores (N,) a document of `queries`; of a measure that is no mix."""
    chosen = with_distinct_grades(queries, regret.measure)
    argmax, own = regret.argmax(chosen, get_solver("exact")), scores[chosen.rows]
    criterion = Criterion.from_measure(regret.measure, chosen.graded, chosen.offsets)
    lost = [np.maximum(argmax.best - value, 0.0) for value in criterion.worst_and_mean(own)]
    return RegretReport(
        chosen, own, argmax, lost[0], lost[1], str(regret.measure), str(regret.position_weights), regret.map_name
    )


def judged_in_a_set(
    queries: Arrangement, scores: Floats, measure: Any, position_weights: Any, admissible: Admissible,
    shown: Deployment,
    start: Floats,
) -> RegretReport:  # fmt: skip
    """Rankings of a set as they are `shown`. start: (N,) the scores by which ties of the convex reference fall.

    Raises OptionError where the ranking shown is not one that the decay likes most: no bound speaks of it.
    """
    parsed, weights = _positional(measure), parse_position_weights(position_weights)
    chosen, argmax = AdmissibleArgmax.from_queries(
        queries, parsed, weights, admissible.for_queries, lambda some: start[some.rows], shown.solver
    )
    index = {query: number for number, query in enumerate(queries.query_ids)}
    orders = shown.orders(scores)
    ordered = [orders[index[query]] for query in chosen.query_ids]
    rows = np.concatenate([low + order for low, order in zip(chosen.offsets[:-1], ordered, strict=True)])
    own = scores[chosen.rows]
    _check_liked(argmax, rows, own, weights)
    lost = np.maximum(argmax.best - argmax.measured(rows), 0.0)
    return RegretReport(chosen, own, argmax, lost, lost, str(parsed), str(weights))


def _check_liked(argmax: AdmissibleArgmax, rows: Ints, scores: Floats, position_weights: Decay) -> None:
    """Raise OptionError unless these rankings maximise c[π]ᵀs over the sets."""
    ones = np.ones(len(argmax))
    best = argmax.argmax(0.0 * ones, ones, scores).value
    reached = np.add.reduceat(argmax.position_weights * scores[rows], argmax.places[:-1])
    if argmax.soft:
        reached = reached - argmax.charged(rows)
    if (best - reached > ROUNDING * np.maximum(np.abs(best), np.abs(scores).max())).any():
        raise OptionError(
            f"no bound applies to the displayed rankings because position_weights {position_weights} does not fall "
            f"over all their "
            "positions, so that they are chosen by 1 / log2(i + 1); pass position_weights='log', or train with "
            "a decay that falls"
        )
