"""The rankings that are shown, by score or the best admissible ones; and their regret.

A bound holds for every ranking that maximizes the score, so it is compared with the regret of the worst of them: if
scores tie, the order that loses most; under constraints, the worst exchange of documents of equal score that these do
not distinguish.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.constraints.ranking_set import RankingSet
from formulations.display import CompactReprMixin
from formulations.solvers import get_solver
from formulations.solvers.solver import Solver
from formulations.solving.constrained_batch import SetBatch, solve_sets
from rankopt.constraints.admissible import Admissible, sets_of_queries
from rankopt.constraints.specs import GroupCapacities
from rankopt.data.canonical_order import Arrangement, fingerprints, labels, rows_of
from rankopt.data.queries import Queries
from rankopt.errors import DataError, OptionError
from rankopt.evaluation.evaluation import (
    DRAWS,
    Evaluation,
    Measures,
    descending_text,
    evaluate,
    evaluate_exchangeable,
    random_of,
    ties_broken,
)
from rankopt.losses.oracle import Criterion, MaxOracle
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.oracle_positional import with_distinct_grades
from rankopt.losses.position_weights import PositionWeights, parse_position_weights
from rankopt.losses.regret import RegretBound
from rankopt.measures.measure import Convention, PositionalMeasure, convention_named
from rankopt.measures.notation import parse

Weights = Callable[[int, int], Floats]
"""k, n → strictly decreasing positive weights (k,) of the positions of a list of k of n documents."""


def log_weights(k: int, n: int) -> Floats:
    """1 / log2(i + 1), i = 1 to k."""
    return np.asarray(1.0 / np.log2(np.arange(2.0, k + 2.0)))


def tie_order(queries: Queries, rows: NDArray[Any]) -> NDArray[Any]:
    """The order of these rows if their scores are equal, as a key that increases: by document id, descending as text,
    as in trec_eval; without ids by a hash of the features. Only rows of equal features may share a key."""
    if queries.document_ids is not None:
        return descending_text([str(queries.document_ids[row]) for row in rows.tolist()])
    return fingerprints(queries.features[rows])


FEW = 20  # random orders of tied documents, where a ranking takes more than one pass
APART, NOISE = (
    1e-3,
    1e-6,
)  # by how much ties are broken: parts of the least gap, and at least of the span, of the scores


@dataclass(frozen=True, eq=False)
class Deployment:
    """How the documents of each query are ranked for any scores: all of them by score, or the admissible ranking that
    maximizes Σ_i weights_i s_π(i), by one greedy pass where that finds it. Built once for the grouped queries.

    Nothing depends on the order of rows. Documents of equal score are in the order of `tie_order`. Under constraints
    `order` (N,) has the documents of each query by attributes and `tie_order`, as the sets know them; `kinds` (N,) are
    codes of what the constraints know of a document.
    """

    queries: Queries
    sets: tuple[GroupCapacities | RankingSet, ...] | None
    order: Ints
    kinds: Ints
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
        rows = np.arange(queries.n_documents)
        if admissible is None:
            return cls(queries, None, rows, rows)
        admissible.validate(queries.attributes)
        kinds = np.zeros(rows.size, dtype=np.int64)
        for name in sorted(admissible.attributes):
            _, own = np.unique(labels(queries.attributes[name]), return_inverse=True)
            _, kinds = np.unique(kinds * (own.max() + 1) + own, return_inverse=True)
        order = np.lexsort((tie_order(queries, rows), kinds, queries.query_of(rows)))
        order = order - np.repeat(queries.offsets[:-1], np.diff(queries.offsets))
        sets = sets_of_queries(admissible, queries, lambda rules, q: _set_of(queries, q, rules, order))
        return cls(queries, sets, order, kinds, weights, solver)

    def orders(self, scores: Floats) -> list[Ints]:
        """For each query its documents that are shown (counted within it), best first. DataError unless there is a
        score for each document."""
        if np.shape(scores) != (self.queries.offsets[-1],):
            raise DataError(
                f"documents cannot be ranked by scores of shape {np.shape(scores)} because there are "
                f"{self.queries.offsets[-1]}; give one score a document."
            )
        found, stated = [], self._stated(scores)
        for q, (start, stop) in enumerate(pairwise(self.queries.offsets.tolist())):
            own = scores[start:stop]
            if self.sets is None:
                order = np.argsort(-own, kind="stable")
                if (np.diff(own[order]) == 0).any():
                    order = np.lexsort((tie_order(self.queries, np.arange(start, stop)), -own))
                found.append(order)
                continue
            known, one = self.order[start:stop], self.sets[q]
            own = own[known]
            shown = one.order(own) if isinstance(one, GroupCapacities) else stated[q]
            found.append(known[_in_order(shown, own, self.kinds[start:stop][known])])
        return found

    def _stated(self, scores: Floats) -> dict[int, Ints]:
        """The documents shown for the queries whose sets are no `GroupCapacities`, as those sets know them."""
        queries = [q for q, one in enumerate(self.sets or ()) if not isinstance(one, GroupCapacities)]
        if not queries:
            return {}
        sets = [one for one in self.sets or () if isinstance(one, RankingSet)]
        own = [scores[a:b][self.order[a:b]] for a, b in self.queries.offsets[np.add.outer(queries, [0, 1])]]
        sizes, lengths = [part.size for part in own], [one.positions for one in sets]
        weights = np.concatenate([self.weights(k, n) for k, n in zip(lengths, sizes, strict=True)])
        ends, places = np.append(0, np.cumsum(sizes)), np.append(0, np.cumsum(lengths))
        batch = SetBatch(sets, np.concatenate(own), np.zeros(ends[-1]), np.zeros(places[-1]), weights, ends, places)
        return dict(zip(queries, np.split(solve_sets(batch, self.solver).order, places[1:-1]), strict=True))

    def evaluate(
        self,
        scores: Floats,
        measures: Measures,
        convention: str | Convention = "default",
        cut_to: Evaluation | None = None,
    ) -> Evaluation:
        """Evaluate the rankings of these scores (N,), averaged over the orders of documents of equal score: exactly
        where the constraints do not distinguish them, else over random orders; see `evaluate_exchangeable`. Lists end
        where those of the same query in `cut_to` end."""
        if self.sets is None and cut_to is None:
            return evaluate(self.queries, scores, measures, convention=convention)
        made = self.ranking_scores(scores, cut_to)
        averaged = self.sets is not None and convention_named(convention).ties == "average"
        redrawn = self._redrawn(scores, made, cut_to) if averaged else {}
        classes, free = self.classes(scores), None
        if redrawn:
            free = self._best_of(scores, made), replace(self, kinds=np.zeros_like(self.kinds)).classes(scores)
        return evaluate_exchangeable(self.queries, made, measures, classes, convention, redrawn, free)

    def _best_of(self, scores: Floats, made: Floats) -> Floats:
        """The scores (N,) of the best documents of each query, as many as in `made`; -inf for the others."""
        order = np.lexsort((-scores, self.queries.query_of(np.arange(scores.size))))
        starts = self.queries.offsets[:-1]
        place = np.arange(scores.size) - np.repeat(starts, np.diff(self.queries.offsets))
        shown = np.repeat(np.add.reduceat(made > -np.inf, starts, dtype=np.int64), np.diff(self.queries.offsets))
        best = np.full(scores.size, -np.inf)
        best[order] = np.where(place < shown, -place.astype(np.float64), -np.inf)
        return best

    def _redrawn(
        self, scores: Floats, made: Floats, cut_to: Evaluation | None
    ) -> dict[int, list[tuple[Floats, Floats]]]:
        """The best rankings under random orders of the documents of equal score, with the constraints and without, as
        `ranking_scores`, of each query in which the constraints distinguish such documents and one is shown."""
        assert self.sets is not None
        query = self.queries.query_of(np.arange(scores.size))
        _, level = np.unique(np.stack([query, scores]), axis=1, return_inverse=True)
        level = np.asarray(level.ravel())
        by_kind = np.lexsort((self.kinds, level))
        mixed = np.diff(self.kinds[by_kind], prepend=-1) * (np.diff(level[by_kind], prepend=-1) == 0) != 0
        decided = np.bincount(level[by_kind], mixed) * np.bincount(level, made > -np.inf) > 0
        chosen = np.unique(query[decided[level]])
        if not chosen.size:
            return {}
        rows = rows_of(self.queries.offsets, chosen)
        sets = tuple(self.sets[q] for q in chosen.tolist())
        part = replace(
            self, queries=self.queries.select(chosen), sets=sets, order=self.order[rows], kinds=self.kinds[rows]
        )
        count = DRAWS if all(isinstance(one, GroupCapacities) for one in sets) else FEW
        ends = part.queries.offsets[1:-1]
        prints = fingerprints(part.queries.features)
        keys = (part.kinds, np.asarray(part.queries.relevance), tie_order(part.queries, np.arange(rows.size)), prints)
        broken = []
        for own, kind, grade, key, content in zip(*(np.split(one, ends) for one in (scores[rows], *keys)), strict=True):
            random = random_of(np.sort(content), np.sort(grade))
            broken.append(ties_broken(own, np.lexsort((kind, grade, key)), random, count))
        drawn: list[list[tuple[Floats, Floats]]] = []
        for one in np.concatenate(broken, axis=1):
            shown = part.ranking_scores(one, cut_to)
            drawn.append([*zip(np.split(shown, ends), np.split(part._best_of(one, shown), ends), strict=True)])
        return {q: list(own) for q, own in zip(chosen.tolist(), zip(*drawn, strict=True), strict=True)}

    def classes(self, scores: Floats) -> Ints:
        """(N,) codes of documents of one query, of equal score, that the constraints do not distinguish."""
        _, level = np.unique(scores, return_inverse=True)
        _, codes = np.unique(
            np.stack([self.queries.query_of(np.arange(level.size)), level, self.kinds]), axis=1, return_inverse=True
        )
        return np.asarray(codes.ravel())

    def ranking_scores(self, scores: Floats, cut_to: Evaluation | None = None) -> Floats:
        """(N,) scores that make these rankings: -inf for documents that are not shown."""
        made = np.full(scores.size, -np.inf)
        offsets, known = self.queries.offsets, self.queries.query_ids
        lengths = np.diff(offsets) if cut_to is None else cut_to.for_queries(known).lengths
        for start, order, length in zip(offsets[:-1], self.orders(scores), lengths.tolist(), strict=True):
            shown = order[:length]
            made[start + shown] = np.arange(shown.size, 0, -1)
        return made

    def lengths(self) -> Ints:
        """(m,) the number of documents that are shown for each query."""
        sizes = np.diff(self.queries.offsets)
        if self.sets is None:
            return sizes
        return np.array(
            [
                one.order(np.zeros(n)).size if isinstance(one, GroupCapacities) else one.positions
                for one, n in zip(self.sets, sizes.tolist(), strict=True)
            ]
        )


def _in_order(shown: Ints, scores: Floats, kinds: Ints) -> Ints:
    """The documents shown, those of equal score and kind replaced by the first such documents in their order."""
    if np.unique(scores).size == scores.size:
        return shown
    places: dict[tuple[float, int], list[int]] = {}
    for place, document in enumerate(shown.tolist()):
        places.setdefault((float(scores[document]), int(kinds[document])), []).append(place)
    made = shown.copy()
    for (score, kind), own in places.items():
        made[own] = np.flatnonzero((scores == score) & (kinds == kind))[: len(own)]
    return made


def _set_of(queries: Queries, q: int, admissible: Admissible, order: Ints) -> GroupCapacities | RankingSet:
    """The set of one query, its documents in this order, as limits where one pass solves it."""
    start, stop = queries.offsets[q : q + 2].tolist()
    rows = start + order[start:stop]
    n, attributes = stop - start, {name: queries.attributes[name][rows] for name in admissible.attributes}
    caps = GroupCapacities.from_specs(admissible.specs, attributes, n, min(admissible.k, n))
    if caps is not None:
        length = caps.order(np.zeros(n)).size
        if length == caps.k or (length and admissible.on_infeasible == "truncate"):
            return caps
    columns = tuple((values.dtype.str, _as_key(values)) for values in attributes.values())
    try:
        return _cached_set(admissible, n, columns)
    except TypeError:  # an attribute of lists
        return admissible.for_query(attributes, n)


def _as_key(values: NDArray[Any]) -> Any:
    """The entries of an attribute as a hashable value, in which True is not 1."""
    return (tuple(values.tolist()), tuple(map(type, values.tolist()))) if values.dtype == object else values.tobytes()


@lru_cache(maxsize=16)
def _cached_set(admissible: Admissible, n: int, columns: tuple[tuple[str, Any], ...]) -> RankingSet:
    """The set of a query of n documents, for calls that rank the same documents again."""
    attributes = {}
    for name, (kind, values) in zip(admissible.attributes, columns, strict=True):
        if isinstance(values, bytes):
            attributes[name] = np.frombuffer(values, kind)
        else:
            attributes[name] = np.empty(n, dtype=object)
            attributes[name][:] = values[0]
    return admissible.for_query(attributes, n)


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
    worst, mean = _exchanged_gains(argmax.gain, shown.classes(scores)[chosen.rows], rows)
    earned = (np.add.reduceat(argmax.discount * gain, argmax.position_offsets[:-1]) for gain in (worst, mean))
    lost, expected = (np.maximum(argmax.best - value, 0.0) for value in earned)
    return RegretReport(chosen, own, argmax, lost, expected, str(parsed), str(weights))


def _exchanged_gains(gain: Floats, classes: Ints, rows: Ints) -> tuple[Floats, Floats]:
    """The gains at the positions of `rows`, the best position of each query first, after exchanges of documents of one
    class: the worst, and their mean."""
    _, code = np.unique(classes, return_inverse=True)
    rising, count = np.lexsort((gain, code)), np.bincount(code)
    first, shown = np.cumsum(count) - count, code[rows]
    order = np.argsort(shown, kind="stable")
    taken = np.empty(rows.size, dtype=np.int64)  # how many of its class are at better positions
    starts = np.searchsorted(shown[order], shown[order])
    taken[order] = np.arange(rows.size) - starts
    return gain[rising[first[shown] + taken]], (np.bincount(code, weights=gain) / count)[shown]


def _check_liked(argmax: AdmissibleArgmax, rows: Ints, scores: Floats, position_weights: PositionWeights) -> None:
    """Raise OptionError unless these rankings maximize c[π]ᵀs over the sets."""
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
