"""Plackett-Luce policies: rankings drawn without replacement in proportion to exp(score), and a ranker that learns one.

    p(π) = Π_i exp(s_π(i)) / Σ_{l >= i} exp(s_π(l))

Sorting by score plus Gumbel noise draws from p. PL-Rank (Oosterhuis 2021, 2022) estimates the gradient of
E Σ_i a_i r_π(i) for any rewards r of documents: gains, and gains less multipliers of exposure limits.
"""
# mypy: allow-subclassing-any

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from formulations.arrays import Floats, Ints, as_integer, finite, generator
from formulations.display import CompactReprMixin
from formulations.marginals.plackett_luce import plackett_luce_marginals
from rankopt.data.canonical_order import Arrangement, canonical
from rankopt.data.queries import Queries
from rankopt.data.typing import Ids, Sizes
from rankopt.errors import OptionError
from rankopt.fitting import warn_interrupted
from rankopt.optimize.objective import deviations
from rankopt.options import COUNT, NOT_NEGATIVE, POSITIVE, Interval, Rules, check_options, seed_from
from rankopt.policies.limits import (
    PolicyQuery,
    attention_of,
    check_exposure,
    check_groups,
    policy_queries,
    utility_measure,
)
from rankopt.rankers.inputs import documents_of, read_queries
from rankopt.rankers.linear import LinearRanker, cross_validated_ridge
from rankopt.rankers.typing import AnyMeasure, AnyRows, Missing, Normalize, Seed
from rankopt.scorers.linear import linear_scores

LEAST = -600.0  # logarithm of the smallest weight of a document next to the largest
ROUNDS = 10  # of multipliers
PENALTIES = (0.05, 1.0)  # of a squared excess, first and last, in units of the mean best utility
STEP, DECAY, MEMORY = 0.1, 0.9, 0.99  # Adam: the first step in deviations of the scores, and the two decays
AVERAGED = 0.2  # the part of the steps, at the end, whose weights are averaged


@dataclass(frozen=True, eq=False)
class PlackettLuce(CompactReprMixin):
    """The Plackett-Luce distribution of the rankings of documents with scores (n,).

    >>> policy = PlackettLuce(np.log([6.0, 3.0, 1.0]))
    >>> np.exp(policy.log_probability([[0, 1, 2], [2, 1, 0]])).round(4)
    array([0.45  , 0.0333])
    """

    scores: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", finite("scores", self.scores, 1))

    def sample(self, size: int, random_state: int | np.random.Generator | None = None) -> Ints:
        """(size, n) rankings, best first; reproducible only with `random_state`."""
        noise = generator("random_state", random_state).gumbel(size=(as_integer("size", size), self.scores.size))
        return np.argsort(-(self.scores + noise), axis=1)

    def log_probability(self, orders: Any) -> Floats:
        """(m,) the logarithm of the probability of each ranking (m, n)."""
        ordered = np.asarray(self.scores)[np.asarray(orders)]
        return np.asarray((ordered - np.logaddexp.accumulate(ordered[:, ::-1], axis=1)[:, ::-1]).sum(axis=1))

    def gradient(self, orders: Ints, attention: Floats, reward: Floats) -> Floats:
        """(m, n) unbiased estimates, one of each drawn ranking (m, n), of the gradient by the scores of
        E Σ_{i <= k} attention_i reward_π(i) (PL-Rank; attention (k,), reward (n,))."""
        m, n, k = *orders.shape, attention.size
        weight = np.exp(np.maximum(self.scores - self.scores.max(), LEAST))
        left = np.cumsum(weight[orders][:, ::-1], axis=1)[:, ::-1][:, :k]  # of the documents not yet placed
        placed = attention * reward[orders[:, :k]]
        onwards = np.cumsum(placed[:, ::-1], axis=1)[:, ::-1]
        last = np.minimum(np.arange(n), k - 1)
        direct, lost = (np.cumsum(part / left, axis=1)[:, last] for part in (attention, onwards))
        after = np.pad(onwards - placed, ((0, 0), (0, n - k)))
        found = np.empty((m, n))
        np.put_along_axis(found, orders, after + weight[orders] * (direct * reward[orders] - lost), axis=1)
        return found


def marginals_of_orders(orders: Ints, k: int, n: int) -> Floats:
    """(k, n) the share of the rankings (m, >= k) that have each of n documents at each of the first k positions."""
    cells = np.arange(k) * n + orders[:, :k]
    return np.asarray(np.bincount(cells.ravel(), minlength=k * n) / len(orders)).reshape(k, n)


class PlackettLuceRanker(LinearRanker):
    """Linear scores of a stochastic policy: rankings are drawn in proportion to exp(score / temperature).

    Maximizes Σ_q v_q U_q(w) / U* - (λ/2) ‖w‖², U_q the expected measure of query q and U* the mean of its best values,
    subject to limits of exposure, by an augmented Lagrangian: Adam on the PL-Rank gradient of sampled rankings, and
    ten rounds of multipliers. w is in units of the deviations of its features. The problem is not convex: no bound is
    claimed. `evaluate_exposure` compares the policy with the best one, which a linear program finds and proves.

    Parameters
    ----------
    **Start here**

    measure : default "DCG@10"
        A measure that is an inner product of position weights and gains. Its position weights are the exposure.
    exposure : default None
        `DemographicParity("gender")`, `DisparateTreatment("gender", "gain")`, `DisparateImpact` or `ExposureBounds` of
        formulations; groups and merit are names of attributes, or merit is "gain", the gain of the measure.
    amortized : default False
        Whether limits hold on the weighted mean over queries, instead of in each.
    temperature : default 1.0
        The larger, the more random. It can be changed after `fit`.
    lam : default 0.001
        λ >= 0.
    normalize, missing : defaults "auto", "error"
        As in `LargeMarginRanker`.

    **Run**

    samples : default 32
        Rankings that are drawn of each query in a step.
    max_iter : default 300
        Steps.
    tol : default 0.05
        `fit` warns if a limit is exceeded by more on the training queries, in units of the mean exposure.
    random_state : default None
        The seed of the rankings that are drawn in training; None is 0.

    Notes
    -----
    `rank` and `score` are of the most likely ranking, the order by score. `sample` draws rankings. Fitted: `coef_`,
    `n_iter_`, `utility_` (rounds,) and `excess_` (rounds,), the mean measure and the worst excess of a limit in each
    round of training. Ctrl-C keeps the weights after the last complete round.

    References
    ----------
    H. Oosterhuis, Learning-to-Rank at the Speed of Sampling, SIGIR 2022.
    A. Singh and T. Joachims, Policy Learning for Fairness in Ranking, NeurIPS 2019.
    """

    _saved: ClassVar[tuple[str, ...]] = (*LinearRanker._saved, "n_iter_", "utility_", "excess_")
    _linear_in_gains: ClassVar[bool] = True

    _rules: ClassVar[Rules] = {
        "amortized": (bool,), "temperature": (POSITIVE,), "lam": (NOT_NEGATIVE,), "max_iter": (COUNT,),
        "samples": (Interval(2, integer=True),), "tol": (NOT_NEGATIVE,),
    }  # fmt: skip

    n_iter_: int
    utility_: Floats
    excess_: Floats

    def __init__(
        self,
        measure: AnyMeasure = "DCG@10",
        *,
        exposure: Any = None,
        amortized: bool = False,
        temperature: float = 1.0,
        lam: float = 1e-3,
        samples: int = 32,
        max_iter: int = 300,
        tol: float = 0.05,
        random_state: Seed = None,
        normalize: Normalize = "auto",
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.exposure = exposure
        self.amortized = amortized
        self.temperature = temperature
        self.lam = lam
        self.samples = samples
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.normalize = normalize
        self.missing = missing

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        if evaluation is not None:
            raise OptionError("eval_set is not used by PlackettLuceRanker; leave it out")
        self._check_params()
        measure = utility_measure(self.measure)
        names = check_exposure(self.exposure, queries.attributes)
        check_groups(self.exposure, queries.attributes)
        arranged = canonical(queries, weights / weights.max(), attributes=names)
        arranged = arranged.learnable(np.ones(len(arranged), dtype=bool), "count")
        gain = measure.gain(arranged.graded, arranged.offsets)
        problems = policy_queries(arranged, gain, measure, self.exposure)
        unit = float(arranged.weights @ measure.best(arranged.graded, arranged.offsets))
        apart = deviations(arranged)
        units = np.divide(1.0, apart, out=np.zeros_like(apart), where=apart > 0)
        start = np.divide(cross_validated_ridge(arranged), units, out=np.zeros_like(apart), where=units > 0)
        training = _Training(self, problems, arranged, unit if unit > 0 else 1.0, units)
        self.coef_ = training.run(start / (np.linalg.norm(start) or 1.0))
        self.n_iter_, self.utility_, self.excess_ = training.steps, training.utility, training.excess
        if self.n_iter_ < self.max_iter:
            warn_interrupted("weights")
        elif self.excess_[-1] > self.tol:
            text = f"a limit of exposure is exceeded by {self.excess_[-1]:.3g} on the training queries; raise max_iter"
            warnings.warn(f"{text} or temperature, or loosen the limit", ConvergenceWarning, stacklevel=4)

    def sample(
        self,
        X: AnyRows,
        qid: Ids | None = None,
        *,
        size: int = 1,
        group: Sizes | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> NDArray[Any] | dict[Hashable, NDArray[Any]]:
        """Draw rankings of each query, (size, n): row indices of X, or document ids of `Queries` with ids. One query
        gives an array, several a dict. With a `random_state` the draws are reproducible, in any order of the rows."""
        queries, found = self._scored(X, qid, group)
        documents, random = documents_of(queries), generator("random_state", random_state)
        drawn = {query: documents[rows[policy.sample(size, random)]] for query, (rows, policy) in found.items()}
        return {query: drawn[query] for query in queries.query_ids} if len(drawn) > 1 else next(iter(drawn.values()))

    def marginals(self, X: AnyRows, qid: Ids | None = None, *, group: Sizes | None = None) -> dict[Hashable, Floats]:
        """(k, n) of each query: the exact probability of each document, in the order of X, at each counted position."""
        (queries, found), measure, made = self._scored(X, qid, group), utility_measure(self.measure), {}
        for query, (rows, policy) in found.items():
            P = plackett_luce_marginals(policy.scores, attention_of(measure, rows.size).size)
            made[query] = P[:, np.argsort(rows, kind="stable")]
        return {query: made[query] for query in queries.query_ids}

    def _scored(self, X: Any, qid: Any, group: Any) -> tuple[Queries, dict[Hashable, tuple[Ints, PlackettLuce]]]:
        """The queries, and of each, in canonical order, its rows and their distribution."""
        check_is_fitted(self)
        self._check_params()
        queries = read_queries(self, X, None, qid=qid, group=group, reset=False, labels=False).replace(relevance=None)
        arranged = canonical(queries, np.ones(len(queries)))
        scores = self._scores(queries.features) / self.temperature
        rows = [arranged.rows[low:high] for low, high in pairwise(arranged.offsets.tolist())]
        return queries, {
            query: (own, PlackettLuce(scores[own])) for query, own in zip(arranged.query_ids, rows, strict=True)
        }

    def _check_params(self) -> None:
        super()._check_params()
        check_options(self)
        utility_measure(self.measure)
        check_exposure(self.exposure)


class _Training:
    """The augmented Lagrangian of a fit. A limit of one query, or an amortized one, has one multiplier."""

    def __init__(
        self, ranker: PlackettLuceRanker, problems: list[PolicyQuery], queries: Arrangement, unit: float, units: Floats
    ) -> None:
        self.ranker, self.problems, self.queries, self.unit, self.units = ranker, problems, queries, unit, units
        self.random = np.random.default_rng(seed_from(ranker.random_state))
        self.features = queries.features[queries.rows]
        index: dict[Hashable, int] = {}
        self.member, self.weight = list[Ints](), list[float]()
        for q, one in enumerate(problems):
            names = [name if ranker.amortized else (q, name) for name in one.names]
            self.member.append(np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int64))
            self.weight.append(float(queries.weights[q]) * (one.weight if ranker.amortized else 1.0))
        self.total, self.scale = np.zeros(len(index)), np.ones(len(index))
        for one, own, weight, share in zip(problems, self.member, self.weight, queries.weights, strict=True):
            self.total[own] += weight * one.unit
            if not ranker.amortized:
                self.scale[own] = share  # a query's limits weigh as the query
        self.multipliers = np.zeros(len(index))

    def run(self, w: Floats) -> Floats:
        """The weights of the features, averaged over the last steps."""
        steps = self.ranker.max_iter
        first, second, mean = np.zeros(w.size), np.zeros(w.size), np.zeros(w.size)
        rounds = [part for part in np.array_split(np.arange(steps), ROUNDS) if part.size]
        averaged = max(1, round(AVERAGED * steps))
        utility, excess, last, self.steps = list[float](), list[float](), w, 0
        try:
            for part, self.penalty in zip(rounds, np.geomspace(*PENALTIES, len(rounds)), strict=True):
                worth, over = 0.0, np.zeros(self.multipliers.size)
                for step in part.tolist():
                    value, broken, slope = self._at(w)
                    worth, over = worth + value / part.size, over + broken / part.size
                    first = DECAY * first + (1.0 - DECAY) * slope
                    second = MEMORY * second + (1.0 - MEMORY) * slope**2
                    corrected = np.sqrt(second / (1.0 - MEMORY ** (step + 1))) + 1e-12
                    w = w + STEP * (1.0 - step / steps) * first / (1.0 - DECAY ** (step + 1)) / corrected
                    mean += w / averaged if step >= steps - averaged else 0.0
                self.multipliers = np.maximum(0.0, self.multipliers + self.penalty * over)
                utility.append(worth)
                excess.append(float(over.max(initial=0.0)))
                last, self.steps = w, int(part[-1]) + 1
        except KeyboardInterrupt:
            if not utility:
                raise
            mean = last
        self.utility, self.excess = np.array(utility), np.array(excess)
        return mean * self.units

    def _at(self, w: Floats) -> tuple[float, Floats, Floats]:
        """The mean utility, the excess of each limit, and the gradient of the augmented Lagrangian, by new samples."""
        scores = linear_scores(self.features, w * self.units) / self.ranker.temperature
        bounds, shares = pairwise(self.queries.offsets.tolist()), self.queries.weights
        drawn, over, utility = [], np.zeros((2, self.multipliers.size)), 0.0
        for (low, high), one, own, weight, share in zip(
            bounds, self.problems, self.member, self.weight, shares, strict=True
        ):
            policy = PlackettLuce(scores[low:high])
            halves = np.array_split(policy.sample(self.ranker.samples, self.random), 2)
            for half, orders in enumerate(halves):
                exposure = one.attention @ marginals_of_orders(orders, one.attention.size, high - low)
                utility += float(share * (one.gain @ exposure)) / 2
                over[half, own] += weight / self.total[own] * one.excess(exposure)
            drawn.append((policy, halves))
        # The excess of one half weighs the gradient of the other: of one sample, the penalty would be of its variance.
        pull = self.scale * np.maximum(0.0, self.multipliers + self.penalty * over[::-1]) / self.total
        slope = np.zeros(scores.size)
        for low, (policy, halves), one, own, weight, share in zip(
            self.queries.offsets[:-1].tolist(), drawn, self.problems, self.member, self.weight, shares, strict=True
        ):
            for orders, pulled in zip(halves, pull, strict=True):
                reward = share / self.unit * one.gain - (weight * (pulled[own] @ one.rows) if own.size else 0.0)
                reward -= reward.mean()  # a constant changes no gradient, but the variance of its estimate
                estimate = policy.gradient(orders, one.attention, reward).mean(axis=0)
                slope[low : low + reward.size] += estimate / 2
        gradient = self.features.T @ slope / self.ranker.temperature * self.units - self.ranker.lam * w
        return utility, over.mean(axis=0), gradient
