"""Features near the ends of double precision: least squares as in other units; training says what to rescale."""

import numpy as np
import pytest
from problems.training import BOUNDS, made
from scipy.sparse import csr_array

from rankopt.data import Queries
from rankopt.errors import DataError, NoProgressWarning
from rankopt.optimize import METHODS
from rankopt.optimize.least_squares import column_units
from rankopt.rankers import LargeMarginRanker, MatchingRanker, PairwiseRanker, RegressionRanker

SCALES = [2.0**-1000, 2.0**-700, 2.0**-530, 2.0**512, 2.0**515, 2.0**700, 2.0**1020]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_least_squares_are_those_of_other_units(form, scale):
    X, y, qid = made()
    plain = RegressionRanker(0.0).fit(form(X), y, qid=qid).coef_
    mixed = scale ** np.array([1, 0, 1, 0])
    for units in (np.full(4, scale), mixed):
        coef = RegressionRanker(0.0).fit(form(X * units), y, qid=qid).coef_
        np.testing.assert_allclose(coef * units, plain, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_ridge_lets_large_features_free_and_holds_small_ones(form):
    X, y, qid = made()
    for scale in (2.0**-700, 2.0**700):
        units = np.array([1.0, scale, 1.0, 1.0])
        coef = RegressionRanker(0.5).fit(form(X * units), y, qid=qid).coef_
        assert np.isfinite(coef).all()
        if scale < 1:
            rest = RegressionRanker(0.5).fit(form(X[:, [0, 2, 3]]), y, qid=qid).coef_
            np.testing.assert_allclose(coef[[0, 2, 3]], rest, rtol=1e-9)
        else:
            free = RegressionRanker(0.5).fit(form(X * np.array([1.0, 2.0**60, 1.0, 1.0])), y, qid=qid).coef_
            np.testing.assert_allclose((coef * units)[1], free[1] * 2.0**60, rtol=1e-9)


def test_wide_sparse_data_is_measured_in_units_too():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 600)) < 0.05, rng.normal(size=(80, 600)), 0.0)
    y, qid = rng.integers(0, 3, 80).astype(float), np.repeat(np.arange(8), 10)
    plain = RegressionRanker(1e-3).fit(csr_array(X), y, qid=qid)
    units = np.where(np.arange(600) % 2, 1.0, 2.0**600)
    free = RegressionRanker(0.0).fit(csr_array(X), y, qid=qid).coef_
    coef = RegressionRanker(0.0).fit(csr_array(X * units), y, qid=qid).coef_
    np.testing.assert_allclose(coef * units, free, rtol=1e-6, atol=1e-9 * np.abs(free).max())
    assert np.isfinite(plain.coef_).all()


def test_ordinary_columns_are_left_as_they_are():
    X = np.array([[1e80, 1e-80, 0.0], [-1.0, 0.0, 0.0]])
    assert column_units(X) is None
    assert column_units(csr_array(X)) is None
    assert column_units(np.zeros((3, 0))) is None
    extreme = X * [1.0, 1e-80, 1.0]
    assert column_units(extreme).tolist()[::2] == [1.0, 1.0]
    np.testing.assert_array_equal(column_units(extreme), column_units(csr_array(extreme)))


@pytest.mark.every(2)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-160])
def test_tiny_features_train(method, scale):
    X, y, qid = made()
    plain = LargeMarginRanker("nDCG@5", method=method, lam=1.0).fit(X, y, qid=qid)
    with pytest.warns(NoProgressWarning):
        tiny = LargeMarginRanker("nDCG@5", method=method, lam=1.0).fit(X * scale, y, qid=qid)
    assert tiny.certificate_.relative_gap <= tiny.tol
    if scale >= 1e-300:  # w0 orders as it does in other units, and no step pays for itself
        start = RegressionRanker(measure="nDCG@5").fit(X, y, qid=qid)
        assert tiny.score(X * scale, y, qid=qid) == pytest.approx(start.score(X, y, qid=qid))
    assert np.isfinite(plain.certificate_.primal)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("scale", [1e155, 1e300])
def test_huge_features_are_named(form, scale):
    X, y, qid = made()
    X = X * np.array([1.0, 1.0, scale, 1.0])
    rankers = [
        PairwiseRanker(),
        MatchingRanker(bound="nonconvex"),
        *(LargeMarginRanker(bound=bound) for bound in BOUNDS),
        *(LargeMarginRanker(method=method) for method in METHODS),
    ]
    queries = Queries.from_arrays(form(X), y, qid=qid, feature_names=["a", "b", "size in bytes", "d"])
    for ranker in rankers:
        with pytest.raises(DataError, match=r"feature 'size in bytes' reaches .*; divide it by"):
            ranker.fit(queries)
        with pytest.raises(DataError, match="feature 2 reaches"):
            ranker.fit(form(X), y, qid=qid)
