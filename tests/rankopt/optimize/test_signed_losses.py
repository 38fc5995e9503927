"""Losses of any sign: bounds are true for both kinds of master programs, and a certificate cannot contradict itself."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from formulations.errors import CertificateError
from rankopt.errors import OptionError
from rankopt.losses import ScoreLoss
from rankopt.losses.loss import ConvexLoss, LossValue
from rankopt.optimize import METHODS
from rankopt.optimize.certificate import Certificate, Stop
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import PlaneSet
from rankopt.rankers import CofiRanker, LargeMarginRanker, LossRanker, PairwiseRanker
from rankopt.ratings import Ratings
from rankopt.testing import check_loss

X, GRADES, QUERY = np.array([[0.0], [1.0], [0.5], [2.0]]), [0, 1, 0, 1], [1, 1, 2, 2]


@dataclass(frozen=True, eq=False)
class TopOne(ConvexLoss):
    """ListNet's top-one loss minus a constant: the cross entropy of softmax(grades) and softmax(scores)."""

    is_nonnegative: ClassVar[bool] = False
    shift: ClassVar[float] = 1.0

    def at(self, scores, prove=False):
        starts = self.offsets[:-1]
        shares, (top, shown) = self.softmax(self.relevance)[1], self.softmax(scores)
        value = top - np.add.reduceat(shares * scores, starts) - self.shift
        slope = shown - shares
        height = value - np.add.reduceat(slope * scores, starts)
        return LossValue(value, value, height, slope, np.zeros(scores.size), 0.0)

    def softmax(self, values):
        """log Σ exp of each query, and the softmax."""
        starts, sizes = self.offsets[:-1], np.diff(self.offsets)
        top = np.maximum.reduceat(values, starts)
        total = top + np.log(np.add.reduceat(np.exp(values - np.repeat(top, sizes)), starts))
        return total, np.exp(values - np.repeat(total, sizes))


class Claiming(TopOne):
    """The same without saying that it can be negative."""

    is_nonnegative = True


class Nonnegative(TopOne):
    """A cross entropy is above 0."""

    is_nonnegative = True
    shift = 0.0


def value_of(kind, w, lam, features, grades, query):
    """J(w), computed from the definition."""
    total, ids = 0.0, np.unique(query)
    for q in ids:
        y, s = np.asarray(grades, dtype=float)[query == q], (features @ w)[query == q]
        total += np.log(np.exp(s).sum()) - np.exp(y) @ s / np.exp(y).sum() - kind.shift
    return lam / 2 * float(w @ w) + total / ids.size


def sample(seed):
    rng = np.random.default_rng(seed)
    features, query = rng.normal(size=(40, 3)), np.arange(40) // 8
    return features, np.digitize(features[:, 0] + rng.normal(size=40), [0.0, 1.0]), query


@pytest.mark.parametrize("method", METHODS)
def test_the_minimum_of_a_negative_loss_is_proved(method):
    """ListNet minus 1 at lam = .1: J(0) = -.30685282, and the minimum is -.39097853 at w = .595."""
    least = minimize_scalar(lambda w: value_of(TopOne, np.array([w]), 0.1, X, GRADES, np.array(QUERY)))
    assert (round(least.fun, 8), round(float(least.x), 3)) == (-0.39097853, 0.595)
    ranker = LossRanker(TopOne, lam=0.1, tol=1e-6, method=method).fit(X, GRADES, qid=QUERY)
    proved = ranker.certificate_
    assert (proved.kind, proved.stop) == ("global", Stop.GAP)
    assert proved.relative_gap <= 1e-6
    assert proved.bound <= least.fun + 1e-12 <= proved.primal + 2e-12
    assert ranker.coef_[0] == pytest.approx(0.595, abs=2e-3)
    assert not np.isnan(ranker.history_.bound).any()
    assert (ranker.history_.bound <= least.fun + 1e-12).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lam", [1.0, 1e-2])
@pytest.mark.parametrize(("seed", "shift"), [*enumerate((0.5, 2.0, 3.0))])
def test_minima_of_any_sign_are_proved(method, lam, seed, shift):
    kind = type("Shifted", (TopOne,), {"shift": shift})
    features, grades, query = sample(seed)
    least = minimize(lambda w: value_of(kind, w, lam, features, grades, query), np.zeros(3), tol=1e-12).fun
    ranker = LossRanker(kind, lam=lam, tol=1e-3, method=method).fit(features, grades, qid=query)
    proved = ranker.certificate_
    assert proved.stop is Stop.GAP
    assert proved.bound <= least + 1e-9
    assert value_of(kind, ranker.coef_, lam, features, grades, query) == pytest.approx(proved.primal, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_moves_the_certificate_and_not_the_minimum(method):
    """Also by so much that the objective is 0 at its minimum."""
    features, grades, query = sample(4)
    usual = LossRanker(TopOne, lam=0.1, tol=1e-9).fit(features, grades, qid=query)
    kind = type("Shifted", (TopOne,), {"shift": 1.0 + usual.certificate_.primal})
    ranker = LossRanker(kind, lam=0.1, method=method, w0=usual.coef_).fit(features, grades, qid=query)
    assert ranker.certificate_.stop is Stop.GAP
    moved = LossRanker(kind, lam=0.1, method="bundle", tol=1e-7).fit(features, grades, qid=query)
    assert moved.certificate_.stop is Stop.GAP
    assert moved.certificate_.gap <= 1e-7
    np.testing.assert_allclose(moved.coef_, usual.coef_, atol=1e-2)


@pytest.mark.parametrize("floor", [0.0, -np.inf])
@pytest.mark.parametrize("seed", range(20))
def test_masters_of_both_kinds_agree_with_cvxpy(floor, seed):
    """min (lam/2)‖w - w₀‖² + Σ_g ξ_g above the planes of its group, and above 0 if losses are nonnegative."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    groups, features, lam = int(rng.integers(1, 5)), int(rng.integers(1, 6)), float(10.0 ** rng.uniform(-2, 1))
    planes = groups + int(rng.integers(0, 20))
    group = np.concatenate([np.arange(groups), rng.integers(0, groups, planes - groups)])
    slopes, heights, w0 = rng.normal(size=(planes, features)), rng.normal(size=planes), rng.normal(size=features)
    found = PlaneSet.empty(groups, features, floor).plus(slopes, heights, group)
    objective = Objective(None, lam, w0, small=True)
    answer = objective.solve_master(found, np.ones(groups), np.zeros(planes))
    w, slack = cp.Variable(features), cp.Variable(groups)
    rows = [slack[group] >= heights + slopes @ w, *([slack >= 0] if floor == 0.0 else [])]
    least = cp.Problem(cp.Minimize(lam / 2 * cp.sum_squares(w - w0) + cp.sum(slack)), rows).solve(solver="CLARABEL")
    assert answer.bound == pytest.approx(least, abs=1e-6)
    model = objective.regularizer(answer.w) + found.heights_at(answer.w).sum()
    assert answer.bound <= model
    assert model == pytest.approx(least, abs=1e-6)
    again = objective.solve_master(found, np.ones(groups), answer.alpha)
    assert again.bound == pytest.approx(least, abs=1e-6)
    if floor < 0:
        np.testing.assert_allclose(np.bincount(group, answer.alpha, groups), 1.0, rtol=1e-12)


@dataclass(frozen=True, eq=False)
class Lowered:
    """A bound of the regret minus 1; not convex."""

    inner: object
    is_nonnegative: ClassVar[bool] = False

    @classmethod
    def from_grades(cls, relevance, offsets):
        return cls(ScoreLoss("nDCG@5").bind(relevance, offsets=offsets).loss)

    @property
    def convex(self):
        return self.inner.convex

    def at(self, scores, prove=False):
        found = self.inner.at(scores, prove)
        return replace(found, value=found.value - 1, bound=found.bound - 1, height=found.height - 1)

    def majorant(self, scores):
        return Lowered(self.inner.majorant(scores))

    def select_queries(self, first, last):
        return Lowered(self.inner.select_queries(first, last))

    def reference_weights(self, scores):
        return self.inner.reference_weights(scores)


@pytest.mark.parametrize("method", METHODS)
def test_a_loss_that_is_not_convex_may_be_negative_too(method):
    """The same critical point as without the 1: its majorant there is bounded from below by the same number less 1."""
    features, grades, query = sample(0)
    options = {"lam": 0.1, "w0": [1.0, 0.0, 0.0], "method": method}
    lowered = LossRanker(Lowered.from_grades, tol=1e-3, **options).fit(features, grades, qid=query).certificate_
    usual = LargeMarginRanker("nDCG@5", tol=1e-3, **options).fit(features, grades, qid=query).certificate_
    assert (lowered.kind, lowered.stop) == ("stationary", Stop.GAP)
    assert -1.0 < lowered.bound <= lowered.value < 0.0
    assert lowered.value + 1.0 == pytest.approx(usual.value, abs=5e-3)


def test_the_sign_that_a_loss_claims_is_checked():
    with pytest.raises(OptionError, match=r"Claiming must be nonnegative.*is_nonnegative = False"):
        LossRanker(Claiming, lam=0.1).fit(X, GRADES, qid=QUERY)
    with pytest.raises(AssertionError, match="is_nonnegative"):
        check_loss(Claiming)
    check_loss(TopOne)
    check_loss(Nonnegative)


def test_the_1_norm_takes_nonnegative_losses_only():
    LossRanker(Nonnegative, penalty="l1").fit(X, GRADES, qid=QUERY)
    with pytest.raises(OptionError, match="penalty='l2'"):
        LossRanker(TopOne, penalty="l1").fit(X, GRADES, qid=QUERY)


def test_a_checkpoint_of_a_negative_loss_goes_on_to_the_same_bits(tmp_path):
    features, grades, query = sample(1)
    ranker = LossRanker(TopOne, lam=0.01, tol=1e-6)
    whole = ranker.fit(features, grades, qid=query)
    count = whole.n_iter_
    weights, proved = whole.coef_, whole.certificate_
    with pytest.warns(UserWarning, match="before the gap closed"):
        LossRanker(TopOne, lam=0.01, tol=1e-6, max_iter=count // 2, checkpoint=tmp_path).fit(
            features, grades, qid=query
        )
    resumed = LossRanker(TopOne, lam=0.01, tol=1e-6, checkpoint=tmp_path).fit(features, grades, qid=query)
    np.testing.assert_array_equal(resumed.coef_, weights)
    assert resumed.certificate_ == proved


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ranker", [PairwiseRanker(), LargeMarginRanker("nDCG@5")], ids=["pairwise", "nonconvex"])
def test_separable_data_end_at_once(ranker, method):
    """At a w₀ that separates the data by a margin, J is 0 up to rounding."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 3))
    grades = (features[:, 0] > 0).astype(float)
    features[:, 0] += np.where(grades > 0, 1.0, -1.0)
    fitted = ranker.set_params(method=method, w0=[10.0, 0.0, 0.0]).fit(features, grades, qid=np.arange(60) // 10)
    assert fitted.certificate_.stop is Stop.GAP
    assert fitted.certificate_.primal <= 1e-11
    assert fitted.n_iter_ == 1


def test_a_bound_that_contradicts_the_value_raises():
    proved = Certificate("global", 2.0, 2.0 + 1e-12, Stop.GAP)
    assert proved.gap == proved.relative_gap == 0.0
    for wrong in (replace, lambda proved, bound: Certificate("stationary", -0.3, 0.0, Stop.GAP)):
        with pytest.raises(CertificateError, match="nothing is proved"):
            wrong(proved, bound=2.1)
    parts = {"epsilon": 0.0, "features": np.arange(2), "vectors": np.zeros((1, 4))}
    with pytest.raises(CertificateError, match="upper bound"):
        Certificate("directions", 0.5, 0.4, Stop.GAP, parts=parts)


def test_the_relative_gap_of_an_objective_of_0_is_0_or_infinite():
    assert Certificate("global", 0.0, 0.0, Stop.GAP).relative_gap == 0.0
    assert Certificate("global", 0.0, -1.0, Stop.TIME).relative_gap == np.inf
    assert Certificate("global", -2.0, -3.0, Stop.TIME).relative_gap == 0.5


def rated(seed=0):
    rng = np.random.default_rng(seed)
    user, item = np.divmod(np.flatnonzero(rng.random(20 * 12) < 0.6), 12)
    return Ratings.from_arrays(user, item, rng.integers(1, 6, user.size).astype(float))


def test_factors_of_a_negative_loss_have_block_bounds_and_no_global_one():
    ratings = rated()
    known = CofiRanker(Nonnegative, factors=3, lam=0.5, tol=1e-4, random_state=0).fit(ratings)
    signed = CofiRanker(TopOne, factors=3, lam=0.5, tol=1e-4, random_state=0).fit(ratings)
    assert (known.certificate_.kind, signed.certificate_.kind) == ("global", "blocks")
    assert 0.0 < known.certificate_.bound <= known.certificate_.value
    proved, users = signed.certificate_, len(known.user_ids_)
    assert known.certificate_.bound <= proved.value + users
    assert max(proved.users_gap, proved.items_gap) <= 1e-4
    factors, bias = signed.item_factors_, signed.item_bias_
    gains = 0.0  # of each user for these items, by a general method
    for u, own in enumerate(signed.user_factors_):
        rows = slice(*ratings.bounds[[u, u + 1]])
        y, j = ratings.values[rows], ratings.columns[rows]

        def cost(p, y=y, j=j, factors=factors, bias=bias):
            s = bias[j] + factors[j] @ p
            return np.log(np.exp(s).sum()) - np.exp(y) @ s / np.exp(y).sum() + signed.lam_ / 2 * float(p @ p)

        gains += cost(own) - minimize(cost, own, tol=1e-12).fun
    assert proved.users <= proved.value - gains + 1e-7
    assert gains <= 1e-4 * abs(proved.value)
    with pytest.raises(OptionError, match="is_nonnegative = False"):
        CofiRanker(type("Low", (Claiming,), {"shift": 9.0}), factors=3, lam=0.5).fit(ratings)


def test_factors_of_a_loss_that_is_not_convex_claim_nothing_global():
    kind = type("Declared", (Nonnegative,), {"convex": False})
    assert CofiRanker(kind, factors=2, lam=0.5).fit(rated()).certificate_.kind == "blocks"
