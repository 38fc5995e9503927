"""Determinants and ranks of integers and fractions, dense and sparse, are exact."""

from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from formulations.integrality.determinant import determinant, entries_of, rank


def test_determinants_are_exact():
    rng = np.random.default_rng(0)
    for size in range(1, 8):
        matrix = rng.integers(-5, 6, (size, size))
        assert determinant(entries_of(csr_array(matrix)), size) == round(float(np.linalg.det(matrix)))
    hilbert = tuple((i, j, Fraction(1, i + j + 1)) for i in range(6) for j in range(6))
    assert determinant(hilbert, 6) == Fraction(1, 186313420339200000)
    assert determinant(entries_of(csr_array([[0.5]])), 1) == Fraction(1, 2)


def test_determinants_and_ranks_of_few_entries_are_those_of_numpy():
    random = np.random.default_rng(0)
    for trial in range(600):
        size = int(random.integers(1, 8))
        matrix = random.integers(-2, 3, (size, size)) * (random.random((size, size)) < random.choice([0.2, 0.5, 1.0]))
        if trial % 2 and size > 1:  # one cycle
            matrix[:], rows, columns = 0, random.permutation(size), random.permutation(size)
            matrix[rows, columns] = random.choice([-1, 1, 2], size)
            matrix[np.roll(rows, -1), columns] = random.choice([-1, 1], size)
        entries = entries_of(csr_array(matrix))
        assert determinant(entries, size) == round(float(np.linalg.det(matrix)))
        assert rank(entries) == np.linalg.matrix_rank(matrix)
