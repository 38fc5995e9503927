"""Points on a piece of a line: the best of it by every value, on every kind of step function."""

import numpy as np
import pytest

from rankopt.sweeps.step_function import (
    StepEvents,
    StepFunction,
    clamped_point,
    inside_point,
    middle_point,
    within,
)


def drawn(seed, size, decimals=9):
    rng = np.random.default_rng(seed)
    times = np.round(rng.normal(size=size), decimals)
    return StepEvents(0.5, times, rng.normal(size=size), np.abs(rng.normal(size=size)) * 1e-6)


def cases():
    for seed in range(120):
        rng = np.random.default_rng([seed, 1])
        low = rng.normal()
        yield drawn(seed, seed % 30, 1 if seed % 3 == 0 else 9), low, low + rng.random() + 1e-3, rng.random()


def inner(steps, low, high):
    """Values of the open intervals that meet (low, high)."""
    return steps.values[np.minimum(steps.highs, high) > np.maximum(steps.lows, low)]


def told(events, t):
    return float(StepFunction.from_events(events).at(np.array([t]))[0])


def test_a_piece_of_a_line_has_its_values():
    for events, low, high, _ in cases():
        for t in np.random.default_rng(0).uniform(low, high, 20):
            np.testing.assert_allclose(told(within(events, low, high), t), told(events, t), atol=1e-12)


def test_inside_is_the_best_of_the_piece():
    for events, low, high, _ in cases():
        found = inside_point(events, low, high)
        assert low <= found.low < found.t < found.high <= high
        assert found.value == pytest.approx(inner(StepFunction.from_events(events), low, high).max(), abs=1e-12)
        assert found.value == pytest.approx(told(events, found.t), abs=1e-12)


def test_clamped_is_the_best_of_the_line_or_the_nearer_end():
    ends = 0
    for events, low, high, reach in cases():
        best, found = middle_point(events, reach), clamped_point(events, low, high, reach)
        assert low <= found.t <= high
        assert found.value == pytest.approx(told(events, found.t), abs=1e-12)
        if low <= best.t <= high:
            assert found == best
        else:
            ends += 1
            assert abs(found.t - (low if best.t < low else high)) <= (high - low) / 8 + 1e-5
    assert ends > 30


def test_of_equal_values_the_widest_and_its_middle():
    nothing = StepEvents(1.0, *np.zeros((3, 0)))
    found = inside_point(nothing, 0.1, 0.5)
    assert (found.t, found.value, found.events) == (pytest.approx(0.3), 1.0, 0)
    dip = StepEvents(1.0, np.array([0.2, 0.3]), np.array([-1.0, 1.0]), np.zeros(2))
    assert inside_point(dip, 0.1, 0.5).t == pytest.approx(0.4)
    assert clamped_point(StepEvents(0.0, np.array([7.0]), np.array([1.0]), np.zeros(1)), 0.1, 0.5, 1.0).t == 0.5


def test_an_end_within_the_rounding_of_a_jump_is_left():
    rise = StepEvents(0.0, np.array([0.1, 7.0]), np.array([-1.0, 3.0]), np.array([1e-3, 0.0]))
    found = clamped_point(StepEvents(0.0, np.array([0.1]), np.array([-1.0]), np.array([1e-3])), 0.1, 0.5, 1.0)
    assert found.t > 0.101
    assert inside_point(rise, 0.1, 0.5).value == -1.0
    covered = inside_point(StepEvents(0.0, np.array([0.3]), np.array([1.0]), np.array([1.0])), 0.1, 0.5)
    assert 0.1 < covered.t < 0.5
