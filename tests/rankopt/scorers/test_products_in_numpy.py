"""Sums of rows by NumPy and by the kernels are the same to the bit."""

import numpy as np
import pytest

from rankopt.scorers.linear import pair_sums, row_sums


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [1, 2, 7, 64])
def test_sums_are_the_same_to_the_bit(dtype, columns, monkeypatch):
    random = np.random.default_rng(columns)
    table = random.normal(size=(300, columns)).astype(dtype)
    rows = random.permutation(300)[:200]
    one, other = (random.normal(size=200) * (random.random(200) < 0.6) for _ in range(2))
    bounds = np.array([0, 0, 5, 90, 91, 200])
    found = []
    for pays in (-1, 1 << 60):
        monkeypatch.setattr("formulations.compiled.PAYS", pays)
        found.append((row_sums(table, rows, one, bounds), *pair_sums(table, rows, one, other, bounds)))
    for kernel, numpy in zip(*found, strict=True):
        assert kernel.tobytes() == numpy.tobytes()
