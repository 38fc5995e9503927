"""Listwise losses: the formulas of their papers written out, their limits, and global optima of the convex ones."""

from functools import partial
from itertools import pairwise, permutations
from math import exp, log, log2
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems.training import made
from scipy.optimize import minimize

from rankopt import Queries
from rankopt.errors import DataError, OptionError
from rankopt.losses import ApproxNDCG, Deltr, LambdaLoss, ListMLE, ListNet, NeuralNDCG, get_loss
from rankopt.measures import evaluate
from rankopt.rankers import LossRanker
from rankopt.testing import check_loss


def listnet(s, y):
    p = [exp(a) / sum(map(exp, y)) for a in y]
    return -sum(p[j] * log(exp(s[j]) / sum(map(exp, s))) for j in range(len(s)))


def plackett_luce(s, order):
    """log of the probability that an urn of weights exp(s) is emptied in this order."""
    return sum(s[j] - log(sum(exp(s[i]) for i in order[place:])) for place, j in enumerate(order))


def listmle(s, y):
    total = 0.0
    for j in range(len(s)):
        if y[j] > min(y):
            total += log(sum(exp(s[i]) for i in range(len(s)) if y[i] <= y[j])) - s[j]
    return total


def gains(y):
    ideal = sum((2**a - 1) / log2(i + 2) for i, a in enumerate(sorted(y, reverse=True)))
    return [(2**a - 1) / ideal for a in y]


def lambdaloss(s, y, T):
    G, D = gains(y), lambda i: log2(1 + i)
    rank = {j: i + 1 for i, j in enumerate(sorted(range(len(s)), key=lambda j: -s[j]))}
    total = 0.0
    for i in range(len(s)):
        for j in range(len(s)):
            if y[i] > y[j]:
                d = abs(rank[i] - rank[j])
                delta = abs(1 / D(d) - 1 / D(d + 1))
                total -= delta * abs(G[i] - G[j]) * log2(1 / (1 + exp(-(s[i] - s[j]) / T)))
    return total


def approx_ndcg(s, y, T):
    G, n = gains(y), len(s)
    total = 1.0
    for j in range(n):
        position = 1 + sum(exp(-(s[j] - s[i]) / T) / (1 + exp(-(s[j] - s[i]) / T)) for i in range(n) if i != j)
        total -= G[j] / log2(1 + position)
    return total


def neural_ndcg(s, y, T):
    n = len(s)
    A = np.array([[abs(a - b) for b in s] for a in s])
    P = np.zeros((n, n))
    for i in range(1, n + 1):
        logits = ((n + 1 - 2 * i) * np.array(s) - A @ np.ones(n)) / T
        P[i - 1] = np.exp(logits) / np.exp(logits).sum()
    for _ in range(30):
        P = P / P.sum(axis=0)
        P = P / P.sum(axis=1)[:, None]
    return 1 - sum(value / log2(i + 2) for i, value in enumerate(P @ gains(y)))


SMOOTH = {"lambdaloss": lambdaloss, "approx-ndcg": approx_ndcg, "neural-ndcg": neural_ndcg}
PAPERS = {"listnet": listnet, "listmle": listmle} | {name: partial(loss, T=0.7) for name, loss in SMOOTH.items()}


def queries(seed, m=6, largest=7):
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(rng.integers(2, largest + 1, m)))
    relevance = rng.integers(0, 4, offsets[-1]).astype(float)
    relevance[offsets[:-1]] = 4.0  # there is something to order
    return relevance, offsets, rng.normal(size=offsets[-1])


def evaluated(name, relevance, offsets, scores):
    """Values and slopes."""
    if name in SMOOTH:
        found = get_loss(name)(relevance, offsets, temperature=0.7).gradient(scores)
        return found.value, found.slope
    found = get_loss(name)(relevance, offsets).at(scores)
    return found.value, found.assigned - found.reference


@pytest.mark.parametrize("name", PAPERS)
def test_values_are_the_formula_and_slopes_its_differences(name):
    for seed in range(3):
        relevance, offsets, scores = queries(seed)
        value, slope = evaluated(name, relevance, offsets, scores)
        for q, (low, high) in enumerate(pairwise(offsets.tolist())):
            s, y = scores[low:high], relevance[low:high].tolist()
            assert value[q] == pytest.approx(PAPERS[name](s.tolist(), y), rel=1e-12, abs=1e-12)
            for j, step in enumerate(1e-6 * np.eye(s.size)):
                ends = [PAPERS[name]((s + sign * step).tolist(), y) for sign in (1.0, -1.0)]
                assert slope[low + j] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", PAPERS)
def test_queries_without_documents_have_no_loss_and_do_not_count(name):
    relevance, scores = np.array([0.0, 2.0, 1.0, 0.0, 1.0]), np.random.default_rng(0).normal(size=5)
    value, slope = evaluated(name, relevance, np.array([0, 3, 5]), scores)
    padded, same = evaluated(name, relevance, np.array([0, 0, 3, 3, 5, 5]), scores)
    assert_array_equal(padded, [0.0, value[0], 0.0, value[1], 0.0])
    assert_array_equal(same, slope)


@pytest.mark.parametrize("name", PAPERS)
def test_a_constant_added_to_the_scores_of_a_query_changes_nothing(name):
    relevance, offsets, scores = queries(5)
    value, slope = evaluated(name, relevance, offsets, scores)
    moved = scores + np.repeat(np.arange(offsets.size - 1.0), np.diff(offsets))
    assert_allclose(evaluated(name, relevance, offsets, moved)[0], value, rtol=1e-12, atol=1e-12)
    assert_allclose(np.add.reduceat(slope, offsets[:-1]), 0.0, atol=1e-12)


def test_listmle_of_large_scores_is_that_of_their_differences():
    relevance, offsets, scores = queries(6)
    scores = np.round(8.0 * scores) / 8.0
    value, slope = evaluated("listmle", relevance, offsets, scores)
    far, same = evaluated("listmle", relevance, offsets, scores + 2.0**40)  # exact sums
    assert_allclose(far, value, rtol=1e-12)
    assert_allclose(same, slope, atol=1e-12)
    for scale in (1e12, 1e300):
        slope = evaluated("listmle", relevance, offsets, scale * scores)[1]
        assert_allclose(np.add.reduceat(slope, offsets[:-1]), 0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_listmle_bounds_the_likelihood_of_the_grades_and_is_it_without_ties(seed):
    rng = np.random.default_rng(seed)
    scores, grades = rng.normal(size=5), rng.permutation(5).astype(float)
    (value,), _ = evaluated("listmle", grades, np.array([0, 5]), scores)
    assert value == pytest.approx(-plackett_luce(scores, np.argsort(-grades)), rel=1e-12)
    grades = np.append(2.0, rng.integers(0, 3, 4))
    orders = [order for order in permutations(range(5)) if (np.diff(grades[list(order)]) <= 0).all()]
    (value,), _ = evaluated("listmle", grades, np.array([0, 5]), scores)
    assert value >= -np.log(sum(np.exp(plackett_luce(scores, order)) for order in orders)) - 1e-12


@pytest.mark.parametrize("name", ["approx-ndcg", "neural-ndcg"])
def test_at_temperature_0_the_loss_is_what_ndcg_lacks_of_1(name):
    relevance, offsets, _ = queries(7)
    scores = np.random.default_rng(7).permutation(relevance.size).astype(float)
    found = get_loss(name)(relevance, offsets).gradient(scores, 1e-3).value
    reached = evaluate(relevance, scores, "nDCG", group=np.diff(offsets)).per_query("nDCG")
    assert_allclose(found, 1.0 - np.ravel(reached), atol=1e-9)


@pytest.mark.parametrize("name", PAPERS)
def test_losses_pass_the_checks_and_are_finite_far_from_zero(name):
    check_loss(get_loss(name))
    relevance, offsets, scores = queries(2)
    for scale in (0.0, 1e-100, 1e4, 1e100):
        assert all(np.isfinite(part).all() for part in evaluated(name, relevance, offsets, scale * scores))


@pytest.mark.parametrize("name", ["listnet", "listmle"])
def test_convex_losses_are_trained_to_the_global_optimum(name):
    """Against a quasi-Newton method on the formula."""
    X, y, qid = made()
    ranker = LossRanker(name, lam=0.1, tol=1e-6).fit(X, y, qid=qid)
    blocks = [(X[qid == q], y[qid == q]) for q in np.unique(qid) if np.ptp(y[qid == q]) > 0]

    def objective(w):
        return 0.05 * w @ w + np.mean([PAPERS[name](rows @ w, grades) for rows, grades in blocks])

    best = minimize(objective, ranker.coef_, method="BFGS", options={"gtol": 1e-7}).fun
    certificate = ranker.certificate_
    assert certificate.kind == "global"
    assert certificate.bound <= best + 1e-9
    assert certificate.primal == pytest.approx(best, rel=2e-6)
    assert certificate.primal == pytest.approx(objective(ranker.coef_), rel=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_losses_without_planes_are_refused_by_the_linear_ranker(name):
    X, y, qid = made()
    with pytest.raises(OptionError, match=r"no cutting planes.*needs; use a network with rankopt.torch.RankingLoss"):
        LossRanker(name).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="needs; use SmoothRanker"):
        LossRanker("smooth").fit(X, y, qid=qid)
    for temperature in (0.0, -1.0, np.inf, "warm"):
        with pytest.raises(OptionError, match="temperature must be a number > 0"):
            get_loss(name)(np.array([0.0, 1.0]), np.array([0, 2]), temperature=temperature)


def test_losses_have_public_names_and_near_names_a_hint():
    names = ("listnet", "listmle", "lambdaloss", "approx-ndcg", "neural-ndcg")
    for name, kind in zip(names, (ListNet, ListMLE, LambdaLoss, ApproxNDCG, NeuralNDCG), strict=True):
        assert get_loss(name) is kind
    for near, name in (("ListNet", "listnet"), ("lambda-loss", "lambdaloss"), ("ApproxNDCG", "approx-ndcg")):
        with pytest.raises(OptionError, match=f"did you mean '{name}'"):
            get_loss(near)
    with pytest.raises(OptionError, match="'hinge' is unknown; known are pairwise"):
        get_loss("hinge")


# DELTR: ListNet with the disparity of exposure at the first position.


def test_deltr_keeps_the_contract_of_a_loss():
    check_loss(Deltr("side", gamma=3.0), attributes=lambda y: {"side": np.arange(y.size) % 3 == 0})
    check_loss(Deltr("side", gamma=3.0), attributes=lambda y: {"side": np.zeros(y.size, dtype=bool)})


def test_deltr_is_listnet_and_the_squared_disparity_where_the_protected_group_has_less():
    relevance, offsets, inside = np.array([0.0, 1.0, 2.0, 1.0]), np.array([0, 4]), np.array([1, 0, 0, 1], dtype=bool)
    loss = Deltr("side", gamma=5.0)(relevance, offsets, SimpleNamespace(attributes={"side": inside}))
    listnet, rng = get_loss("listnet")(relevance, offsets), np.random.default_rng(0)
    for s in rng.normal(size=(20, 4)):
        p = np.exp(s) / np.exp(s).sum()
        expected = 5.0 * max(0.0, p[~inside].mean() - p[inside].mean()) ** 2
        assert_allclose(loss.at(s).value - listnet.at(s).value, expected, atol=1e-12)


def test_the_disparity_of_deltr_is_a_difference_of_convex_functions():
    """No eigenvalue of the Hessian of u = c p is below -(max c - min c) / 2."""
    rng = np.random.default_rng(1)
    for n in (2, 3, 6):
        for _ in range(100):
            p, c = rng.dirichlet(np.full(n, 0.5)), rng.normal(size=n)
            away = c - c @ p
            hessian = np.diag(p * away) - np.outer(p * away, p) - np.outer(p, p * away)
            assert np.linalg.eigvalsh(hessian)[0] >= -np.ptp(c) / 2 - 1e-12


def test_deltr_trades_fit_for_exposure():
    """Feature 0 ranks by grade and favors the others, feature 1 is the protected group."""
    rng = np.random.default_rng(2)
    inside = rng.random(120) < 0.4
    relevance = np.clip(np.rint(rng.normal(1.5 - 1.0 * inside, 1.0)), 0, 3)
    X = np.column_stack([relevance + rng.normal(size=120), inside])
    queries = Queries.from_arrays(X, relevance, group=[20] * 6, attributes={"side": inside})
    apart = []
    for gamma in (0.0, 1000.0):
        ranker = LossRanker(Deltr("side", gamma=gamma), lam=0.01).fit(queries)
        assert ranker.certificate_.kind == "stationary"
        assert ranker.certificate_.relative_gap < 1e-3
        scores = np.exp(ranker.predict(queries)).reshape(6, 20)
        p = scores / scores.sum(axis=1, keepdims=True)
        side = inside.reshape(6, 20)
        apart.append(np.mean([one[~own].mean() - one[own].mean() for one, own in zip(p, side, strict=True)]))
    assert apart[1] < apart[0] / 4


def test_deltr_names_the_cure():
    queries = Queries.from_arrays([[0.0], [1.0]], [0, 1], group=[2])
    with pytest.raises(DataError, match="attribute 'side'"):
        LossRanker(Deltr("side")).fit(queries)
    with pytest.raises(OptionError, match="gamma"):
        LossRanker(Deltr("side", gamma=-1.0)).fit(queries.replace(attributes={"side": np.array([True, False])}))
