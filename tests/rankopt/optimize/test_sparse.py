"""The 1-norm: the optimum by brute force, optimality conditions, true bounds, solvers that agree, features left out."""

from itertools import pairwise, permutations

import cvxpy as cp
import numpy as np
import pytest
from problems.training import made, objective_at
from scipy.optimize import linprog
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel

from formulations import LinearProgram
from formulations.solvers import compatible_solvers
from rankopt.constraints.admissible import Admissible
from rankopt.data import Queries
from rankopt.errors import NoProgressWarning, OptionError
from rankopt.optimize.least_squares import least_squares
from rankopt.optimize.objective import largest
from rankopt.optimize.ridge import FOLDS, WIDEST, FewRows, Ridges, WideRidges, ridges_of
from rankopt.rankers import LargeMarginRanker, LossRanker, PairwiseRanker, RegressionRanker, load_model

DOUBTFUL = {"cp_sat", "cvxpy:DAQP", "cvxpy:OSQP", "cvxpy:PDLP", "cvxpy:SCS"}
"""For whole numbers, for strictly convex programs, and first-order methods: no linear programs to six digits."""

LAMS = (0.3, 0.05, 0.01)


def convex(**options):
    return LargeMarginRanker("nDCG@3", bound="convex", position_weights="linear", penalty="l1", **options)


def pieces(ranker, queries):
    """For each query all its planes (heights, slopes in w) with their weight: one an order."""
    (shard,) = ranker.objective(queries).risk.shards
    problem, best = shard.loss.argmax.problem, shard.loss.argmax.best
    rows = np.vstack([shard.scorer.pull((np.eye(problem.gain.size)[j],), np.array([0, problem.gain.size]))[0][0]
                      for j in range(problem.gain.size)])  # fmt: skip
    for q, (low, high) in enumerate(pairwise(problem.offsets.tolist())):
        heights, slopes = [], []
        for order in permutations(range(high - low)):
            placed = np.empty(high - low)
            placed[list(order)] = problem.position_weights[low:high]
            heights.append(best[q] - problem.discount[low:high] @ problem.gain[low:high][list(order)])
            slopes.append((placed - shard.loss.fixed[low:high]) @ rows[low:high])
        yield shard.weights[q], np.array(heights), np.array(slopes)


def brute(ranker, queries):
    """min of J over all orders of all queries."""
    w, total = cp.Variable(queries.n_features), 0
    for weight, heights, slopes in pieces(ranker, queries):
        total += weight * cp.max(heights + slopes @ w)
    return cp.Problem(cp.Minimize(ranker.lam * cp.norm1(w) + total)).solve(solver=cp.CLARABEL)


def tiny(seed=0):
    X, y, qid = made(seed, queries=5, documents=4, features=3)
    return Queries.from_arrays(X, y, qid=qid)


@pytest.mark.every(5)
@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("method", ["bundle", "cutting_planes"])
def test_the_optimum_is_that_of_all_orders_and_the_gap_is_true(lam, method):
    for seed in range(3):
        queries = tiny(seed)
        ranker = convex(lam=lam, tol=1e-7, method=method).fit(queries)
        proved, optimum = ranker.certificate_, brute(ranker, queries)
        assert proved.kind == "global"
        assert proved.primal == pytest.approx(optimum, rel=1e-6)
        assert proved.bound <= optimum + 1e-8
        loose = convex(lam=lam, tol=0.3, method=method).fit(queries).certificate_
        assert loose.bound <= optimum + 1e-8 <= loose.primal + 2e-8


@pytest.mark.parametrize("lam", LAMS)
def test_zero_is_a_subgradient(lam):
    """Some mean of the planes that touch at w is -λ sign(w_j) where w_j is not 0, and within λ elsewhere."""
    queries = tiny(1)
    ranker = convex(lam=lam, tol=1e-9).fit(queries)
    w, d = ranker.coef_, queries.n_features
    columns, owner = [], []
    for q, (weight, heights, slopes) in enumerate(pieces(ranker, queries)):
        values = heights + slopes @ w
        touching = values >= values.max() - 1e-7
        columns += list(weight * slopes[touching])
        owner += [q] * int(touching.sum())
    g, members = np.array(columns).T, np.eye(max(owner) + 1)[owner].T
    # least ε with |Σ α g + λ sign(w)| <= ε where w is not 0, |Σ α g| <= λ + ε elsewhere
    target, room = -lam * np.sign(w), np.where(w == 0, lam, 0.0)
    rows = np.vstack([np.hstack([g, -np.ones((d, 1))]), np.hstack([-g, -np.ones((d, 1))])])
    limits = np.concatenate([target + room, room - target])
    sums = np.hstack([members, np.zeros((len(members), 1))])
    least = linprog(np.append(np.zeros(len(owner)), 1.0), rows, limits, sums, np.ones(len(members)))
    assert least.fun <= 1e-6


def test_all_solvers_of_linear_programs_agree():
    X, y, qid = made(queries=10, features=5)
    specs = set(compatible_solvers(LinearProgram)) - DOUBTFUL
    assert {"highs", "cvxpy:CLARABEL"} <= specs
    proved = {
        spec: PairwiseRanker(penalty="l1", lam=0.05, tol=1e-6, master_solver=spec).fit(X, y, qid=qid).certificate_
        for spec in ("auto", *sorted(specs))
    }
    for spec, one in proved.items():
        assert one.relative_gap <= 1e-6, spec
        assert one.primal == pytest.approx(proved["auto"].primal, rel=2e-6), spec


@pytest.mark.parametrize("make", [convex, lambda **options: PairwiseRanker(penalty="l1", **options)])
def test_nothing_is_left_in_from_the_largest_lam_on(make):
    X, y, qid = made(queries=20, features=6)
    queries = Queries.from_arrays(X, y, qid=qid)
    most = largest(make(lam=1.0).objective(queries))
    with pytest.warns(NoProgressWarning):
        ranker = make(lam=most).fit(queries)
    assert not ranker.coef_.any()
    assert ranker.selected_.size == 0
    assert ranker.certificate_.at_start


def test_the_pairwise_hinge_has_one_subgradient_at_0_so_below_the_largest_lam_something_is_in():
    X, y, qid = made(queries=20, features=6)
    queries = Queries.from_arrays(X, y, qid=qid)
    most = largest(PairwiseRanker(penalty="l1", lam=1.0).objective(queries))
    assert PairwiseRanker(penalty="l1", lam=0.95 * most, tol=1e-6).fit(queries).get_support().any()


def test_irrelevant_features_stay_out_and_the_others_have_names():
    rng = np.random.default_rng(3)
    X, y, qid = made(queries=40, features=3, noise=0.3)
    queries = Queries.from_arrays(
        np.hstack([rng.normal(size=(len(X), 5)), X]), y, qid=qid, feature_names=[*"abcde", "first", "none", "last"]
    )
    for bound in ("convex", "nonconvex"):
        ranker = LargeMarginRanker("nDCG@5", bound=bound, penalty="l1", lam=0.3).fit(queries)
        assert set(ranker.selected_) == {"first", "last"}, bound
        assert ranker.get_support(indices=True).tolist() == [5, 7]
        assert np.array_equal(ranker.get_support(), ranker.coef_ != 0)
        assert np.abs(ranker.coef_[[5, 7]]).argmax() == [5, 7].index(5 if ranker.selected_[0] == "first" else 7)
    kept = SelectFromModel(ranker, prefit=True).get_support()
    assert kept.tolist() == ranker.get_support().tolist()
    with pytest.raises(NotFittedError):
        PairwiseRanker(penalty="l1").get_support()
    unnamed = PairwiseRanker(lam=0.03, penalty="l1").fit(X, y, qid=qid)
    assert set(unnamed.selected_) == {"x0", "x2"}


@pytest.mark.filterwarnings("ignore::rankopt.errors.WorseThanInitWarning")
def test_a_start_is_no_center():
    """Of a nonconvex bound w0 says where training starts; the penalty pulls to 0 from wherever that is."""
    X, y, qid = made(queries=20, features=4)
    for w0 in ("zeros", "regression", np.array([1.0, 0.0, 0.0, -2.0])):
        ranker = LargeMarginRanker("nDCG@5", penalty="l1", lam=0.02, w0=w0).fit(X, y, qid=qid)
        assert not ranker.w0_.any()
        proved = ranker.certificate_
        assert proved.kind == "stationary"
        assert proved.relative_gap <= ranker.tol
        assert proved.primal == pytest.approx(objective_at(ranker, X, y, qid, ranker.coef_), rel=1e-12)
        risk = ranker.objective(Queries.from_arrays(X, y, qid=qid)).risk.at(ranker.coef_).value
        assert proved.primal == pytest.approx(0.02 * np.abs(ranker.coef_).sum() + risk, rel=1e-12)
    one, other = (
        PairwiseRanker(penalty="l1", lam=0.02, w0=w0, tol=1e-6).fit(X, y, qid=qid) for w0 in ("zeros", [3.0] * 4)
    )
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-6)


def test_a_path_begins_with_nothing_and_lets_features_in():
    X, y, qid = made(queries=30, features=6)
    ranker = PairwiseRanker(penalty="l1", tol=1e-4)
    with pytest.warns(NoProgressWarning):
        path = ranker.path(X, y, qid=qid, lams=8)
    assert len(path) == 8
    assert path.lams[0] / path.lams[-1] == pytest.approx(1000.0)
    counts = [model.get_support().sum() for model in path]
    assert counts[0] == 0
    assert counts[-1] == 6
    for model in path:
        assert model.certificate_.relative_gap <= 1e-4
        alone = clone(model).fit(X, y, qid=qid) if model.coef_.any() else model
        assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-4)
    with pytest.raises(OptionError, match="penalty='l1'"):
        PairwiseRanker().path(X, y, qid=qid, lams=8)


def test_a_path_of_a_nonconvex_bound_does_not_stay_at_0():
    X, y, qid = made(queries=30, features=6)
    ranker = LargeMarginRanker("nDCG@5", penalty="l1", tol=1e-4)
    with pytest.warns(NoProgressWarning):
        path = ranker.path(X, y, qid=qid, lams=[3.0, 0.01])
    alone = clone(ranker).set_params(lam=0.01).fit(X, y, qid=qid)
    assert path[1].coef_.any()
    assert path[1].certificate_.primal == pytest.approx(alone.certificate_.primal, rel=0.05)
    assert path[1].n_iter_ <= alone.n_iter_ + 2


def test_engines_give_the_same_bits_and_a_checkpoint_goes_on(tmp_path):
    X, y, qid = made(queries=20, features=5)
    options = {"penalty": "l1", "lam": 0.01}
    one, other = (LargeMarginRanker("nDCG@5", engine=engine, **options) for engine in ("serial", "threads"))
    assert np.array_equal(one.fit(X, y, qid=qid).coef_, other.fit(X, y, qid=qid).coef_)
    kept = LargeMarginRanker("nDCG@5", checkpoint=str(tmp_path / "kept"), **options)
    kept.set_params(callbacks=[lambda step, state: step.step >= 2]).fit(X, y, qid=qid)
    assert kept.n_iter_ == 2 < one.n_iter_
    assert np.array_equal(kept.set_params(callbacks=()).fit(X, y, qid=qid).coef_, one.coef_)
    one.save(tmp_path / "model")
    assert load_model(tmp_path / "model").penalty == "l1"


def test_constraints_and_an_eval_set_go_with_it():
    X, y, qid = made(queries=20, features=4)
    site = np.arange(len(y)) % 3
    rule = Admissible(3, on_infeasible="truncate").at_most(1, by="site")
    ranker = LargeMarginRanker("nDCG@3", penalty="l1", lam=0.01, constraints=rule)
    ranker.fit(X, y, qid=qid, attributes={"site": site}, eval_set=(X, y), eval_qid=qid, eval_attributes={"site": site})
    assert 0.0 < ranker.best_score_ <= 1.0


def test_an_eval_set_does_not_choose_the_start():
    X, y, qid = made(queries=20, features=6)
    start = LargeMarginRanker("nDCG@5").fit(X, y, qid=qid).w0_
    path = LargeMarginRanker("nDCG@5", penalty="l1").path(X, y, qid=qid, lams=5, eval_set=(X, y), eval_qid=qid)
    assert all(model.get_support().any() or not model.coef_.any() for model in path)
    assert not any(np.array_equal(model.coef_, start) for model in path)
    assert not path[0].get_support().all()


def test_what_cannot_be_says_so():
    X, y, qid = made()
    for method in ("block_frank_wolfe", "stochastic_subgradient", "steepest_subgradient"):
        with pytest.raises(OptionError, match="'bundle' or 'cutting_planes'"):
            PairwiseRanker(penalty="l1", method=method).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="known are 'l1', 'l2'"):
        LossRanker(penalty="elastic").fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="active_set"):
        PairwiseRanker(penalty="l1", master_solver="active_set").fit(X, y, qid=qid)


# The ridge: every one of them from one pass, cross-validation over whole queries, intercepts of queries.


def drawn(seed, queries=9, features=4):
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 9, queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = random.normal(size=(offsets[-1], features)) * 10.0 ** random.integers(-2, 3, features)
    X += np.repeat(random.normal(size=(queries, features)) * 5, sizes, axis=0)
    y = X @ random.normal(size=features) + random.normal(size=offsets[-1])
    weights = np.repeat(random.uniform(0.5, 2.0, queries), sizes)
    return X, y, weights, offsets


def centered(values, offsets):
    means = np.add.reduceat(values, offsets[:-1], axis=0) / np.diff(offsets).reshape(-1, *[1] * (values.ndim - 1))
    return values - np.repeat(means, np.diff(offsets), axis=0)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 7.0])
@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "CSR"])
def test_an_intercept_of_each_query_is_eliminated(alpha, make):
    X, y, weights, offsets = drawn(1)
    of_query = np.repeat(np.eye(offsets.size - 1), np.diff(offsets), axis=0)
    both = np.sqrt(weights)[:, None] * np.hstack([X, of_query])
    ridge = np.diag(np.sqrt(np.r_[np.full(4, alpha), np.zeros(offsets.size - 1)]))
    system, right = np.vstack([both, ridge]), np.r_[np.sqrt(weights) * y, np.zeros(ridge.shape[0])]
    expected = np.linalg.lstsq(system, right, rcond=None)[0][:4]
    found = least_squares(make(X), y, weights, alpha, offsets=offsets)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("offsets", [None, [0, 5, 11, 40]], ids=["one intercept", "one a query"])
def test_wide_sparse_data_has_the_same_solution(offsets):
    random = np.random.default_rng(3)
    X = random.normal(size=(40, 600)) * (random.random((40, 600)) < 0.1)
    y = random.normal(size=40)
    cut = None if offsets is None else np.array(offsets)
    weights = np.repeat([1.0, 2.0, 0.5], [5, 6, 29])
    found = least_squares(csr_array(X), y, weights, 0.3, offsets=cut)
    assert found == pytest.approx(least_squares(X, y, weights, 0.3, offsets=cut), abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_every_ridge_is_that_of_least_squares(seed):
    X, y, weights, offsets = drawn(seed)
    ridges = Ridges.from_features(X, y, weights, np.arange(len(y)), offsets)
    assert ridges.penalties.shape == ridges.weights.shape
    for place in range(20, len(ridges.penalties), 9):
        expected = least_squares(X, y, weights, ridges.penalties[place], offsets=offsets)
        assert ridges.weights[place] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_chosen_errs_least_on_queries_left_out(seed):
    X, y, weights, offsets = drawn(seed, queries=11)
    rows = np.arange(len(y))
    ridges = Ridges.from_features(X, y, weights, rows, offsets)
    fold = np.repeat(np.arange(offsets.size - 1) % FOLDS, np.diff(offsets))
    errors = []
    for penalty in ridges.penalties:
        error = 0.0
        for part in range(FOLDS):
            kept = fold != part
            cut = np.concatenate([[0], np.cumsum(np.diff(offsets)[np.arange(offsets.size - 1) % FOLDS != part])])
            w = least_squares(X[kept], y[kept], weights[kept], penalty, offsets=cut)
            left = (weights * (centered(y, offsets) - centered(X, offsets) @ w) ** 2)[~kept]
            error += left.sum()
        errors.append(error)
    chosen = ridges.cross_validated()
    own = int(np.flatnonzero((ridges.penalties == chosen).all(axis=1))[0])
    assert errors[own] == pytest.approx(min(errors), rel=1e-6)


def test_units_of_the_features_change_no_score():
    X, y, weights, offsets = drawn(2)
    rows, units = np.arange(len(y)), np.array([1e-6, 1.0, 1e4, 37.0])
    one, other = (Ridges.from_features(given, y, weights, rows, offsets) for given in (X, X * units))
    kind = len(one.penalties) // 2  # the second kind is in units of the features' deviations
    assert (X * units) @ other.weights[kind:].T == pytest.approx(X @ one.weights[kind:].T, rel=1e-6, abs=1e-9)


def test_one_query_is_cross_validated_row_by_row():
    X, y = drawn(5, queries=1)[:2]
    X, y = np.vstack([X, X + 1.0, X * 0.5]), np.r_[y, y, -y]
    ridges = Ridges.from_features(X, y, np.ones(len(y)), np.arange(len(y)), np.array([0, len(y)]))
    A, r = X - X.mean(axis=0), y - y.mean()
    judged = []
    for penalty in ridges.penalties:
        hat = A @ np.linalg.solve(A.T @ A + np.diag(penalty), A.T)
        judged.append(np.sum((r - hat @ r) ** 2) / (len(y) - 1 - np.trace(hat)) ** 2)
    own = int(np.flatnonzero((ridges.penalties == ridges.cross_validated()).all(axis=1))[0])
    assert judged[own] == pytest.approx(min(judged), rel=1e-6)


@pytest.mark.parametrize(
    ("queries", "width"),
    [(1, WIDEST + 2), (7, 200), *(pytest.param(queries, WIDEST + 2, marks=pytest.mark.study) for queries in (2, 7))],
)
def test_more_features_than_that_are_chosen_for_one_by_one(queries, width):
    random = np.random.default_rng(8)
    qid = np.repeat(np.arange(queries), 8)
    X = csr_array(random.normal(size=(qid.size, width)) * (random.random((qid.size, width)) < 0.05))
    y = np.asarray(X[:, [0]].toarray()).ravel() + random.normal(size=qid.size)
    offsets = np.arange(0, qid.size + 1, 8)
    ridges = WideRidges(X, y, np.ones(qid.size), np.arange(qid.size), offsets)
    chosen = ridges.cross_validated()
    assert (ridges.penalties == chosen).all(axis=1).sum() == 1
    few = Ridges.from_features(X[:, :40], y, np.ones(qid.size), np.arange(qid.size), offsets)
    same = WideRidges(X[:, :40], y, np.ones(qid.size), np.arange(qid.size), offsets)
    trace = np.trace(few.total.squares)
    assert same.penalties[:, 0] == pytest.approx(trace * 10.0 ** np.arange(-5.0, 0.0))
    for w, penalty in zip(same.weights, same.penalties, strict=True):
        assert w == pytest.approx(least_squares(X[:, :40], y, np.ones(qid.size), penalty, offsets=offsets))


def test_a_newcomer_with_words_for_features_is_served():
    random = np.random.default_rng(9)
    X = csr_array((random.random((60, 5000)) < 0.01).astype(float))
    y, qid = random.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    for ranker in (RegressionRanker(), LargeMarginRanker()):
        assert np.isfinite(ranker.fit(X, y, qid=qid).coef_).all()


@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("queries", [1, 2, 6])
def test_fewer_rows_than_features_are_turned_into_their_own_space(queries, make):
    X, y, weights, offsets = drawn(10, queries=queries, features=40)
    X = X[:, :38] if len(y) < 38 else np.hstack([X, X[::-1]])[:, : len(y) + 5]
    rows = np.random.default_rng(11).permutation(len(y))
    turned = np.argsort(rows)
    few = ridges_of(make(X[turned]), y, weights, rows, offsets)
    whole = Ridges.from_features(X[turned], y, weights, rows, offsets)
    assert isinstance(few, FewRows)
    some = slice(30, 60)  # the smallest ridges lose digits in either
    assert few.penalties[some] == pytest.approx(whole.penalties[some], rel=1e-9)
    scores = X @ few.weights[some].T
    assert scores == pytest.approx(X @ whole.weights[some].T, rel=1e-5, abs=1e-7)
    assert few.weights[0].shape == (X.shape[1],)
    kinds = [ridges.judged(ridges.families[0])[some] for _, _, ridges in few.kinds]
    for own, family in zip(kinds, whole.families, strict=True):
        assert own == pytest.approx(whole.judged(family)[some], rel=1e-5)
