"""Prices of an order, and what they prove, by NumPy and by the kernels: the same to the bit."""

import numpy as np
import pytest

from formulations import ranking
from formulations.forms.rank_two_prices import bound_of_prices, bounds_of, prices_of


@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_the_same_to_the_bit(seed, monkeypatch):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 25, 15)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = int(offsets[-1])
    cut = {
        "discount": lambda k: (np.arange(k) < 4) / (1.0 + np.arange(k)),
        "decay": lambda k: (1.0 + np.arange(k)) ** -0.5,
    }
    problems = ranking(random.normal(size=n), random.integers(0, 3, n) / 2, offsets=offsets, **cut)
    best = [random.permutation(int(k)) if seed % 2 else np.arange(k) for k in lengths]  # optimal or not
    given = (problems.scores, problems.gain, problems.discount, problems.decay)
    found = []
    for pays in (-1, 1 << 60):
        monkeypatch.setattr("formulations.compiled.PAYS", pays)
        one = tuple(values[: lengths[0]] for values in given)
        prices = prices_of(*one, best[0])
        found.append((bounds_of(*given, offsets, np.concatenate(best)), prices, bound_of_prices(*one, prices)))
    for kernel, numpy in zip(*found, strict=True):
        assert np.asarray(kernel).tobytes() == np.asarray(numpy).tobytes()
