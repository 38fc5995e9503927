"""Sorting is stable: documents of equal key stay in the order in which they came, whatever their number."""

import numpy as np
import pytest

from formulations.sorting import sort_falling, sort_few, sort_pairs

SIZES = [*range(0, 40), 63, 64, 65, 127, 128, 129, 500, 1023, 1025]


def keys(random, size, kind):
    if kind == "apart":
        return random.normal(size=size)
    if kind == "sorted":
        return np.sort(random.normal(size=size))[:: random.choice([-1, 1])].copy()
    if kind == "tied":
        return np.zeros(size)
    return random.choice([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf], size)


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", ["apart", "sorted", "tied", "few"])
@pytest.mark.parametrize("size", SIZES)
def test_as_numpys_stable_sort(size, kind):
    random = np.random.default_rng(size)
    key = keys(random, size, kind)
    first = np.argsort(-key, kind="stable")
    height, document = key.copy(), np.arange(size, dtype=np.int32)
    sort_pairs(height, document, np.empty(size), np.empty(size, np.int32))
    assert document.tolist() == first.tolist()
    assert height.tobytes() == key[first].tobytes()
    chosen = random.permutation(size)[: size - size // 3]
    for sort in (sort_falling, sort_falling.in_python, lambda documents, key, _: sort_few(documents, key)):
        documents = chosen.copy()
        sort(documents, key, np.empty_like(documents))
        assert documents.tolist() == chosen[np.argsort(-key[chosen], kind="stable")].tolist()
