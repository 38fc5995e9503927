"""Small batches are solved without compiled code: the same values, bounds that hold, and orders as good."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from formulations import diverse_retrieval, ranking, solve, solve_batch
from formulations.argmax import batch as batch_module
from formulations.argmax.diverse import diverse_argmax
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


# Long queries of many states.


POSITIONS = np.arange(1.0, 1100.0)


@pytest.mark.parametrize(("position_weights", "room"), [(1.0, 2), (1.0, None), (0.5, 2), (0.5, 3000)])
def test_a_thousand_documents_without_room_are_proved_by_shortest_paths(position_weights, room):
    """Five gains drawn from noisy scores, discounts of nDCG and ERU: states without end, an assignment all the same."""
    random = np.random.default_rng(5)
    n = 400
    height = random.normal(size=n)
    gain = 2.0 ** np.searchsorted([-1.0, -0.3, 0.3, 1.0], height + 0.7 * random.normal(size=n)) - 1
    for name in ("log", "halved"):
        a = WEIGHTS[name](n)
        a = a / (a @ np.sort(gain)[::-1])
        problems = ranking(
            0.1 * height, gain, discount=a, position_weights=POSITIONS[:n] ** -position_weights, offsets=[0, n]
        )
        answer = solve_batch(problems, ExactArgmax(max_states=room))
        assert answer.value[0] == pytest.approx(solve(problems[0], "scipy").value, abs=problems[0].rounding)
        assert answer.proved().bound[0] == pytest.approx(answer.value[0], abs=problems[0].rounding)


# The compiled argmax over Π(B, k): the value of brute force, its own proof, and the same answer as the statement.


def batch(rng, sizes, draw):
    """Queries with blocks counted from 0, up to four positions each."""
    blocks = [np.unique(rng.integers(0, max(2, n // 2), n), return_inverse=True)[1] for n in sizes]
    places = np.cumsum([0, *(min(4, block.max() + 1) for block in blocks)])
    offsets = np.cumsum([0, *sizes])
    scores, gain = draw(offsets[-1]), np.abs(draw(offsets[-1]))
    falling = [np.sort(np.abs(draw(places[-1])))[::-1].copy() for _ in range(2)]
    weights = [np.concatenate([part[: high - low] for low, high in pairwise(places.tolist())]) for part in falling]
    return scores, gain, np.concatenate(blocks), offsets, *weights, places


def solved(queries):
    places = queries[-1]
    order, value, bound = np.empty(places[-1], dtype=np.int64), np.empty(places.size - 1), np.empty(places.size - 1)
    diverse_argmax(*queries, order, value, bound)
    return order, value, bound


DRAWS = {
    "normal": lambda rng: lambda size: rng.normal(size=size),
    "tied": lambda rng: lambda size: rng.integers(-1, 2, size).astype(float),
    "zero": lambda rng: lambda size: np.zeros(size),
    "1e9": lambda rng: lambda size: 1e9 * rng.normal(size=size),
    "1e-9": lambda rng: lambda size: 1e-9 * rng.normal(size=size),
}


@pytest.mark.parametrize("name", DRAWS)
def test_no_admissible_order_beats_it_and_prices_prove_it(name):
    rng = np.random.default_rng(3)
    queries = batch(rng, rng.integers(1, 7, 40), DRAWS[name](rng))
    scores, gain, block, offsets, discount, decay, places = queries
    order, value, bound = solved(queries)
    for q in range(offsets.size - 1):
        rows, spots = slice(offsets[q], offsets[q + 1]), slice(places[q], places[q + 1])
        profit = np.outer(decay[spots], scores[rows]) - np.outer(discount[spots], gain[rows])
        k, n = profit.shape
        admissible = [p for p in permutations(range(n), k) if np.unique(block[rows][list(p)]).size == k]
        best = max(profit[np.arange(k), list(p)].sum() for p in admissible)
        rounding = 1e-13 * (np.abs(profit).max() + 1e-300) * n
        assert value[q] == pytest.approx(best, abs=rounding)
        assert tuple(order[spots]) in admissible
        assert profit[np.arange(k), order[spots]].sum() == pytest.approx(best, abs=rounding)
        assert best - rounding <= bound[q] <= best + rounding


def test_the_statement_has_the_same_value():
    rng = np.random.default_rng(4)
    queries = batch(rng, rng.integers(20, 90, 15), DRAWS["normal"](rng))
    scores, gain, block, offsets, discount, decay, places = queries
    _, value, _ = solved(queries)
    for q in range(offsets.size - 1):
        rows, spots = slice(offsets[q], offsets[q + 1]), slice(places[q], places[q + 1])
        profit = np.outer(decay[spots], scores[rows]) - np.outer(discount[spots], gain[rows])
        assert value[q] == pytest.approx(solve(diverse_retrieval(profit, block[rows])).value, abs=1e-12)
