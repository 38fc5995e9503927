"""Jobs cut into parts: every part once, whoever computes it; errors arrive, and a job inside a job ends."""

import threading

import pytest

from formulations.parallel import at_most, share, threads


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("parts", [0, 1, 2, 3, 1000])
def test_every_part_is_computed_once(limit, parts):
    seen = []
    with at_most(limit):
        assert threads() == limit
        share(parts, seen.append)
    assert sorted(seen) == list(range(parts))


def test_parts_are_computed_side_by_side():
    """Two parts that wait for one another end only if two threads compute them."""
    meeting = threading.Barrier(2, timeout=20)
    with at_most(2):
        share(2, lambda part: meeting.wait())


@pytest.mark.parametrize("bad", [0, 1, 7])
def test_an_error_is_raised_and_nothing_hangs(bad):
    def compute(part):
        if part == bad:
            raise ZeroDivisionError(part)

    with at_most(3), pytest.raises(ZeroDivisionError):
        share(8, compute)


def test_a_job_inside_a_job_ends():
    seen = []
    with at_most(3):
        share(6, lambda part: share(6, lambda inner: seen.append((part, inner))))
    assert sorted(seen) == [(part, inner) for part in range(6) for inner in range(6)]


def test_a_limit_ends_with_its_block():
    before = threads()
    with at_most(1):
        assert threads() == 1
        with at_most(None):
            assert threads() == before
    assert threads() == before
