"""The rankings that are shown: by score, or the best admissible ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from formulations.constraints.ranking_set import RankingSet
from formulations.errors import InfeasibleError
from formulations.gallery.assignments import constrained_ranking
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve
from rankopt.constraints.admissible import Admissible, infeasible_error
from rankopt.constraints.specs import GroupCapacities
from rankopt.data.queries import Queries
from rankopt.errors import DataError

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

    def places(self, scores: Floats) -> Floats:
        """(N,) scores that make these rankings: documents that are not shown stand behind, in the order of theirs."""
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
