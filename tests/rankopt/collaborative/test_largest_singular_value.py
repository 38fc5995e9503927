"""The largest singular value from above: never below the truth, close to it, and not deceived by an iteration."""

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array, random_array

from rankopt.collaborative.singular_value import (
    frobenius_bound,
    largest_singular_value,
    natural_start,
    top_pair,
    weighted_bound,
)
from rankopt.errors import DataError


def drawn(seed, rows, columns, density=0.5):
    rng = np.random.default_rng(seed)
    return csr_array(random_array((rows, columns), density=density, rng=rng, data_sampler=rng.normal))


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (5, 8), (60, 40), (30, 300)])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150, 3e-320])
def test_it_is_the_largest_and_never_below_it(shape, scale):
    for seed in range(4):
        psi = drawn(seed, *shape, density=1.0 if 1 in shape else 0.3) * scale
        found, plain = largest_singular_value(psi), largest_singular_value(psi, widest=0)
        true = np.linalg.norm((psi * (1 / scale if scale > 1e-300 else 1e300)).toarray(), 2)
        true *= scale if scale > 1e-300 else 1e-300
        slack = 1e-14 if scale > 1e-300 else 1e-2
        assert true * (1 - slack) <= found.bound <= true * (1 + 1e-9 + slack) + 5e-324
        assert found.estimate == pytest.approx(true, rel=1e-11 + slack)
        assert plain.bound >= found.bound * (1 - 1e-12)
        assert plain.proof == "norms"


def test_equal_matrices_of_integers_are_enclosed_tightly():
    """Known exactly: n ones in a row are √n, and a matrix of ones is √(mn)."""
    for m, n in ((1, 9), (3, 5), (40, 17)):
        found = largest_singular_value(csr_array(np.ones((m, n))))
        assert found.bound**2 >= m * n
        assert found.bound == pytest.approx(np.sqrt(m * n), rel=1e-10)


def test_what_an_iteration_misses_the_factor_finds():
    """The start has nothing of the top pair, exactly: an iteration with a tiny residual ends at the wrong value."""
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(30, 20)), 3 * rng.normal(size=(25, 30))]
    psi = csr_array(block_diag(blocks))
    start = np.concatenate([np.ones(20), np.zeros(30)])
    missed = top_pair(psi, start)
    low, high = (np.linalg.norm(block, 2) for block in blocks)
    assert missed.value == pytest.approx(low, rel=1e-12)
    assert missed.residual <= 1e-10
    assert high > 2 * low
    for matrix, begin in ((psi, start), (csr_array(psi.T), np.concatenate([np.ones(30), np.zeros(25)]))):
        found = largest_singular_value(matrix, start=begin)
        assert found.proof == "cholesky"
        assert high <= found.bound <= high * (1 + 1e-9)
        assert found.estimate == pytest.approx(high, rel=1e-11)
        assert found.left @ (matrix @ found.right) == pytest.approx(high, rel=1e-11)
    by_norms = largest_singular_value(psi, start=start, widest=0)
    assert by_norms.estimate == pytest.approx(low, rel=1e-12)  # an estimate is no more than that
    assert by_norms.bound >= high


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_close_pairs_are_enclosed_too(gap):
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.normal(size=(n, 12)))[0] for n in (40, 30))
    values = np.concatenate([[1.0, 1.0 - gap, 1.0 - gap], np.linspace(0.9, 0.1, 9)])
    found = largest_singular_value(csr_array((left * values) @ right.T), start=right[:, 1] + 1e-3 * right[:, 5])
    assert 1.0 - 1e-14 <= found.bound <= 1.0 + max(1e-8, 4 * gap)


def test_other_names_for_rows_and_columns_change_nothing():
    psi = drawn(2, 40, 60)
    rng = np.random.default_rng(3)
    rows, columns = rng.permutation(40), rng.permutation(60)
    here, there = largest_singular_value(psi), largest_singular_value(csr_array(psi[rows][:, columns]))
    assert here.bound == pytest.approx(there.bound, rel=1e-12)
    np.testing.assert_allclose(there.left, here.left[rows], atol=1e-11)
    np.testing.assert_allclose(there.right, here.right[columns], atol=1e-11)


def test_norms_are_upper_bounds_and_better_than_rows_and_columns():
    for seed in range(5):
        psi = drawn(seed, 30, 50, 0.2)
        true = np.linalg.norm(psi.toarray(), 2) ** 2
        assert true <= frobenius_bound(psi)
        assert true <= np.linalg.norm(abs(psi).toarray(), 2) ** 2 <= weighted_bound(psi)
        assert weighted_bound(psi) <= np.linalg.norm(psi.toarray(), 1) * np.linalg.norm(psi.toarray(), np.inf)
    positive = abs(drawn(9, 30, 50, 0.5))
    assert weighted_bound(positive) == pytest.approx(np.linalg.norm(positive.toarray(), 2) ** 2, rel=1e-3)


def test_nothing_and_what_is_no_number():
    nothing = largest_singular_value(csr_array((4, 3)))
    assert (nothing.bound, nothing.estimate) == (0.0, 0.0)
    assert natural_start(csr_array((4, 3))).tolist() == [0.0] * 3
    with pytest.raises(DataError, match="NaN or infinite"):
        largest_singular_value(csr_array(np.array([[np.nan, 1.0]])))
