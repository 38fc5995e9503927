"""Small batches are solved without compiled code: the same values, bounds that hold, and orders as good."""

from itertools import permutations

import numpy as np
import pytest

from formulations import ranking, solve_batch
from formulations.argmax import batch as batch_module
from formulations.compiled import PAIRS, ROWS, is_small
from formulations.solvers.exact import ExactArgmax

WEIGHTS = {
    "power": lambda n: np.arange(1.0, n + 1) ** -0.5,
    "log": lambda n: 1.0 / np.log2(np.arange(n) + 2.0),
    "halved": lambda n: 2.0 ** (-np.arange(n) / 4),
    "cut": lambda n: np.where(np.arange(n) < 3, 1.0 / np.arange(1.0, n + 1), 0.0),
    "level": lambda n: np.full(n, 0.5),
    "negative": lambda n: -np.arange(n) / n,
    "nothing": np.zeros,
}


def batch_of(random, position_weights, discount, lengths, ties=False):
    n = int(np.sum(lengths))
    scores = random.integers(-1, 2, n) / 2 if ties else random.normal(size=n)
    gain = random.integers(0, 4, n) / 4.0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return ranking(
        scores, gain, discount=WEIGHTS[discount], position_weights=WEIGHTS[position_weights], offsets=offsets
    )


@pytest.mark.every(3)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("position_weights", WEIGHTS)
@pytest.mark.parametrize("discount", ["power", "cut", "level"])
def test_value_and_bound_enclose_the_best_of_all_orders(position_weights, discount, ties):
    random = np.random.default_rng(1)
    problems = batch_of(random, position_weights, discount, random.integers(1, 7, 25), ties)
    answer = solve_batch(problems, ExactArgmax(compiled=False))
    for q in range(len(problems)):
        rows = slice(*problems.offsets[[q, q + 1]].tolist())
        s, b, a, c = (getattr(problems, name)[rows] for name in ("scores", "gain", "discount", "position_weights"))
        best = max(c @ s[list(order)] - a @ b[list(order)] for order in permutations(range(s.size)))
        order = answer.order[rows]
        assert sorted(order) == list(range(s.size))
        assert answer.value[q] == pytest.approx(c @ s[order] - a @ b[order], abs=1e-12)
        assert answer.value[q] == pytest.approx(best, abs=1e-12)
        assert answer.value[q] <= best + 1e-13
        assert best <= answer.bound[q] + 1e-15 * abs(best)


@pytest.mark.parametrize("position_weights", ["power", "cut"])
def test_the_compiled_ways_find_the_same_values(position_weights):
    random = np.random.default_rng(2)
    problems = batch_of(random, position_weights, "power", random.integers(1, 60, 30))
    plain, compiled = (solve_batch(problems, ExactArgmax(compiled=flag)) for flag in (False, True))
    assert np.allclose(plain.value, compiled.value, rtol=1e-12, atol=1e-12)
    assert set(plain.algorithm) <= {"few candidates", "assignment", "one sort", "any order"}


def test_queries_that_merging_leaves_open_may_go_to_scipy(monkeypatch):
    random = np.random.default_rng(3)
    n, offsets = 40 * 20, np.arange(0, 801, 40)
    gain, weights = (
        random.integers(0, 8, n) / 8.0,
        {"position_weights": WEIGHTS["power"], "discount": WEIGHTS["halved"]},
    )
    problems = ranking(gain + random.normal(size=n) / 4, gain, offsets=offsets, **weights)
    compiled = solve_batch(problems, ExactArgmax(compiled=True))
    monkeypatch.setattr(batch_module, "FEW_OPEN", 32)
    few = solve_batch(problems, ExactArgmax(compiled=True))
    assert np.allclose(few.value, compiled.value, rtol=1e-12, atol=1e-12)
    assert "assignment" in set(few.algorithm)


def test_what_is_small_is_asked_of_the_whole():
    assert is_small(np.arange(0, ROWS + 1, 16))
    assert not is_small(np.arange(0, ROWS + 17, 16))
    long = int(PAIRS**0.5)
    assert is_small(np.array([0, long]))
    assert not is_small(np.array([0, long + 1]))
    random = np.random.default_rng(4)
    whole = ExactArgmax().for_batch(np.array([0, ROWS + 1]))
    part = batch_of(random, "cut", "cut", [5, 6])
    assert whole.compiled is True
    assert set(solve_batch(part, whole).algorithm) != set(solve_batch(part, ExactArgmax(compiled=False)).algorithm)
