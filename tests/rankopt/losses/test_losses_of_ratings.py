"""The ordinal, the preference and the squared loss: against the sum over all pairs, and trained on queries."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from problems.training import made
from scipy.optimize import minimize

from rankopt.errors import OptionError
from rankopt.losses import get_loss
from rankopt.losses.loss import SquaredError
from rankopt.losses.pairwise import OrdinalHinge, PairwiseHinge, count_costs
from rankopt.losses.preferences import PreferenceHinge, PreferencePairs, sum_gains
from rankopt.rankers import LossRanker
from rankopt.testing import check_loss

OWN_COST = {
    "difference": lambda low, high: high - low,
    "one": lambda low, high: 1.0,
    "own": lambda low, high: np.abs(high * high - low) + 0.5,
}


def lists(seed, sizes=(1, 4, 9, 0, 30, 2), grades=5, whole=False):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.normal(size=offsets[-1]) * 2
    relevance = rng.integers(1, grades + 1, offsets[-1]).astype(float)
    return relevance, offsets, np.round(scores) if whole else scores


def by_pairs(relevance, offsets, scores, cost):
    """The paper's sum, pair by pair: values and subgradients; 0 at the kink."""
    value, slope = np.zeros(offsets.size - 1), np.zeros(scores.size)
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        pairs = [(i, j) for i in range(low, high) for j in range(low, high) if relevance[i] < relevance[j]]
        for i, j in pairs:
            here = cost(relevance[i], relevance[j]) / len(pairs)
            value[q] += here * max(0.0, 1.0 + scores[i] - scores[j])
            violated = here if scores[j] - scores[i] < 1.0 else 0.0
            slope[i], slope[j] = slope[i] + violated, slope[j] - violated
    return value, slope


def agrees(loss, relevance, offsets, scores, cost):
    value, slope = by_pairs(relevance, offsets, scores, cost)
    here = loss.at(scores)
    np.testing.assert_allclose(here.value, value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(here.assigned - here.reference, slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("cost", OWN_COST)
def test_the_sweep_is_the_sum_over_all_pairs(cost, whole):
    for seed in range(5):
        relevance, offsets, scores = lists(seed, whole=whole)
        given = OWN_COST["own"] if cost == "own" else cost
        agrees(OrdinalHinge(relevance, offsets, given), relevance, offsets, scores, OWN_COST[cost])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.filterwarnings("ignore::rankopt.errors.LargeGainWarning")
@pytest.mark.parametrize("gain", ["exponential", "linear", np.sqrt])
def test_differences_of_gains_are_the_sum_over_all_pairs(gain, whole):
    of = {"exponential": lambda y: 2.0**y - 1, "linear": lambda y: y}.get(gain, gain)
    for seed in range(5):
        relevance, offsets, scores = lists(seed, grades=5 if seed else 40, whole=whole)
        agrees(
            PreferenceHinge(relevance, offsets, gain), relevance, offsets, scores, lambda low, high: of(high) - of(low)
        )


def test_pairs_one_by_one_are_those_of_the_gains_and_may_contradict_each_other():
    relevance, offsets, scores = lists(3)
    query = np.repeat(np.arange(6), np.diff(offsets))
    worse, better = np.nonzero((query[:, None] == query) & (relevance[:, None] < relevance))
    cost = 2.0 ** relevance[better] - 2.0 ** relevance[worse]
    listed = PreferenceHinge(relevance, offsets, pairs=PreferencePairs(worse, better, cost))
    implied = PreferenceHinge(relevance, offsets)
    for one, other in ((listed, implied), (listed.select_queries(1, 5), implied.select_queries(1, 5))):
        here, there = (loss.at(scores[1:44] if one is not listed else scores) for loss in (one, other))
        np.testing.assert_allclose(here.value, there.value, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(here.assigned, there.assigned, rtol=1e-12, atol=1e-13)
    circle = PreferenceHinge(np.zeros(3), np.array([0, 3]), pairs=([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0]))
    assert circle.at(np.zeros(3)).value == pytest.approx([2.0])
    assert circle.at(np.array([0.0, 1.0, 3.0])).value == pytest.approx([(0 + 0 + 3 * 4) / 3])


def test_one_is_the_pairwise_hinge_and_the_two_losses_meet():
    relevance, offsets, scores = lists(4, sizes=(3, 12, 6))
    relevance[offsets[:-1]], relevance[offsets[:-1] + 1] = 1.0, 5.0
    one, pair = OrdinalHinge(relevance, offsets, "one").at(scores), PairwiseHinge(relevance, offsets).at(scores)
    np.testing.assert_allclose(one.value, pair.value, rtol=1e-14)
    np.testing.assert_allclose(one.assigned, pair.assigned, rtol=0, atol=1e-15)
    ordinal = OrdinalHinge(relevance, offsets).at(scores)
    linear = PreferenceHinge(relevance, offsets, "linear").at(scores)
    np.testing.assert_allclose(ordinal.value, linear.value, rtol=1e-13)


@pytest.mark.parametrize("kernel", [count_costs, sum_gains])
def test_compiled_and_in_python_the_bits_are_the_same(kernel):
    relevance, offsets, scores = lists(5, sizes=(40, 3, 70), grades=7)
    above, below = np.zeros((2, 113)), np.zeros((2, 113))
    ordinal, gains = OrdinalHinge(relevance, offsets), PreferenceHinge(relevance, offsets, np.sqrt)
    given = (
        (*ordinal.kinds, ordinal.table, 7, offsets) if kernel is count_costs else (gains.level, gains.gains, offsets)
    )
    for way, run in enumerate((kernel, kernel.in_python)):
        run(scores, *given, 0, 3, above[way], below[way])
    np.testing.assert_array_equal(above[0], above[1])
    np.testing.assert_array_equal(below[0], below[1])


OWN = [
    partial(OrdinalHinge, cost=OWN_COST["own"]),
    partial(OrdinalHinge, cost="one"),
    partial(PreferenceHinge, gain="linear"),
    PreferenceHinge.by(lambda y: (*np.nonzero(y[:, None] + 1 == y), np.ones(int((y[:, None] + 1 == y).sum())))),
]


@pytest.mark.parametrize("build", OWN)
def test_with_options_they_are_losses_too(build):
    check_loss(build)


def test_gradients_are_those_of_differences():
    relevance, offsets, scores = lists(6)
    along = np.random.default_rng(7).normal(size=scores.size)
    for name in ("ordinal", "preferences", "squared"):
        loss = get_loss(name)(relevance, offsets)
        up, down = (loss.at(scores + step * along).value.sum() for step in (1e-7, -1e-7))
        assert (up - down) / 2e-7 == pytest.approx(loss.at(scores).assigned @ along, rel=1e-6)


def test_a_list_with_nothing_to_order_costs_nothing():
    relevance, offsets = np.array([3.0, 4.0, 4.0]), np.array([0, 0, 1, 3])
    for name in ("ordinal", "preferences"):
        here = get_loss(name)(relevance, offsets).at(np.array([5.0, -1.0, 2.0]))
        assert here.value.tolist() == [0.0, 0.0, 0.0]
        assert here.assigned.tolist() == [0.0, 0.0, 0.0]


def test_regression_reaches_the_ridge_of_the_normal_equations():
    X, y, qid = made(queries=12)
    ranker = LossRanker("squared", lam=2.0, tol=1e-8).fit(X, y, qid=qid)
    used = np.isin(qid, [q for q in np.unique(qid) if np.ptp(y[qid == q]) > 0])
    rows, m = X[used], np.unique(qid[used]).size
    ridge = np.linalg.solve(rows.T @ rows / m + 2.0 * np.eye(X.shape[1]), rows.T @ y[used] / m)
    np.testing.assert_allclose(ranker.coef_, ridge, atol=1e-4)
    assert ranker.certificate_.kind == "global"


@pytest.mark.parametrize("name", ["ordinal", "preferences"])
def test_training_closes_the_gap_on_queries(name):
    X, y, qid = made(queries=12)
    ranker = LossRanker(name, lam=0.1, tol=1e-4).fit(X, y, qid=qid)
    blocks = [(X[qid == q], y[qid == q]) for q in np.unique(qid) if np.ptp(y[qid == q]) > 0]
    cost = {"ordinal": lambda a, b: b - a, "preferences": lambda a, b: 2.0**b - 2.0**a}[name]

    def objective(w):
        each = [by_pairs(g, np.array([0, len(g)]), rows @ w, cost)[0][0] for rows, g in blocks]
        return 0.05 * w @ w + np.mean(each)

    best = minimize(objective, ranker.coef_, method="Nelder-Mead", options={"maxfev": 300}).fun
    assert ranker.certificate_.primal == pytest.approx(objective(ranker.coef_), rel=1e-12)
    assert ranker.certificate_.bound <= best + 1e-12
    assert ranker.certificate_.primal <= best * (1 + 1e-4) + 1e-12


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (partial(OrdinalHinge, cost="two"), "cost = 'two' is unknown"),
        (partial(OrdinalHinge, cost=lambda low, high: low - high), "must be 0 or more"),
        (partial(PreferenceHinge, gain="log"), "gain = 'log' is unknown"),
        (partial(PreferenceHinge, gain=np.negative), "non-decreasing"),
        (partial(PreferenceHinge, pairs=([0], [4], [1.0])), "different queries"),
        (partial(PreferenceHinge, pairs=([0], [9], [1.0])), "rows from 0 to 5"),
        (partial(PreferenceHinge, pairs=([0], [1], [-1.0])), "0 or more"),
        (partial(PreferenceHinge, pairs=([0, 1], [1], [1.0])), "same length"),
    ],
)
def test_what_is_no_cost_is_refused(loss, message):
    with pytest.raises(OptionError, match=message):
        loss(np.array([1.0, 2.0, 0.0, 1.0, 2.0, 0.0]), np.array([0, 3, 6])).at(np.zeros(6))


def test_too_many_grades_for_a_table_are_refused_with_the_loss_that_takes_them():
    relevance, offsets = np.linspace(0, 1, 1100), np.array([0, 1100])
    with pytest.raises(OptionError, match="use loss 'preferences'"):
        OrdinalHinge(relevance, offsets).at(np.zeros(1100))
    assert PreferenceHinge(relevance, offsets).at(np.zeros(1100)).value[0] > 0


def test_the_squared_error_is_its_tangents():
    rng = np.random.default_rng(8)
    relevance, offsets, scores = lists(8, sizes=(3, 5))
    loss = SquaredError(relevance, offsets)
    here, other = loss.at(scores), rng.normal(size=8)
    below = here.height + np.add.reduceat(here.assigned * other, offsets[:-1])
    gap = np.add.reduceat(0.5 * (other - scores) ** 2, offsets[:-1])
    np.testing.assert_allclose(loss.at(other).value - below, gap, rtol=1e-10)
