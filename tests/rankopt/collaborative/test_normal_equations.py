"""Ridge systems by the kernel are those of NumPy, whichever of the two forms is smaller."""

import numpy as np
import pytest

from formulations.parallel import at_most
from rankopt.collaborative.linear_algebra import solve_ridges


@pytest.mark.parametrize("d", [0, 1, 3, 4, 9, 17])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [False, True])
def test_every_row_is_the_solution_of_its_system(d, weighted, offset):
    draws = np.random.default_rng(d)
    sizes = np.array([0, 1, 2, 5, 8, 17, 18, 19, 70, 131, 0])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    columns = draws.integers(0, 40, bounds[-1]).astype(np.int32)
    target, other = draws.normal(size=bounds[-1]), draws.normal(size=(40, d))
    weights = draws.uniform(0.1, 3.0, bounds[-1]) if weighted else np.zeros(0)
    penalty, own = draws.uniform(0.1, 5.0, sizes.size), draws.uniform(0.1, 5.0, sizes.size if offset else 0)
    found, offsets = solve_ridges(bounds, columns, target, weights, other, penalty, own)
    for i in range(sizes.size):
        rows = slice(bounds[i], bounds[i + 1])
        A = np.column_stack([other[columns[rows]], np.ones((sizes[i], int(offset)))])
        W = np.diag(weights[rows] if weighted else np.ones(sizes[i]))
        wanted = np.linalg.solve(
            A.T @ W @ A + np.diag([penalty[i]] * d + [own[i]] * offset if offset else [penalty[i]] * d),
            A.T @ W @ target[rows],
        )
        np.testing.assert_allclose(found[i], wanted[:d], atol=1e-12)
        assert offsets[i] == pytest.approx(wanted[d] if offset else 0.0, abs=1e-12)


def test_threads_change_no_bit():
    draws = np.random.default_rng(0)
    bounds = np.arange(0, 20001, 20)
    columns = draws.integers(0, 50, bounds[-1]).astype(np.int32)
    given = bounds, columns, draws.normal(size=bounds[-1]), np.zeros(0), draws.normal(size=(50, 6))
    penalty = np.ones(bounds.size - 1)
    with at_most(1):
        one = solve_ridges(*given, penalty, penalty)
    with at_most(4):
        four = solve_ridges(*given, penalty, penalty)
    assert [part.tobytes() for part in one] == [part.tobytes() for part in four]
