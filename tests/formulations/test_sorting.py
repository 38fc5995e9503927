"""Sorting is stable: documents of equal key stay in the order in which they came, whatever their number."""

import numpy as np
import pytest

from formulations import sorting
from formulations.sorting import falling_rows, sort_falling, sort_few, sort_pairs, sort_range

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


# Rows sorted inside queries, by counting, by merging or by NumPy: always the one stable order.


@pytest.mark.parametrize("kinds", [2, sorting.LEVELS, sorting.LEVELS + 1, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_one_stable_order(kinds, seed):
    draws = np.random.default_rng(seed)
    lengths = draws.integers(0, 60, size=30)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    query = np.repeat(np.arange(30), lengths)
    first, second = draws.integers(-3, kinds, size=(2, offsets[-1])).astype(float)
    first[first == 0.0] = draws.choice([0.0, -0.0], size=(first == 0.0).sum())  # are equal
    wanted = np.lexsort((-second, -first, query))
    rows = np.arange(offsets[-1])
    for key in (second, first):
        sort_range(offsets, key.copy(), 0, 30, rows)
    np.testing.assert_array_equal(rows, wanted)
    np.testing.assert_array_equal(falling_rows(offsets, first, second), wanted)
    np.testing.assert_array_equal(falling_rows(offsets, first.astype(np.int64), second), wanted)


def test_as_they_come_without_keys_and_nothing_of_nothing():
    np.testing.assert_array_equal(falling_rows(np.array([0, 2, 5])), np.arange(5))
    assert falling_rows(np.array([0]), np.zeros(0)).size == 0
    assert falling_rows(np.array([0, 0, 0]), np.zeros(0)).size == 0


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("kind", [bool, np.uint8, np.int8, np.int64, np.float32, np.float64])
def test_compiled_and_by_numpy_agree_for_every_kind_of_key(kind, compiled, monkeypatch):
    monkeypatch.setattr(type(sort_range), "pays", lambda self, nanoseconds: compiled)
    draws, lengths = np.random.default_rng(0), [7, 0, 33, 260]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    key = draws.integers(-128, 256, size=300).astype(kind)
    wanted = np.lexsort((-key.astype(np.float64), np.repeat(np.arange(4), lengths)))
    np.testing.assert_array_equal(falling_rows(offsets, key), wanted)


@pytest.mark.parametrize("compiled", [True, False])
def test_infinite_keys_come_first_and_last_and_what_is_no_number_behind_all(compiled, monkeypatch):
    monkeypatch.setattr(type(sort_range), "pays", lambda self, nanoseconds: compiled)
    key = np.array([np.nan, 1.0, -np.inf, np.inf, np.nan, 1.0, 2.0, np.nan])
    np.testing.assert_array_equal(falling_rows(np.array([0, 6, 8]), key), [3, 1, 5, 2, 0, 4, 6, 7])
    many = np.random.default_rng(0).choice([np.nan, 1.0, 2.0, 3.0], size=5000)
    assert sorted(falling_rows(np.array([0, 2000, 5000]), many)) == list(range(5000))
