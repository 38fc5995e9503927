"""The ridge: every one of them from one pass, cross-validation over whole queries, intercepts of queries."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from rankopt.optimize.least_squares import least_squares
from rankopt.optimize.ridge import FOLDS, WIDEST, FewRows, Ridges, WideRidges, ridges_of
from rankopt.rankers import LargeMarginRanker, RegressionRanker


def drawn(seed, queries=9, features=4):
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 9, queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = random.normal(size=(offsets[-1], features)) * 10.0 ** random.integers(-2, 3, features)
    X += np.repeat(random.normal(size=(queries, features)) * 5, sizes, axis=0)
    y = X @ random.normal(size=features) + random.normal(size=offsets[-1])
    weights = np.repeat(random.uniform(0.5, 2.0, queries), sizes)
    return X, y, weights, offsets


def centred(values, offsets):
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
            left = (weights * (centred(y, offsets) - centred(X, offsets) @ w) ** 2)[~kept]
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
