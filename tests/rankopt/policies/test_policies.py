"""Policies: gradients and optima against enumeration of all rankings, limits kept, gaps never negative."""

from copy import copy
from itertools import count, pairwise, permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from formulations import DemographicParity, DisparateImpact, DisparateTreatment, ExposureBounds
from rankopt import Queries, RegressionRanker, compare, load_model, load_sample
from rankopt.clicks import PositionBias, evaluate_policy, simulate_clicks
from rankopt.data import read_table
from rankopt.errors import DataError, ExposureWarning, OptionError, TrainingInterruptedWarning
from rankopt.losses import Deltr
from rankopt.measures import parse
from rankopt.policies import ExposureRanker, PlackettLuce, PlackettLuceRanker, evaluate_exposure
from rankopt.rankers import LossRanker

LINEAR = "DCG(gain='linear')@3"
PARITY = DemographicParity("side")
OTHERS = DemographicParity("side", protected="c")


def rankings(n):
    return np.array(list(permutations(range(n))))


def attention(n, k):
    return 1.0 / np.log2(np.arange(2.0, min(n, k) + 2))


def small_queries(seed, sizes=(4, 4)):
    """Queries with both groups, grades in [.5, 3.5], and the grade as their only feature."""
    rng, n = np.random.default_rng(seed), sum(sizes)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    side = np.concatenate([rng.permutation(np.where(np.arange(size) < size // 2, "a", "b")) for size in sizes])
    grade = rng.uniform(0.5, 3.5, n)
    return Queries.from_arrays(grade[:, None], grade, qid=qid, attributes={"side": side})


def parts(queries):
    """Grades and labels of each query."""
    for low, high in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        yield queries.relevance[low:high], queries.attributes["side"][low:high]


def fair_ranker(limits=PARITY, **options):
    """Serves the best policy for the grades themselves."""
    scores = RegressionRanker(alpha=0.0, normalize=None).fit([[0.0], [1.0], [3.0]], [0, 1, 3])
    return ExposureRanker(scores, limits, measure=LINEAR, **options)


# Plackett-Luce.


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (4, 2), (4, 4), (5, 3)])
def test_the_gradient_is_unbiased_and_that_of_the_expectation(n, k):
    rng = np.random.default_rng(n * k)
    scores, reward, weights, orders = rng.normal(size=n), rng.normal(size=n), rng.random(k) + 0.1, rankings(n)

    def expectation(scores):
        return np.exp(PlackettLuce(scores).log_probability(orders)) @ (reward[orders[:, :k]] @ weights)

    policy = PlackettLuce(scores)
    estimated = np.exp(policy.log_probability(orders)) @ policy.gradient(orders, weights, reward)
    h = 1e-5
    differences = [(expectation(scores + h * one) - expectation(scores - h * one)) / (2 * h) for one in np.eye(n)]
    assert_allclose(estimated, differences, atol=1e-8)


def test_gradients_of_very_different_scores_are_finite():
    policy, orders = PlackettLuce(np.array([0.0, 2000.0, -2000.0])), rankings(3)
    assert np.isfinite(policy.gradient(orders, np.ones(3), np.array([1.0, 2.0, 3.0]))).all()


def test_rankings_are_drawn_with_their_probabilities():
    policy, orders, m = PlackettLuce(np.array([0.3, -1.0, 0.8, 0.0])), rankings(4), 20_000
    p = np.exp(policy.log_probability(orders))
    assert_allclose(p.sum(), 1.0)
    found, count = np.unique(policy.sample(m, random_state=0), axis=0, return_counts=True)
    assert_array_equal(found, orders)
    assert (np.abs(count - m * p) <= 5.0 * np.sqrt(m * p * (1.0 - p))).all()


def test_marginals_are_those_of_the_distribution():
    queries = small_queries(0)
    ranker = PlackettLuceRanker(LINEAR, max_iter=5, temperature=2.0, normalize=None).fit(queries)
    orders, found = rankings(4), ranker.marginals(queries)
    for query, low in zip(queries.query_ids, queries.offsets[:-1], strict=True):
        p = np.exp(PlackettLuce(ranker.predict(queries)[low : low + 4] / 2.0).log_probability(orders))
        exact = np.array([[p[orders[:, i] == j].sum() for j in range(4)] for i in range(3)])
        assert_allclose(found[query], exact, atol=1e-10)


def test_without_limits_the_expected_measure_nears_the_best():
    queries = small_queries(1, (5, 5, 5))
    ranker = PlackettLuceRanker(LINEAR, lam=0.0).fit(queries)
    best = parse(LINEAR).best(queries.relevance, queries.offsets).mean()
    assert ranker.utility_[0] < ranker.utility_[-1] <= best
    assert ranker.utility_[-1] > 0.97 * best


def test_training_keeps_limits_that_no_training_breaks():
    train = load_sample("les-miserables").train
    limits = DemographicParity("community", difference_bound=0.03)
    free, fair = (
        PlackettLuceRanker(exposure=exposure, amortized=True, max_iter=150, tol=9.0).fit(train)
        for exposure in (None, limits)
    )
    found = [evaluate_exposure(one, train, limits, amortized=True, tolerance=0.1) for one in (free, fair)]
    assert found[0].excess[0] > 1.0 > 0.1 >= found[1].excess[0]
    assert found[1].mean_gap >= 0.0
    assert np.isnan(found[0].mean_gap)


def test_a_policy_does_not_depend_on_the_order_of_rows():
    queries, rng = small_queries(3, (4, 6, 5)), np.random.default_rng(0)
    X, y, qid, side = queries.features, queries.relevance, queries.qid, queries.attributes["side"]
    X = np.column_stack([X, rng.normal(size=len(X))])
    order = rng.permutation(len(X))
    kinds = [PlackettLuceRanker(exposure=PARITY, max_iter=20, tol=1.0) for _ in range(2)]
    kinds[0].fit(X, y, qid=qid, attributes={"side": side})
    kinds[1].fit(X[order], y[order], qid=qid[order], attributes={"side": side[order]})
    assert_array_equal(kinds[0].coef_, kinds[1].coef_)
    first = kinds[0].sample(X, qid, size=7, random_state=1)
    second = kinds[0].sample(X[order], qid[order], size=7, random_state=1)
    served = [fair_ranker(), fair_ranker()]
    one = served[0].rank(X[:, :1], qid, attributes={"side": side})
    other = served[1].rank(X[order][:, :1], qid[order], attributes={"side": side[order]})
    several = served[0].sample(X[:, :1], qid, size=4, attributes={"side": side}, random_state=1)
    exchanged = served[1].sample(X[order][:, :1], qid[order], size=4, attributes={"side": side[order]}, random_state=1)
    for query in first:
        assert_array_equal(first[query], order[second[query]])
        assert_array_equal(one[query], order[other[query]])
        assert_array_equal(several[query], order[exchanged[query]])
    P, permuted = (kinds[0].marginals(X[rows], qid[rows]) for rows in (slice(None), order))
    for query in P:
        rows = np.flatnonzero(qid == query)
        assert_array_equal(P[query][:, np.searchsorted(rows, order[qid[order] == query])], permuted[query])


def test_save_and_load(tmp_path):
    queries = small_queries(4)
    limits = DisparateTreatment("side", "gain", ratio_bound=0.8)
    ranker = PlackettLuceRanker(LINEAR, exposure=limits, max_iter=10, tol=1.0).fit(queries)
    ranker.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert (loaded.exposure.groups, loaded.exposure.merit, loaded.exposure.ratio_bound) == ("side", "gain", 0.8)
    for query, orders in ranker.sample(queries, size=5, random_state=2).items():
        assert_array_equal(loaded.sample(queries, size=5, random_state=2)[query], orders)
    assert_array_equal(loaded.excess_, ranker.excess_)


def test_a_policy_is_the_last_step_of_a_pipeline():
    queries = small_queries(5)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), PlackettLuceRanker(exposure=PARITY, max_iter=10, tol=1.0))
        pipeline.fit(
            queries.features, queries.relevance, qid=queries.qid,
            attributes=np.array([(side,) for side in queries.attributes["side"]], dtype=[("side", "U1")]),
        )  # fmt: skip
        assert pipeline.predict(queries.features, qid=queries.qid).shape == (8,)


def test_fit_says_when_limits_are_broken():
    with pytest.warns(ConvergenceWarning, match="limit of exposure is exceeded by"):
        PlackettLuceRanker(exposure=PARITY, max_iter=3, tol=0.0).fit(small_queries(6))


# The best policy.

EQUAL, RATIO = [[1.0, -1.0], [-1.0, 1.0]], [[0.8, -1.0], [-1.0, 0.8]]

STATED = {
    "parity": (PARITY, lambda e, y, a: (e[a].mean(), e[~a].mean()), EQUAL, 0.0),
    "difference": (
        DemographicParity("side", difference_bound=0.2), lambda e, y, a: (e[a].mean(), e[~a].mean()), EQUAL, 0.2
    ),
    "ratio": (DemographicParity("side", ratio_bound=0.8), lambda e, y, a: (e[a].mean(), e[~a].mean()), RATIO, 0.0),
    "protected": (
        DemographicParity("side", protected="a"), lambda e, y, a: (e[a].mean(), e[~a].mean()), EQUAL[1:], 0.0
    ),
    "treatment": (
        DisparateTreatment("side", "gain", difference_bound=0.4),
        lambda e, y, a: (e[a].mean() / y[a].mean(), e[~a].mean() / y[~a].mean()), EQUAL, 0.4,
    ),
    "impact": (
        DisparateImpact("side", "gain"),
        lambda e, y, a: ((y * e)[a].mean() / y[a].mean(), (y * e)[~a].mean() / y[~a].mean()), EQUAL, 0.0,
    ),
}  # fmt: skip
"""Limits; the values v of a and b that they compare, of exposures e, merits y, members a; A and b of A v <= b."""


def compared_values(name, y, side):
    """(2, n!) the two values of each ranking, and (n!,) its utility."""
    weights, orders = attention(y.size, 3), rankings(y.size)
    exposure = np.zeros((len(orders), y.size))
    np.put_along_axis(exposure, orders[:, :3], np.broadcast_to(weights, (len(orders), weights.size)), axis=1)
    return np.array([STATED[name][1](e, y, side == "a") for e in exposure]).T, exposure @ y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", STATED)
def test_the_optimum_is_that_of_the_best_distribution_over_all_rankings(name, seed):
    queries = small_queries(seed, (4, 3))
    found = evaluate_exposure(fair_ranker(STATED[name][0]), queries, STATED[name][0], measure=LINEAR, tolerance=1e-9)
    for q, (y, side) in enumerate(parts(queries)):
        values, utility = compared_values(name, y, side)
        A = np.array(STATED[name][2]) @ values
        best = linprog(-utility, A, np.full(len(A), STATED[name][3]), np.ones((1, len(utility))), [1.0])
        assert_allclose(found.optimum[q], -best.fun, atol=1e-7)
    assert_allclose(found.gap, 0.0, atol=1e-6)
    assert (found.excess <= 1e-9).all()


def test_amortized_limits_cost_less_than_those_of_each_query():
    queries = small_queries(7, (4, 4))
    found = [evaluate_exposure(fair_ranker(), queries, PARITY, measure=LINEAR, amortized=how) for how in (False, True)]
    tables = [compared_values("parity", y, side) for y, side in parts(queries)]
    apart = np.concatenate([values[0] - values[1] for values, _ in tables])
    each = np.kron(np.eye(2), np.ones((1, tables[0][1].size)))
    best = linprog(-np.concatenate([utility for _, utility in tables]), None, None, [*each, apart], [1.0, 1.0, 0.0])
    assert_allclose(found[1].bound, -best.fun / 2, atol=1e-5)
    assert found[1].bound > found[0].bound + 0.001
    assert_allclose(found[1].mean_gap, found[1].bound - found[0].utility.mean())


def test_limits_of_group_exposure():
    queries = small_queries(8)
    limits = ExposureBounds("side", lower={"a": 0.55}, upper=0.6)
    found = evaluate_exposure(fair_ranker(limits), queries, limits, measure=LINEAR)
    assert (found.exposure["a"] >= 0.55 - 1e-9).all()
    assert (found.exposure["b"] <= 0.6 + 1e-9).all()
    assert_allclose(found.mean_gap, 0.0, atol=1e-5)


@pytest.mark.parametrize("amortized", [False, True])
def test_no_policy_that_keeps_the_limits_has_a_negative_gap(amortized):
    """Mixtures of random rankings, some of which keep the limits."""
    queries, rng, limits = (
        small_queries(9, (4, 4, 5)),
        np.random.default_rng(0),
        DemographicParity("side", difference_bound=0.1),
    )
    kept = 0
    for _ in range(40):
        policy = {}
        for q, size in enumerate(np.diff(queries.offsets)):
            orders, p = rng.permuted(np.tile(np.arange(size), (6, 1)), axis=1), rng.dirichlet(np.ones(6))
            policy[q] = np.array([np.bincount(orders[:, i], p, size) for i in range(3)])
        found = evaluate_exposure(policy, queries, limits, measure=LINEAR, amortized=amortized)
        assert (found.excess >= 0.0).all()
        if amortized:
            assert np.isnan(found.mean_gap) == (found.excess[0] > found.tolerance)
        assert not found.mean_gap < 0.0
        assert not (found.gap < 0.0).any() or amortized
        kept += int(found.kept.sum())
    assert 0 < kept < 40 * 3


def test_without_limits_the_optimum_is_the_best_ranking():
    queries = small_queries(14)
    found = evaluate_exposure(fair_ranker().ranker, queries, None, measure=LINEAR)
    assert_allclose(found.bound, parse(LINEAR).best(queries.relevance, queries.offsets).mean())
    assert_allclose(found.gap, 0.0, atol=1e-9)


def test_a_certain_ranking_breaks_parity_and_has_no_gap():
    queries = small_queries(10)
    found = evaluate_exposure(fair_ranker().ranker, queries, PARITY, measure=LINEAR)
    assert_allclose(found.utility, parse(LINEAR).best(queries.relevance, queries.offsets))
    assert (found.excess > 0.01).all()
    assert_allclose(found.excess, found.disparity)  # of equality, the largest difference
    assert np.isnan(found.gap).all()
    assert "gap" not in str(found)
    assert "kept on 0 of 2 queries" in str(found)


def test_rows_of_equal_content_are_exchanged_at_random():
    """All six documents are alike but for their grades, which come in order."""
    grades = np.arange(6.0)[::-1]
    queries = Queries.from_arrays(np.ones((6, 1)), grades, group=[6], attributes={"side": list("aaabbb")})
    for policy in (fair_ranker(), fair_ranker().ranker):
        found = evaluate_exposure(policy, queries, PARITY, measure=LINEAR)
        assert_allclose(found.utility, grades.mean() * attention(6, 3).sum())
        assert_allclose(found.disparity, 0.0, atol=1e-12)


def test_rankings_are_drawn_with_the_served_marginals():
    queries = small_queries(11, (4,))
    (P,), m = fair_ranker().marginals(queries).values(), 300
    ranker = fair_ranker()
    drawn = np.array([ranker.rank(queries) for _ in range(m)])
    share = np.array([np.bincount(drawn[:, i], minlength=4) / m for i in range(3)])
    assert (np.abs(share - P) <= 5.0 * np.sqrt(P * (1.0 - P) / m) + 1e-9).all()
    assert_array_equal(drawn[:5], [one.rank(queries) for one in [fair_ranker()] for _ in range(5)])
    sampled = ranker.sample(queries, size=m, random_state=0)
    share = np.array([np.bincount(sampled[:, i], minlength=4) / m for i in range(3)])
    assert (np.abs(share - P) <= 5.0 * np.sqrt(P * (1.0 - P) / m) + 1e-9).all()
    assert_array_equal(sampled, fair_ranker().sample(queries, size=m, random_state=0))
    assert_array_equal(fair_ranker().sample(queries)[0], drawn[0])
    assert ranker.n_served_ == m + 1  # draws of one call serve a query once
    with pytest.raises(OptionError, match="random_state must be"):
        ranker.sample(queries, random_state="x")


def test_a_stream_keeps_amortized_limits_and_gains_on_limits_of_each_query():
    limits, rng = DemographicParity("side", difference_bound=0.2), np.random.default_rng(3)
    stream, each = fair_ranker(limits, amortized=True), fair_ranker(limits)
    utility = np.zeros(2)
    for _ in range(30):
        query = small_queries(int(rng.integers(1 << 30)), (5,))
        for i, served in enumerate((stream, each)):
            (P,) = served.marginals(query).values()
            utility[i] += attention(5, 3) @ P @ query.relevance
        assert max(stream.accumulated_.values()) <= 1e-7
    assert stream.n_served_ == 30
    assert utility[0] > utility[1]
    before = dict(stream.accumulated_)
    evaluate_exposure(stream, small_queries(0), limits, measure=LINEAR, amortized=True)
    assert stream.accumulated_ == before
    assert stream.reset().accumulated_ == {}


def test_limits_that_no_policy_keeps_are_broken_least():
    """Document 0 of three gets at most exposure 1, so a mean of 1.2 is broken by .2 at least. The mean exposure is
    (1 + .6309 + .5) / 3."""
    queries = Queries.from_arrays([[3.0], [2.0], [1.0]], [3, 2, 1], group=[3], attributes={"side": list("abb")})
    limits = ExposureBounds("side", lower={"a": 1.2})
    ranker = fair_ranker(limits)
    with pytest.warns(ExposureWarning, match=r"limits of 1 queries; the least excess is 0\.282"):
        (P,) = ranker.marginals(queries).values()
    assert_allclose(P[0], [1.0, 0.0, 0.0], atol=1e-6)
    found = evaluate_exposure({0: P}, queries, limits, measure=LINEAR)
    assert_allclose([found.least_excess[0], found.excess[0]], 0.6 / attention(3, 3).sum(), atol=1e-6)
    assert np.isnan(found.optimum[0])
    assert np.isnan(found.bound)
    assert "no policy keeps the limits of 1 queries" in str(found)


@pytest.mark.parametrize("kind", [DisparateTreatment, DisparateImpact])
def test_scores_below_0_have_merit_0(kind):
    queries = small_queries(3, sizes=(6, 5))
    low = queries.replace(features=queries.features - 1.5)
    assert (low.features < 0).any()
    limits = kind("side", "gain", difference_bound=0.4)
    clipped = kind("side", "merit", difference_bound=0.4)
    own = low.replace(attributes={**low.attributes, "merit": np.maximum(low.features[:, 0], 0.0)})
    found, expected = fair_ranker(limits).marginals(low), fair_ranker(clipped).marginals(own)
    for query in low.query_ids:
        assert_allclose(found[query], expected[query], atol=1e-7)


def test_a_column_of_merit_that_is_named_is_no_feature():
    frame = pd.DataFrame({"qid": [0, 0, 1, 1], "relevance": [1, 0, 0, 1], "price": [1.0, 2.0, 3.0, 1.0]})
    frame = frame.assign(gender=["f", "m", "f", "m"], merit=frame.relevance + 0.5)
    assert read_table(frame).feature_names == ("price", "merit")
    read = read_table(frame, attributes=["gender", "merit"])
    assert read.feature_names == ("price",)
    served = ExposureRanker(
        RegressionRanker(target="gain").fit(read), DisparateTreatment("gender", "merit", difference_bound=2.0)
    )
    assert evaluate_exposure(served, read, served.exposure).kept.all()


def test_a_query_without_two_groups_of_merit_has_no_limits():
    queries = Queries.from_arrays(
        [[3.0], [2.0], [1.0], [0.0]], [3, 2, 1, 0], group=[2, 2], attributes={"side": ["a", "a", "a", "b"]}
    )
    found = evaluate_exposure(fair_ranker().ranker, queries, DisparateTreatment("side", "gain"), measure=LINEAR)
    assert_allclose(found.gap, 0.0, atol=1e-7)
    assert_allclose(found.excess, 0.0)


def test_limits_that_no_policy_keeps_have_no_bound():
    queries = small_queries(12)
    found = evaluate_exposure(fair_ranker().ranker, queries, ExposureBounds("side", lower=9.0), measure=LINEAR)
    first, *_, last = str(found).splitlines()
    assert first == f"{LINEAR} {found.utility.mean():.4f}"
    assert last == f"no policy keeps the limits of {len(queries)} queries"
    text = queries.replace(attributes={**queries.attributes, "merit": np.array(["much"] * queries.n_documents)})
    with pytest.raises(DataError, match="merit cannot be read"):
        evaluate_exposure(fair_ranker().ranker, text, DisparateTreatment("side", "merit"), measure=LINEAR)


def test_the_table_and_the_picture():
    queries = small_queries(12)
    found = evaluate_exposure(fair_ranker(), queries, PARITY, measure=LINEAR)
    table = found.to_frame()
    best = [(np.sort(g)[::-1][:3] @ attention(g.size, 3)) for g, _ in parts(queries)]
    assert_allclose(found.unlimited, best)
    assert (found.unlimited >= found.optimum - 1e-9).all()
    assert f"at most {found.bound:.4f} under the limits and {np.mean(best):.4f} without" in str(found)
    assert f"knows the grades, where limits are kept: {found.mean_gap:.4f}" in str(found)
    assert list(table.columns[:5]) == ["utility", "optimum", "gap", "disparity", "excess"]
    assert_allclose(table["exposure a"], table["exposure b"], atol=1e-7)
    axes = found.plot({"certain": evaluate_exposure(fair_ranker().ranker, queries, PARITY, measure=LINEAR)})
    assert axes.get_ylabel().startswith("expected DCG")
    words = ["policy", "certain, breaks limits", "proven bound under the limits"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == words
    assert [line.get_fillstyle() for line in axes.lines[:2]] == ["full", "none"]
    assert axes.get_xlim()[0] == 0


def test_utilities_of_two_policies_are_compared_by_query():
    queries = small_queries(12, sizes=(4, 5, 6, 4))
    fair, free = (
        evaluate_exposure(one, queries, PARITY, measure=LINEAR) for one in (fair_ranker(), fair_ranker().ranker)
    )
    found, values = compare(fair, free), compare(fair.utility, free.utility)
    assert found.as_dict() == values.as_dict() | {"measure": fair.measure}
    assert "on 4 queries" in str(found)
    turned = evaluate_exposure(fair_ranker().ranker, queries.select([2, 0, 3, 1]), PARITY, measure=LINEAR)
    assert_allclose(compare(fair, turned).differences, found.differences)
    fewer = evaluate_exposure(fair_ranker(), queries.select([0, 1]), PARITY, measure=LINEAR)
    with pytest.raises(DataError, match="2 queries are in one only"):
        compare(fair, fewer)
    with pytest.raises(DataError, match="their measures differ"):
        compare(fair, evaluate_exposure(fair_ranker().ranker, queries, PARITY, measure="DCG@2"))
    with pytest.raises(DataError, match="pass two of one kind"):
        compare(fair, free.utility)
    for others in ([free], {"free": 3.0}):
        with pytest.raises(OptionError, match="others"):
            fair.plot(others)


def test_gains_are_evaluated_as_they_are_trained_on():
    queries = small_queries(14)
    gains = queries.replace(relevance=None).with_gains(queries.relevance - 1.0)
    marginals = {query: np.full((3, 4), 0.25) for query in queries.query_ids}
    found = evaluate_exposure(marginals, gains, None, measure="DCG@3")
    by_hand = [attention(4, 3).sum() * (grade - 1.0).mean() for grade, _ in parts(queries)]
    assert_allclose(found.utility, by_hand)
    assert found.bound >= found.utility.mean()


def test_a_log_values_the_distribution_of_a_policy():
    sample = load_sample("digits").train.select(np.arange(8))
    log = simulate_clicks(sample, RegressionRanker().fit(sample), sessions=400, random_state=0)
    policy = PlackettLuceRanker("DCG@5", max_iter=20).fit(sample)
    shown, placements = policy.marginals(log.queries), np.zeros((log.queries.n_documents, 5))
    for query, (low, high) in zip(log.queries.query_ids, pairwise(log.queries.offsets), strict=True):
        placements[log.queries.rows[low:high]] = shown[query].T
    bias = PositionBias.from_power(1.0)
    values = [evaluate_policy(log, one, propensities=bias, measure="DCG@5").value for one in (policy, placements)]
    assert_allclose(values[0], values[1])
    with pytest.raises(OptionError, match="counts more than the 5 positions"):
        evaluate_policy(log, policy, propensities=bias, measure="DCG@6")


def test_scores_of_another_scale_are_served_alike():
    queries = small_queries(15)
    scores = RegressionRanker(alpha=0.0, normalize=None).fit([[0.0], [1.0], [3.0]], [0, 1, 3])
    served = []
    for scale in (1.0, 2.0**40, 2.0**-40):
        large = copy(scores)
        large.coef_ = scale * scores.coef_
        served.append(ExposureRanker(large, PARITY, measure=LINEAR).marginals(queries))
    for query in queries.query_ids:
        assert_allclose(served[1][query], served[0][query], atol=1e-9)
        assert_allclose(served[2][query], served[0][query], atol=1e-9)


def test_other_limits_begin_another_stream():
    queries, ranker = small_queries(16), fair_ranker(amortized=True)
    ranker.marginals(queries)
    ranker.set_params(exposure=DemographicParity("side", difference_bound=0.2)).marginals(queries)
    assert ranker.n_served_ == len(queries)
    ranker.marginals(queries)
    assert ranker.n_served_ == 2 * len(queries)


def test_an_interrupted_fit_keeps_its_last_round(monkeypatch):
    queries, draws = small_queries(17), count()
    usual = PlackettLuce.sample

    def sample(self, *args):
        if next(draws) >= 25 * len(queries):
            raise KeyboardInterrupt
        return usual(self, *args)

    monkeypatch.setattr(PlackettLuce, "sample", sample)
    with pytest.warns(TrainingInterruptedWarning):
        ranker = PlackettLuceRanker(LINEAR, max_iter=100).fit(queries)
    assert ranker.n_iter_ == 20
    assert ranker.utility_.shape == (2,)
    with pytest.raises(KeyboardInterrupt):
        PlackettLuceRanker(LINEAR, max_iter=100).fit(queries)


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (OptionError, "must be names of", lambda q: PlackettLuceRanker(exposure=DemographicParity(["a"])).fit(q)),
        (OptionError, "exposure must be a DemographicParity", lambda q: ExposureRanker(None, 3).rank(q)),
        (OptionError, "inner product", lambda q: PlackettLuceRanker("ERR").fit(q)),
        (OptionError, "inner product", lambda q: PlackettLuceRanker("AUC").fit(q)),
        (OptionError, "temperature must be", lambda q: PlackettLuceRanker(temperature=0).fit(q)),
        (OptionError, "eval_set is not used", lambda q: PlackettLuceRanker().fit(q, eval_set=q)),
        (ValueError, "ratio_bound", lambda q: evaluate_exposure({}, q, DemographicParity("side", ratio_bound=2.0))),
        (DataError, "attribute 'sex'", lambda q: PlackettLuceRanker(exposure=DemographicParity("sex")).fit(q)),
        (DataError, "attribute 'sex'", lambda q: fair_ranker(DemographicParity("sex")).rank(q)),
        (DataError, "side = 'c'; .* are 'a', 'b'", lambda q: PlackettLuceRanker(exposure=OTHERS).fit(q)),
        (DataError, "side = 'c'", lambda q: evaluate_exposure({}, q, OTHERS)),
        (DataError, "side = 'c'", lambda q: evaluate_exposure({}, q, ExposureBounds("side", lower={"c": 1.0}))),
        (DataError, "side = True, .* is 'a', 'b'", lambda q: LossRanker(Deltr("side")).fit(q)),
        (DataError, "merit must be >= 0 .* got -1. Clip", lambda q: fair_ranker(DisparateImpact("side", "m")).rank(
            q.replace(attributes={**q.attributes, "m": np.full(q.n_documents, -1.0)}))),
        (DataError, "pass attributes= 'side', 'm'", lambda q: fair_ranker(DisparateImpact("side", "m")).rank(q)),
        (OptionError, "policy must be a fitted ranker", lambda q: evaluate_exposure(3, q, PARITY)),
        (OptionError, "ranker must be a Ranker", lambda q: ExposureRanker(3, PARITY).rank(q)),
        (NotFittedError, "not fitted", lambda q: ExposureRanker(PlackettLuceRanker(), PARITY).rank(q)),
        (DataError, "these Queries have none", lambda q: evaluate_exposure({}, q.replace(relevance=None), PARITY)),
        (DataError, "no marginals of query 0", lambda q: evaluate_exposure({}, q, PARITY)),
        (DataError, r"the shape \(4, 4\)", lambda q: evaluate_exposure({0: np.eye(3), 1: np.eye(3)}, q, PARITY)),
    ],
)  # fmt: skip
def test_errors_name_the_cure(error, match, call):
    with pytest.raises(error, match=match):
        call(small_queries(13))


@pytest.mark.every(5)
@parametrize_with_checks([PlackettLuceRanker(max_iter=5, samples=4)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_groups_that_tie_share_the_positions():
    """All scores equal: a best policy that leaves parity room favors no group, for every order of rows."""
    rng = np.random.default_rng(3)
    n, side = 12, np.array(["a"] * 6 + ["b"] * 6)
    X = np.zeros((n, 1))
    ranker = RegressionRanker().fit(np.arange(4.0)[:, None], [0, 1, 2, 3], group=[4])
    loose = DemographicParity("side", ratio_bound=0.5)
    served = ExposureRanker(ranker, loose, measure="DCG@4")
    order = rng.permutation(n)
    P, again = (
        served.marginals(X[rows], group=[n], attributes={"side": side[rows]})[0] for rows in (np.arange(n), order)
    )
    assert_allclose(P[:, order], again, atol=1e-9)
    a = attention(n, 4) @ P
    assert_allclose(P.sum(axis=1), 1.0, atol=1e-7)
    assert 0.7 < a[side == "a"].sum() / a[side == "b"].sum() < 1.4  # a vertex has .5 or 2
    np.testing.assert_allclose(a[side == "a"], a[:6].mean(), atol=1e-7)
