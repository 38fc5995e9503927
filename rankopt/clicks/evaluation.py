"""The value of a new ranking policy, estimated from a log of clicks on lists of another one."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from formulations.arrays import Floats, check_type
from formulations.display import CompactReprMixin
from rankopt.clicks.log import CLIP, ClickLog, EstimatorName, check_placements
from rankopt.clicks.propensities import PositionBias
from rankopt.clicks.simulation import scores_of
from rankopt.data.queries import Queries
from rankopt.errors import DataError, OptionError
from rankopt.evaluation.evaluation import interval_of
from rankopt.losses.segment_ops import mean_of_alike, sorted_rows
from rankopt.measures.notation import linear_in_gains
from rankopt.measures.tied_ranking import query_of_row
from rankopt.options import as_numbers


@dataclass(frozen=True, eq=False, repr=False)
class PolicyEvaluation(CompactReprMixin):
    """Result of `evaluate_policy`.

    * `value`, `low`, `high`: the mean over sessions and its 95% interval over queries
    * `per_query` (m,): contributions of the queries, whose plain mean is `value`: of two evaluations of one log their
      differences are paired
    * `effective_sample_size`: (Σ w)² / Σ w² of the weights w of the impressions: how many impressions of equal weight
      are worth as much
    * `without_support`: the share of the measure's discounts that falls on documents that the log never shows, or only
      at positions of propensity 0: there the clicks say nothing
    """

    measure: str
    estimator: str
    value: float
    low: float
    high: float
    per_query: Floats
    effective_sample_size: float
    without_support: float

    def __str__(self) -> str:
        text = (
            f"{self.measure} {self.value:.4f}, 95% interval {self.low:.4f} to {self.high:.4f} ({self.estimator}, "
            f"{self.per_query.size} queries, effective sample size {self.effective_sample_size:.0f})"
        )
        if self.without_support > 0:
            text += f"; {100 * self.without_support:.1f}% of the ranking is without support in the log"
        return text


def evaluate_policy(
    log: ClickLog,
    ranker: Any,
    measure: Any = "DCG@10",
    *,
    propensities: PositionBias,
    estimator: EstimatorName = "ips",
    clip: float = CLIP,
    model: Any = None,
) -> PolicyEvaluation:
    """Estimate the mean per session of a measure of another ranker's lists, from clicks.

    V = Σ_j a_π(j) b̂_j for each query, with a the discount of the measure and b̂ the gains of `ClickLog.gains`, is
    unbiased for "ips" if every document that the ranker shows has support. "clipped" bounds the weights; "snips"
    divides their sum by the sum that it is expected to have, which also extends the value to the share without support;
    "dr" takes there what a model predicts.

    ranker: a fitted ranker, a policy (`PlackettLuceRanker`, `ExposureRanker`: its distribution counts), scores (N,) of
    `log.queries`, or the placements (N, K) of a stochastic policy. measure: linear in gains: DCG@k or P@k. Queries
    count by their sessions. The interval is of Student's t over queries, and NaN where they do not differ or have no
    click. Raises DataError if nothing that the ranker shows has support.
    """
    check_type("log", log, ClickLog, error=OptionError, cure="Pass a ClickLog.")
    parsed = linear_in_gains(measure)
    weight = discounts_of(log.queries, ranker, parsed)
    seen, inverse = log.exposure(propensities, policy=False), log.weights(propensities, estimator, clip)
    estimated = log.gains(propensities, "clipped" if estimator == "snips" else estimator, clip=clip, model=model)
    m, query = len(log.queries), log.queries.query_of(np.arange(weight.size))
    sessions, supported = log.sessions.astype(np.float64), weight * (inverse > 0)
    value = np.bincount(query, weight * np.asarray(estimated.relevance), m)
    all_weight = np.bincount(query, weight, m)
    share = np.ones(m)
    if estimator == "snips":
        supported = weight * seen * inverse
        share = np.divide(np.bincount(query, supported, m), all_weight, out=np.ones(m), where=all_weight > 0)
    if not (sessions @ np.bincount(query, supported, m) > 0):
        raise DataError(
            "no document that the ranker shows was shown in the log at a position with a propensity above 0; nothing "
            "can be said of its value."
        )
    mean = float(sessions @ value / (sessions @ share))
    each = mean + sessions * (value - mean * share) / np.mean(sessions * share)
    low, high = interval_of(each)
    if not log.clicked.any() or low == high:  # as many say nothing of how far the value is off
        low, high = np.nan, np.nan
    of_impression = (weight * inverse)[log.rows]
    squares = float(log.shown @ of_impression**2)
    size = float(log.shown @ of_impression) ** 2 / squares if squares > 0 else 0.0
    unseen = float(sessions @ np.bincount(query, weight * (inverse == 0), m))
    without = unseen / max(float(sessions @ all_weight), 1e-300)
    return PolicyEvaluation(repr(parsed), estimator, mean, low, high, each, size, without)


def discounts_of(queries: Queries, ranker: Any, measure: Any) -> Floats:
    """(N,) the expected discount of each document under a ranker, scores or placements; equal scores share theirs."""
    if ranker is None:
        raise OptionError("ranker cannot be None; pass a fitted ranker, scores (N,), or placements (N, K).")
    own, query = queries.grouped(), query_of_row(queries.offsets)
    discount = measure.discounts(queries.offsets)
    if hasattr(ranker, "marginals"):
        policy = copy(ranker).reset() if hasattr(ranker, "reset") else ranker  # this is no service
        found, shown = np.empty(own.n_documents), policy.marginals(own)
        for name, (low, high) in zip(own.query_ids, pairwise(own.offsets.tolist()), strict=True):
            P = shown[name]
            if discount[low + len(P) : high].any():
                raise OptionError(
                    f"{measure} counts more than the {len(P)} positions of the policy; pass a shorter measure or a "
                    "policy of a longer one"
                )
            found[low:high] = discount[low : low + len(P)] @ P
        return found[np.argsort(queries.rows)]
    if not hasattr(ranker, "predict") and (placements := as_numbers("ranker", ranker)).ndim == 2:
        check_placements(placements, queries)
        found = np.zeros(len(placements))
        for low, high in pairwise(queries.offsets.tolist()):
            rows, k = queries.rows[low:high], min(placements.shape[1], high - low)
            found[rows] = placements[rows, :k] @ discount[low : low + k]
        return found
    if getattr(ranker, "constraints", None) is not None:
        orders = ranker._deployment(own).orders(np.asarray(ranker.predict(own)))
        found = np.zeros(own.n_documents)
        for start, order in zip(own.offsets[:-1].tolist(), orders, strict=True):
            found[start + np.asarray(order)] = discount[start : start + len(order)]
        return found[np.argsort(queries.rows)]
    scores = scores_of(ranker, queries)[queries.rows]
    rows, made = sorted_rows(query, scores), np.empty(scores.size)
    made[rows] = mean_of_alike(discount, np.arange(rows.size), query, scores[rows])
    return made[np.argsort(queries.rows)]
