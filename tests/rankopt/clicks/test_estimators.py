"""Gains from clicks: unbiased by enumeration, bounds of the true regret in expectation, values of other rankers."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rankopt.clicks import ClickLog, PositionBased, PositionBias, TrustBias, evaluate_policy, simulate_clicks
from rankopt.data import Queries, load_sample, save_queries
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.losses import ScoreLoss
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker

RELEVANCE = np.array([0.2, 0.9, 0.5])
BIASES = {
    "position": PositionBased([0.9, 0.6, 0.3]).position_bias(2),
    "trust": TrustBias([0.9, 0.6, 0.3], relevant=0.9, irrelevant=[0.4, 0.2, 0.1]).position_bias(2),
}


class Predicted:
    """A regressor that has learned nothing: any m leaves the doubly robust estimate unbiased."""

    def __init__(self, value=0.37):
        self.value = value

    def get_params(self, deep=True):
        return {"value": self.value}

    def set_params(self, **params):
        return self

    def fit(self, X, y, sample_weight=None):
        return self

    def predict(self, X):
        return np.full(len(X), self.value)


def outcomes(policy, bias):
    """Every list and pattern of clicks of one session of one query, its probability and its log. policy: {order:
    probability}. A second query, always shown in one order and never clicked, gives m a part to learn from."""
    placements = np.zeros((6, 2))
    for order, probability in policy.items():
        placements[list(order[:2]), [0, 1]] += probability
    placements[[3, 4], [0, 1]] = 1.0
    queries = Queries.from_arrays(np.arange(12.0).reshape(6, 2), qid=[0, 0, 0, 1, 1, 1], documents=list("abcdef"))
    for order, probability in policy.items():
        rates = bias.propensities * RELEVANCE[list(order[:2])] + bias.trust
        for clicks in product((0, 1), repeat=2):
            rows = np.array([*order[:2], 3, 4])
            log = ClickLog(
                queries, rows, np.array([1, 2, 1, 2]), np.ones(4, int), np.array([*clicks, 0, 0]), np.ones(2, int),
                placements,
            )  # fmt: skip
            yield probability * np.prod(np.where(clicks, rates, 1 - rates)), log


POLICIES = {
    "two rankers": {(0, 1, 2): 0.5, (1, 0, 2): 0.5},
    "all orders": dict(zip(permutations(range(3)), np.array([5, 1, 2, 4, 3, 6]) / 21, strict=True)),
}


@pytest.mark.parametrize("kind", BIASES)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("estimator", ["ips", "dr"])
def test_gains_are_unbiased_where_documents_are_shown(policy, kind, estimator):
    expected, total = np.zeros(3), 0.0
    for probability, log in outcomes(POLICIES[policy], BIASES[kind]):
        options = {"model": Predicted(), "folds": 2} if estimator == "dr" else {}
        expected += probability * log.gains(BIASES[kind], estimator, **options).relevance[:3]
        total += probability
    assert_allclose(total, 1.0)
    without = RELEVANCE.copy()
    if policy == "two rankers":  # which never show document 2
        without[2] = 0.37 if estimator == "dr" else 0.0
    assert_allclose(expected, without, atol=1e-12)


def test_clicks_divided_by_the_propensity_of_their_position_are_biased_under_a_cutoff():
    expected, bias = np.zeros(3), BIASES["position"]
    for probability, log in outcomes(POLICIES["all orders"], bias):
        for row, position, click in zip(log.rows[:2], log.positions[:2], log.clicked[:2], strict=True):
            expected[row] += probability * click / bias.propensities[position - 1]
    assert (expected < RELEVANCE - 0.05).all()


@pytest.mark.parametrize("kind", BIASES)
@pytest.mark.parametrize("bound", ["convex", "tie-aware", "nonconvex"])
@pytest.mark.parametrize("estimator", ["ips", "dr"])
def test_the_expected_bound_is_above_the_regret(bound, kind, estimator, rng):
    loss = ScoreLoss("DCG(gain='linear')@2", bound=bound)
    scores = rng.normal(size=(20, 3))
    options = {"model": Predicted(), "folds": 2} if estimator == "dr" else {}
    expected = np.zeros(20)
    for probability, log in outcomes(POLICIES["all orders"], BIASES[kind]):
        bound_of = loss.bind(log.gains(BIASES[kind], estimator, **options).relevance[:3], offsets=[0, 3])
        expected += probability * np.array([bound_of.at(s).value[0] for s in scores])
    true = loss.bind(RELEVANCE, offsets=[0, 3])
    value = np.array([true.at(s).value[0] for s in scores])
    regret = np.array([best_dcg(RELEVANCE, 2) - dcg_of(s, RELEVANCE, 2) for s in scores])
    assert (value >= regret - 1e-12).all()
    assert (expected >= regret - 1e-12).all()
    if bound == "nonconvex":  # convex in the gains too
        assert (expected >= value - 1e-12).all()


def dcg_of(scores, gains, k):
    order = np.argsort(-scores)[:k]
    return float(gains[order] @ (1 / np.log2(np.arange(2, order.size + 2))))


def best_dcg(gains, k):
    discount = np.zeros(gains.size)
    discount[: min(k, gains.size)] = 1 / np.log2(np.arange(2, min(k, gains.size) + 2))
    return max(float(discount @ gains[list(order)]) for order in permutations(range(gains.size)))


@pytest.mark.parametrize("k", [1, 2, 10])
def test_bounds_of_gains_of_any_sign_are_those_of_all_orders(k, rng):
    for _ in range(60):
        n = int(rng.integers(2, 7))
        gains, scores = rng.normal(size=n).round(int(rng.integers(1, 9))), rng.normal(size=n)
        discount = np.where(np.arange(n) < k, 1 / np.log2(np.arange(2, n + 2)), 0.0)
        weights = (np.arange(n) + 1.0) ** -0.5
        orders = [list(order) for order in permutations(range(n))]
        best = max(discount @ gains[order] for order in orders)
        top = max(weights @ scores[order] - discount @ gains[order] for order in orders) + best
        sorted_scores = weights @ np.sort(scores)[::-1]
        found = ScoreLoss(f"DCG(gain='linear')@{k}").bind(gains, offsets=[0, n])
        if best - min(discount @ gains[order] for order in orders) > 0:
            assert_allclose(found.at(scores).value[0], top - sorted_scores, atol=1e-12)


def test_clipped_and_self_normalized_gains():
    queries = Queries.from_arrays(np.eye(4), qid=[0, 0, 1, 1], documents=list("abcd"))
    log = ClickLog(
        queries, np.array([0, 1, 2]), np.array([1, 2, 1]), np.array([4, 4, 2]), np.array([2, 1, 2]), np.array([4, 2])
    )
    bias = PositionBias([1.0, 0.25])
    assert_allclose(log.gains(bias).relevance, [0.5, 1.0, 1.0, 0.0])
    least = np.quantile([1.0, 0.25, 1.0], 0.5)
    clipped = log.gains(bias, "clipped", clip=0.5).relevance
    assert_allclose(clipped, [0.5, 0.25 / least, 1.0, 0.0])
    mean = np.mean([1.0, 0.25 / least])
    assert_allclose(log.gains(bias, "snips", clip=0.5).relevance, [0.5 / mean, 0.25 / least / mean, 1.0, 0.0])


@pytest.fixture(scope="module")
def digits():
    queries = load_sample("digits").train
    return queries.replace(document_ids=tuple(range(queries.n_documents)))


@pytest.fixture(scope="module")
def log(digits):
    random = np.random.default_rng(3)
    return simulate_clicks(digits, [random.normal(size=digits.n_documents) for _ in range(30)], sessions=30_000)


def test_values_of_other_rankers_are_estimated(digits, log):
    bias, scores = PositionBias.from_power(1.0), digits.features[:, 0] + 0.01 * np.arange(digits.n_documents) % 1
    found = evaluate_policy(log, scores, propensities=bias)
    gains = log.gains(bias)
    assert_allclose(found.value, np.average(
        evaluate(gains, scores, "DCG(gain='linear')@10").values[0], weights=log.sessions
    ))  # fmt: skip
    assert found.low < found.value < found.high
    assert_allclose(found.per_query.mean(), found.value)
    assert 0 < found.effective_sample_size <= log.shown.sum()
    known = np.isin(np.arange(digits.n_documents), log.rows)
    support = evaluate(digits.with_gains(known), scores, "DCG(gain='linear')@10").values[0]
    best = (1 / np.log2(np.arange(2, 12))).sum()
    assert_allclose(found.without_support, 1 - np.average(support, weights=log.sessions) / best)
    precision = evaluate_policy(log, scores, "P@3", propensities=bias).value
    placements = np.zeros((digits.n_documents, 3))
    for q in range(len(digits)):
        own = digits.rows[digits.offsets[q] : digits.offsets[q + 1]]
        placements[own[np.argsort(-scores[own])[:3]], [0, 1, 2]] = 1
    assert_allclose(evaluate_policy(log, placements, "P@3", propensities=bias).value, precision)


@pytest.mark.parametrize("estimator", ["ips", "clipped", "snips", "dr"])
def test_the_value_of_the_logging_ranker_is_its_click_rate_and_nothing_depends_on_the_order_of_rows(estimator, rng):
    queries = load_sample("les-miserables").train
    queries = queries.replace(document_ids=tuple(range(queries.n_documents)))
    order = rng.permutation(queries.n_documents)
    shuffled = Queries.from_arrays(
        queries.features[order], queries.relevance[order], qid=queries.qid[order], documents=order.tolist()
    )
    scores, bias = queries.features.sum(axis=1) + np.arange(queries.n_documents) / 1e4, PositionBias.from_power(1.0)
    values = []
    for one, own in ((queries, scores), (shuffled, scores[order])):
        log = simulate_clicks(one, own, sessions=3000)
        values.append(evaluate_policy(log, own, propensities=bias, estimator=estimator, clip=0.0))
        if estimator != "dr":
            rates = log.clicked / log.sessions_of_row[log.rows] / bias.at(log.positions) / np.log2(log.positions + 1)
            per = np.bincount(one.query_of(log.rows), rates, len(one))
            assert_allclose(values[-1].value, np.average(per, weights=log.sessions), rtol=1e-9)
            assert values[-1].without_support == 0
    assert_allclose(values[0].value, values[1].value, rtol=1e-9)
    assert_allclose(values[0].high, values[1].high, rtol=1e-9)


def test_the_share_without_support_is_counted():
    queries = Queries.from_arrays(np.eye(3), qid=[0, 0, 0], documents=list("abc"))
    log = ClickLog(queries, np.array([0]), np.array([1]), np.array([8]), np.array([4]), np.array([8]))
    half = evaluate_policy(log, [3.0, 2.0, 1.0], "P@2", propensities=PositionBias([1.0]), estimator="snips")
    assert_allclose((half.value, half.without_support), (0.5, 0.5))
    assert half.measure == "P@2"


@pytest.mark.parametrize("estimator", ["ips", "clipped", "snips", "dr"])
def test_nothing_is_said_of_a_ranker_whose_documents_no_one_could_see(estimator):
    queries = Queries.from_arrays(np.eye(6), qid=[0, 0, 0, 1, 1, 1], documents=list("abcdef"))
    log = ClickLog(queries, [0, 3, 1, 4], [1, 1, 2, 2], [8] * 4, [4, 2, 0, 0], [8, 8])
    for second, scores in ((0.0, [0, 1, 0, 0, 1, 0]), (0.5, [0, 0, 1, 0, 0, 1])):  # at propensity 0, and never shown
        with pytest.raises(DataError, match="was shown in the log at a position with a propensity above 0"):
            evaluate_policy(log, scores, "P@1", propensities=PositionBias([1.0, second]), estimator=estimator)
    none = replace(log, clicked=np.zeros(4))
    found = evaluate_policy(none, np.arange(6.0)[::-1], propensities=PositionBias([1.0, 0.5]), estimator=estimator)
    assert found.value == 0
    assert np.isnan([found.low, found.high]).all()


def test_what_is_refused(log, digits):
    bias = PositionBias.from_power(1.0)
    with pytest.raises(MeasureError, match=r"nDCG@10 is not linear in the gains .* measure='DCG@10'"):
        evaluate_policy(log, np.zeros(digits.n_documents), "nDCG@10", propensities=bias)
    with pytest.raises(DataError, match="propensities for 5 positions"):
        log.gains(PositionBias.from_power(1.0, 5))
    with pytest.raises(OptionError, match="estimator must be"):
        log.gains(bias, "mean")
    with pytest.raises(DataError, match="scores must be"):
        evaluate_policy(log, np.zeros(3), propensities=bias)
    for share in (np.nan, 2.0):
        with pytest.raises(DataError, match="placements must be probabilities, from 0 to 1"):
            evaluate_policy(log, np.full((digits.n_documents, 1), share), propensities=bias)
    with pytest.raises(DataError, match="this log has one query"):
        log.select([0]).gains(bias, "dr")
    assert np.isfinite(log.select([0, 1]).gains(bias, "dr").relevance).all()  # as many parts as queries
    with pytest.raises(MeasureError, match="grade -1"):
        evaluate(np.array([-1.0, 2.0]), np.array([1.0, 2.0]), "nDCG(gain='linear')")


@pytest.mark.study
@pytest.mark.parametrize("kind", [PositionBased(), TrustBias()])
def test_a_million_clicks_give_the_relevance(kind, digits):
    random = np.random.default_rng(0)
    few = digits.select(np.arange(4))
    rankers = [random.normal(size=few.n_documents) for _ in range(40)]
    log = simulate_clicks(few, rankers, kind, sessions=1_000_000)
    truth = few.with_gains(0.1 + 0.9 * (2.0**few.relevance - 1) / (2.0 ** few.relevance.max() - 1))
    gains = log.gains(kind.position_bias(10)).relevance
    spread = np.sqrt(np.mean((gains - truth.relevance) ** 2))
    scores = few.features[:, 0]
    found = evaluate_policy(log, scores, propensities=kind.position_bias(10))
    assert spread < 0.1
    assert_allclose(
        found.value, np.average(evaluate(truth, scores, "DCG(gain='linear')@10").values[0], weights=log.sessions),
        rtol=0.02,
    )  # fmt: skip


@pytest.mark.study
def test_doubly_robust_estimates_vary_less_under_a_stochastic_ranker(digits):
    few, bias = digits.select(np.arange(8)), PositionBias.from_power(1.0)
    scores = few.features[:, 0]
    values = {"ips": [], "dr": []}
    for seed in range(30):
        log = simulate_clicks(few, scores, sessions=2000, temperature=0.5, random_state=seed)
        for estimator, found in values.items():
            found.append(evaluate_policy(log, -scores, propensities=bias, estimator=estimator).value)
    assert np.var(values["dr"]) < np.var(values["ips"])


def test_gains_of_a_selection_are_those_of_the_log(log):
    bias, chosen = PositionBias.from_power(1.0), [5, 2]
    part, every = log.select(chosen), log.gains(bias)
    wanted = every.select(chosen)
    assert_array_equal(part.gains(bias).relevance, wanted.relevance)
    assert part.queries.query_ids == wanted.query_ids


def test_gains_are_measured_linearly_or_not_at_all(digits, tmp_path):
    gains = digits.with_gains(np.linspace(-1, 1, digits.n_documents))
    scores = np.random.default_rng(0).permutation(digits.n_documents).astype(float)  # without ties
    values = evaluate(gains, scores, ["DCG@10", "P@3", "WTA"])
    first = gains.relevance[[own[np.argmax(scores[own])] for own in np.split(digits.rows, digits.offsets[1:-1])]]
    assert_allclose(values.values[2], first)
    assert [repr(one) for one in values.measures] == ["DCG(gain='linear')@10", "P@3", "WTA"]
    for row, name in enumerate(("DCG@10", "P@3", "WTA")):
        assert_array_equal(values[name], values.values[row])
    few = gains.select([0, 1, 2])
    ranker = LargeMarginRanker("P@3").fit(few)
    assert ranker.bound_tightness(few).measure == "P@3"
    assert list(ranker.evaluate(few).to_frame()) == ["P@3"]
    for measure in ("nDCG@10", "AP", "ERR", "P(rel=2)@3", "AP + DCG@10"):
        with pytest.raises(MeasureError, match="not linear in the gains"):
            evaluate(gains, scores, measure)
    assert "gains -1 to 1" in str(gains)
    with pytest.raises(DataError, match="gains are estimates and are not stored"):
        save_queries(gains, tmp_path / "folder")


def test_estimates_do_not_depend_on_the_order_of_records_to_the_last_bit(shuffled):
    bias = PositionBias([1.0, 0.53, 0.31, 0.27, 0.19], trust=[0.03, 0.02, 0.01, 0.0, 0.0])
    one, two, row = shuffled
    assert not np.array_equal(row, np.arange(row.size))
    shares = np.zeros((row.size, 5))
    np.add.at(shares, (one.rows, one.positions - 1), one.shown / one.sessions_of_row[one.rows])
    known = 0.7 * shares + 0.3 * (shares > 0) / 13  # another policy that shows the same documents
    other = np.zeros_like(known)
    other[row] = known
    for first, second in ((one, two), (replace(one, placements=known), replace(two, placements=other))):
        for estimator in ("ips", "clipped", "snips", "dr"):
            gains = [log.gains(bias, estimator).relevance for log in (first, second)]
            assert_array_equal(gains[0], gains[1][row])
            same = np.array_equal(gains[0], first.gains(bias).relevance)
            assert same == (estimator == "ips" or (estimator == "dr" and first is one))
    hidden = replace(two, placements=other)
    m = hidden.predicted(bias)
    rho, seen = other @ bias.propensities, hidden.exposure(bias, policy=False)
    clicks = hidden.gains(bias).relevance * rho
    expected = np.divide(clicks - seen * m, rho, out=np.zeros_like(m), where=rho > 0) + m
    assert_allclose(hidden.gains(bias, "dr").relevance, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({(0, 0): -0.1}, "must be probabilities, from 0 to 1; row 0"),
        ({(2, 1): 1.1}, "must be probabilities, from 0 to 1; row 2"),
        ({(2, 1): np.nan}, "must be probabilities, from 0 to 1; row 2"),
        ({(1, 1): 0.9}, "of a document must sum to 1 at most; row 1 has 1.4"),
        ({(3, 0): 0.5}, "a position must sum to 1 at most in a query; query 'b' has 1.5 at position 1"),
    ],
)
def test_placements_that_no_policy_has(change, text):
    queries = Queries.from_arrays(np.eye(4), qid=list("abab"), documents=range(4))  # rows of queries alternate
    P = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    log = ClickLog(queries, [0, 2, 1, 3], [1, 2, 2, 1], [4] * 4, [2, 1, 1, 1], [4, 4])
    assert evaluate_policy(replace(log, placements=P), P, propensities=PositionBias([1.0, 0.5])).value > 0
    for at, value in change.items():
        P[at] = value
    P[1, 0] += 0.5 * (change == {(3, 0): 0.5})
    P[1, 1] -= 0.5 * (change == {(3, 0): 0.5})
    with pytest.raises(DataError, match=text):
        replace(log, placements=P)
    with pytest.raises(DataError, match=text):
        evaluate_policy(log, P, propensities=PositionBias([1.0, 0.5]))


def test_names_of_measures_and_refused_rankers(log, digits):
    bias, scores = PositionBias.from_power(1.0), digits.features[:, 0]
    for measure, name in (("P@3", "P@3"), ("WTA", "WTA"), ("DCG@5", "DCG(gain='linear')@5")):
        assert evaluate_policy(log, scores, measure, propensities=bias).measure == name
    with pytest.raises(MeasureError, match=r"RBP\(p=0.8\)@3 is not supported with gains"):
        evaluate_policy(log, scores, "RBP@3", propensities=bias)
    with pytest.raises(OptionError, match="ranker cannot be None"):
        evaluate_policy(log, None, propensities=bias)
    with pytest.raises(DataError, match="finite numbers, one a row; got nan"):
        evaluate_policy(log, np.where(scores == scores[0], np.nan, scores), propensities=bias)
