"""The compiled argmax over Π(B, k): the value of brute force, its own proof, and the same answer as the statement."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from formulations import diverse_retrieval, solve
from formulations.argmax.diverse import collapsed_argmax


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
    collapsed_argmax(*queries, order, value, bound)
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
