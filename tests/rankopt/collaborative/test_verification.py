"""A whole model checked from its ratings: what training says holds, and what was tampered with does not."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from rankopt.collaborative import loss_verification
from rankopt.collaborative.loss_verification import cheapest_mean, slow_loss
from rankopt.errors import DataError, OptionError
from rankopt.losses import get_loss
from rankopt.rankers import CofiRanker, load_model
from rankopt.ratings import Ratings


def drawn(seed=0, users=30, items=20, share=0.4):
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((users, items)) < share)
    tastes, kinds = rng.normal(size=(users, 2)), rng.normal(size=(items, 2))
    liked = (tastes[user] * kinds[item]).sum(axis=1) + kinds[item, 0] + 0.5 * rng.normal(size=user.size)
    grades = 1.0 + np.digitize(liked, [-1.5, -0.5, 0.5, 1.5])
    return Ratings.from_arrays([f"user {u}" for u in user], item, grades)


OPTIONS = {
    "regression": {},
    "ordinal": {},
    "preferences": {"bias_reg": 3.0},
    "nDCG@3": {"weight_by_count": True, "reg": 0.1},
    "ERU(d=3)": {"popularity_prior": 0.0},
    "pairwise": {"item_bias": False},
}


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", OPTIONS)
def test_what_training_says_holds_after_saving_too(loss, tmp_path):
    ratings = drawn()
    ranker = CofiRanker(loss, factors=3, **{"reg": 0.4, **OPTIONS[loss]}).fit(ratings)
    ranker.save(tmp_path / "model")
    found = load_model(tmp_path / "model").verify(ratings)
    assert found.holds, str(found)
    assert found.planes >= 20
    assert found.worst <= 1e-6
    assert found.primal == pytest.approx(ranker.certificate_.primal, rel=1e-9)
    assert found.bound == pytest.approx(ranker.certificate_.bound, rel=1e-6)
    assert found.bound <= min(found.users, found.items) + 1e-9
    assert "all as claimed" in str(found)


@pytest.mark.study
@pytest.mark.parametrize("bound", ["tie-aware", "nonconvex"])
def test_bounds_that_are_not_convex_are_valued(bound):
    ratings = drawn(1)
    ranker = CofiRanker("nDCG@3", bound=bound, factors=3, reg=0.4).fit(ratings)
    found = ranker.verify(ratings)
    assert found.holds, str(found)
    assert found.planes == 0
    assert np.isnan(found.bound)


def test_weights_are_part_of_it():
    ratings, rng = drawn(2), np.random.default_rng(3)
    by_rating, by_user = rng.uniform(0.5, 2.0, ratings.n_ratings), rng.uniform(0.5, 2.0, ratings.n_users)
    for loss, weights in (("regression", {"sample_weight": by_rating}), ("ordinal", {"user_weight": by_user})):
        ranker = CofiRanker(loss, factors=2, reg=0.4).fit(ratings, **weights)
        assert ranker.verify(ratings, **weights), str(ranker.verify(ratings, **weights))
        assert not ranker.verify(ratings)


def forged(certificate, **changes):
    """A certificate that its constructor refuses."""
    found = deepcopy(certificate)
    for name, value in changes.items():
        object.__setattr__(found, name, value)
    return found


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["regression", "ordinal", "nDCG@3"])
def test_what_was_tampered_with_is_named(loss):
    ratings = drawn(4, users=15, items=12)

    whole = CofiRanker(loss, factors=2, reg=0.4).fit(ratings)

    def fitted():
        return deepcopy(whole)

    ranker, said = fitted(), whole.certificate_
    for name, message in (("users", "users' block"), ("items", "items' block"), ("bound", "the whole is bounded")):
        more = said.value * (1 + 1e-3)
        changes = {"bound": more} if name == "bound" else {"parts": {**said.parts, name: more}}
        ranker.certificate_ = forged(said, **changes)
        assert any(message in one for one in ranker.verify(ratings).wrong)
    ranker.certificate_ = forged(said, value=said.value * 0.99)
    assert "J is" in ranker.verify(ratings).wrong[0]
    ranker = fitted()
    ranker.item_factors_ = ranker.item_factors_ * 1.1
    assert "J is" in ranker.verify(ratings).wrong[0]
    ranker = fitted()
    ranker.user_dual_intercept_ = ranker.user_dual_intercept_ + 1e-3 * (ranker.user_dual_intercept_ != 0)
    assert any("above the loss" in one for one in ranker.verify(ratings).wrong)
    ranker = fitted()
    ranker.item_prior_ = ranker.item_prior_ + np.linspace(0, 1e-3, ratings.n_items)
    assert any("pulled to other offsets" in one for one in ranker.verify(ratings).wrong)


def test_other_ratings_and_losses_without_a_slow_way_are_refused():
    ratings = drawn(5)
    ranker = CofiRanker("ordinal", factors=2, reg=0.4).fit(ratings)
    with pytest.raises(DataError, match="not the ratings of the fit"):
        ranker.verify(drawn(6))
    for spec, options in (("AP", {}), ("nDCG@3", {"bound": object()}), (3.5, {})):
        with pytest.raises(OptionError, match="cannot be verified"):
            slow_loss(spec, **options)


@pytest.mark.parametrize("name", ["pairwise", "ordinal", "preferences", "squared"])
def test_the_slow_way_is_the_loss_and_its_planes_lie_below_it(name):
    rng = np.random.default_rng(7)
    slow, ones = slow_loss(name), np.ones(7)
    for _ in range(5):
        y, f = rng.integers(1, 6, 7).astype(float), rng.normal(size=7)
        y[:2] = 1.0, 5.0
        here = get_loss(name)(y, np.array([0, 7])).at(f)
        slope = here.assigned - here.reference
        assert slow.value(y, f, ones) == pytest.approx(here.value[0], rel=1e-12)
        assert slow.highest(y, slope, ones) == pytest.approx(here.height[0], abs=1e-9)
        assert slow.value(y, f, 2 * ones) == pytest.approx(2 * here.value[0], rel=1e-12)
        assert slow.highest(y, 2 * slope, 2 * ones) == pytest.approx(2 * here.height[0], abs=1e-9)
        if name != "squared":
            assert slow.highest(y, slope + 10.0, ones) == -np.inf


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["regression", "ordinal"])
@pytest.mark.parametrize("certify", [True, False])
def test_what_is_no_number_is_never_as_claimed(loss, certify):
    """Every comparison with NaN is false: a model of them would pass whatever asks for a difference."""
    ratings = drawn()
    names = ("user_factors_", "item_factors_", "item_bias_", "item_prior_", "user_dual_coef_", "user_dual_intercept_")
    for name in (*names, "item_dual_coef_", "item_dual_intercept_", "user_factors_"):
        ranker = CofiRanker(loss, factors=3, reg=0.5, compute_bound=certify).fit(ratings)
        setattr(ranker, name, getattr(ranker, name) * np.nan)
        found = ranker.verify(ratings)
        assert not found
        assert "not all finite" in str(found)


def of_long_lists(users=4, each=70):
    rng = np.random.default_rng(0)
    user, item = np.repeat(range(users), each), np.tile(range(each), users)
    return Ratings.from_arrays(user, item, rng.integers(1, 6, user.size).astype(float))


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["nDCG@5", "ordinal", "regression"])
def test_planes_of_long_lists_are_checked_too(loss):
    ratings = of_long_lists()
    ranker = CofiRanker(loss, factors=1, reg=0.3).fit(ratings)
    found = ranker.verify(ratings)
    assert found.holds, str(found)
    assert (found.planes, found.of, found.too_long) == (4, 4, 0)
    assert "planes of 4 of 4 users checked" in str(found)
    ranker.user_dual_intercept_ = ranker.user_dual_intercept_ + 1e-3 * np.eye(4)[2]
    wrong = ranker.verify(ratings).wrong
    assert any(one.startswith("the users' plane of user 2 stands 0.001") for one in wrong), wrong


def test_a_run_that_is_cut_short_tells_what_the_items_left_open():
    """The items' planes hold for the users who came after them: their bound is near, the users' planes' is not."""
    ratings = of_long_lists()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        ranker = CofiRanker("nDCG@5", factors=1, reg=0.3, max_iter=3).fit(ratings)
    assert 1e-4 < ranker.certificate_.items_gap < 0.02
    assert ranker.verify(ratings)


@pytest.mark.study
def test_users_of_many_tied_ratings_are_solved_to_the_end():
    ratings = of_long_lists(4, 100)
    found = CofiRanker("nDCG@5", factors=3, reg=0.1, compute_bound=False, max_iter=40).fit(ratings).certificate_
    assert max(found.users_gap, found.items_gap) <= 1e-4


def test_lists_too_long_for_the_slow_way_are_counted(monkeypatch):
    ratings = of_long_lists()
    ranker = CofiRanker("ordinal", factors=1, reg=0.3).fit(ratings)
    most = [sum(a < b for a in y for b in y) for y in ratings.values.reshape(4, 70)]
    monkeypatch.setattr(loss_verification, "MOST_PAIRS", sorted(most)[1])
    found = ranker.verify(ratings)
    assert (found.holds, found.planes, found.of, found.too_long) == (True, 2, 4, 2)
    assert "planes of 2 of 4 users checked (2 of the drawn lists are too long for it)" in str(found)
    monkeypatch.setattr(loss_verification, "MOST_PAIRS", 0)
    assert "could be checked" in str(ranker.verify(ratings))
    for wrong in ({"planes": -1}, {"seed": 0.5}):
        with pytest.raises(OptionError, match="is not an integer >= 0"):
            ranker.verify(ratings, **wrong)


def cheapest_doubly_stochastic(a, b, c, t):
    """min Σ a_i b_j X_ij over doubly stochastic X with Σ_i c_i X_ij = t_j, in n² variables; inf if infeasible."""
    n, one = t.size, np.ones((1, t.size))
    rows = np.vstack([np.kron(np.eye(n), one), np.kron(one, np.eye(n)), np.kron(c[None], np.eye(n))])
    found = linprog(np.outer(a, b).ravel(), A_eq=rows, b_eq=np.concatenate([np.ones(2 * n), t]), method="highs")
    return found.fun if found.status == 0 else np.inf


@pytest.mark.parametrize("levels", [1, 2, 5, 12])
def test_a_mean_of_rankings_by_gains_is_the_one_of_all_items(levels):
    """Strassen: few variables a grade say what n² variables say, for means of rankings and for what is none."""
    rng, n = np.random.default_rng(levels), 12
    for _ in range(6):
        a, c = np.append(np.sort(rng.random(5))[::-1], np.zeros(n - 5)), np.arange(1, n + 1) ** -0.25
        b = rng.integers(0, levels, n).astype(float)
        weights = rng.dirichlet(np.full(4, 0.5))
        t = sum(w * rng.permutation(c) for w in weights)
        assert cheapest_mean(a, b, c, t) == pytest.approx(cheapest_doubly_stochastic(a, b, c, t), abs=1e-9)
        spread = t + 0.2 * np.where(t == t.max(), 1.0, np.where(t == t.min(), -1.0, 0.0))  # beyond every ranking
        assert cheapest_mean(a, b, c, spread) == cheapest_doubly_stochastic(a, b, c, spread) == np.inf


def test_a_user_is_named_as_given():
    ratings = Ratings.from_arrays(np.repeat([7, 8], 3), np.tile([1, 2, 3], 2), [1.0, 2.0, 3.0, 3.0, 1.0, 2.0])
    ranker = CofiRanker("ordinal", factors=1, reg=0.3).fit(ratings)
    ranker.user_dual_intercept_ = ranker.user_dual_intercept_ + np.eye(2)[1]
    assert "plane of user 8 stands" in str(ranker.verify(ratings))


@pytest.mark.parametrize("loss", ["regression", "ordinal", "nDCG@3"])
def test_what_numbers_cannot_hold_is_not_as_claimed(loss):
    ratings = drawn(2)
    ranker = CofiRanker(loss, factors=2, reg=0.4).fit(ratings)
    for name, times in (("user_factors_", 1e200), ("item_factors_", 1e160), ("item_bias_", 1e160)):
        forged = deepcopy(ranker)
        setattr(forged, name, times * (getattr(ranker, name) + 1.0))
        assert [one.split(",")[0] for one in forged.verify(ratings).wrong] == ["J is inf"]


def test_whatever_the_user_is_told_is_checked():
    ratings = drawn(3)
    ranker = CofiRanker("ordinal", factors=2, reg=0.4).fit(ratings)
    assert ranker.verify(ratings).holds
    certificate = ranker.certificate_
    forged = {
        "cold_start_bias_": 1e9,
        "item_popularity_": np.roll(ranker.item_popularity_, 1) + 1,
        "user_bias_": ranker.user_bias_ + 5.0,
        "lam_max_": 2.0 * ranker.lam_max_,
        "reg_": 99.0,
        "certificate_": replace(certificate, parts={**certificate.parts, "singular": 0.5 * certificate.singular}),
    }
    for name, value in forged.items():
        other = deepcopy(ranker)
        setattr(other, name, value)
        assert len(other.verify(ratings).wrong) == 1, name
    for name, value in {"reg": 0.9, "lam": 5.0, "factors": 7, "tol": 1e-9}.items():
        other = deepcopy(ranker).set_params(**{name: value})
        assert len(other.verify(ratings).wrong) == 1, name
    with pytest.raises(ValueError, match="proof"):
        replace(certificate, parts={**certificate.parts, "proof": "trust me"})
