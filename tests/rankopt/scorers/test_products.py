"""The two products of a step: what they are, in which precision, and that nothing but the data decides their bits."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations.parallel import at_most
from rankopt.scorers.linear import linear_scores, pair_sums, parts_of, row_scores, row_sums


def table(kind, rows=5000, features=37, seed=0):
    random = np.random.default_rng(seed)
    dense = random.normal(size=(rows, features)) * (random.random((rows, features)) < 0.3)
    return {
        "float64": lambda: dense,
        "float32": lambda: dense.astype(np.float32),
        "csr": lambda: csr_array(dense),
        "csr float32": lambda: csr_array(dense.astype(np.float32)),
        "csr int64": lambda: wide(csr_array(dense)),
        "fortran": lambda: np.asfortranarray(dense),
    }[kind]()


def wide(matrix):
    parts = (matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64))
    return csr_array(parts, shape=matrix.shape)


def dense(features):
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)


KINDS = ["float64", "float32", "csr", "csr float32", "csr int64", "fortran"]


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_definition_in_double_precision(kind):
    features, random = table(kind), np.random.default_rng(1)
    rows, w, r = random.permutation(5000)[:3000], random.normal(size=37), random.normal(size=3000)
    bounds = np.array([0, 1, 1, 40, 2999, 3000])
    chosen = dense(features)[rows]
    np.testing.assert_allclose(row_scores(features, rows, w), chosen @ w, rtol=1e-13, atol=1e-13)
    expected = [r[low:high] @ chosen[low:high] for low, high in pairwise(bounds)]
    np.testing.assert_allclose(row_sums(features, rows, r, bounds), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_visits_changes_no_bit(kind):
    features, random = table(kind), np.random.default_rng(3)
    rows, w = random.permutation(5000)[:4999], random.normal(size=37)
    scores = row_scores(features, rows, w)
    for turns in (np.argsort(rows), random.permutation(4999)):
        np.testing.assert_array_equal(row_scores(features, rows, w, turns), scores)


@pytest.mark.parametrize("kind", KINDS)
def test_two_sums_in_one_pass_are_the_two_sums(kind):
    features, random = table(kind), np.random.default_rng(4)
    rows, r, other = random.permutation(5000)[:3000], random.normal(size=3000), random.normal(size=3000)
    r[::3], other[::2] = 0.0, 0.0
    bounds = np.array([0, 7, 7, 900, 3000])
    for found, weights in zip(pair_sums(features, rows, r, other, bounds), (r, other), strict=True):
        np.testing.assert_allclose(found, row_sums(features, rows, weights, bounds), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_one_thread_and_many_give_the_same_bits(kind):
    features, random = table(kind), np.random.default_rng(2)
    rows, w, r = random.permutation(5000), random.normal(size=37), random.normal(size=5000)
    bounds = parts_of(np.arange(0, 5001, 25), 100)
    answers = []
    for limit in (1, 2, 7):
        with at_most(limit):
            answers.append((row_scores(features, rows, w), row_sums(features, rows, r, bounds)))
    for scores, sums in answers[1:]:
        np.testing.assert_array_equal(scores, answers[0][0])
        np.testing.assert_array_equal(sums, answers[0][1])


@pytest.mark.parametrize("features", [1, 2, 3, 7, 8, 9, 31, 46, 136])
def test_equal_documents_have_equal_scores_wherever_they_stand(features):
    random = np.random.default_rng(features)
    document, w = random.normal(size=features), random.normal(size=features)
    for count in (1, 2, 3, 64, 1001):
        block = np.empty((count + 3, features))
        block[:] = document
        for start in range(3):
            assert np.unique(linear_scores(block[start : start + count], w)).size == 1


def test_dense_and_sparse_rows_of_float32_are_summed_in_double():
    features = np.full((1, 3), 1e8, dtype=np.float32)
    features[0, 1] = 1.0
    w = np.array([1.0, 1.0, -1.0])
    assert linear_scores(features, w) == [1.0]
    assert linear_scores(csr_array(features), w) == [1.0]


def test_parts_hold_whole_queries_and_all_of_them():
    random = np.random.default_rng(3)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 90, 300))])
    for rows in (1, 50, 1000, 10**6):
        bounds = parts_of(offsets, rows)
        assert np.isin(bounds, offsets).all()
        assert bounds[0] == 0
        assert bounds[-1] == offsets[-1]
        assert (np.diff(bounds)[:-1] > rows - 90).all()
        assert (np.diff(bounds) < rows + 90).all()
