"""Paired significance tests of two rankers over queries.

With d_q = a_q - b_q on n queries:

    randomization   p = share of sign vectors ε in {-1, 1}^n with |Σ ε_q d_q| >= |Σ d_q|: under the null hypothesis a
                    and b are exchangeable on each query. All vectors if they are few, else a sample and the identity
    t               d̄ / (s / √n) against Student's t with n - 1 degrees of freedom; the interval is d̄ ± t s / √n
    wilcoxon        signed ranks of d_q, see `signed_rank_p`; intervals by the bootstrap, see `intervals`

Source: Smucker, Allan and Carterette, A comparison of statistical significance tests for information retrieval
evaluation, 2007.

Wilcoxon's signed-rank test of whether the differences are symmetric around zero:

    W = Σ_q [d_q > 0] rank |d_q|          queries with d_q = 0 excluded, equal |d_q| share their mean rank

Under the null hypothesis all signs are equally likely. Up to 200 queries the distribution of W is exact, with ties;
beyond that it is normal with mean Σ rank / 2 and variance Σ rank² / 4. p is twice the smaller tail.

Source: Wilcoxon, Individual comparisons by ranking methods, 1945; [ORM, section 6.1] on sums of nDCG@1 to 10.

`leader` compares the ranker of the largest mean with each other one by the randomization test; Holm's p >= 0.05 is a
tie. The leader is selected on the same queries, so p is biased in its favor, and ties are reported conservatively.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, generator
from formulations.display import Axes, CompactReprMixin, data_frame
from rankopt.data.typing import Ids, Sizes, Values
from rankopt.errors import DataError, ListLengthWarning, MeasureError, MissingQueryIdsWarning, OptionError
from rankopt.evaluation.evaluation import (
    FEW,
    Evaluation,
    Grouped,
    IntervalBy,
    check_interval,
    evaluate,
    interval_of,
    vector,
)
from rankopt.evaluation.export import Column, bars_of_differences, latex_table
from rankopt.measures.measure import Measure

COUNTED = 200
EXACT = 16  # differences of which all sign vectors are taken


def signed_rank_p(differences: Floats) -> float:
    """Two-sided Wilcoxon p value of differences (n,); 1 if all are zero."""
    d = differences[differences != 0]
    if len(d) == 0:
        return 1.0
    _, group, counts = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(counts) - counts + 1)[group]  # twice the mean rank, an integer
    w, total = int(doubled[d > 0].sum()), int(doubled.sum())
    if len(d) > COUNTED:
        from scipy.special import ndtr

        return float(2 * ndtr(-abs(w - total / 2) / np.sqrt(np.sum(doubled.astype(np.float64) ** 2) / 4)))
    chances, reach = np.zeros(total + 1), 0
    chances[0] = 1.0
    for rank in doubled.tolist():
        chances[: reach + 1] /= 2
        chances[rank : rank + reach + 1] += chances[: reach + 1].copy()
        reach += rank
    lesser = min(chances[: w + 1].sum(), chances[w:].sum())
    return float(min(1.0, 2 * lesser))


Test = Literal["randomization", "t", "wilcoxon"]
Measured = str | Measure | Sequence[str | Measure]  # A measure, or several whose values are added query by query

TEST_NAMES = {"randomization": "randomization", "t": "the t test", "wilcoxon": "Wilcoxon's signed ranks"}


@dataclass(frozen=True)
class Comparison(CompactReprMixin):
    """Comparison of two rankers on the same queries by one measure.

    difference      mean_a - mean_b, with its `interval` at level `confidence`, by "t" or "bootstrap"
    p_randomization, p_t, p_wilcoxon   two-sided p values; from `n_permutations` sign vectors, all of them if `exact`
    p               p value of the selected `test`
    wins, ties, losses     queries on which a is better, equal to 1e-12, worse
    differences     (n,) per query
    notes           `Evaluation.notes`: queries without relevant documents, and how they count
    unit            what is compared, "queries", or "users" of `evaluate_ratings`
    """

    measure: str
    queries: int
    mean_a: float
    mean_b: float
    difference: float
    interval: tuple[float, float]
    confidence: float
    p_randomization: float
    n_permutations: int
    exact: bool
    p_t: float
    wins: int
    ties: int
    losses: int
    p_wilcoxon: float
    test: Test = "randomization"
    interval_method: IntervalBy = "t"
    differences: Floats = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    unit: str = field(default="queries", repr=False, compare=False)

    @property
    def p(self) -> float:
        """The p value of the selected test."""
        return float(getattr(self, f"p_{self.test}"))

    def as_dict(self) -> dict[str, Any]:
        """All fields except the differences and notes, as plain data."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.compare} | {"p": self.p}

    def to_frame(self) -> Any:
        """One row of a pandas data frame."""
        record = self.as_dict()
        low, high = record.pop("interval")
        return data_frame([record | {"low": low, "high": high}])

    def to_latex(self, digits: int = 4) -> str:
        """The comparison as a LaTeX table of one row (booktabs)."""
        low, high = self.interval
        columns = [Column("difference", math=True), Column("interval", math=True)]
        head: list[str | Column] = ["measure", "a", "b", *columns, "p"]
        row = [
            self.measure, f"{self.mean_a:.{digits}f}", f"{self.mean_b:.{digits}f}", f"{self.difference:+.{digits}f}",
            f"[{low:+.{digits}f}, {high:+.{digits}f}]", f"{self.p:.{digits}f}",
        ]  # fmt: skip
        by = "the bootstrap" if self.interval_method == "bootstrap" else "t"
        note = f"{self.queries} {self.unit}; {self.confidence:.0%} interval by {by}, p by {TEST_NAMES[self.test]}"
        return latex_table(head, [row], note)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Plot the differences of all queries, the largest first, and the interval of their mean."""
        return bars_of_differences(self.differences, self.difference, self.interval, self.measure, axes)

    def __str__(self) -> str:
        low, high = self.interval
        also = f", {self.p_wilcoxon:.4f} by Wilcoxon's signed ranks" if self.test == "wilcoxon" else ""
        by = " by the bootstrap" if self.interval_method == "bootstrap" else ""
        ways = f"{'all' if self.exact else 'random'} {self.n_permutations} ways to swap the two on some {self.unit}"
        ways = ways if self.ties < self.queries else "all are equal"
        return (
            f"{self.measure} on {self.queries} {self.unit}: {self.mean_a:.4f} against {self.mean_b:.4f}\n"
            f"difference  {self.difference:+.4f}, {self.confidence:.0%} interval{by} {low:+.4f} to {high:+.4f}\n"
            f"p           {self.p_randomization:.4f} by randomization ({ways}), {self.p_t:.4f} by the t test{also}\n"
            f"{self.unit:<10}  {self.wins} better, {self.ties} equal, {self.losses} worse"
            + "".join(f"\n{note}" for note in self.notes)
        )


def compare(
    run_a: Evaluation | ArrayLike | Any,
    run_b: Evaluation | ArrayLike | Any,
    *,
    relevance: Grouped | Values | None = None,
    qid: Ids | None = None,
    group: Sizes | None = None,
    measure: Measured | None = None,
    test: Test = "randomization",
    interval: IntervalBy = "t",
    resamples: int = 10_000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> Comparison:
    """Compare two evaluations, two arrays (m,) of values in the same order of queries, or two arrays of scores.

    relevance: a `Queries`, or the grades (N,) of documents with qid or group as in `evaluate`; run_a and run_b are then
    the scores (N,) of two rankers in the same order, and measure is needed. Without it, arrays of more than 300 numbers
    raise a MissingQueryIdsWarning, because they may be scores.
    measure: the measure, if the evaluations have several; the values of a list are added query by query, as in
    compare(a, b, measure=[f"nDCG@{k}" for k in range(1, 11)], test="wilcoxon") of [ORM, section 6.1]. Two results of
    `rankopt.ratings.evaluate_ratings` are paired by user, the utilities of two of `evaluate_exposure` by query.
    test: the test of `p`, "randomization", "t" or "wilcoxon". interval: "t", or paired "bootstrap" of `resamples`.
    Queries that neither mean counts are excluded. A ListLengthWarning is raised if most lists of one run are cut where
    those of the other go on, and the measure counts what follows.
    Raises DataError if queries or conventions differ, or if fewer than two queries count.
    """
    check_interval(interval, confidence, resamples)
    if not isinstance(test, str) or test not in get_args(Test):
        raise OptionError(f"test cannot be {test!r}; write {', '.join(map(repr, get_args(Test)))}.")
    several = _several(measure)
    if relevance is not None:
        if measure is None or isinstance(run_a, Evaluation) or isinstance(run_b, Evaluation):
            raise DataError("relevance= needs two arrays of scores and measure=; omit it to compare evaluations.")
        scores = (vector("run_a", run_a), vector("run_b", run_b))
        run_a, run_b = (evaluate(relevance, one, several, qid=qid, group=group) for one in scores)
    elif qid is not None or group is not None:
        raise DataError("qid and group are of scores, which need grades; pass relevance=, or leave both out.")
    a, b, name = _pair_values(run_a, run_b, measure)
    if _ids_and_values(run_a) is None and len(a) > FEW:
        warnings.warn(
            f"{len(a)} numbers are compared as the values of as many queries; if they are scores of documents, "
            "pass relevance=, qid= (or group=) and measure=",
            MissingQueryIdsWarning,
            stacklevel=2,
        )
    notes: tuple[str, ...] = ()
    if isinstance(run_a, Evaluation) and isinstance(run_b, Evaluation):
        chosen = [run_a.measures[run_a._row(one)] for one in several]
        _warn_of_lengths(run_a, run_b.for_queries(run_a.query_ids), chosen)
        notes = tuple(run_a.select(chosen).notes)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        query = int(np.argmax(np.isnan(a) != np.isnan(b)))
        raise DataError(f"Query {query} (from 0) counts in one run only; evaluate both with the same grades.")
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    n = len(a)
    if n < 2:
        cure = "evaluate more queries" if relevance is None or qid is not None else "pass the query of each row, qid="
        raise DataError(f"{n} queries cannot be tested because a spread needs two; {cure}.")
    with np.errstate(over="ignore"):
        d = a - b
    if not np.isfinite(d).all():
        raise DataError(f"values must be finite, and so must differences; got {a[np.argmin(np.isfinite(d))]:g}.")
    level = 1e-12 * np.maximum(np.abs(a), np.abs(b))
    d[np.abs(d) <= level] = 0.0
    d.setflags(write=False)
    p_flips, flips, exact = _randomization(d, resamples, generator("random_state", random_state))
    return Comparison(
        measure=name,
        queries=n,
        mean_a=float(a.mean()),
        mean_b=float(b.mean()),
        difference=float(d.mean()),
        interval=interval_of(d, interval, confidence, resamples, random_state),
        confidence=confidence,
        p_randomization=p_flips,
        n_permutations=flips,
        exact=exact,
        p_t=_student(d),
        wins=int(np.count_nonzero(d > 0)),
        ties=int(np.count_nonzero(d == 0)),
        losses=int(np.count_nonzero(d < 0)),
        p_wilcoxon=signed_rank_p(d),
        test=test,
        interval_method=interval,
        differences=d,
        notes=notes,
        unit="users" if hasattr(run_a, "protocol") else "queries",
    )


def holm(p_values: Sequence[float]) -> Floats:
    """Holm-adjusted p values (c,) of c comparisons.

    Step-down: the i-th smallest times (c + 1 - i), never below a smaller one, at most 1.
    """
    p = vector("p_values", p_values)
    order = np.argsort(p, kind="stable")
    adjusted = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    result = np.empty_like(p)
    result[order] = adjusted
    return result


def _several(measure: Measured | None) -> list[Any]:
    return list(measure) if isinstance(measure, Sequence) and not isinstance(measure, str) else [measure]


def _pair_values(run_a: Any, run_b: Any, measure: Measured | None) -> tuple[Floats, Floats, str]:
    """Values of both runs in the order of queries or users of the first, and the name of the measure."""
    kind = _ids_and_values(run_a)
    if kind is None or kind != _ids_and_values(run_b):
        named = " and ".join(type(run).__name__ for run in (run_a, run_b))
        unlike = f"compare takes two results of `evaluate`, or two arrays with one value a query; got {named}"
        if kind or _ids_and_values(run_b):
            raise DataError(f"{unlike}; pass two of one kind.")
        try:
            a, b = vector("run_a", run_a), vector("run_b", run_b)
        except (DataError, MeasureError) as error:
            raise DataError(f"{unlike}: {error}") from error
        if len(a) != len(b):
            raise DataError(f"Runs of {len(a)} and {len(b)} queries cannot be paired; pass values of the same queries.")
        return a.copy(), b.copy(), "measure" if measure is None else str(measure)
    if isinstance(run_a, Evaluation) and run_a.convention != run_b.convention:
        raise DataError(
            f"Runs under {run_a.convention.name} and {run_b.convention.name} cannot be compared; use one convention."
        )
    for what in ("measure", "protocol"):
        one, other = (re.sub("; plus [^;]*", "", str(getattr(run, what, ""))) for run in (run_a, run_b))
        if one != other:
            raise DataError(f"The runs cannot be paired: their {what}s differ, ({one}) and ({other}); use the same.")
    ids, values = kind
    row_b = {one: row for row, one in enumerate(getattr(run_b, ids))}
    alone = row_b.keys() ^ set(getattr(run_a, ids))
    if alone:
        some = ", ".join(repr(one) for one in sorted(alone, key=repr)[:3])
        what = f"their users differ, {len(alone)} users" if ids == "users" else f"{len(alone)} queries"
        raise DataError(f"The runs cannot be paired: {what} are in one only ({some}); use the same.")
    rows, summed = [row_b[one] for one in getattr(run_a, ids)], _several(measure)
    if not isinstance(run_a, Evaluation):
        return getattr(run_a, values).copy(), getattr(run_b, values)[rows], str(run_a.measure)
    if not summed:
        raise DataError("measure is an empty list; name one or several measures.")
    a = np.sum([run_a.per_query(one) for one in summed], axis=0)
    b = np.sum([run_b.per_query(one)[rows] for one in summed], axis=0)
    return a, b, " + ".join(run_a.get_name(one) for one in summed)


def _ids_and_values(run: Any) -> tuple[str, str] | None:
    """The attributes with the ids and the values of an evaluation of scores, ratings or a policy; None of an array."""
    if isinstance(run, Evaluation):
        return "query_ids", "values"
    if hasattr(run, "protocol"):
        return "users", "values"
    return ("queries", "utility") if hasattr(run, "utility") else None


def _warn_of_lengths(a: Evaluation, b: Evaluation, measures: Sequence[Measure]) -> None:
    """Warn if most lists of one run end where those of the other go on, and the measure sees what follows."""
    end = min(a.lengths.max(), b.lengths.max())
    shorter, other = (a, b) if a.lengths.max() == end else (b, a)
    cut = np.count_nonzero((shorter.lengths == end) & (other.lengths > end))
    seen = [one for one in measures if (getattr(one, "cutoff", None) or np.inf) > end]
    if seen and 2 * cut > len(a):
        names = ", ".join(map(repr, seen))
        less = np.count_nonzero(shorter.lengths < other.lengths)
        warnings.warn(
            f"lists of at most {end} documents are compared with longer ones in {less} of {len(a)} queries by {names}, "
            f"which counts what follows; cut all lists to {end}, or measure at @{end} or less, or cut each "
            "list to the length of the other: ranker.evaluate(..., cut_to=...)",
            ListLengthWarning,
            stacklevel=3,
        )


def _student(d: Floats) -> float:
    from scipy.special import stdtr

    error = float(d.std(ddof=1)) / np.sqrt(len(d))
    if error == 0:
        return 0.0 if d[0] else 1.0
    return float(2 * stdtr(len(d) - 1, -abs(d.mean()) / error))


def _randomization(d: Floats, resamples: int, random: np.random.Generator) -> tuple[float, int, bool]:
    """p over sign vectors, their number, and whether it is exhaustive. Zero differences have no effect."""
    reach = abs(d.sum()) - 1e-12 * np.abs(d).sum()
    d = np.sort(np.abs(d[d != 0]))  # neither the order of queries nor that of the two decides a sample
    n = len(d)
    if n <= max(EXACT, np.log2(resamples)):
        signs = 1 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
        return float(np.mean(np.abs(signs @ d) >= reach)), 2**n, True
    extreme, left = 0, resamples
    while left:
        rows = min(left, max(1, 2**22 // n))
        signs = 1 - 2.0 * random.integers(0, 2, size=(rows, n), dtype=np.int8)
        extreme += int(np.count_nonzero(np.abs(signs @ d) >= reach))
        left -= rows
    return (extreme + 1) / (resamples + 1), resamples, False


LEVEL = 0.05  # significance level


@dataclass(frozen=True)
class Leader(CompactReprMixin):
    """The ranker with the largest mean of `measure` on `queries` queries, and tests of the others against it. means:
    means of all rankers, descending, ties in input order. p: adjusted p value of each other ranker against the leader,
    in that order; 1 if no test is possible."""

    measure: str
    queries: int
    means: Mapping[str, float]
    p: Mapping[str, float]

    @property
    def name(self) -> str:
        """The name of the leader."""
        return next(iter(self.means))

    @property
    def ties(self) -> tuple[str, ...]:
        """Rankers that do not differ significantly from the leader."""
        return tuple(name for name, p in self.p.items() if p >= LEVEL)

    @property
    def behind(self) -> tuple[str, ...]:
        """Rankers significantly worse than the leader."""
        return tuple(name for name, p in self.p.items() if p < LEVEL)

    def __str__(self) -> str:
        """The finding and a recommendation."""
        top = f"{self.name} ranks best here, {self.measure} {_short(self.means[self.name])} on {self.queries} queries"
        if not self.p:
            return f"{top}."
        if not self.ties:
            ahead = self._names_with_means(self.behind)
            return f"{top}, ahead of {ahead} by a paired test ({self._at(self.behind, '<=')}): use it."
        text = f"{top}, but {self._names_with_means(self.ties)} cannot be distinguished from it by a paired test "
        text += f"({self._at(self.ties, '>=')}): choose among them by what they cost, or test on more queries."
        if self.behind:
            verb = "ranks" if len(self.behind) == 1 else "rank"
            text += f" {self._names_with_means(self.behind)} {verb} worse ({self._at(self.behind, '<=')})."
        return text

    def _names_with_means(self, names: Sequence[str]) -> str:
        """Names with their means: a .81, b .80 and c .79."""
        parts = [f"{name} ({_short(self.means[name])})" for name in names]
        return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))

    def _at(self, names: Sequence[str], sign: str) -> str:
        """For example p = .031, or p <= .031 for several."""
        p = (max if sign == "<=" else min)(self.p[name] for name in names)
        if p < 0.001:
            return "p < .001"
        return f"p {'=' if len(names) == 1 or p > 0.999 else sign} {_short(p)}"


def _short(share: float) -> str:
    """.812, and 1."""
    return f"{share:.3f}".removeprefix("0").removesuffix(".000")


def leader(found: Mapping[str, Evaluation], measure: str | Measure | None = None) -> Leader:
    """Find the leader among evaluations of the same queries by `measure`, optional if there is only one. Raises
    DataError if there are no evaluations, or if the queries differ."""
    if not found:
        raise DataError("no leader can be determined without evaluations; pass at least one.")
    means = {name: one.mean(measure) for name, one in found.items()}
    order = sorted(means, key=lambda name: -means[name])
    best, others = found[order[0]], order[1:]
    counted = best.n_evaluated(measure)
    if counted < 2 or not others:
        p = [1.0] * len(others)
    else:
        p = holm([compare(best, found[name], measure=measure).p_randomization for name in others]).tolist()
    shown = {name: means[name] for name in order}
    return Leader(best.get_name(measure), counted, shown, dict(zip(others, p, strict=True)))
