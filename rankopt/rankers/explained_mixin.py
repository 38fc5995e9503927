"""What a ranker says of itself: how tight the bounds of its regret are, and what limits cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from formulations.sets.limits import Side
from formulations.solving.price_curve import PriceCurves
from rankopt.constraints.admissible import Admissible
from rankopt.constraints.sweep import swept
from rankopt.data.given import Attributes, Ids, Sizes, Values
from rankopt.data.queries import Queries
from rankopt.errors import OptionError
from rankopt.explanations.prices import Prices, prices_of
from rankopt.explanations.tightness import Tightness, bounds_at, most_lost
from rankopt.explanations.tightness_of_mixes import of_parts
from rankopt.losses import BOUNDS, bound_named
from rankopt.losses.margin import Bound
from rankopt.losses.regret import RegretBound
from rankopt.measures.measure_mix import MeasureMix
from rankopt.measures.notation import parse
from rankopt.rankers.choices import AnyDecay, AnyMap, AnyMeasure, AnyRows
from rankopt.rankers.inputs import check_queries_named, read_queries
from rankopt.rankers.rank_mixin import RankMixin
from rankopt.rankers.regrets import RegretReport, as_arranged, judged_in_a_set, judged_rankings
from rankopt.scorers.linear import linear_scores

DECAY, MAP = "power(0.5)", "positional"
"""Of rankers that train no bound: those of `LargeMarginRanker`."""


class ExplanationMixin(RankMixin):
    """`tightness` and `prices` of a ranker that scores documents."""

    measure: Any

    _unlimited: ClassVar[str] = "there are none; pass constraints=Admissible(k).at_most(...)"
    """Why limits have no prices where nothing is constrained."""

    def tightness(
        self,
        X: AnyRows,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
        measure: AnyMeasure | None = None,
        decay: AnyDecay | None = None,
        map: AnyMap | None = None,
    ) -> Tightness:
        """Regret and its bounds query by query, for the queries that have something to order: a table.

        The bounds are the convex, the tie-aware and the nonconvex one, and the one that was trained if that is another.
        measure, decay, map: those of the ranker by default, and "power(0.5)" and "positional" for rankers that have
        none. Under constraints (the ranker's own, if none are given) regret is measured from the best admissible
        ranking. Of a mix of measures `parts` has a table for each part too.

        Raises OptionError for a measure whose regret the map cannot bound. Data are passed as to `score`.
        """
        check_is_fitted(self)
        check_queries_named(self, X, qid, group)
        queries = read_queries(self, X, y, qid=qid, group=group, attributes=attributes, reset=False)
        asked = parse(getattr(self, "measure", "nDCG") if measure is None else measure)
        if not isinstance(asked, MeasureMix) or self._admissible(constraints) is not None:
            return self._tight(self._judged(queries, constraints, measure, decay, map))
        own, parts = self._regret(asked, decay, map), list[tuple[float, str, Tightness]]()
        for (weight, regret), part in zip(own.parts, asked.parts, strict=True):
            judged = judged_rankings(as_arranged(queries), self._scores(queries.features), regret)
            parts.append((weight, str(replace(part, weight=1.0)), self._tight(judged)))
        return of_parts(str(asked), parts, queries.query_ids, asked.slack == "shared")

    def _tight(self, judged: RegretReport) -> Tightness:
        """Regret and bounds of what was judged."""
        trained = self._trained_bound()
        bounds: dict[str, Bound] = {name: bound_named(name) for name in BOUNDS}
        name = "nonconvex"
        if trained is not None:
            alike = [known for known, bound in bounds.items() if bound == trained]
            name = alike[0] if alike else f"trained ({type(trained).__name__})"
            bounds.setdefault(name, trained)
        values, growth = bounds_at(judged.argmax, judged.scores, bounds)
        chosen = judged.queries
        return Tightness(
            measure=judged.measure,
            decay=judged.decay,
            map=judged.map,
            trained=name,
            own=trained is not None,
            lam=hasattr(self, "lam"),
            query=chosen.query_ids,
            documents=np.diff(chosen.offsets),
            regret=judged.regret,
            expected=judged.expected,
            bounds=values,
            most=most_lost(judged.argmax),
            growth=growth[[*bounds].index(name)],
            linear=hasattr(self, "coef_"),
        )

    def prices(
        self,
        X: AnyRows,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> Prices:
        """What each limit of the constraints (the ranker's own, if none are given) costs in each query: prices of the
        program that `rank` solves. Data are passed as to `rank`. Raises OptionError where nothing is constrained."""
        check_is_fitted(self)
        admissible = self._admissible(constraints)
        if admissible is None:
            raise OptionError(f"limits have no prices because {self._unlimited}")
        queries = read_queries(self, X, None, qid=qid, group=group, attributes=attributes, reset=False, labels=False)
        sets = admissible.of_queries(queries)
        deployment = self._deployment(queries, admissible)
        scores = self._scores(queries.features)
        return prices_of(queries.query_ids, sets, queries.offsets, scores, deployment.weights, deployment.solver)

    def price_of(
        self,
        constraint: str,
        limits: Iterable[float],
        X: AnyRows,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
        side: Side | None = None,
    ) -> PriceCurves:
        """What the limit of one rule of the constraints (the ranker's own, if none are given) costs over these queries,
        at each of `limits`: `Admissible.price_of` with the scores of the ranker and the weights that `rank` takes."""
        check_is_fitted(self)
        admissible = self._admissible(constraints)
        if admissible is None:
            raise OptionError(f"limits have no prices because {self._unlimited}")
        queries = read_queries(self, X, None, qid=qid, group=group, attributes=attributes, reset=False, labels=False)
        kept = self._deployment(queries, Admissible(admissible.k))  # of which no query has too few
        scores = np.asarray(self._scores(queries.features), dtype=np.float64)
        return swept(admissible, constraint, limits, queries, scores, kept.weights, side, kept.solver)

    def _judged(self, queries: Queries, constraints: Any, measure: Any, decay: Any, map: Any) -> RegretReport:
        """The queries with something to order, their argmax, and the regret of what is shown."""
        admissible = self._admissible(constraints)
        regret = self._regret(measure, decay, map)
        arranged = as_arranged(queries)
        scores = self._scores(queries.features)
        if admissible is None:
            return judged_rankings(arranged, scores, regret)
        w0 = getattr(self, "w0_", None)
        start = np.zeros(scores.size) if w0 is None else linear_scores(queries.features, w0)
        shown = self._deployment(queries, admissible)
        return judged_in_a_set(arranged, scores, regret.measure, regret.decay, admissible, shown, start)

    def _regret(self, measure: Any, decay: Any, map: Any) -> RegretBound:
        """What is asked for, or this ranker's own."""
        measure = self.measure if measure is None else measure
        decay = getattr(self, "decay", DECAY) if decay is None else decay
        return RegretBound.named(measure, getattr(self, "map", MAP) if map is None else map, "nonconvex", decay)

    def _trained_bound(self) -> Bound | None:
        """The bound of the regret that was trained, if one was."""
        bound = getattr(self, "bound", None)
        return None if bound is None else bound_named(bound)
