"""Examination propensities of positions: the probability e_p that a user looks at position p, relative to e_1 = 1.

Position-based model: P(click on document j at position p) = e_p r_j, with r_j the relevance of the document to its
query. Only products e_p r_j are seen, so e is known up to a factor: e_1 = 1 is a convention. With trust in the ranking
[Agarwal et al. 2019] it is e_p r_j + t_p, with t_p the clicks that the position alone earns.

What this model cannot see: users who look at a document because of the one above it, or click because of its snippet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import stdtrit

from formulations.arrays import Floats, Ints, generator
from formulations.display import Axes, CompactReprMixin, axes_for, tick_each
from rankopt.data.canonical_order import fingerprints
from rankopt.errors import DataError, OptionError
from rankopt.options import COUNT, NOT_NEGATIVE, Interval, as_numbers, check

ROUNDS, ENOUGH = 200, 1e-10
LEAST = 1e-100  # 1 / e stays in double precision


class ClickCounts(Protocol):
    """What is estimated from, of a `ClickLog`."""

    @property
    def queries(self) -> Any: ...
    @property
    def rows(self) -> Ints: ...
    @property
    def positions(self) -> Ints: ...
    @property
    def shown(self) -> Ints: ...
    @property
    def clicked(self) -> Ints: ...


@dataclass(frozen=True, eq=False, repr=False)
class PositionBias(CompactReprMixin):
    """Propensities of the positions 1, ..., K.

    * `propensities` (K,): e, NaN where the log does not identify it
    * `trust` (K,): t, 0 by default
    * `low`, `high` (K,): 95% intervals, of `from_swaps` and `from_em`; NaN where there is none
    * `method`: how they were found
    """

    propensities: Floats
    trust: Floats = field(default_factory=lambda: np.zeros(0))
    low: Floats = field(default_factory=lambda: np.zeros(0))
    high: Floats = field(default_factory=lambda: np.zeros(0))
    method: str = "given"

    def __post_init__(self) -> None:
        e = as_numbers("propensities", self.propensities)
        if e.ndim != 1 or not e.size or (e < 0).any() or not e[0] > 0 or np.isinf(e).any():
            raise OptionError(f"propensities must be finite numbers >= 0, one a position, the first above 0; got {e}.")
        if ((e > 0) & (e < LEAST)).any():
            raise OptionError(f"propensities must be 0 or at least {LEAST:g}, as they divide clicks; got {e}.")
        object.__setattr__(self, "propensities", e)
        for name, usual in (("trust", 0.0), ("low", np.nan), ("high", np.nan)):
            given = as_numbers(name, getattr(self, name))
            values = np.full(e.size, usual) if not given.size else given
            if values.shape != e.shape:
                raise OptionError(f"{name} must be {e.size} numbers, one a position; got shape {values.shape}.")
            object.__setattr__(self, name, values)
        if not ((self.trust >= 0) & (self.trust < np.inf)).all():
            raise OptionError(f"trust must be finite numbers >= 0, one a position; got {self.trust}.")

    @classmethod
    def from_power(cls, eta: float = 1.0, positions: int = 10) -> Self:
        """e_p = 1 / p^η, the usual assumption of simulations."""
        check("eta", eta, (NOT_NEGATIVE,))
        check("positions", positions, (COUNT,))
        return cls(np.arange(1.0, int(positions) + 1) ** -float(eta), method=f"1 / p^{eta:g}")

    @classmethod
    def from_swaps(cls, log: ClickCounts, *, resamples: int = 200, random_state: Any = 0) -> Self:
        """From documents that were shown at several positions, as random swaps or several rankers do.

        Relevance cancels: of the clicks C_j on document j, a share n_jp e_p / Σ_p' n_jp' e_p' is expected at position
        p. e solves Σ_j (c_jp - C_j n_jp e_p / Σ_p' n_jp' e_p') = 0 for every p, the optimum of a concave likelihood. It
        uses all pairs of positions, and is consistent if which list a session sees does not depend on the user.

        A position is identified if documents clicked there are shown at position 1 and the reverse, perhaps by other
        positions; else e is NaN. Where it has no clicks, e is 0.

        Intervals: e exp(±t s), with s the deviation of log e over `resamples` bootstrap samples of the m queries and t
        the quantile of Student's t of m - 1 degrees. Without clicks at a position the upper end is that e at which none
        has probability 2.5%. NaN for less than two resamples or queries, and where the samples do not differ or
        a tenth of them does not identify the position.

        Source: intervention harvesting [Agarwal et al. 2019], of all positions at once.
        """
        counts = _Counts.of(log)

        def fit(times: Floats) -> Floats:
            return _conditional(counts, times)

        e, low, high = _with_intervals(fit, counts, resamples, random_state)
        return cls(e, low=low, high=high, method="swaps")

    @classmethod
    def from_em(
        cls, log: ClickCounts, *, model: Any = None, rounds: int = 50, resamples: int = 20, random_state: Any = 0
    ) -> Self:
        """By expectation maximization with a model of relevance, where few documents change position.

        The relevance of a document is a function of its features, fitted to the expected relevance of each impression;
        e_p is the expected share of examined impressions at p. Positions and features must not determine each other:
        where one ranker always shows the same order, e is what the model of relevance leaves unexplained, and as wrong
        as the model. Prefer `from_swaps`.

        model: a scikit-learn classifier with sample_weight and predict_proba, by default a logistic regression of
        scaled features, with means and indicators in place of NaN. Intervals as in `from_swaps`, of fits that start at
        the estimate: over queries, without the error of the model. With one ranker they cover far less than 95%.

        Source: regression EM [Wang et al. 2018].
        """
        check("rounds", rounds, (COUNT,))
        counts = _Counts.of(log)
        if not counts.clicked[counts.positions == 0].any():
            raise DataError("the log has no clicks at position 1, to which propensities are relative; add sessions.")
        features, start = log.queries.features[counts.order], list[Floats]()

        def fit(times: Floats) -> Floats:
            e = _by_em(counts, features, model, times, rounds, start[0] if start else None)
            start.append(e)
            return e

        e, low, high = _with_intervals(fit, counts, resamples, random_state)
        return cls(e, low=low, high=high, method="em")

    def __len__(self) -> int:
        """The number of positions."""
        return self.propensities.size

    def at(self, positions: Ints) -> Floats:
        """e at these positions. DataError beyond the last, and where e is not identified."""
        beyond = positions[positions > len(self)]
        if beyond.size:
            raise DataError(
                f"the log has position {beyond.max()}, but there are propensities for {len(self)} positions; estimate "
                "or give them for all, or leave the impressions below out."
            )
        e = self.propensities[positions - 1]
        if np.isnan(e).any():
            raise DataError(
                f"the propensity of position {positions[np.isnan(e)].min()} is not known: no clicked document links it "
                "to position 1; show more documents at several positions, use from_em, or give it."
            )
        return np.asarray(e)

    def __str__(self) -> str:
        unknown = np.flatnonzero(np.isnan(self.propensities)) + 1
        text = ", ".join(f"{e:.3g}" for e in self.propensities[:10]) + (", ..." if len(self) > 10 else "")
        left = f"; not identified: position {', '.join(map(str, unknown))}" if unknown.size else ""
        trust = f"; trust {', '.join(f'{t:.3g}' for t in self.trust[:10])}" if self.trust.any() else ""
        return f"PositionBias({text} by {self.method}{trust}{left})"

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the propensities over the positions, with their intervals where there are any."""
        axes, at = axes_for(axes), np.arange(1, len(self) + 1)
        reach = np.nan_to_num(np.abs(np.array([self.low, self.high]) - self.propensities))
        axes.errorbar(at, self.propensities, yerr=reach, fmt="o-", capsize=2, label=self.method)
        axes.set(xlabel="position", ylabel="propensity (position 1: 1)", ylim=(0, None))
        tick_each(axes, at.astype(float))
        axes.legend()
        return axes


@dataclass(frozen=True)
class _Counts:
    """Records of a log: document (0 to N - 1), position (0 to K - 1), shown and clicked, and query of each document.

    Documents and queries are numbered independently of the order of rows; `order`: the row of each document."""

    rows: Ints
    positions: Ints
    shown: Floats
    clicked: Floats
    query: Ints
    queries: int
    order: Ints

    @classmethod
    def of(cls, log: ClickCounts) -> _Counts:
        if not all(hasattr(log, name) for name in ("queries", "rows", "positions", "shown", "clicked")):
            raise OptionError(f"log cannot be a {type(log).__name__}; pass a ClickLog.")
        if not log.clicked.any():
            raise DataError("the log has no clicks, so propensities cannot be estimated.")
        n, m = log.queries.n_documents, len(log.queries)
        order = canonical_rows(log.queries, *(np.bincount(log.rows, one, n) for one in (log.shown, log.clicked)))
        rows = np.argsort(order)[log.rows]
        by_row = np.lexsort((log.positions, rows))
        _, first, query = np.unique(log.queries.query_of(order), return_index=True, return_inverse=True)
        shown, clicked = (one[by_row].astype(float) for one in (log.shown, log.clicked))
        return cls(
            rows[by_row], log.positions[by_row] - 1, shown, clicked, np.argsort(np.argsort(first))[query], m, order
        )

    @property
    def size(self) -> tuple[int, int]:
        """Documents and positions."""
        return self.query.size, int(self.positions.max()) + 1

    def table(self, values: Floats) -> csr_array:
        return csr_array((values, (self.rows, self.positions)), shape=self.size)


def canonical_rows(queries: Any, *more: Any) -> Ints:
    """(N,) the rows in an order that depends on ids, without document ids on features, and on more columns (N,), and
    not on the order of rows."""
    query = _order_of_texts(queries.query_ids)[queries.query_of(np.arange(queries.n_documents))]
    names = queries.document_ids
    document: Any = fingerprints(queries.features) if names is None else _order_of_texts(names)
    return np.lexsort((*more, document, query))


def _order_of_texts(names: Any) -> Ints:
    texts = [str(name) for name in names]
    place = {text: number for number, text in enumerate(sorted(set(texts)))}
    return np.array([place[text] for text in texts])


def _with_intervals(
    fit: Callable[[Floats], Floats], counts: _Counts, resamples: int, random_state: Any
) -> tuple[Floats, Floats, Floats]:
    """(propensities, low, high) of an estimator of e by the weights of queries."""
    check("resamples", resamples, (Interval(0, 100_000, "both", integer=True),))
    random, m = generator("random_state", random_state), counts.queries
    e = fit(np.ones(m))
    low, high = np.full((2, e.size), np.nan)
    if resamples < 2 or m < 2:
        return e, low, high
    draws = np.array([
        fit(np.bincount(random.integers(0, m, m), minlength=m).astype(np.float64)) for _ in range(int(resamples))
    ])  # fmt: skip
    low[0] = high[0] = 1.0  # by convention
    for p in np.flatnonzero(e > 0)[1:]:
        positive = draws[draws[:, p] > 0, p]
        spread = float(np.log(positive).std(ddof=1)) if positive.size > 1 else 0.0
        if spread > 1e-8 and np.isnan(draws[:, p]).mean() <= 0.1:
            ratio = np.exp(min(float(stdtrit(m - 1, 0.975)) * spread, 700.0))
            low[p] = e[p] / ratio if (draws[:, p] == 0).mean() <= 0.025 else 0.0
            high[p] = e[p] * ratio
    if (e == 0).any():
        low[e == 0], high[e == 0] = 0.0, _most_without_clicks(counts, e)[e == 0]
    return e, low, high


def _most_without_clicks(counts: _Counts, e: Floats) -> Floats:
    """(K,) the e at which a position has no clicks with probability 2.5%, by the relevance at the others, or NaN."""
    shown = counts.table(counts.shown)
    exposure = shown @ np.nan_to_num(e)
    clicks = counts.table(counts.clicked) @ (e > 0).astype(float)
    relevance = np.divide(clicks, exposure, out=np.zeros_like(exposure), where=exposure > 0)
    expected = shown.T @ relevance
    return np.asarray(np.divide(-np.log(0.025), expected, out=np.full(e.size, np.nan), where=expected > 0))


def _conditional(counts: _Counts, times: Floats) -> Floats:
    """e by Newton's method on the likelihood of where the clicks of each document fall; times: weights of queries."""
    weights = times[counts.query[counts.rows]]
    shown, clicked = counts.table(counts.shown), counts.table(counts.clicked * weights)
    used, clicks = np.flatnonzero(clicked.sum(axis=1) > 0), clicked.sum(axis=0)
    shown, clicked = csr_array(shown[used]), csr_array(clicked[used])
    k, linked = shown.shape[1], _linked(shown, clicked)
    total = clicked @ linked.astype(float)
    e = np.where(linked, np.where(clicks > 0, 1.0, 0.0), np.nan)
    free = np.flatnonzero(linked & (clicks > 0))
    if 0 not in free:
        return np.append(1.0, np.full(k - 1, np.nan))
    free = free[free != 0]
    theta, n = np.zeros(k), shown[:, np.flatnonzero(linked)]
    own = np.flatnonzero(linked)

    def share(theta: Floats) -> csr_array:
        scaled = csr_array(n.multiply(np.where(e[own] > 0, np.exp(theta[own]), 0.0)[None, :]))
        sums = scaled.sum(axis=1)
        return csr_array(scaled.multiply((1 / np.where(sums > 0, sums, 1.0))[:, None]))

    def value(theta: Floats) -> float:
        scaled = n @ np.where(e[own] > 0, np.exp(theta[own]), 0.0)
        alive = scaled > 0
        return float(clicks[free] @ theta[free] - total[alive] @ np.log(scaled[alive]))

    place = np.searchsorted(own, free)
    now = value(theta)
    for _ in range(ROUNDS):
        P = share(theta)
        expected = P.T @ total
        slope = clicks[free] - expected[place]
        H = np.diag(expected) - (csr_array(P.multiply(total[:, None])).T @ P).toarray()
        step = np.linalg.lstsq(H[np.ix_(place, place)], slope, rcond=None)[0]
        step *= min(1.0, 2.0 / max(np.abs(step).max(initial=0.0), 1e-300))
        rate, new = 1.0, now
        while rate > 1e-6:
            tried = theta.copy()
            tried[free] += rate * step
            new = value(tried)
            if new >= now:
                break
            rate /= 2
        if rate <= 1e-6 or np.abs(rate * step).max(initial=0.0) < ENOUGH:
            break
        theta, now = tried, new
    e[free] = np.exp(theta[free])
    e[0] = 1.0
    return e


def _linked(shown: csr_array, clicked: csr_array) -> Any:
    """(K,) the positions that documents of the table compare with the first in both directions: clicked at one and
    shown at the other, perhaps by other positions; and those without clicks that such a document is shown at."""
    from scipy.sparse.csgraph import connected_components

    clicked.eliminate_zeros()
    _, label = connected_components(csr_array(clicked.T @ shown), connection="strong")
    linked = label == label[0]
    return linked | ((clicked.sum(axis=0) == 0) & ((clicked @ linked.astype(float)) @ shown > 0))


def of_scaled_features(model: Any, features: Any) -> Any:
    """A scikit-learn model of scaled features, with means and indicators in place of NaN. DataError for features whose
    variance is not a number."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if (np.abs(features.data if issparse(features) else features) > 1e150).any():
        raise DataError("the squares of the features leave double precision; divide features beyond 1e150")
    imputer = SimpleImputer(add_indicator=True, keep_empty_features=True)
    return make_pipeline(imputer, StandardScaler(with_mean=False), model)


def _by_em(counts: _Counts, features: Any, model: Any, times: Floats, rounds: int, start: Floats | None) -> Floats:
    """e by expectation maximization, from `start` or from 1 / p."""
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    n, k = counts.size
    weights = times[counts.query[counts.rows]]
    shown, clicked = counts.shown * weights, counts.clicked * weights
    e = 1.0 / np.arange(1, k + 1) if start is None else np.nan_to_num(start.copy(), nan=0.5)
    sums = np.bincount(counts.rows, shown, n)
    known = np.flatnonzero(sums > 0)
    r = np.full(n, np.clip(clicked.sum() / max(float(e[counts.positions] @ shown), 1e-300), 1e-6, 1 - 1e-6))
    at_position = np.bincount(counts.positions, shown, k)
    X, learned = features[known], model
    if model is None:
        X = of_scaled_features("passthrough", features).fit_transform(X)
        learned = LogisticRegression(warm_start=True, max_iter=300)
    both, index = np.repeat([1, 0], known.size), np.tile(np.arange(known.size), 2)
    for _ in range(int(rounds)):
        before = e.copy()
        product = e[counts.positions] * r[counts.rows]
        rest = (shown - clicked) / np.maximum(1 - product, 1e-12)
        examined = clicked + rest * e[counts.positions] * (1 - r[counts.rows])
        relevant = np.bincount(counts.rows, clicked + rest * r[counts.rows] * (1 - e[counts.positions]), n)
        share = np.clip(relevant[known] / sums[known], 0.0, 1.0)
        weight = np.r_[share, 1 - share] * sums[known][index]
        learned = (learned if model is None else clone(model)).fit(X[index], both, sample_weight=weight)
        r[known] = np.clip(learned.predict_proba(X)[:, 1], 1e-9, 1 - 1e-9)
        np.divide(np.bincount(counts.positions, examined, k), at_position, out=e, where=at_position > 0)
        if np.abs(e - before).max() < 1e-5:
            break
    e[np.bincount(counts.positions, clicked, k) == 0] = 0.0  # the limit
    return np.where(at_position > 0, e / e[0], np.nan) if e[0] > 0 else np.full(k, np.nan)
