"""Training on arriving queries: `partial_fit`.

[ORM, section 4.4] takes a subgradient step for each new query. Here new queries join the objective, and the planes and
weights found so far stay: a plane lies under Σ v_q loss_q of its group of queries, and v_q shrinks by one factor for
all queries seen before. So the certificate is that of one fit of all queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any, Self

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.data.canonical_order import Arrangement, canonical
from rankopt.data.normalization import MANY
from rankopt.data.queries import Queries, concatenate
from rankopt.data.typing import Attributes, Ids, Sizes, Values
from rankopt.data.validation import without_query_column
from rankopt.errors import DataError, OptionError
from rankopt.optimize.bundle import cuts
from rankopt.optimize.concave_convex import Method, Training
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import State, TrainingState
from rankopt.rankers.inputs import (
    chosen_normalization,
    measuring_gains,
    query_weights,
    read_queries,
    refuse_log,
    warn_without_queries,
)
from rankopt.rankers.typing import AnyRows, Weights

LOSS = (
    "measure", "feature_map", "bound", "target_ranking", "position_weights", "loss", "constraints", "normalize",
    "missing",
)  # fmt: skip
"""Options that cannot change between calls; others, such as lam and tol, can."""


@dataclass(frozen=True, eq=False)
class Stream:
    """The queries of all calls, with their weights (m,) as passed, and the place of each in training, by id.

    problem: the options that a loss depends on, as text. center: w₀ where earlier queries are not among them. state:
    that of the method, with the weights v of that time. cuts (G + 1,): where the groups of its planes begin among the
    queries with something to order.
    """

    queries: Queries
    weights: Floats
    place: Mapping[Hashable, int]
    problem: Mapping[str, str]
    center: Floats | None = None
    state: State | None = None
    cuts: Ints | None = None

    def in_order(self, queries: Arrangement) -> Arrangement:
        """The queries in their places."""
        return queries.select(np.argsort([self.place[query] for query in queries.query_ids]))

    def continued(self, objective: Objective, method: Method, w: Floats) -> tuple[Objective, TrainingState]:
        """The objective of all queries with the groups of the planes, and where its training begins."""
        begun, before = method.start(objective, w), self.state
        groups, total = len(begun.planes.references), objective.risk.weights.size
        if self.cuts is None or before is None or not hasattr(method, "aimed") or not objective.takes_groups():
            return objective, TrainingState(begun)
        seen = int(self.cuts[-1])
        more = -(-groups * (total - seen) // total)  # as many as the new queries would have among all
        own = np.append(self.cuts, seen + np.arange(1, more + 1) * (total - seen) // max(more, 1))
        part, new = float(objective.risk.weights[:seen].sum()), ((0, more), (0, 0))
        planes = replace(
            before.planes,
            assigned=part * before.planes.assigned,
            heights=part * before.planes.heights,
            references=np.pad(part * before.planes.references, new),
            paid=np.pad(part * before.planes.paid, new[0]),
            idle=np.zeros_like(before.planes.idle),
        )
        begun = replace(begun, planes=planes, alpha=before.alpha)
        return replace(objective, risk=replace(objective.risk, cuts=own)), TrainingState(begun)

    def after(self, outcome: Training, objective: Objective) -> Self:
        """The stream with what a run found."""
        own = cuts(objective.risk, len(outcome.state.planes.references))
        return replace(self, state=outcome.state, cuts=own)


def partial_fit(
    self: Any,
    X: AnyRows,
    y: Values | None = None,
    *,
    qid: Ids | None = None,
    group: Sizes | None = None,
    query_weight: Weights | None = None,
    attributes: Attributes | None = None,
) -> Any:
    """Add these queries to those of earlier calls of `partial_fit`, and train on all of them from the present weights.

    J is the objective of one `fit` of all queries with the same `normalize_`, and so is the certificate; `n_queries_`
    counts them, and `history_` is of the last call. Under a convex bound the result is that of one fit, up to the gap;
    under a nonconvex one it may be another critical point. The method "bundle" keeps its planes, others begin at the
    present weights. Data are passed as to `fit`; a query comes in one call, and ids must be new.

    What is learned of features is that of the first call: their names, what `normalize="auto"` chooses, and with
    `missing="indicator"` which features have an indicator, and the means.

    The queries are kept in memory, and are neither saved nor pickled. Where they are not there, after `fit` or
    `load_model`, the weights become w₀ and the certificate is of the queries passed since. Queries without ids, by
    group or one alone, are numbered on.
    """
    refuse_log(X)
    if getattr(self, "checkpoint", None) is not None:
        raise OptionError("partial_fit does not support checkpoints; set checkpoint=None, or fit all queries")
    known: Stream | None = self._stream
    center = self.coef_.copy() if known is None and hasattr(self, "coef_") else None
    problem = {name: repr(getattr(self, name, None)) for name in LOSS}
    for name in LOSS:
        if known is not None and known.problem[name] != problem[name]:
            raise OptionError(
                f"{name} cannot change between calls of partial_fit; it was {known.problem[name]:.80} and is "
                f"{problem[name]:.80}. Set it back, or fit all queries."
            )
    fitted = hasattr(self, "n_features_in_")
    queries = read_queries(self, X, y, qid=qid, group=group, attributes=attributes, reset=not fitted)
    warn_without_queries(X, queries.n_documents, qid, group, stacklevel=4)
    weights = query_weights(queries, query_weight)
    named = isinstance(X, Queries) or qid is not None or without_query_column(X)[2] is not None
    again = [query for query in queries.query_ids if known is not None and query in known.place]
    if again and named:
        raise DataError(
            f"qid has {again[0]!r}, a query of an earlier call; pass all documents of a query in one call, and give "
            "other queries other ids"
        )
    if known is not None and not named:
        free = (number for number in count(len(known.place)) if number not in known.place)
        queries = queries.replace(query_ids=tuple(islice(free, len(queries))))
    order = canonical(queries, weights, attributes=self._content(queries)).query_ids
    place = {} if known is None else dict(known.place)
    place |= {query: len(place) + number for number, query in enumerate(order)}
    if known is None:
        stream = Stream(queries, weights, place, problem, center)
    else:
        every = concatenate([known.queries, queries])
        if getattr(self, "normalize", None) == "auto" and len(known.queries) < MANY <= len(every):
            _warn_of_scales(self, every)
        stream = replace(known, queries=every, weights=np.append(known.weights, weights), place=place)
    self._stream = stream
    self.n_queries_ = len(stream.queries)
    with measuring_gains(self, stream.queries):
        self._fit(stream.queries, stream.weights, None)
    return self


def _warn_of_scales(ranker: Any, queries: Queries) -> None:
    """Warn where the queries so far would have made normalize="auto" another one than the first call did."""
    if ranker.normalize_ is None and chosen_normalization(ranker, queries) is not None:
        warnings.warn(
            "scales of features differ from query to query, but the first call had too few queries for "
            "normalize='auto' to see that; start again with normalize='zscore'",
            UserWarning,
            stacklevel=3,
        )
