"""The rankings that are shown: by score, or the best admissible ones."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from formulations.errors import Infeasible
from formulations.modeling.constrained_ranking import ConstrainedRanking
from formulations.modeling.solve import Solver, solve
from rankopt.constraints.admissible import Admissible
from rankopt.constraints.greedy import Caps
from rankopt.data.queries import Queries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Weights = Callable[[int, int], Floats]
"""k, n → strictly decreasing positive weights (k,) of the positions of a list of k of n documents."""


def log_weights(k: int, n: int) -> Floats:
    """1 / log2(i + 1), i = 1 to k."""
    return np.asarray(1.0 / np.log2(np.arange(2.0, k + 2.0)))


def orders(
    queries: Queries,
    scores: Floats,
    admissible: Admissible | None,
    weights: Weights = log_weights,
    solver: Solver | str = "auto",
) -> Iterator[Ints]:
    """For each query its documents (counted within it), best first: all of them, or those of the admissible ranking
    that maximises Σ_i weights_i s_π(i). Equal scores stay as they come wherever one pass suffices.

    Raises DataError for an attribute that is missing, and for a query that has no admissible ranking.
    """
    if admissible is not None:
        admissible.check(queries.attributes)
    for q, (start, stop) in enumerate(pairwise(queries.offsets.tolist())):
        own = scores[start:stop]
        if admissible is None:
            yield np.argsort(-own, kind="stable")
            continue
        attributes = {name: queries.attributes[name][start:stop] for name in admissible.attributes}
        caps = Caps.of(admissible.rules, attributes, own.size, min(admissible.k, own.size))
        if caps is not None:
            order = caps.order(own)
            if order.size == caps.k or (order.size and admissible.short == "cut"):
                yield order
                continue
        try:
            one = admissible.on(attributes, own.size)
        except Infeasible as error:
            raise admissible.refusal(queries.query_ids[q], error) from error
        profit = np.outer(weights(one.positions, own.size), own)
        yield solve(ConstrainedRanking(profit, one), solver).order


def scores_of_places(queries: Queries, scores: Floats, shown: Iterator[Ints]) -> Floats:
    """(N,) scores that make these rankings: documents that are not shown stand behind, in the order of their scores."""
    made = np.empty(scores.size)
    for start, stop, order in zip(queries.offsets[:-1], queries.offsets[1:], shown, strict=True):
        _, rank = np.unique(scores[start:stop], return_inverse=True)
        own = rank.astype(np.float64)
        own[order] = float(stop - start) + np.arange(order.size, 0, -1)
        made[start:stop] = own
    return made
