"""Validated grades by query, evaluation of one ranker, and intervals of a mean by Student's t or by the bootstrap.

    t          v̄ ± t s / √n, t the quantile of Student's distribution with n - 1 degrees of freedom
    bootstrap  quantiles of the means of n queries resampled with replacement; for differences of two rankers the
               resampling is paired

Source of the bootstrap: Sakai, Evaluating evaluation metrics based on the bootstrap, 2006.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.arrays import Bools, Floats, Ints, check_no_mask, each, generator
from formulations.display import Axes, CompactReprMixin, data_frame
from rankopt.data.queries import Queries
from rankopt.data.typing import Ids, Sizes, Values
from rankopt.data.validation import (
    as_offsets,
    check_same_index,
    codes_of_ids,
    codes_of_sizes,
    grouped,
    hashables,
    picked,
    without_query_column,
)
from rankopt.errors import DataError, MeasureError, MissingQueryIdsWarning, OptionError, TiedDocumentsWarning
from rankopt.evaluation.export import dots_of_means, latex_table
from rankopt.measures.measure import Convention, Measure, convention_named
from rankopt.measures.notation import linear_in_gains, parse
from rankopt.measures.tied_ranking import Pool, Ranking, query_of_row, ranked
from rankopt.options import COUNT, Interval, as_numbers, check, number

FEW = 300  # rows that one query may have before a missing query id is warned of


def warn_of_one_query(rows: int, stacklevel: int) -> None:
    """Warn if more than `FEW` rows are taken as one query."""
    if rows > FEW:
        warnings.warn(
            f"all {rows} rows are treated as one query because neither qid nor group was passed; pass qid= (an id a "
            f"row) or group= (sizes of consecutive queries), or group=[{rows}] if they are one",
            MissingQueryIdsWarning,
            stacklevel=stacklevel + 1,
        )


@dataclass(frozen=True, eq=False)
class JudgedQueries(CompactReprMixin):
    """Grades (N,) by query, query boundaries (m + 1,), query ids (m) and optional document ids (N). pool: judged and
    retrieved documents of a run with qrels. rows: the position of each document among the scores that are passed, the
    same if None."""

    relevance: Floats
    offsets: Ints
    query_ids: tuple[Hashable, ...]
    document_ids: tuple[Hashable, ...] | None = None
    pool: Pool | None = None
    rows: Ints | None = None
    has_gains: bool = False

    @classmethod
    def read(
        cls,
        judged: Any,
        offsets: ArrayLike | None = None,
        query_ids: Sequence[Hashable] | None = None,
        document_ids: Sequence[Hashable] | None = None,
        qid: Ids | None = None,
        group: Sizes | None = None,
    ) -> JudgedQueries:
        """Read an object with these four attributes (a `Queries`), or grades and keywords. Without qid, group and
        offsets all rows are one query. Raises DataError for shapes that disagree and for infinite grades."""
        pool, rows = getattr(judged, "pool", None), None
        if hasattr(judged, "relevance") and hasattr(judged, "offsets"):
            if any(one is not None for one in (offsets, query_ids, document_ids, qid, group)):
                raise DataError(f"A {type(judged).__name__} has its own queries and ids; omit the keywords.")
            rows = getattr(judged, "rows", None)
            if isinstance(judged, Queries):
                judged = judged.grouped()
            if judged.relevance is None:
                raise DataError(f"This {type(judged).__name__} cannot be evaluated: it has no relevance; add it.")
            relevance, offsets = judged.relevance, judged.offsets
            query_ids, document_ids = judged.query_ids, judged.document_ids
        else:
            relevance = judged
        grades = vector("relevance", relevance)
        if qid is not None or group is not None:
            if offsets is not None or query_ids is not None or (qid is not None and group is not None):
                raise DataError("qid, group and offsets are alternatives; pass one of them, query_ids with offsets.")
            codes, ids = codes_of_ids(qid, grades.size) if group is None else codes_of_sizes(group, grades.size)
            rows, offsets, present = grouped(codes)
            grades, query_ids = grades[rows], [ids[code] for code in present]
            if document_ids is not None and len(document_ids) == rows.size:
                document_ids = picked(document_ids, rows)
        if not np.all(np.isfinite(grades)):
            row = int(np.argmin(np.isfinite(grades)))
            raise DataError(f"relevance[{row}] cannot be {grades[row]}; grades are finite numbers.")
        bounds = as_offsets([0, len(grades)] if offsets is None else offsets, len(grades))
        names: tuple[Hashable, ...] = (
            tuple(range(len(bounds) - 1)) if query_ids is None else each("query_ids", query_ids, DataError)
        )
        documents = None if document_ids is None else each("document_ids", document_ids, DataError)
        for what, own, wanted in (("query_ids", names, len(bounds) - 1), ("document_ids", documents, len(grades))):
            if own is not None and len(own) != wanted:
                raise DataError(f"{what} has {len(own)} entries, but there are {wanted}; pass one each.")
        return cls(grades, bounds, names, documents, pool, rows, getattr(judged, "has_gains", False))

    def check_scores(self, scores: ArrayLike) -> Floats:
        """The scores (N,) as floats, by query. DataError for a wrong length or NaN."""
        values = vector("scores", scores)
        if len(values) != len(self.relevance):
            raise DataError(f"There are {len(values)} scores for {len(self.relevance)} documents; give one a document.")
        if np.any(np.isnan(values)):
            row = int(np.argmax(np.isnan(values)))
            raise DataError(f"scores[{row}] is NaN, which cannot be ordered; correct the ranker.")
        return values if self.rows is None else values[self.rows]

    def descending_ids(self) -> Ints:
        """The key (N,) that sorts by document id as text, descending."""
        if self.document_ids is None:
            raise DataError("Ties cannot be broken by document id because there are none; pass document_ids=.")
        return descending_text([str(name) for name in self.document_ids])


@dataclass(frozen=True)
class QueryScorer:
    """A scorer of scikit-learn: the mean of a measure over the queries that a column `qid` of X names."""

    measure: Measure

    def __call__(self, estimator: Any, X: Any, y: Values) -> float:
        _, _, ids = without_query_column(X)
        if ids is None:
            raise DataError(
                f"X has no column of query ids; got a {type(X).__name__}. Pass a data frame with the column qid, as in "
                "X.assign(qid=qid)."
            )
        return evaluate(y, estimator.predict(X), self.measure, qid=ids).mean()


def ndcg_scorer(k: int = 10) -> QueryScorer:
    """Return a scorer for `scoring=` of scikit-learn: nDCG@k over the queries of the column `qid` of X.

    Works in cross_val_score, GridSearchCV and permutation_importance. Split by queries:

        cross_val_score(ranker, X, y, scoring=ndcg_scorer(10), groups=X.qid, cv=GroupKFold(5))
    """
    return QueryScorer(parse("nDCG") @ k)


def descending_text(words: Sequence[str]) -> Ints:
    """A key (N,) that sorts words in descending order of code points (as in C)."""
    _, rank = np.unique(np.array(words, dtype=np.str_), return_inverse=True)
    return -rank.astype(np.int64)


def vector(what: str, values: ArrayLike) -> Floats:
    """The values as a vector of floats. DataError for other shapes, non-numbers and masked entries."""
    check_no_mask(what, values, DataError)
    try:
        result = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what} cannot be read as numbers: {error}.") from error
    if result.ndim != 1:
        raise DataError(f"{what} must be one number a document; it has the shape {result.shape}.")
    return result


class QueryIndexed(Protocol):
    """m queries and N documents with their ids; the documents of query q are rows offsets[q]:offsets[q + 1]."""

    @property
    def offsets(self) -> Any: ...

    @property
    def query_ids(self) -> Any: ...

    @property
    def document_ids(self) -> Any: ...


class Grouped(QueryIndexed, Protocol):
    """The same with grades (N,)."""

    @property
    def relevance(self) -> Any: ...


IntervalBy = Literal["t", "bootstrap"]


def check_interval(by: str, confidence: float, resamples: int) -> None:
    """Raise OptionError for invalid interval options."""
    if not isinstance(by, str) or by not in get_args(IntervalBy):
        raise OptionError(f"interval cannot be {by!r}; write 't' or 'bootstrap'.")
    if resamples not in COUNT or not 0 < number(confidence) < 1:
        raise OptionError(f"resamples={resamples} and confidence={confidence} must be >= 1 and between 0 and 1.")


def interval_of(
    values: Floats,
    by: IntervalBy = "t",
    confidence: float = 0.95,
    resamples: int = 10_000,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[float, float]:
    """Interval of the mean of values (n,) without NaN; NaN if n < 2."""
    if len(values) < 2:
        return (np.nan, np.nan)
    if by == "bootstrap":
        return _bootstrap(values, confidence, resamples, generator("random_state", random_state))
    from scipy.special import stdtrit

    mean, error = float(values.mean()), float(values.std(ddof=1)) / np.sqrt(len(values))
    half = float(stdtrit(len(values) - 1, 0.5 + confidence / 2) * error) if error else 0.0
    return mean - half, mean + half


def _bootstrap(values: Floats, confidence: float, resamples: int, random: np.random.Generator) -> tuple[float, float]:
    n, means, left = len(values), [], resamples
    while left:
        rows = min(left, max(1, 2**20 // n))
        means.append(values[random.integers(0, n, size=(rows, n))].mean(axis=1))
        left -= rows
    low, high = np.quantile(np.concatenate(means), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(CompactReprMixin):
    """Result of `evaluate`: M measures of m queries under one convention.

    values      (M, m); NaN if the query is excluded from the mean
    tied        (M,) number of queries whose value depends on the order of documents of equal score
    defined     (M, m) whether the query has what the measure needs, a relevant document; the convention sets the others
    lengths     (m,) number of documents in each list
    query_ids   m ids
    has_gains   whether documents have gains in place of grades

    `evaluation[measure]` returns the values (m,) of one measure; printing shows a table.
    """

    measures: tuple[Measure, ...]
    values: Floats
    tied: Ints
    query_ids: tuple[Hashable, ...]
    convention: Convention
    defined: Bools
    lengths: Ints
    has_gains: bool = False

    def __getitem__(self, measure: str | Measure) -> Floats:
        return self.per_query(measure)

    def per_query(self, measure: str | Measure | None = None) -> Floats:
        """The values (m,) of one measure; the argument is optional if there is only one."""
        return np.asarray(self.values[self._row(measure)])

    def get_name(self, measure: str | Measure | None = None) -> str:
        """The notation of the measure."""
        return repr(self.measures[self._row(measure)])

    def __len__(self) -> int:
        return len(self.query_ids)

    def mean(self, measure: str | Measure | None = None, weights: ArrayLike | None = None) -> float:
        """The mean over the queries that count, weighted by optional weights (m,)."""
        values = self.per_query(measure)
        counted = ~np.isnan(values)
        shares = np.ones(len(values)) if weights is None else as_numbers("weights", weights)
        if shares.shape != values.shape:
            raise DataError(f"There are {len(values)} queries, but the weights have shape {shares.shape}; one a query.")
        return float(np.average(values[counted], weights=shares[counted]))

    def n_evaluated(self, measure: str | Measure | None = None) -> int:
        """The number of queries in the mean."""
        return int(np.count_nonzero(~np.isnan(self.per_query(measure))))

    def interval(
        self, measure: str | Measure | None = None, *, by: IntervalBy = "t", confidence: float = 0.95,
        resamples: int = 10_000, random_state: int | np.random.Generator | None = 0,
    ) -> tuple[float, float]:  # fmt: skip
        """Interval of the mean by Student's "t" or "bootstrap"; NaN for fewer than two queries."""
        check_interval(by, confidence, resamples)
        values = self.per_query(measure)
        return interval_of(values[~np.isnan(values)], by, confidence, resamples, random_state)

    def for_queries(self, query_ids: Iterable[Hashable]) -> Evaluation:
        """Restrict to these queries, in this order. `tied` is then unknown: -1."""
        row = {query: index for index, query in enumerate(self.query_ids)}
        chosen = hashables("query_ids", query_ids)
        missing = [query for query in chosen if query not in row]
        if missing:
            raise DataError(f"Query {missing[0]!r} was not evaluated; there are {len(self)} others.")
        columns = [row[query] for query in chosen]
        values = self.values[:, columns]
        values.setflags(write=False)
        tied, defined, lengths = np.full(len(self.measures), -1), self.defined[:, columns], self.lengths[columns]
        return replace(self, values=values, tied=tied, defined=defined, lengths=lengths, query_ids=chosen)

    def select(self, measures: Iterable[str | Measure]) -> Evaluation:
        """Restrict to these measures, in this order."""
        rows = [self._row(measure) for measure in each("measures", measures, DataError)]
        values = self.values[rows]
        values.setflags(write=False)
        chosen = tuple(self.measures[row] for row in rows)
        return replace(self, measures=chosen, values=values, tied=self.tied[rows], defined=self.defined[rows])

    def to_frame(self) -> Any:
        """The values as a pandas data frame, one row per query and one column per measure; NaN if not counted."""
        columns = {repr(measure): self.values[row] for row, measure in enumerate(self.measures)}
        records = [{name: values[q] for name, values in columns.items()} for q in range(len(self))]
        return data_frame(records, list(self.query_ids))

    def to_latex(self, digits: int = 4) -> str:
        """Means, their 95% t intervals and counts as a LaTeX table (booktabs)."""
        check("digits", digits, (Interval(0, 100, "both", integer=True),))
        rows = []
        for measure in self.measures:
            low, high = self.interval(measure)
            spread = f"[{low:.{digits}f}, {high:.{digits}f}]" if low == low else "-"
            rows.append([repr(measure), f"{self.mean(measure):.{digits}f}", spread, str(self.n_evaluated(measure))])
        head = ["measure", "mean", "interval", "queries"]
        return latex_table(head, rows, f"convention {self.convention.name}; 95% intervals of the mean by t")

    def plot(self, axes: Axes | None = None) -> Axes:
        """Plot the means with their 95% t intervals."""
        means = np.array([self.mean(measure) for measure in self.measures])
        reach = np.array([self.interval(measure) for measure in self.measures]).reshape(-1, 2)
        names = [repr(measure) for measure in self.measures]
        return dots_of_means(names, {"": (means, reach)}, "mean, 95% t interval", axes)

    def as_dict(self) -> dict[str, Any]:
        """Means, counts and ties by measure, as plain data."""
        return {
            "convention": self.convention.name,
            "queries": len(self),
            "measures": {
                repr(measure): {
                    "mean": self.mean(measure), "queries": self.n_evaluated(measure), "tied": int(tied),
                    "undefined": int(np.count_nonzero(~defined)),
                }
                for measure, tied, defined in zip(self.measures, self.tied, self.defined, strict=True)
            },
        }  # fmt: skip

    @property
    def notes(self) -> list[str]:
        """A line for the queries on which measures are undefined: their number, and how they count."""
        missing = np.count_nonzero(~self.defined, axis=1)
        rule, lines = self.convention.no_relevant, []
        for count in sorted({*missing.tolist()} - {0}):
            names = [repr(one) for one, own in zip(self.measures, missing, strict=True) if own == count]
            which = "" if len(names) == len(self.measures) else f"{', '.join(names)}: "
            lacking = (
                "relevant document, or no other," if any(name[:3] == "AUC" for name in names) else "relevant document"
            )
            fate = "left out" if rule == "skip" else f"counted {rule:g}"
            lines.append(f"{which}no {lacking} in {count} of {len(self)} queries: {fate}")
        return lines

    def __str__(self) -> str:
        names = [repr(measure) for measure in self.measures]
        width = max(map(len, names), default=0)
        lines = [f"{'measure':{width}}     mean  queries  tied    (convention {self.convention.name})"]
        for measure, name, tied in zip(self.measures, names, self.tied, strict=True):
            lines.append(f"{name:{max(width, 7)}}  {self.mean(measure):7.4f}  {self.n_evaluated(measure):7}  {tied:4}")
        return "\n".join([*lines, *self.notes])

    def _row(self, measure: str | Measure | None) -> int:
        names = ", ".join(map(repr, self.measures))
        if measure is None:
            if len(self.measures) != 1:
                raise MeasureError(f"Several measures were evaluated; name one of {names}.")
            return 0
        wanted = (linear_in_gains if self.has_gains else parse)(measure)
        if wanted not in self.measures:
            raise MeasureError(f"{wanted} was not evaluated; there are {names}.")
        return self.measures.index(wanted)


def evaluate(
    judged: Grouped | Values,
    scores: Values,
    measures: Measures,
    *,
    convention: str | Convention = "default",
    qid: Ids | None = None,
    group: Sizes | None = None,
    offsets: Values | None = None,
    query_ids: Sequence[Hashable] | None = None,
    document_ids: Sequence[Hashable] | None = None,
) -> Evaluation:
    """Evaluate the rankings by decreasing scores (N,), one a row of `judged` in the same order.

    judged: a `Queries` (or what `join` returns), or the grades (N,) of the documents.
    qid, group: for grades, the query of each row, in any order, or the sizes of consecutive queries; `offsets`
    (m + 1,) and query_ids say the same of grouped rows. With none of them all rows are one query, with a
    MissingQueryIdsWarning above 300 rows.
    measures: one measure or several, as text or values. convention: a name in `conventions`, or a `Convention`.

    Raises DataError for inconsistent arrays, MeasureError if a measure is undefined on all queries.
    """
    rules = convention_named(convention)
    check_same_index(judged=judged, scores=scores, qid=qid)
    documents = JudgedQueries.read(judged, offsets, query_ids, document_ids, qid, group)
    if not hasattr(judged, "offsets") and qid is None and group is None and offsets is None:
        warn_of_one_query(int(documents.offsets[-1]), stacklevel=2)
    return _evaluated(documents, documents.check_scores(scores), measures, rules)


Measures = str | Measure | Iterable[str | Measure]

DRAWS = 100
"""Random orders of documents of equal score over which a measure is averaged where that has no formula."""


def evaluate_exchangeable(
    queries: Grouped, scores: Floats, measures: Measures, classes: Ints, convention: str | Convention = "default",
    redrawn: Mapping[int, Sequence[tuple[Floats, Floats]]] | None = None, free: tuple[Floats, Ints] | None = None,
) -> Evaluation:  # fmt: skip
    """`evaluate` of grouped rows, averaged over all exchanges of documents of one class; classes: codes (N,). Documents
    of score -inf are not retrieved. A convention that breaks ties evaluates the order of the scores instead.

    redrawn: query -> its scores under random orders of tied documents, with the constraints and without. free: without
    constraints the scores (N,), and codes of documents of equal score. The value of these queries is the exact mean
    without constraints plus the mean difference, which is 0 where no constraint binds.

    Exact for measures that are linear in the gains, of queries not redrawn. For others the mean over `DRAWS` random
    exchanges, seeded by the content of the query, with a TiedDocumentsWarning that gives its standard error.
    """
    documents, rules = _retrieved(JudgedQueries.read(queries), scores), convention_named(convention)
    if rules.ties != "average":
        return _evaluated(documents, scores, measures, rules)
    found, redrawn = _evaluated(documents, scores, measures, rules, classes), redrawn or {}
    worst, best = (
        _evaluated(_retrieved(documents, one), one, measures, rules).values
        for one in _extremes(documents.relevance, scores, classes)
    )
    tied = np.abs(best - worst) > 1e-12 * np.abs(best)
    linear = np.array([one.averages_exchanges for one in found.measures])
    drawn = (tied & ~linear[:, None]) | np.isin(np.arange(len(found)), list(redrawn))
    drawn &= found.defined
    rows, affected = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    values = found.values.copy()
    if affected.size:
        parts = [slice(*documents.offsets[q : q + 2].tolist()) for q in affected]
        streams = [
            redrawn[q]
            if q in redrawn
            else ((one, one) for one in _exchanges(documents.relevance[part], scores[part], classes[part]))
            for q, part in zip(affected.tolist(), parts, strict=True)
        ]
        ends = np.cumsum([0, *(part.stop - part.start for part in parts)])
        own = JudgedQueries(
            np.concatenate([documents.relevance[part] for part in parts]), ends, tuple(affected.tolist()),
            has_gains=documents.has_gains,
        )  # fmt: skip
        _, among = np.unique(np.concatenate([classes[part] for part in parts]), return_inverse=True)
        wanted = [found.measures[row] for row in rows]
        pairs = [[np.concatenate(side) for side in zip(*pair, strict=True)] for pair in zip(*streams, strict=False)]
        draws, alone = (
            np.array(
                [_evaluated(_retrieved(own, pair[side]), pair[side], wanted, rules, among).values for pair in pairs]
            )
            for side in (0, 1)
        )
        cells = np.ix_(rows, affected)
        if free is not None:
            exact = _evaluated(_retrieved(documents, free[0]), free[0], wanted, rules, free[1]).values[:, affected]
            sizes = [np.add.reduceat(pair[0] > -np.inf, ends[:-1], dtype=np.int64) for pair in pairs]
            comparable = linear[rows][:, None] & np.isin(affected, list(redrawn)) & (np.ptp(sizes, axis=0) == 0)
            draws = np.where(comparable, exact + (draws - alone), draws)
        values[cells] = np.where(drawn[cells], draws.mean(axis=0), values[cells])
        chosen = drawn[cells] & (np.ptp(draws, axis=0) > 1e-12 * np.abs(draws).max(axis=0))
        tied[cells] |= chosen | (drawn[cells] & (np.ptp(alone, axis=0) > 1e-12))
        if chosen.any():
            errors = np.sqrt(np.where(chosen, draws.var(axis=0, ddof=1), 0.0).sum(axis=1) / len(draws)) / len(found)
            others = "" if redrawn else " A measure like nDCG@10 is averaged exactly."
            names = ", ".join(repr(wanted[row]) for row in np.flatnonzero(chosen.any(axis=1)))
            warnings.warn(
                f"documents of equal score are tied in {chosen.any(axis=0).sum()} of {len(found)} queries: {names} "
                f"is the mean over {len(draws)} random orders, with a standard error of {errors.max():.2g}.{others}",
                TiedDocumentsWarning,
                stacklevel=3,
            )
    counts = tied.sum(axis=1)
    for array in (values, counts):
        array.setflags(write=False)
    return replace(found, values=values, tied=counts)


def _retrieved(documents: JudgedQueries, scores: Floats) -> JudgedQueries:
    """The documents, of which those of score -inf are not retrieved."""
    judged = np.ones(scores.size, dtype=np.bool_)
    return replace(documents, pool=Pool(judged, judged, scores > -np.inf))


def _extremes(relevance: Floats, scores: Floats, classes: Ints) -> Iterator[Floats]:
    """The scores with the documents of each class in their worst and in their best order."""
    slots = scores[np.lexsort((-scores, classes))]
    for grades in (relevance, -relevance):
        made = np.empty_like(scores)
        made[np.lexsort((grades, classes))] = slots
        yield made


def _exchanges(relevance: Floats, scores: Floats, classes: Ints) -> Iterator[Floats]:
    """`DRAWS` times the scores of one query, randomly exchanged inside classes; row order has no effect."""
    by_score, by_grade = np.lexsort((-scores, classes)), np.lexsort((relevance, classes))
    random = random_of(scores[by_score], relevance[by_grade])
    ends = np.flatnonzero(np.diff(classes[by_score])) + 1
    slots, members = np.split(scores[by_score], ends), np.split(by_grade, ends)
    for _ in range(DRAWS):
        made = scores.copy()
        for rows, slot in zip(members, slots, strict=True):
            made[rows] = random.permutation(slot) if slot.size > 1 else slot
        yield made


APART = 1e-3  # ties are broken by less than this part of the least gap of the scores


def ties_broken(scores: Floats, order: Ints, random: np.random.Generator, count: int) -> Floats:
    """(count, n) the scores with equal ones in random orders. order: in which documents get random numbers; if it and
    the generator do not depend on the scores, neither do the orders of those that tie."""
    values, level, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    step = APART * np.diff(values).min(initial=np.abs(values).max() or 1.0)
    noise = np.empty((count, scores.size))
    noise[:, order] = random.random(noise.shape)
    return np.asarray(scores + np.where(sizes[level] > 1, step * noise, 0.0))


def random_of(*content: NDArray[Any]) -> np.random.Generator:
    """A generator seeded by the content of a query."""
    text = b"".join(part.tobytes() for part in content)
    return np.random.default_rng(int.from_bytes(blake2b(text, digest_size=8).digest(), "little"))


def _evaluated(
    documents: JudgedQueries, values: Floats, measures: Measures, rules: Convention, classes: Ints | None = None
) -> Evaluation:
    several = isinstance(measures, Iterable) and not isinstance(measures, str)
    wanted = each("measures", measures, OptionError) if several else (measures,)
    parsed = tuple((linear_in_gains if documents.has_gains else parse)(measure) for measure in wanted)
    settled = [measure.with_convention(rules) for measure in parsed]
    ranking = _ranking(documents, values, rules, classes)
    shape = len(parsed), len(documents.query_ids)
    table = np.array([_values(measure, ranking, rules) for measure in settled]).reshape(shape)
    by_score = ranking if rules.ties == "average" else _ranking(documents, values, replace(rules, ties="average"))
    tied = _tied(settled, by_score, rules)
    defined = np.array([measure.defined(ranking.relevance, ranking.offsets) for measure in settled], dtype=np.bool_)
    defined = defined.reshape(shape)
    shown = np.ones(values.size) if documents.pool is None else documents.pool.retrieved
    lengths = np.bincount(query_of_row(documents.offsets), shown, shape[1]).astype(np.int64)
    for array in (table, tied, defined, lengths):
        array.setflags(write=False)
    return Evaluation(parsed, table, tied, documents.query_ids, rules, defined, lengths, documents.has_gains)


def _ranking(documents: JudgedQueries, scores: Floats, rules: Convention, classes: Ints | None = None) -> Ranking:
    if rules.float32:
        with np.errstate(over="ignore"):
            scores = scores.astype(np.float32).astype(np.float64)
    if rules.ties in ("average", "worst"):
        ranking = ranked(documents.relevance, scores, documents.offsets, None, documents.pool, classes)
        return ranking.break_ties("worst") if rules.ties == "worst" else ranking
    key = np.arange(len(scores)) if rules.ties == "input" else documents.descending_ids()
    return ranked(documents.relevance, scores, documents.offsets, key, documents.pool)


def _values(measure: Measure, ranking: Ranking, rules: Convention) -> Floats:
    """The value (m,) of each query; the convention sets undefined and short ones."""
    values = np.minimum(measure.values(ranking), measure.max_value)
    defined = measure.defined(ranking.relevance, ranking.offsets)
    if rules.no_relevant == "skip" and not np.any(defined):
        raise MeasureError(
            f"{measure} has no value on any of the {len(defined)} queries because none has what it needs (relevant "
            "documents; for AUC others too); check the grades, or count such queries as 0: Convention(no_relevant=0.0)."
        )
    values = np.where(defined, values, np.nan if rules.no_relevant == "skip" else rules.no_relevant)
    if measure.cutoff is not None and rules.fewer_than_k in measure.zero_if_short:
        values[np.diff(ranking.offsets) < measure.cutoff] = 0.0
    return values


def _tied(measures: Sequence[Measure], ranking: Ranking, rules: Convention) -> Ints:
    """The number of queries whose value differs between best and worst tie breaking."""
    if not ranking.mixed:
        return np.zeros(len(measures), dtype=np.int64)
    counts = []
    for measure in measures:
        best = _values(measure, ranking.break_ties("best"), rules)
        worst = _values(measure, ranking.break_ties("worst"), rules)
        counts.append(np.count_nonzero(np.abs(best - worst) > 1e-12 * np.abs(best)))
    return np.array(counts, dtype=np.int64)
