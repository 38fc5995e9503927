"""The rankings that are shown, by score or the best admissible ones; and their regret.

A bound holds for every ranking that maximizes the score, so it is compared with the regret of the worst of them: if
scores tie, the order that loses most. Under constraints it is the regret of the one displayed ranking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.constraints.ranking_set import RankingSet
from formulations.display import CompactReprMixin
from formulations.errors import InfeasibleError
from formulations.gallery.assignments import constrained_ranking
from formulations.solvers import get_solver
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve
from rankopt.constraints.admissible import Admissible, infeasible_error
from rankopt.constraints.specs import GroupCapacities
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.errors import DataError, OptionError
from rankopt.losses.oracle import Criterion, MaxOracle
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.oracle_positional import with_distinct_grades
from rankopt.losses.position_weights import PositionWeights, parse_position_weights
from rankopt.losses.regret import RegretBound
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import parse

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Weights = Callable[[int, int], Floats]
"""k, n → strictly decreasing positive weights (k,) of the positions of a list of k of n documents."""


def log_weights(k: int, n: int) -> Floats:
    """1 / log2(i + 1), i = 1 to k."""
    return np.asarray(1.0 / np.log2(np.arange(2.0, k + 2.0)))


@dataclass(frozen=True, eq=False)
class Deployment:
    """How the documents of each query are ranked for any scores: all of them by score, or the admissible ranking that
    maximises Σ_i weights_i s_π(i), by one greedy pass where that finds it. Built once for the queries."""

    offsets: Ints
    sets: tuple[GroupCapacities | RankingSet, ...] | None
    weights: Weights = log_weights
    solver: Solver | str = "auto"

    @classmethod
    def from_queries(
        cls,
        queries: Queries,
        admissible: Admissible | None,
        weights: Weights = log_weights,
        solver: Solver | str = "auto",
    ) -> Deployment:
        """Raises DataError for an attribute that is missing, and for a query that has no admissible ranking."""
        if admissible is None:
            return cls(queries.offsets, None)
        admissible.validate(queries.attributes)
        sets = tuple(_set_of(queries, q, admissible) for q in range(len(queries)))
        return cls(queries.offsets, sets, weights, solver)

    def orders(self, scores: Floats) -> list[Ints]:
        """For each query its documents that are shown (counted within it), best first. Equal scores stay as they come
        wherever no solver is needed. DataError unless there is a score for each document."""
        if np.shape(scores) != (self.offsets[-1],):
            raise DataError(
                f"documents cannot be ranked by scores of shape {np.shape(scores)} because there are "
                f"{self.offsets[-1]}; give one score a document."
            )
        found = []
        for q, (start, stop) in enumerate(pairwise(self.offsets.tolist())):
            own, one = scores[start:stop], None if self.sets is None else self.sets[q]
            if one is None:
                found.append(np.argsort(-own, kind="stable"))
            elif isinstance(one, GroupCapacities):
                found.append(one.order(own))
            else:
                profit = np.outer(self.weights(one.positions, own.size), own)
                found.append(solve(constrained_ranking(profit, one), self.solver).order)
        return found

    def ranking_scores(self, scores: Floats) -> Floats:
        """(N,) scores that make these rankings: documents that are not shown follow, by decreasing score."""
        if self.sets is None:
            return scores
        made = np.empty(scores.size)
        for (start, stop), order in zip(pairwise(self.offsets.tolist()), self.orders(scores), strict=True):
            _, rank = np.unique(scores[start:stop], return_inverse=True)
            own = rank.astype(np.float64)
            own[order] = float(stop - start) + np.arange(order.size, 0, -1)
            made[start:stop] = own
        return made


def _set_of(queries: Queries, q: int, admissible: Admissible) -> GroupCapacities | RankingSet:
    """The set of one query, as limits where one pass solves it."""
    start, stop = queries.offsets[q : q + 2].tolist()
    n, attributes = stop - start, {name: queries.attributes[name][start:stop] for name in admissible.attributes}
    caps = GroupCapacities.from_specs(admissible.specs, attributes, n, min(admissible.k, n))
    if caps is not None:
        length = caps.order(np.zeros(n)).size
        if length == caps.k or (length and admissible.on_infeasible == "truncate"):
            return caps
    try:
        return admissible.for_query(attributes, n)
    except InfeasibleError as error:
        raise infeasible_error(admissible, queries.query_ids[q], error) from error


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
    """All queries in their order, each of weight 1."""
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


def regret_of_rankings(queries: Arrangement, scores: Floats, regret: RegretBound) -> RegretReport:
    """Rankings by score, scores (N,) a document of `queries`; of a measure that is no mix."""
    chosen = with_distinct_grades(queries, regret.measure)
    argmax, own = regret.argmax(chosen, get_solver("exact")), scores[chosen.rows]
    criterion = Criterion.from_measure(regret.measure, chosen.graded, chosen.offsets)
    lost = [np.maximum(argmax.best - value, 0.0) for value in criterion.worst_and_mean(own)]
    return RegretReport(
        chosen, own, argmax, lost[0], lost[1], str(regret.measure), str(regret.position_weights), regret.map_name
    )


def regret_in_set(
    queries: Arrangement, scores: Floats, measure: Any, position_weights: Any, admissible: Admissible,
    shown: Deployment,
    start: Floats,
) -> RegretReport:  # fmt: skip
    """Rankings of a set as they are `shown`. start: (N,) the scores by which ties of the convex reference fall.

    Raises OptionError where the ranking shown does not maximize the score under the position weights: then no
    bound applies to it.
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


def _check_liked(argmax: AdmissibleArgmax, rows: Ints, scores: Floats, position_weights: PositionWeights) -> None:
    """Raise OptionError unless these rankings maximise c[π]ᵀs over the sets."""
    ones = np.ones(len(argmax))
    best = argmax.argmax(0.0 * ones, ones, scores).value
    reached = np.add.reduceat(argmax.position_weights * scores[rows], argmax.position_offsets[:-1])
    if argmax.soft:
        reached = reached - argmax.charged(rows)
    if (best - reached > ROUNDING * np.maximum(np.abs(best), np.abs(scores).max())).any():
        raise OptionError(
            f"no bound applies to the displayed rankings because position_weights {position_weights} do not decrease "
            "over all their positions, so that they are chosen by 1 / log2(i + 1); pass position_weights='log', or "
            "train with decreasing position weights"
        )
