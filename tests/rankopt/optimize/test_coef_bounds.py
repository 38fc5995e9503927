"""Limits of weights: the optimum by cvxpy, true bounds, solvers and methods that agree, signs recovered."""

from itertools import pairwise, permutations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from problems.training import made, objective_at

from formulations import GroupedSimplexQP, margin_dual, solve
from formulations.solvers import compatible_solvers
from rankopt.data import Queries
from rankopt.errors import NoProgressWarning, OptionError
from rankopt.optimize import METHODS
from rankopt.rankers import (
    LargeMarginRanker,
    LossRanker,
    MatchingRanker,
    PairwiseRanker,
    RegressionRanker,
    SmoothRanker,
    load_model,
)

LOOSE = {"cvxpy:OSQP", "cvxpy:SCS", "qpsolvers:osqp", "qpsolvers:scs", "cvxpy:HIGHS", "qpsolvers:highs"}
"""First-order methods, and one of few digits for quadratic objectives."""


def random_box(rng, size, width=0.3):
    """(d, 2): no limit, one, both, or a fixed weight; 0 is inside of some only."""
    middle = rng.normal(size=size) * width / 2
    low, high = middle - width * rng.random(size), middle + width * rng.random(size)
    kind = rng.integers(0, 5, size)
    low[(kind == 0) | (kind == 1)], high[(kind == 0) | (kind == 2)] = -np.inf, np.inf
    high[kind == 4] = low[kind == 4]
    return np.stack([low, high], axis=1)


def within(w, box):
    """Constraints of cvxpy."""
    return [w[j] >= low for j, (low, _) in enumerate(box) if low > -np.inf] + [
        w[j] <= high for j, (_, high) in enumerate(box) if high < np.inf
    ]


def pairs_objective(w, X, y, qid):
    """Σ_q v_q mean over pairs of the hinge, of RankSVM, for a variable of cvxpy."""
    parts = []
    for q in np.unique(qid):
        own, grades = X[qid == q], y[qid == q]
        better, worse = np.nonzero(grades[:, None] > grades)
        if better.size:
            parts.append(cp.sum(cp.pos(1 - (own[better] - own[worse]) @ w)) / better.size)
    return cp.sum(cp.hstack(parts)) / len(parts)


def orders_objective(w, ranker, queries):
    """Σ_q v_q of the convex bound: the maximum over all orders of each query."""
    (shard,) = ranker.objective(queries).risk.shards
    problem, best, total = shard.loss.argmax.problem, shard.loss.argmax.best, 0
    for q, (low, high) in enumerate(pairwise(problem.offsets.tolist())):
        rows = shard.scorer.features[shard.scorer.rows][low:high]
        heights, slopes = [], []
        for order in permutations(range(high - low)):
            placed = np.empty(high - low)
            placed[list(order)] = problem.position_weights[low:high]
            heights.append(best[q] - problem.discount[low:high] @ problem.gain[low:high][list(order)])
            slopes.append((placed - shard.loss.fixed[low:high]) @ rows)
        total += shard.weights[q] * cp.max(np.array(heights) + np.array(slopes) @ w)
    return total


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")
@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("first", range(0, 25, 5))
def test_the_optimum_of_fifty_problems_is_that_of_cvxpy_and_bounds_are_below(penalty, first):
    for seed in range(first, first + 5):
        rng = np.random.default_rng(seed)
        X, y, qid = made(seed, queries=6, documents=4, features=int(rng.integers(2, 6)))
        box, w = random_box(rng, X.shape[1]), cp.Variable(X.shape[1])
        options = dict(lam=10.0 ** rng.integers(-3, 0), tol=1e-8, coef_bounds=box, penalty=penalty)
        if seed % 2:
            ranker = PairwiseRanker(w0=rng.normal(size=w.size), **options)
            risk = pairs_objective(w, X, y, qid)
        else:
            ranker = LargeMarginRanker("nDCG@3", bound="convex", w0=rng.normal(size=w.size), **options)
            risk = orders_objective(w, ranker, Queries.from_arrays(X, y, qid=qid))
        ranker.fit(X, y, qid=qid)
        norm = ranker.lam * cp.norm1(w) if penalty == "l1" else ranker.lam / 2 * cp.sum_squares(w - ranker.w0_)
        optimum = cp.Problem(cp.Minimize(norm + risk), within(w, box)).solve(solver=cp.CLARABEL)
        proved = ranker.certificate_
        assert proved.primal == pytest.approx(optimum, rel=1e-6)
        assert proved.bound <= optimum * (1 + 1e-7)
        assert proved.primal == pytest.approx(objective_at(ranker, X, y, qid, ranker.coef_), rel=1e-12)
        assert ((box[:, 0] <= ranker.coef_) & (ranker.coef_ <= box[:, 1])).all()
        loose = ranker.set_params(tol=0.3).fit(X, y, qid=qid).certificate_
        assert loose.bound <= optimum * (1 + 1e-7) <= loose.primal * (1 + 2e-7)


@pytest.mark.parametrize("solver", compatible_solvers(GroupedSimplexQP))
def test_every_solver_of_the_master_finds_the_optimum_over_the_box(solver):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        planes, d, groups = int(rng.integers(3, 20)), int(rng.integers(1, 8)), int(rng.integers(1, 4))
        slopes, heights, w0 = rng.normal(size=(planes, d)), rng.normal(size=planes) + 0.5, rng.normal(size=d)
        group, mass, box = rng.integers(0, groups, planes), rng.random(groups) + 0.1, random_box(rng, d, 1.0)
        w, slack = cp.Variable(d), cp.Variable(groups, nonneg=True)
        above = [slack[group[i]] >= heights[i] + slopes[i] @ w for i in range(planes)]
        best = cp.Minimize(cp.sum_squares(w - w0) / 4 + mass @ slack)
        optimum = cp.Problem(best, above + within(w, box)).solve(solver=cp.CLARABEL)
        dual = margin_dual(slopes, heights, lam=0.5, groups=group, group_mass=mass, w0=w0, box=box.T)
        solution = solve(dual, solver)
        accuracy = 1e-3 if solver in LOOSE else 1e-6
        assert solution.value == pytest.approx(optimum, rel=accuracy, abs=accuracy)
        away = np.linalg.norm(w0 + solution.dual["step"] - w.value)
        assert away <= np.sqrt(2 / 0.5 * (solution.gap + accuracy))


@pytest.mark.parametrize("bound", ["convex", "nonconvex"])
@pytest.mark.parametrize("method", METHODS)
def test_all_methods_stay_in_the_box_and_close_the_gap(method, bound):
    X, y, qid = made(queries=20, features=6)
    box = random_box(np.random.default_rng(0), 6, 0.1)
    options = dict(bound=bound, feature_map="pairwise", coef_bounds=box, tol=1e-3, lam=0.05)
    ranker = LargeMarginRanker("nDCG@10", method=method, **options).fit(X, y, qid=qid)
    assert ranker.certificate_.relative_gap <= 1e-3
    assert ((box[:, 0] <= ranker.coef_) & (ranker.coef_ <= box[:, 1])).all()
    if bound == "convex":
        usual = LargeMarginRanker("nDCG@10", **options).fit(X, y, qid=qid).certificate_
        assert max(ranker.certificate_.bound, usual.bound) <= min(ranker.certificate_.primal, usual.primal)


def test_the_certificate_under_a_nonconvex_bound_holds_for_the_majorant_in_the_box():
    """No point of the box, tried at random and by descent, has a majorant below the bound."""
    X, y, qid = made(queries=12, features=4)
    queries, rng = Queries.from_arrays(X, y, qid=qid), np.random.default_rng(1)
    ranker = LargeMarginRanker("nDCG@5", coef_bounds=(0, 0.5), lam=0.05, tol=1e-4).fit(queries)
    majorant = ranker.objective(queries).majorant(ranker.coef_)
    assert ranker.certificate_.primal == pytest.approx(majorant.upper(ranker.coef_, majorant.risk.at(ranker.coef_)))
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            w = majorant.project(ranker.coef_ + scale * rng.normal(size=4))
            assert majorant.upper(w, majorant.risk.at(w)) >= ranker.certificate_.bound


def test_limits_that_nothing_presses_against_change_nothing():
    X, y, qid = made(queries=20)
    free = PairwiseRanker(tol=1e-6).fit(X, y, qid=qid)
    wide = PairwiseRanker(tol=1e-6, coef_bounds=(-100, 100)).fit(X, y, qid=qid)
    assert wide.certificate_.primal == pytest.approx(free.certificate_.primal, rel=2e-6)
    none = PairwiseRanker(tol=1e-6, coef_bounds=[(None, None)] * 4).fit(X, y, qid=qid)
    assert np.array_equal(none.coef_, free.coef_)


def test_rows_in_another_order_give_the_same_bits_and_scales_the_same_order():
    X, y, qid = made(queries=20)
    order = np.random.default_rng(0).permutation(y.size)
    options = dict(coef_bounds=[(0, None), (None, 0), (0, 0.4), (None, None)], bound="nonconvex")
    ranker = LargeMarginRanker("nDCG@5", **options).fit(X, y, qid=qid)
    assert np.array_equal(
        ranker.coef_, LargeMarginRanker("nDCG@5", **options).fit(X[order], y[order], qid=qid[order]).coef_
    )
    signs = dict(options, coef_bounds=[(0, None), (None, 0), (0, None), (None, None)])
    one, other = (LargeMarginRanker("nDCG@5", **signs).fit(c * X, y, qid=qid) for c in (1.0, 8.0))
    assert 8.0 * other.coef_ == pytest.approx(one.coef_, rel=1e-3, abs=1e-3)


def test_known_signs_are_kept_and_bring_the_weights_nearer_to_the_truth():
    better = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=12)
        X, qid = rng.normal(size=(160, 12)), np.repeat(np.arange(20), 8)
        y = np.digitize(X @ truth + 3.0 * rng.normal(size=len(X)), [1.0, 4.0])
        signs = [(0, None) if one > 0 else (None, 0) for one in truth]
        free, signed = (PairwiseRanker(coef_bounds=box).fit(X, y, qid=qid).coef_ for box in (None, signs))
        assert (signed * truth >= 0).all()
        angle = [w @ truth / np.linalg.norm(w) / np.linalg.norm(truth) for w in (free, signed)]
        better.append(angle[1] - angle[0])
    assert np.mean(better) > 0
    assert min(better) > -0.01


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")
def test_the_smallest_lam_at_which_nothing_is_left_in_heeds_the_sign():
    X, y, qid = made(queries=20)  # of a truth with the weights 1, 1/3, -1/3, -1
    free, signed = (
        PairwiseRanker(penalty="l1", coef_bounds=box).path(X, y, qid=qid, lams=5)
        for box in (None, [(None, None), (0, None), (None, None), (0, None)])
    )
    assert all((model.coef_[[1, 3]] >= 0).all() for model in signed.models)
    assert not signed[0].coef_.any()
    assert signed[1].coef_.any()
    assert signed.lams[0] <= free.lams[0]
    with pytest.raises(OptionError, match="largest λ of 0"):
        PairwiseRanker(penalty="l1", coef_bounds=[(0, 0)] * 3 + [(0, None)]).path(X, y, qid=qid, lams=5)


def test_least_squares_in_a_box_meets_the_optimality_conditions():
    X, y, qid = made(queries=20, features=5)
    for intercept in ("query", "all"):
        for alpha in (0.0, 3.0):
            box = random_box(np.random.default_rng(3), 5)
            w = RegressionRanker(alpha, intercept=intercept, coef_bounds=box).fit(X, y, qid=qid).coef_
            group = qid if intercept == "query" else np.zeros_like(qid)
            A, b = (v - pd.DataFrame(v).groupby(group).transform("mean").to_numpy() for v in (X, y[:, None]))
            slope = A.T @ (A @ w - b[:, 0]) + alpha * w
            low, high = w <= box[:, 0], w >= box[:, 1]
            assert (slope[~low] <= 1e-8).all()
            assert (slope[~high] >= -1e-8).all()
            assert ((box[:, 0] <= w) & (w <= box[:, 1])).all()


def test_a_smoothed_measure_is_stationary_in_the_box():
    X, y, qid = made(queries=30, features=5)
    ranker = SmoothRanker("nDCG@5", coef_bounds=(0, 0.8), bandwidths=(2.0, 1.0)).fit(X, y, qid=qid)
    assert (np.clip(ranker.coef_, 0.0, 0.8) == ranker.coef_).all()
    assert ranker.certificate_.gradient < 1e-3
    with pytest.raises(OptionError, match="L-BFGS"):
        SmoothRanker(coef_bounds=(0, None), method="CG").fit(X, y, qid=qid)


def test_frames_name_features_and_slots_have_limits_of_their_own():
    X, y, qid = made(queries=20)
    frame = pd.DataFrame(X, columns=["price", "age", "clicks", "stars"]).assign(qid=qid)
    named = PairwiseRanker(coef_bounds={"clicks": (0, None), "age": (None, 0)}).fit(frame, y)
    pairs = PairwiseRanker(coef_bounds=[(None, None), (None, 0), (0, None), (None, None)]).fit(frame, y)
    assert np.array_equal(named.coef_, pairs.coef_)
    assert named.coef_[1] <= 0 <= named.coef_[2]
    one = MatchingRanker(bound="nonconvex", coef_bounds={"stars": (0, 0)}).fit(frame, y)
    assert one.coef_.any(axis=0).tolist() == [True, True, True, False]
    limits = np.full((2, 4, 2), [-np.inf, np.inf])
    limits[1] = [0, 0.01]
    slots = MatchingRanker(bound="nonconvex", coef_bounds=limits).fit(frame, y)
    assert (np.clip(slots.coef_[1], 0, 0.01) == slots.coef_[1]).all()
    assert np.abs(slots.coef_[0]).max() > 0.01


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")
def test_starts_are_projected_and_warm_starts_too():
    X, y, qid = made(queries=20)
    ranker = LargeMarginRanker("nDCG@5", w0=[5, -5, 5, -5], coef_bounds=(-1, 2), lam=1e3, warm_start=True)
    assert ranker.fit(X, y, qid=qid).w0_.tolist() == [2, -1, 2, -1]
    again = ranker.set_params(coef_bounds=(0, 1), lam="scale", max_iter=1, tol=0.9).fit(X, y, qid=qid)
    assert (np.clip(again.coef_, 0, 1) == again.coef_).all()
    for w0 in ("ridge", "ranksvm", "regression", "zeros"):
        start = LargeMarginRanker("nDCG@5", w0=w0, coef_bounds=(None, 0)).fit(X, y, qid=qid).w0_
        assert start.max() <= 0
        assert start.any() == (w0 != "zeros")


def test_paths_cross_validation_files_and_checkpoints_keep_the_limits(tmp_path):
    X, y, qid = made(queries=20)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(qid=qid)
    limits = {"a": (0, 0.3), "d": (0, None)}
    models = PairwiseRanker(coef_bounds=limits).path(frame, y, lams=[1.0, 0.1, 0.01]).models
    chosen = LargeMarginRanker("nDCG@5", lam="auto", coef_bounds=limits).fit(frame, y)
    for model in (*models, chosen):
        assert 0 <= model.coef_[0] <= 0.3
        assert model.coef_[3] >= 0
        assert model.certificate_.relative_gap <= 1e-3
    chosen.save(tmp_path / "model")
    assert load_model(tmp_path / "model").coef_bounds == limits
    options = dict(coef_bounds=limits, lam=0.01, tol=1e-6)
    full = PairwiseRanker(**options).fit(frame, y)
    with pytest.warns(match="max_iter"):
        PairwiseRanker(max_iter=3, checkpoint=tmp_path / "run", **options).fit(frame, y)
    resumed = PairwiseRanker(checkpoint=tmp_path / "run", **options).fit(frame, y)
    assert np.array_equal(resumed.coef_, full.coef_)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((1, 0), r"low <= high, finite or None; got \(1, 0\)"),
        ((np.inf, None), "low <= high"),
        ([(0, 1)] * 3, r"4 × 2 numbers, .* of shape \(3, 2\)"),
        ({"x": (0, 1)}, "'x', which is no feature; known are the numbers 0 to 3"),
        ({4: (0, 1)}, "4, which is no feature; known are the numbers 0 to 3"),
        ((np.nan, np.nan), "nan, which is no limit; pass None"),
        (np.array([[0, np.nan]] * 4), "nan, which is no limit; pass None"),
        ("positive", "no array of numbers"),
    ],
)
def test_limits_that_cannot_be_are_refused_with_what_was_received(limits, message):
    X, y, qid = made()
    for ranker in (LossRanker(), RegressionRanker(), SmoothRanker()):
        with pytest.raises(OptionError, match=message):
            ranker.set_params(coef_bounds=limits).fit(X, y, qid=qid)


@pytest.mark.parametrize("make", [LossRanker, RegressionRanker, SmoothRanker])
def test_features_without_names_are_limited_by_number(make, tmp_path):
    X, y, qid = made()
    own = make(coef_bounds={3: (0, None), 0: (None, 0)}).fit(X, y, qid=qid)
    pairs = make(coef_bounds=[(None, 0), (None, None), (None, None), (0, None)]).fit(X, y, qid=qid)
    assert np.array_equal(own.coef_, pairs.coef_)
    own.save(tmp_path / "model")
    assert load_model(tmp_path / "model").coef_bounds == own.coef_bounds


@pytest.mark.parametrize("make", [LargeMarginRanker, LossRanker, SmoothRanker])
def test_weights_at_their_limits_are_explained_by_the_limits(make):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(200, 3)), np.arange(200) // 10
    with pytest.warns(NoProgressWarning, match="coef_bounds hold all weights at their limits; loosen coef_bounds"):
        ranker = make(coef_bounds=(0, None)).fit(-X, np.digitize(X.sum(axis=1), [0, 1]), qid=qid)
    assert not ranker.coef_.any()


def test_an_unknown_name_is_refused_with_the_known_ones():
    X, y, qid = made()
    with pytest.raises(OptionError, match="'price', which is no feature; known are a, b, c, d"):
        LossRanker(coef_bounds={"price": (0, None)}).fit(pd.DataFrame(X, columns=[*"abcd"]), y, qid=qid)


@pytest.mark.parametrize("make", [LargeMarginRanker, RegressionRanker, SmoothRanker])
def test_a_pair_for_each_feature_leaves_indicators_free(make):
    X, y, qid = made(queries=20)
    X[::3, 1] = X[::4, 2] = np.nan
    pairs = [(0, None)] * X.shape[1]
    short = make(coef_bounds=pairs, missing="indicator").fit(X, y, qid=qid)
    full = make(coef_bounds=[*pairs, (None, None), (None, None)], missing="indicator").fit(X, y, qid=qid)
    np.testing.assert_array_equal(short.coef_, full.coef_)
    assert (short.coef_[: X.shape[1]] >= 0).all()
