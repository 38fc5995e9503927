"""Arrays that are meant ill: errors of ours or finite answers, the same bits for the same numbers, no half model."""

import numpy as np
import pytest
import scipy.sparse as sp
from planted.attack import assert_survived

from rankopt.data import Queries
from rankopt.errors import DataError
from rankopt.evaluation.evaluation import evaluate
from rankopt.rankers import DirectRanker, LargeMarginRanker, LossRanker, RegressionRanker

X, Y, QID = np.random.default_rng(0).normal(size=(12, 3)), [0, 1, 2] * 4, np.repeat([0, 1], 6)
BEYOND = np.array([10**400] + [0] * 11, dtype=object)


@pytest.mark.study
@pytest.mark.parametrize("tries", [60, pytest.param(300, marks=pytest.mark.study)])
def test_arrays_by_the_hundred(tries):
    assert_survived("arrays", tries, 9)


def test_whole_numbers_beyond_floats_are_named():
    for given, name in (((BEYOND[:, None], Y), "features"), ((X, BEYOND), "relevance")):
        with pytest.raises(DataError, match=f"{name} cannot be read as numbers"):
            RegressionRanker().fit(*given, qid=QID)
    with pytest.raises(DataError, match="relevance cannot be read"):
        evaluate(BEYOND, X[:, 0], "nDCG@5", offsets=[0, 12])


@pytest.mark.parametrize("weight", [[object(), 1], [1j, 1], [1e-320, 1], [1, 1e101]])
def test_weights_that_cannot_be_summed_are_refused(weight):
    with pytest.raises(DataError, match="query_weight"):
        LargeMarginRanker().fit(X, Y, qid=QID, query_weight=np.array(weight))


def test_a_sparse_matrix_has_at_most_as_many_columns_as_a_file():
    wide = sp.csr_array((np.ones(1), ([0], [5])), shape=(2, 2**40))
    with pytest.raises(DataError, match="leave out empty ones"):
        Queries.from_arrays(wide, [0, 1], group=[2])


def test_a_score_beyond_double_precision_is_no_answer():
    ranker = RegressionRanker(1.0).fit(X, Y, qid=QID)
    ranker.coef_ = np.array([2.0, -2.0, 2.0])
    with pytest.raises(DataError, match="score of row 1 leaves double precision"):
        ranker.predict(np.array([[1.0, 0, 0], [1e308, 1e308, -1e308], [0, 0, 0]]))


def test_features_near_the_end_of_double_precision_are_climbed_or_named():
    far = X.copy()
    far[4, 1], far[7, 2] = -1e308, 1e308
    assert np.isfinite(DirectRanker("nDCG@5", init="zeros").fit(far, Y, qid=QID).coef_).all()
    far = X.copy()
    far[[2, 5, 9], 0] = 1e155
    with pytest.raises(DataError, match="feature 0 reaches 1e\\+155"):
        LossRanker("pairwise", lam=1.0).fit(far, Y, qid=QID)


def test_a_column_that_only_a_query_without_weight_makes_large_is_constant():
    far = np.where(np.arange(12)[:, None] < 6, X, 1e155 * (1 + X**2))
    ranker = RegressionRanker(1.0).fit(far, Y, qid=QID, query_weight=[1.0, 0.0])
    assert np.isfinite(ranker.coef_).all()


def test_a_grade_whose_square_cannot_be_held_is_no_target():
    with pytest.raises(DataError, match="a target is 1e\\+308"):
        RegressionRanker().fit(X, np.array([1e308, *[0.0] * 11]), qid=QID)
