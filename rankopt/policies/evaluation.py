"""Policies under limits of exposure: the best one for the scores of a ranker, and the evaluation of any policy."""
# mypy: allow-subclassing-any

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partialmethod
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from formulations.arrays import Floats, check_type, finite
from formulations.display import Axes, CompactReprMixin, axes_for
from formulations.marginals.birkhoff import birkhoff_decomposition, near_marginal_ranking
from rankopt.data.canonical_order import canonical
from rankopt.data.queries import Queries
from rankopt.data.typing import Attributes, Ids, Sizes
from rankopt.errors import DataError, ExposureWarning, OptionError
from rankopt.measures.notation import linear_in_gains
from rankopt.options import NOT_NEGATIVE, check, seed_from
from rankopt.policies.limits import (
    Exposure,
    PolicyQuery,
    best_policy,
    check_exposure,
    check_groups,
    policy_queries,
    utility_measure,
    worst_excess,
)
from rankopt.rankers.base import Ranker
from rankopt.rankers.deployment import as_arranged
from rankopt.rankers.inputs import documents_of, read_queries
from rankopt.rankers.typing import AnyMeasure, AnyRows, Seed

KEPT = 1e-6  # an excess that is rounding of a solver


class ExposureRanker(BaseEstimator):
    """Serve the best stochastic policy under limits of exposure, for gains that are the scores of a fitted ranker.

    A linear program finds the marginals of each query, their Birkhoff decomposition the rankings to draw from. Where no
    policy keeps the limits of a query, the one that breaks the worst limit least is served, with a warning.

    Parameters
    ----------
    ranker
        A fitted ranker. Its scores count as gains, so that their differences matter: train
        `RegressionRanker(target="gain")`, or another model of the gain.
    exposure
        As in `PlackettLuceRanker`; merit "gain" is the score, or 0 where that is negative.
    measure : default "DCG@10"
        Its position weights are the exposure of positions.
    amortized : default False
        Whether the limits hold for the exposure accumulated over all queries that were served. One program then finds
        the marginals of all queries of a call, which may use what earlier queries left of the limits.
    random_state : default None
        The seed of the rankings that are drawn; None is 0. Each call draws anew.

    Attributes
    ----------
    n_served_ : int
        The number of queries that were served.
    accumulated_ : dict
        From limit to the sum of its excess over these queries; at most 0 while amortized limits are kept.
    """

    def __init__(
        self,
        ranker: Any,
        exposure: Any,
        *,
        measure: AnyMeasure = "DCG@10",
        amortized: bool = False,
        random_state: Seed = None,
    ) -> None:
        self.ranker = ranker
        self.exposure = exposure
        self.measure = measure
        self.amortized = amortized
        self.random_state = random_state

    def reset(self) -> ExposureRanker:
        """Forget the queries that were served."""
        self.n_served_, self.accumulated_ = 0, dict[Hashable, float]()
        return self

    def marginals(
        self,
        X: AnyRows,
        qid: Ids | None = None,
        *,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
    ) -> dict[Hashable, Floats]:
        """Serve the queries: (k, n) of each, the probability of each document, in the order of the rows of X, at each
        position that counts. Amortized limits accumulate."""
        queries, served = self._served(X, qid, group, attributes)
        found = {query: P[:, np.argsort(rows, kind="stable")] for query, (rows, P) in served.items()}
        return {query: found[query] for query in queries.query_ids}

    def rank(
        self,
        X: AnyRows,
        qid: Ids | None = None,
        *,
        size: int | None = None,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        random_state: Seed = None,
    ) -> NDArray[Any] | dict[Hashable, NDArray[Any]]:
        """Serve the queries: a random ranking of each, of the positions that count, or `size` of them (size, k). One
        query gives an array of row indices of X, or of document ids; several a dict. With a `random_state` the draws
        are reproducible, in any order of the rows; None is that of the ranker."""
        queries, served = self._served(X, qid, group, attributes)
        own = [seed_from(self.random_state), self.n_served_] if random_state is None else seed_from(random_state)
        random, documents = np.random.default_rng(own), documents_of(queries)
        found = {
            query: documents[rows[birkhoff_decomposition(P).sample(size, random_state=random)]]
            for query, (rows, P) in served.items()
        }
        return {query: found[query] for query in queries.query_ids} if len(found) > 1 else next(iter(found.values()))

    sample = partialmethod(rank, size=1)
    """`rank` with size=1 by default, as `PlackettLuceRanker.sample`."""

    def _served(self, X: Any, qid: Any, group: Any, attributes: Any) -> tuple[Queries, dict[Hashable, Any]]:
        """The queries, and of each its rows in canonical order and the marginals of these; accumulates exposure."""
        check_exposure(self.exposure)
        measure = utility_measure(self.measure)
        check_type("ranker", self.ranker, Ranker, error=OptionError, cure="Pass a fitted ranker.")
        check_is_fitted(self.ranker)
        limits = (repr(self.exposure), str(measure), self.amortized)
        if getattr(self, "_limits", None) != limits:  # new, or set_params
            self.reset()
        self._limits = limits
        ways = {"qid": qid, "group": group, "attributes": attributes, "reset": False, "labels": False}
        queries = read_queries(self.ranker, X, None, **ways).replace(relevance=None)
        names = check_exposure(self.exposure, queries.attributes)
        arranged = canonical(queries, np.ones(len(queries)), attributes=names)
        gain = np.asarray(self.ranker._scores(queries.features), dtype=np.float64)[arranged.rows]
        problems = policy_queries(arranged, gain, measure, self.exposure)
        parts = [problems] if self.amortized else [[one] for one in problems]
        carried = self.accumulated_ if self.amortized else None
        best = [best_policy(own, carried=carried, averaged=True) for own in parts]
        marginals = [P for one in best for P in one.marginals]
        for one, P in zip(problems, marginals, strict=True):
            for name, value in zip(one.names, one.weight * one.excess(one.attention @ P), strict=True):
                self.accumulated_[name] = self.accumulated_.get(name, 0.0) + float(value)
        self.n_served_ += len(problems)
        broken = [one.excess for one in best if one.excess > KEPT]
        if broken:
            what = "the amortized limits of exposure" if self.amortized else f"the limits of {len(broken)} queries"
            warnings.warn(f"no policy keeps {what}; the least excess is {max(broken):.3g}", ExposureWarning, 3)
        rows = (arranged.rows[low:high] for low, high in pairwise(arranged.offsets.tolist()))
        return queries, dict(zip(arranged.query_ids, zip(rows, marginals, strict=True), strict=True))


@dataclass(frozen=True, eq=False)
class ExposureEvaluation(CompactReprMixin):
    """Expected measure, exposure and limits of a policy, and its gap to the best policy that keeps the same limits.

    queries: m ids. utility (m,): the expected measure. optimum (m,): that of the best policy that knows the grades, NaN
    where none keeps the limits; of amortized limits, of the policy that is best for all queries together. unlimited
    (m,): that of the best ranking without limits. The gap to the optimum is no price of the limits: for that, `compare`
    with the same scores without limits. bound: the proven upper bound on the mean utility of every policy that keeps
    the limits, over the queries that have one. exposure: from group to (m,)
    its mean exposure per merit, NaN without the group. In units of the mean of all documents: disparity (m,), the
    largest difference of two groups; mean_disparity, its mean, or, if amortized, the largest difference of two means;
    excess, by how much the worst limit is broken, (m,) or, if amortized, (1,); least_excess, the least possible,
    likewise; tolerance, an excess that counts as kept, also by the best policy.
    """

    measure: str
    amortized: bool
    queries: tuple[Hashable, ...]
    utility: Floats
    optimum: Floats
    unlimited: Floats
    bound: float
    exposure: Mapping[Hashable, Floats]
    disparity: Floats
    mean_disparity: float
    excess: Floats
    least_excess: Floats
    tolerance: float

    @property
    def kept(self) -> NDArray[np.bool_]:
        """(m,) whether the limits of a query, or the amortized ones, are kept."""
        return np.broadcast_to(self.excess <= self.tolerance, self.utility.shape)

    @property
    def gap(self) -> Floats:
        """(m,) the optimum less the utility: NaN where the policy breaks limits. Amortized, only the mean is >= 0."""
        return np.where(self.kept, self.optimum - self.utility, np.nan)

    @property
    def mean_gap(self) -> float:
        """The proven bound less the mean utility if amortized, else the mean of the gaps; NaN if limits are broken."""
        if self.amortized:
            return self.bound - float(self.utility.mean()) if self.kept.all() else float("nan")
        gap = self.gap[np.isfinite(self.gap)]
        return float(gap.mean()) if gap.size else float("nan")

    def __str__(self) -> str:
        kept, m, possible = int(self.kept.sum()), self.utility.size, np.isfinite(self.optimum)
        some = bool(possible.any())
        most = f"{self.bound:.4f} under the limits and {self.unlimited[possible | (not some)].mean():.4f} without"
        bound = f"; a policy that knows the grades has at most {most}" if some else ""
        lines = [
            f"{self.measure} {self.utility[possible | (not some)].mean():.4f}{bound}",
            f"limits {'amortized' if self.amortized else 'per query'}: kept on {kept} of {m} queries, "
            f"worst excess {self.excess.max():.3f}, disparity {self.mean_disparity:.3f}",
        ]
        if not possible.all():
            lines.append(f"no policy keeps the limits of {m - possible.sum()} queries" + ", not counted above" * some)
        if kept:
            lines.append(f"gap to the best policy that knows the grades, where limits are kept: {self.mean_gap:.4f}")
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each query; a column `exposure G` for each group G."""
        import pandas

        columns = {
            "utility": self.utility, "optimum": self.optimum, "gap": self.gap, "disparity": self.disparity,
            "excess": np.broadcast_to(self.excess, self.utility.shape),
            **{f"exposure {name}": values for name, values in self.exposure.items()},
        }  # fmt: skip
        return pandas.DataFrame(columns, index=pandas.Index(self.queries, name="query", tupleize_cols=False))

    def plot(self, others: Mapping[str, ExposureEvaluation] | None = None, axes: Axes | None = None) -> Axes:
        """Plot mean utility against mean disparity, of this policy and of others by name; a line is the bound. A policy
        that breaks limits is an empty circle."""
        axes = axes_for(axes)
        check_type("others", others, Mapping, type(None), error=OptionError, cure="Pass {'name': evaluation}.")
        for name, one in {"policy": self, **(others or {})}.items():
            check_type(f"others[{name!r}]", one, ExposureEvaluation, error=OptionError)
            form, word = ("full", name) if one.kept.all() else ("none", f"{name}, breaks limits")
            axes.plot(one.mean_disparity, one.utility.mean(), "o", fillstyle=form, label=word)
        axes.axhline(self.bound, color="gray", linestyle="--", label="proven bound under the limits")
        axes.set(xlabel="difference of exposure per merit", ylabel=f"expected {self.measure}", xlim=(0, None))
        axes.legend()
        return axes


def evaluate_exposure(
    policy: Any,
    queries: Queries,
    exposure: Exposure | None,
    *,
    measure: AnyMeasure = "DCG@10",
    amortized: bool = False,
    tolerance: float = KEPT,
) -> ExposureEvaluation:
    """Evaluate a policy by the grades of documents, and compare it with the best policy under the same limits.

    The optimum is that of a linear program for each query, or of one for all queries if limits are amortized; its bound
    is recomputed from the dual solution. A policy that breaks the limits of a query has no gap there.

    Parameters
    ----------
    policy
        A `PlackettLuceRanker`, an `ExposureRanker`, any other fitted ranker (its order by score, ties at random), or a
        mapping from query id to marginals (k, n): the probability of each document, in the order of the rows, at each
        position that counts.
    queries : Queries
        With grades and the attributes that the limits need.
    exposure
        The limits, as in `PlackettLuceRanker`; None for none.
    measure : default "DCG@10"
        The expected utility. Its position weights are the exposure.
    amortized : default False
        Whether limits hold on the weighted mean over queries, instead of in each.
    tolerance : default 1e-6
        The excess of a limit, in units of the mean exposure per merit, that counts as kept. The limits of the optimum
        are loosened by it, so that no policy that keeps them to the tolerance exceeds it. A Plackett-Luce policy keeps
        no equality exactly: raise it.

    Returns
    -------
    ExposureEvaluation
    """
    check("tolerance", tolerance, (NOT_NEGATIVE,))
    check("amortized", amortized, (bool,))
    check_type("queries", queries, Queries, error=DataError, cure="Use Queries.from_arrays(X, y, qid=qid).")
    if queries.relevance is None:
        raise DataError("policies are evaluated by grades, and these Queries have none; read them with relevance.")
    check_exposure(exposure, queries.attributes)
    check_groups(exposure, queries.attributes)
    parsed = utility_measure(linear_in_gains(measure) if queries.has_gains else measure)
    arranged = as_arranged(queries.grouped())
    gain = parsed.gain(arranged.graded, arranged.offsets)
    problems = policy_queries(arranged, gain, parsed, exposure)
    marginals = _marginals(policy, queries.grouped(), problems)
    exposures = [one.attention @ P for one, P in zip(problems, marginals, strict=True)]
    groups = {name: np.full(len(queries), np.nan) for one in problems for name in one.groups}
    disparity = np.zeros(len(queries))
    for q, (one, e) in enumerate(zip(problems, exposures, strict=True)):
        for name, value in zip(one.groups, one.shares @ e if one.groups else (), strict=True):
            groups[name][q] = value
        disparity[q] = np.ptp(one.shares @ e) / one.unit if one.groups else 0.0
    means, unit = [np.nanmean(values) for values in groups.values()], np.mean([one.unit for one in problems])
    best = [best_policy(own, tolerance=tolerance) for own in ([problems] if amortized else [[one] for one in problems])]
    optimum = np.array([one.bound for one in best])
    if amortized:
        optimum = np.array([one.gain @ (one.attention @ P) for one, P in zip(problems, best[0].marginals, strict=True)])
    possible = np.array([one.excess <= KEPT for one in best])
    bounds = np.array([one.bound for one in best])[possible] / (len(queries) if amortized else 1)
    return ExposureEvaluation(
        measure=str(parsed),
        amortized=bool(amortized),
        queries=queries.query_ids,
        utility=np.array([one.gain @ e for one, e in zip(problems, exposures, strict=True)]),
        optimum=np.where(possible, optimum, np.nan),
        unlimited=parsed.best(arranged.graded, arranged.offsets),
        bound=float(bounds.mean()) if bounds.size else float("nan"),
        exposure=groups,
        disparity=disparity,
        mean_disparity=float(np.ptp(means or [0.0]) / unit) if amortized else float(disparity.mean()),
        excess=worst_excess(problems, exposures, amortized),
        least_excess=np.array([one.excess + tolerance if one.excess > KEPT else 0.0 for one in best]),
        tolerance=float(tolerance),
    )


def _marginals(policy: Any, queries: Queries, problems: list[PolicyQuery]) -> list[Floats]:
    """The marginals (k, n) of each query."""
    found = policy
    if hasattr(policy, "marginals"):
        own = copy(policy).reset() if isinstance(policy, ExposureRanker) else policy  # this is no service
        found = own.marginals(queries)
    elif hasattr(policy, "predict"):
        scores, bounds = policy.predict(queries), pairwise(queries.offsets.tolist())
        found = {
            query: _by_score(scores[low:high], one.attention.size)
            for query, (low, high), one in zip(queries.query_ids, bounds, problems, strict=True)
        }
    elif not isinstance(policy, Mapping):
        raise OptionError(f"policy must be a fitted ranker or a mapping from query id to marginals; got {policy!r:.80}")
    missing = [query for query in queries.query_ids if query not in found]
    if missing:
        raise DataError(f"policy has no marginals of query {missing[0]!r}; pass those of all queries.")
    made = []
    for query, one in zip(queries.query_ids, problems, strict=True):
        P, shape = finite(f"marginals of query {query!r}", found[query], 2), (one.attention.size, one.gain.size)
        if P.shape != shape:
            raise DataError(f"marginals of query {query!r} must have the shape {shape}; got {P.shape}.")
        made.append(near_marginal_ranking(P, KEPT))
    return made


def _by_score(scores: Floats, k: int) -> Floats:
    """(k, n) the marginals of the order by score, documents of equal score in random order."""
    _, level, count = np.unique(-scores, return_inverse=True, return_counts=True)
    block = np.repeat(np.arange(count.size), count)[:k]  # of each position
    return np.asarray((block[:, None] == level) / count[level])
