"""Ratings as codes say to the bit what was given, in as many bytes as their levels need."""

import numpy as np
import pytest

from rankopt.collaborative.encoded_ratings import EncodedValues


@pytest.mark.parametrize(
    ("levels", "wide"),
    [(1, np.uint8), (5, np.uint8), (256, np.uint8), (257, np.uint16), (1 << 16, np.uint16), ((1 << 16) + 1, float)],
)
def test_what_is_read_is_what_was_given(levels, wide):
    draws = np.random.default_rng(levels)
    known = draws.normal(size=levels)
    given = np.concatenate([known, draws.choice(known, 1000)])
    found = EncodedValues.of(given)
    assert found.codes.dtype == wide
    assert found.size == given.size
    assert found[:].tobytes() == given.tobytes()
    some = draws.permutation(given.size)[:50]
    assert found[some].tobytes() == given[some].tobytes()
    assert found.kept(some)[3:9].tobytes() == given[some][3:9].tobytes()
    assert (found.kept(given > 0.0)[:] == given[given > 0.0]).all()
    assert np.asarray(found, dtype=np.float32).dtype == np.float32
    np.array(found)[0] += 1.0
    assert found[:].tobytes() == given.tobytes()


def test_signs_of_zero_and_neighbours_are_different_numbers():
    given = np.array([0.0, -0.0, 1.0, np.nextafter(1.0, 2.0), 5e-324])
    assert EncodedValues.of(given)[:].tobytes() == given.tobytes()


def test_no_ratings():
    found = EncodedValues.of(np.zeros(0))[:]
    assert (found.shape, found.dtype) == ((0,), np.float64)
