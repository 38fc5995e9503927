"""Fingerprints of rows by NumPy and by the kernels, of dense and of sparse tables, are one number."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from rankopt.data.canonical_order import fingerprints


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fingerprints_are_the_same(dtype, monkeypatch):
    random = np.random.default_rng(0)
    table = (random.normal(size=(50, 9)) * (random.random((50, 9)) < 0.4)).astype(dtype)
    table[7], table[8, 0] = 0.0, -0.0
    found = []
    for pays in (-1, 1 << 60):
        monkeypatch.setattr("formulations.compiled.PAYS", pays)
        found += [fingerprints(table), fingerprints(csr_matrix(table))]
    for other in found[1:]:
        assert np.array_equal(found[0], other)
