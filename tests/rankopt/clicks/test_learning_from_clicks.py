"""Rankers that learn from clicks: by a measure that is linear in the gains, with the certificates of other fits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV, GroupKFold

from formulations import DemographicParity
from rankopt.clicks import ClickLog, PositionBias, TrustBias, click_probability, simulate_clicks
from rankopt.data import Queries, concatenate, load_sample
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.losses import ScoreLoss
from rankopt.measures import evaluate
from rankopt.policies import PlackettLuceRanker
from rankopt.rankers import (
    BoostedRanker,
    DirectRanker,
    LargeMarginRanker,
    LossRanker,
    PairwiseRanker,
    RegressionRanker,
    SmoothRanker,
    load_model,
)

BIAS = PositionBias.from_power(1.0)
RANKERS = [
    LargeMarginRanker(), LargeMarginRanker(bound="tie-aware"), SmoothRanker(), DirectRanker(),
    BoostedRanker(n_estimators=20), RegressionRanker(), LossRanker("squared"),
]  # fmt: skip


@pytest.fixture(scope="module")
def sample():
    return load_sample("digits")


@pytest.fixture(scope="module")
def log(sample):
    random, train = np.random.default_rng(0), sample.train
    first = LargeMarginRanker().fit(train.select([0]))
    return simulate_clicks(train, [first, random.normal(size=train.n_documents)], sessions=100_000)


@pytest.fixture(scope="module")
def trusting(sample):
    """A log with clicks that trust explains, so that gains may be negative, and its bias."""
    train, model = sample.train.select(np.arange(20)), TrustBias()
    random = np.random.default_rng(2)
    log = simulate_clicks(train, [random.normal(size=train.n_documents) for _ in range(5)], model, sessions=4000)
    return log, model.position_bias(10)


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_clicks_teach_more_than_the_ranker_that_they_are_from(ranker, sample, log):
    random = RegressionRanker().fit(sample.train.select([0])).score(sample.test)
    ranker.fit(log, propensities=BIAS)
    assert ranker.measure == "nDCG@10"  # which `score` of graded queries is
    assert ranker.score(sample.test) > random


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_a_log_is_its_gains(ranker, log, tmp_path):
    gains = log.gains(BIAS, "dr")
    weight = log.sessions
    one = ranker.fit(log, propensities=BIAS, estimator="dr").predict(log.queries)
    two = ranker.fit(gains, query_weight=weight).predict(log.queries)
    three = ranker.fit(
        log.queries.features, qid=log.queries.qid, gains=gains.relevance, query_weight=weight
    ).predict(log.queries.features, qid=log.queries.qid)  # fmt: skip
    assert_array_equal(one, two)
    assert_array_equal(one, three)
    assert_allclose(ranker.score(gains), ranker.set_params(measure="DCG(gain='linear')@10").score(gains))
    ranker.save(tmp_path / "m")
    assert_array_equal(load_model(tmp_path / "m").predict(log.queries), one)


@pytest.mark.parametrize("bound", ["convex", "tie-aware", "nonconvex"])
def test_the_certificate_is_of_the_objective_of_the_gains(bound, trusting):
    log, bias = trusting
    gains = log.gains(bias, "dr")
    assert gains.relevance.min() < 0
    ranker = LargeMarginRanker("DCG@10", bound=bound, lam=1.0, w0="zeros", normalize=None).fit(
        log, propensities=bias, estimator="dr"
    )
    loss = ScoreLoss("DCG(gain='linear')@10", bound=bound).bind(gains.relevance, qid=gains.qid)
    values = loss.at(ranker.predict(log.queries)).value
    risk = float(np.average(values, weights=log.sessions))
    w = ranker.coef_
    found = ranker.certificate_
    assert_allclose(found.primal, 0.5 * w @ w + risk, rtol=1e-9)
    assert found.bound <= found.primal
    if bound == "convex":  # no other weights are better by more than the gap
        random = np.random.default_rng(0)
        for _ in range(20):
            other = w + random.normal(size=w.size) * 10.0 ** random.uniform(-4, 0)
            value = float(np.average(loss.at(log.queries.features @ other).value, weights=log.sessions))
            assert 0.5 * other @ other + value >= found.bound - 1e-9


def test_negative_gains_do_not_depend_on_the_order_of_rows(trusting, rng):
    log, bias = trusting
    gains = log.gains(bias)
    assert gains.relevance.min() < 0
    order = rng.permutation(gains.n_documents)
    fits = [
        LargeMarginRanker(bound="convex").fit(
            gains.features[rows], qid=gains.qid[rows], gains=gains.relevance[rows]
        )
        for rows in (np.arange(order.size), order)
    ]  # fmt: skip
    assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_full_information_is_the_limit(sample):
    train = sample.train.select(np.arange(10))
    random = np.random.default_rng(1)
    log = simulate_clicks(train, [random.normal(size=train.n_documents) for _ in range(60)], sessions=600_000)
    measure = "DCG(gain='linear')@10"
    truth = train.with_gains(click_probability(train.relevance))
    learned, known = LargeMarginRanker(measure).fit(log, propensities=BIAS), LargeMarginRanker(measure).fit(truth)
    assert abs(learned.score(truth) - known.score(truth)) < 0.03 * known.score(truth)


def test_gains_train_alike_in_fit_path_and_partial_fit(log, sample):
    gains = log.gains(BIAS)
    fitted, streamed = LargeMarginRanker().fit(gains), LargeMarginRanker().partial_fit(gains)
    (of_path,) = LargeMarginRanker().path(gains).models
    for other in (streamed, of_path):
        assert_allclose(other.coef_, fitted.coef_)
        assert other.measure == "nDCG@10"
    J = fitted.objective(gains)
    assert_allclose(J.upper(fitted.coef_, J.risk.at(fitted.coef_)), fitted.certificate_.primal)
    assert "in units of DCG" in str(fitted.bound_tightness(gains))
    for train in (LossRanker("listnet").path, LossRanker("listnet").partial_fit):
        with pytest.raises(OptionError, match="trains no function that is linear"):
            train(gains)
    small = gains.select([0, 1])
    assert DirectRanker(random_state=0).fit(small).verify(only=1).holds


def test_searches_of_scikit_learn_fit_and_score_gains(log):
    gains, folds = log.gains(BIAS).grouped(), GroupKFold(3)
    X = pd.DataFrame(gains.features).add_prefix("x").assign(qid=gains.qid)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(LargeMarginRanker(), {"lam": [0.01, 10.0]}, cv=folds)
        search.fit(X, gains=gains.relevance, groups=X.qid)
    for lam, found in zip((0.01, 10.0), search.cv_results_["mean_test_score"], strict=True):
        expected = []
        for rows, held in folds.split(X, groups=X.qid):
            ranker = LargeMarginRanker(lam=lam).fit(X.iloc[rows], gains=gains.relevance[rows])
            scores = ranker.predict(X.iloc[held])
            part = Queries.from_arrays(gains.features[held], qid=gains.qid[held]).with_gains(gains.relevance[held])
            expected.append(evaluate(part, scores, "DCG(gain='linear')@10").mean())
        assert_allclose(found, np.mean(expected))
    ranker, few = LargeMarginRanker("P@3").fit(X, gains=gains.relevance), gains.select([0, 1, 2])
    rows, weight = X.iloc[: few.n_documents], (few.qid == few.qid[0]) + 1.0
    values = evaluate(few, ranker.predict(rows), "P@3").values[0]
    assert_allclose(ranker.evaluate(rows, gains=few.relevance).values[0], values)
    score = ranker.score(rows, gains=few.relevance, sample_weight=weight)
    assert_allclose(score, np.average(values, weights=[2.0, 1.0, 1.0]))
    order = pd.Series(gains.relevance, index=X.index[::-1])
    for method in (ranker.fit, ranker.score, ranker.evaluate):
        with pytest.raises(DataError, match="gains has the index of X in another order"):
            method(X, gains=order)
        with pytest.raises(DataError, match="y and gains are alternatives"):
            method(X, gains.relevance, gains=gains.relevance)


def test_what_is_refused(log, sample):
    with pytest.raises(OptionError, match="clicks need propensities="):
        LargeMarginRanker().fit(log)
    with pytest.raises(MeasureError, match="nDCG@5 is not linear in the gains"):
        LargeMarginRanker("nDCG@5").fit(log, propensities=BIAS)
    with pytest.raises(OptionError, match="PairwiseRanker trains no function that is linear"):
        PairwiseRanker().fit(log, propensities=BIAS)
    with pytest.raises(OptionError, match="LossRanker trains no function that is linear"):
        LossRanker("listnet").fit(log, propensities=BIAS)
    with pytest.raises(DataError, match="alternatives"):
        LargeMarginRanker().fit(sample.train.features, sample.train.relevance, gains=sample.train.relevance)
    with pytest.raises(DataError, match="gains cannot be passed with a log"):
        LargeMarginRanker().fit(log, propensities=BIAS, gains=sample.train.relevance)
    with pytest.raises(OptionError, match="propensities are of a ClickLog"):
        LargeMarginRanker().fit(sample.train, propensities=BIAS)
    ranker = LargeMarginRanker().fit(log, propensities=BIAS)
    for method in (ranker.predict, ranker.score):
        with pytest.raises(OptionError, match=r"only `fit` takes a ClickLog; pass log\.queries"):
            method(log)
    for method in (LargeMarginRanker().path, LargeMarginRanker().partial_fit):
        with pytest.raises(OptionError, match=r"only `fit` takes a ClickLog; pass log\.queries, or log\.gains"):
            method(log)
    huge = replace(log, queries=log.queries.replace(features=1e300 * log.queries.features))
    with pytest.raises(DataError, match="squares of the features leave double precision"):
        huge.gains(BIAS, "dr")
    with pytest.raises(DataError, match="the gain is nan"):
        sample.train.with_gains(np.full(sample.train.n_documents, np.nan))
    with pytest.raises(DataError, match="differ in having grades, or gains"):
        concatenate([sample.train.select([0]), sample.train.select([1]).with_gains(np.zeros(80))])


def test_large_gains_order_as_small_ones_do_and_need_no_other_measure(sample, rng):
    gains = rng.normal(size=sample.train.n_documents)
    small, large = (LargeMarginRanker().fit(sample.train.with_gains(c * gains)) for c in (1.0, 2.0**40))
    assert_allclose(large.coef_, 2.0**40 * small.coef_, rtol=1e-6, atol=0.0)


def test_policies_learn_from_clicks_as_from_grades(sample, log):
    train, options = sample.train.select(np.arange(10)), {"max_iter": 50, "random_state": 0}
    graded = PlackettLuceRanker("DCG(gain='linear')@10", **options).fit(train)
    given = PlackettLuceRanker(**options).fit(train.replace(relevance=None).with_gains(train.relevance))
    assert_array_equal(given.coef_, graded.coef_)
    learned = PlackettLuceRanker(**options).fit(log, propensities=BIAS)
    assert learned.utility_[-1] > learned.utility_[0]


def test_evaluation_queries_may_be_clicks(log, sample):
    train, held = log.select(np.arange(30)), log.select(np.arange(30, 40))
    ranker = LargeMarginRanker().fit(train, propensities=BIAS, eval_set=[held])
    assert_allclose(ranker.best_score_, ranker.score(held.gains(BIAS)))


def test_policies_learn_from_clicks_under_limits_of_exposure(rng):
    X = rng.normal(size=(20, 6, 2))
    records = [
        {"qid": q, "docid": d, "position": p + 1, "click": int(rng.random() < 1 / (p + 1 + np.exp(-X[q, d, 0]))),
         "gender": "fm"[d % 2], "x": X[q, d, 0], "y": X[q, d, 1] + d % 2}
        for q in range(20) for _ in range(30) for p, d in enumerate(rng.permutation(6))
    ]  # fmt: skip
    log = ClickLog.from_frame(pd.DataFrame(records), attributes=["gender"])
    limit = DemographicParity("gender", difference_bound=1.0)
    found = PlackettLuceRanker(exposure=limit, max_iter=30, random_state=0).fit(log, propensities=BIAS)
    group = np.array(["fm"[d % 2] for d in log.queries.document_ids])
    graded = log.queries.replace(attributes={"gender": group}).with_gains(log.gains(BIAS).relevance)
    again = PlackettLuceRanker(exposure=limit, max_iter=30, random_state=0).fit(graded, query_weight=log.sessions)
    assert_array_equal(found.coef_, again.coef_)
