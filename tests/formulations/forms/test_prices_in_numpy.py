"""Prices of an order by NumPy and by the kernels are the same to the bit, and what they prove is the same but for
rounding, outward both times."""

import numpy as np
import pytest

from formulations import ranking
from formulations.problems import ranking_duals as rank_two_outward
from formulations.problems.ranking_duals import bound_of_prices, bounds_of_orders, judged, prices_of


@pytest.mark.parametrize("seed", range(8))
def test_both_ways_say_the_same(seed, monkeypatch):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 25, 15)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = int(offsets[-1])
    weights = {
        "discount": lambda k: (np.arange(k) < 4) / (1.0 + np.arange(k)),
        "position_weights": lambda k: (1.0 + np.arange(k)) ** -0.5,
    }
    scores = random.normal(size=n) if seed % 3 else random.integers(0, 2, n) / 2.0
    problems = ranking(scores, random.integers(0, 3, n) / 2, offsets=offsets, **weights)
    orders = [random.permutation(int(k)) if seed % 2 else np.arange(k) for k in lengths]  # optimal or not
    given = (problems.scores, problems.gain, problems.discount, problems.position_weights)
    found = []
    for small in (False, True):
        monkeypatch.setattr("formulations.compiled.PAYS", 1 << 60 if small else -1)
        monkeypatch.setattr(rank_two_outward, "is_small", lambda offsets, small=small: small)
        monkeypatch.setattr(rank_two_outward, "PAIRS", 1 << 60 if small else -1)
        one = tuple(values[: lengths[0]] for values in given)
        prices, order = prices_of(*one, orders[0]), np.concatenate(orders)
        bounds = bounds_of_orders(*given, offsets, order)
        found.append((prices, bounds, bound_of_prices(*one, prices), *judged(*given, offsets, order, np.zeros(15))))
    assert found[0][0].tobytes() == found[1][0].tobytes()
    for kernel, numpy in zip(found[0][1:], found[1][1:], strict=True):
        assert np.allclose(kernel, numpy, rtol=1e-14, atol=1e-15)
