"""Quadratic programs whose variables have no end: what solvers round away costs digits of the bound, not all of it."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations import QuadraticProgram


def random_program(seed, curved=True):
    """min ½ |Fx|² + q·x, Ax >= b, x >= 0, with a point and prices that are optimal by construction."""
    rng = np.random.default_rng(seed)
    size, rows = 6, 4
    factor = rng.normal(size=(size if curved else 2, size))
    matrix = np.abs(rng.normal(size=(rows, size))) + 0.1
    z = np.where(rng.random(size) < 0.5, rng.random(size) + 0.5, 0.0)
    prices = np.where(np.arange(rows) < 2, rng.random(rows) + 0.5, 0.0)
    reduced = np.where(z > 0, 0.0, rng.random(size))
    low = matrix @ z - (prices == 0.0)
    linear = reduced + matrix.T @ prices - factor.T @ (factor @ z)
    program = QuadraticProgram(
        csr_array(factor.T @ factor), linear, csr_array(matrix), low, np.full(rows, np.inf), np.zeros(size),
        np.full(size, np.inf),
    )  # fmt: skip
    return program, z, prices


@pytest.mark.every(5)
@pytest.mark.parametrize("curved", [True, False])
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-6])
def test_a_small_error_of_the_solver_is_a_small_error_of_the_bound(seed, noise, curved):
    program, z, prices = random_program(seed, curved)
    rng = np.random.default_rng(seed + 100)
    told = np.concatenate([prices, z]) + noise * rng.normal(size=prices.size + z.size)
    optimum = program.value(z)
    bound = program.bound(told)
    assert bound <= optimum + 1e-12 * max(1.0, abs(optimum))
    assert bound >= optimum - 1e-8 - 1e4 * noise


def test_what_has_no_near_proof_has_no_bound():
    """min -x has no least value over x >= 0."""
    empty, endless = csr_array((1, 2)), np.array([-np.inf])
    program = QuadraticProgram(
        csr_array(np.diag([0.0, 1.0])), np.array([-1.0, 0.0]), empty, endless, -endless, np.zeros(2), np.full(2, np.inf)
    )
    assert program.bound(np.zeros(3)) == -np.inf
    assert program.bound(np.array([0.0, 1e100, 1e100])) == -np.inf
